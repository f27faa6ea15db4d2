//! What matters most, for a screen that has no room for the server's pane: how the server is, and why it is not well.

use ratatui::layout::Rect;
use ratatui::text::Span;

use crate::domain::NodeId;
use crate::model::schedule::METRICS_EVERY;
use crate::model::state::ServingState;

use super::Scene;
use super::age::Age;
use super::canvas::Canvas;
use super::cause;
use super::node::load;
use super::overlay::run;
use super::standing;
use super::widgets::row::Row;
use super::widgets::wrap::wrap_spans;
use super::words::number;

/// Screen width below which the line on top can't say how the server is.
const NARROW: u16 = 60;

/// Screen height below which the server has no pane.
const LOW: u16 = 17;

/// Screen height below which nothing is kept for other lines than these.
const TINY: u16 = 8;

/// Rows that the reason may take where the nodes stand below it.
const REASON: usize = 2;

/// Whether the screen is so low that each row has to be worth it.
pub(super) fn tiny(screen: Rect) -> bool {
    screen.height < TINY
}

/// Draws it at the top of the room for the nodes, and gives how many rows it took.
pub(super) fn draw(scene: &Scene<'_>, canvas: &mut Canvas<'_>, area: Rect, screen: Rect) -> u16 {
    if screen.width >= NARROW && screen.height >= LOW {
        return 0;
    }
    let mut y = area.y;
    if screen.width < NARROW && y < area.bottom() {
        server(scene).draw(canvas, area.x, y, area.width);
        y += 1;
    }
    let Some((text, style)) = reason(scene) else {
        return y - area.y;
    };
    let left = usize::from(area.bottom().saturating_sub(y));
    let most = if tiny(screen) { left } else { left.min(REASON) };
    let span = Span::styled(format!(" {text}"), style);
    let (lines, more) = wrap_spans([span], area.width, 1, most);
    let last = lines.len();
    for (i, mut spans) in lines.into_iter().take(most).enumerate() {
        if more && i + 1 == last {
            spans.push(Span::styled("…", style));
        }
        canvas.spans(area.x, y, area.width, &spans);
        y += 1;
    }
    y - area.y
}

/// How the server is: the stage of its load, or its state and its rate.
fn server<'a>(scene: &Scene<'a>) -> Row<'a> {
    let (state, look, now) = (scene.state, scene.look, scene.now.stamp);
    let mark = standing::serve(state);
    let mut row = Row::new();
    match &state.server.state {
        ServingState::Loading => {
            row.put(0, format!(" {}", mark.glyph()), mark.style(look));
            load::whole(scene, &mut row);
        }
        ServingState::Unknown
        | ServingState::Down
        | ServingState::Answering
        | ServingState::Ready
        | ServingState::Degraded(_)
        | ServingState::Stopping
        | ServingState::Failed(_) => {
            let text = format!(" {} {}", mark.glyph(), state.server.state.word());
            row.put(0, text, mark.style(look));
            let rate = &state.server.generation;
            if let Some(n) = rate.value() {
                let tone = Age::of(rate, METRICS_EVERY, now).tone(look, look.strong());
                row.put(1, format!("{} tok/s", number(*n)), tone);
            }
            row.put(2, standing::serves_for(state, now), look.dim());
        }
    }
    row
}

/// The first cause; else why the server is not well, or why a node can't be reached.
fn reason(scene: &Scene<'_>) -> Option<(String, ratatui::style::Style)> {
    let (state, look) = (scene.state, scene.look);
    if run::tells_cause(scene) {
        return None;
    }
    if let Some(first) = state.causes().first() {
        return Some((format!("✗ {}", cause::headline(state, first, scene.now)), look.bad()));
    }
    if let Some(why) = state.server_why() {
        return Some((format!("! {why}"), look.warn()));
    }
    let lost = (0..).map(NodeId).take(state.nodes.len()).find(|id| state.lost(*id))?;
    let text = format!("! {} can't be reached", state.config.node_name(lost));
    Some((text, look.warn()))
}
