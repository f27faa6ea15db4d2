//! What all headless commands share: the loop with its deadline and its signals.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

use crate::config::Config;
use crate::config::types::Node;
use crate::domain::HopId;
use crate::domain::intent::Intent;
use crate::domain::link::LinkState;
use crate::domain::observed::NodeObserved;
use crate::domain::serving::Health;
use crate::domain::time::human;
use crate::drive::{Console, ForFront, LEAVE_WAIT, Left};
use crate::measure::window::ONE_SCRAPE;
use crate::model::load::verdict::{Judgement, LOOK, QUIET, Verdict};
use crate::model::loading::judge;
use crate::model::state::{LastError, NodeView, ServingState};
use crate::model::{State, held_up, held_up_by};

use super::exit::Exit;
use super::out;

/// Longest wait of `status` for the first answer of every node.
pub(super) const FIRST_ANSWERS: Duration = Duration::from_secs(10);

/// How much longer `status` waits for what is under way when that time is over: where the configured limit of a handshake or of a command ends at the
/// same moment, its word says why there is no answer.
pub(super) const GRACE: Duration = Duration::from_millis(1500);

/// Longest wait of `status` for whether there is a log, and for the first lines of the logs where the server does not serve. A log may be empty.
pub(super) const FIRST_LINES: Duration = Duration::from_millis(1500);

/// Longest wait of `status` for a second look at a load that is silent: that of the verdict, and some time for the answers.
pub(super) const SECOND_LOOK: Duration = LOOK.saturating_add(Duration::from_secs(4));

/// Longest wait for the first answer of every node before something is done: what the configured limits give the farthest node, for a handshake with each
/// hop, one with the node, and a command.
pub(super) fn reaching(config: &Config) -> Duration {
    let hops = |node: &Node| {
        let mut count = 0;
        let mut via = node.via;
        // The config has no cycle; the bound makes that plain here too.
        while let Some(hop) = via.and_then(|id| config.ssh.jump.get(id.index()))
            && count < config.ssh.jump.len()
        {
            count += 1;
            via = hop.via;
        }
        count
    };
    let farthest = config.nodes.iter().map(hops).max().unwrap_or_default();
    let handshakes = u32::try_from(farthest + 1).unwrap_or(u32::MAX);
    let connect = config.limits.connect.saturating_mul(handshakes);
    connect.saturating_add(config.limits.command).max(FIRST_ANSWERS)
}

