//! Jobs beside a node's actor: a probe, Ray's membership, a step's command.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Notify, watch};

use crate::config::Config;
use crate::domain::clock::NodeClock;
use crate::domain::command::{Command, Exit};
use crate::domain::event::{EventKind, Facts, ProbeId, Purpose};
use crate::domain::{NodeId, RunId, Source};
use crate::log::Masker;
use crate::probe;
use crate::ssh::Session;

use super::ask;
use super::exec;
use super::feed::Feed;
use super::follow::Watched;
use super::hide;
use super::secrets::Secrets;
use super::task::NodeSetup;

/// Which job has ended, and has told so.
pub(super) enum Ready {
    Probe(ProbeId),
    Run(RunId),
}

/// What a job of its own needs.
pub(super) struct Job {
    pub(super) id: NodeId,
    pub(super) config: Arc<Config>,
    pub(super) feed: Feed,
    pub(super) masker: Arc<Masker>,
    secrets: Arc<Secrets>,
    session: Session,
}

impl Job {
    pub(super) fn of(setup: &NodeSetup, session: &Session) -> Self {
        Self {
            id: setup.id,
            config: setup.config.clone(),
            feed: setup.feed.clone(),
            masker: setup.masker.clone(),
            secrets: setup.secrets.clone(),
            session: session.clone(),
        }
    }
}

pub(super) async fn probe_job(job: Job, id: ProbeId, seen: watch::Sender<Watched>, streams: Arc<AtomicBool>) -> Ready {
    let Job {
        id: node,
        config,
        feed,
        masker,
        secrets: _,
        session,
    } = job;
    let source = Source::Node(node);
    let asked = feed.now();
    let command = ask::command(id, &config, node);
    let run = feed.next_run();
    let output = exec::run(
        Some(session),
        &feed,
        &masker,
        node,
        run,
        Purpose::Probe(id),
        command,
        Ok(None),
    )
    .await;
    let unanswered = match &output.exit {
        Exit::Code(_) | Exit::Signal(_) => None,
        Exit::TimedOut => Some("the node did not answer in time".to_owned()),
        Exit::NotStarted(why) | Exit::Unknown(why) => Some(why.clone()),
    };
    if let Some(why) = unanswered {
        feed.send(source, EventKind::ProbeFailed { probe: id, why }).await;
        return Ready::Probe(id);
    }
    let (facts, problems) = probe::parse(id, &output);
    let problems = hide::problems(&masker, problems);
    if facts.is_empty() {
        let why = problems
            .first()
            .map_or_else(|| "the probe printed nothing".to_owned(), |p| p.text.clone());
        feed.send(source, EventKind::ProbeFailed { probe: id, why }).await;
    }
    if let Some(clock) = probe::node::clock(&output).filter(|_| id == ProbeId::Node) {
        // It was read somewhere between the question and the answer.
        let clock = clock.map(|clock| NodeClock {
            within: clock.within.saturating_add(output.took),
            ..clock
        });
        feed.send_at(source, asked, EventKind::Clock(clock)).await;
    }
    for fact in facts {
        let fact = hide::facts(&masker, fact);
        if let Facts::Containers(containers) = &fact {
            let now = Watched::of(containers, &config, node);
            seen.send_if_modified(|old| std::mem::replace(old, now.clone()) != now);
        }
        feed.send_at(source, asked, EventKind::Facts(fact)).await;
    }
    // The list of the stream is longer and replaces itself when something changes.
    if id == ProbeId::Node && !streams.load(Ordering::Relaxed) {
        feed.send(source, EventKind::Problems(problems)).await;
    }
    Ready::Probe(id)
}

pub(super) async fn ray_job(job: Job, asked: Arc<Notify>) -> Ready {
    let session = job.session.clone();
    super::ray::follow(&job, &session, &asked).await;
    Ready::Probe(ProbeId::Ray)
}

pub(super) async fn run_job(job: Job, run: RunId, command: Command) -> Ready {
    let secret = command.secret.as_ref().map(|s| job.secrets.get(&s.from)).transpose();
    exec::run(
        Some(job.session),
        &job.feed,
        &job.masker,
        job.id,
        run,
        Purpose::Step,
        command,
        secret,
    )
    .await;
    Ready::Run(run)
}
