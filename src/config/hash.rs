//! Short hashes of the parts of a configuration that a running container or server was made from.
//!
//! They stand in container labels and in the server's environment, so that a console started later can tell whether what runs came from the same
//! configuration. What does not change the thing itself (limits, the screen, the throughput test) is left out.

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::domain::NodeId;

use super::types::{Config, Engine};

/// Bytes of the digest that are kept: enough to tell configurations apart, short enough to read.
const BYTES: usize = 6;

impl Config {
    /// Hash of what a node's container is made from: 12 hex digits.
    #[must_use]
    pub fn container_hash(&self, node: NodeId) -> String {
        let engine = match &self.engine {
            Engine::VllmRay(e) => (
                self.engine.word(),
                e.ray_port,
                e.dashboard_port,
                e.shm_size.as_str(),
                e.docker_run_args.as_slice(),
                e.ray_start_args.as_slice(),
            ),
            Engine::Script(e) => (
                self.engine.word(),
                e.ray_port,
                e.dashboard_port,
                e.path.as_str(),
                [].as_slice(),
                [].as_slice(),
            ),
        };
        let wired = self.node(node).map(|n| {
            (
                n.name.as_str(),
                n.role,
                n.fabric_address.as_str(),
                n.fabric_interface.as_deref(),
                n.hcas.as_slice(),
            )
        });
        let head = self.node(self.head()).map(|n| n.fabric_address.as_str());
        short_hash(&(
            self.cluster.as_str(),
            engine,
            wired,
            head,
            &self.container,
            self.hf_token_env.as_deref(),
        ))
    }

    /// Hash of what the model server is started from: 12 hex digits. The value of the serve process's mark.
    #[must_use]
    pub fn serve_hash(&self) -> String {
        let args = match &self.engine {
            Engine::VllmRay(e) => e.vllm_serve_args.as_slice(),
            Engine::Script(_) => [].as_slice(),
        };
        short_hash(&(
            self.cluster.as_str(),
            self.engine.word(),
            &self.serve,
            args,
            self.api_key_env.as_deref(),
        ))
    }
}

/// First hex digits of the SHA-256 of a value's JSON.
fn short_hash<T: Serialize>(value: &T) -> String {
    // Strings, numbers and lists always serialise; were it ever otherwise, an empty text still gives a stable hash.
    let json = serde_json::to_string(value).unwrap_or_default();
    let digest = Sha256::digest(json.as_bytes());
    digest.iter().take(BYTES).map(|b| format!("{b:02x}")).collect()
}
