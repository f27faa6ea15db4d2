//! The node's log, as it comes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use crate::config::types::{Config, LogPlace};
use crate::diagnose::{Matcher, Rules};
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

/// Findings that wait for room in the queue; when too many wait, the oldest bar goes first, then the newest failure line.
const FINDINGS: usize = 256;

/// How often what waits is offered again.
const OFFER_EVERY: Duration = Duration::from_millis(50);

/// What comes this soon after a log begins to be followed was there before.
const BACKLOG: Duration = Duration::from_secs(1);

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

/// A log, how far it was read and what its lines were a sign of so far: a new connection goes on with it.
pub(super) struct NodeLog {
    follower: Follower,
    matcher: Matcher,
    /// Why it could not be followed, where that is the last thing that stands in it.
    refused: Option<String>,
}

/// A log that was not read yet.
pub(super) fn unread(config: &Config, role: Role, rules: Rules) -> NodeLog {
    NodeLog {
        follower: follower(config, role),
        matcher: Matcher::new(config, role).by(rules),
        refused: None,
    }
}

fn follower(config: &Config, role: Role) -> Follower {
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
    log: &mut NodeLog,
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
        // It ended on the node: the container stopped, or the file is gone.
        let exit = match once(setup, &session, log).await {
            Ok(exit) => exit,
            Err(why) => return why,
        };
        if in_container && told_all(&before, &exit) {
            if watched.changed().await.is_err() {
                return "the actor ended".to_owned();
            }
        } else {
            let _changed = tokio::time::timeout(AGAIN_AFTER, watched.changed()).await;
        }
    }
}

/// Whether there is nothing more to read before the container changes: it had stopped before its log was read, and that was read to its end.
fn told_all(before: &Watched, exit: &Exit) -> bool {
    exit.ok() && before.container.as_ref().is_some_and(|(_, runs)| !runs)
}

