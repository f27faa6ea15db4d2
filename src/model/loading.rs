//! What is said of a load: of the whole, and of each node's part in it. The screen, `status` and the run agree on it.
//!
//! A node's part is told by its own log where its engine writes one. Ray's workers write none: their lines stand in the head's log, and between two of
//! them what moves on the node itself tells how far it is. Which of them it was is part of the answer.

use std::time::Duration;

use serde::Serialize;

use crate::domain::count::things;
use crate::domain::event::Subject;
use crate::domain::intent::Action;
use crate::domain::link::LinkState;
use crate::domain::load::Stage;
use crate::domain::serving::Health;
use crate::domain::units::Bytes;
use crate::domain::{NodeId, Stamp, When};
use crate::plan::{StepKind, StepState};

use super::given_up;
use super::load::eta::{self, Eta};
use super::load::trend::Trends;
use super::load::verdict::{self, Case, Judgement, Verdict};
use super::load::{Bar, Load, Rank};
use super::schedule::{HEALTH_EVERY, every, ray_every};
use super::server::{proven, server_since};
use super::state::{NodeView, ServingState, State};

/// Utilisation in percent from which a GPU is at work, and up to which it is idle, where one node's is held against another's.
const AT_WORK: f32 = 80.0;
const AT_REST: f32 = 5.0;

/// Share of the memory that a rank is expected to take up to which an inferred bar goes: that it is all there is for the engine to say.
const INFERRED_MOST: f64 = 0.99;

/// Who tells what a node's load is known from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToldBy {
    /// The log of the node itself.
    OwnLog,
    /// Lines of the node's ranks in the head's log.
    HeadLog,
    /// The head's stage, and what moves on the node: it is inferred.
    Inferred,
    /// The container and the run, seen from outside.
    Outside,
}

/// A node's part of a load.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Its stage.
    pub stage: Stage,
    /// Since when, where that is known.
    pub since: Option<When>,
    /// Its bar.
    pub bar: Option<Bar>,
    /// Bytes: done, of how many. Of a download, or of the weights where their size is known.
    pub bytes: Option<(Bytes, Option<Bytes>)>,
    /// Share of the stage that is done, and whether that is inferred from memory.
    pub share: Option<(f64, bool)>,
    /// Who tells.
    pub told_by: ToldBy,
    /// Whether the stage is a download only by guess: a line says that a model named as on a hub is loaded, and nothing tells of a download. It may come
    /// from the cache of the node.
    pub guessed: bool,
}

impl Part {
    /// The stage's word on the screen.
    #[must_use]
    pub fn word(&self) -> &'static str {
        if self.guessed { "model files" } else { self.stage.word() }
    }
}

/// A node's part of the load; `None` where nothing loads there.
#[must_use]
pub fn part(state: &State, id: NodeId) -> Option<Part> {
    // A server that has failed loads nothing, also where its process is still there.
    if !state.loads() || matches!(state.server.state, ServingState::Failed(_) | ServingState::Stopping) {
        return outside(state, id);
    }
    // What the server shows of itself is more than the last stage that a log tells of.
    let unseen = state.server.state == ServingState::Unknown && proven(state);
    if state.server.state.answers() || unseen {
        let stage = if proven(state) { Stage::Ready } else { Stage::Listening };
        return Some(plain(stage, None, ToldBy::Outside));
    }
    let view = state.nodes.get(id.index())?;
    let head = head_load(state);
    let head_stage = head.and_then(|load| load.stage);
    // The head's last stages are those of the server: every rank is done by then.
    let late = head_stage.filter(|(stage, _)| *stage >= Stage::Warmup && id != state.config.head());
    let own = own_part(&view.load);
    let mut part = if let Some((stage, since)) = late {
        let told_by = own.map_or(ToldBy::HeadLog, |_| ToldBy::OwnLog);
        plain(stage, Some(since), told_by)
    } else if let Some(part) = own {
        part
    } else if let Some(part) = head.and_then(|load| rank_part(state, id, view, load)) {
        part
    } else {
        // Its process runs, and no log has said anything yet.
        let Some((stage, since)) = head_stage else {
            return Some(plain(Stage::Starting, None, ToldBy::Outside));
        };
        let mut part = plain(stage, Some(since), ToldBy::Inferred);
        part.share = inferred(state, view, stage);
        part
    };
    part.guessed = part.stage == Stage::Download && !downloads(state, id, &part);
    Some(part)
}

