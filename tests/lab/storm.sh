#!/bin/bash
# Faults of every kind in turn, at random nodes, under one console, and what became of it: storm.sh [MINUTES] [PROGRAM]
#
# Checks after every look and every fault: the console lives and its screen moves; both nodes come back by themselves; at the end, no process of the
# console's is left on a node, and its memory did not grow. Prints its counts; exit 1 where a check failed. Starts a lab of its own name without the
# Ray image, and wants root and tmux.
set -u
here=$(cd "$(dirname "$0")" && pwd)
minutes=${1:-30}
program=$(realpath "${2:-$here/../../target/debug/bringup}")
export BRINGUP_LAB_NAME=bringup-storm LC_ALL=C.UTF-8
lab=$here/lab.sh
keys=${BRINGUP_LAB_DIR:-${TMPDIR:-/tmp}/bringup-lab}/keys
work=$(mktemp -d)
socket=$work/tmux

# Longest time until both nodes are back after a fault is over: the longest pause between two tries, a handshake on a busy machine, and a host that boots.
BACK_S=120
# Resident memory after the first rounds, and what it may come to by the end.
WARM_ROUNDS=3
GROWTH_PERCENT=30
# Seconds that a node's wrapper takes to end what a lost console left, and some for a busy machine.
SILENCE_S=45

rounds=0 looks=0 bad=0 slowest=0 rss_first=0 rss=0 noticed=0 seen=""
declare -A done_kinds=()

wrong() { bad=$((bad + 1)); echo "WRONG: $*"; screen | head -45; }
tm() { tmux -u -S "$socket" "$@"; }
screen() { tm capture-pane -p -t storm 2>/dev/null; }
clock() { screen | head -1 | grep -oE '[0-9]{2}:[0-9]{2}:[0-9]{2}' | tail -1; }
both_up() { screen >"$work/now"; grep -q '1 spark-1 ssh ✓' "$work/now" && grep -q '2 spark-2 ssh ✓' "$work/now"; }
console() { pgrep -f "^$program --config $work/storm.toml" | head -1; }
random() { echo $((RANDOM % $1)); }
pick() { local -a all=("$@"); echo "${all[$(random ${#all[@]})]}"; }

# The clock on the screen must move while a fault lasts.
watch() { # SECONDS
  local end=$((SECONDS + $1)) before after
  while [ $SECONDS -lt $end ]; do
    before=$(clock)
    sleep 3
    after=$(clock)
    looks=$((looks + 1))
    both_up || seen=yes
    [ -n "$after" ] && [ "$before" != "$after" ] || { wrong "the screen stood still at '$before'"; [ -n "$(console)" ] || return 1; }
  done
}

come_back() { # KIND
  local start=$SECONDS took
  until both_up; do
    [ -n "$(console)" ] || { wrong "the console is gone after $1"; return 1; }
    [ $((SECONDS - start)) -lt $BACK_S ] || { wrong "not back within $BACK_S s after $1"; return 1; }
    sleep 1
  done
  took=$((SECONDS - start))
  [ $took -le $slowest ] || slowest=$took
}

log_container() { # HOST: a container whose log goes on
  $lab nx "$1" docker rm -f vllm-qwen35 >/dev/null 2>&1
  $lab nx "$1" docker run -d --name vllm-qwen35 lab/busybox:1 \
    sh -c 'i=0; while :; do i=$((i+1)); echo "line $i"; sleep 0.2; done' >/dev/null 2>&1
}

interface() { case $1 in spark1) pick spark1:enP7s7 spark1:enp1s0f1np1 ;; *) echo spark2:enp1s0f1np1 ;; esac }

