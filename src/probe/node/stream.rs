//! The stream of a node's readings: bytes to records, records to facts.
//!
//! A record is some lines `MARK NAME TEXT` and an end `MARK NAME= LINES BYTES BEGAN ENDED NEXT`: how many lines there are and how long their texts,
//! when the look began and ended in hundredths of a second since the node's start, and the seconds until the next. Lines of different records may stand
//! between each other. What does not begin with the mark is another's; a record that is not all there is counted as torn and left out. Nothing is read
//! from a part of a record.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::domain::cadence;
use crate::domain::clock::NodeClock;
use crate::domain::event::{Facts, Subject};
use crate::domain::problem::Problem;
use crate::domain::time::{Stamp, millis};

use super::super::plain_text;
use super::super::sections::Sections;
use super::{Found, Groups, Part, absent, containers, disk, fabric, gpus, memory, sockets};

/// Longest line; a longer one is dropped and its record counts as torn.
pub const MAX_LINE: usize = 16 * 1024;

/// Longest record in bytes.
pub const MAX_RECORD: usize = 512 * 1024;

/// What the node's clock may run slow against the console's before what it says looks older than it is: one in so many.
const DRIFT: u64 = 5_000;

/// Readings that a subject may miss before it counts as silent, beside the time that its tool may take.
const MISSED: u32 = 2;

/// Names of the records.
const NAMES: [(&str, Name); 7] = [
    ("memory", Name::Of(Subject::Memory)),
    ("gpus", Name::Of(Subject::Gpus)),
    ("apps", Name::Apps),
    ("containers", Name::Of(Subject::Containers)),
    ("sockets", Name::Of(Subject::Sockets)),
    ("fabric", Name::Of(Subject::Fabric)),
    ("disk", Name::Of(Subject::Disk)),
];

/// What a record is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Name {
    Of(Subject),
    /// The processes on the GPUs, which come from a tool of their own.
    Apps,
}

/// What a record said.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// When the node looked, on the console's clock.
    pub at: Stamp,
    /// About what.
    pub what: Subject,
    /// How long it is until the node looks again.
    pub every: Duration,
    /// The facts, or that there are none.
    pub facts: Vec<Facts>,
    /// What is wrong with them.
    pub problems: Vec<Problem>,
}

/// Reads one stream.
#[derive(Debug)]
pub struct Reader {
    mark: String,
    limit: Duration,
    began: Stamp,
    line: Vec<u8>,
    /// The line is too long: its rest is dropped.
    overlong: bool,
    open: BTreeMap<Name, Open>,
    clock: Clock,
    /// What the node's own clock showed, and when; until it is taken.
    shown: Option<(Stamp, Result<NodeClock, String>)>,
    /// When each was told last, when it is told next, and whether its silence was.
    told: BTreeMap<Name, Told>,
    devices: Option<(gpus::Listed, Vec<Problem>, Stamp)>,
    processes: Option<(gpus::Processes, Stamp)>,
    torn: u64,
}

#[derive(Debug, Default)]
struct Open {
    text: String,
    lines: usize,
    bytes: usize,
    /// A line of it is known to be missing.
    torn: bool,
}

#[derive(Debug, Clone, Copy)]
struct Told {
    at: Stamp,
    every: Duration,
    silent: bool,
}

impl Reader {
    /// A stream with this mark that begins now. `limit` is the longest time that a tool may take.
    #[must_use]
    pub fn new(mark: &str, limit: Duration, now: Stamp) -> Self {
        Self {
            mark: format!("{mark} "),
            limit,
            began: now,
            line: Vec::new(),
            overlong: false,
            open: BTreeMap::new(),
            clock: Clock::default(),
            shown: None,
            told: BTreeMap::new(),
            devices: None,
            processes: None,
            torn: 0,
        }
    }

    /// Records that were left out because a part of them was missing or wrong.
    #[must_use]
    pub fn torn(&self) -> u64 {
        self.torn
    }

