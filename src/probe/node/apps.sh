# Processes: of the tool's forms only this one says so where there are none.
apps() {
  put '@@ apps'
  put "$processes"
  put "@= $1"
  # shellcheck disable=SC2086
  cgroups $holders
}

apps_read() {
  processes=
  holders=
  attached=0
  seen=0
  while read -r line; do
    case $line in
      '@= '*)
        if [ "${line#@= }" != 0 ]; then
          clock
          apps "${line#@= }"
          tell apps "$now" "$again_every"
        fi
        return
        ;;
      *'NVSMI LOG'*)
        # A GPU that has fallen off the bus is counted and not listed: then the next look is what ends this one.
        if [ "$seen" -gt 0 ] && [ "$attached" != 0 ]; then
          apps 0
          tell apps "$start" "$gpus_every"
        fi
        clock
        start=$now
        processes=
        holders=
        attached=0
        seen=0
        continue
        ;;
      'Attached GPUs'*) attached=${line##* } ;;
      'GPU '[0-9A-F]*:*) seen=$((seen + 1)) ;;
      'Process ID'*) holders="$holders ${line##* }" ;;
      'Timestamp'* | 'Driver Version'* | 'CUDA Version'*) continue ;;
      '')
        if [ "$seen" -gt 0 ] && [ "$seen" = "$attached" ]; then
          apps 0
          tell apps "$start" "$gpus_every"
          attached=0
        fi
        continue
        ;;
    esac
    processes=$processes$line$newline
  done
}

apps_loop() {
  while :; do
    if command -v nvidia-smi >/dev/null 2>&1; then
      {
        nvidia-smi -q -d PIDS -l "$gpus_every" 2>&1
        echo "@= $?"
      } | apps_read &
      reader=$!
      wait "$reader"
      pause "$again_every"
    else
      pause "$disk_every"
    fi
  done
}
