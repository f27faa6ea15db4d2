//! The cluster's private folder: the operator's key, known_hosts and the config file, gone when the cluster goes.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use russh::keys::ssh_key::LineEnding;
use russh::keys::{Algorithm, PrivateKey, PublicKey};

use crate::record::Folder;

use super::SimError;
use super::world::host::{FABRIC_INTERFACE, HCAS, Host};
use super::world::{IMAGE, spec};

/// Name of the operator's key file; its public half stands beside it.
const KEY: &str = "id_ed25519";

/// Model that the demo serves: the story's.
pub(super) const MODEL: &str = "Qwen/Qwen3.5-122B-A10B-FP8";

/// A key that no other cluster has.
pub fn new_key() -> Result<PrivateKey, SimError> {
    PrivateKey::random(&mut russh::keys::key::safe_rng(), Algorithm::Ed25519).map_err(|e| SimError::Key(e.to_string()))
}

/// The folder and what lies in it.
#[derive(Debug)]
pub struct Files {
    dir: Folder,
    config: PathBuf,
    text: String,
}

impl Files {
    /// Writes everything into the folder.
    pub fn write(
        dir: Folder,
        operator: &PrivateKey,
        port: u16,
        jump: &PublicKey,
        nodes: &[(&Host, &PublicKey)],
    ) -> Result<Self, SimError> {
        let key = operator
            .to_openssh(LineEnding::LF)
            .map_err(|e| SimError::Key(e.to_string()))?;
        let path = dir.path().join(KEY);
        private(&path, key.as_bytes())?;
        let public = operator
            .public_key()
            .to_openssh()
            .map_err(|e| SimError::Key(e.to_string()))?;
        private(&dir.path().join(format!("{KEY}.pub")), format!("{public}\n").as_bytes())?;
        let mut known = format!("[127.0.0.1]:{port} {}\n", openssh(jump)?);
        for (host, key) in nodes {
            let _ = writeln!(known, "{} {}", host.fabric, openssh(key)?);
        }
        let known_hosts = dir.path().join("known_hosts");
        private(&known_hosts, known.as_bytes())?;
        let hosts: Vec<&Host> = nodes.iter().map(|(host, _)| *host).collect();
        let text = config(&path, &known_hosts, port, &hosts);
        let config = dir.path().join("config.toml");
        private(&config, text.as_bytes())?;
        Ok(Self { dir, config, text })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        self.dir.path()
    }

    /// The config file.
    pub fn config_path(&self) -> &Path {
        &self.config
    }

    /// Its text.
    pub fn config_text(&self) -> &str {
        &self.text
    }
}

/// What the names of demo clusters' folders have in them.
const FOLDER: &str = "demo-";

/// Makes the folder, readable for nobody else.
pub fn private_folder() -> Result<Folder, SimError> {
    Folder::make(&std::env::temp_dir(), FOLDER).map_err(SimError::Files)
}

/// The folder of the demo cluster that a key of an operator belongs to; `None` for a key of any other cluster.
#[must_use]
pub fn folder_of(key: &Path) -> Option<&Path> {
    key.parent().filter(|folder| Folder::is(folder, FOLDER))
}

/// Writes a file that only its owner reads.
fn private(path: &Path, bytes: &[u8]) -> Result<(), SimError> {
    use std::io::Write as _;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    let mut file = options.open(path).map_err(SimError::Files)?;
    file.write_all(bytes).map_err(SimError::Files)
}

fn openssh(key: &PublicKey) -> Result<String, SimError> {
    key.to_openssh().map_err(|e| SimError::Key(e.to_string()))
}

/// A text as TOML writes it.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A complete config file for the cluster.
fn config(key: &Path, known_hosts: &Path, port: u16, hosts: &[&Host]) -> String {
    let path = |p: &Path| quoted(&p.to_string_lossy());
    let mut text = format!(
        "# The demo cluster: an in-process jump host and its Sparks. Gone when the demo ends.

[cluster]
name = \"demo\"

[ssh]
user = \"aurora\"
keys = [{key}]
known_hosts = [{known}]
agent = false

[[ssh.jump]]
name = \"gate\"
host = \"127.0.0.1\"
port = {port}
",
        key = path(key),
        known = path(known_hosts),
    );
    let hcas: Vec<String> = HCAS.iter().map(|h| quoted(h)).collect();
    for (i, host) in hosts.iter().enumerate() {
        let role = if i == 0 { "head" } else { "worker" };
        let _ = write!(
            text,
            "
[[node]]
name = {name}
role = \"{role}\"
address = {address}
fabric_address = {address}
fabric_interface = \"{FABRIC_INTERFACE}\"
hcas = [{hcas}]
",
            name = quoted(&host.name),
            address = quoted(&host.fabric),
            hcas = hcas.join(", "),
        );
    }
    let _ = write!(
        text,
        "
[engine]
kind = \"vllm-ray\"

[engine.vllm-ray]
vllm_serve_args = [\"--max-model-len\", \"32768\", \"--gpu-memory-utilization\", \"{utilization}\", \"--reasoning-parser\", \"qwen3\"]

[container]
image = \"{IMAGE}\"
name = \"vllm-qwen35\"
volumes = [\"/home/aurora/.cache/huggingface:/root/.cache/huggingface\"]

[container.environment]
NCCL_DEBUG = \"INFO\"

[serve]
model = \"{MODEL}\"
tensor_parallel_size = {tp}

[bench]
requests = 16
concurrency = 4
prompt_tokens = 256
output_tokens = 64
",
        utilization = spec::DEFAULT_UTILIZATION,
        tp = hosts.len(),
    );
    text
}
