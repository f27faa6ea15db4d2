import json, logging, os, platform, select, signal, socket, sys, time

# Asks the GCS for its nodes and placement groups, again and again, and prints a record a time. As an accessor of the GCS's state, which costs no driver
# and works in every version seen; where that does not, as a driver.
port, seconds, every, silence, life = sys.argv[1], *map(int, sys.argv[2:6])
# Nobody else ends this: a docker client that goes leaves what it started in the container. Some versions wait for ever for a GCS that is not there.
signal.alarm(seconds)
# The directory that this runs in may hold a folder named ray.
sys.path = [p for p in sys.path if p]
NODES, GROUPS = 1024, 32


def find():
    places = ["127.0.0.1:" + port]
    try:
        with open("/tmp/ray/ray_current_cluster") as file:
            places.append(file.read().strip())
    except OSError:
        pass
    for place in places:
        try:
            host, _, number = place.rpartition(":")
            socket.create_connection((host, int(number)), 2).close()
            return place
        except (OSError, ValueError):
            pass
    sys.exit("nothing listens at " + " nor at ".join(places))


address = find()


def as_accessor():
    from ray._private.state import state
    from ray._raylet import GcsClientOptions

    if hasattr(GcsClientOptions, "create"):
        options = GcsClientOptions.create(address, None, allow_cluster_id_nil=True, fetch_cluster_id_if_nil=False)
    else:
        options = GcsClientOptions.from_gcs_address(address)
    state._initialize_global_state(options)
    state.node_table()
    return state.node_table, state.placement_group_table


def as_driver():
    import ray

    ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    return ray.nodes, ray.util.placement_group_table


errors = []
for way in (as_accessor, as_driver):
    try:
        table, groups = way()
        break
    except Exception as error:
        errors.append("%s: %s" % (type(error).__name__, " ".join(str(error).split())[:300]))
else:
    print("\n".join(errors), file=sys.stderr)
    sys.exit(1)


def times():
    # The table does not tell when a node came and went; newer versions tell it here.
    try:
        global client
        if client is None:
            from ray._raylet import GcsClient

            client = GcsClient(address=address)
        return {info.node_id.hex(): (info.start_time_ms, info.end_time_ms) for info in client.get_all_node_info().values()}
    except Exception:
        return {}


client = None


def record():
    lives = times()
    nodes = sorted(table(), key=lambda node: not node["Alive"])[:NODES]
    found = {
        "ray": __import__("ray").__version__,
        "python": platform.python_version(),
        "nodes": [
            {
                "id": node["NodeID"],
                "address": node["NodeManagerAddress"],
                "alive": bool(node["Alive"]),
                "resources": node["Resources"],
                "message": node.get("DeathReasonMessage") or None,
                "started": lives.get(node["NodeID"], (0, 0))[0],
                "ended": lives.get(node["NodeID"], (0, 0))[1],
            }
            for node in nodes
        ],
    }
    try:
        waiting = [g for g in groups().values() if g.get("state") not in ("CREATED", "REMOVED")]
        found["groups"] = waiting[:GROUPS]
    except Exception as error:
        found["groups_error"] = "%s: %s" % (type(error).__name__, " ".join(str(error).split())[:200])
    return json.dumps(found)


# It ends at the end of its input, and when the input has been silent: that is how a console that has gone, or a network that has died, looks from here.
began = heard = time.monotonic()
while time.monotonic() - began < life:
    signal.alarm(seconds)
    text = record()
    print("@ray %d %s" % (len(text), text), flush=True)
    signal.alarm(0)
    until = time.monotonic() + every
    while (left := until - time.monotonic()) > 0:
        if select.select([0], [], [], left)[0]:
            if not os.read(0, 4096):
                sys.exit(0)
            heard = time.monotonic()
    if time.monotonic() - heard > silence:
        sys.exit(0)
