//! The console's own way in: the config that the cluster wrote, the rooms `ssh`, `engine` and `probe`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bringup::config::Config;
use bringup::config::types::Login;
use bringup::domain::command::{Command, Output};
use bringup::domain::link::LinkState;
use bringup::domain::question::Ask;
use bringup::domain::{HopId, NodeId, Source, Stamp};
use bringup::sim::Cluster;
use bringup::ssh::{HopHandle, Keyring, Reply, Reporter, Session, Settings, Target};
use tokio::sync::oneshot;

/// Asks nobody: a question would fail the test.
struct Silent;

impl Reporter for Silent {
    fn link(&self, _source: Source, _state: LinkState) {}

    fn ask(&self, _source: Source, _ask: Ask) -> oneshot::Receiver<Reply> {
        oneshot::channel().1
    }

    fn now(&self) -> Stamp {
        Stamp(0)
    }
}

fn target(name: &str, login: &Login) -> Target {
    Target {
        name: name.to_owned(),
        host: login.host.clone(),
        port: login.port,
        user: login.user.clone(),
        keys: login.keys.clone(),
        alias: login.alias,
        direct: login.direct,
    }
}

/// Connections to every node of a cluster.
pub struct Console {
    pub config: Config,
    pub nodes: Vec<Session>,
    pub gate: HopHandle,
}

impl Console {
    pub async fn connect(cluster: &Cluster) -> Self {
        let config = bringup::config::parse(cluster.config_text(), "config.toml").unwrap();
        let settings = Settings {
            known_hosts: config.ssh.known_hosts.iter().map(PathBuf::from).collect(),
            agent: None,
            no_agent: true,
            ssh_config: None,
            host_keys: None,
            connect_limit: Duration::from_secs(30),
            interactive: false,
            keyring: Keyring::default(),
        };
        let reporter: Arc<dyn Reporter> = Arc::new(Silent);
        let gate = &config.ssh.jump[0];
        let gate = HopHandle::start(
            target(&gate.name, &gate.login),
            None,
            settings.clone(),
            Arc::clone(&reporter),
            Source::Hop(HopId(0)),
        );
        let mut nodes = Vec::new();
        for (id, node) in config.node_ids().zip(&config.nodes) {
            let target = target(&node.name, &node.login);
            let session = Session::connect(
                &target,
                Some(gate.clone()),
                &settings,
                Arc::clone(&reporter),
                Source::Node(id),
            )
            .await;
            nodes.push(session.unwrap_or_else(|e| panic!("{}", e.text)));
        }
        Self { config, nodes, gate }
    }

    pub fn node(&self, id: NodeId) -> &Session {
        &self.nodes[id.index()]
    }

    pub async fn run(&self, id: NodeId, command: &Command) -> Output {
        self.node(id).exec(command, None).await
    }

    pub async fn close(self) {
        for node in &self.nodes {
            node.close().await;
        }
        self.gate.close().await;
    }
}
