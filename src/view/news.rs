//! The line above the keys: what happened, or what could be done next.

use std::time::Duration;

use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::domain::effect::RunOutcome;
use crate::domain::event::Purpose;
use crate::domain::intent::Mode;
use crate::domain::{Source, Stamp};
use crate::model::state::{Notice, Quit, ServingState};
use crate::model::{State, foreign, held_up_by};
use crate::plan::{Machine, StepState};

use super::Scene;
use super::canvas::Canvas;
use super::standing::{self, Mark};
use super::widgets::row::Row;
use super::{top, words};

/// How long a notice stands here; all of them are in the list of commands.
const NOTICE: Duration = Duration::from_secs(30);

/// How long a run that is over is told of here.
const RUN_OVER: Duration = Duration::from_secs(60);

/// Draws the line.
pub(super) fn draw(scene: &Scene<'_>, canvas: &mut Canvas<'_>, area: Rect) {
    let mut row = Row::new();
    let told = scene.told.map(|text| (text.to_owned(), scene.look.text()));
    let said = told
        .or_else(|| leaving(scene))
        .or_else(|| question(scene))
        .or_else(|| notice(scene))
        .or_else(|| run(scene));
    if let Some((text, style)) = said {
        row.put(0, text, style);
    } else if let Some((text, style)) = next(scene) {
        // A hint of which half a word is missing says less than its first clause.
        row.clauses(0, &text, style);
    }
    row.draw(canvas, area.x.saturating_add(1), area.y, area.width.saturating_sub(1));
}

fn leaving(scene: &Scene<'_>) -> Option<(String, Style)> {
    let flying = scene
        .state
        .commands
        .iter()
        .filter(|c| c.purpose == Purpose::Step && c.ended.is_none())
        .count();
    match scene.state.quit {
        Quit::No => None,
        Quit::Asked => {
            let text = format!(
                "leaving: waits for {}; once more leaves now",
                words::things(flying, "command")
            );
            Some((text, scene.look.warn()))
        }
        Quit::Now => Some(("leaving".to_owned(), scene.look.warn())),
    }
}

fn question(scene: &Scene<'_>) -> Option<(String, Style)> {
    let n = scene.state.questions.len();
    let elsewhere = scene.state.screen.mode != Mode::Question;
    (n > 0 && elsewhere).then(|| {
        (
            format!("{} waiting for an answer", words::things(n, "question")),
            scene.look.warn(),
        )
    })
}

fn notice(scene: &Scene<'_>) -> Option<(String, Style)> {
    let notice = scene.state.notices.back()?;
    let age = scene.now.stamp.since(notice.at.stamp);
    let who = words::source(scene.state, notice.source);
    let text = format!("{who}: {}  ({} ago)", notice.text, words::seconds(age));
    (age < NOTICE && !answered(scene.state, notice)).then(|| (text, scene.look.warn()))
}

/// Whether a notice that answered a key has done so: it goes with the next key, and when what it spoke of may have changed.
fn answered(state: &State, notice: &Notice) -> bool {
    let at = notice.at.stamp;
    let run_over = state.run.as_ref().filter(|run| run.outcome().is_some());
    let ended = run_over.and_then(|run| run.steps().iter().filter_map(|s| s.ended).max());
    let since = [Some(state.pressed), Some(state.server.since), ended];
    notice.source == Source::Operator && since.into_iter().flatten().any(|changed| changed > at)
}

/// The latest run, when its steps are not on the screen.
fn run(scene: &Scene<'_>) -> Option<(String, Style)> {
    let look = scene.look;
    let machine = scene.state.run.as_ref()?;
    if scene.state.screen.steps_top().is_some() {
        return beside_steps(machine).map(|text| (text.to_owned(), look.text()));
    }
    let ended = machine.steps().iter().filter_map(|s| s.later.or(s.ended)).max();
    let old = ended.is_some_and(|at| scene.now.stamp.since(at) > RUN_OVER);
    if machine.outcome().is_some() && old {
        return None;
    }
    let what = words::action(machine.plan().action);
    let steps = machine.steps();
    let at = steps.iter().position(|s| match &s.state {
        StepState::Checking | StepState::Running | StepState::Verifying => true,
        StepState::Failed(_) | StepState::Unknown(_) | StepState::Aborted => true,
        StepState::Waiting | StepState::Done(_) => false,
    })?;
    let title = machine.plan().steps.get(at).map_or("", |s| s.title.as_str());
    let place = format!("step {} of {}", at + 1, steps.len());
    if steps.get(at)?.later.is_some() {
        let text =
            format!("{what} was given up at {place}, {title}; what it waited for has come true since: r shows it");
        return Some((text, look.text()));
    }
    let (said, style) = match &steps.get(at)?.state {
        StepState::Failed(f) => (format!("{what} failed at {place}, {title}: {}", f.what), look.bad()),
        StepState::Unknown(why) => (format!("{what} lost track at {place}, {title}: {why}"), look.bad()),
        StepState::Aborted => (format!("{what} was stopped at {place}, {title}"), look.warn()),
        StepState::Waiting | StepState::Checking | StepState::Running | StepState::Verifying | StepState::Done(_) => {
            (format!("{what}: {place}, {title}"), look.busy())
        }
    };
    Some((said, style))
}

