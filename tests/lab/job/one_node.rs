//! A head without workers: a console that is killed while it follows a log, then a server that says healthy and dies at its first token.

use std::time::Duration;

use super::console::Console;
use super::hosts::{Lab, wait_for};
use super::outside;

const TEMPLATE: &str = include_str!("../vllm-ray.toml");

/// The template without its worker, and with a server that gives no token.
fn config() -> String {
    let (head, rest) = TEMPLATE.split_once("# The worker.\n").unwrap();
    let (_worker, rest) = rest.split_once("[engine]\n").unwrap();
    let text = format!("{head}[engine]\n{rest}");
    let environment = "[container.environment]\n";
    [
        ("tensor_parallel_size = 2", "tensor_parallel_size = 1".to_owned()),
        ("LOAD_S = \"30\"", "LOAD_S = \"10\"".to_owned()),
        (
            environment,
            format!("{environment}VLLM_STANDIN_FAULT = \"first-token\"\n"),
        ),
    ]
    .into_iter()
    .fold(text, |text, (old, new)| {
        assert!(text.contains(old), "no {old} in the template");
        text.replace(old, &new)
    })
}

/// The killed console leaves nothing of its own on the node; the next one goes on, and never calls the server ready.
pub fn dies_at_its_first_token(lab: &Lab) {
    let console = Console::new(lab, "one-node", &config(), &[]);
    let mut first = console.start(&["up", "--yes", "--json"]);
    wait_for(Duration::from_secs(60), "the console follows the head's log", || {
        let all = outside::of_the_login(lab, "spark1");
        if all.contains("docker logs") { Ok(()) } else { Err(all) }
    });
    first.kill().unwrap();
    first.wait().unwrap();
    outside::console_gone(lab, &["spark1"]);
    lab.say("  killed while it follows, and nothing is left of it");

    let up = console.run(&["up", "--yes", "--json"], 1);
    let failure = up.failure();
    assert!(failure["title"].as_str().unwrap().starts_with("serve "), "{failure}");
    assert!(
        !up.outcomes().iter().any(|(title, _)| title.starts_with("serve ")),
        "{up:?}"
    );
    let status = console.status(4);
    assert_ne!(status["server"]["state"], "ready", "{status}");
    lab.say("  it says healthy, and is not called ready");

    console.run(&["down", "--yes", "--json"], 0);
}
