import json, os, sys

# Every process of the container that serves a model: it carries our mark in its environment or has the command line of a server. Ray's workers are listed
# too, so that the reader knows whose children the others are. The names are put together here so that this program's own command line does not hold them.
MARK = sys.argv[1].encode() + b"="
MODULES = {"vllm." + "entrypoints.openai.api_server", "sglang." + "launch_server"}


def read(pid, name):
    with open("/proc/%s/%s" % (pid, name), "rb") as file:
        return file.read(1 << 20)


def serves(words):
    if any(w in MODULES for w in words) or os.path.basename(words[0]) == "llama-" + "server":
        return True
    pairs = zip(words, words[1:])
    return any(os.path.basename(w) == "vllm" and v == "ser" + "ve" for w, v in pairs)


uptime = float(read("self", "../uptime").split()[0])
tick = os.sysconf("SC_CLK_TCK")
found = []
for pid in filter(str.isdigit, os.listdir("/proc")):
    if int(pid) == os.getpid():
        continue
    try:
        words = [w.decode("utf-8", "replace") for w in read(pid, "cmdline").split(b"\0") if w]
        if not words:
            continue
        try:
            marks = [e[len(MARK) :] for e in read(pid, "environ").split(b"\0") if e.startswith(MARK)]
        except PermissionError:
            marks = []
        if not marks and not serves(words) and not words[0].startswith("ray::"):
            continue
        stat = read(pid, "stat").rsplit(b")", 1)[1].split()
        found.append(
            {
                "pid": int(pid),
                "parent": int(stat[1]),
                "mark": marks[0].decode("utf-8", "replace") if marks else None,
                "command": " ".join(words)[:4000],
                "up": max(0, int(uptime - int(stat[19]) / tick)),
            }
        )
    except (OSError, ValueError, IndexError):
        pass
print(json.dumps({"processes": found}))
