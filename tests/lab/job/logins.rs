//! Hosts that can't be used: an unknown host key, a key that a node refuses. Nothing is asked headless.

use super::console::Console;
use super::hosts::Lab;

const TEMPLATE: &str = include_str!("../vllm-ray.toml");

/// The way in is a jump host whose key is not on file.
pub fn unknown_host_key(lab: &Lab) {
    let none = lab.home.path().join("none");
    std::fs::write(&none, "").unwrap();
    let text = TEMPLATE.replace("@KEYS@/known_hosts", none.to_str().unwrap());
    let console = Console::new(lab, "unknown-host-key", &text, &[]);
    let run = console.run(&["status", "--json"], 3);
    let gate = &run.out[0]["hops"][0]["link"];
    assert_eq!(gate["kind"], "host-key-unknown", "{gate}");
    let (error, fix) = (gate["error"].as_str().unwrap(), gate["fix"].as_str().unwrap());
    assert!(error.starts_with("gate ") && error.contains("SHA256:"), "{error}");
    assert!(fix.starts_with("log in once by hand:\nssh -i "), "{fix}");
    let file = format!("UserKnownHostsFile={}", none.display());
    assert!(
        fix.contains("keys/op ") && fix.contains(&file) && fix.ends_with(" spark@10.1.230.180 true"),
        "{fix}"
    );
    let up = console.run(&["up", "--yes", "--json"], 3);
    assert!(up.said.contains(error) && up.said.contains(fix), "{}", up.said);
    assert_eq!(std::fs::read_to_string(&none).unwrap(), "", "nobody said yes");
}

/// The jump host takes the operator's key and the worker doesn't.
pub fn refused_key(lab: &Lab) {
    lab.on("spark2", "mv /home/spark/.ssh/authorized_keys /home/spark/.ssh/kept");
    let console = Console::new(lab, "refused-key", TEMPLATE, &[]);
    let status = console.status(3);
    lab.on("spark2", "mv /home/spark/.ssh/kept /home/spark/.ssh/authorized_keys");
    assert_eq!(status["nodes"][0]["link"]["state"], "up", "{status}");
    let link = &status["nodes"][1]["link"];
    assert_eq!(link["kind"], "refused", "{link}");
    let (error, fix) = (link["error"].as_str().unwrap(), link["fix"].as_str().unwrap());
    assert!(error.starts_with("spark-2 ") && error.contains("keys/op "), "{error}");
    assert!(error.contains("uses a key of gate, not this one"), "{error}");
    assert!(
        fix.contains(" spark@10.1.230.180 ") && fix.contains("keys/op.pub"),
        "{fix}"
    );
    assert_eq!(console.status(4)["nodes"][1]["link"]["state"], "up");
}
