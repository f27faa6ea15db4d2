//! When a line of a node's log was written, on the console's clock.

use crate::domain::clock::{NodeClock, Written};
use crate::domain::{Reading, Stamp, When};

/// When a line was written that is read now. `clock` is its node's, `last` is when the line before it was.
///
/// The order of a log is that of its lines: none is older than the one before. A time that lies ahead of the node's own clock can't be true: the clock was
/// set since. Such a line, and one without a time, is as old as its arrival if it was read as it was written, and of unknown age if it was there before.
pub(super) fn when(clock: &Reading<NodeClock>, last: Option<Stamp>, written: Written, now: Stamp) -> When {
    let by_clock = || {
        let (clock, at) = (clock.value()?, clock.at()?);
        let stamp = clock.stamp(at, written.by_node?);
        (stamp <= clock.latest(now)).then_some(stamp)
    };
    match by_clock() {
        Some(stamp) => When::at(stamp.max(last.unwrap_or_default()).min(now)),
        None if written.backlog => When::found(now),
        None => When::at(now),
    }
}
