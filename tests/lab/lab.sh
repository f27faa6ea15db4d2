#!/bin/bash
# The test lab: one Linux machine plays an operator's machine, a jump host and two GPU nodes, each a host of its own
# with its own network, processes, file system, sshd and (the nodes) Docker engine. README.md says how to use it.
set -u
LAB_SOURCE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$LAB_SOURCE/lib/settings.sh"
. "$LAB_SOURCE/lib/packages.sh"
. "$LAB_SOURCE/lib/keys.sh"
. "$LAB_SOURCE/lib/network.sh"
. "$LAB_SOURCE/lib/hosts.sh"
. "$LAB_SOURCE/lib/image.sh"
. "$LAB_SOURCE/lib/lifecycle.sh"
. "$LAB_SOURCE/lib/faults.sh"

usage() {
  cat <<'U'
usage: lab.sh COMMAND
  up [bare]        start the lab; ends one that runs. bare: without the Ray image (seconds instead of minutes)
  down             end everything; keeps the image cache and the keys
  clean            down, and remove the image cache and the keys too
  status           hosts, their addresses and containers
  image            build the Ray image into the cache, start nothing
  op CMD...        run CMD as the operator's machine would: with its network, on this machine's files
  ssh ARGS...      ssh on the operator's machine, with the lab's keys and known hosts
  nx HOST CMD...   root console of a host (jump, spark1, spark2), beside its sshd
  fault KIND ...   break something, "fault" alone lists what
U
}

command=${1:-}
shift || true
case $command in
  up) up "$@" ;;
  down) down ;;
  clean) clean ;;
  status) status ;;
  image) install_packages && build_ray_image ;;
  op) exec ip netns exec "$(netns op)" "$@" ;;
  ssh) exec ip netns exec "$(netns op)" ssh -F "$KEYS/ssh_config" "$@" ;;
  nx) on_host "$@" ;;
  fault) fault "$@" ;;
  *) usage; exit 2 ;;
esac
