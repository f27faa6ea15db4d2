//! Engine script through the plain jump host: the user's own script does the same job, and two that are wrong are stopped before serve.

use super::console::{Console, Run, measure, ready};
use super::hosts::{Lab, NODES};
use super::outside;

const TEMPLATE: &str = include_str!("../script.toml");

/// Head, workers, serve, throughput test, stop, by a script that knows nothing of the console.
pub fn whole_job(lab: &Lab) {
    let console = Console::new(lab, "script", TEMPLATE, &[("@SCRIPT@", "./spark-vllm.sh")]);
    let up = console.run(&["up", "--yes", "--json"], 0);
    let steps = [
        ("compare the image on 2 nodes", "success"),
        ("start the head on spark-1", "success"),
        ("join spark-2 to spark-1", "success"),
        ("see that 2 nodes stay in Ray", "success"),
        ("serve qwen35 on spark-1", "success"),
    ];
    assert_eq!(up.outcomes(), steps);
    outside::ray_is_whole(lab);
    assert_eq!(outside::servers(lab).len(), 1);
    for node in NODES {
        assert_eq!(outside::containers(lab, node).trim(), outside::NAME);
        assert_eq!(outside::inspect(lab, node)["Config"]["Labels"], serde_json::json!({}));
    }
    let status = ready(&console);
    for node in status["nodes"].as_array().unwrap() {
        assert_eq!(node["container"]["value"]["started_by_bringup"], false, "{node}");
    }
    lab.say("  up");

    measure(lab, &console);
    console.run(&["down", "--serve", "--yes", "--json"], 0);
    assert!(outside::servers(lab).is_empty());
    outside::ray_is_whole(lab);
    lab.say("  measured, and the server is stopped");

    let again = console.run(&["up", "--yes", "--json"], 0);
    let steps = [
        ("start the head on spark-1", "skipped"),
        ("join spark-2 to spark-1", "skipped"),
        ("see that 2 nodes stay in Ray", "success"),
        ("serve qwen35 on spark-1", "success"),
    ];
    assert_eq!(again.outcomes(), steps);
    assert_eq!(outside::servers(lab).len(), 1);
    ready(&console);
    lab.say("  up again");
    console.run(&["down", "--yes", "--json"], 0);
}

/// A head that lets Ray pick its address gets the external one.
pub fn own_address(lab: &Lab) {
    stopped(lab, "spark-vllm-own-address.sh", "10.1.230.180", "192.168.200.12");
}

/// A worker that registers with its twin interface.
pub fn second_interface(lab: &Lab) {
    stopped(
        lab,
        "spark-vllm-second-interface.sh",
        "192.168.201.13",
        "192.168.200.13",
    );
}

/// `up` with a wrong script ends before serve, and names the address that it saw and the one that it expected.
fn stopped(lab: &Lab, script: &str, seen: &str, expected: &str) {
    let console = Console::new(lab, script, TEMPLATE, &[("@SCRIPT@", &format!("./{script}"))]);
    let up = console.run(&["up", "--yes", "--json"], 1);
    let failure = up.failure();
    let says = |key: &str, address: &str| failure[key].as_str().unwrap().contains(address);
    assert!(says("seen", seen) && says("expected", expected), "{failure}");
    assert!(!serve_started(&up), "{up:?}");
    assert!(outside::servers(lab).is_empty());
    lab.say("  stopped before serve");
    console.run(&["down", "--yes", "--json"], 0);
}

fn serve_started(up: &Run) -> bool {
    let title = |e: &serde_json::Value| e["title"].as_str().unwrap_or_default().starts_with("serve ");
    up.out.iter().any(|e| e["event"] == "started" && title(e))
}
