# Devices: one line each. The first field, how many there are, says where a look ends when the tool goes on.
query='--query-gpu=count,index,pci.bus_id,mig.mode.current,name,utilization.gpu,memory.used,memory.total,power.draw,temperature.gpu --format=csv,noheader,nounits'

# Tells of devices in $devices, and which the kernel's driver has: a container sees there those that it was given, and no others. MIG devices are in no
# query but in the list.
gpus() {
  put '@@ gpus'
  put "$devices"
  put "@= $1"
  put '@@ attached'
  set +f
  for card in /proc/driver/nvidia/gpus/*; do
    [ ! -d "$card" ] || put "${card##*/}"
  done
  set -f
  put '@= 0'
  case $devices in
    *', Enabled, '*)
      [ -n "$slices" ] || slices=$(nvidia-smi -L 2>&1)
      put '@@ slices'
      put "$slices"
      put '@= 0'
      ;;
  esac
}
slices=

# AMD's tools, where NVIDIA's is not there.
amd() {
  if command -v rocm-smi >/dev/null 2>&1; then
    put '@@ rocm'
    limited rocm-smi --showproductname --showuse --showmeminfo vram --showtemp --showpower --json
  elif command -v amd-smi >/dev/null 2>&1; then
    put '@@ amd'
    limited amd-smi metric --usage --mem-usage --power --temperature --json
  else
    put '@@ gpus'
    said=
    code=127
  fi
  put "$said"
  put "@= $code"
}

# Reads devices for as long as the tool goes on.
gpus_read() {
  devices=
  got=0
  last=-1
  while read -r line; do
    case $line in
      '') continue ;;
      '@= '*)
        clock
        [ "$got" = 0 ] && start=$now
        gpus "${line#@= }"
        tell gpus "$start" "$again_every"
        return
        ;;
    esac
    attached=${line%%, *}
    index=${line#*, }
    index=${index%%, *}
    case $attached-$index in
      *[!0-9-]* | -* | *-) index= ;;
    esac
    if [ -n "$index" ] && [ "$index" -le "$last" ] && [ "$got" -gt 0 ]; then
      gpus 0
      tell gpus "$start" "$gpus_every"
      devices=
      got=0
    fi
    if [ "$got" = 0 ]; then
      clock
      start=$now
    fi
    devices=$devices$line$newline
    got=$((got + 1))
    [ -z "$index" ] || last=$index
    if [ -n "$index" ] && [ "$got" -ge "$attached" ]; then
      gpus 0
      tell gpus "$start" "$gpus_every"
      devices=
      got=0
      last=-1
    fi
  done
}

# A long-lived nvidia-smi costs next to nothing, a start of it as much as a minute of that.
gpus_loop() {
  while :; do
    if command -v nvidia-smi >/dev/null 2>&1; then
      # shellcheck disable=SC2086
      {
        nvidia-smi $query -l "$gpus_every" 2>&1
        echo "@= $?"
      } | gpus_read &
      reader=$!
      wait "$reader"
      pause "$again_every"
    else
      clock
      start=$now
      amd
      # What is not there comes with a visit of its owner's, if ever.
      [ "$code" != 127 ] || again=$disk_every
      rest "${again:-$amd_every}" "$start"
      again=
      tell gpus "$start" "$next"
      pause "$next"
    fi
  done
}
