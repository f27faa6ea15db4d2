# Prints "@@ from BYTE FILE REST [WHY]", then REST bytes that an earlier file still held, then follows a file from that byte on, until another file has
# taken its place or it was cut. FILE is the file's inode; WHY stands there when bytes are missing: cut or anew.
# As long as there is nothing to read, it says "@@ none WHY WORDS": WHY is missing, folder, device or closed (the login may not read it), WORDS are those of ls.
# $1 the file, $2 the byte to go on at, or - for the file's last part, $3 how long that part is, $4 the inode that the byte belongs to, or -.
path=$1
case $path in
  '~/'*) path=$HOME/${path#??} ;;
esac
case $path in
  */*) ;;
  *) path=./$path ;;
esac
folder=${path%/*}
# shellcheck disable=SC2046
inode() { set -- $(ls -Lind -- "$1" 2>/dev/null); echo "${1:-0}"; }
# shellcheck disable=SC2046
size() { set -- $(ls -Lind -- "$1" 2>/dev/null); echo "${6:-0}"; }
from=$2
file=$path
old=
if [ "$4" != - ] && [ "$(inode "$path")" != "$4" ]; then
  old=$(ls -id -- "$folder"/* 2>/dev/null | sed -n "s/^ *$4 //p" | head -n 1)
  if [ -n "$old" ] && [ "$(size "$old")" -lt "$from" ]; then old=; fi
  # As long as nothing is in the new file, the old one is written to.
  if [ -n "$old" ] && [ ! -s "$path" ]; then
    file=$old
    old=
  fi
fi
if [ -n "$old" ]; then
  # Where it was rotated more than once, the next one of the files comes first. Those that are packed are copies.
  next=$(ls -tr -- "$path"* 2>/dev/null | {
    while IFS= read -r one && [ "$one" != "$old" ]; do :; done
    while IFS= read -r one; do
      case $one in
        *.gz | *.xz | *.bz2 | *.zst) ;;
        *) echo "$one" && break ;;
      esac
    done
  })
  file=${next:-$path}
fi
told=
while :; do
  if [ ! -e "$file" ]; then
    why=missing
  elif [ -d "$file" ]; then
    why=folder
  elif [ -c "$file" ] || [ -b "$file" ]; then
    why=device
  elif [ ! -r "$file" ]; then
    why=closed
  else
    break
  fi
  if [ "$why" != "$told" ]; then
    told=$why
    # Whether the file or the way to it is the matter.
    said=$(ls -d -- "$file" 2>&1 >/dev/null)
    echo "@@ none $why ${said%%
*}"
  fi
  sleep 1
done
now=$(inode "$file")
long=$(size "$file")
rest=0
why=
if [ "$from" = - ]; then
  from=$((long - $3))
elif [ -n "$old" ]; then
  at=$from
  rest=$(($(size "$old") - at))
  from=0
elif [ "$now" != "$4" ]; then
  why=anew
  from=$((long - $3))
elif [ "$from" -gt "$long" ]; then
  why=cut
  from=$((long - $3))
fi
[ "$from" -gt 0 ] || from=0
echo "@@ from $from $now $rest $why"
[ "$rest" -eq 0 ] || tail -c "+$((at + 1))" <"$old" | head -c "$rest"
reader=
trap 'kill -s KILL $reader $! 2>/dev/null; exit 143' TERM
tail -c "+$((from + 1))" -f "$file" &
reader=$!
while kill -0 "$reader" 2>/dev/null; do
  sleep 2 >/dev/null 2>&1 &
  wait "$!"
  # shellcheck disable=SC2046
  set -- $(ls -Lind -- "$path" 2>/dev/null)
  if [ "${1:-0}" = "$now" ]; then
    [ "$6" -ge "$long" ] || break
    long=$6
  elif [ -s "$path" ]; then
    break
  fi
done
kill "$reader" 2>/dev/null
wait "$reader" 2>/dev/null
exit 0