    /// What the node's own clock showed last, or why that is not known, and when that was, where it was told since this was asked.
    pub fn node_clock(&mut self) -> Option<(Stamp, Result<NodeClock, String>)> {
        self.shown.take()
    }

    /// Takes bytes that came now; gives what the records said that they complete.
    pub fn feed(&mut self, bytes: &[u8], now: Stamp) -> Vec<Reading> {
        let mut found = Vec::new();
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|b| *b == b'\n') {
            let (head, tail) = rest.split_at(end);
            self.push(head);
            let line = std::mem::take(&mut self.line);
            if std::mem::take(&mut self.overlong) {
                self.spoil(&line);
            } else {
                let text = String::from_utf8_lossy(&line);
                found.extend(self.line(&text, line.len(), now));
            }
            rest = tail.get(1..).unwrap_or_default();
        }
        self.push(rest);
        found
    }

    /// Bytes of the stream are missing here: no record that is open can be trusted.
    pub fn lost(&mut self) {
        self.line.clear();
        self.overlong = true;
        for open in self.open.values_mut() {
            open.torn = true;
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        let room = MAX_LINE.saturating_sub(self.line.len());
        let (keep, drop) = bytes.split_at(bytes.len().min(room));
        self.line.extend_from_slice(keep);
        self.overlong |= !drop.is_empty();
    }

    /// A line that is not whole spoils the record that it belongs to.
    fn spoil(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        if let Some((name, _)) = self.own(&text)
            && let Some(name) = named(name.trim_end_matches('='))
        {
            self.open.entry(name).or_default().torn = true;
        }
    }

    /// The name and the text of a line that has the mark.
    fn own<'l>(&self, line: &'l str) -> Option<(&'l str, &'l str)> {
        let rest = line.strip_prefix(self.mark.as_str())?;
        Some(rest.split_once(' ').unwrap_or((rest, "")))
    }

    /// Takes a line that was so many bytes long.
    fn line(&mut self, line: &str, length: usize, now: Stamp) -> Option<Reading> {
        let (word, text) = self.own(line)?;
        let (name, ends) = match word.strip_suffix('=') {
            Some(name) => (named(name)?, true),
            None => (named(word)?, false),
        };
        if ends {
            let open = self.open.remove(&name).unwrap_or_default();
            let end = End::read(text).filter(|end| (end.lines, end.bytes) == (open.lines, open.bytes) && !open.torn);
            let Some(end) = end else {
                self.torn = self.torn.saturating_add(1);
                return None;
            };
            return self.record(name, &open.text, end, now);
        }
        // The mark inside a line: another record's line begins in the middle of this one.
        let mixed = text.contains(self.mark.as_str());
        let open = self.open.entry(name).or_default();
        open.torn |= mixed || open.text.len().saturating_add(text.len()) >= MAX_RECORD;
        if !open.torn {
            open.text.push_str(text);
            open.text.push('\n');
        }
        open.lines = open.lines.saturating_add(1);
        // What stands before the text is plain, so it is as long here as it was on the way.
        let before = line.len().saturating_sub(text.len());
        open.bytes = open.bytes.saturating_add(length.saturating_sub(before));
        None
    }

    fn record(&mut self, name: Name, text: &str, end: End, now: Stamp) -> Option<Reading> {
        let at = self.clock.at(&end, self.began, now);
        let every = end.next.saturating_add(Duration::from_millis(end.took()));
        self.told.insert(
            name,
            Told {
                at: now,
                every,
                silent: false,
            },
        );
        let text = plain_text(text.into());
        let sections = Sections::read(&text);
        match containers::clock(&sections) {
            Some(Ok(shown)) => {
                let shown = self.clock.shown(&end, shown, now);
                self.shown = shown.map(|(at, shown)| (at, Ok(shown)));
            }
            Some(Err(why)) => self.shown = Some((now, Err(why))),
            None => {}
        }
        let (what, at, (facts, problems)) = match name {
            Name::Apps => {
                self.processes = gpus::processes(&sections).map(|found| (found, at));
                let (at, part) = self.gpus()?;
                (Subject::Gpus, at, part)
            }
            Name::Of(Subject::Gpus) => {
                match gpus::devices(&sections)? {
                    (Ok(devices), problems) => {
                        let first = self.devices.is_none();
                        self.devices = Some((devices, problems, at));
                        // The processes come a moment later: without them the first reading would say less than the node does.
                        if first && self.processes.is_none() && !sections.has("rocm") && !sections.has("amd") {
                            return None;
                        }
                    }
                    (Err(problem), _) => {
                        self.devices = None;
                        let (facts, problems) = absent(Subject::Gpus, problem);
                        return Some(Reading {
                            at,
                            what: Subject::Gpus,
                            every,
                            facts,
                            problems,
                        });
                    }
                }
                let (at, part) = self.gpus()?;
                (Subject::Gpus, at, part)
            }
            Name::Of(what) => (what, at, subject(what, &sections)?),
        };
        let every = match name {
            Name::Of(_) => every,
            Name::Apps => self.told.get(&Name::Of(Subject::Gpus)).map_or(every, |told| told.every),
        };
        Some(Reading {
            at,
            what,
            every,
            facts,
            problems,
        })
    }

    /// Devices with the processes that belong to them: those of a list that is too old are not known any more.
    fn gpus(&self) -> Option<(Stamp, Part)> {
        let (devices, problems, at) = self.devices.as_ref()?;
        let old = cadence::GPUS_EVERY.saturating_mul(3).saturating_add(self.limit);
        let processes = match &self.processes {
            Some((_, listed)) if at.since(*listed) > old => Err("nvidia-smi lists no processes any more".to_owned()),
            Some((processes, _)) => processes.clone(),
            None => Err(gpus::UNASKED.to_owned()),
        };
        let facts = Facts::Gpus(gpus::facts(devices.clone(), processes));
        Some((*at, (vec![facts], problems.clone())))
    }

    /// Subjects that should have been told by now and were not, each once; while others are told, it is their tool that hangs.
    pub fn silent(&mut self, now: Stamp) -> Vec<Reading> {
        let heard = self.told.values().map(|t| t.at).max();
        let alive = heard.is_some_and(|at| now.since(at) <= cadence::MEMORY_EVERY.saturating_mul(MISSED + 1));
        if !alive {
            return Vec::new();
        }
        let mut found = Vec::new();
        for (_, name) in NAMES {
            let Name::Of(what) = name else { continue };
            let told = self.told.entry(name).or_insert(Told {
                at: self.began,
                every: Duration::ZERO,
                silent: false,
            });
            let missed = told.every.saturating_mul(MISSED).saturating_add(MARGIN);
            // An nvidia-smi that goes on is bounded by nothing but this; a start of it may wake the driver first. Docker and disks are two tools each.
            let patience = match what {
                Subject::Gpus if told.every > Duration::ZERO => missed,
                Subject::Gpus
                | Subject::Memory
                | Subject::Containers
                | Subject::Sockets
                | Subject::Fabric
                | Subject::Disk
                | Subject::Image
                | Subject::Versions
                | Subject::Inside
                | Subject::Ray
                | Subject::RayStatus
                | Subject::Serve
                | Subject::Verb => missed.saturating_add(self.limit.saturating_mul(2)),
            };
            if told.silent || now.since(told.at) <= patience {
                continue;
            }
            told.silent = true;
            let silent = if what == Subject::Gpus {
                gpus::silent()
            } else {
                Problem::error(format!("{} does not answer", tool(what)))
            };
            let (facts, problems) = absent(what, silent);
            found.push(Reading {
                at: now,
                what,
                every: told.every,
                facts,
                problems,
            });
        }
        found
    }
}