/// Whether something tells that a node, or with the head any of them, downloads: a bar, bytes, or a cache of models that has grown since.
fn downloads(state: &State, id: NodeId, part: &Part) -> bool {
    let told = head_load(state).is_some_and(|load| load.download.done().is_some());
    let since = part.since.and_then(When::sure).unwrap_or_default();
    let grew = |view: &NodeView| view.trends.cache_grew().is_some_and(|at| at >= since);
    let grows = if id == state.config.head() {
        state.nodes.iter().any(grew)
    } else {
        state.nodes.get(id.index()).is_some_and(grew)
    };
    told || part.bar.is_some() || part.bytes.is_some() || grows
}

/// The load as a whole: the head's part.
#[must_use]
pub fn whole(state: &State) -> Option<Part> {
    part(state, state.config.head())
}

fn plain(stage: Stage, since: Option<When>, told_by: ToldBy) -> Part {
    Part {
        stage,
        since,
        bar: None,
        bytes: None,
        share: None,
        told_by,
        guessed: false,
    }
}

fn own_part(load: &Load) -> Option<Part> {
    let (stage, since) = load.stage?;
    let mut part = plain(stage, Some(since), ToldBy::OwnLog);
    part.bar = load.bar.filter(|bar| bar.total > 0);
    part.share = part.bar.map(|bar| (bar.share(), false));
    if stage == Stage::Download
        && let Some(done) = load.download.done()
    {
        let total = load.download.total();
        part.bytes = Some((done, total));
        if part.bar.is_none() {
            part.share = total.map(|total| (ratio(done, total), false));
        }
    }
    if stage == Stage::Weights
        && let Some(size) = load.checkpoint
    {
        let done = part.share.map(|(share, _)| scaled(size, share));
        part.bytes = done.map(|done| (done, Some(size)));
    }
    Some(part)
}

/// What the head's log says of the ranks on a node: the one that is behind counts.
fn rank_part(state: &State, id: NodeId, view: &NodeView, head: &Load) -> Option<Part> {
    let ranks = ranks_on(state, id, head).filter_map(|rank| Some((rank_stage(head, rank)?, rank.bar)));
    let ((stage, since, told_by), bar) = ranks.min_by_key(|((stage, ..), _)| *stage)?;
    if told_by == ToldBy::Inferred {
        let mut part = plain(stage, Some(since), told_by);
        part.share = inferred(state, view, stage);
        return Some(part);
    }
    let mut part = plain(stage, Some(since), ToldBy::HeadLog);
    part.bar = bar.filter(|bar| bar.total > 0);
    part.share = match part.bar {
        Some(bar) => Some((bar.share(), false)),
        None => inferred(state, view, stage),
    };
    Some(part)
}

/// The stage of a rank of the head's log, since when, and who tells. Such lines come late and in the wrong order.
#[must_use]
pub fn rank_stage(head: &Load, rank: &Rank) -> Option<(Stage, When, ToldBy)> {
    let (stage, since) = rank.stage?;
    if let Some((whole, at)) = head.stage {
        // "Starting to load model" is only a guess at a download: where the whole is at the weights, nothing is downloaded any more.
        let guess = stage == Stage::Download && whole == Stage::Weights;
        if guess || phase(stage) < phase(whole) {
            return Some((whole, at, ToldBy::Inferred));
        }
    }
    Some((stage, since, ToldBy::HeadLog))
}

