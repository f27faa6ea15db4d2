//! A plan that waits for Enter: the exact commands, on which node, what is checked before and verified after.

use ratatui::layout::Rect;
use ratatui::text::Span;

use crate::domain::command::{ARGV, Command};
use crate::domain::time::human;
use crate::plan::{Condition, Plan, PlannedCommand, SKIPPED, Step};
use crate::view::Scene;
use crate::view::canvas::Canvas;
use crate::view::regions::Regions;
use crate::view::widgets::row::Row;
use crate::view::words;

use super::small::{self, small};
use super::{Line, broken, line, place, text_width};

/// Indent of what belongs to a step.
const INDENT: usize = 4;

/// Width of the words before what belongs to a step.
const LABEL: usize = 8;

/// Indent of a step's commands and conditions.
const BODY: u16 = 12;

pub(super) fn draw(scene: &Scene<'_>, canvas: &mut Canvas<'_>, area: Rect, regions: &mut Regions) {
    let Some(plan) = &scene.state.plan else { return };
    let look = scene.look;
    if small(area) {
        let question = format!("{}?", words::action(plan.action));
        small::draw(scene, canvas, area, &question, &short(scene, plan, area.width), regions);
        return;
    }
    let mut title = Row::new();
    title.put(0, format!("plan: {}", words::action(plan.action)), look.focus());
    if plan.refusals.is_empty() {
        title.put(1, words::things(plan.steps.len(), "step"), look.text());
        title.put(2, "nothing runs before Enter", look.text()).right();
    } else {
        title.put(1, "refused", look.bad());
    }
    place(
        scene,
        canvas,
        area,
        title,
        &text(scene, plan, text_width(area)),
        regions,
    );
}

/// What it is about on a small screen: why it is refused, or which steps it has; all that [`text`] says stands below.
fn short(scene: &Scene<'_>, plan: &Plan, width: u16) -> Vec<Line> {
    let mut lines = Vec::new();
    if plan.refusals.is_empty() {
        for step in &plan.steps {
            let text = format!("{} {}", step.id.0 + 1, step.title);
            lines.extend(small::plain(&text, width, scene.look.title()));
        }
        lines.push(Line::new());
    }
    lines.extend(text(scene, plan, width));
    lines
}

fn text(scene: &Scene<'_>, plan: &Plan, width: u16) -> Vec<Line> {
    let look = scene.look;
    let mut lines = Vec::new();
    for refusal in &plan.refusals {
        lines.extend(broken(&format!("✗ {}", refusal.text), 0, width, look.bad()));
        if let Some(fix) = &refusal.fix {
            lines.extend(broken(fix, 2, width, look.text()));
        }
    }
    let general = |note: &&String| plan.steps.iter().all(|step| about(note, step).is_none());
    for note in plan.notes.iter().filter(general) {
        lines.extend(broken(&format!("! {note}"), 0, width, look.warn()));
    }
    if !lines.is_empty() {
        lines.push(Line::new());
    }
    for step in &plan.steps {
        lines.extend(of_step(scene, plan, step, width));
    }
    if plan.steps.is_empty() && plan.refusals.is_empty() {
        lines.push(line("nothing to do", look.good()));
    }
    lines
}

/// What a note says of a step: those that are about one begin with its title.
fn about<'a>(note: &'a str, step: &Step) -> Option<&'a str> {
    note.strip_prefix(step.title.as_str())?.strip_prefix(": ")
}

fn of_step(scene: &Scene<'_>, plan: &Plan, step: &Step, width: u16) -> Vec<Line> {
    let look = scene.look;
    let mut lines = vec![vec![
        Span::styled(format!("{:>2}  ", step.id.0 + 1), look.key()),
        Span::styled(step.title.clone(), look.title()),
        Span::styled(format!("  within {}", human(step.limit)), look.dim()),
    ]];
    let said: Vec<&str> = plan.notes.iter().filter_map(|note| about(note, step)).collect();
    for said in &said {
        lines.extend(broken(said, 4, width, look.good()));
    }
    // What comes before a command is of no matter where none will run.
    if !said.contains(&SKIPPED) {
        conditions(scene, "before", &step.before, width, &mut lines);
    }
    commands(scene, "run", &step.commands, width, &mut lines);
    conditions(scene, "after", &step.after, width, &mut lines);
    if !step.settle.is_zero() {
        let mut stays = labelled(scene, "");
        let text = format!("and so for {} without a break", human(step.settle));
        stays.push(Span::styled(text, look.text()));
        lines.push(stays);
    }
    commands(scene, "at end", &step.finally, width, &mut lines);
    commands(scene, "if bad", &step.evidence, width, &mut lines);
    lines.push(Line::new());
    lines
}

fn labelled(scene: &Scene<'_>, label: &str) -> Line {
    let text = format!("{:INDENT$}{label:<LABEL$}", "");
    vec![Span::styled(text, scene.look.label())]
}

fn conditions(scene: &Scene<'_>, label: &str, all: &[Condition], width: u16, lines: &mut Vec<Line>) {
    for (i, condition) in all.iter().enumerate() {
        let text = condition.text(&scene.state.config);
        let mut pieces = broken(&text, BODY, width, scene.look.text());
        // The label takes the place of the first piece's indent.
        if let (0, Some(first)) = (i, pieces.first_mut().and_then(|p| p.first_mut())) {
            *first = labelled(scene, label).remove(0);
        }
        lines.extend(pieces);
    }
}

fn commands(scene: &Scene<'_>, label: &str, all: &[PlannedCommand], width: u16, lines: &mut Vec<Line>) {
    for planned in all {
        let name = scene.state.config.node_name(planned.node);
        let mut head = labelled(scene, label);
        head.push(Span::styled(format!("on {name}:"), scene.look.text()));
        lines.push(head);
        lines.extend(command(scene, &planned.command, width));
    }
}

/// The command as it will run: a program as one would type it, a script in full.
fn command(scene: &Scene<'_>, command: &Command, width: u16) -> Vec<Line> {
    let look = scene.look;
    if command.id == ARGV {
        return broken(&command.line(), BODY, width, look.strong());
    }
    let mut lines = Vec::new();
    for (i, text) in command.render().lines().enumerate() {
        let style = if i == 0 { look.strong() } else { look.dim() };
        lines.extend(broken(text, BODY, width, style));
    }
    lines
}
