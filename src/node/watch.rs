//! The stream of a node's readings: one followed command a connection, begun again with a growing pause when it ends.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::watch;

use crate::domain::command::Exit;
use crate::domain::count::things;
use crate::domain::event::{CommandDone, CommandStart, EventKind, Facts, ProbeId, Purpose, Subject};
use crate::domain::problem::Problem;
use crate::domain::time::human;
use crate::domain::{Now, Source, Stamp, Wall};
use crate::probe::node::stream::{Reader, Reading};
use crate::ssh::{self, Chunk, Session};

use super::ask;
use super::follow::Watched;
use super::hide;
use super::task::NodeSetup;

/// How often it is looked at whether a subject has gone silent.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Waits before a stream that ended is begun again: the first, and the longest.
const AGAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// A stream that went on for so long was well: the next wait is the first again.
const WELL: Duration = Duration::from_secs(60);

/// Bytes kept of what a stream says on stderr, for the list of commands.
const SAID: usize = 2048;

/// What of the stream others in the actor see.
pub(super) struct Told<'a> {
    /// The container whose log is followed.
    pub(super) container: &'a watch::Sender<Watched>,
    /// Whether the stream runs; its problems are then the whole truth of the node.
    pub(super) runs: &'a AtomicBool,
}

/// Keeps the stream going for as long as the connection lives; gives why it ended.
pub(super) async fn watch(setup: &NodeSetup, session: Session, told: Told<'_>) -> String {
    let mut pause = AGAIN.0;
    loop {
        let began = setup.feed.now().stamp;
        let (exit, said) = once(setup, &session, &told).await;
        told.runs.store(false, Ordering::Relaxed);
        if let Exit::Unknown(why) = exit {
            return why;
        }
        if setup.feed.now().stamp.since(began) >= WELL {
            pause = AGAIN.0;
        }
        let why = format!("the stream of readings ended ({}){said}", ended(&exit));
        tell_end(setup, &why, pause).await;
        tokio::time::sleep(pause).await;
        pause = pause.saturating_mul(2).min(AGAIN.1);
    }
}

fn ended(exit: &Exit) -> String {
    match exit {
        Exit::NotStarted(why) | Exit::Unknown(why) => why.clone(),
        Exit::Code(_) | Exit::Signal(_) | Exit::TimedOut => format!("exit {}", exit.word()),
    }
}

/// Says that there is no stream for now; what was never read says why.
async fn tell_end(setup: &NodeSetup, why: &str, pause: Duration) {
    let source = Source::Node(setup.id);
    let text = setup.masker.text(why).into_owned();
    let problem = Problem::warning(format!("{text}; it is begun again in {}", human(pause)));
    setup.feed.send(source, EventKind::Problems(vec![problem])).await;
    let probe = ProbeId::Node;
    setup
        .feed
        .send(source, EventKind::ProbeFailed { probe, why: text })
        .await;
}

/// Runs the stream until it ends; gives how, and the last line that it said on stderr.
async fn once(setup: &NodeSetup, session: &Session, told: &Told<'_>) -> (Exit, String) {
    let feed = &setup.feed;
    let source = Source::Node(setup.id);
    let mark = mark();
    let command = ask::watch(&setup.config, setup.id, &mark);
    let run = feed.next_run();
    let started = feed.now().stamp;
    let start = CommandStart {
        run,
        node: setup.id,
        purpose: Purpose::Watch,
        command: command.clone(),
    };
    feed.send(source, EventKind::CommandStarted(start)).await;
    let (inlet, mut chunks) = ssh::pipe();
    let mut said: Vec<u8> = Vec::new();
    let exit = match session.follow(&command, inlet).await {
        Err(exit) => exit,
        Ok(mut following) => {
            let mut teller = Teller::new(setup, told, Reader::new(&mark, command.limit.time, started));
            told.runs.store(true, Ordering::Relaxed);
            let mut look = tokio::time::interval(LOOK_EVERY);
            loop {
                tokio::select! {
                    chunk = chunks.recv() => match chunk {
                        Some(chunk) if chunk.stream == ssh::Stream::Err => keep(&mut said, &chunk.bytes),
                        Some(chunk) => teller.take(&chunk).await,
                        None => break,
                    },
                    _ = look.tick() => teller.look().await,
                }
            }
            following.wait().await
        }
    };
    let lines = super::exec::told(&String::from_utf8_lossy(&said), &setup.masker);
    let last = lines.last().map(|l| format!(": {l}")).unwrap_or_default();
    let done = CommandDone {
        run,
        exit: exit.clone(),
        stdout: Vec::new(),
        stderr: lines,
        took_ms: feed.now().stamp.0.saturating_sub(started.0),
    };
    feed.send(source, EventKind::CommandDone(done)).await;
    (exit, last)
}

