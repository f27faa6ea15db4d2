# Prints what Ray's workers and raylet on this node write, file by file: "@@ file NAME BYTES", then so many bytes of it; on as it grows. "@@ none" where there is none yet.
# $1 the folder; $2 bytes of a file's end that are shown at first, of the 16 files written to last.
folder=$1
part=$2
first=1
missing=
while :; do
  list=$(cd "$folder" 2>/dev/null && ls -Linrt -- worker-*.out worker-*.err raylet.err 2>/dev/null)
  [ -n "$list" ] || [ -n "$missing" ] || echo '@@ none'
  [ -n "$list" ] || missing=1
  left=0
  while read -r line; do left=$((left + 1)); done <<end
$list
end
  while read -r inode mode links owner group size month day time name; do
    left=$((left - 1))
    case $inode-$size in
      *[!0-9-]* | -* | *-) continue ;;
    esac
    eval "from=\${at_$inode:-}"
    if [ -z "$from" ]; then
      from=0
      if [ -n "$first" ]; then
        [ "$left" -lt 16 ] && from=$((size - part)) || from=$size
        [ "$from" -gt 0 ] || from=0
      fi
    fi
    [ "$size" -ge "$from" ] || from=0
    more=$((size - from))
    if [ "$more" -gt 0 ]; then
      echo "@@ file $name $more"
      tail -c "+$((from + 1))" "$folder/$name" | head -c "$more"
    fi
    eval "at_$inode=$size"
  done <<end
$list
end
  [ -z "$list" ] || first=
  sleep 1
done
