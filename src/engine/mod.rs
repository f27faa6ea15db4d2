//! What differs between serving engines: the commands that start, join, serve and stop, what their log lines mean, what their counters are called.
//!
//! Owns one file an engine (commands), the log grammar and the names of metrics. Never runs a command, never decides when one runs: `plan` does.
//!
//! Invariants: every command is a [`Command`] whose arguments are data; a secret stands in a command by the name of its variable only; nothing here
//! starts a container without our labels or a server without our mark, but for the user's own script, which is theirs.

#![warn(clippy::indexing_slicing, clippy::wildcard_enum_match_arm)]

pub mod grammar;
pub mod metrics;
#[cfg(test)]
pub(crate) mod sample;
pub mod script;
pub mod stop;
pub mod vllm_ray;

use std::time::Duration;

use crate::config::Config;
use crate::config::types::Engine;
use crate::domain::command::{Command, program};
use crate::domain::{NodeId, Wall};

/// How long a container or a server gets to end by itself before it is killed, at most.
pub const GRACE: Duration = Duration::from_secs(10);

/// Lines of a container's log that a failure shows.
const EVIDENCE_LINES: u32 = 20;

/// What a start command needs beside the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// When the action began: all containers of one bring-up carry it.
    pub generation: Wall,
    /// Whether the node has /dev/infiniband.
    pub infiniband: bool,
}

/// Starts the head or joins a worker, by the node's role.
#[must_use]
pub fn start_node(config: &Config, node: NodeId, start: Start) -> Command {
    match &config.engine {
        Engine::VllmRay(e) => vllm_ray::start_node(config, e, node, start),
        Engine::Script(e) => script::start_node(config, e, node),
    }
}

/// Starts the model server on the head, one command after the other.
#[must_use]
pub fn serve(config: &Config) -> Vec<Command> {
    match &config.engine {
        Engine::VllmRay(e) => vllm_ray::serve(config, e),
        Engine::Script(e) => vec![script::verb(config, e, &e.serve, script::Earlier::Refuse)],
    }
}

/// Ends the model server in the head's container, and nothing else.
#[must_use]
pub fn stop_serve(config: &Config) -> Command {
    match &config.engine {
        Engine::VllmRay(_) => stop::serve(config, stop::Which::Marked),
        Engine::Script(_) => stop::serve(config, stop::Which::Any),
    }
}

/// Stops a node and removes the containers of these names from it.
#[must_use]
pub fn stop_node(config: &Config, names: &[&str]) -> Vec<Command> {
    match &config.engine {
        Engine::VllmRay(_) => names.iter().flat_map(|n| stop::container(config, n)).collect(),
        Engine::Script(e) => script::stop_node(config, e, names),
    }
}

/// Removes a container that has ended.
#[must_use]
pub fn remove(config: &Config, name: &str) -> Command {
    docker(config, &["rm", name], config.limits.command)
}

/// Prints the end of the container's log: what a failure shows.
#[must_use]
pub fn last_lines(config: &Config) -> Command {
    let container = &config.container;
    let lines = EVIDENCE_LINES.to_string();
    docker(
        config,
        &["logs", "--tail", &lines, &container.name],
        config.limits.command,
    )
}

/// Pulls the configured image.
#[must_use]
pub fn pull(config: &Config) -> Command {
    docker(config, &["pull", &config.container.image], config.limits.pull)
}

/// Docker with these arguments.
fn docker(config: &Config, arguments: &[&str], limit: Duration) -> Command {
    let arguments = arguments.iter().map(|word| (*word).to_owned());
    Command::argv(program(&config.container.docker).chain(arguments), limit)
}

#[cfg(test)]
mod tests {
    use super::sample::{scripted, sparks};
    use super::*;
    use crate::domain::secret::SecretFrom;

    const START: Start = Start {
        generation: Wall(1_764_444_000_000),
        infiniband: true,
    };

    fn lines(commands: &[Command]) -> String {
        commands.iter().map(|c| c.line() + "\n").collect()
    }

