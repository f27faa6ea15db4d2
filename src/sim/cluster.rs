//! The cluster from outside: start, its config file, the end.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use russh::keys::PrivateKey;
use tokio::net::TcpListener;

use super::SimError;
use super::clock::Pace;
use super::files::{self, Files};
use super::server::{self, Gate, Place};
use super::shared::Shared;
use super::world::Trouble;

/// Most nodes: their fabric addresses end at 192.168.200.254.
const MAX_NODES: usize = 64;

/// Connections to the jump host at a time.
const MAX_CONNECTIONS: usize = 64;

/// How often what happens with time alone is written down.
const TICK: Duration = Duration::from_millis(500);

/// Rest after a connection that could not be accepted.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// How long the end may take.
const SHUTDOWN: Duration = Duration::from_secs(3);

/// What kind of cluster.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Nodes, the head included; at least one.
    pub nodes: usize,
    /// Pace: at 1 the model loads in about a minute.
    pub speed: f64,
    /// Port of the jump host on 127.0.0.1; 0 takes a free one.
    pub port: u16,
    /// What every load runs into.
    pub trouble: Option<Trouble>,
    /// Whether the model is being loaded already, and for how long, when the cluster starts; nobody's console has seen its begin.
    pub loads_for: Option<Duration>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            nodes: 2,
            speed: 1.0,
            port: 0,
            trouble: None,
            loads_for: None,
        }
    }
}

/// A running cluster. Its world lives as long as it does, whoever connects and leaves.
pub struct Cluster {
    shared: Arc<Shared>,
    files: Files,
    address: SocketAddr,
}

impl Cluster {
    /// Starts a cluster. Needs a tokio runtime, which runs its tasks.
    ///
    /// # Errors
    /// When the port is taken, or the private folder cannot be written.
    pub async fn start(options: Options) -> Result<Self, SimError> {
        let nodes = options.nodes.clamp(1, MAX_NODES);
        let shared = Shared::new(nodes, Pace::new(options.speed), options.loads_for.unwrap_or_default());
        shared.with(|world, _| {
            world.trouble = options.trouble;
            if options.loads_for.is_some() {
                world.begin_loaded(files::MODEL);
            }
        });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port))
            .await
            .map_err(SimError::Listen)?;
        let address = listener.local_addr().map_err(SimError::Listen)?;
        let (operator, jump) = (files::new_key()?, files::new_key()?);
        let keys = (0..nodes)
            .map(|_| files::new_key())
            .collect::<Result<Vec<PrivateKey>, SimError>>()?;
        let written = shared.with(|world, _| {
            let hosts: Vec<_> = world
                .hosts
                .iter()
                .zip(keys.iter().map(PrivateKey::public_key))
                .collect();
            Files::write(
                files::private_folder()?,
                &operator,
                address.port(),
                jump.public_key(),
                &hosts,
            )
        });
        let gate = Gate {
            shared: Arc::clone(&shared),
            operator: operator.public_key().clone(),
            jump: server::config(jump),
            nodes: keys.into_iter().map(server::config).collect(),
        };
        let files = written?;
        shared.tasks.spawn(accept(gate, listener));
        shared.tasks.spawn(tick(Arc::clone(&shared)));
        Ok(Self { shared, files, address })
    }

    /// Where the jump host listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A complete config file for the cluster.
    #[must_use]
    pub fn config_text(&self) -> &str {
        self.files.config_text()
    }

    /// Where that file lies; beside it are `id_ed25519` and `known_hosts`.
    #[must_use]
    pub fn config_path(&self) -> &Path {
        self.files.config_path()
    }

    /// The private folder of the cluster.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.files.folder()
    }

    /// Resolves when the cluster has ended, which [`Cluster::shutdown`] alone causes.
    pub async fn ended(&self) {
        self.shared.cancel.cancelled().await;
    }

    /// Ends every connection and removes the private folder.
    pub async fn shutdown(self) {
        self.shared.cancel.cancel();
        self.shared.tasks.close();
        // A task that does not end in time is dropped with the runtime.
        let _ = tokio::time::timeout(SHUTDOWN, self.shared.tasks.wait()).await;
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.shared.cancel.cancel();
    }
}

/// Accepts connections to the jump host.
async fn accept(gate: Gate, listener: TcpListener) {
    let places = Arc::new(tokio::sync::Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        let stream = tokio::select! {
            accepted = listener.accept() => accepted,
            () = gate.shared.cancel.cancelled() => return,
        };
        match stream {
            Ok((stream, _)) => {
                // Small writes must not wait for each other. A socket without it still works.
                let _ = stream.set_nodelay(true);
                let own = gate.clone();
                gate.shared.tasks.spawn(async move {
                    let _place = place;
                    server::connection(own, Place::Jump, stream).await;
                });
            }
            // Out of descriptors, or a connection that went before it was taken.
            Err(io::Error { .. }) => tokio::time::sleep(ACCEPT_AGAIN).await,
        }
    }
}

/// Lets time pass in the world.
async fn tick(shared: Arc<Shared>) {
    let mut timer = tokio::time::interval(TICK);
    timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = timer.tick() => shared.change(|world, now| world.advance(now)),
            () = shared.cancel.cancelled() => return,
        }
    }
}
