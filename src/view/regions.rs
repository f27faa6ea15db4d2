//! What a drawn frame tells its caller, so that drawing never has to write state.

use ratatui::layout::Rect;

use crate::domain::NodeId;
use crate::domain::intent::Pane;

/// Where things were drawn.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Regions {
    /// The panes that are on the screen.
    pub panes: Vec<(Pane, Rect)>,
    /// The logs that are on the screen.
    pub logs: Vec<LogRegion>,
    /// The scrolled text of an overlay or of a zoomed pane, when there is one.
    pub scrolled: Option<Scrolled>,
}

impl Regions {
    /// The log of a node.
    #[must_use]
    pub fn log(&self, node: NodeId) -> Option<&LogRegion> {
        self.logs.iter().find(|l| l.node == node)
    }
}

/// A node's log on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogRegion {
    /// Whose.
    pub node: NodeId,
    /// Rows that it has: as many lines are wanted for a frame.
    pub rows: usize,
    /// Lines that were drawn whole: fewer than `rows` where long lines are broken. A page is as long.
    pub lines: usize,
    /// Number of the first of them; 0 when there is none.
    pub first: u64,
    /// Number of the last one that was drawn.
    pub last: u64,
}

/// A text longer than its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scrolled {
    /// First line that was drawn.
    pub top: u16,
    /// Rows that it has.
    pub rows: u16,
    /// Lines of the whole text.
    pub total: u16,
}

impl Scrolled {
    /// The largest useful `top`.
    #[must_use]
    pub fn last_top(&self) -> u16 {
        self.total.saturating_sub(self.rows)
    }
}
