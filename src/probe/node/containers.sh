# Every container that runs, carries our label or has the configured name, and the 8 that were made last of those that have ended and whose log is wanted; at
# most 64 of them. They are inspected when the list says something else than
# before; its seconds say so for a container that was started a moment ago.
listed=
shown=
wanted() {
  other=${1#*|}
  # shellcheck disable=SC2254
  case ${other%%|*} in
    $meant) return 0 ;;
  esac
  case $1 in
    *'|=|'*) return 0 ;;
  esac
  return 1
}
containers() {
  # The node's own time, and the time since its start just after it.
  put '@@ clock'
  shows=$(date +%s.%N)
  put "${shows:--}"
  clock
  put "$now"
  put '@= 0'
  put '@@ containers'
  # shellcheck disable=SC2086
  limited $docker ps -a --no-trunc --format "{{.ID}}|{{.Names}}|{{.Status}}|${label:+$label|}{{.Label \"io.bringup.cluster\"}}"
  if [ "$code" != 0 ]; then
    listed=
    put "$said"
    put "@= $code"
    return
  fi
  case $said in
    "$listed") case $said in *second*) listed= ;; esac ;;
    *) listed= ;;
  esac
  if [ -z "$listed" ]; then
    listed=$said
    shown=
    ids=
    count=0
    past=0
    IFS=$newline
    for line in $listed; do
      case $line in
        *'|'*'|'*'|'*) ;;
        *) continue ;;
      esac
      case $line in
        *"|$name|"* | *'|Up '* | *'|Restarting '*) ;;
        *'|')
          wanted "$line" && [ "$past" -lt 8 ] || continue
          past=$((past + 1))
          ;;
      esac
      count=$((count + 1))
      [ "$count" -le 64 ] && ids="$ids ${line%%|*}"
    done
    unset IFS
    if [ -n "$ids" ]; then
      # shellcheck disable=SC2086
      limited $docker inspect --type container --format '{"id":{{json .Id}},"name":{{json .Name}},"image":{{json .Config.Image}},"status":{{json .State.Status}},"code":{{json .State.ExitCode}},"oom":{{json .State.OOMKilled}},"pid":{{json .State.Pid}},"started":{{json .State.StartedAt}},"restarts":{{json .RestartCount}},"labels":{{json .Config.Labels}}}' $ids
      shown=$said
      # One that went meanwhile is asked for again.
      [ "$code" = 0 ] || listed=
    fi
  fi
  put "$shown"
  put "@= $code"
}

# What the kernel knows of containers without Docker: their control groups.
usual='/sys/fs/cgroup/system.slice/docker-*.scope/ /sys/fs/cgroup/docker/*/ /sys/fs/cgroup/pids/system.slice/docker-*.scope/ /sys/fs/cgroup/pids/docker/*/'
places=
running() {
  set +f
  # shellcheck disable=SC2086
  set -- ${places:-$usual}
  set -f
  count=0
  for group in "$@"; do
    [ -d "$group" ] && count=$((count + 1))
  done
  kernel="$*"
}

# Where the control groups of containers are, as the one of container $id with the first process $pid says: its path with any other id.
place() {
  while IFS=: read -r number kind path; do
    case $kind-$path in
      "-"*"$id"* | pids-*"$id"*) ;;
      *) continue ;;
    esac
    for root in /sys/fs/cgroup /sys/fs/cgroup/pids /sys/fs/cgroup/unified; do
      [ -d "$root$path" ] || continue
      group="$root${path%%"$id"*}*${path##*"$id"}/"
      # One hierarchy tells it; a container stands in all of them.
      case " $places " in
        *" $group "*) ;;
        *) places="$places $group" ;;
      esac
      return
    done
  done <"/proc/$pid/cgroup"
} 2>/dev/null

# The first processes of the containers that run, and whether the kernel's control groups are as many.
known() {
  first=
  alive=0
  places=
  IFS=$newline
  for line in $shown; do
    id=${line#*'"id":"'}
    id=${id%%'"'*}
    pid=${line#*'"pid":'}
    pid=${pid%%,*}
    case $pid in
      '' | 0 | *[!0-9]*) continue ;;
    esac
    first="$first$pid$newline"
    alive=$((alive + 1))
    place
  done
  unset IFS
  running
  seen=$kernel
  [ -n "$listed" ] && [ "$count" = "$alive" ]
}

# Docker's client is by far the dearest of all programs here. Between two questions the kernel says whether something started or ended.
containers_loop() {
  while :; do
    clock
    start=$now
    containers
    if ! known; then
      # Without an answer of Docker's there is nothing that the kernel could tell about.
      [ -n "$listed" ] && rest "$look_every" "$start" || rest "$again_every" "$start"
      tell containers "$start" "$next"
      pause "$next"
      continue
    fi
    rest "$docker_every" "$start"
    tell containers "$start" "$next"
    waited=0
    while [ "$waited" -lt "$next" ]; do
      pause "$look_every"
      waited=$((waited + look_every))
      running
      [ "$kernel" = "$seen" ] || break
      gone=
      for pid in $first; do
        [ -d "/proc/$pid" ] || gone=1
      done
      [ -z "$gone" ] || break
    done
  done
}
