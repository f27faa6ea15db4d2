#!/bin/bash
# What runs on a host: users, sshd and, on the nodes, a Docker engine, an nvidia-smi and the users' own scripts.
# usage: main.sh HOST
host=$1
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
unset DOCKER_HOST
ulimit -c 0
chmod 700 /root
rm -rf /root/.docker

getent group docker >/dev/null || groupadd docker
# Login shells that read a line otherwise than sh does, and one that says much before it does anything.
shell_of() {
  case $1 in
    fish) echo /usr/bin/fish ;;
    tcsh) echo /usr/bin/tcsh ;;
    zsh) echo /usr/bin/zsh ;;
    *) echo /bin/bash ;;
  esac
}
for user in root spark nodocker fish tcsh zsh noisy; do
  [ $user = root ] || { useradd -m -s "$(shell_of $user)" $user 2>/dev/null; usermod -p '*' $user; }
  home=$(getent passwd $user | cut -d: -f6)
  rm -rf "$home/.ssh"
  install -d -o $user -g $user -m 700 "$home/.ssh"
  install -o $user -g $user -m 600 /opt/lab/authorized_keys "$home/.ssh/authorized_keys"
done

printf 'echo "Welcome, the last login was never"\necho "setlocale: LC_ALL: cannot change locale" >&2\ncd /tmp\n' >/home/noisy/.bashrc

cat >/etc/ssh/sshd_config <<C
Port 22
HostKey /etc/ssh/ssh_host_ed25519_key
PidFile /run/sshd.pid
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
UsePAM no
AllowTcpForwarding yes
X11Forwarding no
PrintMotd no
Subsystem sftp internal-sftp
LogLevel VERBOSE
C
/usr/sbin/sshd -E /var/log/sshd.log

# One Docker, Debian's: the machine under the lab may have another client of its own.
rm -f /usr/local/bin/docker
case $host in
  spark*)
    for user in spark fish tcsh zsh noisy; do usermod -aG docker $user; done
    install -m 755 /opt/lab/nvidia-smi /usr/bin/nvidia-smi
    install -o spark -g spark -m 755 /opt/lab/script/*.sh /home/spark/
    /opt/lab/start-dockerd || echo "dockerd did not start; see /var/log/dockerd.log" ;;
  *) rm -f /usr/bin/docker /usr/sbin/dockerd ;;
esac
touch /run/lab-ready

trap 'exit 0' TERM
while :; do sleep 3600 & wait $!; done
