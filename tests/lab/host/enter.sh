#!/bin/bash
# First stage of a host, already in its namespaces: makes its file system out of this machine's, moves into it, starts main.sh.
# usage: enter.sh HOST LAB_SOURCE KEYS STATE_OF_HOST LAB_NAME
set -eu
host=$1 source=$2 keys=$3 state=$4 lab_name=$5
root=$state/root

# This machine's files below, the host's own changes on top. They outlive a power-off, like a disk's.
mount -t overlay overlay -o "lowerdir=/,upperdir=$state/changes,workdir=$state/work" "$root"

mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount --rbind /sys/fs/cgroup "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 dev "$root/dev"
mkdir "$root/dev/pts" "$root/dev/shm" "$root/dev/mqueue"
for device in null zero full random urandom tty; do
  mknod -m 666 "$root/dev/$device" c $(stat -c '0x%t 0x%T' "/dev/$device")
done
ln -s /proc/self/fd "$root/dev/fd"
ln -s /proc/self/fd/0 "$root/dev/stdin"
ln -s /proc/self/fd/1 "$root/dev/stdout"
ln -s /proc/self/fd/2 "$root/dev/stderr"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
mount -t tmpfs -o mode=755 run "$root/run"
mount -t tmpfs -o mode=1777 tmp "$root/tmp"

# Docker's overlays can't lie on an overlay, so its directory comes from outside.
mkdir -p "$root/var/lib/docker"
mount --bind "$state/docker" "$root/var/lib/docker"

# What main.sh needs comes along, since the lab's own directory is out of sight afterwards.
rm -rf "$root/opt/lab"
mkdir -p "$root/run/sshd" "$root/opt/lab"
cp -r "$source/host/." "$source/script" "$keys/authorized_keys" "$root/opt/lab/"
rm -f "$root"/etc/ssh/ssh_host_*
cp "$keys/host_$host" "$root/etc/ssh/ssh_host_ed25519_key"
cp "$keys/host_$host.pub" "$root/etc/ssh/ssh_host_ed25519_key.pub"

echo "$lab_name-$host" >"$root/opt/lab/cgroup"
echo "$host" >"$root/etc/hostname"
hostname "$host"
printf '127.0.0.1 localhost\n127.0.1.1 %s\n192.168.200.12 spark1\n192.168.200.13 spark2\n' "$host" >"$root/etc/hosts"
# No name server: a look-up fails at once instead of waiting for an answer from outside.
rm -f "$root/etc/resolv.conf"
echo '# none' >"$root/etc/resolv.conf"

mkdir -p "$root/outside"
cd "$root"
pivot_root . outside
exec chroot . /bin/bash -c 'umount -l /outside; exec /usr/bin/tini -g -- /opt/lab/main.sh "$0"' "$host"
