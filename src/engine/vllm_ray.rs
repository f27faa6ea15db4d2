//! vLLM over Ray, in containers that bringup starts.
//!
//! `ray start --block` is the container's first process on every node; `vllm serve` is started later inside the head's container, detached, with its
//! output sent to that first process's, so that `docker logs` has both. There is no `--rm` (a crash keeps its log) and no restart policy (a host
//! short of memory must not be hit again and again).

use std::time::Duration;

use crate::config::Config;
use crate::config::types::{Node, VllmRay};
use crate::domain::command::{Command, program, quote_all};
use crate::domain::container::label;
use crate::domain::secret::{SecretEnv, SecretFrom};
use crate::domain::serving::SERVE_MARK;
use crate::domain::{NodeId, Role};

use super::Start;

/// The port of Ray's dashboard when nobody says otherwise.
const RAY_DASHBOARD_PORT: u16 = 8265;

/// Variable that names the interface of NCCL's own connections.
const NCCL_INTERFACE: &str = "NCCL_SOCKET_IFNAME";
/// Variable that names Gloo's interface.
const GLOO_INTERFACE: &str = "GLOO_SOCKET_IFNAME";
/// Variable that names NCCL's RDMA devices.
const NCCL_HCAS: &str = "NCCL_IB_HCA";

/// Variables whose values belong to one node: an interface or a device has another name on the next.
const PER_NODE: [&str; 3] = [NCCL_INTERFACE, GLOO_INTERFACE, NCCL_HCAS];

/// `docker run` of the head's or a worker's container.
pub(super) fn start_node(config: &Config, engine: &VllmRay, id: NodeId, start: Start) -> Command {
    let Some(node) = config.node(id) else {
        return Command::argv(["false"], config.limits.command);
    };
    let mut words = run_words(config, engine, id, node, start);
    words.extend(ray_words(config, engine, node));
    let mut command = Command::argv(words, run_limit(config, node.role));
    command.secret = config.hf_token.as_ref().map(|from| secret("HF_TOKEN", from));
    command
}

/// Docker's words. sudo hands on no variable that it isn't told to, so the name of the secret that the command gets stands among its options.
fn docker_with(config: &Config, secret: Option<&str>) -> Vec<String> {
    let mut words: Vec<String> = program(&config.container.docker).collect();
    let sudo = words.first().is_some_and(|w| w.rsplit('/').next() == Some("sudo"));
    if let Some(name) = secret.filter(|_| sudo) {
        words.insert(1, format!("--preserve-env={name}"));
    }
    words
}

/// From `docker run` to the image.
fn run_words(config: &Config, engine: &VllmRay, id: NodeId, node: &Node, start: Start) -> Vec<String> {
    let container = &config.container;
    let mut words = docker_with(config, config.hf_token.as_ref().map(|_| "HF_TOKEN"));
    words.extend(strings(["run", "-d", "--name", &container.name]));
    let labels = [
        (label::CLUSTER, config.cluster.clone()),
        (label::ROLE, node.role.word().to_owned()),
        (label::NODE, node.name.clone()),
        (label::HASH, config.container_hash(id)),
        (label::GENERATION, start.generation.0.to_string()),
    ];
    for (key, value) in labels {
        words.extend(["--label".to_owned(), format!("{key}={value}")]);
    }
    words.extend(strings(["--network", "host", "--gpus", "all"]));
    words.extend(strings(["--shm-size", &engine.shm_size, "--ulimit", "memlock=-1"]));
    words.extend(strings(["--cap-add", "IPC_LOCK"]));
    if start.infiniband && !node.hcas.is_empty() {
        words.extend(strings(["--device", "/dev/infiniband"]));
    }
    let mut environment = vec![("VLLM_HOST_IP".to_owned(), node.fabric_address.clone())];
    environment.extend(per_node(node).into_iter().map(|(k, v)| (k.to_owned(), v)));
    // Ray counts the page cache of a model that loads as memory in use and would kill its worker.
    environment.push(("RAY_memory_monitor_refresh_ms".to_owned(), "0".to_owned()));
    environment.extend(container.environment.iter().cloned());
    for (key, value) in environment {
        words.extend(["-e".to_owned(), format!("{key}={value}")]);
    }
    if config.hf_token.is_some() {
        words.extend(strings(["-e", "HF_TOKEN"]));
    }
    for volume in &container.volumes {
        words.extend(strings(["-v", volume]));
    }
    words.extend(engine.docker_run_args.iter().cloned());
    words.extend(strings(["--entrypoint", "ray", &container.image]));
    words
}

/// The arguments of `ray`.
fn ray_words(config: &Config, engine: &VllmRay, node: &Node) -> Vec<String> {
    let mut words = strings(["start", "--block"]);
    match node.role {
        Role::Head => {
            words.extend(["--head".to_owned(), "--port".to_owned(), engine.ray_port.to_string()]);
            if engine.dashboard_port != RAY_DASHBOARD_PORT {
                words.extend(["--dashboard-port".to_owned(), engine.dashboard_port.to_string()]);
            }
        }
        Role::Worker => words.push(format!("--address={}", ray_address(config, engine))),
    }
    words.extend(["--node-ip-address".to_owned(), node.fabric_address.clone()]);
    words.extend(engine.ray_start_args.iter().cloned());
    match node.role {
        Role::Head => words.extend(engine.ray_head_args.iter().cloned()),
        Role::Worker => {}
    }
    words
}

/// `docker run` may pull layers that a pull step missed, so it gets the step's own limit.
fn run_limit(config: &Config, role: Role) -> Duration {
    match role {
        Role::Head => config.limits.head,
        Role::Worker => config.limits.join,
    }
}

