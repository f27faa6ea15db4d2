# The text before this has read one line; $h holds the rest of it: nothing, or the seconds that this waits for work. Standard input: a line with bytes of
# the script, nonce, kind, limit, silence, tick, secret or "-"; the script; after the nonce a line that lets it begin, which holds the secret if there
# is one; then a newline every few seconds, or "hold" and "go". Three watchers write words into one pipe; the block after it is the only one that decides.
guard=
[ -z "$h" ] || {
  # Told to end before it sleeps, it must not sleep: it would end what is at work by then.
  # What it has started is killed outright: a signal that comes before a new process is itself is lost.
  { trap 'kill -s KILL $!; exit' TERM; sleep "$h" & wait $! && kill -s TERM "$$"; } </dev/null >/dev/null 2>&1 &
  guard=$!
}
IFS= read -r h
came=$?
[ -z "$guard" ] || kill "$guard" 2>/dev/null
[ "$came" -eq 0 ] || exit 125
set -- $h
LC_ALL=C PATH="$PATH:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:/snap/bin"
# A shell reads byte by byte, which for a short script is still sooner done than a program is started.
BRINGUP=
if [ "$1" -lt 2048 ]; then
  while IFS= read -r line; do
    BRINGUP="$BRINGUP$line
"
    [ "$line" != "# end $2" ] || break
  done
  BRINGUP=${BRINGUP%?}
else
  BRINGUP=$(dd bs="$1" count=1 iflag=fullblock 2>/dev/null || dd ibs=1 count="$1" 2>/dev/null)
fi
case $BRINGUP in *"# end $2") ;; *) exit 125 ;; esac
export LC_ALL PATH BRINGUP
own=
command -v setsid >/dev/null 2>&1 && own=setsid
body='eval "unset BRINGUP; $BRINGUP"'
echo "$2"
echo "$2" >&2
IFS= read -r key || exit 125
exec 3<&0 4>&1 5>&2 </dev/null >/dev/null 2>&1
{
  if [ "$7" = secret ]; then
    printf '%s\n' "$key" | $own /bin/sh -c "$body" bringup >&4 2>&5 3<&- 4>&- 5>&- &
  else
    $own /bin/sh -c "$body" bringup >&4 2>&5 3<&- 4>&- 5>&- &
  fi
  run=$!
  echo "run $run"
  { while read -r byte; do echo "byte $byte"; done; echo end; } <&3 3<&- 4>&- 5>&- &
  ear=$!
  { trap 'kill -s KILL $!; exit' TERM; while :; do sleep "$6" & wait $! || exit; echo tick; done; } 3<&- 4>&- 5>&- &
  clock=$!
  wait "$run"
  echo "code $?"
  kill -s KILL "$ear"
  kill -s TERM "$clock"
  wait
} | {
  exec 3<&- 4>&- 5>&-
  quiet=0 all=0 ending=0
  # One that is held hears of its end only when it goes on.
  stop() { kill -s "$1" -- "-$run" || kill -s "$1" "$run"; [ "$1" != TERM ] || stop CONT; }
  while read -r word value; do
    case $word in
    run) run=$value ;;
    byte)
      quiet=0
      case $ending$value in
      0hold) stop STOP ;;
      0go) stop CONT ;;
      esac ;;
    tick)
      quiet=$((quiet + $6)) all=$((all + $6))
      if [ "$ending" -gt 1 ]; then stop KILL
      elif [ "$ending" -eq 1 ]; then ending=2
      elif [ "$quiet" -gt "$5" ] || { [ "$4" -gt 0 ] && [ "$all" -gt "$4" ]; }; then ending=1; stop TERM
      fi ;;
    end) [ "$ending" -gt 0 ] || { ending=1; stop TERM; } ;;
    code)
      # One that a signal has ended (a closed pipe, no memory) has run no trap: its loops would stay.
      { [ "$ending" -eq 0 ] && [ "$value" -le 128 ]; } || kill -s KILL -- "-$run"
      exit "$value" ;;
    esac
  done
  exit 125
}
