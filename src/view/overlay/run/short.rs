//! A run where there is no room for its steps: the step at work, or the one that failed, and why it is not over.

use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::domain::problem::Verdict;
use crate::domain::time::human;
use crate::plan::{Machine, Step, StepState, StepStatus};
use crate::view::Scene;
use crate::view::canvas::Canvas;
use crate::view::cause;
use crate::view::regions::{Regions, Scrolled};
use crate::view::words::{self, seconds};

use super::super::small::{self, plain, small};
use super::super::{Line, line};
use super::{busy, mark, took};

/// Height of all panes together below which a frame around a few of the steps' lines would hide the one that matters.
const LOW: u16 = 10;

/// Rows up to which nothing else has a place beside it.
const ALL: u16 = 4;

/// Whether a run in this room is told in short.
pub(super) fn wanted(area: Rect) -> bool {
    small(area) || area.height < LOW
}

/// Rows that it takes within `area`: one is left for how the server is, where there are enough.
pub(super) fn height(scene: &Scene<'_>, machine: &Machine, area: Rect) -> u16 {
    let lines = u16::try_from(text(scene, machine, area.width).len()).unwrap_or(u16::MAX);
    let most = if area.height <= ALL {
        area.height
    } else {
        area.height - 1
    };
    lines.min(most)
}

/// Draws it.
pub(super) fn draw(scene: &Scene<'_>, canvas: &mut Canvas<'_>, machine: &Machine, area: Rect, regions: &mut Regions) {
    let lines = text(scene, machine, area.width);
    let total = u16::try_from(lines.len()).unwrap_or(u16::MAX);
    let mut scrolled = Scrolled {
        top: 0,
        rows: area.height,
        total,
    };
    let top = scene.state.screen.steps_top().unwrap_or(0);
    scrolled.top = top.min(scrolled.last_top());
    small::text(scene, canvas, area, &lines, scrolled);
    regions.scrolled = Some(scrolled);
}

/// Which step, how it stands, and what there is to say of it, the most telling first.
fn text(scene: &Scene<'_>, machine: &Machine, width: u16) -> Vec<Line> {
    let look = scene.look;
    let all: Vec<(&Step, &StepStatus)> = machine.plan().steps.iter().zip(machine.steps()).collect();
    let Some((step, status)) = in_front(&all) else {
        let done = format!("✓ {} done", words::things(all.len(), "step"));
        let mut lines = plain(&done, width, look.good());
        lines.extend(plain(words::action(machine.plan().action), width, look.text()));
        return lines;
    };
    let (glyph, style) = mark(look, &status.state);
    let mut head = format!("{glyph} {}/{} {}", step.id.0 + 1, all.len(), word(&status.state));
    if let Some(took) = took(scene, status).filter(|_| busy(&status.state)) {
        head.push_str(&format!(" {}", seconds(took)));
    }
    let mut lines = vec![line(head, style)];
    let title = plain(&step.title, width, look.strong());
    let (said, style) = said(scene, step, status);
    let said = said.map(|text| plain(&text, width, style)).unwrap_or_default();
    // Of a step at work its name says most, of one that went wrong why it did.
    if busy(&status.state) {
        lines.extend(title);
        lines.extend(said);
    } else {
        lines.extend(said);
        lines.extend(title);
    }
    lines
}

/// The step to tell of: the one at work or that went wrong, else the next; `None` when all are done.
fn in_front<'a>(all: &[(&'a Step, &'a StepStatus)]) -> Option<(&'a Step, &'a StepStatus)> {
    let over = |(_, status): &&(&Step, &StepStatus)| match &status.state {
        StepState::Waiting | StepState::Done(_) => true,
        StepState::Checking | StepState::Running | StepState::Verifying => false,
        StepState::Failed(_) | StepState::Aborted | StepState::Unknown(_) => false,
    };
    let waits = |(_, status): &&(&Step, &StepStatus)| matches!(status.state, StepState::Waiting);
    let at = all.iter().find(|s| !over(s));
    at.or_else(|| all.iter().find(waits)).copied()
}

fn word(state: &StepState) -> &'static str {
    match state {
        StepState::Waiting => "is next",
        StepState::Checking => "checks",
        StepState::Running => "runs",
        StepState::Verifying => "verifies",
        StepState::Done(_) => "done",
        StepState::Failed(_) => "failed",
        StepState::Aborted => "stopped",
        StepState::Unknown(_) => "lost",
    }
}

/// Why it is not over, or went wrong.
fn said(scene: &Scene<'_>, step: &Step, status: &StepStatus) -> (Option<String>, Style) {
    let look = scene.look;
    match &status.state {
        StepState::Failed(failure) => {
            let known = scene.state.step_cause(step.id);
            let why = known.map(|c| cause::headline(scene.state, &c, scene.now));
            // A command that failed is long, and what it said says more.
            let said = [failure.lines.last(), Some(&failure.seen), Some(&failure.what)];
            let said = || said.into_iter().flatten().find(|text| !text.trim().is_empty()).cloned();
            (why.or_else(said), look.bad())
        }
        StepState::Unknown(why) => (Some(why.clone()), look.bad()),
        StepState::Checking | StepState::Running | StepState::Verifying => {
            let open = status.pending.iter().find_map(|(condition, verdict)| match verdict {
                Verdict::Holds => None,
                Verdict::Fails { .. } | Verdict::Unknown(_) => Some(condition.text(&scene.state.config)),
            });
            let limit = format!("at most {}", human(step.limit));
            let text = open.map_or_else(|| limit.clone(), |text| format!("waits: {text}; {limit}"));
            (Some(text), look.text())
        }
        StepState::Waiting | StepState::Done(_) | StepState::Aborted => (None, look.text()),
    }
}
