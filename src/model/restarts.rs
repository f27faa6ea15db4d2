//! How often Docker restarts a container: a count alone does not say whether it goes on.

use std::collections::VecDeque;
use std::time::Duration;

use serde::Serialize;

use crate::domain::Stamp;
use crate::domain::container::Container;

/// Span of the rate.
pub const SPAN: Duration = Duration::from_secs(600);

/// Looks kept in which the count had grown; the oldest goes first, and the rate is then of a shorter span.
const KEPT: usize = 64;

/// Restarts of one container.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Restarts {
    id: String,
    count: u32,
    /// When the count was seen to have grown, and by how much.
    grown: VecDeque<(Stamp, u32)>,
}

impl Restarts {
    /// Takes what Docker says of the container.
    pub fn take(&mut self, container: Option<&Container>, at: Stamp) {
        let Some(container) = container else {
            *self = Self::default();
            return;
        };
        if self.id != container.id {
            *self = Self {
                id: container.id.clone(),
                count: container.restarts,
                grown: VecDeque::new(),
            };
        }
        // `docker start` sets the count back.
        let more = container.restarts.saturating_sub(self.count);
        self.count = container.restarts;
        if more > 0 {
            if self.grown.len() == KEPT {
                self.grown.pop_front();
            }
            self.grown.push_back((at, more));
        }
    }

    /// How many there were in the last [`SPAN`].
    #[must_use]
    pub fn lately(&self, now: Stamp) -> u32 {
        let late = |(at, _): &&(Stamp, u32)| now.since(*at) <= SPAN;
        self.grown.iter().filter(late).map(|(_, n)| n).sum()
    }
}

#[cfg(test)]
mod tests {
    use crate::domain::container::ContainerState;

    use super::*;

    fn container(id: &str, restarts: u32) -> Container {
        Container {
            id: id.into(),
            name: "vllm".into(),
            image: String::new(),
            state: ContainerState::Restarting,
            started_at: None,
            up_seconds: None,
            restarts,
            ours: None,
            labels: std::collections::BTreeMap::new(),
            pid: None,
        }
    }

    #[test]
    fn the_rate_counts_what_was_seen_to_grow_and_forgets_it() {
        let mut restarts = Restarts::default();
        let minute = |n: u64| Stamp(n * 60_000);
        restarts.take(Some(&container("a", 30)), minute(0));
        assert_eq!(restarts.lately(minute(0)), 0, "those were before");
        restarts.take(Some(&container("a", 32)), minute(1));
        restarts.take(Some(&container("a", 35)), minute(8));
        assert_eq!(restarts.lately(minute(9)), 5);
        assert_eq!(restarts.lately(minute(15)), 3);
        restarts.take(Some(&container("a", 0)), minute(16));
        restarts.take(Some(&container("a", 1)), minute(17));
        assert_eq!(restarts.lately(minute(17)), 4);
        restarts.take(Some(&container("b", 4)), minute(17));
        assert_eq!(restarts.lately(minute(17)), 0);
    }
}
