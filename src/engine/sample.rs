//! The story's cluster as a configuration, for unit tests.

use std::time::Duration;

use crate::config::Config;
use crate::config::types::{
    Container, Diagnose, Engine, Hop, Limits, LogPlace, Login, Logs, Node, Script, Serve, Ssh, Ui, VllmRay, Watch,
};
use crate::domain::bench::BenchProfile;
use crate::domain::logs::Wanted;
use crate::domain::units::Bytes;
use crate::domain::{HopId, Role};

fn login(host: &str) -> Login {
    Login {
        host: host.to_owned(),
        port: Some(22),
        user: Some("aurora".to_owned()),
        keys: Vec::new(),
        alias: false,
        direct: false,
    }
}

fn node(name: &str, role: Role, host: &str, fabric: &str) -> Node {
    Node {
        name: name.to_owned(),
        role,
        relayed: false,
        login: login(host),
        via: Some(HopId(0)),
        fabric_address: fabric.to_owned(),
        fabric_interface: Some("enp1s0f1np1".to_owned()),
        hcas: vec!["rocep1s0f1".to_owned(), "roceP2p1s0f1".to_owned()],
        gpus: 1,
    }
}

/// Two Sparks behind spark-1, served by vLLM over Ray.
pub fn sparks() -> Config {
    let s = Duration::from_secs;
    Config {
        cluster: "sparks".to_owned(),
        ssh: Ssh {
            jump: vec![Hop {
                name: "spark-1".to_owned(),
                login: login("10.1.230.180"),
                via: None,
            }],
            ssh_config: None,
            host_keys: None,
            known_hosts: vec!["~/.ssh/known_hosts".to_owned()],
            agent: true,
        },
        nodes: vec![
            node("spark-1", Role::Head, "192.168.200.12", "192.168.200.12"),
            node("spark-2", Role::Worker, "192.168.200.13", "192.168.200.13"),
        ],
        engine: Engine::VllmRay(VllmRay {
            ray_port: 6379,
            dashboard_port: 8265,
            shm_size: "16g".to_owned(),
            docker_run_args: Vec::new(),
            ray_start_args: Vec::new(),
            ray_head_args: Vec::new(),
            vllm_serve_args: vec!["--max-model-len".to_owned(), "32768".to_owned()],
        }),
        container: Container {
            image: "hellohal2064/vllm-qwen3.5-gb10".to_owned(),
            name: "vllm-qwen35".to_owned(),
            docker: "docker".to_owned(),
            environment: vec![("NCCL_DEBUG".to_owned(), "INFO".to_owned())],
            volumes: vec!["/home/aurora/.cache/huggingface:/root/.cache/huggingface".to_owned()],
        },
        serve: Serve {
            model: "Qwen/Qwen3.5-122B-A10B-FP8".to_owned(),
            served_name: Some("qwen".to_owned()),
            port: 8000,
            tensor_parallel_size: 2,
        },
        logs: Logs {
            head: LogPlace::Container(Wanted::Named("vllm-qwen35".to_owned())),
            worker: LogPlace::Container(Wanted::Named("vllm-qwen35".to_owned())),
        },
        diagnose: Diagnose::default(),
        watch: Watch {
            memory_floor: Bytes::from_mib(4 << 10),
            cache: Some("/home/aurora/.cache/huggingface".to_owned()),
        },
        limits: Limits {
            connect: s(15),
            command: s(20),
            pull: s(3600),
            head: s(120),
            join: s(120),
            settle: s(10),
            serve: s(3600),
            stall: s(600),
            stop: s(60),
            verb: s(600),
        },
        bench: BenchProfile {
            requests: 8,
            concurrency: 2,
            prompt_tokens: 128,
            output_tokens: 64,
            warmup: 1,
            request_limit: s(120),
        },
        api_key: None,
        hf_token: None,
        ui: Ui {
            theme: "default".to_owned(),
            bell: true,
            notify: true,
        },
    }
}

/// The same cluster, served by the user's own script.
pub fn scripted() -> Config {
    Config {
        engine: Engine::Script(Script {
            path: "~/spark-vllm-qwen35.sh".to_owned(),
            directory: None,
            head: "head".to_owned(),
            worker: "worker".to_owned(),
            serve: "serve".to_owned(),
            stop: None,
            ray_port: 6379,
            dashboard_port: 8265,
        }),
        ..sparks()
    }
}
