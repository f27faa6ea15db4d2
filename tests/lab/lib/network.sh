# Namespaces and cables. The bridges live in a namespace of their own ("switch"), so this machine itself gets no new
# address, route or interface.

each_link() { # calls $1 with the fields of every cable
  local host interface bridge port address mtu
  while read -r host interface bridge port address mtu; do
    [ -n "$host" ] || continue
    "$1" "$host" "$interface" "$bridge" "$port" "$address" "$mtu" </dev/null
  done <<<"$LINKS"
}

# A user-space forwarder (fault delay) sees whole frames only where nothing is left to the hardware's checksums.
no_offload() { # namespace interface
  ip netns exec "$1" ethtool -K "$2" tx off gso off tso off gro off >/dev/null 2>&1
}

plug_in() { # the fields of one cable
  local host=$1 interface=$2 bridge=$3 port=$4 address=$5 mtu=$6
  ip link add "$interface" netns "$(netns "$host")" type veth peer name "$port" netns "$(netns switch)" || return 1
  ip -n "$(netns switch)" link set "$port" master "$bridge" mtu "$mtu" up
  ip -n "$(netns "$host")" addr add "$address" dev "$interface"
  ip -n "$(netns "$host")" link set "$interface" mtu "$mtu" up
  no_offload "$(netns "$host")" "$interface"
}

network_up() {
  local name
  for name in switch op $HOSTS; do
    ip netns add "$(netns "$name")" || return 1
    ip -n "$(netns "$name")" link set lo up
  done
  for name in mgmt fabric; do ip -n "$(netns switch)" link add "$name" type bridge; done
  ip -n "$(netns switch)" addr add "$GATEWAY/24" dev mgmt
  ip -n "$(netns switch)" link set mgmt up
  ip -n "$(netns switch)" link set fabric mtu 9000 up
  ip netns exec "$(netns switch)" sysctl -qw net.ipv4.ip_forward=0
  each_link plug_in
  # The operator has a way out that leads nowhere: a direct connection to the fabric times out instead of failing at once.
  ip -n "$(netns op)" route add default via "$GATEWAY"
  # A program on spark1 that guesses its own address guesses the external one, which the worker can't reach.
  ip -n "$(netns spark1)" route add default via "$GATEWAY"
}

# Also ends what still runs in the namespaces beside the hosts: forwarders of fault delay, programs started with op.
network_down() {
  local name pid
  for name in op $HOSTS switch; do
    [ -e "/run/netns/$(netns "$name")" ] || continue
    for pid in $(ip netns pids "$(netns "$name")"); do kill -KILL "$pid" 2>/dev/null; done
    ip netns del "$(netns "$name")"
  done
}
