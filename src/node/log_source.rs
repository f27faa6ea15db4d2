//! What is told of where a node's log is read from, and that there is nothing to read.

use std::time::Duration;

use crate::config::types::LogPlace;
use crate::domain::command::Exit;
use crate::domain::event::EventKind;
use crate::domain::logs::LogSource;
use crate::domain::{Role, Source};
use crate::probe::logs::NotThere;
use crate::probe::ray_logs;

use super::follow::NodeLog;
use super::log_reader::Reader;
use super::task::NodeSetup;

/// Writes a line of the console's own into the log.
pub(super) async fn say(setup: &NodeSetup, log: &mut NodeLog, text: &str) {
    let mut reader = Reader::new(&setup.log, &setup.masker, log, false);
    reader.say(text);
    reader.offer(&setup.feed, setup.id);
}

/// Writes into the log why it can't be followed, once for as long as it is so.
pub(super) async fn not_followed(setup: &NodeSetup, log: &mut NodeLog, why: &str) {
    if log.refused.as_deref() == Some(why) {
        return;
    }
    log.refused = Some(why.to_owned());
    let text = format!("… the log can't be followed: {}", setup.masker.text(why));
    say(setup, log, &text).await;
}

/// Tells what the log is read from, where that was not told last.
pub(super) async fn tell_source(setup: &NodeSetup, log: &mut NodeLog, source: LogSource) {
    if log.source.as_ref() == Some(&source) {
        return;
    }
    log.source = Some(source.clone());
    let kind = EventKind::LogSource(source);
    setup.feed.send(Source::Node(setup.id), kind).await;
}

/// Tells that there is nothing to read, and why.
pub(super) async fn tell_absent(setup: &NodeSetup, log: &mut NodeLog, what: &str, why: &str, said: Option<String>) {
    let masked = |text: &str| setup.masker.text(text).into_owned();
    let source = LogSource::Absent {
        what: masked(what),
        why: why.to_owned(),
        said: said.as_deref().map(masked),
    };
    tell_source(setup, log, source).await;
}

/// That there is nothing to read of what is to be followed.
pub(super) fn absent(setup: &NodeSetup, from: &LogSource, none: &NotThere) -> LogSource {
    let what = match from {
        LogSource::Follows { what, .. } | LogSource::Absent { what, .. } => what.clone(),
        LogSource::Ray { container } => ray_words(container),
        LogSource::Nothing { wanted } => wanted.clone(),
    };
    LogSource::Absent {
        what,
        why: none.why.to_owned(),
        said: none.said.as_deref().map(|said| setup.masker.text(said).into_owned()),
    }
}

/// Ray's own files in a container, as they are named on the screen.
pub(super) fn ray_words(container: &str) -> String {
    format!("{container}:{}", ray_logs::FOLDER)
}

/// Why a log's command that ended so gives no log; `own` is the configured place, where it is that which is read.
pub(super) fn why_not(own: Option<&LogPlace>, exit: &Exit) -> String {
    let command = matches!(own, Some(LogPlace::Command(_)));
    match exit {
        Exit::NotStarted(_) => "the node did not run what reads it".to_owned(),
        Exit::Code(127) if command => "the command is not found".to_owned(),
        Exit::Code(126) if command => "the command may not be run".to_owned(),
        Exit::Code(_) | Exit::Signal(_) | Exit::TimedOut | Exit::Unknown(_) => match own {
            Some(LogPlace::Command(_)) => format!("the command ended ({})", exit.word()),
            Some(LogPlace::Container(_)) => format!("Docker gives no log of it ({})", exit.word()),
            Some(LogPlace::File(_) | LogPlace::ContainerFile(..)) | None => {
                format!("what reads it ended ({})", exit.word())
            }
        },
    }
}

/// Says in the log that a command of the user's own is over, and when it is run again; once, where it fails each time. What can't be run is not over.
pub(super) async fn command_over(setup: &NodeSetup, role: Role, log: &mut NodeLog, exit: &Exit, pause: Duration) {
    let again = matches!(log.source, Some(LogSource::Absent { .. })) && !exit.ok();
    let runs = !matches!(exit, Exit::Code(126 | 127));
    if let LogPlace::Command(_) = setup.config.logs.of(role)
        && runs
        && !again
    {
        let again = crate::domain::time::human(pause);
        let text = format!("… the command ended ({}); it is run again in {again}", exit.word());
        say(setup, log, &text).await;
    }
}
