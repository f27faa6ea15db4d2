//! Where a load stands, from the engine's own lines and from what moves on its nodes.

mod bar;
pub mod eta;
mod rank;
#[cfg(test)]
mod tests;
pub mod trend;
pub mod verdict;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::domain::load::{LineFact, Stage, Transport};
use crate::domain::units::Bytes;
use crate::domain::{Stamp, When};

pub use bar::Bar;
pub use rank::Rank;

/// Failure lines kept of one start; the first is the one that counts.
const FAILURES: usize = 8;

/// Files of a download that are followed; the largest models have a few hundred.
const FILES: usize = 1024;

/// A failure line that is older than this when the server ends is not why it ended.
const LAST_WORDS: Duration = Duration::from_secs(60);

/// The progress of one node's load, as its own log tells it.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Load {
    /// When the line with which this start begins was written.
    pub started: Option<When>,
    /// Latest stage and when it began. `None` before the first line that names one.
    pub stage: Option<(Stage, When)>,
    /// The stages of this start, in order, each with when it began.
    pub entered: Vec<(Stage, When)>,
    /// The bar of the latest stage: done, of how many, when it moved last.
    pub bar: Option<Bar>,
    /// Size of the weights on the disk, all ranks together, where the engine tells it.
    pub checkpoint: Option<Bytes>,
    /// What comes from a hub.
    pub download: Download,
    /// The ranks that this log names.
    pub ranks: Vec<Rank>,
    /// Seconds that the engine says it has waited for GPUs, when that is the stage.
    pub gpu_wait: Option<u64>,
    /// Last line that says more than that something is waited for.
    pub line_at: Option<When>,
    /// Last sign of progress: a stage, a bar that moved, a reading that moved.
    pub progress_at: Option<When>,
    /// First failure lines since the start, in order, each with when it was written.
    pub failures: Vec<(When, String)>,
    /// The line that says that this start comes to nothing, and whether the engine says so of itself.
    pub gave_up: Option<LastWord>,
    /// When the server said first that it ends.
    pub shuts_down: Option<When>,
    /// NCCL transports seen since the start.
    pub transports: Vec<Transport>,
    /// Whether the server ended in peace: what it said before is not why it is gone.
    pub over: bool,
    /// How far it was when its server was seen no more.
    kept: Option<Kept>,
}

/// How far a load was.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
struct Kept {
    started: Option<When>,
    stage: Option<(Stage, When)>,
    bar: Option<Bar>,
    gpu_wait: Option<u64>,
    ranks: Vec<Rank>,
}

/// What says that a start comes to nothing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LastWord {
    /// When it was said, and in which words.
    pub said: (When, String),
    /// Whether the engine says so of itself.
    pub sure: bool,
}

/// A download, in bytes.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Download {
    /// Each file's own bar: done, of how many.
    files: BTreeMap<String, (Bytes, Bytes)>,
    /// The bar that stands for all of them.
    whole: Option<(Bytes, Bytes)>,
    /// First look: when, and what was done then.
    since: Option<(When, Bytes)>,
}

impl Download {
    /// Bytes that are here, as far as bars tell.
    #[must_use]
    pub fn done(&self) -> Option<Bytes> {
        let files = self
            .files
            .values()
            .fold(0u64, |sum, (done, _)| sum.saturating_add(done.0));
        let whole = self.whole.map(|(done, _)| done.0);
        let any = whole.is_some() || !self.files.is_empty();
        any.then(|| Bytes(files.max(whole.unwrap_or_default())))
    }

    /// Bytes of all files. `None` while a file is known to be missing from the list, or may be: one bar a file says nothing of the rest.
    #[must_use]
    pub fn total(&self) -> Option<Bytes> {
        if let Some((_, total)) = self.whole {
            return Some(total);
        }
        let of = self.files.keys().find_map(|name| files_in_all(name))?;
        let parts = self.files.keys().filter(|name| files_in_all(name) == Some(of)).count();
        let sum = self
            .files
            .values()
            .fold(0u64, |sum, (_, total)| sum.saturating_add(total.0));
        (parts == of).then_some(Bytes(sum))
    }

    /// Time left at the rate so far.
    #[must_use]
    pub fn eta(&self, now: Stamp) -> Option<Duration> {
        let (since, from) = self.since?;
        // How long what is here took is known from a first look alone that is.
        let since = since.sure()?;
        let (done, total) = (self.done()?, self.total()?);
        let came = done.minus(from).0;
        let took = now.since(since).as_millis();
        let ms = (u128::from(total.minus(done).0) * took).checked_div(u128::from(came))?;
        u64::try_from(ms).ok().map(Duration::from_millis)
    }

