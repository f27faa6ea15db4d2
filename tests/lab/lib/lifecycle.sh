# up, down, status, clean.

seconds() { date +%s.%N; }

up() { # [bare]
  local bare=${1:-} t0 t1 t2 t3 t4 host pid pids="" failed=0
  t0=$(seconds)
  install_packages || return 1
  [ "$bare" = bare ] || build_ray_image || return 1
  build_plain_image || return 1
  t1=$(seconds)
  down quietly
  # In memory: the nodes' images come and go with every lab, and a disk takes its time to forget a gigabyte of small files.
  mkdir -p "$STATE" && mount -t tmpfs -o mode=755 "lab-$LAB_NAME" "$STATE" || return 1
  make_keys
  network_up || { say "the network did not come up"; return 1; }
  t2=$(seconds)
  for host in $HOSTS; do host_on "$host" & pids="$pids $!"; done
  for pid in $pids; do wait "$pid" || failed=1; done
  [ $failed = 0 ] || return 1
  t3=$(seconds)
  pids=""
  for host in $NODES; do import_images "$host" "$bare" & pids="$pids $!"; done
  for pid in $pids; do wait "$pid" || failed=1; done
  t4=$(seconds)
  echo "$t0 $t1 $t2 $t3 $t4" | awk '{ printf "[lab] up: packages and image %.1fs, network %.1fs, hosts %.1fs, import %.1fs, in all %.1fs\n",
    $2 - $1, $3 - $2, $4 - $3, $5 - $4, $5 - $1 }'
  return $failed
}

down() { # [quietly]
  local host
  for host in $HOSTS; do host_off "$host" & done
  wait
  network_down
  # Lazily where something outside, such as a shell, is still in there.
  mountpoint -q "$STATE" && { umount "$STATE" 2>/dev/null || umount -l "$STATE"; }
  rm -rf "$STATE"
  [ "${1:-}" = quietly ] || say down
}

clean() {
  down
  rm -rf "$CACHE" "$KEYS" "$LAB/apt.log" "$LAB/test.lock"
  rmdir "$LAB" 2>/dev/null || true
}

status() {
  local host pid addresses
  for host in $HOSTS; do
    if pid=$(host_pid "$host"); then
      addresses=$(ip -n "$(netns "$host")" -br -4 addr | awk '$1 != "lo" { sub("@.*", "", $1); print $1, $3 }' | tr '\n' ' ')
      echo "$host on, pid $pid, sshd $(on_host "$host" cat /run/sshd.pid 2>/dev/null || echo off), $addresses"
      on_host "$host" sh -c 'command -v docker >/dev/null && docker ps -a --format "   {{.Names}} {{.Image}} {{.Status}}" 2>&1'
    else
      echo "$host off"
    fi
  done
  echo "keys and ssh_config: $KEYS"
}
