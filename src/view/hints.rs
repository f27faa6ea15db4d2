//! The last line: the keys that work here.

use ratatui::layout::Rect;
use ratatui::text::Span;

use crate::domain::intent::{Intent, Mode};
use crate::input::{self, Binding, Group, Press};

use super::Scene;
use super::canvas::Canvas;
use super::widgets::row::Row;

/// Draws the line. Where there is no room, the keys in the middle of the list go first: what acts on the cluster, help and quit stay.
pub(super) fn draw(scene: &Scene<'_>, canvas: &mut Canvas<'_>, area: Rect) {
    let look = scene.look;
    let mut row = Row::new();
    row.put(0, " ", look.text());
    let secret = scene.state.questions.front().is_some_and(|q| q.ask.secret());
    let asks = scene.state.screen.mode == Mode::Question;
    let keys = if asks && scene.early {
        vec![LEAVE]
    } else if asks && secret {
        typing()
    } else {
        bound(scene.state.screen.mode, !refused(scene), scene.state.run_under_way())
    };
    for (i, (rank, key, word)) in keys.into_iter().enumerate() {
        let spans = vec![
            Span::styled(key, look.key()),
            Span::styled(format!(" {word}"), look.text()),
        ];
        row.spans(rank, spans);
        if i == 0 {
            row.tight();
        }
    }
    row.draw(canvas, area.x, area.y, area.width);
}

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
const LEAVE: (u8, &str, &str) = (1, "Ctrl-C", "quit");

fn bound(mode: Mode, confirms: bool, under_way: bool) -> Keys {
    let runs = |b: &Binding| b.chords.iter().any(|(_, p)| *p == Press::Intent(Intent::Confirm));
    let stops = |b: &Binding| b.chords.iter().any(|(_, p)| *p == Press::Intent(Intent::StopRun));
    let hints = input::hints(mode)
        .into_iter()
        .filter(|b| confirms || !runs(b))
        .filter(|b| under_way || !stops(b))
        .enumerate();
    hints
        .map(|(i, b)| {
            (
                if stays(b) {
                    1
                } else {
                    u8::try_from(i + 2).unwrap_or(u8::MAX)
                },
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
        (1, "Esc", "go on without"),
        (2, "Ctrl-U", "clear"),
        LEAVE,
    ]
}

fn stays(binding: &Binding) -> bool {
    binding.group == Group::Cluster
        || binding.chords.iter().any(|(_, press)| {
            matches!(
                press,
                Press::Intent(Intent::Help | Intent::Quit | Intent::Confirm | Intent::Back)
            )
        })
}
