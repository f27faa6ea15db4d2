//! The state of the console.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::config::Config;
use crate::diagnose::Evidence;
use crate::domain::command::{Command, Exit};
use crate::domain::container::Container;
use crate::domain::event::{Purpose, Subject};
use crate::domain::intent::{Mode, Pane};
use crate::domain::link::{LinkError, LinkState};
use crate::domain::load::EarlierLoad;
use crate::domain::logs::{ContainerEnd, LogChoice, LogFlow, LogSource};
use crate::domain::observed::Observed;
use crate::domain::problem::Problem;
use crate::domain::question::Question;
use crate::domain::secret::SecretFrom;
use crate::domain::serving::{NoToken, ServeFacts};
use crate::domain::{NodeId, Now, Reading, RunId, Source, Stamp, Wall, When};
use crate::measure::{Figures, Window};
use crate::plan::{Machine, Plan};

use super::bench::BenchView;
use super::flow::Flow;
use super::load::Load;
use super::load::trend::Trends;
use super::loss::Losses;
use super::ray::RayView;
use super::restarts::Restarts;
use super::schedule::Asked;
use super::series::Series;

/// Commands kept in the list; the oldest that has ended goes first.
pub const COMMANDS: usize = 500;

/// Notices kept.
pub const NOTICES: usize = 50;

/// Earlier loads that a time left is told from: of the latest ones, so that it follows what has changed since.
pub const EARLIER: usize = 5;

/// Everything that the console knows.
#[derive(Debug, Clone)]
pub struct State {
    /// The checked configuration.
    pub config: Arc<Config>,
    /// Switches of this console.
    pub options: Options,
    /// Secrets that the configuration names and that have no value here, each with why.
    pub unset: Vec<(SecretFrom, String)>,
    /// When the console started.
    pub started: Now,
    /// Time of the latest event.
    pub now: Now,
    /// What is known of the cluster.
    pub observed: Observed,
    /// Jump hosts, in the config's order.
    pub hops: Vec<LinkState>,
    /// Why each jump host was down last, while it is not up again.
    pub hop_errors: Vec<Option<LastError>>,
    /// Since when each jump host has been tried without a connection.
    pub(super) hop_tried: Vec<Option<When>>,
    /// Nodes, in the config's order.
    pub nodes: Vec<NodeView>,
    /// The model server.
    pub server: ServerView,
    /// Where Ray's membership comes from, and since when its nodes are as they are.
    pub ray: RayView,
    /// Plan that waits for Enter.
    pub plan: Option<Plan>,
    /// The latest run: it stays on the screen until the next.
    pub run: Option<Machine>,
    /// Commands that ran, oldest first.
    pub commands: VecDeque<CommandEntry>,
    /// Open questions, oldest first.
    pub questions: VecDeque<Question>,
    /// Things to tell, newest last.
    pub notices: VecDeque<Notice>,
    /// Earlier loads of the configured model with the same parameters, oldest first; [`EARLIER`] at most.
    pub earlier: Vec<EarlierLoad>,
    /// What may say why something failed.
    pub evidence: Evidence,
    /// The latest throughput test.
    pub bench: Option<BenchView>,
    /// When the operator pressed a key that means something last.
    pub pressed: Stamp,
    /// The screen.
    pub screen: Screen,
    /// Whether the console is leaving.
    pub quit: Quit,
    /// When the shown plan was made: what its run starts carries that time.
    pub(super) planned: Wall,
    /// The same of the runs of this console.
    pub(super) own: VecDeque<Wall>,
    /// What was said to have failed before then has kept the server from nothing: it was ready after that.
    pub(super) survived: Option<Stamp>,
    /// Why the first token of this start of the server failed.
    pub(super) token_failed: Option<NoToken>,
    /// When a token was asked for last; `None` when none was since the server's start.
    pub(super) token_asked: Option<Stamp>,
    /// Since when its port refuses, while it does.
    pub(super) refused_since: Option<Stamp>,
    /// The model server's processes when they were seen last before none was, and when that was.
    pub(super) unseen: Option<(ServeFacts, Stamp)>,
    /// The processes of the model server when it answered last, in this start of it.
    pub(super) served: BTreeSet<u32>,
    /// When the server that answered the latest good scrape was started, as it says itself.
    pub(super) server_started: Option<f64>,
    /// Whether the server was seen down, loading or broken since it was ready last: that it becomes ready is then news.
    pub(super) awaited: bool,
    /// Whether the latest scrape failed.
    pub(super) metrics_failed: bool,
    /// When each probe was asked last.
    pub(super) asked: BTreeMap<Asked, Stamp>,
    /// The container of each node that was seen last.
    pub(super) containers: BTreeMap<NodeId, Started>,
    /// Nodes that were members of Ray since their container was started.
    pub(super) joined: BTreeSet<NodeId>,
    /// What was last seen of the head's container that tells whether its end is a failure.
    pub(super) head_seen: HeadSeen,
    /// What the server that is proven has lost.
    pub(super) losses: Losses,
}

