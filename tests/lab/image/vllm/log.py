"""Lines as vLLM writes them: on stderr, each behind the name of the process that it would come from."""

import os
import sys
import threading
import time
import traceback

_lock = threading.Lock()


def line(text, stream=None):
    """One write for each line, so that threads and processes never mix within one."""
    with _lock:
        stream = stream or sys.stderr
        stream.write(text + "\n")
        stream.flush()


def record(process, text, place, level="INFO"):
    line(f"({process} pid={os.getpid()}) {level} {time.strftime('%m-%d %H:%M:%S')} [{place}] {text}")


def api(text, place="api_utils.py:347"):
    record("APIServer", text, place)


def engine(text, place, level="INFO"):
    record("EngineCore", text, place, level)


def worker(rank, text, place, level="INFO"):
    record(f"Worker_TP{rank}", text, place, level)


def api_error(text, place="async_llm.py:702"):
    record("APIServer", text, place, "ERROR")


def engine_traceback(error, headline):
    engine(headline, "core.py:1120", "ERROR")
    for text in "".join(traceback.format_exception(error)).splitlines():
        engine(text, "core.py:1120", "ERROR")


def uvicorn(text):
    line(f"INFO:     {text}")


def access(text):
    """The web server writes its requests on stdout, unlike all the rest."""
    line(f"INFO:     {text}", sys.stdout)
