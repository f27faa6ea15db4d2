if [ "$mark" = once ]; then
  # What may hang comes last.
  for part in memory fabric sockets containers; do
    "$part"
    tell
  done
  if command -v nvidia-smi >/dev/null 2>&1; then
    # shellcheck disable=SC2086
    limited nvidia-smi $query
    devices=$said
    gpus "$code"
    tell
    limited nvidia-smi -q -d PIDS
    processes=$said
    holders=
    IFS=$newline
    for line in $said; do
      case $line in
        *'Process ID'*) holders="$holders ${line##* }" ;;
      esac
    done
    unset IFS
    apps "$code"
  else
    amd
  fi
  tell
  exit 0
fi

# Before there is anything to end: on a busy host the first readings come before this shell goes on. A reader that is gone is an end too.
jobs=
trap 'kill -s KILL $nap 2>/dev/null; kill $jobs $! 2>/dev/null; exit' TERM HUP INT PIPE
for loop in gpus apps containers fabric disk; do
  {
    ends
    "${loop}_loop"
  } &
  jobs="$jobs $!"
done
since=$sockets_every
while :; do
  clock
  start=$now
  memory
  tell memory "$start" "$memory_every"
  if [ "$since" -ge "$sockets_every" ]; then
    since=$((since - sockets_every))
    clock
    start=$now
    sockets
    tell sockets "$start" "$sockets_every"
  fi
  pause "$memory_every"
  since=$((since + memory_every))
done
