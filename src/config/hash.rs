//! Short hashes of the parts of a configuration that a running container or server was made from.
//!
//! They stand in container labels and in the server's environment, so that a console started later can tell whether what runs came from the same
//! configuration. What does not change the thing itself (limits, the screen, the throughput test) is left out.

use std::fmt::Write as _;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::domain::NodeId;

use super::types::{Config, Engine};

/// Hex digits of a hash: enough to tell configurations apart, short enough to read.
const DIGITS: usize = 12;

impl Config {
    /// Hash of everything that shapes a node's container, for [`crate::domain::container::label::HASH`]. Two consoles with the same file agree.
    #[must_use]
    pub fn container_hash(&self, id: NodeId) -> String {
        let head = self.node(self.head()).map(|n| n.fabric_address.as_str());
        let node = self.node(id).map(|n| {
            json!({
                "name": n.name, "role": n.role, "fabric_address": n.fabric_address,
                "fabric_interface": n.fabric_interface, "hcas": n.hcas, "gpus": n.gpus,
            })
        });
        let engine = match &self.engine {
            Engine::VllmRay(e) => json!({
                "ray_port": e.ray_port, "dashboard_port": e.dashboard_port, "shm_size": e.shm_size,
                "docker_run_args": e.docker_run_args, "ray_start_args": e.ray_start_args, "ray_head_args": e.ray_head_args,
            }),
            Engine::Script(e) => json!(e),
        };
        short(&json!({
            "cluster": self.cluster, "engine": self.engine.word(), "settings": engine, "node": node, "head": head,
            "image": self.container.image, "name": self.container.name, "environment": self.container.environment,
            "volumes": self.container.volumes, "hf_token": self.hf_token.is_some(),
        }))
    }

    /// Hash of everything that shapes the model server, for [`crate::domain::serving::SERVE_MARK`].
    #[must_use]
    pub fn serve_hash(&self) -> String {
        let arguments = match &self.engine {
            Engine::VllmRay(e) => json!(e.vllm_serve_args),
            Engine::Script(e) => json!(e.serve),
        };
        short(&json!({
            "cluster": self.cluster, "engine": self.engine.word(), "serve": self.serve, "arguments": arguments,
            "api_key": self.api_key.is_some(), "hf_token": self.hf_token.is_some(),
        }))
    }
}

impl Config {
    /// What a load is compared by with earlier ones: all that decides what is loaded and by how many, the image included.
    #[must_use]
    pub fn load_key(&self) -> String {
        short(&json!({ "serve": self.serve_hash(), "image": self.container.image, "nodes": self.nodes.len() }))
    }
}

/// The first digits of the SHA-256 of the text; its keys are sorted.
fn short(value: &Value) -> String {
    let mut hex = String::new();
    for byte in Sha256::digest(value.to_string()) {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex.truncate(DIGITS);
    hex
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{EXAMPLE, parse};

    fn config(from: &str, to: &str) -> Config {
        assert!(EXAMPLE.contains(from), "{from}");
        parse(&EXAMPLE.replacen(from, to, 1), "config.toml").unwrap()
    }

    fn hashes(c: &Config) -> [String; 3] {
        [c.container_hash(NodeId(0)), c.container_hash(NodeId(1)), c.serve_hash()]
    }

    #[test]
    fn a_hash_changes_with_what_it_is_about_and_with_nothing_else() {
        let base = hashes(&config("", ""));
        assert!(
            base.iter()
                .all(|h| h.len() == DIGITS && h.chars().all(|c| c.is_ascii_hexdigit()))
        );
        assert_ne!(base[0], base[1]);
        let changed = |from, to| {
            let now = hashes(&config(from, to));
            [0, 1, 2].map(|n| now[n] != base[n])
        };
        let cases = [
            ("image = \"hello", "image = \"other", [true, true, false]),
            (
                "fabric_address = \"192.168.200.13\"",
                "fabric_address = \"192.168.200.14\"",
                [false, true, false],
            ),
            (
                "fabric_address = \"192.168.200.12\"",
                "fabric_address = \"192.168.200.11\"",
                [true, true, false],
            ),
            ("model = \"Qwen/", "model = \"Other/", [false, false, true]),
            ("user = \"aurora\"", "user = \"boreas\"", [false, false, false]),
        ];
        for (from, to, expected) in cases {
            assert_eq!(changed(from, to), expected, "{from}");
        }
    }
}
