//! The loop's body: take events, update, carry out effects.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use secrecy::SecretString;
use tokio::sync::mpsc;
use tokio::time::{Interval, MissedTickBehavior};

use crate::domain::bench::BenchEvent;
use crate::domain::command::Exit;
use crate::domain::effect::{Effect, RunOutcome};
use crate::domain::event::{CommandDone, Event, EventKind, Purpose};
use crate::domain::intent::Intent;
use crate::domain::load::EarlierLoad;
use crate::domain::question::Answer;
use crate::domain::step::StepEvent;
use crate::domain::{NodeId, Now, QuestionId, Source};
use crate::log::LogWindows;
use crate::model::state::EARLIER;
use crate::model::{self, State};
use crate::node::{Feed, NodeHandle, SharedLog};
use crate::record::{earlier_loads, keep_load};
use crate::report;
use crate::ssh::{HopHandle, Reply};

use super::bench::BenchRunner;
use super::questions::Questions;
use super::server::ServerAsker;

/// How often time alone moves the state on.
pub(super) const TICK: Duration = Duration::from_millis(250);

/// Events taken in one go before the front may draw.
const BATCH: usize = 256;

/// Longest wait of a front end for commands in flight when it leaves.
pub const LEAVE_WAIT: Duration = Duration::from_secs(5);

/// What the front end has to do.
#[derive(Debug, Clone, PartialEq)]
pub enum ForFront {
    /// Something visible may have changed.
    Redraw,
    /// Ring the bell and send a desktop notice.
    Notify(String),
    /// Put text on the clipboard.
    Copy(String),
    /// News of a step.
    Step(StepEvent),
    /// The run is over.
    RunOver(RunOutcome),
    /// Leave; `now` means without waiting.
    Quit {
        /// Do not wait.
        now: bool,
    },
}

/// The console without a terminal.
pub struct Console {
    pub(super) state: State,
    pub(super) feed: Feed,
    pub(super) events: mpsc::Receiver<Event>,
    pub(super) ticker: Interval,
    pub(super) hops: Vec<HopHandle>,
    pub(super) nodes: Vec<NodeHandle>,
    pub(super) logs: Vec<SharedLog>,
    pub(super) questions: Arc<Questions>,
    pub(super) server: ServerAsker,
    pub(super) bench: BenchRunner,
    pub(super) loads: PathBuf,
}

impl Console {
    /// What is known.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The time now.
    #[must_use]
    pub fn now(&self) -> Now {
        self.feed.now()
    }

    /// Copies of log lines: for each node the last `rows` lines up to and with number `last` (or the newest).
    #[must_use]
    pub fn windows(&self, wanted: &[(NodeId, Option<u64>, usize)]) -> LogWindows {
        let mut windows = LogWindows::default();
        for (node, last, rows) in wanted {
            if let Some(log) = self.logs.get(node.index()) {
                let log = log.lock().unwrap_or_else(PoisonError::into_inner);
                let window = match last {
                    Some(last) => log.window((last + 1).saturating_sub(*rows as u64), *rows),
                    None => log.tail(*rows),
                };
                windows.0.insert(*node, window);
            }
        }
        windows
    }

    /// Waits for something to happen and takes it, with all that happened beside it. Cancel-safe.
    pub async fn step(&mut self) -> Vec<ForFront> {
        let first = tokio::select! {
            event = self.events.recv() => event,
            _ = self.ticker.tick() => None,
        };
        let mut front = Vec::new();
        let tick = Event {
            source: Source::Clock,
            at: self.feed.now(),
            kind: EventKind::Tick,
        };
        self.take(first.unwrap_or(tick), &mut front);
        for _ in 1..BATCH {
            let Ok(event) = self.events.try_recv() else { break };
            self.take(event, &mut front);
        }
        front.push(ForFront::Redraw);
        front
    }

    /// Takes what the operator wants.
    pub fn intent(&mut self, intent: Intent) -> Vec<ForFront> {
        let mut front = Vec::new();
        let event = Event {
            source: Source::Operator,
            at: self.feed.now(),
            kind: EventKind::Intent(intent),
        };
        self.take(event, &mut front);
        front.push(ForFront::Redraw);
        front
    }

    /// Hands a secret answer to the waiting end; the state learns only that it was given.
    pub fn reply_secret(&mut self, id: QuestionId, secret: SecretString) -> Vec<ForFront> {
        self.questions.reply(id, Reply::Secret(secret));
        self.intent(Intent::Answer(id, Answer::Given))
    }

    fn take(&mut self, event: Event, front: &mut Vec<ForFront>) {
        let tested = matches!(event.kind, EventKind::Bench(BenchEvent::Done { .. }));
        for effect in model::update(&mut self.state, event) {
            self.carry_out(effect, front);
        }
        if tested {
            let ended = self.feed.now().wall;
            if let Some(result) = report::bench::bench(&self.state, ended) {
                self.bench.save(result, ended);
            }
        }
    }

