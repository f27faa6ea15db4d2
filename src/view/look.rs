//! How things look: roles of the theme as styles of the buffer, and which characters the terminal has.

use ratatui::style::{Color, Modifier, Style};

use crate::config::theme::{self, Theme};

/// The characters that a terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Glyphs {
    /// Box drawing, blocks, marks.
    #[default]
    Unicode,
    /// ASCII only.
    Ascii,
}

/// Everything about the look of the screen that is not in the state.
#[derive(Debug, Clone)]
pub struct Look {
    theme: Theme,
    glyphs: Glyphs,
    color: bool,
    utc_offset: i32,
}

impl Look {
    /// A look. Without `color` (NO_COLOR), weight and reverse stay. `utc_offset` is added to the clock on the screen, in seconds.
    #[must_use]
    pub fn new(theme: Theme, glyphs: Glyphs, color: bool, utc_offset: i32) -> Self {
        let theme = if color { theme } else { theme.no_color() };
        Self {
            theme,
            glyphs,
            color,
            utc_offset,
        }
    }

    pub(super) fn glyphs(&self) -> Glyphs {
        self.glyphs
    }

    /// Whether a log's own colours are shown.
    pub(super) fn colored(&self) -> bool {
        self.color
    }

    pub(super) fn utc_offset(&self) -> i32 {
        self.utc_offset
    }

    pub(super) fn text(&self) -> Style {
        style(self.theme.text)
    }

    /// Text that the eye should find first.
    pub(super) fn strong(&self) -> Style {
        self.text().add_modifier(Modifier::BOLD)
    }

    pub(super) fn dim(&self) -> Style {
        style(self.theme.dim)
    }

    pub(super) fn label(&self) -> Style {
        style(self.theme.label)
    }

    pub(super) fn title(&self) -> Style {
        style(self.theme.title)
    }

    pub(super) fn border(&self) -> Style {
        style(self.theme.border)
    }

    pub(super) fn focus(&self) -> Style {
        style(self.theme.focus)
    }

    pub(super) fn good(&self) -> Style {
        style(self.theme.good)
    }

    pub(super) fn warn(&self) -> Style {
        style(self.theme.warn)
    }

    pub(super) fn bad(&self) -> Style {
        style(self.theme.bad)
    }

    pub(super) fn busy(&self) -> Style {
        style(self.theme.busy)
    }

    pub(super) fn stale(&self) -> Style {
        style(self.theme.stale)
    }

    pub(super) fn bar(&self) -> Style {
        style(self.theme.bar)
    }

    pub(super) fn chart_prompt(&self) -> Style {
        style(self.theme.chart_prompt)
    }

    pub(super) fn chart_generation(&self) -> Style {
        style(self.theme.chart_generation)
    }

    pub(super) fn selected(&self) -> Style {
        style(self.theme.selected)
    }

    pub(super) fn key(&self) -> Style {
        style(self.theme.key)
    }
}

/// A role's look as a style of the buffer. Attributes that are off stay as they are, so that a style can be laid over another.
fn style(from: theme::Style) -> Style {
    let mut style = Style::new();
    if from.fg != theme::Color::Default {
        style = style.fg(color(from.fg));
    }
    if from.bg != theme::Color::Default {
        style = style.bg(color(from.bg));
    }
    for (on, modifier) in [
        (from.bold, Modifier::BOLD),
        (from.dim, Modifier::DIM),
        (from.underline, Modifier::UNDERLINED),
        (from.reverse, Modifier::REVERSED),
    ] {
        if on {
            style = style.add_modifier(modifier);
        }
    }
    style
}

/// The buffer's name of one of the sixteen colours.
fn color(from: theme::Color) -> Color {
    match from {
        theme::Color::Default => Color::Reset,
        theme::Color::Black => Color::Black,
        theme::Color::Red => Color::Red,
        theme::Color::Green => Color::Green,
        theme::Color::Yellow => Color::Yellow,
        theme::Color::Blue => Color::Blue,
        theme::Color::Magenta => Color::Magenta,
        theme::Color::Cyan => Color::Cyan,
        theme::Color::White => Color::Gray,
        theme::Color::BrightBlack => Color::DarkGray,
        theme::Color::BrightRed => Color::LightRed,
        theme::Color::BrightGreen => Color::LightGreen,
        theme::Color::BrightYellow => Color::LightYellow,
        theme::Color::BrightBlue => Color::LightBlue,
        theme::Color::BrightMagenta => Color::LightMagenta,
        theme::Color::BrightCyan => Color::LightCyan,
        theme::Color::BrightWhite => Color::White,
    }
}
