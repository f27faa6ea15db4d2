//! The actor of one node.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::config::Config;
use crate::domain::command::{Command, Exit};
use crate::domain::event::{EventKind, Facts, ProbeId, Purpose};
use crate::domain::link::{LinkError, LinkErrorKind, LinkState};
use crate::domain::{NodeId, Role, RunId, Source, Stamp};
use crate::log::Masker;
use crate::probe::{self, logs::Follower};
use crate::ssh::{HopHandle, Reporter, Session, Settings, Target};

use super::ask;
use super::exec;
use super::feed::Feed;
use super::follow::{self, SharedLog, Watched};

/// Requests that wait for the actor; one more probe is left out, one more command waits.
const REQUESTS: usize = 64;

/// How often the peer's silence is looked at.
const SILENCE_EVERY: Duration = Duration::from_millis(500);

/// Silence that is told. Keepalives make a healthy peer speak more often than this.
const SILENT_AFTER: Duration = Duration::from_secs(4);

/// First wait before another try to connect.
const RETRY_FIRST: Duration = Duration::from_secs(1);

/// Longest wait before another try to connect.
const RETRY_MOST: Duration = Duration::from_secs(30);

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
    /// Hides secrets.
    pub masker: Arc<Masker>,
}

/// What others hold of an actor.
pub struct NodeHandle {
    requests: mpsc::Sender<Request>,
    session: watch::Receiver<Option<Session>>,
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
    let role = setup.config.node(setup.id).map_or(Role::Worker, |n| n.role);
    let follower = follow::follower(&setup.config, role);
    let task = tokio::spawn(
        Task {
            setup,
            inbox,
            connected,
            follower,
        }
        .life(),
    );
    NodeHandle {
        requests,
        session,
        task,
    }
}

struct Task {
    setup: NodeSetup,
    inbox: mpsc::Receiver<Request>,
    connected: watch::Sender<Option<Session>>,
    follower: Follower,
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
        let mut wait = RETRY_FIRST;
        loop {
            self.setup
                .feed
                .send(self.source(), EventKind::Link(LinkState::Connecting))
                .await;
            let tried = {
                let s = &self.setup;
                let dial = Session::connect(&s.target, s.via.clone(), &s.settings, s.reporter.clone(), self.source());
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
            match tried {
                None => return,
                Some(Ok(session)) => {
                    wait = RETRY_FIRST;
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
                            let text = format!("the connection to {} was lost: {why}", self.setup.target.name);
                            let error = LinkError {
                                kind: LinkErrorKind::Lost,
                                text,
                                fix: None,
                            };
                            self.down(error, Some(wait)).await;
                        }
                    }
                }
                Some(Err(error)) => {
                    let again = worth_retrying(error.kind).then_some(wait);
                    self.down(error, again).await;
                    if again.is_none() {
                        // A person must act first; the inbox is still answered.
                        while let Some(request) = self.inbox.recv().await {
                            refuse(&self.setup, request).await;
                        }
                        return;
                    }
                }
            }
            if !self.pause(wait).await {
                return;
            }
            wait = (wait * 2).min(RETRY_MOST);
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

    /// Waits before the next try, answering requests. False when the actor must end.
    async fn pause(&mut self, wait: Duration) -> bool {
        let until = tokio::time::sleep(wait);
        tokio::pin!(until);
        loop {
            tokio::select! {
                () = &mut until => return true,
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
        let mut jobs: JoinSet<Option<ProbeId>> = JoinSet::new();
        let mut probing: BTreeSet<ProbeId> = BTreeSet::new();
        let mut silence = tokio::time::interval(SILENCE_EVERY);
        let mut silent_since: Option<Stamp> = None;
        let log = follow::follow(&self.setup, session.clone(), watched, &mut self.follower);
        tokio::pin!(log);
        loop {
            tokio::select! {
                why = session.closed() => return Ended::Lost(why),
                why = &mut log => return Ended::Lost(why),
                request = self.inbox.recv() => match request {
                    None => return Ended::Stopped,
                    Some(Request::Probe(id)) => {
                        if probing.insert(id) {
                            jobs.spawn(probe_job(Job::of(&self.setup, session), id, seen.clone()));
                        }
                    }
                    Some(Request::Run(run, command)) => {
                        jobs.spawn(run_job(Job::of(&self.setup, session), run, command));
                    }
                },
                Some(done) = jobs.join_next(), if !jobs.is_empty() => {
                    if let Ok(Some(id)) = done {
                        probing.remove(&id);
                    }
                }
                _ = silence.tick() => {
                    let quiet = session.quiet_for();
                    let now = self.setup.feed.now().stamp;
                    let link = match (quiet > SILENT_AFTER, silent_since) {
                        (true, None) => {
                            let since = Stamp(now.0.saturating_sub(crate::domain::time::millis(quiet)));
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
    }
}

/// Whether another try can go better without a person.
fn worth_retrying(kind: LinkErrorKind) -> bool {
    match kind {
        LinkErrorKind::Unreachable | LinkErrorKind::ViaDown | LinkErrorKind::Lost => true,
        LinkErrorKind::HostKeyUnknown
        | LinkErrorKind::HostKeyChanged
        | LinkErrorKind::Refused
        | LinkErrorKind::Local => false,
    }
}

/// What a job of its own needs.
struct Job {
    id: NodeId,
    config: Arc<Config>,
    feed: Feed,
    masker: Arc<Masker>,
    session: Session,
}

impl Job {
    fn of(setup: &NodeSetup, session: &Session) -> Self {
        Self {
            id: setup.id,
            config: setup.config.clone(),
            feed: setup.feed.clone(),
            masker: setup.masker.clone(),
            session: session.clone(),
        }
    }
}

async fn probe_job(job: Job, id: ProbeId, seen: watch::Sender<Watched>) -> Option<ProbeId> {
    let Job {
        id: node,
        config,
        feed,
        masker,
        session,
    } = job;
    let source = Source::Node(node);
    let asked = feed.now();
    let command = ask::command(id, &config);
    let run = feed.next_run();
    let output = exec::run(Some(session), &feed, &masker, node, run, Purpose::Probe(id), command).await;
    let unanswered = match &output.exit {
        Exit::Code(_) | Exit::Signal(_) => None,
        Exit::TimedOut => Some("the node did not answer in time".to_owned()),
        Exit::NotStarted(why) | Exit::Unknown(why) => Some(why.clone()),
    };
    if let Some(why) = unanswered {
        feed.send(source, EventKind::ProbeFailed { probe: id, why }).await;
        return Some(id);
    }
    let (facts, problems) = probe::parse(id, &output);
    if facts.is_empty() {
        let why = problems
            .first()
            .map_or_else(|| "the probe printed nothing".to_owned(), |p| p.text.clone());
        feed.send(source, EventKind::ProbeFailed { probe: id, why }).await;
    }
    for fact in facts {
        if let Facts::Containers(containers) = &fact {
            let now = Watched::of(containers, &config.container.name);
            seen.send_if_modified(|old| std::mem::replace(old, now.clone()) != now);
        }
        feed.send_at(source, asked, EventKind::Facts(fact)).await;
    }
    if id == ProbeId::Node {
        feed.send(source, EventKind::Problems(problems)).await;
    }
    Some(id)
}

async fn run_job(job: Job, run: RunId, command: Command) -> Option<ProbeId> {
    exec::run(
        Some(job.session),
        &job.feed,
        &job.masker,
        job.id,
        run,
        Purpose::Step,
        command,
    )
    .await;
    None
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
            exec::run(None, &setup.feed, &setup.masker, setup.id, run, Purpose::Step, command).await;
        }
    }
}