/// What this console knows of the life of the head's container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum HeadSeen {
    /// It was never seen to run.
    #[default]
    Never,
    /// It was seen to run.
    Ran,
    /// The same, and it was stopped from here since.
    StoppedHere,
}

/// One life of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Started {
    /// Its id.
    pub id: String,
    /// When it was started, as Docker prints it.
    pub at: Option<String>,
}

impl Started {
    /// The life that a container is in.
    pub fn of(container: &Container) -> Self {
        Self {
            id: container.id.clone(),
            at: container.started_at.clone(),
        }
    }
}

/// Switches of a console.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Options {
    /// Never ask the server for a token: say *answering* instead of *ready*.
    pub no_probe: bool,
}

/// What the screen shows of a node beside its readings.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct NodeView {
    /// The load of the model, as the node's log tells it.
    pub load: Load,
    /// When the line with which it begins was written, by the node's own clock: read once more it begins nothing.
    pub(super) banner: Option<Wall>,
    /// What moves on it.
    pub trends: Trends,
    /// Its log.
    pub log: LogMeta,
    /// How often its container is restarted.
    pub restarts: Restarts,
    /// How the container of its log ended last, and when that was seen.
    pub ended: Option<(ContainerEnd, Stamp)>,
    /// Since when commands could run on it; `None` when they can't.
    pub linked_at: Option<Stamp>,
    /// Why the connection was down last, while it is not up again.
    pub last_error: Option<LastError>,
    /// Since when it has been tried without a connection.
    pub(super) tried: Option<When>,
    /// What the latest probes found wrong.
    pub problems: Vec<Problem>,
    /// What the node says that it can't read now.
    pub unread: BTreeMap<Subject, Unread>,
    /// Paces at which it reads what it reads at another than usual.
    pub paces: BTreeMap<Subject, Duration>,
    /// The stream of its readings.
    pub watch: Watch,
    /// GPU utilisation in percent, the mean over the node's GPUs.
    pub utilization: Series,
    /// Memory in use in GiB: the GPUs' own, or the host's where the GPU shares it.
    pub memory: Series,
}

/// What a node can't read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unread {
    /// Why, as a fragment.
    pub why: String,
    /// Since when.
    pub since: Stamp,
}

/// The stream of a node's readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub enum Watch {
    /// There is no connection.
    #[default]
    None,
    /// It runs, as this run.
    Runs(RunId),
    /// It does not run, since then: it has not begun yet, or ended and is begun again.
    Ended(Stamp),
}

/// Why a connection was down last: the try that is under way may end in the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LastError {
    /// Why.
    pub error: LinkError,
    /// When it was found.
    pub at: Stamp,
    /// Since when there has been no connection: tries that fail in between do not begin it anew. One that was never up was found so with the first try.
    pub since: When,
}

/// Where a node's log stands.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct LogMeta {
    /// Lines seen in all, with those of the console's own.
    pub seq: u64,
    /// Lines that the ring dropped.
    pub dropped: u64,
    /// How it keeps up with what is printed.
    pub flow: LogFlow,
    /// When its last line was written.
    pub at: Option<When>,
    /// When that line was read.
    pub came: Option<Stamp>,
    /// The latest moment at which one of its lines is known to have been written.
    pub last: Option<Stamp>,
    /// Which of the node's logs is shown.
    pub choice: LogChoice,
    /// Which one would be without a word of the operator's.
    pub wish: LogChoice,
    /// Which one the operator has asked for.
    pub asked: Option<LogChoice>,
    /// What it is read from, and since when; `None` before that is known.
    pub source: Option<(LogSource, Stamp)>,
    /// Whether that is only since when it is known: that there is nothing to read was found so, and not seen to become so.
    pub found: bool,
}

impl LogMeta {
    /// Since when the log is read from where it is, or there is nothing to read.
    #[must_use]
    pub fn source_since(&self) -> Option<When> {
        let (_, stamp) = self.source.as_ref()?;
        Some(When {
            stamp: *stamp,
            found: self.found,
        })
    }

