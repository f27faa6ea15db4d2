disk_loop() {
  while :; do
    clock
    start=$now
    set -- /
    [ -d "$cache" ] && set -- / "$cache"
    put '@@ disk'
    limited df -Pk "$@"
    put "$said"
    put "@= $code"
    put '@@ cache'
    if [ -d "$cache" ]; then
      limited du -sk "$cache"
      put "$said"
      put "@= $code"
    else
      put "none $cache"
      put '@= 0'
    fi
    rest "$disk_every" "$start"
    tell disk "$start" "$next"
    pause "$next"
  done
}
