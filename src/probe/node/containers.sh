# Every container that runs, carries our label or has the configured name; at most 64 of them. They are inspected when the list says something else than
# before; its seconds say so for a container that was started a moment ago.
listed=
shown=
containers() {
  put '@@ clock'
  put "$(date +%s)"
  put '@= 0'
  put '@@ containers'
  # shellcheck disable=SC2086
  limited $docker ps -a --no-trunc --format '{{.ID}}|{{.Names}}|{{.Status}}|{{.Label "io.bringup.cluster"}}'
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
    IFS=$newline
    for line in $listed; do
      case $line in
        *'|'*'|'*'|'*) ;;
        *) continue ;;
      esac
      case $line in
        *"|$name|"* | *'|Up '* | *'|Restarting '*) ;;
        *'|') continue ;;
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

# What the kernel knows of containers without Docker: their control groups, and whether their first processes are there.
running() {
  set +f
  set -- /sys/fs/cgroup/system.slice/docker-*.scope/ /sys/fs/cgroup/docker/*/ /sys/fs/cgroup/pids/system.slice/docker-*.scope/ \
    /sys/fs/cgroup/pids/docker/*/ /sys/fs/cgroup/machine.slice/libpod-*.scope/
  set -f
  count=0
  for group in "$@"; do
    [ -d "$group" ] && count=$((count + 1))
  done
  kernel="$*"
}

# The first processes of the containers that run, and whether the kernel's control groups are as many.
known() {
  first=
  alive=0
  IFS=$newline
  for line in $shown; do
    line=${line#*'"pid":'}
    line=${line%%,*}
    case $line in
      0 | *[!0-9]*) ;;
      *)
        first="$first$line$newline"
        alive=$((alive + 1))
        ;;
    esac
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
      rest "$look_every" "$start"
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
