//! The actor of one node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::config::Config;
use crate::diagnose::Rules;
use crate::domain::command::{Command, Exit};
use crate::domain::event::{CommandDone, EventKind, ProbeId, Purpose};
use crate::domain::link::{LinkError, LinkErrorKind, LinkState};
use crate::domain::logs::LogChoice;
use crate::domain::{NodeId, Role, RunId, Source, Stamp};
use crate::log::Masker;
use crate::ssh::{HopHandle, Keyring, Pauses, Reporter, Session, Settings, Target};

use super::exec;
use super::feed::Feed;
use super::follow::{self, NodeLog, SharedLog, Watched};
use super::jobs::{Job, Ready, probe_job, ray_job, run_job};
use super::secrets::Secrets;
use super::watch as readings;

/// Requests that wait for the actor; one more probe is left out, one more command waits.
const REQUESTS: usize = 64;

/// How often the peer's silence is looked at.
const SILENCE_EVERY: Duration = Duration::from_millis(500);

/// Silence that is told. Keepalives make a healthy peer speak more often than this.
const SILENT_AFTER: Duration = Duration::from_secs(4);

/// Longest wait for the commands in flight to tell how the connection's end found them.
const LAST_WORDS: Duration = Duration::from_secs(4);

/// Longest wait for the goodbye to a peer.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

/// What an actor needs.
pub struct NodeSetup {
    /// Which node.
    pub id: NodeId,
    /// The configuration.
    pub config: Arc<Config>,
    /// How to log in.
    pub target: Target,
    /// The hop before it.
    pub via: Option<HopHandle>,
    /// SSH settings.
    pub settings: Settings,
    /// Questions go this way.
    pub reporter: Arc<dyn Reporter>,
    /// Events go this way.
    pub feed: Feed,
    /// The node's log.
    pub log: SharedLog,
    /// The secrets' values.
    pub secrets: Arc<Secrets>,
    /// Hides them.
    pub masker: Arc<Masker>,
    /// What the log's lines may be a sign of.
    pub rules: Rules,
}

/// What others hold of an actor.
pub struct NodeHandle {
    requests: mpsc::Sender<Request>,
    session: watch::Receiver<Option<Session>>,
    again: Arc<Notify>,
    keyring: Keyring,
    choice: watch::Sender<LogChoice>,
    task: JoinHandle<()>,
}

enum Request {
    Probe(ProbeId),
    Run(RunId, Command),
}

impl NodeHandle {
    /// Asks for a probe. One that is under way, or a full queue, makes this a no-op: the next is due soon.
    pub fn probe(&self, probe: ProbeId) {
        let _full = self.requests.try_send(Request::Probe(probe));
    }

    /// Runs a step's command. Its start and end come as events. False when the actor took it not.
    pub fn run(&self, run: RunId, command: Command) -> bool {
        self.requests.try_send(Request::Run(run, command)).is_ok()
    }

    /// Connects anew now, when it is down, instead of at the end of the pause; also after an answer of No, which no try follows by itself. Dismissed
    /// questions are asked again.
    pub fn retry(&self) {
        self.keyring.ask_again();
        self.again.notify_one();
    }

    /// Shows another of the node's logs.
    pub fn show(&self, choice: LogChoice) {
        self.choice
            .send_if_modified(|old| std::mem::replace(old, choice) != choice);
    }

    /// The connection, whenever it changes.
    #[must_use]
    pub fn session(&self) -> watch::Receiver<Option<Session>> {
        self.session.clone()
    }

    /// Ends the actor and what it runs.
    pub async fn stop(self) {
        drop(self.requests);
        let abort = self.task.abort_handle();
        if tokio::time::timeout(CLOSE_LIMIT, self.task).await.is_err() {
            abort.abort();
        }
    }
}

/// Starts the actor.
#[must_use]
pub fn start(setup: NodeSetup) -> NodeHandle {
    let (requests, inbox) = mpsc::channel(REQUESTS);
    let (connected, session) = watch::channel(None);
    let (choice, chosen) = watch::channel(LogChoice::Own);
    let role = setup.config.node(setup.id).map_or(Role::Worker, |n| n.role);
    let log = follow::unread(&setup.config, role, setup.rules.clone());
    let again = Arc::new(Notify::new());
    let keyring = setup.settings.keyring.clone();
    let task = tokio::spawn(
        Task {
            setup,
            inbox,
            connected,
            log,
            choice: chosen,
            again: Arc::clone(&again),
        }
        .life(),
    );
    NodeHandle {
        requests,
        session,
        again,
        keyring,
        choice,
        task,
    }
}

