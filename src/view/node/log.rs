//! A node's log: the lines that fit, the last one at the bottom.

use std::collections::VecDeque;

use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Span;

use crate::config::types::LogPlace;
use crate::domain::logs::{LogChoice, LogSource, Older, Wanted};
use crate::domain::units::Bytes;
use crate::domain::{NodeId, Stamp, When};
use crate::log::{self, Line, Window};
use crate::model::logs::silent_since;
use crate::model::state::LogMeta;
use crate::model::{connected, heard_until};
use crate::view::Scene;
use crate::view::canvas::Canvas;
use crate::view::look::Look;
use crate::view::regions::LogRegion;
use crate::view::widgets::row::Row;
use crate::view::widgets::wrap::wrap_spans;
use crate::view::words::{ago, count, last_seen, seconds, things};

/// Rows that one line takes in a pane; a longer one is whole when the pane is zoomed.
const BROKEN: usize = 3;

/// Blanks before what follows of a broken line, so that lines can be told apart.
const INDENT: u16 = 2;

/// The foot of a node's pane: where its log is from and whether it follows.
pub(super) fn foot<'a>(scene: &Scene<'a>, id: NodeId) -> Row<'a> {
    let (state, look) = (scene.state, scene.look);
    let mut row = Row::new();
    let (Some(node), Some(view)) = (state.config.node(id), state.nodes.get(id.index())) else {
        return row;
    };
    let log = &view.log;
    match state.screen.held.get(&id) {
        None => row.put(0, "follow", look.good()),
        Some(at) => row.put(
            0,
            format!(
                "held at {} of {}, f follows",
                count((*at + 1).min(log.seq)),
                count(log.seq)
            ),
            look.warn(),
        ),
    };
    if let Some(since) = log.flow.behind {
        row.put(1, format!("behind for {}", long(scene, id, since)), look.warn());
        row.put(5, "the rest waits on the node", look.dim());
    }
    if let Some(seeks) = log.flow.seeks.filter(|seeks| seeks.again) {
        let since = long(scene, id, seeks.since);
        row.put(1, format!("waits {since} for Docker to find its place"), look.warn());
    }
    if log.flow.lost > 0 {
        row.put(1, format!("{} lost", things(log.flow.lost, "byte")), look.warn());
    }
    if log.dropped > 0 {
        row.put(3, format!("{} dropped", things(log.dropped, "older line")), look.dim());
    }
    let (from, style) = match &log.source {
        None => (place(scene, state.config.logs.of(node.role)), look.dim()),
        Some((LogSource::Follows { what, of: 0 | 1 }, _)) => (what.clone(), look.dim()),
        Some((LogSource::Follows { what, of }, _)) => (format!("{what}, the newest of {of}"), look.dim()),
        Some((LogSource::Nothing { wanted }, _)) => {
            // What is looked for may be long, and that it is gone is the news.
            row.put(1, format!("no container {}", lasts(scene, id, log)), look.warn());
            (format!("looks for a {wanted}"), look.warn())
        }
        Some((LogSource::Absent { what, why, .. }, _)) => {
            row.put(1, format!("no log {}", lasts(scene, id, log)), look.warn());
            (format!("{what}: {why}"), look.warn())
        }
        Some((LogSource::Ray { container }, _)) => (ray(scene, container), look.warn()),
    };
    row.put(if log.choice == LogChoice::Ray { 1 } else { 4 }, from, style)
        .right();
    if let Some(at) = log.at {
        let quiet = ago(at, scene.now.stamp);
        row.put(
            2,
            format!("{}, last {quiet} ago", things(log.lines(), "line")),
            look.dim(),
        )
        .right();
    }
    row.over_border()
}

/// How long there has been nothing to read.
fn lasts(scene: &Scene<'_>, id: NodeId, log: &LogMeta) -> String {
    let until = heard_until(scene.state, id, scene.now.stamp);
    let lasts = |since: When| format!("{}{}", since.lasts(until), last_seen(connected(scene.state, id)));
    log.source_since().map(lasts).unwrap_or_default()
}

/// How long something of a log has been so, up to when its node was heard last.
fn long(scene: &Scene<'_>, id: NodeId, since: Stamp) -> String {
    seconds(heard_until(scene.state, id, scene.now.stamp).since(since))
}

