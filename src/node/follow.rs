//! The node's log, as it comes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use crate::config::types::{Config, LogPlace};
use crate::domain::command::Exit;
use crate::domain::container::{ContainerFacts, ContainerState};
use crate::domain::event::{CommandDone, CommandStart, EventKind, Purpose};
use crate::domain::load::LineFact;
use crate::domain::{NodeId, Role, Source};
use crate::engine::grammar;
use crate::log::{Decoder, Line, LineEdit, Masker, Ring, Stream};
use crate::probe::logs::{Follower, Place};
use crate::ssh::{self, Chunk, Session};

use super::feed::Feed;
use super::task::NodeSetup;

/// A log that its reader and the screen share; the lock is held for one push or one copy.
pub type SharedLog = Arc<Mutex<Ring>>;

/// Chunks on their way from the connection to the decoder.
const CHUNKS: usize = 1024;

/// Findings that wait for room in the queue; when too many wait, the oldest bar goes first.
const FINDINGS: usize = 256;

/// How often what waits is offered again.
const OFFER_EVERY: Duration = Duration::from_millis(50);

/// Wait before a log that ended is followed again, when nothing else says that it goes on.
const AGAIN_AFTER: Duration = Duration::from_secs(2);

/// What the node probe last saw of the container whose log is followed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Watched {
    /// Container id and whether it runs; `None` before it was seen, and when it is not there.
    container: Option<(String, bool)>,
}

impl Watched {
    pub(super) fn of(facts: &ContainerFacts, name: &str) -> Self {
        let container = facts
            .named(name)
            .map(|c| (c.id.clone(), c.state == ContainerState::Running));
        Self { container }
    }
}

/// A log that was not read yet.
pub(super) fn follower(config: &Config, role: Role) -> Follower {
    let docker = config.container.docker.clone();
    let name = config.container.name.clone();
    Follower::new(match config.logs.of(role) {
        LogPlace::Container => Place::Container { docker, name },
        LogPlace::File(path) => Place::File { path: path.clone() },
        LogPlace::ContainerFile(path) => Place::ContainerFile {
            docker,
            name,
            path: path.clone(),
        },
    })
}

/// Follows the log for as long as the connection lives; gives why it ended.
pub(super) async fn follow(
    setup: &NodeSetup,
    session: Session,
    mut watched: watch::Receiver<Watched>,
    follower: &mut Follower,
) -> String {
    let Some(node) = setup.config.node(setup.id) else {
        return "no such node".to_owned();
    };
    let in_container = match setup.config.logs.of(node.role) {
        LogPlace::File(_) => false,
        LogPlace::Container | LogPlace::ContainerFile(_) => true,
    };
    loop {
        if in_container && watched.wait_for(|w| w.container.is_some()).await.is_err() {
            return "the actor ended".to_owned();
        }
        let before = watched.borrow_and_update().clone();
        if let Err(why) = once(setup, &session, follower).await {
            return why;
        }
        // It ended on the node: the container stopped, or the file is gone. A container that had stopped before has told all.
        let told_all = before.container.is_some_and(|(_, runs)| !runs);
        if in_container && told_all {
            if watched.changed().await.is_err() {
                return "the actor ended".to_owned();
            }
        } else {
            let _changed = tokio::time::timeout(AGAIN_AFTER, watched.changed()).await;
        }
    }
}