    #[test]
    fn the_head_starts_with_exactly_these_words() {
        let config = sparks();
        let command = start_node(&config, NodeId(0), START);
        let hash = config.container_hash(NodeId(0));
        assert_eq!(
            command.line(),
            format!(
                "docker run -d --name vllm-qwen35 --label 'io.bringup.cluster=sparks' --label 'io.bringup.role=head' \
                 --label 'io.bringup.node=spark-1' --label 'io.bringup.hash={hash}' \
                 --label 'io.bringup.generation=1764444000000' --network host --gpus all --shm-size 16g \
                 --ulimit 'memlock=-1' --cap-add IPC_LOCK --device /dev/infiniband \
                 -e 'VLLM_HOST_IP=192.168.200.12' -e 'NCCL_SOCKET_IFNAME==enp1s0f1np1' \
                 -e 'GLOO_SOCKET_IFNAME=enp1s0f1np1' -e 'NCCL_IB_HCA=rocep1s0f1,roceP2p1s0f1' \
                 -e 'RAY_memory_monitor_refresh_ms=0' -e 'NCCL_DEBUG=INFO' \
                 -v /home/aurora/.cache/huggingface:/root/.cache/huggingface --entrypoint ray \
                 hellohal2064/vllm-qwen3.5-gb10 start --block --head --port 6379 --node-ip-address 192.168.200.12"
            )
        );
        assert_eq!(command.secret, None);
    }

    #[test]
    fn docker_may_be_several_words_and_sudo_is_told_which_secret_to_hand_on() {
        let mut config = sparks();
        config.container.docker = "sudo -n docker".to_owned();
        let start = |config: &Config| start_node(config, NodeId(0), START).line();
        let serve = |config: &Config| super::serve(config).last().map(Command::line).unwrap();
        assert!(
            start(&config).starts_with("sudo -n docker run -d "),
            "{}",
            start(&config)
        );
        assert!(
            serve(&config).starts_with("sudo -n docker exec -d "),
            "{}",
            serve(&config)
        );
        assert_eq!(last_lines(&config).args[..4], ["sudo", "-n", "docker", "logs"]);
        assert_eq!(
            lines(&stop_node(&config, &["vllm-qwen35"])),
            "sudo -n docker stop -t 10 vllm-qwen35\nsudo -n docker rm vllm-qwen35\n"
        );
        assert_eq!(
            stop_serve(&config).line(),
            "engine.stop-serve 'sudo -n docker' vllm-qwen35 marked 10"
        );
        config.hf_token = Some(SecretFrom::Variable("MY_HF".to_owned()));
        config.api_key = Some(SecretFrom::Variable("MY_KEY".to_owned()));
        assert!(
            start(&config).starts_with("sudo '--preserve-env=HF_TOKEN' -n docker run "),
            "{}",
            start(&config)
        );
        assert!(
            serve(&config).starts_with("sudo '--preserve-env=VLLM_API_KEY' -n docker exec "),
            "{}",
            serve(&config)
        );
        config.container.docker = "/opt/bin/podman".to_owned();
        assert!(start(&config).starts_with("/opt/bin/podman run "), "{}", start(&config));
    }

    #[test]
    fn a_worker_joins_the_heads_fabric_address_from_its_own() {
        let mut config = sparks();
        config.hf_token = Some(SecretFrom::Variable("MY_HF".to_owned()));
        let command = start_node(
            &config,
            NodeId(1),
            Start {
                infiniband: false,
                ..START
            },
        );
        let line = command.line();
        assert!(
            line.ends_with("start --block '--address=192.168.200.12:6379' --node-ip-address 192.168.200.13"),
            "{line}"
        );
        assert!(!line.contains("/dev/infiniband"), "{line}");
        assert!(line.contains(" -e HF_TOKEN "), "{line}");
        let secret = command.secret.unwrap();
        assert_eq!(secret.name, "HF_TOKEN");
        assert_eq!(secret.from, SecretFrom::Variable("MY_HF".to_owned()));
    }

    #[test]
    fn what_only_a_head_may_be_told_stays_on_the_head() {
        let mut config = sparks();
        if let Engine::VllmRay(engine) = &mut config.engine {
            engine.ray_start_args = vec!["--num-gpus".into(), "1".into()];
            engine.ray_head_args = vec!["--include-dashboard=false".into()];
        }
        let head = start_node(&config, NodeId(0), START).line();
        let worker = start_node(&config, NodeId(1), START).line();
        assert!(
            head.ends_with("--node-ip-address 192.168.200.12 --num-gpus 1 '--include-dashboard=false'"),
            "{head}"
        );
        assert!(
            worker.ends_with("--node-ip-address 192.168.200.13 --num-gpus 1"),
            "{worker}"
        );
    }