/// Where it will be read, before it is.
fn place(scene: &Scene<'_>, place: &LogPlace) -> String {
    let docker = &scene.state.config.container.docker;
    match place {
        LogPlace::Container(Wanted::Named(name)) => format!("{docker} logs {name}"),
        LogPlace::ContainerFile(Wanted::Named(name), path) => format!("{name}:{path}"),
        LogPlace::Container(wanted) => format!("log of a {}", wanted.words()),
        LogPlace::ContainerFile(wanted, path) => format!("{path} in a {}", wanted.words()),
        LogPlace::File(path) => path.clone(),
        LogPlace::Command(line) => line.clone(),
    }
}

/// That these are Ray's own files, and why they are shown.
fn ray(scene: &Scene<'_>, container: &str) -> String {
    match silent_since(scene.state, scene.now.stamp) {
        Some(since) => format!(
            "Ray's logs in {container}: the driver is silent for {}",
            ago(since, scene.now.stamp)
        ),
        None => format!("Ray's logs in {container}, l goes back"),
    }
}

/// Draws the log, long lines broken, and tells which lines are there. `whole` shows every line to its end.
///
/// From the bottom up, so that the last wanted line is always there. Where the lines above it do not fill the pane (the log begins there), those
/// after it do.
pub(super) fn draw(scene: &Scene<'_>, canvas: &mut Canvas<'_>, area: Rect, id: NodeId, whole: bool) -> LogRegion {
    let look = scene.look;
    let height = usize::from(area.height);
    let mut region = LogRegion {
        node: id,
        rows: height,
        lines: 0,
        first: 0,
        last: 0,
    };
    let meta = scene.state.nodes.get(id.index()).map(|view| &view.log);
    // That it is not there is more than what the console has written in its place.
    let absent = meta.is_some_and(|log| log.lines() == 0 && matches!(log.source, Some((LogSource::Absent { .. }, _))));
    let Some(window) = scene.logs.0.get(&id).filter(|w| !w.lines.is_empty() && !absent) else {
        let (rows, _) = wrap_spans(
            [Span::styled(nothing(scene, id), look.dim())],
            area.width.saturating_sub(2),
            INDENT,
            height,
        );
        for (y, spans) in (area.y..area.bottom()).zip(&rows) {
            canvas.spans(area.x + 1, y, area.width.saturating_sub(2), spans);
        }
        return region;
    };
    let lines = window.lines.as_slice();
    let wanted = wanted(scene, id, window);
    let most = if whole { height } else { BROKEN };
    let above_all = before_first(scene, id).filter(|_| window.first_seq == 0);
    // What was there before the first line stands over it.
    let block = |i: usize, line: &Line, most: usize| {
        let mut rows = block(look, line, area.width, most);
        if let Some(text) = above_all.as_ref().filter(|_| i == 0) {
            rows.insert(0, vec![Span::styled(text.clone(), look.dim())]);
        }
        rows
    };
    let mut blocks = VecDeque::new();
    let mut rows = 0;
    for (i, line) in lines.iter().take(wanted).rev().take(height).enumerate() {
        // The newest line says what happens now: it is whole.
        let block = block(wanted - 1 - i, line, if i == 0 { height } else { most });
        rows += block.len();
        blocks.push_front(block);
        if rows >= height {
            break;
        }
    }
    let first = wanted - blocks.len();
    // The oldest line may have its beginning above the pane.
    let above = rows.saturating_sub(height);
    for (i, line) in lines.iter().enumerate().skip(wanted).take(height) {
        if rows >= height {
            break;
        }
        let block = block(i, line, most);
        rows += block.len();
        blocks.push_back(block);
    }
    let shown = blocks.iter().flatten().skip(above);
    for (y, spans) in (area.y..area.bottom()).zip(shown) {
        canvas.spans(area.x, y, area.width, spans);
    }
    let number = |i: usize| window.first_seq.saturating_add(i as u64);
    let cut_off = usize::from(above > 0 && blocks.len() > 1);
    region.lines = blocks.len() - cut_off;
    region.first = number(first + cut_off);
    // Lines that may still change stand last and have no number.
    region.last = number(first + blocks.len()).min(window.next_seq).saturating_sub(1);
    region
}

