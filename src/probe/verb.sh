# Prints how the script engine's detached verb stands. $1 the cluster.
base=$HOME/.cache/bringup/$1/verb
read -r verb 2>/dev/null <"$base/verb" || { echo '@@ none'; exit 0; }
echo '@@ verb'
echo "$verb"
echo '@@ state'
# The code is looked for last: a verb may end while this runs.
read -r pid 2>/dev/null <"$base/pid"
# Another process may have got the number after a restart of the node; the verb's own one names its folder.
if [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null && tr '\000' '\n' 2>/dev/null <"/proc/$pid/cmdline" | grep -qxF -e "$base"; then
  running=yes
else
  running=no
fi
if read -r code 2>/dev/null <"$base/code"; then
  echo "ended $code"
elif [ "$running" = yes ]; then
  echo running
else
  echo lost
fi
echo '@@ output'
tail -c 16384 "$base/out" 2>/dev/null
exit 0