struct Task {
    setup: NodeSetup,
    inbox: mpsc::Receiver<Request>,
    connected: watch::Sender<Option<Session>>,
    log: NodeLog,
    choice: watch::Receiver<LogChoice>,
    again: Arc<Notify>,
}

/// Logs in, with the operator's key or with the jump host's.
async fn dial(s: &NodeSetup) -> Result<Session, LinkError> {
    let source = Source::Node(s.id);
    let relayed = s.config.node(s.id).is_some_and(|n| n.relayed);
    match &s.via {
        Some(hop) if relayed => {
            Session::relayed(
                &s.target,
                hop.clone(),
                s.config.limits.connect,
                s.reporter.clone(),
                source,
            )
            .await
        }
        via => Session::connect(&s.target, via.clone(), &s.settings, s.reporter.clone(), source).await,
    }
}

/// Why a connection's life ended.
enum Ended {
    /// The peer went away.
    Lost(String),
    /// Nobody holds the actor any more.
    Stopped,
}

impl Task {
    fn source(&self) -> Source {
        Source::Node(self.setup.id)
    }

    async fn life(mut self) {
        let mut pauses = Pauses::default();
        loop {
            self.setup
                .feed
                .send(self.source(), EventKind::Link(LinkState::Connecting))
                .await;
            let tried = {
                let dial = dial(&self.setup);
                // Requests that come while there is no connection are answered at once, so that nobody waits for ever.
                tokio::pin!(dial);
                loop {
                    tokio::select! {
                        done = &mut dial => break Some(done),
                        request = self.inbox.recv() => match request {
                            Some(request) => refuse(&self.setup, request).await,
                            None => break None,
                        },
                    }
                }
            };
            let error = match tried {
                None => return,
                Some(Ok(session)) => {
                    pauses = Pauses::default();
                    self.connected.send_replace(Some(session.clone()));
                    self.setup
                        .feed
                        .send(self.source(), EventKind::Link(LinkState::Up))
                        .await;
                    let ended = self.serve(&session).await;
                    self.connected.send_replace(None);
                    match ended {
                        Ended::Stopped => {
                            let _slow = tokio::time::timeout(CLOSE_LIMIT, session.close()).await;
                            return;
                        }
                        Ended::Lost(why) => {
                            // Who asked for another try while it was up has one that is over.
                            let _asked = self.again.notified().now_or_never();
                            let text = format!("the connection to {} was lost: {why}", self.setup.target.name);
                            LinkError {
                                kind: LinkErrorKind::Lost,
                                text,
                                fix: None,
                            }
                        }
                    }
                }
                Some(Err(error)) => error,
            };
            let pause = pauses.after(error.kind);
            let via_down = error.kind == LinkErrorKind::ViaDown;
            self.down(error, pause).await;
            if !self.pause(pause, via_down).await {
                return;
            }
        }
    }

    async fn down(&self, error: LinkError, retry: Option<Duration>) {
        tracing::warn!(node = self.setup.id.0, why = error.text, "link down");
        let since = self.setup.feed.now().stamp;
        let link = LinkState::Down {
            error,
            since,
            retry_at: retry.map(|w| since.plus(w)),
        };
        self.setup.feed.send(self.source(), EventKind::Link(link)).await;
    }

