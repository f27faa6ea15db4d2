//! Every command that ran on a node: what was done first, then the probes, a line each.

use std::time::Duration;

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;

use crate::domain::event::Purpose;
use crate::domain::time::human;
use crate::model::state::{CommandEntry, Notice};
use crate::view::Scene;
use crate::view::canvas::Canvas;
use crate::view::regions::Regions;
use crate::view::widgets::row::Row;
use crate::view::words::{self, clock, seconds};

use super::{Line, broken, line, text_width, whole};

/// Lines of output shown under a command that failed.
const OUTPUT: usize = 4;

/// Text width from which the time of day stands before the age.
const WIDE: u16 = 100;

pub(super) fn draw(scene: &Scene<'_>, canvas: &mut Canvas<'_>, area: Rect, regions: &mut Regions) {
    let look = scene.look;
    let mut title = Row::new();
    title.put(0, "commands run on the nodes", look.focus());
    title.put(2, "the log file has all of them", look.dim()).right();
    whole(scene, canvas, area, title, &text(scene, text_width(area)), regions);
}

fn text(scene: &Scene<'_>, width: u16) -> Vec<Line> {
    let (state, look) = (scene.state, scene.look);
    let done = state.commands.iter().rev().filter(|c| !is_probe(c)).collect();
    let probes = state.commands.iter().filter(|c| is_probe(c)).collect();
    let mut lines = Vec::new();
    section(scene, "done for you, newest first", done, width, &mut lines);
    lines.push(Line::new());
    section(scene, "probes, the latest of each", probes, width, &mut lines);
    if !state.notices.is_empty() {
        lines.push(Line::new());
        lines.push(line("notices, newest first", look.title()));
        for n in state.notices.iter().rev() {
            lines.extend(notice(scene, n, width));
        }
    }
    lines
}

fn section(scene: &Scene<'_>, title: &str, entries: Vec<&CommandEntry>, width: u16, lines: &mut Vec<Line>) {
    lines.push(line(title, scene.look.title()));
    if entries.is_empty() {
        lines.push(line("  none yet", scene.look.dim()));
    }
    for entry in entries {
        lines.extend(summary(scene, entry, width));
        let failed = entry.ended.as_ref().is_some_and(|(exit, _)| !exit.ok());
        let from = if failed {
            entry.output.len().saturating_sub(OUTPUT)
        } else {
            entry.output.len()
        };
        for text in entry.output.iter().skip(from) {
            let bar = Span::styled("    | ", scene.look.border());
            lines.push(vec![bar, Span::styled(text.clone(), scene.look.text())]);
        }
    }
}

/// A probe on one line; what was done, with its whole command below.
fn summary(scene: &Scene<'_>, entry: &CommandEntry, width: u16) -> Vec<Line> {
    let (state, look) = (scene.state, scene.look);
    let (exit, style, took) = ended(scene, entry);
    let age = format!("{} ago", seconds(scene.now.stamp.since(entry.started.stamp)));
    let times = if entry.times > 1 {
        format!("{}x", entry.times)
    } else {
        String::new()
    };
    let mut spans = vec![Span::raw("  ")];
    if width >= WIDE {
        let at = clock(entry.started.wall, look.utc_offset());
        spans.push(Span::styled(format!("{at}  "), look.dim()));
    }
    spans.extend([
        Span::styled(format!("{age:>10}  "), look.dim()),
        Span::styled(format!("{:<10} ", state.config.node_name(entry.node)), look.text()),
        Span::styled(format!("{:<9} ", words::purpose(entry.purpose)), look.label()),
        Span::styled(format!("{exit:<16} "), style),
        Span::styled(format!("{took:>7} {times:>5}  "), look.dim()),
    ]);
    if is_probe(entry) {
        spans.push(Span::styled(entry.command.line(), look.text()));
        return vec![spans];
    }
    let mut lines = vec![spans];
    lines.extend(broken(&entry.command.line(), 4, width, look.text()));
    lines
}

fn is_probe(entry: &CommandEntry) -> bool {
    match entry.purpose {
        Purpose::Probe(_) | Purpose::Watch => true,
        Purpose::Step | Purpose::Log | Purpose::Server => false,
    }
}

fn ended(scene: &Scene<'_>, entry: &CommandEntry) -> (String, Style, String) {
    let look = scene.look;
    match &entry.ended {
        None => {
            let runs = scene.now.stamp.since(entry.started.stamp);
            ("runs".to_owned(), look.busy(), seconds(runs))
        }
        Some((exit, ms)) => {
            let style = if exit.ok() { look.good() } else { look.bad() };
            (
                format!("exit {}", exit.word()),
                style,
                human(Duration::from_millis(*ms)),
            )
        }
    }
}

fn notice(scene: &Scene<'_>, notice: &Notice, width: u16) -> Vec<Line> {
    let look = scene.look;
    let at = clock(notice.at.wall, look.utc_offset());
    let who = words::source(scene.state, notice.source);
    broken(&format!("{at} {who}: {}", notice.text), 2, width, look.text())
}
