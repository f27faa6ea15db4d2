//! The steps of a run, as a pane below the others, so that the logs stay in sight.

mod failed;
mod short;

use std::time::Duration;

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;

use crate::domain::problem::Verdict;
use crate::domain::step::StepOutcome;
use crate::domain::time::{human, millis};
use crate::domain::{Stamp, Wall};
use crate::plan::{Machine, Step, StepKind, StepState, StepStatus};
use crate::view::Scene;
use crate::view::canvas::Canvas;
use crate::view::look::Look;
use crate::view::regions::{Regions, Scrolled};
use crate::view::widgets::boxes::{Border, frame};
use crate::view::widgets::row::Row;
use crate::view::words::{self, seconds};

use super::{Line, broken};

/// Rows that the panes above keep.
const ABOVE: u16 = 6;

/// Conditions of a step that are shown while it waits for them.
const PENDING: usize = 4;

/// Lines that one text of a failure takes; the list of commands has all of it.
const SHORT: usize = 2;

/// Indent of what belongs to a step.
const INDENT: u16 = 5;

/// Rows that the pane wants within `area`.
pub(in crate::view) fn height(scene: &Scene<'_>, area: Rect) -> u16 {
    let Some(machine) = &scene.state.run else { return 0 };
    if short::wanted(area) {
        return short::height(scene, machine, area);
    }
    let width = area.width.saturating_sub(4);
    let half = usize::from(area.height / 2).saturating_sub(2);
    let lines = text_within(scene, machine, width, half);
    let wanted = if lines.len() > half && !at_work(machine) {
        // Of a run that is over what matters is in sight, and the panes above stay: the rest is scrolled to.
        lines
            .iter()
            .rposition(|(_, matters)| *matters)
            .map_or(lines.len(), |last| last + 1)
    } else {
        lines.len()
    };
    let wanted = u16::try_from(wanted).unwrap_or(u16::MAX).saturating_add(2);
    wanted.min(area.height.saturating_sub(ABOVE)).max(area.height.min(5))
}

/// Draws the pane into what [`height`] has asked for of `room`. The step at work, or the one that failed, is in sight until one scrolls.
pub(in crate::view) fn draw(scene: &Scene<'_>, canvas: &mut Canvas<'_>, area: Rect, room: Rect, regions: &mut Regions) {
    let Some(machine) = &scene.state.run else { return };
    if short::wanted(room) {
        short::draw(scene, canvas, machine, area, regions);
        return;
    }
    let rows = area.height.saturating_sub(2);
    let lines = text_within(scene, machine, area.width.saturating_sub(4), usize::from(rows));
    let border = Border {
        style: scene.look.focus(),
        heavy: true,
        sides: true,
    };
    let total = u16::try_from(lines.len()).unwrap_or(u16::MAX);
    let mut scrolled = Scrolled { top: 0, rows, total };
    scrolled.top = match scene.state.screen.steps_top().unwrap_or(0) {
        0 => first_to_see(&lines, rows),
        top => top.min(scrolled.last_top()),
    };
    let inner = frame(
        canvas,
        area,
        border,
        title(scene, machine),
        super::foot(scene, scrolled),
    );
    let shown = lines.iter().skip(usize::from(scrolled.top));
    for (y, (line, _)) in (inner.y..inner.bottom()).zip(shown) {
        canvas.spans(inner.x + 1, y, inner.width.saturating_sub(2), line);
    }
    regions.scrolled = Some(scrolled);
}

/// The first line to draw so that the step at work, with what belongs to it, is in sight.
fn first_to_see(lines: &[(Line, bool)], rows: u16) -> u16 {
    let end = lines.iter().rposition(|(_, at_work)| *at_work).map_or(0, |i| i + 1);
    let first = lines.iter().position(|(_, at_work)| *at_work).unwrap_or(0);
    let top = end.saturating_sub(usize::from(rows)).min(first);
    u16::try_from(top).unwrap_or(0)
}

