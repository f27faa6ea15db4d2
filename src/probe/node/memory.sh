memory() {
  put '@@ memory'
  code=1
  while read -r key value unit; do
    case $key in
      MemTotal: | MemFree: | MemAvailable: | Cached: | SwapTotal: | SwapFree: | AnonPages: | Shmem: | SUnreclaim: | KernelStack:)
        put "$key $value $unit"
        ;;
      PageTables:)
        put "$key $value $unit"
        code=0
        break
        ;;
    esac
  done </proc/meminfo
  put "@= $code"
  put '@@ vmstat'
  if [ -r /proc/vmstat ]; then
    while read -r key value; do
      case $key in
        pgpgin)
          put "$key $value"
          break
          ;;
      esac
    done </proc/vmstat
  fi 2>/dev/null
  put '@= 0'
  put '@@ pressure'
  if [ -r /proc/pressure/memory ]; then
    while read -r line; do
      put "$line"
    done </proc/pressure/memory
  fi 2>/dev/null
  put '@= 0'
  put '@@ load'
  first_line /proc/loadavg
  put "$value"
  put '@= 0'
}
