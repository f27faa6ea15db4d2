# A host: namespaces of its own (network, mounts, names, IPC, processes) over this machine's root file system, copy on write.
# host/enter.sh makes the file system, host/main.sh is then its first process.

host_pid() { # the host's process 1, as this machine numbers it; fails when the host is off
  local pid
  pid=$(cat "$STATE/$1/pid" 2>/dev/null) && [ -n "$pid" ] || return 1
  # A number alone proves nothing: the machine may have given it to another process since.
  [ "$(ip netns identify "$pid" 2>/dev/null)" = "$(netns "$1")" ] && echo "$pid"
}

on_host() { # HOST CMD...
  local host=$1 pid
  shift
  pid=$(host_pid "$host") || { say "$host is not running"; return 1; }
  nsenter -t "$pid" -m -u -i -n -p -r -w -- "$@"
}

first_child() { # of a process; it takes a moment to appear
  local child
  for _ in $(seq 100); do
    child=$(awk '{ print $1 }' "/proc/$1/task/$1/children" 2>/dev/null)
    [ -n "$child" ] && { echo "$child"; return 0; }
    sleep 0.05
  done
  return 1
}

host_on() { # HOST
  local host=$1 dir=$STATE/$1 network parent pid
  mkdir -p "$dir/root" "$dir/changes" "$dir/work" "$dir/docker"
  # Not within the command: its first child has to be the host's first process, and a substitution is a child too.
  network=/run/netns/$(netns "$host")
  nsenter --net="$network" \
    unshare --mount --uts --ipc --pid --fork --kill-child --propagation private \
    "$LAB_SOURCE/host/enter.sh" "$host" "$LAB_SOURCE" "$KEYS" "$dir" "$LAB_NAME" </dev/null >>"$dir/console.log" 2>&1 &
  parent=$!
  pid=$(first_child $parent) || { say "$host did not start; see $dir/console.log"; return 1; }
  echo "$pid" >"$dir/pid"
  for _ in $(seq 300); do
    nsenter -t "$pid" -m -p test -e /run/lab-ready 2>/dev/null && return 0
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.1
  done
  say "$host did not come up; its console says:"
  tail -5 "$dir/console.log" >&2
  return 1
}

# Pulling the plug: the kernel ends every process of a process namespace with its first one, and the mounts go with the last
# process. Nothing can be left over, whatever state the host's Docker engine is in.
host_off() { # HOST
  local pid
  pid=$(host_pid "$1") || return 0
  kill -KILL "$pid"
  for _ in $(seq 200); do
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.05
  done
  remove_cgroups "$1"
}

remove_cgroups() { # HOST: Docker makes them outside of the host's namespaces
  find /sys/fs/cgroup -maxdepth 2 -type d -name "$LAB_NAME-$1" 2>/dev/null | while read -r group; do
    find "$group" -depth -type d -exec rmdir {} + 2>/dev/null
  done
}
