//! How the container ended whose log was read last.

use std::collections::VecDeque;
use std::time::Duration;

use crate::domain::Source;
use crate::domain::command::Exit;
use crate::domain::event::{EventKind, Purpose};
use crate::domain::logs::ContainerEnd;
use crate::probe::ends;
use crate::ssh::Session;

use super::exec;
use super::follow::NodeLog;
use super::log_source::say;
use super::task::NodeSetup;

/// How often Docker is asked for the end of a container whose log has ended, and the wait between two times.
const ASKS: usize = 3;

/// See [`ASKS`].
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// Ends that are remembered as told; the oldest goes first. A log goes back to a container that was followed before only where the newer ones are gone.
const TOLD: usize = 16;

/// A life of a container, as the node probe saw it last: from a start to an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Life {
    /// The container's full id.
    pub(super) id: String,
    /// Its name.
    pub(super) name: String,
    /// When it was started, in nanoseconds since 1970 by the node's clock.
    pub(super) started: Option<u64>,
    /// Its exit code and whether it ran out of memory, where it was seen ended.
    pub(super) exit: Option<(i32, bool)>,
}

/// The ends that stand in a log: each life of a container has one.
#[derive(Debug, Default)]
pub(super) struct Told(VecDeque<ToldEnd>);

/// An end that stands in a log.
#[derive(Debug)]
struct ToldEnd {
    id: String,
    /// Of the life that was known then; it may have been over for a while.
    started: Option<u64>,
    /// When it was, in nanoseconds since 1970 by the node's clock; `None` where the engine did not know.
    at: Option<u64>,
}

impl Told {
    /// Whether the end of this life stands there. `at`: when Docker says that its container ended last, where it says so.
    ///
    /// What is told later of the same life, by an engine that has forgotten the end meanwhile or remembers it again, is not another end.
    fn has(&self, life: &Life, at: Option<u64>) -> bool {
        self.0
            .iter()
            .filter(|told| told.id == life.id)
            .any(|told| match (told.at, at) {
                // A container that was started again may have been seen only before that.
                (Some(told), Some(at)) => at <= told,
                (Some(at), None) => told.started == life.started || life.started.is_some_and(|started| started <= at),
                (None, _) => told.started == life.started,
            })
    }

    /// Whether it stands there that nobody knows when this life ended: no answer adds to that.
    fn unknown(&self, life: &Life) -> bool {
        let of_it = |told: &ToldEnd| told.id == life.id && told.started == life.started && told.at.is_none();
        self.0.iter().any(of_it)
    }

    fn add(&mut self, life: &Life, at: Option<u64>) {
        if self.0.len() >= TOLD {
            self.0.pop_front();
        }
        self.0.push_back(ToldEnd {
            id: life.id.clone(),
            started: life.started,
            at,
        });
    }
}

/// What is known of a container's end before Docker is asked how it was.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// It does not run.
    Ended,
    /// It ran when it was seen last, and its log has ended.
    Perhaps,
    /// It is no longer followed, and may go on.
    Left,
}