/// Time beyond a tool's own limit in which it is ended on the node.
const MARGIN: Duration = Duration::from_secs(3);

/// What a subject is read with.
fn tool(what: Subject) -> &'static str {
    match what {
        Subject::Gpus => "nvidia-smi",
        Subject::Containers => "docker",
        Subject::Disk => "df",
        Subject::Memory | Subject::Sockets => "/proc",
        Subject::Fabric => "ip",
        Subject::Image
        | Subject::Versions
        | Subject::Inside
        | Subject::Ray
        | Subject::RayStatus
        | Subject::Serve
        | Subject::Verb => "it",
    }
}

fn named(word: &str) -> Option<Name> {
    NAMES.iter().find(|(name, _)| *name == word).map(|(_, name)| *name)
}

fn subject(what: Subject, sections: &Sections) -> Option<Found> {
    match what {
        Subject::Memory => memory::parse(sections),
        Subject::Gpus => gpus::parse(sections),
        Subject::Containers => containers::parse(sections),
        Subject::Sockets => sockets::parse(sections, &Groups::read(sections)),
        Subject::Fabric => fabric::parse(sections),
        Subject::Disk => disk::parse(sections),
        Subject::Image
        | Subject::Versions
        | Subject::Inside
        | Subject::Ray
        | Subject::RayStatus
        | Subject::Serve
        | Subject::Verb => None,
    }
}

