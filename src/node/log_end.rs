//! How the container ended whose log was read last.

use std::time::Duration;

use crate::domain::Source;
use crate::domain::event::{EventKind, Purpose};
use crate::domain::logs::ContainerEnd;
use crate::probe::ends;
use crate::ssh::Session;

use super::exec;
use super::follow::{NodeLog, say};
use super::task::NodeSetup;

/// How often Docker is asked for the end of a container whose log has ended, and the wait between two times.
const ASKS: usize = 3;

/// See [`ASKS`].
const ASK_AGAIN: Duration = Duration::from_secs(1);

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
    let Some((id, name)) = log.container.clone().filter(|_| !log.gone) else {
        return;
    };
    let mut end = ask_end(setup, session, &id).await;
    let mut told = end.is_some_and(|end| Some(end.at) <= log.ended);
    // A log ends a moment before the engine tells of the container's end.
    for _ in 1..ASKS {
        if before != Known::Perhaps || (end.is_some() && !told) {
            break;
        }
        tokio::time::sleep(ASK_AGAIN).await;
        end = ask_end(setup, session, &id).await;
        told = end.is_some_and(|end| Some(end.at) <= log.ended);
    }
    let runs = match before {
        Known::Ended => false,
        Known::Perhaps => end.is_none(),
        Known::Left => end.is_none_or(|end| end.again),
    };
    if told || runs {
        return;
    }
    log.gone = end.is_none();
    log.ended = end.map(|e| e.at).or(log.ended);
    let end = ContainerEnd {
        id,
        name,
        code: end.and_then(|e| e.code),
        oom: end.is_some_and(|e| e.oom),
        available: None,
    };
    let text = format!("… {} ended {}", end.name, end.words());
    say(setup, log, &text).await;
    let kind = EventKind::ContainerEnded(end);
    setup.feed.send(Source::Node(setup.id), kind).await;
}

async fn ask_end(setup: &NodeSetup, session: &Session, id: &str) -> Option<ends::End> {
    let command = ends::command(&setup.config.container.docker, id, setup.config.limits.command);
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
    ends::parse(&output)
}