/// Asks Docker how the container ended whose log was read last, and says so in the log; nothing where it did not end.
pub(super) async fn tell_end(setup: &NodeSetup, session: &Session, log: &mut NodeLog, before: Known) {
    let Some(life) = log.container.clone().filter(|life| !log.told.unknown(life)) else {
        return;
    };
    let mut answer = ask_end(setup, session, &life).await;
    let mut end = answer.as_ref().ok().copied().flatten();
    let mut told = log.told.has(&life, end.map(|e| e.at));
    // A log ends a moment before the engine tells of the container's end.
    for _ in 1..ASKS {
        let known = before != Known::Perhaps || (end.is_some() && !told);
        if known && answer.is_ok() {
            break;
        }
        tokio::time::sleep(ASK_AGAIN).await;
        answer = ask_end(setup, session, &life).await;
        end = answer.as_ref().ok().copied().flatten();
        told = log.told.has(&life, end.map(|e| e.at));
    }
    let runs = match before {
        Known::Ended => false,
        Known::Perhaps => end.is_none(),
        Known::Left => end.is_none_or(|end| end.again),
    };
    // With a connection that is lost nothing is known; the next one asks again.
    let lost = answer.as_ref().is_err_and(|unasked| unasked.lost);
    if told || runs || lost {
        return;
    }
    log.told.add(&life, end.map(|e| e.at));
    // The engine forgets its events before it forgets the container.
    let exit = life.exit.filter(|_| end.is_none());
    let end = ContainerEnd {
        id: life.id,
        name: life.name,
        code: end.and_then(|e| e.code).or(exit.map(|(code, _)| code)),
        oom: end.map_or(exit.is_some_and(|(_, oom)| oom), |e| e.oom),
        available: None,
        // What Docker says there may be anything.
        unasked: answer.err().map(|unasked| setup.masker.text(&unasked.why).into_owned()),
    };
    let text = format!("… {} ended {}", end.name, end.words());
    say(setup, log, &text).await;
    let kind = EventKind::ContainerEnded(end);
    setup.feed.send(Source::Node(setup.id), kind).await;
}

/// Docker's events could not be read.
struct Unasked {
    why: String,
    /// Whether the connection was lost.
    lost: bool,
}

/// The last end of this life or of one after it.
async fn ask_end(setup: &NodeSetup, session: &Session, life: &Life) -> Result<Option<ends::End>, Unasked> {
    let command = ends::command(&setup.config.container.docker, &life.id, setup.config.limits.command);
    let output = exec::run(
        Some(session.clone()),
        &setup.feed,
        &setup.masker,
        setup.id,
        setup.feed.next_run(),
        Purpose::Log,
        command,
        Ok(None),
    )
    .await;
    let lost = matches!(output.exit, Exit::Unknown(_));
    let end = ends::parse(&output).map_err(|why| Unasked { why, lost })?;
    Ok(end.filter(|end| life.started.is_none_or(|started| started <= end.at)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life(id: &str, started: u64) -> Life {
        Life {
            id: id.to_owned(),
            name: "c".to_owned(),
            started: Some(started),
            exit: None,
        }
    }

    #[test]
    fn each_life_of_a_container_has_one_end() {
        let mut told = Told::default();
        assert!(!told.has(&life("a", 10), None) && !told.has(&life("a", 10), Some(20)));
        told.add(&life("a", 10), Some(20));
        // Stopped, then removed: the engine tells the same end, or knows nothing of it any more.
        assert!(told.has(&life("a", 10), Some(20)) && told.has(&life("a", 10), None));
        // It was started again: its next end is another one, also where the new start was not seen yet.
        assert!(!told.has(&life("a", 30), None) && !told.has(&life("a", 30), Some(40)));
        assert!(!told.has(&life("a", 10), Some(40)));
        told.add(&life("a", 10), Some(40));
        assert!(told.has(&life("a", 30), Some(40)) && told.has(&life("a", 30), None));
        // Another container of that name.
        assert!(!told.has(&life("b", 10), None) && !told.has(&life("b", 10), Some(15)));
    }

    #[test]
    fn an_end_that_nobody_knew_is_not_told_again_when_it_is_known() {
        let mut told = Told::default();
        told.add(&life("a", 10), None);
        assert!(told.unknown(&life("a", 10)) && !told.unknown(&life("a", 30)));
        assert!(told.has(&life("a", 10), None) && told.has(&life("a", 10), Some(20)));
        assert!(!told.has(&life("a", 30), None) && !told.has(&life("a", 30), Some(40)));
    }

    #[test]
    fn only_the_latest_ends_are_remembered() {
        let mut told = Told::default();
        for started in 0..40 {
            told.add(&life("a", started * 10), Some(started * 10 + 5));
        }
        assert_eq!(told.0.len(), TOLD);
        assert!(told.has(&life("a", 390), None) && !told.has(&life("a", 400), None));
    }
}