/// A console with nobody at the screen.
pub(super) struct Headless {
    pub(super) console: Console,
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

/// Why a wait ended.
pub(super) enum Waited {
    /// It is so.
    True,
    /// The time ran out.
    Late,
    /// A signal came.
    Signal(Exit),
}

impl Headless {
    /// Takes over a console.
    ///
    /// # Errors
    /// When signals can't be listened for.
    pub(super) fn new(console: Console) -> std::io::Result<Self> {
        Ok(Self {
            console,
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// One step of the loop.
    ///
    /// # Errors
    /// The exit code of a signal.
    pub(super) async fn step(&mut self) -> Result<Vec<ForFront>, Exit> {
        tokio::select! {
            news = self.console.step() => Ok(news),
            _ = self.interrupt.recv() => Err(Exit::Interrupted),
            _ = self.terminate.recv() => Err(Exit::Terminated),
            // A terminal that is gone ends the program as a request to end does.
            _ = self.hangup.recv() => Err(Exit::Terminated),
        }
    }

    /// Steps until something is so, at most for `limit`.
    pub(super) async fn until(&mut self, limit: Duration, so: impl Fn(&State) -> bool) -> Waited {
        let end = Instant::now() + limit;
        while !so(self.console.state()) {
            match tokio::time::timeout_at(end, self.step()).await {
                Ok(Ok(_news)) => {}
                Ok(Err(exit)) => return Waited::Signal(exit),
                Err(_late) => return Waited::Late,
            }
        }
        Waited::True
    }

    /// Asks a person for yes or no while the console goes on.
    ///
    /// # Errors
    /// The exit code of a signal.
    pub(super) async fn confirm(&mut self, question: &str) -> Result<bool, Exit> {
        let mut answer = out::confirm(question);
        loop {
            tokio::select! {
                yes = &mut answer => return Ok(yes.unwrap_or(false)),
                stepped = self.step() => drop(stepped?),
            }
        }
    }

    /// Ends the console. No further step begins; commands in flight on a node are waited for a little, unless the program was told to end or is
    /// interrupted once more. What they are is said of those that had to be cut short.
    pub(super) async fn leave(self, exit: Exit) -> Exit {
        self.leave_telling(exit, |_left| {}).await
    }

    /// Ends the console as [`Headless::leave`] does, and hands on what is left.
    pub(super) async fn leave_telling(mut self, exit: Exit, tell: impl FnOnce(&Left)) -> Exit {
        self.console.intent(Intent::Quit);
        if exit != Exit::Terminated {
            let _late = tokio::time::timeout(LEAVE_WAIT, self.last_commands()).await;
        }
        let left = self.console.shutdown().await;
        tell(&left);
        let broken_off = matches!(exit, Exit::Interrupted | Exit::Terminated);
        out::left(&left, broken_off, out::Cluster::Stays);
        exit
    }

    /// Steps until no command is in flight, or until a signal.
    async fn last_commands(&mut self) {
        while self.console.in_flight().next().is_some() {
            if self.step().await.is_err() {
                return;
            }
        }
    }
}

/// Whether a connection is being made, or a node that can be reached has not told everything: what it is asked has a limit of its own, whose word says why.
pub(super) fn pending(state: &State) -> bool {
    connecting(state) || !state.nodes_answered()
}

/// Whether a connection is being made.
fn connecting(state: &State) -> bool {
    let nodes = state.observed.nodes.iter().map(|n| &n.link);
    let mut all = state.hops.iter().chain(nodes);
    all.any(|link| *link == LinkState::Connecting)
}

/// Whether the server's state rests on what was asked since the start: rates from two scrapes where there is something to scrape.
pub(super) fn server_answered(state: &State) -> bool {
    let head_down = state
        .observed
        .node(state.config.head())
        .is_none_or(|n| n.link.is_down());
    let seen = &state.observed.server;
    match seen.health.value() {
        _ if head_down => true,
        None => false,
        // Nothing more can be known of a server that doesn't answer where Docker doesn't either.
        Some(Health::Refused | Health::Status(_) | Health::Unreachable(_)) if blind(state) => true,
        // Without a container on the head it is known that there is none.
        Some(_) if !state.observed.ray.asked() => false,
        Some(Health::Ok) => {
            let token = state.options.no_probe || state.server.state != ServingState::Answering;
            let rate = &state.server.generation;
            rate.asked() && rate.reason() != Some(ONE_SCRAPE) && seen.models.asked() && token
        }
        Some(Health::Refused | Health::Status(_) | Health::Unreachable(_)) => match state.server.state {
            ServingState::Unknown => false,
            // Where a load stands is in the log.
            ServingState::Loading => state.nodes.iter().any(|n| n.load.stage.is_some()),
            ServingState::Down
            | ServingState::Answering
            | ServingState::Ready
            | ServingState::Degraded(_)
            | ServingState::Stopping
            | ServingState::Failed(_) => true,
        },
    }
}

/// Whether it was asked which containers the head has, in vain.
fn blind(state: &State) -> bool {
    let head = state.observed.node(state.config.head());
    head.is_some_and(|n| n.containers.asked() && n.containers.value().is_none())
}

/// Whether every log that there is to read has been heard from.
pub(super) fn logs_heard(state: &State) -> bool {
    let name = &state.config.container.name;
    let heard = |(seen, view): (&NodeObserved, &NodeView)| {
        let there = seen.containers.value().is_some_and(|c| c.named(name).is_some());
        !there || !seen.link.usable() || view.log.at.is_some()
    };
    state.observed.nodes.iter().zip(&state.nodes).all(heard)
}

/// Whether it is known of every log that can be asked for whether there is one to read.
pub(super) fn logs_placed(state: &State) -> bool {
    let placed = |(seen, view): (&NodeObserved, &NodeView)| {
        let blind = seen.containers.asked() && seen.containers.value().is_none();
        !seen.link.usable() || blind || view.log.source.is_some()
    };
    state.observed.nodes.iter().zip(&state.nodes).all(placed)
}

/// Whether a load looks dead by its log and was hardly looked at: a little later it is known whether anything moves.
pub(super) fn look_again(state: &State) -> bool {
    let now = state.now.stamp;
    let head = state.nodes.get(state.config.head().index());
    let silent = head
        .and_then(|view| view.log.at)
        .is_some_and(|at| !at.found && at.age(now) > QUIET);
    let early = |judged: Judgement| matches!(judged.verdict, Verdict::Early { .. });
    silent && judge(state, None, now).is_some_and(early)
}

/// The hops and nodes that can't be used, each with why and what to do.
pub(super) fn unreachable(state: &State) -> Vec<String> {
    let hops = state.config.ssh.jump.iter().zip(&state.hops).zip(&state.hop_errors);
    let hops = (0..).map(HopId).zip(hops).filter_map(|(id, ((hop, link), last))| {
        let behind = held_up(state, id);
        let behind = match behind.as_slice() {
            [] => String::new(),
            names => format!("; behind it: {}", names.join(", ")),
        };
        lost(state, &hop.name, link, last.as_ref(), &behind)
    });
    // Nothing is known of a node that its jump host holds up, and of that the jump host's line tells.
    let own = state.config.node_ids().filter(|id| held_up_by(state, *id).is_none());
    let nodes = own.filter_map(|id| {
        let (seen, view) = (state.observed.node(id)?, state.nodes.get(id.index())?);
        lost(
            state,
            state.config.node_name(id),
            &seen.link,
            view.last_error.as_ref(),
            "",
        )
    });
    hops.chain(nodes).collect()
}

/// Why a host can't be reached, with `more` at the end of its line; `None` where it can.
fn lost(state: &State, name: &str, link: &LinkState, last: Option<&LastError>, more: &str) -> Option<String> {
    match link {
        LinkState::Up | LinkState::Silent { .. } => None,
        LinkState::Down { error, .. } => {
            let fix = error.fix.as_ref().map(|f| format!("\n  {f}")).unwrap_or_default();
            Some(format!("{}{more}{fix}", named(name, &error.text)))
        }
        LinkState::Idle | LinkState::Connecting | LinkState::Asking => {
            let waited = human(state.now.stamp.since(state.started.stamp));
            let last = last.map(|l| format!("; last: {}", l.error.text)).unwrap_or_default();
            Some(format!("{name}: no answer yet, after {waited}{last}{more}"))
        }
    }
}

/// A text that begins with a name, once.
fn named(name: &str, text: &str) -> String {
    match text.strip_prefix(name) {
        Some(rest) if rest.starts_with([':', ' ']) => text.to_owned(),
        Some(_) | None => format!("{name}: {text}"),
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{self, EXAMPLE};

    use super::*;

    #[test]
    fn the_wait_for_the_farthest_node_is_what_the_limits_give_it() {
        let mut config = config::parse(EXAMPLE, "config.example.toml").unwrap();
        config.limits.connect = Duration::from_secs(40);
        config.limits.command = Duration::from_secs(20);
        let hops = |config: &mut Config, via| config.nodes.iter_mut().for_each(|n| n.via = via);
        let first = config.nodes[0].via;
        hops(&mut config, None);
        assert_eq!(reaching(&config), Duration::from_secs(60));
        hops(&mut config, first);
        assert_eq!(reaching(&config), Duration::from_secs(100));
        config.limits.connect = Duration::from_secs(1);
        config.limits.command = Duration::from_secs(1);
        assert_eq!(reaching(&config), FIRST_ANSWERS);
    }
}