one() { # KIND HOST
  local kind=$1 host=$2 lasts=$((5 + $(random 16))) at
  at=$(interface "$host")
  case $kind in
    sshd-drop) $lab fault sshd-drop "$host" ;;
    sshd-stop) $lab fault sshd-stop "$host"; $lab fault sshd-drop "$host" 2>/dev/null; watch $lasts; $lab fault sshd-start "$host"; lasts=0 ;;
    link-down) $lab fault link-down "$at"; watch $lasts; $lab fault link-up "$at"; lasts=0 ;;
    blackhole | reject) $lab fault "$kind" "$host" 22; watch $lasts; $lab fault clear; lasts=0 ;;
    docker-freeze) $lab fault docker-freeze "$host"; watch $lasts; $lab fault docker-thaw "$host"; lasts=0 ;;
    docker-stop) $lab fault docker-stop "$host"; watch $lasts; $lab fault docker-start "$host"; log_container "$host"; lasts=0 ;;
    power-off) $lab fault power-off "$host"; watch $lasts; $lab fault power-on "$host"; log_container "$host"; lasts=0 ;;
    delay) $lab fault delay "$at" 400 100; watch $lasts; $lab fault clear; lasts=0 ;;
    loss) $lab fault loss "$at" 0.3; watch $lasts; $lab fault clear; lasts=0 ;;
    rate) $lab fault rate "$at" 1mbit; watch $lasts; $lab fault clear; lasts=0 ;;
  esac >>"$work/faults" 2>&1
  [ $lasts = 0 ] || watch $lasts
  come_back "$kind at $host"
}

finish() {
  tm kill-server 2>/dev/null
  $lab down quietly
  rm -rf "$work"
}

[ -x "$program" ] || { echo "no program at $program: cargo build"; exit 2; }
command -v tmux >/dev/null || { echo "wants tmux"; exit 2; }
$lab up bare || exit 2
trap finish EXIT
for host in spark1 spark2; do log_container $host; done
sed "s#@KEYS@#$keys#" "$here/vllm-ray.toml" >"$work/storm.toml"
tm new-session -d -s storm -x 120 -y 44 \
  "exec env XDG_STATE_HOME=$work/state $lab op $program --config $work/storm.toml 2>$work/stderr"
start=$SECONDS
until [ -n "$(console)" ]; do
  [ $((SECONDS - start)) -lt $BACK_S ] || { wrong "the console did not start"; exit 1; }
  sleep 0.2
done
come_back "the start" || exit 1
pid=$(console)

kinds="sshd-drop sshd-stop link-down blackhole reject docker-freeze docker-stop power-off delay loss rate"
end=$((SECONDS + minutes * 60))
while [ $SECONDS -lt $end ] && [ -n "$(console)" ]; do
  for kind in $kinds; do
    [ $SECONDS -lt $end ] || break
    host=$(pick spark1 spark2)
    seen=""
    one "$kind" "$host" || break 2
    [ -z "$seen" ] || noticed=$((noticed + 1))
    rounds=$((rounds + 1))
    done_kinds[$kind]=$((${done_kinds[$kind]:-0} + 1))
    rss=$(awk '/^VmRSS/ { print $2 }' "/proc/$pid/status")
    [ $rounds -gt $WARM_ROUNDS ] || rss_first=$rss
    echo "$(date +%T) $kind at $host: ${seen:+shown, }back, ${rss} KiB"
  done
done

[ "$(console)" = "$pid" ] || wrong "the console of the start is gone"
[ "$rss" -le $((rss_first * (100 + GROWTH_PERCENT) / 100)) ] || wrong "memory grew from $rss_first to $rss KiB"
tm send-keys -t storm q
for _ in $(seq 30); do [ -z "$(console)" ] && break; sleep 1; done
[ -z "$(console)" ] || wrong "q did not end it"
grep -qi panicked -r "$work/state" "$work/stderr" 2>/dev/null && wrong "it panicked: $(grep -rih panicked "$work/state" "$work/stderr" | head -3)"
left=1
for _ in $(seq $SILENCE_S); do
  left=0
  for host in spark1 spark2; do
    # Whatever the operator's login runs: the lab itself starts nothing as this user.
    n=$($lab nx $host ps -u spark -o comm= | grep -cvx sshd)
    left=$((left + n))
  done
  [ $left = 0 ] && break
  sleep 1
done
[ $left = 0 ] || { wrong "$left processes are left"; for host in spark1 spark2; do $lab nx $host ps -u spark -o pid,etime,args; done; }

echo "faults: $rounds ($(for kind in $kinds; do printf '%s %s, ' "$kind" "${done_kinds[$kind]:-0}"; done | sed 's/, $//'))"
echo "faults that the screen showed: $noticed (a stopped or slow engine and a slow line need not be)"
echo "looks at the screen: $looks; slowest way back: $slowest s; memory: $rss_first KiB after $WARM_ROUNDS faults, $rss KiB at the end; left on the nodes: $left"
echo "checks that failed: $bad"
[ $bad = 0 ]