/// Phases of a start: no rank begins one before every rank has ended the one before, for the executor waits for all of them.
fn phase(stage: Stage) -> u8 {
    match stage {
        Stage::Image | Stage::Container | Stage::Starting | Stage::Placement => 0,
        Stage::Distributed => 1,
        Stage::Download | Stage::Weights => 2,
        Stage::Compile | Stage::KvCache => 3,
        Stage::Graphs => 4,
        Stage::Warmup => 5,
        Stage::Listening => 6,
        Stage::Ready => 7,
    }
}

/// The ranks that a log of the head places on a node.
pub fn ranks_on<'a>(state: &'a State, id: NodeId, head: &'a Load) -> impl Iterator<Item = &'a Rank> {
    head.ranks
        .iter()
        .filter(move |rank| node_of(state, rank.address.as_deref()) == Some(id))
}

/// The node of a rank's address; without one it is the head, whose log it is.
#[must_use]
pub fn node_of(state: &State, address: Option<&str>) -> Option<NodeId> {
    let Some(address) = address else {
        return Some(state.config.head());
    };
    let own = |id: &NodeId| {
        state
            .config
            .node(*id)
            .is_some_and(|n| n.fabric_address == address || n.login.host == address)
    };
    state.config.node_ids().find(own)
}

/// The share of the weights that a rank has in memory, from what its node took since the load began.
fn inferred(state: &State, view: &NodeView, stage: Stage) -> Option<(f64, bool)> {
    if stage != Stage::Weights {
        return None;
    }
    let size = head_load(state)?.checkpoint?;
    let ranks = state.config.serve.tensor_parallel_size.max(1);
    let expected = Bytes(size.0 / u64::from(ranks));
    // What the node held when the load began is known only to who looked then.
    let (began, looked) = (head_load(state)?.started?, view.trends.since()?);
    if began.found || began.stamp < looked {
        return None;
    }
    let grown = view.trends.grown()?;
    Some((ratio(grown, expected).min(INFERRED_MOST), true))
}

/// Before a log has anything to say: a step of the run brings the image or the container.
fn outside(state: &State, id: NodeId) -> Option<Part> {
    let run = state.run.as_ref().filter(|run| run.outcome().is_none())?;
    if !starts(run.plan().action) {
        return None;
    }
    let step = run.current().filter(|step| step.node == Some(id))?;
    let stage = match step.kind {
        StepKind::Pull | StepKind::Image => Stage::Image,
        StepKind::Head | StepKind::Join => Stage::Container,
        StepKind::Membership | StepKind::Serve | StepKind::StopServe | StepKind::StopNode => return None,
    };
    let status = run.steps().get(step.id.index())?;
    match status.state {
        StepState::Checking | StepState::Running | StepState::Verifying => {}
        StepState::Waiting | StepState::Done(_) | StepState::Failed(_) | StepState::Aborted | StepState::Unknown(_) => {
            return None;
        }
    }
    Some(plain(stage, status.started.map(When::at), ToldBy::Outside))
}

/// How the load goes: of a node's part, or with `None` of the whole. `None` where nothing loads, and where it is done.
#[must_use]
pub fn judge(state: &State, id: Option<NodeId>, now: Stamp) -> Option<Judgement> {
    let head = state.config.head();
    let of = part(state, id.unwrap_or(head))?;
    if of.stage == Stage::Ready || state.server.state.answers() {
        return None;
    }
    let mut whole = verdict::judge(&case(state, None, &part(state, head)?, now), now);
    doubt(state, &mut whole);
    let Some(id) = id.filter(|id| *id != head) else {
        return Some(whole);
    };
    let own = verdict::judge(&case(state, Some(id), &of, now), now);
    let others = matches!(
        whole.verdict,
        Verdict::Progressing | Verdict::Slow | Verdict::Waiting(_)
    );
    Some(match own.verdict {
        // A rank that is done with its part before the others says nothing and waits for them.
        Verdict::Stalled { .. } | Verdict::Slow | Verdict::Silent { .. } if others && of.told_by != ToldBy::OwnLog => {
            let name = state.config.node_name(head);
            Judgement {
                verdict: Verdict::Waiting("the other ranks".to_owned()),
                evidence: own
                    .evidence
                    .into_iter()
                    .chain([format!("{name} is {}", whole.verdict.text(now))])
                    .collect(),
                advice: None,
            }
        }
        Verdict::Progressing
        | Verdict::Early { .. }
        | Verdict::Slow
        | Verdict::Waiting(_)
        | Verdict::Stalled { .. }
        | Verdict::Silent { .. } => own,
    })
}

