//! Draws a state and reads the buffer.

use bringup::config::theme;
use bringup::domain::intent::Pane;
use bringup::log::LogWindows;
use bringup::model::State;
use bringup::view::{Glyphs, Look, Regions, Scene, draw};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::build::NOW;

/// A drawn frame.
pub struct Shot {
    pub buffer: Buffer,
    pub regions: Regions,
}

/// The look of the default theme.
pub fn look(glyphs: Glyphs) -> Look {
    let theme = theme::builtin(theme::DEFAULT).expect("the default theme is built in");
    Look::new(theme, glyphs, true, 0)
}

/// Draws with a look.
pub fn shot_with(state: &State, logs: &LogWindows, look: &Look, size: (u16, u16)) -> Shot {
    shot_typed(state, logs, look, size, None)
}

/// Draws while this may be seen in the field that is typed into.
pub fn shot_typed(
    state: &State,
    logs: &LogWindows,
    look: &Look,
    (width, height): (u16, u16),
    shown: Option<&str>,
) -> Shot {
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    let scene = Scene {
        state,
        logs,
        look,
        now: NOW,
        typed: shown.map_or(7, |s| s.chars().count()),
        shown,
        early: false,
        told: None,
    };
    let regions = draw(&scene, &mut buffer, area);
    Shot { buffer, regions }
}

/// Draws with what the terminal adds: whether a question is so new that its keys do not count, and what there is to say.
pub fn shot_beside(state: &State, logs: &LogWindows, size: (u16, u16), early: bool, told: Option<&str>) -> Shot {
    let look = look(Glyphs::Unicode);
    let scene = Scene {
        state,
        logs,
        look: &look,
        now: NOW,
        typed: 0,
        shown: None,
        early,
        told,
    };
    let area = Rect::new(0, 0, size.0, size.1);
    let mut buffer = Buffer::empty(area);
    let regions = draw(&scene, &mut buffer, area);
    Shot { buffer, regions }
}

/// Draws with the default look.
pub fn shot(state: &State, logs: &LogWindows, size: (u16, u16)) -> Shot {
    shot_with(state, logs, &look(Glyphs::Unicode), size)
}

impl Shot {
    /// The whole screen as text.
    pub fn text(&self) -> String {
        self.crop(self.buffer.area)
    }

    /// A part of the screen as text, without blanks at the ends of lines.
    pub fn crop(&self, area: Rect) -> String {
        let lines = area.rows().map(|row| {
            let line: String = row.positions().map(|p| self.buffer[p].symbol()).collect();
            line.trim_end().to_owned()
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// A pane as text.
    pub fn pane(&self, pane: Pane) -> String {
        let found = self.regions.panes.iter().find(|(p, _)| *p == pane);
        found.map_or_else(|| "(not on the screen)".to_owned(), |(_, area)| self.crop(*area))
    }

    /// The style of the first cell of the first place where `text` stands on one line.
    pub fn style_of(&self, text: &str) -> Style {
        for row in self.buffer.area.rows() {
            let symbols: Vec<&str> = row.positions().map(|p| self.buffer[p].symbol()).collect();
            for (i, position) in row.positions().enumerate() {
                if symbols[i..].concat().starts_with(text) {
                    return self.buffer[position].style();
                }
            }
        }
        panic!("`{text}` is not on the screen:\n{}", self.text());
    }
}
