//! One run of a log's command: from its start until it ends, or until something else is to be followed.

use std::pin::Pin;
use std::time::Duration;

use futures_util::FutureExt;

use crate::domain::command::{Command, Exit, Output};
use crate::domain::event::{CommandDone, CommandStart, EventKind, Purpose};
use crate::domain::logs::LogSource;
use crate::domain::{Source, Stamp};
use crate::probe::logs::Place;
use crate::ssh::{self, Session};

use super::exec;
use super::follow::NodeLog;
use super::log_reader::{Heard, Reader};
use super::log_source::{absent, not_followed};
use super::task::NodeSetup;

/// How often what waits is offered again.
const OFFER_EVERY: Duration = Duration::from_millis(50);

/// What comes this soon after a log begins to be followed was there before. A command that still runs then is one that goes on.
const BACKLOG: Duration = Duration::from_secs(1);

/// A log of Docker's that gives nothing for so long may be one in which it looks for its place.
const SEEKS_AFTER: Duration = Duration::from_secs(3);

/// A log that was not held for so long is no longer behind: where lines still come faster than they are read, it is held again sooner.
const CAUGHT_UP: Duration = Duration::from_secs(3);

/// How a followed command ended.
pub(super) enum Ended {
    /// By itself, and what was heard of it.
    Itself(Exit, Heard),
    /// Something else is to be followed.
    Left,
    /// Too much came at once: it is read on from its last line.
    Overrun,
}