/// Follows until the command on the node ends, and gives how it did.
///
/// # Errors
/// Why the connection can carry no more.
async fn once(setup: &NodeSetup, session: &Session, log: &mut NodeLog) -> Result<Exit, String> {
    let (feed, node) = (&setup.feed, setup.id);
    let source = Source::Node(node);
    let command = log.follower.command(setup.config.limits.command);
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
    let exit = match session.follow_last(&command, sink).await {
        Err(exit) => {
            if let Exit::NotStarted(why) = &exit {
                not_followed(setup, log, why);
            }
            exit
        }
        Ok(mut following) => {
            log.refused = None;
            let mut reader = Reader::new(&setup.log, &setup.masker, log);
            let backlog = tokio::time::sleep(BACKLOG);
            tokio::pin!(backlog);
            let mut offer = tokio::time::interval(OFFER_EVERY);
            loop {
                tokio::select! {
                    chunk = chunks.recv() => match chunk {
                        Some(chunk) => reader.take(&chunk),
                        None => break,
                    },
                    _ = offer.tick() => reader.offer(feed, node),
                    () = &mut backlog, if reader.backlog => reader.backlog = false,
                }
            }
            let exit = following.wait().await;
            reader.end(following.dropped(), exit.ok());
            reader.offer(feed, node);
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
    match exit {
        Exit::Unknown(why) => Err(why),
        exit @ (Exit::Code(_) | Exit::Signal(_) | Exit::TimedOut | Exit::NotStarted(_)) => Ok(exit),
    }
}

/// Writes into the log why it can't be followed, once for as long as it is so.
fn not_followed(setup: &NodeSetup, log: &mut NodeLog, why: &str) {
    if log.refused.as_deref() == Some(why) {
        return;
    }
    log.refused = Some(why.to_owned());
    let mut reader = Reader::new(&setup.log, &setup.masker, log);
    let text = format!("… the log can't be followed: {}", setup.masker.text(why));
    reader.put(LineEdit::Push(Line::of(Stream::Out, text)));
    reader.offer(&setup.feed, setup.id);
}

/// Turns bytes into lines of the ring and into findings.
struct Reader<'a> {
    log: &'a SharedLog,
    masker: &'a Masker,
    follower: &'a mut Follower,
    matcher: &'a mut Matcher,
    decoder: Decoder,
    findings: VecDeque<EventKind>,
    /// Whether what is read now was there before it could be followed.
    backlog: bool,
    advanced: bool,
    /// Bytes whose loss stands in the log.
    lost: u64,
}

impl<'a> Reader<'a> {
    fn new(log: &'a SharedLog, masker: &'a Masker, node: &'a mut NodeLog) -> Self {
        Self {
            log,
            masker,
            follower: &mut node.follower,
            matcher: &mut node.matcher,
            decoder: Decoder::new(),
            findings: VecDeque::new(),
            backlog: true,
            advanced: false,
            lost: 0,
        }
    }

    fn take(&mut self, chunk: &Chunk) {
        if chunk.dropped > 0 {
            self.gap(chunk.dropped);
        }
        let mut edits = Vec::new();
        match chunk.stream {
            ssh::Stream::Out => {
                let content = self.follower.content(&chunk.bytes);
                self.notice();
                self.decoder.feed(Stream::Out, content, &mut |edit| edits.push(edit));
            }
            ssh::Stream::Err => self
                .decoder
                .feed(Stream::Err, &chunk.bytes, &mut |edit| edits.push(edit)),
        }
        self.apply(edits);
    }

    /// Writes into the log that bytes are missing here; what comes after them does not go on the line before.
    fn gap(&mut self, bytes: u64) {
        self.lost = self.lost.saturating_add(bytes);
        self.finish();
        self.decoder = Decoder::new();
        self.follower.lost(bytes);
        let text = format!("… {bytes} bytes of the log were lost here: they came faster than they could be read");
        self.apply(vec![LineEdit::Push(Line::of(Stream::Out, text))]);
    }

    /// The command has ended, by itself and well or not; so many bytes were lost in all. A line that has no end yet is one only if nothing more of it
    /// can come: after a loss of the connection it comes again, whole.
    fn end(&mut self, lost: u64, well: bool) {
        match lost.saturating_sub(self.lost) {
            0 if well && !self.follower.repeats() => self.finish(),
            0 => {}
            last => self.gap(last),
        }
    }

    /// Writes into the log what the follower has found of it.
    fn notice(&mut self) {
        if let Some(text) = self.follower.notice() {
            self.put(LineEdit::Push(Line::of(Stream::Out, text)));
        }
    }

    fn put(&mut self, edit: LineEdit) {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).apply(edit);
        self.advanced = true;
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
                    self.notice();
                    let line = self.masker.line(line);
                    let facts = self.find(&line);
                    for sign in self.matcher.read(&line, &facts, self.backlog) {
                        self.keep(EventKind::Sign(sign));
                    }
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
            self.put(edit);
        }
    }

    /// What the engine's grammar finds in a line; it is kept to be told.
    fn find(&mut self, line: &Line) -> Vec<LineFact> {
        let text = line.plain();
        let facts = self.matcher.settle(&text, grammar::read(&text));
        for fact in &facts {
            self.keep(EventKind::Line(fact.clone()));
        }
        facts
    }

    /// Keeps what a line says until the queue has room. Bars and failure lines may be many and each is worth little: they make room for the rest.
    fn keep(&mut self, found: EventKind) {
        if self.findings.len() == FINDINGS {
            let bar = |f: &EventKind| {
                matches!(
                    f,
                    EventKind::Line(LineFact::Bar { .. } | LineFact::Download { .. } | LineFact::Rank(_))
                )
            };
            let failure = |f: &EventKind| matches!(f, EventKind::Line(LineFact::Failure(_)));
            let place = self.findings.iter().position(bar);
            let place = place.or_else(|| self.findings.iter().rposition(failure));
            let place = place.or_else(|| self.findings.iter().position(|f| matches!(f, EventKind::Line(_))));
            self.findings.remove(place.unwrap_or(0));
        }
        self.findings.push_back(found);
    }

    /// Tells what was found, as far as the queue has room; the rest stays for the next time.
    fn offer(&mut self, feed: &Feed, node: NodeId) {
        let source = Source::Node(node);
        while let Some(found) = self.findings.pop_front() {
            if !feed.offer(source, found.clone()) {
                self.findings.push_front(found);
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

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use crate::domain::Wall;
    use crate::domain::sign::SignKind;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    fn chunk(text: &'static str, dropped: u64) -> Chunk {
        Chunk {
            stream: ssh::Stream::Out,
            bytes: Bytes::from_static(text.as_bytes()),
            dropped,
        }
    }

    fn node_log(place: Place) -> NodeLog {
        let config = crate::config::parse(crate::config::EXAMPLE, "config.example.toml").unwrap();
        NodeLog {
            follower: Follower::new(place),
            matcher: Matcher::new(&config, Role::Head),
            refused: None,
        }
    }

    fn lines(log: &SharedLog) -> Vec<String> {
        log.lock().unwrap().last(10).map(Line::plain).collect()
    }

    #[test]
    fn lost_bytes_stand_in_the_log_and_a_file_is_not_taken_up_before_them() {
        let log = SharedLog::new(Mutex::new(Ring::new(1 << 16)));
        let masker = Masker::default();
        let mut node = node_log(Place::File { path: "/x".into() });
        node.follower.command(LIMIT);
        let mut reader = Reader::new(&log, &masker, &mut node);
        reader.take(&chunk("@@ from 0 7 0 \none\nhalf", 0));
        reader.take(&chunk("rest\ntwo\n", 100));
        reader.end(107, true);
        let lost = |n: u32| format!("… {n} bytes of the log were lost here: they came faster than they could be read");
        assert_eq!(lines(&log), ["one", "half", &lost(100), "rest", "two", &lost(7)]);
        // "one\n" + "half" + 100 + "rest\n" + "two\n" + 7
        assert_eq!(node.follower.command(LIMIT).line(), "log.file /x 124 524288 7");
    }

    #[test]
    fn a_line_that_the_end_of_the_connection_tore_comes_again_whole() {
        let log = SharedLog::new(Mutex::new(Ring::new(1 << 16)));
        let masker = Masker::default();
        let mut node = node_log(Place::Container {
            docker: "docker".into(),
            name: "c".into(),
        });
        for (text, well) in [
            (
                "2026-11-29T17:04:55.000000001Z one\n2026-11-29T17:04:55.000000002Z tw",
                false,
            ),
            (
                "2026-11-29T17:04:55.000000001Z one\n2026-11-29T17:04:55.000000002Z two\n2026-11-29T17:04:55.000000003Z end",
                true,
            ),
        ] {
            node.follower.command(LIMIT);
            let mut reader = Reader::new(&log, &masker, &mut node);
            reader.take(&chunk(text, 0));
            reader.end(0, well);
        }
        assert_eq!(lines(&log), ["one", "two", "end"]);
    }

    #[test]
    fn what_may_be_why_is_told_with_the_time_of_its_line_though_bars_and_failures_flood() {
        let log = SharedLog::new(Mutex::new(Ring::new(1 << 16)));
        let masker = Masker::default();
        let mut node = node_log(Place::Container {
            docker: "docker".into(),
            name: "c".into(),
        });
        node.follower.command(LIMIT);
        let mut reader = Reader::new(&log, &masker, &mut node);
        reader.take(&chunk(
            "2026-11-29T17:04:55.000000001Z torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n",
            0,
        ));
        for n in 0..2 * FINDINGS {
            let text = format!("2026-11-29T17:04:56.{n:09}Z ValueError: number {n}\n");
            reader.take(&Chunk {
                bytes: Bytes::from(text),
                ..chunk("", 0)
            });
        }
        let (feed, mut queue) = Feed::new(crate::node::feed::Clock::start());
        reader.offer(&feed, NodeId(0));
        let mut signs = Vec::new();
        while let Ok(event) = queue.try_recv() {
            if let EventKind::Sign(sign) = event.kind {
                signs.push(sign);
            }
        }
        let first = &signs[0];
        assert_eq!(first.what, SignKind::Rule("gpu-out-of-memory".into()));
        assert_eq!(first.written, Some(Wall(1_795_971_895_000)));
        assert_eq!(first.fields, [("wanted".to_owned(), "2.00 GiB".to_owned())]);
        let unknown: Vec<u64> = signs.iter().skip(1).map(|s| s.times).collect();
        assert_eq!(unknown, [1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64, 128, 256, 512]);
    }

    #[test]
    fn only_a_stopped_containers_log_that_was_read_to_its_end_is_done_with() {
        let watched = |runs| Watched {
            container: Some(("c1".to_owned(), runs)),
        };
        assert!(told_all(&watched(false), &Exit::Code(0)));
        for exit in [
            Exit::Code(1),
            Exit::TimedOut,
            Exit::Signal("TERM".into()),
            Exit::NotStarted("no channel".into()),
        ] {
            assert!(!told_all(&watched(false), &exit), "{exit:?}");
        }
        assert!(!told_all(&watched(true), &Exit::Code(0)));
    }
}