/// What to say while the steps themselves are on the screen.
fn beside_steps(machine: &Machine) -> Option<&'static str> {
    if machine.steps().iter().any(|s| s.later.is_some()) {
        return Some("what the run waited for has come true since it was given up; Esc hides the steps");
    }
    match machine.outcome() {
        None => Some("Esc hides the steps and the run goes on; r shows them again"),
        Some(RunOutcome::Failed) => Some("the step says why; y copies the command, if one is known; U plans anew"),
        Some(RunOutcome::Unknown) => Some("nobody knows how the step ended; U looks at the cluster and plans anew"),
        Some(RunOutcome::Done | RunOutcome::Aborted) => None,
    }
}

/// What a newcomer would press next.
fn next(scene: &Scene<'_>) -> Option<(String, Style)> {
    // Who does the same at the same time is in its way.
    let awaited = match &scene.state.server.state {
        ServingState::Down | ServingState::Unknown | ServingState::Loading => true,
        ServingState::Answering | ServingState::Ready => false,
        ServingState::Failed(_) | ServingState::Degraded(_) | ServingState::Stopping => true,
    };
    if let Some(other) = foreign::at_work(scene.state, scene.now.stamp).filter(|_| awaited) {
        let text = format!("{}: wait and see what it does", other.text(scene.state));
        return Some((text, scene.look.warn()));
    }
    let text = suggestion(scene.state, scene.now.stamp)?;
    Some((text.to_owned(), scene.look.dim()))
}

fn suggestion(state: &State, now: Stamp) -> Option<&'static str> {
    let linked = state.observed.nodes.iter().any(|n| n.link.usable());
    if !linked && state.config.node_ids().all(|id| state.lost(id)) {
        let said = |id| held_up_by(state, id).is_some_and(|hop| top::tells_of(state, hop));
        return Some(if state.config.node_ids().all(said) {
            "nothing can be reached: the line on top says why; n tries again now"
        } else {
            "nothing can be reached: the panes say why; n tries again now"
        });
    }
    if !linked {
        return Some("connecting; nothing runs on a node before you have seen its plan");
    }
    let workers = standing::workers(state, now);
    match &state.server.state {
        ServingState::Ready => {
            return Some("ready: T runs a throughput test; y copies the ssh line that reaches the server");
        }
        ServingState::Loading | ServingState::Answering => {
            return Some("the model loads; closing this console stops nothing");
        }
        ServingState::Stopping => return Some("the server ends: wait until it is gone before you start it again"),
        ServingState::Degraded(_) if state.needs_new_start() => {
            return Some("the cluster is whole and the server is not: X and then s stops the server, S serves it anew");
        }
        ServingState::Failed(_) | ServingState::Degraded(_) if state.cure().is_some() => {
            return Some("U shows what it takes to bring it back, X stops; y copies the command that looks into it");
        }
        ServingState::Failed(_) | ServingState::Degraded(_) => {
            return Some("U shows what it takes to bring it back, X stops");
        }
        ServingState::Down if state.cure().is_some() => {
            return Some("U shows what it takes to bring it back; y copies the command that looks into it");
        }
        ServingState::Down | ServingState::Unknown => {}
    }
    match standing::node(state, state.config.head(), now) {
        Mark::No => {
            Some("press U to bring everything up: it shows the exact commands first and runs nothing before Enter")
        }
        Mark::Yes if workers.mark == Mark::Unknown => Some(
            "some worker is out of sight: its pane says since when; nothing is known of the whole before it is back",
        ),
        Mark::Yes if workers.mark != Mark::Yes => Some("the head runs: W joins the workers, U does all that is left"),
        Mark::Yes => Some("the cluster is whole: S serves the model"),
        Mark::Busy => Some("the head's container runs and is not in Ray yet"),
        Mark::Bad => Some("the head's container is broken: its log says why; U shows what it takes"),
        Mark::Unknown | Mark::Stopped => {
            Some("looking at the nodes; nothing runs on one before you have seen its plan")
        }
    }
}
