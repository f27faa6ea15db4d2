"""The command line, `vllm serve MODEL ...`, and the order of what happens."""

import argparse
import os
import signal
import sys

from vllm import __version__, log
from vllm.cluster import Cluster
from vllm.engine import Engine
from vllm.server import Server


def arguments():
    parser = argparse.ArgumentParser(prog="vllm", allow_abbrev=False)
    parser.add_argument("-v", "--version", action="version", version=__version__)
    serve = parser.add_subparsers(dest="command", required=True).add_parser("serve", allow_abbrev=False)
    serve.add_argument("model_tag", metavar="MODEL")
    serve.add_argument("--host", default="0.0.0.0")
    serve.add_argument("--port", type=int, default=8000)
    serve.add_argument("--served-model-name", nargs="+")
    serve.add_argument("--tensor-parallel-size", "-tp", type=int, default=1)
    serve.add_argument("--distributed-executor-backend", default="ray", choices=["ray"])
    serve.add_argument("--api-key", action="append")
    serve.add_argument("--max-model-len", type=int, default=32768)
    serve.add_argument("--max-num-seqs", type=int, default=256)
    serve.add_argument("--reasoning-parser")
    # vLLM has hundreds of flags. Those that mean nothing here are taken and left alone.
    args, ignored = parser.parse_known_args()
    args.served_model_name = args.served_model_name or [args.model_tag]
    args.api_key = args.api_key or list(filter(None, [os.environ.get("VLLM_API_KEY")]))
    return args, ignored


def banner(args, ignored):
    log.api(f"vLLM stand-in, version {__version__}, model {args.model_tag}")
    shown = {name: value for name, value in vars(args).items() if name not in ("command", "api_key")}
    log.api(f"non-default args: {shown}, ignored: {ignored}", "api_utils.py:286")


def end_at_once(signum, _frame):
    # Ray gives the GPUs back as soon as it sees this process gone.
    os._exit(128 + signum)


def main():
    args, ignored = arguments()
    banner(args, ignored)
    server = Server(args)
    # Like vLLM: a port that is taken fails here, before the load, and one that is ours refuses connections until the end of it.
    server.claim_port()
    engine = Engine(args)
    cluster = Cluster(args)
    signal.signal(signal.SIGINT, end_at_once)
    try:
        cluster.connect()
        signal.signal(signal.SIGTERM, end_at_once)  # after Ray has set a handler of its own
        cluster.take_gpus()
        cluster.load()
    except Exception as error:  # whatever went wrong, vLLM's last line is this one, far below the cause
        log.engine_traceback(error, "EngineCore failed to start.")
        log.api_error("RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}")
        return 1
    cluster.watch(engine.die)
    log.api("Supported tasks: ['generate']", "entry.py:136")
    server.run(engine)
    return 1
