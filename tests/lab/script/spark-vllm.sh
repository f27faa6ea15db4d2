#!/bin/bash
# A user's own way to start vLLM over Ray on two Sparks, as one finds it on such machines: on spark1 "head", on spark2 "worker", then
# on spark1 "serve"; "stop" on both. The lab puts it on the nodes, for tests of a console that only calls it.
#
# MISTAKE=own-address     lets Ray pick the node's address
# MISTAKE=second-interface registers the worker at the twin interface's address
set -eu
NAME=${NAME:-vllm-qwen35}
IMAGE=${IMAGE:-lab/vllm-ray:1}
MODEL=${MODEL:-Qwen/Qwen3.5-122B-A10B-FP8}
SERVED_NAME=${SERVED_NAME:-qwen35}
HEAD=192.168.200.12
INTERFACE=enp1s0f1np1
TWIN=enP2p1s0f1np1
MISTAKE=${MISTAKE:-}

address_of() { ip -4 -o addr show dev "$1" | awk '{ sub("/.*", "", $4); print $4; exit }'; }

container() { # RAY_START_ARGUMENTS...
  docker rm -f "$NAME" >/dev/null 2>&1 || true
  docker run -d --name "$NAME" --network host --gpus all --shm-size 16g --ulimit memlock=-1 --cap-add IPC_LOCK \
    -e VLLM_HOST_IP="$(address_of $INTERFACE)" -e NCCL_SOCKET_IFNAME=$INTERFACE -e GLOO_SOCKET_IFNAME=$INTERFACE \
    -e RAY_memory_monitor_refresh_ms=0 ${VLLM_STANDIN_LOAD_S:+-e VLLM_STANDIN_LOAD_S="$VLLM_STANDIN_LOAD_S"} \
    ${VLLM_STANDIN_FAULT:+-e VLLM_STANDIN_FAULT="$VLLM_STANDIN_FAULT"} \
    --entrypoint ray "$IMAGE" start --block "$@" --num-gpus 1
}

own_address() { # the arguments that tell Ray its address, right or wrong
  case $MISTAKE in
    own-address) ;;
    second-interface) [ "$1" = worker ] && echo "--node-ip-address $(address_of $TWIN)" || echo "--node-ip-address $HEAD" ;;
    *) echo "--node-ip-address $(address_of $INTERFACE)" ;;
  esac
}

case ${1:-} in
  head)
    container --head --port 6379 $(own_address head)
    echo "Ray head started in $NAME" ;;
  worker)
    container --address=$HEAD:6379 $(own_address worker)
    echo "Worker started in $NAME, joins $HEAD:6379" ;;
  serve)
    docker exec -d "$NAME" /bin/sh -c "exec vllm serve $MODEL --served-model-name $SERVED_NAME --port 8000 \
      --tensor-parallel-size 2 --distributed-executor-backend ray >>/proc/1/fd/1 2>&1"
    echo "vLLM starts in $NAME" ;;
  stop)
    docker rm -f "$NAME" >/dev/null 2>&1 || true
    echo "$NAME stopped" ;;
  *)
    echo "usage: $0 head|worker|serve|stop" >&2
    exit 2 ;;
esac
