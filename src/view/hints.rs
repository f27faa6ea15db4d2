//! The last line: the keys that work here.

use ratatui::layout::Rect;
use ratatui::text::Span;

use crate::domain::intent::{Action, Intent, Mode};
use crate::input::{self, Binding, Group, Press};

use super::Scene;
use super::canvas::Canvas;
use super::widgets::row::Row;

/// Draws the line. Where there is no room, the keys in the middle of the list go first: what acts on the cluster, help and quit stay.
pub(super) fn draw(scene: &Scene<'_>, canvas: &mut Canvas<'_>, area: Rect) {
    let look = scene.look;
    let mut row = Row::new();
    let secret = scene.state.questions.front().is_some_and(|q| q.ask.secret());
    let asks = scene.state.screen.mode == Mode::Question;
    let keys = if asks && scene.early {
        vec![LEAVE]
    } else if asks && secret {
        typing()
    } else {
        bound(scene)
    };
    for (rank, key, word) in keys {
        let spans = vec![
            Span::styled(key, look.key()),
            Span::styled(format!(" {word}"), look.text()),
        ];
        row.spans(rank, spans);
    }
    let row = if area.width < NARROW { row.closing() } else { row };
    row.draw(canvas, area.x.saturating_add(1), area.y, area.width.saturating_sub(1));
}

/// Width below which the keys stand closer.
const NARROW: u16 = 60;

/// Whether what is shown can't be run.
fn refused(scene: &Scene<'_>) -> bool {
    if scene.state.screen.mode == Mode::Test {
        return scene.state.test_refusal().is_some();
    }
    scene.state.plan.as_ref().is_some_and(|p| !p.refusals.is_empty())
}

/// Keys with what they do, and which go first.
type Keys = Vec<(u8, &'static str, &'static str)>;

/// The key that counts everywhere and always.
const LEAVE: (u8, &str, &str) = (3, "Ctrl-C", "quit");

fn bound(scene: &Scene<'_>) -> Keys {
    let state = scene.state;
    // Keys that do nothing now.
    let mut idle = Vec::new();
    if refused(scene) {
        idle.push(Intent::Confirm);
    }
    if !state.run_under_way() {
        idle.push(Intent::StopRun);
    }
    if state.run.is_none() {
        idle.push(Intent::Steps);
    }
    let works = |b: &Binding| {
        !b.chords
            .iter()
            .any(|(_, p)| matches!(p, Press::Intent(i) if idle.contains(i)))
    };
    let hints = input::hints(state.screen.mode)
        .into_iter()
        .filter(|b| works(b))
        .enumerate();
    hints
        .map(|(i, b)| {
            (
                stays(b).unwrap_or_else(|| u8::try_from(i + 6).unwrap_or(u8::MAX)),
                b.keys,
                b.hint,
            )
        })
        .collect()
}

/// While a secret is typed, letters are text.
fn typing() -> Keys {
    vec![
        (1, "Enter", "use it"),
        (2, "Esc", "skip"),
        (4, "Ctrl-U", "clear"),
        LEAVE,
    ]
}

/// How soon a key that stays long goes: the answers last, then the way back, then what does most, then the parts of it.
fn stays(binding: &Binding) -> Option<u8> {
    let rank = |press: &Press| match press {
        Press::Answer(_) | Press::Intent(Intent::Confirm) => Some(1),
        Press::Intent(Intent::Back | Intent::StopRun | Intent::StopMenu) => Some(2),
        // The stop menu lists them itself too.
        Press::Intent(Intent::Plan(Action::Up | Action::StopServe | Action::StopAll)) => Some(3),
        Press::Intent(Intent::Help | Intent::Quit) => Some(4),
        Press::Intent(_) => (binding.group == Group::Cluster).then_some(5),
    };
    binding.chords.iter().find_map(|(_, press)| rank(press))
}