    #[test]
    fn the_device_needs_both_the_node_and_the_config() {
        let mut config = sparks();
        config.nodes[0].hcas.clear();
        let line = start_node(&config, NodeId(0), START).line();
        assert!(!line.contains("infiniband") && !line.contains("NCCL_IB_HCA"), "{line}");
    }

    #[test]
    fn the_server_starts_detached_with_its_mark_and_its_output_in_the_containers_log() {
        let mut config = sparks();
        config.api_key = Some(SecretFrom::Variable("KEY".to_owned()));
        let commands = serve(&config);
        let hash = config.serve_hash();
        assert_eq!(
            lines(&commands),
            format!(
                "docker exec -d -e 'BRINGUP_SERVE={hash}' -e 'RAY_ADDRESS=192.168.200.12:6379' -e VLLM_API_KEY \
                 vllm-qwen35 /bin/sh -c 'exec vllm serve Qwen/Qwen3.5-122B-A10B-FP8 --port 8000 \
                 --served-model-name qwen --tensor-parallel-size 2 --distributed-executor-backend ray \
                 --max-model-len 32768 >>/proc/1/fd/1 2>&1'\n"
            )
        );
        let from = commands[0].secret.as_ref().map(|s| &s.from);
        assert_eq!(from, config.api_key.as_ref());
    }

    #[test]
    fn values_that_differ_between_nodes_are_kept_from_being_copied() {
        let mut config = sparks();
        assert!(vllm_ray::not_carried(&config).is_empty());
        config.nodes[1].fabric_interface = Some("enP2p1s0f1np1".to_owned());
        config.nodes[1].hcas.clear();
        let commands = serve(&config);
        assert_eq!(
            commands[0].line(),
            "engine.keep-per-node docker vllm-qwen35 NCCL_SOCKET_IFNAME GLOO_SOCKET_IFNAME NCCL_IB_HCA"
        );
        assert_eq!(commands.len(), 2);
    }

    #[test]
    fn hashes_change_with_what_matters_and_with_nothing_else() {
        let config = sparks();
        let mut other = config.clone();
        other.limits.serve = Duration::from_secs(1);
        other.ui.bell = false;
        assert_eq!(config.container_hash(NodeId(0)), other.container_hash(NodeId(0)));
        assert_eq!(config.serve_hash(), other.serve_hash());
        other.serve.port = 9000;
        assert_eq!(config.container_hash(NodeId(0)), other.container_hash(NodeId(0)));
        assert_ne!(config.serve_hash(), other.serve_hash());
        other.container.image = "x".to_owned();
        assert_ne!(config.container_hash(NodeId(0)), other.container_hash(NodeId(0)));
        assert_ne!(config.container_hash(NodeId(0)), config.container_hash(NodeId(1)));
        assert_eq!(config.serve_hash().len(), 12);
    }

    #[test]
    fn stopping_is_bounded_and_by_name() {
        let config = sparks();
        assert_eq!(
            lines(&stop_node(&config, &["vllm-qwen35"])),
            "docker stop -t 10 vllm-qwen35\ndocker rm vllm-qwen35\n"
        );
        assert_eq!(
            stop_serve(&config).line(),
            "engine.stop-serve docker vllm-qwen35 marked 10"
        );
        assert_eq!(
            stop_serve(&scripted()).line(),
            "engine.stop-serve docker vllm-qwen35 any 10"
        );
    }

    #[test]
    fn a_script_is_run_by_its_verbs() {
        let mut config = scripted();
        assert_eq!(
            start_node(&config, NodeId(1), START).line(),
            "engine.verb sparks worker '~/spark-vllm-qwen35.sh' '' 600 refuse"
        );
        assert_eq!(
            lines(&serve(&config)),
            "engine.verb sparks serve '~/spark-vllm-qwen35.sh' '' 600 refuse\n"
        );
        assert_eq!(
            lines(&stop_node(&config, &["vllm-qwen35"])),
            "engine.verb-clean sparks end\ndocker stop -t 10 vllm-qwen35\ndocker rm vllm-qwen35\n"
        );
        if let Engine::Script(script) = &mut config.engine {
            script.stop = Some("down".to_owned());
        }
        assert_eq!(
            lines(&stop_node(&config, &["vllm-qwen35"])),
            "engine.verb sparks down '~/spark-vllm-qwen35.sh' '' 600 replace\n"
        );
    }
}