    /// Lines of the log's own: without those that the console has written into it.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.seq.saturating_sub(self.flow.own)
    }
}

/// The model server as the screen shows it.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct ServerView {
    /// Where it stands.
    pub state: ServingState,
    /// Since when.
    pub since: Stamp,
    /// Whether that is only since when it is known: it was found so, not seen to become so.
    pub found: bool,
    /// Generated tokens per second, over the seconds of `live`.
    pub generation: Reading<f64>,
    /// Prompt tokens per second, over the same time.
    pub prompt: Reading<f64>,
    /// Time that the two cover: [`crate::measure::window::LIVE`], less after the first scrapes.
    pub live: Duration,
    /// History of `generation`, a point a scrape: what was shown then.
    pub generation_history: Series,
    /// History of `prompt`, of the same kind.
    pub prompt_history: Series,
    /// The scrapes that `figures` come from.
    pub window: Window,
    /// What it did in the window.
    pub figures: Figures,
    /// Whether its tokens flow.
    pub flow: Flow,
    /// After which moment it has counted tokens for sure: the older one of the latest two scrapes between which their count rose.
    pub(super) counted: Option<Stamp>,
}

impl ServerView {
    /// The time that the rates of now cover, `10 s`, in whole seconds: scrapes a second apart come a little earlier or later. `None` where there is none.
    #[must_use]
    pub fn live_text(&self) -> Option<String> {
        let seconds = self.live.as_secs_f64().round().max(1.0);
        (!self.live.is_zero()).then(|| format!("{seconds} s"))
    }
}

/// Where the model server stands.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServingState {
    /// Nothing is known, and why.
    #[default]
    Unknown,
    /// No process, and the port refuses.
    Down,
    /// A process runs and the port refuses, as it has since the process began.
    Loading,
    /// /health says 200; no token came back yet.
    Answering,
    /// A token came back.
    Ready,
    /// It was ready, and something is missing now.
    Degraded(String),
    /// It is on its way out: it says so, or has just closed its port, and its process is there.
    Stopping,
    /// It ended or broke, and why.
    Failed(String),
}

impl ServingState {
    /// The word on the screen and in JSON.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Down => "down",
            Self::Loading => "loading",
            Self::Answering => "answering",
            Self::Ready => "ready",
            Self::Degraded(_) => "degraded",
            Self::Stopping => "stopping",
            Self::Failed(_) => "failed",
        }
    }

    /// Whether the server answers requests, as far as is known.
    #[must_use]
    pub fn answers(&self) -> bool {
        match self {
            Self::Answering | Self::Ready | Self::Degraded(_) => true,
            Self::Unknown | Self::Down | Self::Loading | Self::Stopping | Self::Failed(_) => false,
        }
    }
}

/// One command in the list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CommandEntry {
    /// Which.
    pub run: RunId,
    /// Where.
    pub node: NodeId,
    /// What for.
    pub purpose: Purpose,
    /// What.
    pub command: Command,
    /// When it started (the latest time, for a probe that repeats).
    pub started: Now,
    /// How it ended and how long it took in milliseconds; `None` while it runs.
    pub ended: Option<(Exit, u64)>,
    /// Times it ran: a probe that repeats is one line.
    pub times: u64,
    /// Last lines of its output.
    pub output: Vec<String>,
}

/// Something to tell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Notice {
    /// When.
    pub at: Now,
    /// About what.
    pub source: Source,
    /// One sentence.
    pub text: String,
}

/// What the screen shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Screen {
    /// What stands over the panes.
    pub mode: Mode,
    /// The focused pane.
    pub focus: Pane,
    /// The node that was focused last: it stays in sight where only one node has a pane.
    pub node: NodeId,
    /// Whether the focused pane has the whole screen.
    pub zoom: bool,
    /// Where each log is scrolled to: the number of the last visible line; a pane that follows has no entry.
    pub held: BTreeMap<NodeId, u64>,
    /// Lines that an overlay is scrolled down by.
    pub overlay_top: u16,
    /// What comes back when that is closed, the next one last, each with the lines that it was scrolled down by; each mode once at most.
    pub beneath: Vec<(Mode, u16)>,
}

impl Default for Screen {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            focus: Pane::Node(0),
            node: NodeId(0),
            zoom: false,
            held: BTreeMap::new(),
            overlay_top: 0,
            beneath: Vec::new(),
        }
    }
}

