# Keys of the operator and of the hosts, and what OpenSSH on the operator's machine needs to use them.

# One key of each kind that the console must be able to use. op_encrypted's passphrase is "lab".
make_operator_keys() {
  [ -f "$KEYS/op" ] || ssh-keygen -q -t ed25519 -N '' -C op -f "$KEYS/op"
  [ -f "$KEYS/op_rsa" ] || ssh-keygen -q -t rsa -b 3072 -N '' -C op_rsa -f "$KEYS/op_rsa"
  [ -f "$KEYS/op_ecdsa" ] || ssh-keygen -q -t ecdsa -N '' -C op_ecdsa -f "$KEYS/op_ecdsa"
  [ -f "$KEYS/op_encrypted" ] || ssh-keygen -q -t ed25519 -N lab -C op_encrypted -f "$KEYS/op_encrypted"
  cat "$KEYS"/op.pub "$KEYS"/op_*.pub >"$KEYS/authorized_keys"
}

# Host keys are kept between labs, as real hosts keep theirs; known_hosts names each host by every address it has.
make_host_keys() {
  local host addresses
  : >"$KEYS/known_hosts"
  for host in $HOSTS; do
    [ -f "$KEYS/host_$host" ] || ssh-keygen -q -t ed25519 -N '' -C "root@$host" -f "$KEYS/host_$host"
    addresses=$(awk -v host="$host" '$1 == host { sub("/.*", "", $5); printf "%s%s", sep, $5; sep = "," }' <<<"$LINKS")
    echo "$addresses $(cut -d' ' -f1,2 "$KEYS/host_$host.pub")" >>"$KEYS/known_hosts"
  done
}

make_keys() {
  mkdir -p "$KEYS" && chmod 700 "$KEYS"
  make_operator_keys
  make_host_keys
  cat >"$KEYS/ssh_config" <<C
Host *
  User spark
  IdentityFile "$KEYS/op"
  IdentitiesOnly yes
  UserKnownHostsFile "$KEYS/known_hosts"
  StrictHostKeyChecking yes
  BatchMode yes
  ConnectTimeout 4
C
}