/// What keeps a load from being judged by what its log says: a failure of unknown age that nothing followed. It says what to look at.
fn doubt(state: &State, whole: &mut Judgement) {
    let Some(failure) = given_up::unsure(state).filter(|_| whole.verdict != Verdict::Progressing) else {
        return;
    };
    whole.advice = Some(format!(
        "its log ends with a failure, and nothing tells when that was written, by this server or by one before it: {failure}; \
         read the log of {} before you wait",
        state.config.node_name(state.config.head())
    ));
}

/// When the load began that is under way: with the first line of its server, or with the last step of a run that started something, whichever came later.
/// `None` where nobody saw it.
fn began(state: &State) -> Option<Stamp> {
    let said = head_load(state).and_then(|load| load.started?.sure());
    let run = state.run.as_ref().filter(|run| starts(run.plan().action));
    let steps = run.into_iter().flat_map(|run| run.steps());
    said.max(steps.filter_map(|step| step.started).max())
}

/// Whether an action starts something.
fn starts(action: Action) -> bool {
    match action {
        Action::Head | Action::Workers | Action::Serve | Action::Up => true,
        Action::StopServe | Action::StopAll => false,
    }
}

/// What is known of the whole load, or of a node's part.
fn case(state: &State, id: Option<NodeId>, part: &Part, now: Stamp) -> Case {
    let head = state.config.head();
    let (mut signals, mut looks) = (Vec::new(), Vec::new());
    let began = began(state);
    for node in state.config.node_ids().filter(|n| id.is_none_or(|id| id == *n)) {
        // What a node said before it fell silent is not what moves now.
        if state.observed.node(node).is_none_or(|n| n.link != LinkState::Up) {
            continue;
        }
        let name = state.config.node_name(node);
        let trends = state.nodes.get(node.index()).map(|view| &view.trends);
        looks.push(trends.and_then(Trends::since));
        let seen = trends.map(|trends| trends.seen(now, began));
        signals.extend(seen.unwrap_or_default().into_iter().map(|seen| (name.to_owned(), seen)));
    }
    // The nodes stand beside each other, reading by reading: where there is room for a few of them, a node that differs is seen.
    signals.sort_by_key(|(_, seen)| seen.signal);
    // A worker whose engine writes no log of its own is heard in the head's.
    let log = match part.told_by {
        ToldBy::OwnLog | ToldBy::Outside => id.unwrap_or(head),
        ToldBy::HeadLog | ToldBy::Inferred => head,
    };
    let view = state.nodes.get(log.index());
    let load = view.map(|view| &view.load);
    let heard = id.is_none_or(|_| part.told_by == ToldBy::OwnLog);
    Case {
        stage: part.stage,
        guessed: part.guessed,
        since: part.since.unwrap_or_else(|| server_since(state)),
        inferred: part.told_by == ToldBy::Inferred,
        writes: heard,
        line_at: load.and_then(|l| l.line_at).filter(|_| heard),
        came: view.and_then(|view| view.log.came).filter(|_| heard),
        step_at: part
            .bar
            .map(|bar| bar.at)
            .max(load.and_then(|l| l.stage).map(|(_, at)| at).filter(|_| heard)),
        pace: part
            .bar
            .filter(|bar| bar.done < bar.total)
            .and_then(|bar| Some((bar.step()?, bar.at.sure()?))),
        signals,
        watched: looks.into_iter().reduce(|a, b| Some(a?.max(b?))).flatten(),
        gpus: gpus(state, part.stage, load, now),
        missing: missing(state, id, now),
        refused_port: refused(state, now),
        longest: longest(state, part.stage),
        notes: notes(state, id, now),
        restart_after: state.config.limits.stall,
    }
}