/// Follows until the command on the node ends.
///
/// # Errors
/// Why the connection can carry no more.
async fn once(setup: &NodeSetup, session: &Session, follower: &mut Follower) -> Result<(), String> {
    let (feed, node) = (&setup.feed, setup.id);
    let source = Source::Node(node);
    let command = follower.command(setup.config.limits.command);
    let run = feed.next_run();
    let started = feed.now();
    let start = CommandStart {
        run,
        node,
        purpose: Purpose::Log,
        command: command.clone(),
    };
    feed.send(source, EventKind::CommandStarted(start)).await;
    let (sink, mut chunks) = mpsc::channel::<Chunk>(CHUNKS);
    let exit = match session.follow(&command, sink).await {
        Err(exit) => exit,
        Ok(mut following) => {
            let mut reader = Reader::new(setup, follower);
            let mut offer = tokio::time::interval(OFFER_EVERY);
            loop {
                tokio::select! {
                    chunk = chunks.recv() => match chunk {
                        Some(chunk) => reader.take(&chunk),
                        None => break,
                    },
                    _ = offer.tick() => reader.offer(feed, node),
                }
            }
            reader.finish();
            reader.offer(feed, node);
            following.wait().await
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
    match exit {
        Exit::Unknown(why) => Err(why),
        Exit::Code(_) | Exit::Signal(_) | Exit::TimedOut | Exit::NotStarted(_) => Ok(()),
    }
}

/// Turns bytes into lines of the ring and into findings.
struct Reader<'a> {
    log: &'a SharedLog,
    masker: &'a Masker,
    follower: &'a mut Follower,
    decoder: Decoder,
    findings: VecDeque<LineFact>,
    advanced: bool,
}

impl<'a> Reader<'a> {
    fn new(setup: &'a NodeSetup, follower: &'a mut Follower) -> Self {
        Self {
            log: &setup.log,
            masker: &setup.masker,
            follower,
            decoder: Decoder::new(),
            findings: VecDeque::new(),
            advanced: false,
        }
    }

    fn take(&mut self, chunk: &Chunk) {
        let mut edits = Vec::new();
        match chunk.stream {
            ssh::Stream::Out => {
                let content = self.follower.content(&chunk.bytes);
                self.decoder.feed(Stream::Out, content, &mut |edit| edits.push(edit));
            }
            ssh::Stream::Err => self
                .decoder
                .feed(Stream::Err, &chunk.bytes, &mut |edit| edits.push(edit)),
        }
        self.apply(edits);
    }

    fn finish(&mut self) {
        let mut edits = Vec::new();
        for stream in Stream::ALL {
            self.decoder.finish(stream, &mut |edit| edits.push(edit));
        }
        self.apply(edits);
    }

    fn apply(&mut self, edits: Vec<LineEdit>) {
        for edit in edits {
            let edit = match edit {
                LineEdit::Push(line) => {
                    if !self.follower.fresh(&line) {
                        continue;
                    }
                    let line = self.masker.line(line);
                    self.find(&line);
                    LineEdit::Push(line)
                }
                LineEdit::Live(stream, line) => {
                    let line = line.map(|l| self.masker.line(l));
                    if let Some(line) = &line {
                        self.find(line);
                    }
                    LineEdit::Live(stream, line)
                }
            };
            self.log.lock().unwrap_or_else(PoisonError::into_inner).apply(edit);
            self.advanced = true;
        }
    }

    /// Keeps what a line says until the queue has room.
    fn find(&mut self, line: &Line) {
        for fact in grammar::read_line(&line.plain()) {
            if self.findings.len() == FINDINGS {
                let bar = self
                    .findings
                    .iter()
                    .position(|f| matches!(f, LineFact::Bar { .. }))
                    .unwrap_or(0);
                self.findings.remove(bar);
            }
            self.findings.push_back(fact);
        }
    }

    /// Tells what was found, as far as the queue has room; the rest stays for the next time.
    fn offer(&mut self, feed: &Feed, node: NodeId) {
        let source = Source::Node(node);
        while let Some(fact) = self.findings.pop_front() {
            if !feed.offer(source, EventKind::Line(fact.clone())) {
                self.findings.push_front(fact);
                break;
            }
        }
        if self.advanced {
            let (seq, dropped) = {
                let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
                (log.next_seq(), log.dropped())
            };
            self.advanced = !feed.offer(source, EventKind::LogAdvanced { seq, dropped });
        }
    }
}
