//! The ranks that a log names, each with how far it is.

use serde::Serialize;

use crate::domain::When;
use crate::domain::load::{RankLine, Stage};

use super::bar::{self, Bar};

/// Ranks kept of one log. A cluster of the size that one head starts has fewer.
const RANKS: usize = 256;

/// One rank.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Rank {
    /// As its prefix names it, such as `TP1`.
    pub name: Option<String>,
    /// Its number among all ranks.
    pub number: Option<u32>,
    /// Its process, in the numbers of its container.
    pub pid: Option<u32>,
    /// Its host's address; `None` for the host whose log this is.
    pub address: Option<String>,
    /// Furthest stage, and when it began.
    pub stage: Option<(Stage, When)>,
    /// The bar of that stage.
    pub bar: Option<Bar>,
}

impl Rank {
    /// Whether a line is this rank's: by its process on its host, and where a line lacks one of them, by its name or its number. Process numbers of two
    /// containers may be the same.
    fn is(&self, line: &RankLine) -> bool {
        let same = |a: Option<&String>, b: Option<&String>| a.is_some() && a == b;
        let named = same(self.name.as_ref(), line.name.as_ref()) || (self.number.is_some() && self.number == line.rank);
        let differs = (self.name.is_some() && line.name.is_some() && self.name != line.name)
            || (self.number.is_some() && line.rank.is_some() && self.number != line.rank);
        let process = self.pid.is_some() && self.pid == line.pid && self.address == line.address;
        !differs && (named || process)
    }

    fn take(&mut self, line: RankLine, now: When) {
        self.name = self.name.take().or(line.name);
        self.number = self.number.or(line.rank);
        self.pid = self.pid.or(line.pid);
        self.address = self.address.take().or(line.address);
        let Some(stage) = line.stage else { return };
        if self.stage.is_none_or(|(s, _)| stage > s) {
            self.stage = Some((stage, now));
            self.bar = None;
        }
        if let (Some((done, total)), Some((current, _))) = (line.bar, self.stage)
            && current == stage
        {
            bar::advance(&mut self.bar, stage, done, total, now);
        }
    }
}

/// Takes a line of a rank.
pub(super) fn take(ranks: &mut Vec<Rank>, line: RankLine, now: When) {
    if let Some(rank) = ranks.iter_mut().find(|r| r.is(&line)) {
        rank.take(line, now);
    } else if ranks.len() < RANKS {
        let mut rank = Rank::default();
        rank.take(line, now);
        ranks.push(rank);
    }
}