fn head_load(state: &State) -> Option<&Load> {
    state.nodes.get(state.config.head().index()).map(|view| &view.load)
}

/// Why the ranks wait for GPUs: what the engine says itself and what Ray has. `None` where nobody says that they wait.
fn gpus(state: &State, stage: Stage, load: Option<&Load>, now: Stamp) -> Option<String> {
    let waited = load.filter(|_| stage == Stage::Placement)?.gpu_wait;
    let ray = &state.observed.ray;
    let facts = ray.value().filter(|r| !ray.stale(now, ray_every(r.via)));
    // Ray knows which groups wait, while the engine's line may be minutes old.
    let waits = match facts.filter(|r| r.pending_unknown.is_none()) {
        Some(r) => !r.pending.is_empty(),
        None => waited.is_some(),
    };
    let need = state.config.serve.tensor_parallel_size;
    let who = match waited.filter(|_| waits) {
        Some(waited) => format!("the engine has waited {waited} s for {}", things(need, "GPU")),
        None if waits => format!("Ray has no place yet for {}", things(need, "GPU")),
        None => return None,
    };
    let have = facts.map(|r| r.alive().map(|n| n.gpus).sum::<f64>());
    Some(have.map_or(who.clone(), |have| format!("{who}; Ray has {have}")))
}

/// Nodes whose rank may be missing.
fn missing(state: &State, id: Option<NodeId>, now: Stamp) -> Vec<String> {
    let ray = &state.observed.ray;
    let members = ray.value().filter(|r| !ray.stale(now, ray_every(r.via)));
    let mut all = Vec::new();
    for node in state.config.node_ids().filter(|n| id != Some(*n)) {
        let (Some(config), Some(seen)) = (state.config.node(node), state.observed.node(node)) else {
            continue;
        };
        let name = &config.name;
        match &seen.link {
            LinkState::Down { .. } | LinkState::Silent { .. } => all.push(format!("{name} does not answer")),
            LinkState::Idle | LinkState::Connecting | LinkState::Asking => all.push(format!("{name} is not connected")),
            LinkState::Up => {
                if members.is_some_and(|ray| ray.alive_at(&config.fabric_address).is_none()) {
                    all.push(format!("Ray does not have {name} ({})", config.fabric_address));
                }
            }
        }
    }
    all
}

/// The server's port, where it refuses.
fn refused(state: &State, now: Stamp) -> Option<u16> {
    let health = &state.observed.server.health;
    let refuses = health.value() == Some(&Health::Refused) && !health.stale(now, HEALTH_EVERY);
    refuses.then_some(state.config.serve.port)
}

fn longest(state: &State, stage: Stage) -> Option<Duration> {
    state
        .earlier
        .iter()
        .map(|load| load.took(stage))
        .max()
        .filter(|d| *d > Duration::ZERO)
}

