# What the lab needs from Debian's packages. A fresh machine has few of them.

PACKAGES="docker.io iptables openssh-server openssh-client iproute2 jq busybox-static ethtool tini procps curl
  mmdebstrap python3 python3-pip fish tcsh zsh"

install_packages() {
  [ "$(id -u)" = 0 ] || { say "the lab needs root"; return 1; }
  local missing="" package
  for package in $PACKAGES; do
    dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"
  done
  [ -z "$missing" ] && return 0
  say "installing$missing"
  mkdir -p "$LAB"
  # Debian starts a service when its package is installed. The lab wants the programs, not an sshd and a Docker engine
  # on the machine itself, so starting is denied while it installs.
  local policy=/usr/sbin/policy-rc.d ours="" result=0
  [ -e $policy ] || { printf '#!/bin/sh\nexit 101\n' >$policy; chmod 755 $policy; ours=yes; }
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing; } \
    >"$LAB/apt.log" 2>&1 </dev/null || result=1
  [ -z "$ours" ] || rm -f $policy
  [ $result = 0 ] || { say "installing packages failed:"; tail -5 "$LAB/apt.log" >&2; }
  return $result
}