fn title<'a>(scene: &Scene<'a>, machine: &'a Machine) -> Row<'a> {
    let look = scene.look;
    let mut row = Row::new();
    row.put(
        0,
        format!("run: {}", words::action(machine.plan().action)),
        look.focus(),
    );
    let steps = machine.steps();
    let over = steps.iter().filter(|s| matches!(s.state, StepState::Done(_))).count();
    row.put(
        1,
        format!("{over} of {} done", words::things(steps.len(), "step")),
        look.text(),
    );
    row.over_border()
}

/// How much is told of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    /// Each step, and what the one at work waits for.
    Full,
    /// The steps that are done in one line, those that were not begun too where none is any more, and the first of what the one at work waits for: the
    /// panes above are what one looks at beside it.
    Short,
}

/// The lines in full where they fit into `rows`, else in short.
fn text_within(scene: &Scene<'_>, machine: &Machine, width: u16, rows: usize) -> Vec<(Line, bool)> {
    let full = text(scene, machine, width, Detail::Full);
    if full.len() <= rows {
        return full;
    }
    text(scene, machine, width, Detail::Short)
}

/// Whether a step of a run is at work.
fn at_work(machine: &Machine) -> bool {
    machine.steps().iter().any(|s| busy(&s.state))
}

/// Whether the steps on the screen tell the cause of what is wrong with the server: it need not be said a second time.
pub(in crate::view) fn tells_cause(scene: &Scene<'_>) -> bool {
    let state = scene.state;
    let Some(machine) = state.run.as_ref().filter(|_| state.screen.steps_top().is_some()) else {
        return false;
    };
    let failed = |s: &&StepStatus| matches!(s.state, StepState::Failed(_)) && s.later.is_none();
    let steps = machine.plan().steps.iter().zip(machine.steps());
    let step = steps
        .filter(|(_, status)| failed(status))
        .map(|(step, _)| step.id)
        .next();
    let told = step.and_then(|id| state.step_cause(id));
    told.zip(state.first_cause())
        .is_some_and(|(told, first)| told.text == first.text)
}

fn busy(state: &StepState) -> bool {
    match state {
        StepState::Checking | StepState::Running | StepState::Verifying => true,
        StepState::Waiting | StepState::Done(_) => false,
        StepState::Failed(_) | StepState::Aborted | StepState::Unknown(_) => false,
    }
}

/// Whether a step is done and nothing of it has to be read.
fn went_well(state: &StepState) -> bool {
    match state {
        StepState::Done(StepOutcome::Success | StepOutcome::Skipped | StepOutcome::Adopted) => true,
        StepState::Done(StepOutcome::Warning(_)) | StepState::Waiting => false,
        StepState::Checking | StepState::Running | StepState::Verifying => false,
        StepState::Failed(_) | StepState::Aborted | StepState::Unknown(_) => false,
    }
}

/// All lines; those of the step at work, or of the one that failed, are marked.
fn text(scene: &Scene<'_>, machine: &Machine, width: u16, detail: Detail) -> Vec<(Line, bool)> {
    let mut lines = Vec::new();
    let steps: Vec<_> = machine.plan().steps.iter().zip(machine.steps()).collect();
    let over = !at_work(machine);
    let fold = |status: &StepStatus| match (detail, &status.state) {
        (Detail::Short, StepState::Waiting) => over.then_some(false),
        (Detail::Short, state) => went_well(state).then_some(true),
        (Detail::Full, _) => None,
    };
    for together in steps.chunk_by(|(_, a), (_, b)| fold(a).is_some() && fold(a) == fold(b)) {
        if let [(first, status), .., (last, _)] = together {
            lines.push((folded(scene.look, first, last, went_well(&status.state)), false));
            continue;
        }
        for (step, status) in together {
            let at_work = match &status.state {
                StepState::Waiting | StepState::Done(_) => false,
                StepState::Checking | StepState::Running | StepState::Verifying => true,
                StepState::Failed(_) | StepState::Aborted | StepState::Unknown(_) => true,
            };
            lines.push((head(scene, step, status, width), at_work));
            let Details { first, rest } = details(scene, step, status, width, detail);
            lines.extend(first.into_iter().map(|line| (line, at_work)));
            lines.extend(rest.into_iter().map(|line| (line, false)));
        }
    }
    lines
}

