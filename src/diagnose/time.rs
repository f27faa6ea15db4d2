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
    /// By the console's clock, at the latest.
    pub wall: Wall,
    /// At the earliest: what is looked at from time to time has come between two looks.
    pub from: Wall,
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
        let before = |one: Self, two: Self| one.wall.0.saturating_add(millis(CLOCKS)) < two.from.0;
        match self.certain && other.certain {
            true if before(self, other) => Order::Before,
            true if before(other, self) => Order::After,
            true | false => Order::Unclear,
        }
    }
}
