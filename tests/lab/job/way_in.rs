//! What stands in the way of a login, or of a command after it: each has a sentence of its own, with what to do where that is known.

use serde_json::Value;

use super::console::Console;
use super::hosts::{Lab, directory, wait_for};

use std::time::Duration;

/// One node and no Ray image: enough to log in and to look.
const ONE: &str = r#"
[cluster]
name = "lab"

[ssh]
user = "@USER@"
port = @PORT@
keys = ["@KEYS@/op"]
known_hosts = ["@KNOWN@"]
agent = false

[[node]]
name = "spark-1"
role = "head"
address = "@ADDRESS@"
fabric_address = "192.168.200.12"

[engine]
kind = "vllm-ray"

[container]
image = "lab/busybox:1"
name = "vllm-qwen35"

[serve]
model = "qwen35"

[limits]
connect = "5s"
"#;

/// spark1 as the operator reaches it.
const SPARK1: &str = "10.1.230.180";

/// The bastion, which has no Docker.
const JUMP: &str = "10.1.230.5";

/// What differs between the cases.
struct Case<'a> {
    name: &'a str,
    user: &'a str,
    address: &'a str,
    port: u16,
}

impl Case<'_> {
    fn status(&self, lab: &Lab, exit: i32) -> Value {
        let known = known_hosts(lab);
        let port = self.port.to_string();
        let console = Console::new(
            lab,
            self.name,
            ONE,
            &[
                ("@USER@", self.user),
                ("@PORT@", &port),
                ("@KNOWN@", &known),
                ("@ADDRESS@", self.address),
            ],
        );
        console.status(exit)
    }

    /// The node's link, which is down.
    fn link(&self, lab: &Lab, kind: &str, error: &[&str]) -> Value {
        let status = self.status(lab, 3);
        let link = status["nodes"][0]["link"].clone();
        assert_eq!(link["kind"], kind, "{}: {link}", self.name);
        holds(self.name, &link["error"], error);
        link
    }
}

fn holds(name: &str, text: &Value, parts: &[&str]) {
    let text = text.as_str().unwrap_or_default();
    for part in parts {
        assert!(text.contains(part), "{name}: no {part:?} in {text:?}");
    }
}

/// The lab's known hosts, with spark1's key for every port of it that a case uses.
fn known_hosts(lab: &Lab) -> String {
    let file = lab.home.path().join("known-hosts-of-ports");
    let text = std::fs::read_to_string(directory().join("keys/known_hosts")).unwrap();
    let line = text.lines().find(|l| l.starts_with(SPARK1)).unwrap();
    let (_, key) = line.split_once(' ').unwrap();
    let ports: String = PORTS.map(|port| format!("[{SPARK1}]:{port} {key}\n")).concat();
    std::fs::write(&file, text + "\n" + &ports).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Ports of further `sshd`s.
const PORTS: [u16; 3] = [2201, 2202, 2203];

/// A further `sshd` on spark1, which ends with it.
struct Sshd<'a> {
    lab: &'a Lab,
    port: u16,
}

impl<'a> Sshd<'a> {
    fn start(lab: &'a Lab, port: u16, options: &str) -> Self {
        let pid = format!("/run/sshd-{port}.pid");
        lab.on(
            "spark1",
            &format!("/usr/sbin/sshd -E /var/log/sshd-{port}.log -o Port={port} -o PidFile={pid} {options}"),
        );
        wait_for(Duration::from_secs(20), "it listens", || {
            lab.try_on("spark1", &format!("test -s {pid}"))
        });
        Self { lab, port }
    }
}

impl Drop for Sshd<'_> {
    fn drop(&mut self) {
        let end = format!("kill $(cat /run/sshd-{}.pid)", self.port);
        // A failure before this is the one to read.
        let _ = self.lab.try_on("spark1", &end);
    }
}

/// Hosts that can't be logged in to.
pub fn refused(lab: &Lab) {
    let at = |name, port| Case {
        name,
        user: "spark",
        address: SPARK1,
        port,
    };
    {
        let _old = Sshd::start(lab, 2201, "-o KexAlgorithms=diffie-hellman-group1-sha1");
        at("old-algorithms", 2201).link(
            lab,
            "unreachable",
            &[
                "spark-1 ",
                "no common key exchange algorithm",
                "diffie-hellman-group1-sha1",
            ],
        );
    }
    {
        lab.on(
            "spark1",
            "rm -f /run/other; ssh-keygen -q -t ed25519 -N '' -f /run/other",
        );
        let _other = Sshd::start(lab, 2203, "-o HostKey=/run/other");
        let link = at("wrong-host-key", 2203).link(
            lab,
            "host-key-changed",
            &["spark-1 ", "the host key has changed", "known-hosts-of-ports"],
        );
        let shown = lab.on("spark1", "ssh-keygen -l -f /run/other.pub");
        let on_file = lab.on("spark1", "ssh-keygen -l -f /etc/ssh/ssh_host_ed25519_key.pub");
        for line in [&shown, &on_file] {
            let fingerprint = line.split(' ').nth(1).unwrap();
            holds("both fingerprints", &link["error"], &[fingerprint]);
        }
        holds("the way to forget", &link["fix"], &["ssh-keygen -R"]);
    }
    at("nobody-listens", 2299).link(lab, "unreachable", &["spark-1 ", "connection refused"]);
    Case {
        address: "10.1.230.77",
        ..at("nobody-there", 22)
    }
    .link(lab, "unreachable", &["spark-1 "]);
    Case {
        address: "no-such-host.invalid",
        ..at("no-such-name", 22)
    }
    .link(
        lab,
        "unreachable",
        &["spark-1 ", "the name no-such-host.invalid could not be resolved"],
    );
}

/// Hosts that let one in and then refuse something.
pub fn half_open(lab: &Lab) {
    let at = |name, user, address, port| Case {
        name,
        user,
        address,
        port,
    };
    let container = |status: &Value| status["nodes"][0]["container"].clone();
    let none = at("no-docker", "spark", JUMP, 22).status(lab, 4);
    assert_eq!(none["nodes"][0]["link"]["state"], "up", "{none}");
    holds(
        "no-docker",
        &container(&none)["reason"],
        &["no docker program on the node"],
    );
    let barred = at("not-in-group-docker", "nodocker", SPARK1, 22).status(lab, 4);
    holds(
        "not-in-group-docker",
        &container(&barred)["reason"],
        &["permission denied"],
    );
    {
        let _closed = Sshd::start(lab, 2202, "-o AllowTcpForwarding=no");
        let status = at("no-forwarding", "spark", SPARK1, 2202).status(lab, 4);
        assert_eq!(status["nodes"][0]["link"]["state"], "up", "{status}");
        holds(
            "no-forwarding",
            &status["server"]["why"],
            &["forbids forwarding", "AllowTcpForwarding"],
        );
    }
    for shell in ["fish", "tcsh", "zsh", "noisy"] {
        let status = at(shell, shell, SPARK1, 22).status(lab, 4);
        assert_eq!(status["nodes"][0]["link"]["state"], "up", "{shell}: {status}");
        // Docker was asked and has none of this name.
        assert!(container(&status)["age_s"].is_number(), "{shell}: {status}");
        assert!(status["nodes"][0]["memory"]["value"].is_object(), "{shell}: {status}");
    }
}