impl Screen {
    /// How far the steps of the run are scrolled down where they are on the screen, be it under something else; `None` where they are not.
    #[must_use]
    pub fn steps_top(&self) -> Option<u16> {
        let shown = [(self.mode, self.overlay_top)];
        let mut all = self.beneath.iter().chain(&shown);
        all.find(|(mode, _)| *mode == Mode::Run).map(|(_, top)| *top)
    }
}

/// Whether the console is leaving.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub enum Quit {
    /// No.
    #[default]
    No,
    /// Asked once: no new steps, commands in flight are waited for.
    Asked,
    /// Asked again.
    Now,
}

impl State {
    /// Whether every node has answered once, or can't.
    #[must_use]
    pub fn nodes_answered(&self) -> bool {
        self.observed.nodes.iter().all(|n| {
            let asked =
                n.memory.asked() && n.containers.asked() && n.gpus.asked() && n.sockets.asked() && n.fabric.asked();
            n.link.is_down() || (n.link.usable() && asked)
        })
    }

    /// Whether every node has told all that a plan rests on, or can't: a plan made earlier holds a pull of an image that may be there.
    #[must_use]
    pub fn plannable(&self) -> bool {
        let images = self.observed.nodes.iter().all(|n| n.link.is_down() || n.image.asked());
        images && self.nodes_answered()
    }

    /// Nothing known yet; [`State::unset`] and [`State::earlier`] are for the caller to fill.
    #[must_use]
    pub fn new(config: Arc<Config>, options: Options, started: Now) -> Self {
        let nodes = config.nodes.len();
        Self {
            hops: vec![LinkState::Idle; config.ssh.jump.len()],
            hop_errors: vec![None; config.ssh.jump.len()],
            hop_tried: vec![None; config.ssh.jump.len()],
            nodes: vec![NodeView::default(); nodes],
            observed: Observed::of(nodes),
            config,
            options,
            unset: Vec::new(),
            started,
            now: started,
            server: ServerView {
                since: started.stamp,
                ..ServerView::default()
            },
            ray: RayView::default(),
            plan: None,
            run: None,
            commands: VecDeque::new(),
            questions: VecDeque::new(),
            notices: VecDeque::new(),
            earlier: Vec::new(),
            evidence: Evidence::default(),
            bench: None,
            pressed: started.stamp,
            screen: Screen::default(),
            quit: Quit::No,
            planned: started.wall,
            own: VecDeque::new(),
            survived: None,
            unseen: None,
            token_failed: None,
            token_asked: None,
            refused_since: None,
            served: BTreeSet::new(),
            server_started: None,
            awaited: false,
            metrics_failed: false,
            asked: BTreeMap::new(),
            containers: BTreeMap::new(),
            joined: BTreeSet::new(),
            head_seen: HeadSeen::Never,
            losses: Losses::default(),
        }
    }

    /// The panes, in the order of their numbers.
    pub fn panes(&self) -> impl Iterator<Item = Pane> + use<> {
        let nodes = u16::try_from(self.nodes.len()).unwrap_or(u16::MAX);
        let bench = self.bench.is_some().then_some(Pane::Bench);
        (0..nodes)
            .map(Pane::Node)
            .chain([Pane::Ray, Pane::Serving])
            .chain(bench)
    }

    /// Whether a model server is there or on its way, so that what the log says of a load is about it and not about one that is gone.
    #[must_use]
    pub fn loads(&self) -> bool {
        let head = self.observed.node(self.config.head());
        let runs = head
            .and_then(|n| n.serve.value())
            .is_some_and(|s| !s.processes.is_empty());
        runs || self.server.state == ServingState::Loading || self.server.state.answers()
    }

    /// Whether a run goes on.
    #[must_use]
    pub fn run_under_way(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.outcome().is_none())
    }

    /// Why a throughput test can't be started now; `None` when it can.
    #[must_use]
    pub fn test_refusal(&self) -> Option<String> {
        let state = &self.server.state;
        (!state.answers()).then(|| {
            format!(
                "a throughput test needs a server that answers; this one is {}",
                state.word()
            )
        })
    }

    /// The node whose log is in front, when one is.
    #[must_use]
    pub fn focused_node(&self) -> Option<NodeId> {
        match self.screen.focus {
            Pane::Node(n) => Some(NodeId(n)),
            Pane::Ray | Pane::Serving | Pane::Bench => None,
        }
    }

    /// The node that is focused, or was last.
    #[must_use]
    pub fn node_in_sight(&self) -> NodeId {
        self.focused_node().unwrap_or(self.screen.node)
    }
}