/// Keeps the end of what was said.
fn keep(said: &mut Vec<u8>, bytes: &[u8]) {
    said.extend_from_slice(bytes);
    let excess = said.len().saturating_sub(SAID);
    said.drain(..excess);
}

/// Turns records into events.
struct Teller<'a> {
    setup: &'a NodeSetup,
    told: &'a Told<'a>,
    reader: Reader,
    paces: BTreeMap<Subject, Duration>,
    problems: BTreeMap<Subject, Vec<Problem>>,
    /// Torn records that were told.
    torn: u64,
    /// The list that was told last.
    listed: Option<Vec<Problem>>,
}

impl<'a> Teller<'a> {
    fn new(setup: &'a NodeSetup, told: &'a Told<'a>, reader: Reader) -> Self {
        Self {
            setup,
            told,
            reader,
            paces: BTreeMap::new(),
            problems: BTreeMap::new(),
            torn: 0,
            listed: None,
        }
    }

    async fn take(&mut self, chunk: &Chunk) {
        if chunk.dropped > 0 {
            self.reader.lost();
        }
        let readings = self.reader.feed(&chunk.bytes, self.setup.feed.now().stamp);
        self.tell(readings).await;
    }

    async fn look(&mut self) {
        let readings = self.reader.silent(self.setup.feed.now().stamp);
        self.tell(readings).await;
    }

    async fn tell(&mut self, readings: Vec<Reading>) {
        let (feed, source) = (&self.setup.feed, Source::Node(self.setup.id));
        // The times in a log are read by it, so it is told before what brings the log.
        if let Some((at, clock)) = self.reader.node_clock() {
            let at = moment(feed.now(), at);
            feed.send_at(source, at, EventKind::Clock(clock)).await;
        }
        for reading in readings {
            let (what, every) = (reading.what, reading.every);
            if every > Duration::ZERO && self.paces.insert(what, every) != Some(every) {
                feed.send(source, EventKind::Pace { what, every }).await;
            }
            let at = moment(feed.now(), reading.at);
            for fact in reading.facts {
                let fact = hide::facts(&self.setup.masker, fact);
                if let Facts::Containers(containers) = &fact {
                    let now = Watched::of(containers, &self.setup.config, self.setup.id);
                    let changed = |old: &mut Watched| std::mem::replace(old, now.clone()) != now;
                    self.told.container.send_if_modified(changed);
                }
                feed.send_at(source, at, EventKind::Facts(fact)).await;
            }
            self.problems
                .insert(what, hide::problems(&self.setup.masker, reading.problems));
        }
        let mut list: Vec<Problem> = Vec::new();
        for problem in self.problems.values().flatten() {
            if !list.contains(problem) {
                list.push(problem.clone());
            }
        }
        self.torn = self.reader.torn();
        if self.torn > 0 {
            let were = if self.torn == 1 { "was" } else { "were" };
            let records = things(self.torn, "record");
            let text = format!("{records} {were} torn on the way from the node and left out");
            list.push(Problem::warning(text));
        }
        if self.listed.as_ref() != Some(&list) {
            self.listed = Some(list.clone());
            feed.send(source, EventKind::Problems(list)).await;
        }
    }
}

/// A moment in both clocks, from the one that is now.
fn moment(now: Now, at: Stamp) -> Now {
    let ago = now.stamp.0.saturating_sub(at.0);
    Now {
        stamp: at,
        wall: Wall(now.wall.0.saturating_sub(ago)),
    }
}

/// Something that no tool prints.
fn mark() -> String {
    use std::hash::BuildHasher as _;
    // The standard library's hashers are seeded by the system.
    format!("{:016x}", std::collections::hash_map::RandomState::new().hash_one(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_stream_says_is_kept_at_its_end() {
        let mut said = Vec::new();
        keep(&mut said, &[b'x'; SAID]);
        keep(&mut said, b"last words");
        assert_eq!(said.len(), SAID);
        assert!(said.ends_with(b"last words"));
    }

    #[test]
    fn a_moment_is_the_same_in_both_clocks() {
        let now = Now {
            stamp: Stamp(5000),
            wall: Wall(1_000_000),
        };
        assert_eq!(moment(now, Stamp(3000)).wall, Wall(998_000));
    }
}