/// The end of a record; times in hundredths of a second since the node's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct End {
    lines: usize,
    bytes: usize,
    began: u64,
    ended: u64,
    next: Duration,
}

impl End {
    fn read(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split(' ').collect();
        let [lines, bytes, began, ended, next] = words.as_slice() else {
            return None;
        };
        let (began, ended) = (began.parse().ok()?, ended.parse().ok()?);
        (began <= ended).then_some(Self {
            lines: lines.parse().ok()?,
            bytes: bytes.parse().ok()?,
            began,
            ended,
            next: Duration::from_secs(next.parse().ok()?),
        })
    }

    /// Milliseconds from its begin to its end.
    fn took(&self) -> u64 {
        (self.ended - self.began).saturating_mul(10)
    }
}

/// From the time since the node's start to the console's clock. What the fastest record took on its way is the best that is known of the difference between
/// the two, so a record that was long on its way is as old as it is.
#[derive(Debug, Default)]
struct Clock {
    /// The difference by the fastest record, and when it was known.
    least: Option<(i128, Stamp)>,
    /// From the request of the stream to its first record, without what the node took for that: the difference is off by less.
    trip: Duration,
}

impl Clock {
    /// When a look began that has come now, in a stream that was asked for at `asked`.
    fn at(&mut self, end: &End, asked: Stamp, now: Stamp) -> Stamp {
        let seen = i128::from(now.0) - i128::from(end.ended) * 10;
        let least = match self.least {
            Some((least, since)) => seen.min(least + i128::from(millis(now.since(since)) / DRIFT)),
            None => {
                let took = Duration::from_millis(end.took());
                self.trip = now.since(asked).saturating_sub(took);
                seen
            }
        };
        self.least = Some((least, now));
        stamp(end.began, least, now)
    }

    /// The console's stamp of the moment in which the node's own clock was read, with what it showed then.
    fn shown(&self, end: &End, shown: containers::Shown, now: Stamp) -> Option<(Stamp, NodeClock)> {
        let (least, _) = self.least?;
        // Without a second look at the time since the start it was read soon after the look had begun.
        let after = shown.after.unwrap_or(end.began).clamp(end.began, end.ended);
        let middle = end.began.saturating_add((after - end.began) / 2);
        let within = [
            self.trip,
            shown.fine,
            Duration::from_millis((after - end.began).saturating_mul(5)),
        ];
        let clock = NodeClock {
            shows: shown.shows,
            within: within.into_iter().fold(Duration::ZERO, Duration::saturating_add),
        };
        Some((stamp(middle, least, now), clock))
    }
}

/// A time since the node's start as the console's stamp; nothing that has come lies in the future.
fn stamp(hundredths: u64, difference: i128, now: Stamp) -> Stamp {
    let at = i128::from(hundredths) * 10 + difference;
    Stamp(u64::try_from(at.max(0)).unwrap_or(0).min(now.0))
}
