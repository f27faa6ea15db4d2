# Prints what the node is doing, in sections: "@@ NAME", lines, "@= EXIT CODE".
# $1 "once" for a single answer, else the mark of a stream that goes on; $2 docker's words, which want splitting; $3 the configured container's name;
# $4 the folder of the model cache, empty for the hub's own; then the seconds between two looks at memory, GPUs, Docker, containers' processes, sockets,
# interfaces, disks, AMD's GPUs and a tool that failed, and those that a tool may take; then what an ended container is known by whose log is wanted, both
# empty where it is the configured one: a pattern for its name, and a piece of a template that prints = for it; then the ports whose owner is wanted.
# In a stream each subject that needs a program has a loop of its own: one that hangs keeps no other from being read. This runs for hours on machines
# that have other work, so few programs are started: what the shell can do itself, it does. A shell reads byte by byte, so it reads little.
PATH=$PATH:/usr/sbin:/sbin
LC_ALL=C
export LC_ALL
mark=$1 docker=$2 name=$3 cache=${4:-${HF_HOME:-$HOME/.cache/huggingface}} memory_every=$5 gpus_every=$6 docker_every=$7 look_every=$8 sockets_every=$9
shift 9
fabric_every=$1 disk_every=$2 amd_every=$3 again_every=$4 limit=$5 meant=$6 label=$7
shift 7
newline='
'
set -f

out=
put() { out=$out$1$newline; }

# The time since the node's start, in hundredths of a second.
clock() {
  read -r now idle </proc/uptime
  now=${now%.*}${now#*.}
}

# Prints what was put. In a stream it is a record: each line after the mark and the record's name, then how many lines and bytes there are, when the look
# began and ended, and the seconds until the next one. A line of another writer, or of a record that was torn, is then told from it.
tell() {
  if [ "$mark" = once ]; then
    printf '%s' "$out"
    out=
    return
  fi
  record=
  lines=0
  bytes=0
  IFS=$newline
  for piece in $out; do
    record="$record$mark $1 $piece$newline"
    lines=$((lines + 1))
    bytes=$((bytes + ${#piece}))
  done
  unset IFS
  clock
  printf '%s%s %s= %s %s %s %s %s\n' "$record" "$mark" "$1" "$lines" "$bytes" "$2" "$now" "$3"
  out=
}

# Waits so many seconds. What waits or reads is ended with the loop, also where nothing ends the whole group; outright, as a signal that comes before a
# new process is itself is lost, and by "$!" too, as it may come before the variable is set.
nap= reader=
pause() {
  over=$1
  while [ "$over" -gt 0 ]; do
    part=$over
    [ "$part" -le 20 ] || part=20
    over=$((over - part))
    sleep "$part" &
    nap=$!
    wait "$nap"
    # A loop of a script that was ended without its trap is nobody's. None waits long before it looks.
    kill -0 "$$" 2>/dev/null || exit
  done
}
ends() { trap 'kill -s KILL $nap $reader $! 2>/dev/null; exit' TERM; }

# How long it is until the next look: $1 seconds, or five times as long as the last one took that began at $2, but not above 20; in $next.
rest() {
  clock
  next=$(((now - $2) / 20))
  [ "$next" -le 20 ] || next=20
  [ "$next" -ge "$1" ] || next=$1
}

# Runs a tool for at most $limit seconds; what it says is then in $said and its exit code in $code.
limited() {
  said=$(
    "$@" 2>&1 &
    tool=$!
    {
      trap 'kill -s KILL $!; exit' TERM
      sleep "$limit" &
      wait $!
      kill "$tool"
      sleep 1
      kill -s KILL "$tool"
    } >/dev/null 2>&1 &
    guard=$!
    wait "$tool"
    code=$?
    kill "$guard" 2>/dev/null
    exit "$code"
  )
  code=$?
}

# The first line of a file in $value, "-" where there is none: some files of a device that is down can't be read.
first_line() {
  value=
  [ -r "$1" ] && read -r value <"$1"
  value=${value:--}
} 2>/dev/null