    fn carry_out(&mut self, effect: Effect, front: &mut Vec<ForFront>) {
        match effect {
            Effect::Probe(node, probe) => {
                if let Some(handle) = self.nodes.get(node.index()) {
                    handle.probe(probe);
                }
            }
            Effect::ProbeServer(probe) => self.server.ask(probe),
            Effect::Run { run, node, command } => {
                let taken = self
                    .nodes
                    .get(node.index())
                    .is_some_and(|handle| handle.run(run, command));
                if !taken {
                    let why = "the node's actor is busy or gone".to_owned();
                    let exit = Exit::NotStarted(why);
                    let done = CommandDone {
                        run,
                        exit,
                        stdout: Vec::new(),
                        stderr: Vec::new(),
                        took_ms: 0,
                    };
                    let kind = EventKind::CommandDone(done);
                    self.take(
                        Event {
                            source: Source::Node(node),
                            at: self.feed.now(),
                            kind,
                        },
                        front,
                    );
                }
            }
            Effect::ShowLog(node, choice) => {
                if let Some(handle) = self.nodes.get(node.index()) {
                    handle.show(choice);
                }
            }
            Effect::StartBench(profile) => self.bench.start(profile),
            Effect::CancelBench => self.bench.cancel(),
            Effect::Reconnect => {
                self.hops.iter().for_each(HopHandle::retry);
                self.nodes.iter().for_each(NodeHandle::retry);
            }
            Effect::Answer(id, answer) => self.questions.answer(id, answer),
            Effect::Notify(text) => front.push(ForFront::Notify(text)),
            Effect::Copy(text) => front.push(ForFront::Copy(text)),
            Effect::Step(event) => front.push(ForFront::Step(event)),
            Effect::RunOver(outcome) => front.push(ForFront::RunOver(outcome)),
            Effect::KeepLoad(load) => self.keep(load),
            Effect::ReadLoads => self.read_loads(),
            Effect::Quit { now } => front.push(ForFront::Quit { now }),
        }
    }

    /// Writes how long a load took; that it can't be written is told and no more.
    fn keep(&self, load: EarlierLoad) {
        let (feed, file) = (self.feed.clone(), self.loads.clone());
        tokio::spawn(async move {
            if let Err(why) = keep_load(file, load).await {
                let text = format!("how long the load took could not be written: {why}");
                feed.send(Source::Clock, EventKind::Notice(text)).await;
            }
        });
    }

    /// Reads what is kept of earlier loads. What the file can't give was told at the start, or is when a load is written.
    fn read_loads(&self) {
        let (feed, file, key) = (self.feed.clone(), self.loads.clone(), self.state.config.load_key());
        tokio::spawn(async move {
            let read = tokio::task::spawn_blocking(move || earlier_loads(&file, &key, EARLIER));
            if let Ok(Ok(loads)) = read.await {
                feed.send(Source::Clock, EventKind::EarlierLoads(loads)).await;
            }
        });
    }

    /// Leaves now. A step's command that is in flight ends with its connection.
    pub async fn shutdown(mut self) -> Left {
        let left = Left {
            cut_short: self.in_flight().collect(),
            mid_run: self.state.run.as_ref().is_some_and(|run| match run.outcome() {
                None | Some(RunOutcome::Aborted | RunOutcome::Unknown) => true,
                Some(RunOutcome::Done | RunOutcome::Failed) => false,
            }),
            goes_on: report::left::running(&self.state),
        };
        self.bench.cancel();
        let stops = self.nodes.into_iter().map(NodeHandle::stop);
        // The actors' last words have nowhere to go.
        self.events.close();
        futures_util::future::join_all(stops).await;
        for hop in self.hops.into_iter().rev() {
            hop.close().await;
        }
        left
    }

    /// Step commands that have not ended, and where they run.
    pub fn in_flight(&self) -> impl Iterator<Item = String> + '_ {
        self.state
            .commands
            .iter()
            .filter(|c| c.purpose == Purpose::Step && c.ended.is_none())
            .map(|c| format!("{} on {}", c.command.line(), self.state.config.node_name(c.node)))
    }
}

/// What a console leaves behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// Steps' commands that were in flight, and where, a line each.
    pub cut_short: Vec<String>,
    /// Whether the latest run had not come to its end.
    pub mid_run: bool,
    /// What runs on the nodes and goes on without a console, as far as it was seen, a line each.
    pub goes_on: Vec<String>,
}

/// The ticker of the loop.
pub(super) fn ticker() -> Interval {
    let mut ticker = tokio::time::interval(TICK);
    ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticker
}

#[cfg(test)]
mod tests {
    use crate::config::{self, EXAMPLE};
    use crate::diagnose::Rules;
    use crate::domain::Wall;
    use crate::domain::load::Stage;
    use crate::model::Options;

    use super::super::Setup;
    use super::*;

    #[tokio::test]
    async fn what_another_console_keeps_meanwhile_is_known_once_it_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let loads = folder.path().join("loads.json");
        let mut config = config::parse(EXAMPLE, "config.example.toml").unwrap();
        // Nothing is there.
        config.ssh.jump[0].login.host = "127.0.0.1".into();
        config.ssh.jump[0].login.port = Some(1);
        let load = EarlierLoad {
            key: config.load_key(),
            model: "tiny".into(),
            ended: Wall(1_000_000),
            stages: vec![(Stage::Weights, Duration::from_secs(60))],
        };
        let setup = Setup {
            config: Arc::new(config),
            options: Options::default(),
            interactive: false,
            known_hosts: Vec::new(),
            home: folder.path().to_owned(),
            results: folder.path().to_owned(),
            rules: Rules::default(),
            notes: Vec::new(),
            loads: loads.clone(),
        };
        let mut console = Console::start(setup).unwrap();
        assert_eq!(console.state().earlier, []);
        keep_load(loads, load.clone()).await.unwrap();
        console.carry_out(Effect::ReadLoads, &mut Vec::new());
        let known = async {
            while console.state().earlier.is_empty() {
                console.step().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), known).await.unwrap();
        assert_eq!(console.state().earlier, [load]);
        console.shutdown().await;
    }
}