/// Steps one after the other that went well, or were not begun, as one line.
fn folded(look: &Look, first: &Step, last: &Step, well: bool) -> Line {
    let (mark, style, word) = if well {
        ("✓ ", look.good(), "done")
    } else {
        ("· ", look.dim(), "not begun")
    };
    vec![
        Span::styled(mark, style),
        Span::styled(format!("{:>2}-{} ", first.id.0 + 1, last.id.0 + 1), look.key()),
        Span::styled(word, if well { look.text() } else { look.dim() }),
    ]
}

/// A step with how it is. Where there is no room, its limit goes, then its time.
fn head(scene: &Scene<'_>, step: &Step, status: &StepStatus, width: u16) -> Line {
    let look = scene.look;
    let (mark, style) = mark(look, &status.state);
    // What came true since is history: it does not shout any more.
    let style = if status.later.is_some() { look.dim() } else { style };
    let (title, limit) = match &status.state {
        StepState::Waiting => (look.dim(), String::new()),
        StepState::Done(_) => (look.text(), String::new()),
        StepState::Checking | StepState::Running | StepState::Verifying => {
            (look.strong(), format!(" of {}", human(step.limit)))
        }
        StepState::Failed(_) | StepState::Aborted | StepState::Unknown(_) => (style, String::new()),
    };
    let mut spans = vec![
        Span::styled(format!("{mark} "), style),
        Span::styled(format!("{:>2} ", step.id.0 + 1), look.key()),
        Span::styled(step.title.clone(), title),
    ];
    if let Some(word) = word(&status.state) {
        spans.push(Span::styled(format!("  {word}"), style));
    }
    if let Some(took) = took(scene, status) {
        spans.push(Span::styled(format!("  {}", seconds(took)), look.dim()));
        spans.push(Span::styled(limit, look.dim()));
    }
    let always = 4;
    while spans.len() > always && spans.iter().map(Span::width).sum::<usize>() > usize::from(width) {
        spans.pop();
    }
    spans
}

fn took(scene: &Scene<'_>, status: &StepStatus) -> Option<Duration> {
    Some(status.ended.unwrap_or(scene.now.stamp).since(status.started?))
}

fn mark(look: &Look, state: &StepState) -> (&'static str, Style) {
    match state {
        StepState::Waiting => ("·", look.dim()),
        StepState::Checking | StepState::Running | StepState::Verifying => ("▸", look.busy()),
        StepState::Done(StepOutcome::Warning(_)) => ("!", look.warn()),
        StepState::Done(StepOutcome::Success | StepOutcome::Skipped | StepOutcome::Adopted) => ("✓", look.good()),
        StepState::Failed(_) => ("✗", look.bad()),
        StepState::Aborted => ("■", look.warn()),
        StepState::Unknown(_) => ("?", look.bad()),
    }
}

fn word(state: &StepState) -> Option<&'static str> {
    match state {
        StepState::Waiting | StepState::Done(StepOutcome::Success | StepOutcome::Warning(_)) => None,
        StepState::Checking => Some("checks first"),
        StepState::Running => Some("runs"),
        StepState::Verifying => Some("verifies"),
        StepState::Done(StepOutcome::Skipped) => Some("skipped, it was so already"),
        StepState::Done(StepOutcome::Adopted) => Some("adopted, it was under way"),
        StepState::Failed(_) => Some("failed"),
        StepState::Aborted => Some("stopped"),
        StepState::Unknown(_) => Some("nobody knows how it ended"),
    }
}

/// What belongs to a step.
#[derive(Default)]
struct Details {
    /// What has to be in sight.
    first: Vec<Line>,
    /// What that rests on.
    rest: Vec<Line>,
}

impl From<Vec<Line>> for Details {
    fn from(first: Vec<Line>) -> Self {
        Self {
            first,
            rest: Vec::new(),
        }
    }
}

