//! Everything that a frame is drawn from.

use std::borrow::Cow;

use ratatui::text::Span;

use crate::domain::Now;
use crate::domain::intent::Pane;
use crate::log::LogWindows;
use crate::model::State;

use super::look::Look;
use super::widgets::boxes::Border;

/// What a frame is drawn from.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    /// What is known.
    pub state: &'a State,
    /// The visible lines of the logs.
    pub logs: &'a LogWindows,
    /// How it looks.
    pub look: &'a Look,
    /// The moment that ages are counted to.
    pub now: Now,
    /// Characters typed so far into the field of a secret.
    pub typed: usize,
    /// What was typed, only where its question lets it be seen: a secret never comes here.
    pub shown: Option<&'a str>,
    /// Whether the question on the screen is so new that its keys do not count yet.
    pub early: bool,
    /// What the terminal itself has to say, such as that something was copied.
    pub told: Option<&'a str>,
}

impl<'a> Scene<'a> {
    /// The frame of a pane.
    pub(super) fn border(&self, pane: Pane) -> Border {
        let focused = self.state.screen.focus == pane;
        Border {
            style: if focused { self.look.focus() } else { self.look.border() },
            heavy: focused,
            sides: !self.state.screen.zoom,
        }
    }

    /// A pane's number and name.
    pub(super) fn title(&self, pane: Pane, name: &'a str) -> Vec<Span<'a>> {
        let number = self.state.panes().position(|p| p == pane).map_or(0, |i| i + 1);
        let focused = self.state.screen.focus == pane;
        let style = if focused { self.look.focus() } else { self.look.title() };
        vec![
            Span::styled(format!("{number} "), self.look.key()),
            Span::styled(Cow::Borrowed(name), style),
        ]
    }
}
