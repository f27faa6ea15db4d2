//! Starting a console.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use thiserror::Error;

use crate::api::{ApiError, Client, Place};
use crate::config::Config;
use crate::config::place::expand;
use crate::config::types::Login;
use crate::diagnose::{Evidence, Rules};
use crate::domain::event::EventKind;
use crate::domain::{HopId, Source};
use crate::log::{Masker, Ring};
use crate::model::state::EARLIER;
use crate::model::{Options, State};
use crate::node::{self, Clock, Feed, NodeSetup, Secrets};
use crate::record::earlier_loads;
use crate::ssh::{HopHandle, Keyring, Reporter, Settings, Target, agent_socket};

use super::bench::BenchRunner;
use super::console::{Console, ticker};
use super::questions::Questions;
use super::server::{OverHead, ServerAsker};

/// Bytes kept of each node's log.
pub const LOG_BYTES: usize = 8 << 20;

/// Bytes kept of all logs together; with many nodes each gets a share.
const ALL_LOG_BYTES: usize = 128 << 20;

/// What a console needs to start.
pub struct Setup {
    /// The configuration.
    pub config: Arc<Config>,
    /// Switches.
    pub options: Options,
    /// Whether a person can be asked.
    pub interactive: bool,
    /// known_hosts files, expanded.
    pub known_hosts: Vec<PathBuf>,
    /// The operator's home directory.
    pub home: PathBuf,
    /// Where results of throughput tests go.
    pub results: PathBuf,
    /// Rules by which causes of failures are found.
    pub rules: Rules,
    /// What is to be said at once, such as a file that could not be read.
    pub notes: Vec<String>,
    /// The file in which the times of earlier loads are kept.
    pub loads: PathBuf,
}

/// Why a console can't start.
#[derive(Debug, Error)]
pub enum StartError {
    /// The private sockets of the tunnel.
    #[error("the tunnel to the model server could not be made: {0}")]
    Tunnel(#[from] ApiError),
}

impl Console {
    /// Starts the actors. Nothing runs on a node yet but the first probes.
    ///
    /// # Errors
    /// When the private sockets of the tunnel can't be made.
    pub fn start(setup: Setup) -> Result<Self, StartError> {
        let Setup {
            config,
            options,
            interactive,
            known_hosts,
            home,
            results,
            rules,
            notes,
            loads,
        } = setup;
        let clock = Clock::start();
        let (feed, events) = Feed::new(clock);
        let questions = Arc::new(Questions::new(feed.clone()));
        let reporter: Arc<dyn Reporter> = questions.clone();
        let settings = settings(&config, known_hosts, &home, interactive);
        let secrets = Arc::new(Secrets::read(&config, &home));
        let masker = Arc::new(Masker::new(secrets.values()));
        let hops = start_hops(&config, &home, &settings, &reporter);

        let share = ALL_LOG_BYTES / config.nodes.len().max(1);
        let mut nodes = Vec::new();
        let mut logs = Vec::new();
        for (id, node) in config.node_ids().zip(&config.nodes) {
            let log = Arc::new(Mutex::new(Ring::new(LOG_BYTES.min(share))));
            logs.push(log.clone());
            nodes.push(node::start(NodeSetup {
                id,
                config: config.clone(),
                target: target(&node.name, &node.login, &home),
                via: node.via.and_then(|hop| hops.get(hop.index()).cloned()),
                settings: settings.clone(),
                reporter: reporter.clone(),
                feed: feed.clone(),
                log,
                secrets: secrets.clone(),
                masker: masker.clone(),
                rules: rules.clone(),
            }));
        }

        let head = config.head();
        let (_none, nobody) = tokio::sync::watch::channel(None);
        let over_head = OverHead::new(nodes.first().map_or(nobody, node::NodeHandle::session));
        let place = Place {
            // A server that listens at every address or at loopback; one at the fabric address alone is not reached this way.
            host: "127.0.0.1".to_owned(),
            port: config.serve.port,
            dashboard_port: config.engine.dashboard_port(),
        };
        let key = config.api_key.as_ref().and_then(|from| secrets.get(from).ok());
        let client = Client::open(Arc::new(over_head), &place, key)?;
        let model = config.serve.name().to_owned();
        let server = ServerAsker::new(client.clone(), feed.clone(), head, model.clone(), config.serve.port);
        let bench = BenchRunner::new(client, feed.clone(), model, results);
        let mut state = State::new(config, options, feed.now());
        state.unset = secrets.missing();
        state.evidence = Evidence::by(rules);
        for note in notes {
            // The queue is empty yet; what found no room would be no more than a note.
            feed.offer(Source::Operator, EventKind::Notice(note));
        }
        match earlier_loads(&loads, &state.config.load_key(), EARLIER) {
            Ok(earlier) => state.earlier = earlier,
            Err(why) => {
                let text = format!("the times of earlier loads are not known: {why}");
                feed.offer(Source::Clock, EventKind::Notice(text));
            }
        }
        Ok(Self {
            state,
            feed,
            events,
            ticker: ticker(),
            hops,
            nodes,
            logs,
            questions,
            server,
            bench,
            loads,
        })
    }
}

/// Starts the hops, each after the one before it. The config has no cycle, so every round starts at least one.
fn start_hops(config: &Config, home: &Path, settings: &Settings, reporter: &Arc<dyn Reporter>) -> Vec<HopHandle> {
    let mut started: Vec<Option<HopHandle>> = vec![None; config.ssh.jump.len()];
    for _round in 0..started.len() {
        for (at, hop) in config.ssh.jump.iter().enumerate() {
            let before = hop.via.map(|id| started.get(id.index()).cloned().flatten());
            let ready = started.get(at).is_some_and(Option::is_none) && before.as_ref().is_none_or(Option::is_some);
            let Ok(id) = u16::try_from(at) else { continue };
            if ready && let Some(slot) = started.get_mut(at) {
                let target = target(&hop.name, &hop.login, home);
                let source = Source::Hop(HopId(id));
                *slot = Some(HopHandle::start(
                    target,
                    before.flatten(),
                    settings.clone(),
                    reporter.clone(),
                    source,
                ));
            }
        }
    }
    started.into_iter().flatten().collect()
}

/// What holds for every host.
pub(super) fn settings(config: &Config, known_hosts: Vec<PathBuf>, home: &Path, interactive: bool) -> Settings {
    Settings {
        ssh_config: config.ssh.ssh_config.as_deref().map(|file| expand(file, home)),
        known_hosts,
        host_keys: config.ssh.host_keys,
        agent: config.ssh.agent.then(agent_socket).flatten(),
        no_agent: !config.ssh.agent,
        connect_limit: config.limits.connect,
        interactive,
        keyring: Keyring::default(),
    }
}

pub(super) fn target(name: &str, login: &Login, home: &Path) -> Target {
    Target {
        name: name.to_owned(),
        host: login.host.clone(),
        port: login.port,
        user: login.user.clone(),
        keys: login
            .keys
            .iter()
            .map(|key| expand(key, home).display().to_string())
            .collect(),
        alias: login.alias,
        direct: login.direct,
    }
}