/// What else matters where a load does not go well: memory at its end, and GPUs of which one works and another does not.
fn notes(state: &State, id: Option<NodeId>, now: Stamp) -> Vec<String> {
    let mut notes = Vec::new();
    let mut shares = Vec::new();
    for node in state.config.node_ids() {
        let (Some(seen), name) = (state.observed.node(node), state.config.node_name(node)) else {
            continue;
        };
        if let Some(memory) = seen.memory.value().filter(|_| id.is_none_or(|id| id == node))
            && memory.available < state.config.watch.memory_floor
        {
            let (available, total) = (memory.available.gib(), memory.total.gib());
            notes.push(format!("MemAvailable {available:.1} of {total:.1} GiB on {name}"));
        }
        let fresh = !seen.gpus.stale(now, every(state, node, Subject::Gpus));
        let gpus = seen.gpus.value().filter(|_| fresh);
        let busiest = gpus.and_then(|g| {
            g.gpus
                .iter()
                .filter_map(|g| g.utilization.map(|p| p.0))
                .reduce(f32::max)
        });
        shares.extend(busiest.map(|share| (name, share)));
    }
    let at_work = shares.iter().find(|(_, share)| *share >= AT_WORK);
    let at_rest = shares.iter().find(|(_, share)| *share <= AT_REST);
    if let (Some((busy, high)), Some((idle, low))) = (at_work, at_rest) {
        notes.push(format!("GPU of {busy} at {high:.0} %, of {idle} at {low:.0} %"));
    }
    notes
}

/// Time left until the server answers, or why it is not known. `judged` is how the load as a whole goes now.
///
/// # Errors
/// Why it is not known, as a fragment.
pub fn time_left(state: &State, judged: Option<&Judgement>, now: Stamp) -> Result<Eta, &'static str> {
    let part = whole(state).ok_or("nothing loads")?;
    if state.server.state.answers() {
        return Err("the load is over");
    }
    // How far it is now, nobody sees.
    if state
        .observed
        .node(state.config.head())
        .is_none_or(|n| n.link != LinkState::Up)
    {
        return Err("the head does not answer");
    }
    // A rate says nothing of a load that does not go on.
    match judged.map(|judged| &judged.verdict) {
        Some(Verdict::Stalled { .. }) => return Err("it has stalled"),
        Some(Verdict::Silent { .. }) => return Err("it is not known whether it goes on"),
        Some(Verdict::Early { .. }) => return Err("it is too early to say"),
        Some(Verdict::Slow) if state.earlier.is_empty() => return Err("it goes slower than it did"),
        Some(Verdict::Progressing | Verdict::Slow | Verdict::Waiting(_)) | None => {}
    }
    let load = head_load(state);
    let rate = match part.stage {
        Stage::Download => load
            .and_then(|l| l.download.eta(now))
            .or_else(|| part.bar.and_then(|b| b.eta())),
        Stage::Image
        | Stage::Container
        | Stage::Starting
        | Stage::Placement
        | Stage::Distributed
        | Stage::Weights
        | Stage::Compile
        | Stage::KvCache
        | Stage::Graphs
        | Stage::Warmup
        | Stage::Listening
        | Stage::Ready => part.bar.and_then(|b| b.eta()),
    };
    // A bar's own rate is of its last step: what has passed since is taken off, and no more of it than a step takes.
    let under_way = part
        .bar
        .map_or(Duration::ZERO, |b| b.at.age(now).min(b.step().unwrap_or_default()));
    let rate = rate.map(|left| left.saturating_sub(under_way));
    let over = load.map_or_else(Vec::new, |l| l.over(part.stage));
    let now = eta::Now {
        over,
        stage: part.stage,
        took: part.since.and_then(When::sure).map(|since| now.since(since)),
        share: part.share.map(|(share, _)| share),
        rate,
    };
    eta::eta(&now, &state.earlier)
}

#[expect(clippy::cast_precision_loss, reason = "a share for a bar")]
fn ratio(done: Bytes, total: Bytes) -> f64 {
    if total.0 == 0 {
        return 0.0;
    }
    (done.0 as f64 / total.0 as f64).clamp(0.0, 1.0)
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of an amount, for a person"
)]
fn scaled(size: Bytes, share: f64) -> Bytes {
    Bytes((size.0 as f64 * share.clamp(0.0, 1.0)) as u64)
}
