# What can go wrong, on purpose. An interface is named HOST:INTERFACE, such as spark2:enp1s0f1np1.

fault_usage() {
  cat <<'U'
fault link-down|link-up INTERFACE              the cable
fault loss INTERFACE PROBABILITY               lost packets, 0 to 1
fault rate INTERFACE RATE [LATENCY]            a slow line (5mbit), each way
fault delay INTERFACE MS [JITTER_MS] [LOSS]    a long line, each way
fault blackhole|reject HOST PORT               a TCP port that swallows, or refuses
fault sshd-stop|sshd-start|sshd-drop HOST      drop: cuts the sessions there are, keeps listening
fault docker-stop|docker-start HOST            the engine; its containers go with it
fault docker-freeze|docker-thaw HOST           the engine hangs
fault power-off|power-on HOST                  the plug; the host comes back without its containers running
fault clear                                    undoes the network's faults
U
}

fault() {
  local kind=${1:-} port
  shift || true
  case $kind in
    link-down) port=$(port_of "$1") && ip -n "$(netns switch)" link set "$port" down ;;
    link-up) port=$(port_of "$1") && ip -n "$(netns switch)" link set "$port" up ;;
    loss)
      filter "${1%%:*}" INPUT -i "${1##*:}" -m statistic --mode random --probability "$2" -j DROP
      filter "${1%%:*}" OUTPUT -o "${1##*:}" -m statistic --mode random --probability "$2" -j DROP ;;
    rate)
      port=$(port_of "$1") && slow "$(netns switch)" "$port" "$2" "${3:-800ms}" &&
        slow "$(netns "${1%%:*}")" "${1##*:}" "$2" "${3:-800ms}" ;;
    delay) port=$(port_of "$1") && undelay "$port" && delay "$port" "$2" "${3:-0}" "${4:-0}" ;;
    blackhole) filter "$1" INPUT -p tcp --dport "$2" -j DROP ;;
    reject) filter "$1" INPUT -p tcp --dport "$2" -j REJECT --reject-with tcp-reset ;;
    sshd-stop) on_host "$1" sh -c 'kill $(cat /run/sshd.pid)' ;;
    sshd-start) on_host "$1" /usr/sbin/sshd -E /var/log/sshd.log ;;
    sshd-drop) on_host "$1" sh -c 'for p in $(pgrep -x sshd); do [ $p = "$(cat /run/sshd.pid)" ] || kill -9 $p; done' ;;
    docker-stop) on_host "$1" sh -c 'p=$(cat /run/docker.pid); kill $p; while kill -0 $p 2>/dev/null; do sleep 0.1; done' ;;
    docker-start) on_host "$1" /opt/lab/start-dockerd ;;
    docker-freeze) on_host "$1" sh -c 'kill -STOP $(cat /run/docker.pid)' ;;
    docker-thaw) on_host "$1" sh -c 'kill -CONT $(cat /run/docker.pid)' ;;
    # The cables first: a host that loses its power says goodbye to nobody.
    power-off) links_of "$1" down; host_off "$1" ;;
    power-on) links_of "$1" up; host_on "$1" ;;
    clear) each_link clear_link; clear_filters ;;
    *) fault_usage; return 2 ;;
  esac
}

port_of() { # HOST:INTERFACE -> the cable's end in the switch
  local port
  port=$(awk -v host="${1%%:*}" -v interface="${1##*:}" '$1 == host && $2 == interface { print $4 }' <<<"$LINKS")
  [ -n "$port" ] && echo "$port" || { say "no such interface: $1"; return 1; }
}

links_of() { # HOST up|down
  local port
  for port in $(awk -v host="$1" '$1 == host { print $4 }' <<<"$LINKS"); do ip -n "$(netns switch)" link set "$port" "$2"; done
}

bridge_of() { awk -v port="$1" '$4 == port { print $3 }' <<<"$LINKS"; }
mtu_of() { awk -v port="$1" '$4 == port { print $6 }' <<<"$LINKS"; }

# The comment marks the lab's rules, so that clear takes those and leaves Docker's.
filter() { # HOST CHAIN MATCH...
  local host=$1 chain=$2
  shift 2
  on_host "$host" iptables -I "$chain" 1 "$@" -m comment --comment lab
}

clear_filters() {
  local host
  for host in $HOSTS; do
    host_pid "$host" >/dev/null || continue
    on_host "$host" sh -c 'iptables-save | grep -- "--comment lab" | sed "s/^-A/-D/" | while read -r rule; do eval iptables $rule; done'
  done
}

slow() { ip netns exec "$1" tc qdisc replace dev "$2" root tbf rate "$3" burst 10kb latency "$4"; }

# Kernels without sch_netem can't delay, so a small program forwards the frames: it takes the port out of its bridge and puts
# a pair of interfaces between them.
delay() { # PORT MS JITTER LOSS
  local port=$1 switch end
  switch=$(netns switch)
  ip -n "$switch" link add "$port.a" mtu "$(mtu_of "$port")" type veth peer name "$port.b" mtu "$(mtu_of "$port")"
  ip -n "$switch" link set "$port" nomaster
  ip -n "$switch" link set "$port.b" master "$(bridge_of "$port")"
  for end in "$port.a" "$port.b"; do
    no_offload "$switch" "$end"
    ip -n "$switch" link set "$end" up
  done
  no_offload "$switch" "$port"
  ip netns exec "$switch" /usr/bin/python3 "$LAB_SOURCE/lib/delay.py" "$port" "$port.a" "$2" "$3" "$4" \
    </dev/null >>"$STATE/delay.log" 2>&1 &
  echo $! >"$STATE/delay.$port.pid"
}

undelay() { # PORT
  local pidfile=$STATE/delay.$1.pid
  [ -f "$pidfile" ] || return 0
  kill "$(cat "$pidfile")" 2>/dev/null
  rm -f "$pidfile"
  ip -n "$(netns switch)" link del "$1.a"
  ip -n "$(netns switch)" link set "$1" master "$(bridge_of "$1")"
}

clear_link() { # the fields of one cable
  undelay "$4"
  ip -n "$(netns switch)" link set "$4" up
  ip netns exec "$(netns switch)" tc qdisc del dev "$4" root 2>/dev/null
  ip netns exec "$(netns "$1")" tc qdisc del dev "$2" root 2>/dev/null
  return 0
}
