//! When something was, as far as can be told over several clocks.

use std::time::Duration;

use crate::domain::Wall;
use crate::domain::time::millis;

/// The clocks of nodes and the console's are taken to agree this far, once what is known of their difference is taken out. Within it nothing tells which
/// of two nodes was first.
pub const CLOCKS: Duration = Duration::from_secs(2);

/// When something was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// By the console's clock.
    pub wall: Wall,
    /// Whether it was then, and not just found then.
    pub certain: bool,
}

/// Which of two was first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The first one.
    Before,
    /// The second one.
    After,
    /// Nothing tells.
    Unclear,
}

impl Moment {
    /// Which was first.
    pub fn order(self, other: Self) -> Order {
        if !self.certain || !other.certain || self.wall.0.abs_diff(other.wall.0) <= millis(CLOCKS) {
            return Order::Unclear;
        }
        if self.wall < other.wall {
            Order::Before
        } else {
            Order::After
        }
    }
}
