# Prints what the node is doing, in sections: "@@ NAME", lines, "@= EXIT CODE".
# $1 docker's words, which want splitting, $2 the configured container's name, then the ports whose owner is wanted.
# Few programs are started, as this runs again and again: what the shell can do itself, it does. What may hang comes last.
PATH=$PATH:/usr/sbin:/sbin
docker=$1
name=$2
shift 2
newline='
'

echo '@@ clock'
date +%s
echo "@= $?"

echo '@@ memory'
cat /proc/meminfo
echo "@= $?"

echo '@@ interfaces'
for path in /sys/class/net/*; do
  echo "name ${path##*/}"
done
[ -d /dev/infiniband ] && echo infiniband
if command -v ip >/dev/null 2>&1; then
  ip -o addr 2>&1
  echo "@= $?"
else
  echo '@= 0'
  echo '@@ local'
  cat /proc/net/fib_trie 2>&1
  echo "@= $?"
  echo '@@ routes'
  cat /proc/net/route 2>&1
  echo "@= $?"
  echo '@@ inet6'
  cat /proc/net/if_inet6 2>/dev/null
  echo '@= 0'
fi

# Listening sockets: address, owner's uid, inode.
echo '@@ sockets'
sockets=$(sed -n 's/^ *[0-9]*: \([0-9A-F:]*\) [0-9A-F:]* 0A [^ ]* [^ ]* [^ ]* *\([0-9]*\) *[0-9]* \([0-9]*\) .*/\1 \2 \3/p' \
  /proc/net/tcp /proc/net/tcp6 2>/dev/null)
printf '%s\n' "$sockets"
[ -r /proc/net/tcp ]
echo "@= $?"

# Which process holds a socket is visible to its own user and to root only; it is looked for only on the wanted ports.
wanted=
me=
for port in "$@"; do
  port=$(printf '%04X' "$port")
  IFS=$newline
  for socket in $sockets; do
    case $socket in
      *:"$port "*) ;;
      *) continue ;;
    esac
    me=${me:-$(id -u)}
    uid=${socket#* }
    if [ "$me" = 0 ] || [ "$me" = "${uid% *}" ]; then
      wanted=$wanted$newline-e$newline"/socket:\\[${socket##* }]/{G;s/.*socket:\\[\\([0-9]*\\)]\\n.proc.\\([0-9]*\\).*/\\1 \\2/p;}"
    fi
  done
  unset IFS
done
owners=
if [ -n "$wanted" ]; then
  IFS=$newline
  # shellcheck disable=SC2086
  owners=$(ls -l /proc/[0-9]*/fd 2>/dev/null | sed -n -e '/^.proc/h' $wanted)
  unset IFS
fi
echo '@@ owners'
printf '%s\n' "$owners"
echo '@= 0'

echo '@@ gpus'
nvidia-smi --query-gpu=index,name,utilization.gpu,memory.used,memory.total,power.draw,temperature.gpu --format=csv,noheader,nounits 2>&1
code=$?
printf '\n@= %s\n' "$code"
apps=
if [ "$code" != 127 ]; then
  echo '@@ apps'
  apps=$(nvidia-smi --query-compute-apps=gpu_uuid,pid,process_name,used_memory --format=csv,noheader,nounits 2>&1)
  printf '%s\n@= %s\n' "$apps" "$?"
fi

# The control group of a process names its container.
echo '@@ cgroups'
set -f
IFS=$newline
for line in $owners $apps; do
  case $line in
    *,*)
      pid=${line#*, }
      pid=${pid%%,*}
      ;;
    *) pid=${line##* } ;;
  esac
  case $pid in
    '' | *[!0-9]*) continue ;;
  esac
  [ -r "/proc/$pid/cgroup" ] || continue
  while read -r group; do
    if [ "${#group}" -gt 64 ]; then
      echo "$pid $group"
      break
    fi
  done <"/proc/$pid/cgroup"
done 2>/dev/null
unset IFS
echo '@= 0'

# Every container that runs, carries our label or has the configured name; at most 64 of them.
echo '@@ containers'
# shellcheck disable=SC2086
list=$($docker ps -a --no-trunc --format '{{.ID}}|{{.Names}}|{{.Status}}|{{.Label "io.bringup.cluster"}}' 2>&1)
code=$?
if [ "$code" != 0 ]; then
  printf '%s\n@= %s\n' "$list" "$code"
  exit 0
fi
ids=
count=0
IFS=$newline
for line in $list; do
  case $line in
    *'|'*'|'*'|'*) ;;
    *) continue ;;
  esac
  case $line in
    *"|$name|"* | *'|Up '* | *'|Restarting '*) ;;
    *'|') continue ;;
  esac
  count=$((count + 1))
  [ "$count" -le 64 ] && ids=$ids$newline${line%%|*}
done
if [ -n "$ids" ]; then
  unset IFS
  # shellcheck disable=SC2086
  $docker inspect --type container --format '{"id":{{json .Id}},"name":{{json .Name}},"image":{{json .Config.Image}},"status":{{json .State.Status}},"code":{{json .State.ExitCode}},"oom":{{json .State.OOMKilled}},"pid":{{json .State.Pid}},"started":{{json .State.StartedAt}},"restarts":{{json .RestartCount}},"labels":{{json .Config.Labels}}}' $ids 2>&1
  code=$?
fi
printf '\n@= %s\n' "$code"
