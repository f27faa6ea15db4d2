# Interfaces with their addresses, and RDMA devices: device, port, state, rate, layer, interface, words of four bytes sent and received, times down.
fabric() {
  put '@@ interfaces'
  set +f
  for path in /sys/class/net/*; do
    put "name ${path##*/}"
    # Of the many ends of containers' networks nothing more is of interest.
    case ${path##*/} in veth*) continue ;; esac
    link=${path##*/}
    for file in operstate speed mtu; do
      first_line "$path/$file"
      link="$link $value"
    done
    put "link $link"
  done
  [ -d /dev/infiniband ] && put infiniband
  rdma=
  for path in /sys/class/infiniband/*/ports/*; do
    [ -r "$path/state" ] || continue
    device=${path#/sys/class/infiniband/}
    port="${device%%/*}|${device##*/}"
    for file in state rate link_layer; do
      first_line "$path/$file"
      port="$port|$value"
    done
    nets=-
    for net in "/sys/class/infiniband/${device%%/*}/device/net"/*; do
      [ -d "$net" ] && nets=${net##*/} && break
    done
    port="$port|$nets"
    for file in port_xmit_data port_rcv_data link_downed; do
      first_line "$path/counters/$file"
      port="$port|$value"
    done
    rdma=$rdma$port$newline
  done
  set -f
  if command -v ip >/dev/null 2>&1; then
    put "$(ip -o addr 2>&1; echo "@= $?")"
  else
    put '@= 0'
    put '@@ local'
    put "$(cat /proc/net/fib_trie 2>&1; echo "@= $?")"
    put '@@ routes'
    put "$(cat /proc/net/route 2>&1; echo "@= $?")"
    put '@@ inet6'
    put "$(cat /proc/net/if_inet6 2>/dev/null)"
    put '@= 0'
  fi
  put '@@ rdma'
  put "$rdma"
  put '@= 0'
}

fabric_loop() {
  while :; do
    clock
    start=$now
    fabric
    rest "$fabric_every" "$start"
    tell fabric "$start" "$next"
    pause "$next"
  done
}
