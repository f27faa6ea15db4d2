//! Engine vllm-ray through the head as jump host: the whole job, with a console that is killed in mid-load.

use std::time::Duration;

use serde_json::Value;

use super::console::{Console, measure, ready};
use super::hosts::Lab;
use super::outside;

const TEMPLATE: &str = include_str!("../vllm-ray.toml");

/// The longest that a new console may take to show a load.
const SHOWS_WITHIN: Duration = Duration::from_secs(5);

/// Head, workers, serve, throughput test; the server stopped and started again under a console that is killed; stop.
pub fn whole_job(lab: &Lab) {
    let console = Console::new(lab, "vllm-ray", TEMPLATE, &[]);
    assert_eq!(console.status(4)["server"]["state"], "down");

    let up = console.run(&["up", "--yes", "--json"], 0);
    let steps = [
        ("compare the image on 2 nodes", "success"),
        ("start the head on spark-1", "success"),
        ("join spark-2 to spark-1", "success"),
        ("see that 2 nodes stay in Ray", "success"),
        ("serve qwen35 on spark-1", "success"),
    ];
    assert_eq!(up.outcomes(), steps);
    containers_are_ours(lab);
    outside::ray_is_whole(lab);
    assert_eq!(outside::servers(lab).len(), 1);
    let status = ready(&console);
    assert_eq!(status["nodes"][0]["container"]["value"]["started_by_bringup"], true);
    lab.say("  up");

    measure(lab, &console);
    lab.say("  measured");

    console.run(&["down", "--serve", "--yes", "--json"], 0);
    assert!(outside::servers(lab).is_empty());
    outside::ray_is_whole(lab);
    lab.say("  the server is stopped, Ray is left");

    killed_in_mid_load(lab, &console);
    ready(&console);
    outside::ray_is_whole(lab);
    lab.say("  killed in mid-load and adopted");

    console.run(&["down", "--yes", "--json"], 0);
    assert_eq!(console.status(4)["server"]["state"], "down");
}

fn killed_in_mid_load(lab: &Lab, console: &Console<'_>) {
    let mut first = console.start(&["up", "--yes", "--json"]);
    outside::loads(lab, 2);
    first.kill().unwrap();
    first.wait().unwrap();
    let server = outside::servers(lab);
    assert_eq!(server.len(), 1);

    let seen = console.run(&["status", "--json"], 4);
    lab.say(&format!("  a new console shows the load after {:?}", seen.took));
    assert!(seen.took <= SHOWS_WITHIN, "{:?}", seen.took);
    let status = seen.only();
    assert_eq!(status["server"]["state"], "loading", "{status}");
    assert!(status["nodes"][0]["load"]["stage"].is_string(), "{status}");

    let second = console.run(&["up", "--yes", "--json"], 0);
    let steps = [
        ("start the head on spark-1", "skipped"),
        ("join spark-2 to spark-1", "skipped"),
        ("see that 2 nodes stay in Ray", "success"),
        ("serve qwen35 on spark-1", "adopted"),
    ];
    assert_eq!(second.outcomes(), steps);
    assert_eq!(outside::servers(lab), server, "the server is another one");
}

/// What docker itself says of the containers.
fn containers_are_ours(lab: &Lab) {
    for (node, role, address) in [
        ("spark1", "head", "192.168.200.12"),
        ("spark2", "worker", "192.168.200.13"),
    ] {
        assert_eq!(outside::containers(lab, node).trim(), outside::NAME);
        let container = outside::inspect(lab, node);
        let (config, host) = (&container["Config"], &container["HostConfig"]);
        assert_eq!(config["Labels"]["io.bringup.cluster"], "lab");
        assert_eq!(config["Labels"]["io.bringup.role"], role);
        assert_eq!(config["Entrypoint"][0], "ray");
        assert_eq!(host["NetworkMode"], "host");
        assert_eq!(host["ShmSize"], 16u64 << 30);
        assert_eq!(host["AutoRemove"], false);
        assert_eq!(host["RestartPolicy"]["Name"], "no");
        let environment: Vec<&str> = config["Env"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        for variable in [
            format!("VLLM_HOST_IP={address}").as_str(),
            "NCCL_SOCKET_IFNAME==enp1s0f1np1",
            "GLOO_SOCKET_IFNAME=enp1s0f1np1",
            "RAY_memory_monitor_refresh_ms=0",
        ] {
            assert!(environment.contains(&variable), "{variable} in {environment:?}");
        }
    }
}
