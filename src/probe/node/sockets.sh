# The control group of a process names its container. $@ are processes; the answer of the last time is kept, as they stay the same for hours.
asked_groups=
groups=
cgroups() {
  if [ "$*" != "$asked_groups" ]; then
    asked_groups=$*
    groups=
    for pid in "$@"; do
      [ -r "/proc/$pid/cgroup" ] || continue
      while read -r group; do
        if [ "${#group}" -gt 64 ]; then
          groups=$groups$pid\ $group$newline
          break
        fi
      done <"/proc/$pid/cgroup"
    done 2>/dev/null
  fi
  put '@@ cgroups'
  put "$groups"
  put '@= 0'
}

# Listening sockets. `ss` asks the kernel for them alone; the tables in /proc are of all sockets, and the kernel walks all of them each time. Of those
# are printed: address, owner's uid, inode. Which process holds a socket is visible to its own user and to root only; it is looked for only on the wanted ports, and
# again only when other sockets listen on them.
lister=
wanted=$*
if ss -H -ltne >/dev/null 2>&1; then
  lister=ss
else
  wanted=
  for port in "$@"; do
    wanted="$wanted $(printf '%04X' "$port")"
  done
fi
me=$(id -u)
asked_owners=
owners=
pids=
sockets() {
  if [ -n "$lister" ]; then
    put '@@ listening'
    listening=$(ss -H -ltne 2>&1)
    put "$listening
@= $?"
  else
    put '@@ sockets'
    listening=$(sed -n 's/^ *[0-9]*: \([0-9A-F:]*\) [0-9A-F:]* 0A [^ ]* [^ ]* [^ ]* *\([0-9]*\) *[0-9]* \([0-9]*\) .*/\1 \2 \3/p' \
      /proc/net/tcp /proc/net/tcp6 2>/dev/null)
    put "$listening"
    [ -r /proc/net/tcp ]
    put "@= $?"
  fi
  search=
  for port in $wanted; do
    IFS=$newline
    for socket in $listening; do
      case $socket in
        *:"$port "*) ;;
        *) continue ;;
      esac
      case $socket in
        *' ino:'*)
          inode=${socket#* ino:}
          inode=${inode%% *}
          # Root's are not named.
          uid=0
          case $socket in *' uid:'*) uid=${socket#* uid:} ;; esac
          uid=${uid%% *}
          ;;
        *)
          inode=${socket##* }
          uid=${socket#* }
          uid=${uid% *}
          ;;
      esac
      if [ "$me" = 0 ] || [ "$me" = "$uid" ]; then
        search=$search$newline-e$newline"/socket:\\[$inode]/{G;s/.*socket:\\[\\([0-9]*\\)]\\n.proc.\\([0-9]*\\).*/\\1 \\2/p;}"
      fi
    done
    unset IFS
  done
  if [ "$search" != "$asked_owners" ]; then
    asked_owners=$search
    owners=
    pids=
    if [ -n "$search" ]; then
      set +f
      set -- /proc/[0-9]*/fd
      set -f
      IFS=$newline
      # shellcheck disable=SC2086
      owners=$(ls -l "$@" 2>/dev/null | sed -n -e '/^.proc/h' $search)
      for line in $owners; do
        pids="$pids ${line##* }"
      done
      unset IFS
    fi
  fi
  put '@@ owners'
  put "$owners"
  put '@= 0'
  # shellcheck disable=SC2086
  cgroups $pids
}
