# Names, addresses and places. Everything else reads them from here.

# The lab's own directory: images, keys, and the state of a running lab. Nothing is written anywhere else.
LAB=${BRINGUP_LAB_DIR:-${TMPDIR:-/tmp}/bringup-lab}
# Names the network namespaces and cgroups, so that another name gives a second, independent lab beside the first.
LAB_NAME=${BRINGUP_LAB_NAME:-bringup}
STATE=$LAB/run-$LAB_NAME
CACHE=$LAB/cache
KEYS=$LAB/keys

# Hosts that have processes of their own. The operator's machine is only a network: its programs and files are this
# machine's, so that a test can run the console it has just built.
HOSTS="jump spark1 spark2"
NODES="spark1 spark2"

# Every cable. spark1 is node and jump host at once, which is the real case; spark2 is on the fabric only. The enP2 interface is
# the twin that one QSFP port shows as on a Spark, in a subnet of its own: an address that a worker can register by mistake.
# host   interface       bridge  port (its end in the switch)  address             MTU
LINKS='
  op     eth0            mgmt    op-m                          10.1.230.10/24      1500
  jump   eth0            mgmt    ju-m                          10.1.230.5/24       1500
  jump   eth1            fabric  ju-f                          192.168.200.1/24    9000
  spark1 enP7s7          mgmt    s1-m                          10.1.230.180/24     1500
  spark1 enp1s0f1np1     fabric  s1-f                          192.168.200.12/24   9000
  spark2 enp1s0f1np1     fabric  s2-f                          192.168.200.13/24   9000
  spark1 enP2p1s0f1np1   fabric  s1-t                          192.168.201.12/24   9000
  spark2 enP2p1s0f1np1   fabric  s2-t                          192.168.201.13/24   9000
'
# The management network's way out. It drops everything: the lab reaches nothing outside.
GATEWAY=10.1.230.1

RAY_VERSION=2.60.0
RAY_IMAGE=lab/vllm-ray:1
# An image that holds neither Ray nor vLLM, for what must be refused, and for tests that need any container at all.
PLAIN_IMAGE=lab/busybox:1

say() { echo "[lab] $*" >&2; }
netns() { echo "$LAB_NAME-$1"; }