    /// Takes a bar; says whether it has moved. An amount never goes back.
    fn take(&mut self, file: Option<String>, done: Bytes, total: Bytes, now: When) -> bool {
        let before = self.done();
        match file {
            Some(name) if self.files.len() < FILES || self.files.contains_key(&name) => {
                let kept = self.files.entry(name).or_insert((done, total));
                *kept = (kept.0.max(done), kept.1.max(total));
            }
            Some(_) => {}
            None => {
                let kept = self.whole.get_or_insert((done, total));
                *kept = (kept.0.max(done), kept.1.max(total));
            }
        }
        let after = self.done();
        if self.since.is_none_or(|(since, _)| since.found) {
            self.since = after.map(|done| (now, done));
        }
        after > before
    }
}

/// The number of parts of which a file is one: 6 of `model-00001-of-00006.safetensors`.
fn files_in_all(name: &str) -> Option<usize> {
    let (_, rest) = name.rsplit_once("-of-")?;
    rest.split('.').next()?.parse().ok().filter(|n| *n > 0)
}

impl Load {
    /// The stages before this one, with how long each took; those of which that is not known are left out.
    #[must_use]
    pub fn over(&self, stage: Stage) -> Vec<(Stage, Duration)> {
        let next = self.entered.iter().skip(1);
        let pairs = self.entered.iter().zip(next).filter(|((before, _), _)| *before < stage);
        let took = pairs.filter_map(|((before, from), (_, to))| Some((*before, to.sure()?.since(from.sure()?))));
        took.collect()
    }

    /// Takes what a line says that was written then.
    pub fn line(&mut self, fact: LineFact, now: When) {
        match fact {
            LineFact::NewStart => {
                *self = Self {
                    started: Some(now),
                    line_at: Some(now),
                    progress_at: Some(now),
                    ..Self::default()
                };
                self.enter(Stage::Starting, now);
            }
            LineFact::Stage(stage) => {
                // An engine that begins anew in the same server, and a server that came up all the same.
                if stage == Stage::Starting || stage == Stage::Listening {
                    self.gave_up = None;
                    self.shuts_down = None;
                }
                self.enter(stage, now);
            }
            LineFact::Bar { stage, done, total } => {
                self.enter(stage, now);
                self.move_bar(stage, done, total, now);
            }
            LineFact::Download { file, done, total } => {
                self.enter(Stage::Download, now);
                if self.download.take(file, done, total, now) {
                    self.goes_on(now);
                }
            }
            LineFact::Checkpoint(size) => self.checkpoint = Some(size),
            LineFact::Rank(line) => rank::take(&mut self.ranks, line, now),
            LineFact::GpuWait { seconds } => {
                self.enter(Stage::Placement, now);
                self.gpu_wait = Some(seconds);
            }
            LineFact::StillWaits => {}
            LineFact::Transport(t) => {
                if !self.transports.contains(&t) {
                    self.transports.push(t);
                }
            }
            LineFact::Failure(text) => {
                if self.failures.len() < FAILURES {
                    self.failures.push((now, text));
                }
            }
            LineFact::ShutsDown => {
                self.shuts_down.get_or_insert(now);
            }
            LineFact::Outlived(text) => {
                self.failures.retain(|(_, said)| *said != text);
                self.gave_up = self.gave_up.take().filter(|word| word.sure || word.said.1 != text);
            }
            LineFact::GaveUp { text, sure } => match &mut self.gave_up {
                Some(word) => word.sure |= sure,
                None => {
                    self.gave_up = Some(LastWord {
                        said: (now, text),
                        sure,
                    })
                }
            },
        }
    }

    /// The log says that it goes on: what no engine was seen to survive, this one has. Its own word holds until it begins anew, for other ranks go on for a
    /// while, and late lines come after it.
    fn goes_on(&mut self, now: When) {
        self.progress_at = Some(now);
        self.gave_up = self.gave_up.take().filter(|word| word.sure);
    }

    /// The log has a line that says more than that something is waited for: such lines alone break a silence.
    pub fn spoke(&mut self, at: When) {
        self.line_at = Some(at);
    }

    /// A token came back then, or the server was ready for long after: what its log has called a failure before was none of this start.
    pub fn survived(&mut self, at: Stamp) {
        self.failures.retain(|(said, _)| said.stamp >= at);
        self.gave_up = self.gave_up.take().filter(|word| word.said.0.stamp >= at);
    }