/// Starts `vllm serve` inside the head's container, detached.
pub(super) fn serve(config: &Config, engine: &VllmRay) -> Vec<Command> {
    let mut commands = Vec::new();
    let kept = not_carried(config);
    if !kept.is_empty() {
        commands.push(keep_per_node(config, &kept));
    }
    let container = &config.container;
    let mut words = docker_with(config, config.api_key.as_ref().map(|_| "VLLM_API_KEY"));
    words.extend(strings(["exec", "-d", "-e"]));
    words.push(format!("{SERVE_MARK}={}", config.serve_hash()));
    // Without it, vLLM would start a Ray of its own when it doesn't find the running one.
    words.extend(["-e".to_owned(), format!("RAY_ADDRESS={}", ray_address(config, engine))]);
    if config.api_key.is_some() {
        words.extend(strings(["-e", "VLLM_API_KEY"]));
    }
    words.extend(strings([&container.name, "/bin/sh", "-c"]));
    words.push(format!(
        "exec {} >>/proc/1/fd/1 2>&1",
        quote_all(&vllm_words(config, engine))
    ));
    let mut command = Command::argv(words, config.limits.command);
    command.secret = config.api_key.as_ref().map(|from| secret("VLLM_API_KEY", from));
    commands.push(command);
    commands
}

/// `vllm serve` with its arguments.
fn vllm_words(config: &Config, engine: &VllmRay) -> Vec<String> {
    let serve = &config.serve;
    let mut words = strings(["vllm", "serve", &serve.model]);
    words.extend(["--port".to_owned(), serve.port.to_string()]);
    if let Some(name) = &serve.served_name {
        words.extend(strings(["--served-model-name", name]));
    }
    words.extend([
        "--tensor-parallel-size".to_owned(),
        serve.tensor_parallel_size.to_string(),
    ]);
    words.extend(strings(["--distributed-executor-backend", "ray"]));
    words.extend(engine.vllm_serve_args.iter().cloned());
    words
}

/// Variables that have another value on the head than on some worker. vLLM's Ray executor copies the head's environment to its workers (those that
/// begin with NCCL_ in every version, all of them in newer ones) and so would give a worker interfaces and devices that it doesn't have.
#[must_use]
pub fn not_carried(config: &Config) -> Vec<&'static str> {
    let value = |node: &Node, name: &str| per_node(node).into_iter().find(|(k, _)| *k == name).map(|(_, v)| v);
    let Some(head) = config.node(config.head()) else {
        return Vec::new();
    };
    PER_NODE
        .into_iter()
        .filter(|name| config.nodes.iter().any(|n| value(n, name) != value(head, name)))
        .collect()
}

/// The file in which vLLM looks for variables that it must not copy, as a person would name it.
pub const NOT_CARRIED_FILE: &str = "ray_non_carry_over_env_vars.json";

/// Adds names to the file, on the head: a JSON list of strings in vLLM's configuration directory (vllm/ray/ray_env.py, envs.VLLM_CONFIG_ROOT). Names
/// that stand there already are kept.
const KEEP_PER_NODE: &str = r#"docker=$1
container=$2
shift 2
exec $docker exec "$container" python3 -c '
import json, os, sys
home = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
root = os.path.expanduser(os.environ.get("VLLM_CONFIG_ROOT") or os.path.join(home, "vllm"))
path = os.path.join(root, "ray_non_carry_over_env_vars.json")
try:
    with open(path) as f:
        kept = [name for name in json.load(f) if isinstance(name, str)]
except (OSError, ValueError, TypeError):
    kept = []
os.makedirs(root, exist_ok=True)
with open(path + ".new", "w") as f:
    json.dump(sorted(set(kept) | set(sys.argv[1:])), f)
os.replace(path + ".new", path)
' "$@"
"#;

/// Id of the script that keeps variables from being copied to workers. Arguments: docker's words in one, the container, the variables' names.
pub const KEEP_PER_NODE_ID: &str = "engine.keep-per-node";

fn keep_per_node(config: &Config, names: &[&str]) -> Command {
    let mut args = strings([&config.container.docker, &config.container.name]);
    args.extend(names.iter().map(|n| (*n).to_owned()));
    Command::script(KEEP_PER_NODE_ID, KEEP_PER_NODE, args, config.limits.command)
}

/// The variables that tell a node's processes which interface and devices are on the fabric.
fn per_node(node: &Node) -> Vec<(&'static str, String)> {
    let mut all = Vec::new();
    if let Some(interface) = &node.fabric_interface {
        // NCCL takes a name as a prefix unless it begins with an equals sign.
        all.push((NCCL_INTERFACE, format!("={interface}")));
        all.push((GLOO_INTERFACE, interface.clone()));
    }
    if !node.hcas.is_empty() {
        all.push((NCCL_HCAS, node.hcas.join(",")));
    }
    all
}

/// Address and port of the head's Ray, as the workers and the server reach it.
fn ray_address(config: &Config, engine: &VllmRay) -> String {
    let head = config.node(config.head()).map_or("", |n| n.fabric_address.as_str());
    if head.contains(':') {
        format!("[{head}]:{}", engine.ray_port)
    } else {
        format!("{head}:{}", engine.ray_port)
    }
}

fn secret(name: &str, from: &SecretFrom) -> SecretEnv {
    SecretEnv {
        name: name.to_owned(),
        from: from.clone(),
    }
}

fn strings<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.into_iter().map(str::to_owned).collect()
}
