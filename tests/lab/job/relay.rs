//! A head that opens to the jump host's key alone: `login = "jump"` does the whole job through the jump host's own `ssh`, and leaves nothing there.

use std::time::Duration;

use super::console::{self, Console};
use super::hosts::{Lab, wait_for};
use super::outside;

const TEMPLATE: &str = include_str!("../vllm-ray.toml");

/// One node, behind the bastion.
fn config(login: &str) -> String {
    let (head, rest) = TEMPLATE.split_once("# The worker.\n").unwrap();
    let (_worker, rest) = rest.split_once("[engine]\n").unwrap();
    let text = format!("{head}[engine]\n{rest}");
    [
        ("host = \"10.1.230.180\"", "host = \"10.1.230.5\"".to_owned()),
        ("role = \"head\"\n", format!("role = \"head\"\nlogin = \"{login}\"\n")),
        ("tensor_parallel_size = 2", "tensor_parallel_size = 1".to_owned()),
        ("LOAD_S = \"30\"", "LOAD_S = \"5\"".to_owned()),
    ]
    .into_iter()
    .fold(text, |text, (old, new)| {
        assert!(text.contains(old), "no {old} in the template");
        text.replace(old, &new)
    })
}

/// The bastion's key is the only one that opens spark1.
struct OnlyTheJumpHosts<'a>(&'a Lab);

impl<'a> OnlyTheJumpHosts<'a> {
    fn new(lab: &'a Lab) -> Self {
        let key = lab.on(
            "jump",
            "cd /home/spark/.ssh && rm -f id_ed25519* && ssh-keygen -q -t ed25519 -N '' -f id_ed25519 && chown spark: id_ed25519* && cat id_ed25519.pub",
        );
        let host = lab.on("spark1", "cut -d' ' -f1,2 /etc/ssh/ssh_host_ed25519_key.pub");
        lab.on(
            "jump",
            &format!(
                "echo '192.168.200.12 {}' >/home/spark/.ssh/known_hosts && chown spark: /home/spark/.ssh/known_hosts",
                host.trim()
            ),
        );
        lab.on(
            "spark1",
            &format!(
                "cd /home/spark/.ssh && cp -p authorized_keys kept && echo '{}' >authorized_keys",
                key.trim()
            ),
        );
        Self(lab)
    }
}

impl Drop for OnlyTheJumpHosts<'_> {
    fn drop(&mut self) {
        // A failure before this is the one to read.
        let _ = self
            .0
            .try_on("spark1", "cd /home/spark/.ssh && mv kept authorized_keys");
        let _ = self
            .0
            .try_on("jump", "cd /home/spark/.ssh && rm -f id_ed25519* known_hosts");
    }
}

/// The whole job, once.
pub fn whole_job(lab: &Lab) {
    let closed = OnlyTheJumpHosts::new(lab);
    let own = Console::new(lab, "relay-own", &config("own"), &[]).status(3);
    let link = &own["nodes"][0]["link"];
    assert_eq!(link["kind"], "refused", "{link}");
    assert!(link["error"].as_str().unwrap().contains("`login = \"jump\"`"), "{link}");

    let console = Console::new(lab, "relay", &config("jump"), &[]);
    let status = console.status(4);
    assert_eq!(status["nodes"][0]["login"], "jump", "{status}");
    assert_eq!(status["nodes"][0]["link"]["state"], "up", "{status}");
    assert_eq!(status["server"]["state"], "down", "{status}");
    lab.say("  the jump host's key opens it");

    let mut first = console.start(&["up", "--yes", "--json"]);
    wait_for(Duration::from_secs(60), "the console follows the head's log", || {
        let all = outside::of_the_login(lab, "spark1");
        if all.contains("docker logs") { Ok(()) } else { Err(all) }
    });
    first.kill().unwrap();
    first.wait().unwrap();
    outside::console_gone(lab, &["spark1", "jump"]);
    lab.say("  killed, and nothing is left of it on either host");

    console.run(&["up", "--yes", "--json"], 0);
    let status = console.status(0);
    assert_eq!(status["server"]["state"], "ready", "{status}");
    assert!(status["nodes"][0]["log"]["lines"].as_u64().unwrap() > 0, "{status}");
    console::measure(lab, &console);
    lab.say("  ready and measured through it");
    console.run(&["down", "--yes", "--json"], 0);

    lab.on("jump", "rm /home/spark/.ssh/known_hosts");
    let status = console.status(3);
    assert_eq!(status["nodes"][0]["link"]["kind"], "host-key-unknown", "{status}");
    drop(closed);
}
