//! The hosts as they are, looked at with docker, ray, ps and curl on the hosts themselves.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::hosts::{HOSTS, Lab, NODES, wait_for};

/// The container of every job.
pub const NAME: &str = "vllm-qwen35";

/// Longest life of a process on a node after its console: the silence that the wrapper waits for, and its looks at the clock.
const GONE: Duration = Duration::from_secs(40);

/// The command lines on each host.
pub type Processes = BTreeMap<&'static str, Vec<String>>;

/// The command lines on every host, without those that look at them.
pub fn processes(lab: &Lab) -> Processes {
    HOSTS.into_iter().map(|host| (host, command_lines(lab, host))).collect()
}

fn command_lines(lab: &Lab, host: &str) -> Vec<String> {
    let listing = lab.on(host, "ps -eo args=");
    let mut all: Vec<String> = listing
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.ends_with("ps -eo args="))
        // The listener's title counts the logins that are under way.
        .map(|line| line.split(" [listener]").next().unwrap_or(line).to_owned())
        .collect();
    all.sort();
    all
}

/// Waits until the hosts are as they were: no process and no container of ours, no file of ours on a node.
pub fn nothing_left(lab: &Lab, before: &Processes) {
    wait_for(GONE, "nothing of ours is left on the hosts", || {
        let now = processes(lab);
        let new = |host: &str| -> Vec<String> {
            let old = &before[host];
            now[host].iter().filter(|line| !old.contains(line)).cloned().collect()
        };
        let left: Vec<String> = HOSTS.into_iter().flat_map(new).collect();
        if *before == now { Ok(()) } else { Err(left.join("\n")) }
    });
    for node in NODES {
        assert_eq!(lab.on(node, "docker ps -aq"), "", "containers of {node}");
    }
    for host in HOSTS {
        let files = lab.on(host, "find /home/spark /tmp -path '*bringup*'");
        assert_eq!(files, "", "files of ours on {host}");
    }
}

/// Processes of the login on a node: what a console runs there, but for what it has in containers.
pub fn of_the_login(lab: &Lab, node: &str) -> String {
    // ps fails where there is none.
    lab.on(node, "ps -u spark -o pid=,args= || true")
}

/// Waits until a console that was killed has nothing left on the nodes, in the containers neither.
pub fn console_gone(lab: &Lab, nodes: &[&str]) {
    wait_for(GONE, "no process of the console is left", || {
        let left: String = nodes
            .iter()
            .map(|node| of_the_login(lab, node) + &put_into_containers(lab, node))
            .collect();
        if left.is_empty() { Ok(()) } else { Err(left) }
    });
}

/// What was put into a node's containers with docker exec and still runs, but for the model server.
fn put_into_containers(lab: &Lab, node: &str) -> String {
    let roots = lab.on(
        node,
        "for s in $(pgrep -f '^/usr/bin/containerd-shim'); do ps --ppid $s -o args= || true; done",
    );
    let known = |line: &&str| line.contains("ray start --block") || line.contains("vllm serve");
    roots
        .lines()
        .filter(|line| !known(line))
        .map(|l| format!("{l}\n"))
        .collect()
}

/// `docker inspect` of the container on a node.
pub fn inspect(lab: &Lab, node: &str) -> Value {
    let text = lab.on(node, &format!("docker inspect {NAME}"));
    let mut all: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert_eq!(all.len(), 1);
    all.remove(0)
}

/// Names of all containers of a node, in a line each.
pub fn containers(lab: &Lab, node: &str) -> String {
    lab.on(node, "docker ps --format '{{.Names}}'")
}

/// A program that asks Ray as any program on the cluster does, with or without a dashboard.
const ASK_RAY: &str = "import json, ray; ray.init(address=\"auto\", log_to_driver=False, logging_level=40); print(json.dumps(ray.nodes()))";

/// What Ray itself says of its nodes: address, whether it is alive, GPUs.
pub fn ray_nodes(lab: &Lab) -> Vec<(String, bool, u64)> {
    let text = lab.on("spark1", &format!("docker exec {NAME} python3 -c '{ASK_RAY}'"));
    let list = text.lines().rfind(|line| line.starts_with('[')).unwrap_or(&text);
    let nodes: Vec<Value> = serde_json::from_str(list).unwrap_or_else(|e| panic!("{e}: {text}"));
    let mut all: Vec<(String, bool, u64)> = nodes
        .iter()
        .map(|n| {
            (
                n["NodeManagerAddress"].as_str().unwrap().to_owned(),
                n["Alive"].as_bool().unwrap(),
                n["Resources"]["GPU"].as_f64().unwrap_or(0.0) as u64,
            )
        })
        .collect();
    all.sort();
    all
}

/// Fails unless Ray has both nodes alive at their fabric addresses, with a GPU each.
pub fn ray_is_whole(lab: &Lab) {
    let node = |address: &str| (address.to_owned(), true, 1);
    assert_eq!(ray_nodes(lab), [node("192.168.200.12"), node("192.168.200.13")]);
}

/// Process ids of the model servers on the head.
pub fn servers(lab: &Lab) -> Vec<String> {
    let listing = lab.on("spark1", "ps -eo pid=,args=");
    let serves = |line: &&str| line.contains("/vllm serve ");
    let pid = |line: &str| line.split_whitespace().next().unwrap().to_owned();
    listing.lines().filter(serves).map(pid).collect()
}

/// Tokens that the server has generated, by its own counter.
pub fn generated_tokens(lab: &Lab) -> u64 {
    let text = lab.on("spark1", "curl -sS --max-time 10 http://127.0.0.1:8000/metrics");
    let line = text.lines().find(|l| l.starts_with("vllm:generation_tokens_total{"));
    let value: f64 = line.and_then(|l| l.rsplit(' ').next()).unwrap().parse().unwrap();
    value as u64
}

/// Waits until the head's log shows the weights being loaded by the server that is this number in it, from 1.
pub fn loads(lab: &Lab, number: usize) {
    let limit = Duration::from_secs(180);
    wait_for(limit, "the weights are being loaded", || {
        let log = lab.on("spark1", &format!("docker logs {NAME} 2>&1 || true"));
        let load = log.split("vLLM stand-in, version").nth(number).ok_or("no server yet")?;
        assert!(!load.contains("Application startup complete"), "the load was missed");
        let bar = load.contains("Loading safetensors checkpoint shards");
        if bar { Ok(()) } else { Err(load.to_owned()) }
    });
}