/// Follows until the command on the node ends, or until something else is to be followed. `source` is what is then read, and told once it is: a command
/// that can't be run ends before that.
///
/// # Errors
/// Why the connection can carry no more.
pub(super) async fn once(
    setup: &NodeSetup,
    session: &Session,
    log: &mut NodeLog,
    command: Command,
    from: LogSource,
    left: impl Future<Output = ()>,
) -> Result<Ended, String> {
    let (feed, node) = (&setup.feed, setup.id);
    let source = Source::Node(node);
    let ray = matches!(from, LogSource::Ray { .. });
    let docker = !ray && matches!(log.follower.place(), Place::Container { .. });
    // A file that is there says so itself.
    let files = ray || log.follower.repeats();
    let run = feed.next_run();
    let started = feed.now();
    let start = CommandStart {
        run,
        node,
        purpose: Purpose::Log,
        command: command.clone(),
    };
    feed.send(source, EventKind::CommandStarted(start)).await;
    let (inlet, mut chunks) = ssh::pipe();
    let (mut leaving, mut overrun) = (false, false);
    let mut heard = Heard::default();
    let mut lost = None;
    let exit = match session.follow_last(&command, inlet).await {
        Err(exit) => {
            // What can't be started because the connection went is no word on the log.
            lost = session.closed().now_or_never();
            if let (Exit::NotStarted(why), None) = (&exit, &lost) {
                not_followed(setup, log, why).await;
                heard.said = Some(why.clone());
            }
            exit
        }
        Ok(mut following) => {
            log.refused = None;
            let begun = log.source.as_ref() == Some(&from);
            let mut told = if begun { Some(from.clone()) } else { None };
            let mut reader = Reader::new(&setup.log, &setup.masker, log, ray);
            let mut behind = Behind::default();
            let mut older: Option<Pin<Box<dyn Future<Output = Output> + Send + '_>>> = None;
            let backlog = tokio::time::sleep(BACKLOG);
            tokio::pin!(backlog);
            tokio::pin!(left);
            let mut offer = tokio::time::interval(OFFER_EVERY);
            loop {
                tokio::select! {
                    chunk = chunks.recv() => match chunk {
                        Some(chunk) if chunk.dropped > 0 && reader.comes_again() => {
                            overrun = true;
                            break;
                        }
                        Some(chunk) => {
                            reader.take(&chunk);
                            if older.is_none() && let Some(command) = reader.follower().ask_older(setup.config.limits.command) {
                                older = Some(Box::pin(ask(setup, session, command)));
                            }
                        }
                        None => break,
                    },
                    _ = offer.tick() => {
                        let now = feed.now().stamp;
                        reader.behind(behind.look(chunks.held(), now));
                        let silent = docker && !reader.heard.began && now.since(started.stamp) >= SEEKS_AFTER;
                        reader.seeks(silent.then_some(started.stamp));
                        // What is read is told before what was read of it.
                        let runs = !files && !reader.backlog;
                        let now = if reader.heard.began || runs {
                            Some(from.clone())
                        } else {
                            reader.heard.absent.as_ref().map(|none| absent(setup, &from, none))
                        };
                        if now.is_some() && now != told {
                            told.clone_from(&now);
                            if let Some(kind) = now.map(EventKind::LogSource) {
                                feed.send(source, kind).await;
                            }
                        }
                        if told.is_some() {
                            reader.offer(feed, node);
                        }
                    }
                    () = &mut backlog, if reader.backlog => reader.backlog = false,
                    output = or_never(&mut older), if older.is_some() => {
                        older = None;
                        reader.follower().take_older(&output);
                    }
                    () = &mut left => {
                        leaving = true;
                        break;
                    }
                }
            }
            // What was begun is told to its end.
            if let Some(asked) = older.take() {
                reader.follower().take_older(&asked.await);
            }
            let lost = following.dropped();
            overrun |= !leaving && lost > 0 && reader.comes_again();
            let exit = if overrun {
                // What is still under way comes again.
                drop(chunks);
                following.stop().await
            } else if leaving {
                let exit = following.stop().await;
                while let Some(chunk) = chunks.try_recv() {
                    reader.take(&chunk);
                }
                exit
            } else {
                following.wait().await
            };
            if !overrun {
                reader.end(lost, !leaving && exit.ok());
                reader.behind(None);
            }
            reader.seeks(None);
            heard = std::mem::take(&mut reader.heard);
            // It may have come to its end before that was told.
            if told.is_none() && heard.began && (leaving || overrun || exit.ok() || reader.follower().printed(&exit)) {
                told = Some(from.clone());
                feed.send(source, EventKind::LogSource(from)).await;
            }
            reader.offer(feed, node);
            log.source = told.or(log.source.take());
            exit
        }
    };
    let took_ms = feed.now().stamp.0.saturating_sub(started.stamp.0);
    let done = CommandDone {
        run,
        exit: exit.clone(),
        stdout: Vec::new(),
        stderr: Vec::new(),
        took_ms,
    };
    feed.send(source, EventKind::CommandDone(done)).await;
    if let Some(why) = lost {
        return Err(why);
    }
    match exit {
        // Whether the connection is gone is seen when it is followed again.
        _ if overrun => Ok(Ended::Overrun),
        Exit::Unknown(why) => Err(why),
        Exit::Code(_) | Exit::Signal(_) | Exit::TimedOut | Exit::NotStarted(_) if leaving => Ok(Ended::Left),
        exit @ (Exit::Code(_) | Exit::Signal(_) | Exit::TimedOut | Exit::NotStarted(_)) => {
            Ok(Ended::Itself(exit, heard))
        }
    }
}

/// Since when a log's reader is behind: since the command was first held on its node, until it was not for a while.
#[derive(Default)]
struct Behind {
    since: Option<Stamp>,
    held: Stamp,
}

impl Behind {
    /// What is to be said of it now.
    fn look(&mut self, held: bool, now: Stamp) -> Option<Stamp> {
        if held {
            self.held = now;
            self.since.get_or_insert(now);
        } else if now.since(self.held) >= CAUGHT_UP {
            self.since = None;
        }
        self.since
    }
}

/// Asks a node something beside its log.
async fn ask(setup: &NodeSetup, session: &Session, command: Command) -> Output {
    let (feed, run) = (&setup.feed, setup.feed.next_run());
    let session = Some(session.clone());
    exec::run(
        session,
        feed,
        &setup.masker,
        setup.id,
        run,
        Purpose::Log,
        command,
        Ok(None),
    )
    .await
}

/// What is asked beside the log; never, where nothing is.
async fn or_never<T>(asked: &mut Option<Pin<Box<dyn Future<Output = T> + Send + '_>>>) -> T {
    match asked {
        Some(asked) => asked.await,
        None => std::future::pending().await,
    }
}