    /// The server of this load is gone: no load is left. The failure lines stay, they may say why.
    pub fn ended(&mut self, in_peace: bool) {
        self.kept = Some(Kept {
            started: self.started.take(),
            stage: self.stage.take(),
            bar: self.bar.take(),
            gpu_wait: self.gpu_wait.take(),
            ranks: std::mem::take(&mut self.ranks),
        });
        self.over = in_peace;
    }

    /// The server that was seen no more is there again, and is the same: its load goes on where it was, unless its log has told of another one.
    pub fn back(&mut self) {
        let Some(kept) = self.kept.take() else { return };
        let (was, is) = (kept.stage.map(|(stage, _)| stage), self.stage.map(|(stage, _)| stage));
        self.over = false;
        self.started = self.started.or(kept.started);
        // Its log came again meanwhile, as far.
        if was <= is {
            return;
        }
        (self.stage, self.bar) = (kept.stage, kept.bar);
        (self.gpu_wait, self.ranks) = (kept.gpu_wait, kept.ranks);
    }

    /// The server of this load was another one than the one that runs: nothing of it is left but why it may have failed.
    pub fn gone(&mut self) {
        self.ended(false);
        self.kept = None;
        (self.line_at, self.progress_at) = (None, None);
        self.entered.clear();
    }

    /// Whether it has a beginning, also where its server is not seen now.
    #[must_use]
    pub fn begun(&self) -> bool {
        self.started.is_some() || self.kept.as_ref().is_some_and(|kept| kept.started.is_some())
    }

    /// When the lines of this start were written, those that its ages are counted from.
    pub fn times(&self) -> impl Iterator<Item = &When> {
        let stages = self.stage.iter().chain(&self.entered).map(|(_, at)| at);
        let bar = self.bar.iter().flat_map(|bar| [&bar.seen, &bar.since, &bar.at]);
        self.started.iter().chain(stages).chain(bar).chain(&self.line_at)
    }

    /// The same, to be changed.
    pub fn times_mut(&mut self) -> impl Iterator<Item = &mut When> {
        let stages = self.stage.iter_mut().chain(&mut self.entered).map(|(_, at)| at);
        let bar = self
            .bar
            .iter_mut()
            .flat_map(|bar| [&mut bar.seen, &mut bar.since, &mut bar.at]);
        let ranks = self
            .ranks
            .iter_mut()
            .filter_map(|rank| rank.stage.as_mut().map(|(_, at)| at));
        let log = self.started.iter_mut().chain(&mut self.line_at);
        log.chain(stages).chain(bar).chain(ranks)
    }

    /// Moves on to a stage; a stage that lies behind changes nothing.
    fn enter(&mut self, stage: Stage, now: When) {
        if self.stage.is_none_or(|(s, _)| stage > s) {
            self.stage = Some((stage, now));
            // Each stage comes once at most, so the list is as short as the stages are few.
            if self.entered.iter().all(|(known, _)| *known != stage) {
                self.entered.push((stage, now));
            }
            self.bar = None;
            self.goes_on(now);
        }
    }

    fn move_bar(&mut self, stage: Stage, done: u64, total: u64, now: When) {
        if self.stage.is_none_or(|(s, _)| s != stage) {
            return;
        }
        if bar::advance(&mut self.bar, stage, done, total, now) {
            self.goes_on(now);
        }
    }
}

/// Failure lines of all nodes, the first one first: a worker's cause comes before the head's echo of it. That an engine has given up comes after all that
/// says why, though it may have been said before.
pub fn failures<'a>(loads: impl Iterator<Item = &'a Load>) -> Vec<&'a (When, String)> {
    let (mut all, mut last) = (Vec::new(), Vec::new());
    for load in loads {
        all.extend(&load.failures);
        last.extend(load.gave_up.as_ref().map(|word| &word.said));
    }
    all.sort_by_key(|(at, _)| *at);
    last.sort_by_key(|(at, _)| *at);
    all.extend(last);
    all
}

/// Whether a server that ends now ends in peace: it has listened, and no node has lately said that something failed.
pub fn in_peace<'a>(head: &Load, loads: impl Iterator<Item = &'a Load>, now: Stamp) -> bool {
    let listened = head.stage.is_some_and(|(stage, _)| stage == Stage::Listening);
    listened && failures(loads).iter().all(|(at, _)| at.age(now) > LAST_WORDS)
}