    /// Waits before the next try, answering requests: for the end of the pause, for somebody who asks for it, and for the hop where that was what failed.
    /// False when the actor must end.
    async fn pause(&mut self, pause: Option<Duration>, via_down: bool) -> bool {
        let again = Arc::clone(&self.again);
        let via = self.setup.via.clone().filter(|_| via_down);
        let over = async move {
            let until = async {
                match pause {
                    Some(pause) => tokio::time::sleep(pause).await,
                    None => std::future::pending().await,
                }
            };
            let before = async {
                match via {
                    Some(hop) => hop.until_up().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = until => {}
                () = before => {}
                () = again.notified() => {}
            }
        };
        tokio::pin!(over);
        loop {
            tokio::select! {
                () = &mut over => return true,
                request = self.inbox.recv() => match request {
                    Some(request) => refuse(&self.setup, request).await,
                    None => return false,
                },
            }
        }
    }

    /// Serves requests over a connection until it ends.
    async fn serve(&mut self, session: &Session) -> Ended {
        let (seen, watched) = watch::channel(Watched::default());
        let mut jobs: JoinSet<Ready> = JoinSet::new();
        let mut probing: BTreeSet<ProbeId> = BTreeSet::new();
        let mut running: BTreeMap<RunId, Stamp> = BTreeMap::new();
        let mut silence = tokio::time::interval(SILENCE_EVERY);
        let mut silent_since: Option<Stamp> = None;
        let streams = Arc::new(AtomicBool::new(false));
        // Ray's membership is asked for again and again, by which its stream knows that it is wanted.
        let members = Arc::new(Notify::new());
        let why = {
            let told = readings::Told {
                container: &seen,
                runs: &streams,
            };
            let stream = readings::watch(&self.setup, session.clone(), told);
            tokio::pin!(stream);
            let log = follow::follow(
                &self.setup,
                session.clone(),
                watched,
                self.choice.clone(),
                &mut self.log,
            );
            tokio::pin!(log);
            loop {
                tokio::select! {
                    why = session.closed() => break why,
                    why = &mut log => break why,
                    why = &mut stream => break why,
                    request = self.inbox.recv() => match request {
                        None => return Ended::Stopped,
                        Some(Request::Probe(ProbeId::Ray)) => {
                            members.notify_one();
                            if probing.insert(ProbeId::Ray) {
                                jobs.spawn(ray_job(Job::of(&self.setup, session), Arc::clone(&members)));
                            }
                        }
                        Some(Request::Probe(id)) => {
                            if probing.insert(id) {
                                jobs.spawn(probe_job(Job::of(&self.setup, session), id, seen.clone(), Arc::clone(&streams)));
                            }
                        }
                        Some(Request::Run(run, command)) => {
                            running.insert(run, self.setup.feed.now().stamp);
                            jobs.spawn(run_job(Job::of(&self.setup, session), run, command));
                        }
                    },
                    Some(done) = jobs.join_next(), if !jobs.is_empty() => {
                        match done {
                            Ok(Ready::Probe(id)) => {
                                probing.remove(&id);
                            }
                            Ok(Ready::Run(run)) => {
                                running.remove(&run);
                            }
                            Err(_panicked) => {}
                        }
                    }
                    _ = silence.tick() => {
                        let quiet = session.quiet_for();
                        let now = self.setup.feed.now().stamp;
                        let link = match (quiet > SILENT_AFTER, silent_since) {
                            (true, None) => {
                                let since = now.minus(quiet);
                                silent_since = Some(since);
                                Some(LinkState::Silent { since })
                            }
                            (false, Some(_)) => {
                                silent_since = None;
                                Some(LinkState::Up)
                            }
                            (true, Some(_)) | (false, None) => None,
                        };
                        if let Some(link) = link {
                            self.setup.feed.send(Source::Node(self.setup.id), EventKind::Link(link)).await;
                        }
                    }
                }
            }
        };
        self.last_words(jobs, running, &why).await;
        Ended::Lost(why)
    }

    /// Lets what was in flight tell its end, and tells it for steps' commands that don't: a run must not wait for them.
    async fn last_words(&self, mut jobs: JoinSet<Ready>, mut running: BTreeMap<RunId, Stamp>, why: &str) {
        let drain = async {
            while let Some(done) = jobs.join_next().await {
                if let Ok(Ready::Run(run)) = done {
                    running.remove(&run);
                }
            }
        };
        let _late = tokio::time::timeout(LAST_WORDS, drain).await;
        jobs.shutdown().await;
        for (run, started) in running {
            let done = CommandDone {
                run,
                exit: Exit::Unknown(why.to_owned()),
                stdout: Vec::new(),
                stderr: Vec::new(),
                took_ms: self.setup.feed.now().stamp.0.saturating_sub(started.0),
            };
            self.setup.feed.send(self.source(), EventKind::CommandDone(done)).await;
        }
    }
}

/// Answers a request while there is no connection.
async fn refuse(setup: &NodeSetup, request: Request) {
    match request {
        Request::Probe(probe) => {
            let why = "there is no connection to the node".to_owned();
            setup
                .feed
                .send(Source::Node(setup.id), EventKind::ProbeFailed { probe, why })
                .await;
        }
        Request::Run(run, command) => {
            exec::run(
                None,
                &setup.feed,
                &setup.masker,
                setup.id,
                run,
                Purpose::Step,
                command,
                Ok(None),
            )
            .await;
        }
    }
}