/// What the log held before its first line and was not read; `None` where nothing is known of any.
fn before_first(scene: &Scene<'_>, id: NodeId) -> Option<String> {
    let older = scene.state.nodes.get(id.index())?.log.flow.older?;
    Some(match older {
        Older::Lines => "… lines before this one were not read".to_owned(),
        Older::Bytes(Bytes(1)) => "… 1 byte before this line was not read".to_owned(),
        Older::Bytes(bytes) => format!("… {} before this line were not read", things(bytes.0, "byte")),
    })
}

/// How many of the window's lines stand at or before the last wanted one: all when the log is followed.
fn wanted(scene: &Scene<'_>, id: NodeId, window: &Window) -> usize {
    let all = window.lines.len();
    match scene.state.screen.held.get(&id) {
        None => all,
        Some(held) => {
            let before = held.saturating_add(1).saturating_sub(window.first_seq);
            usize::try_from(before).unwrap_or(all).clamp(1, all)
        }
    }
}

/// A line in at most `most` rows; what is left out, here or by the decoder, is an ellipsis.
fn block(look: &Look, line: &Line, width: u16, most: usize) -> Vec<Vec<Span<'static>>> {
    let spans = line.spans.iter().map(|s| span(look, s));
    let (mut rows, more) = wrap_spans(spans, width, INDENT, most);
    if line.folded > 0
        && let Some(last) = rows.last_mut()
    {
        let text = format!(" (and {} like it)", count(u64::from(line.folded)));
        last.push(Span::styled(text, look.dim()));
    }
    if more || line.cut {
        // On a row that is full the canvas finds that this does not fit, and puts its own ellipsis there.
        if let Some(last) = rows.last_mut() {
            last.push(Span::styled("…", look.dim()));
        }
    }
    rows
}

fn span<'a>(look: &Look, span: &'a log::Span) -> Span<'a> {
    Span::styled(span.text.as_str(), style(look, span.style))
}

/// A log's own style; its colours only where the theme has colours.
fn style(look: &Look, from: log::Style) -> Style {
    let mut style = look.text();
    if let (Some(c), true) = (from.fg, look.colored()) {
        style = style.fg(color(c));
    }
    for (on, modifier) in [
        (from.bold, Modifier::BOLD),
        (from.dim, Modifier::DIM),
        (from.underline, Modifier::UNDERLINED),
    ] {
        if on {
            style = style.add_modifier(modifier);
        }
    }
    style
}

fn color(c: log::Color) -> Color {
    match c {
        log::Color::Red => Color::Red,
        log::Color::Green => Color::Green,
        log::Color::Yellow => Color::Yellow,
        log::Color::Blue => Color::Blue,
        log::Color::Magenta => Color::Magenta,
        log::Color::Cyan => Color::Cyan,
        log::Color::Gray => Color::DarkGray,
        log::Color::BrightRed => Color::LightRed,
        log::Color::BrightGreen => Color::LightGreen,
        log::Color::BrightYellow => Color::LightYellow,
        log::Color::BrightBlue => Color::LightBlue,
        log::Color::BrightMagenta => Color::LightMagenta,
        log::Color::BrightCyan => Color::LightCyan,
    }
}

/// Why there is no line.
fn nothing(scene: &Scene<'_>, id: NodeId) -> String {
    let linked = scene.state.observed.node(id).is_some_and(|n| n.link.usable());
    if !linked {
        return "no log: not connected".to_owned();
    }
    let Some(log) = scene.state.nodes.get(id.index()).map(|n| &n.log) else {
        return String::new();
    };
    match &log.source {
        Some((source @ (LogSource::Nothing { .. } | LogSource::Absent { .. }), _)) => {
            let missing = source.missing().unwrap_or_default();
            let said = source.said().map(|said| format!(" ({said})")).unwrap_or_default();
            format!("no log: {missing}, {}{said}", lasts(scene, id, log))
        }
        Some((LogSource::Follows { .. } | LogSource::Ray { .. }, _)) | None => match log.flow.seeks {
            Some(seeks) => format!(
                "no log yet: Docker has given nothing of it for {}; it is empty, or Docker looks for its place in a long one",
                long(scene, id, seeks.since)
            ),
            None => "no log yet".to_owned(),
        },
    }
}
