# Follows Ray in a container. $1 docker's words, which want splitting; $2 the container; $3 the GCS's port; the rest is for the program.
# Its input is a line every few seconds, for as long as this runs: a program in a container sees nothing else of who has started it.
docker=$1 name=$2
shift 2
{
  sh -c 'echo $PPID'
  trap 'kill -s KILL $!; exit' TERM
  while echo; do sleep 10 >/dev/null 2>&1 & wait $!; done
} | {
  read -r beat
  $docker exec -i "$name" python3 -u -c "$program" "$@"
  code=$?
  kill -s TERM "$beat" 2>/dev/null
  exit "$code"
}