fn details(scene: &Scene<'_>, step: &Step, status: &StepStatus, width: u16, detail: Detail) -> Details {
    let look = scene.look;
    match &status.state {
        StepState::Waiting => Details::default(),
        StepState::Failed(_) | StepState::Aborted | StepState::Unknown(_) if status.later.is_some() => {
            since(scene, step, status, width).into()
        }
        StepState::Aborted => Details::default(),
        StepState::Done(StepOutcome::Warning(text)) => broken(text, INDENT, width, look.warn()).into(),
        StepState::Done(StepOutcome::Success | StepOutcome::Skipped | StepOutcome::Adopted) => Details::default(),
        StepState::Unknown(why) => broken(why, INDENT, width, look.bad()).into(),
        StepState::Failed(failure) => failed::details(scene, step, failure, width),
        StepState::Checking | StepState::Running | StepState::Verifying => waits(scene, status, width, detail).into(),
    }
}

/// How a step ended, and that what it was for has come true since: nothing of it is left to mend.
fn since(scene: &Scene<'_>, step: &Step, status: &StepStatus, width: u16) -> Vec<Line> {
    let look = scene.look;
    let said = match &status.state {
        StepState::Failed(failure) => [&failure.what, &failure.seen].map(String::as_str).join(": "),
        StepState::Unknown(why) => why.clone(),
        StepState::Waiting | StepState::Checking | StepState::Running | StepState::Verifying => String::new(),
        StepState::Done(_) | StepState::Aborted => String::new(),
    };
    let mut lines = Vec::new();
    if !said.is_empty() {
        lines.extend(short(&said, INDENT, width, look.dim()));
    }
    let clock = |at: Option<Stamp>| {
        let ago = at.map_or(0, |at| millis(scene.now.stamp.since(at)));
        words::clock(Wall(scene.now.wall.0.saturating_sub(ago)), look.utc_offset())
    };
    let text = format!(
        "it was given up at {}; {} since {}",
        clock(status.ended),
        come_true(step.kind, scene.state.options.no_probe),
        clock(status.later)
    );
    lines.extend(broken(&text, INDENT, width, look.good()));
    lines
}

/// What has come true when all that a step was for holds.
fn come_true(kind: StepKind, no_probe: bool) -> &'static str {
    match kind {
        StepKind::Pull => "the image is there",
        StepKind::Image => "the images are equal",
        StepKind::Head => "the head runs and is in Ray",
        StepKind::Join => "it is in Ray",
        StepKind::Membership => "the membership is complete",
        StepKind::Serve if no_probe => "the server answers",
        StepKind::Serve => "the server is ready",
        StepKind::StopServe => "the server is gone",
        StepKind::StopNode => "nothing of it is left",
    }
}

/// What a step waits for, and its latest word.
fn waits(scene: &Scene<'_>, status: &StepStatus, width: u16, detail: Detail) -> Vec<Line> {
    let look = scene.look;
    let mut lines = Vec::new();
    let open: Vec<_> = status.pending.iter().filter(|(_, v)| !v.holds()).collect();
    let shown = match detail {
        Detail::Full => PENDING,
        Detail::Short => 1,
    };
    let more = open.len().saturating_sub(shown);
    for (i, (condition, verdict)) in open.iter().take(shown).enumerate() {
        let what = condition.text(&scene.state.config);
        let mut text = match verdict {
            Verdict::Holds => continue,
            Verdict::Fails { seen, expected } => format!("waits: {what}: seen {seen}; expected {expected}"),
            Verdict::Unknown(why) => format!("waits: {what}: {why}"),
        };
        if more > 0 && i + 1 == shown {
            text.push_str(&format!(" (and for {more} more)"));
        }
        lines.extend(broken(&text, INDENT, width, look.text()));
    }
    if let Some(note) = status.notes.last() {
        lines.extend(broken(note, INDENT, width, look.dim()));
    }
    lines
}

/// As [`broken`], cut after a few lines.
fn short(text: &str, indent: u16, width: u16, style: Style) -> Vec<Line> {
    let mut lines = broken(text, indent, width, style);
    if lines.len() > SHORT {
        lines.truncate(SHORT);
        if let Some(last) = lines.last_mut() {
            last.push(Span::styled("…", style));
        }
    }
    lines
}
