import importlib, importlib.metadata, json, platform, sys

# The directory that this runs in may hold folders named like the modules.
sys.path = [p for p in sys.path if p]

found = {"python": platform.python_version(), "missing": []}
for name in ("ray", "vllm"):
    try:
        found[name] = importlib.metadata.version(name)
    except Exception:
        # Built from source without metadata: ask the module itself.
        try:
            found[name] = str(importlib.import_module(name).__version__)
        except Exception as error:
            found["missing"].append("%s: %s: %s" % (name, type(error).__name__, str(error)[:200]))
print(json.dumps(found))
