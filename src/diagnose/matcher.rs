//! From the lines of one log to signs.

use std::collections::BTreeMap;

use jiff::Timestamp;
use regex::{Captures, Regex};

use crate::config::Config;
use crate::domain::load::LineFact;
use crate::domain::sign::{Sign, SignKind};
use crate::domain::{NodeId, Role, Wall};
use crate::log;

use super::rule::{Kind, Place, TextSign};
use super::rules::{Rules, builtin, looked_at};
use super::template::Values;

/// Times that a sign is told in full; after that only when the count has doubled, so that a log that fails all the time fills no queue.
const TOLD: u64 = 8;

/// Lines after a sign in which its rule looks for more.
const AFTER: usize = 12;

/// Longest text kept of a line, in characters.
const TEXT: usize = 300;

/// Longest value, in characters.
const VALUE: usize = 120;

/// Reads one log, line by line, for as long as it is followed; a connection that comes back goes on with the same one.
#[derive(Debug, Clone)]
pub struct Matcher {
    rules: Rules,
    place: Place,
    addresses: Vec<String>,
    /// By sign: how often it came in this start. [`UNKNOWN`] counts the lines that no rule knows.
    counts: BTreeMap<(usize, usize), u64>,
    /// By stream: the sign that looks for more.
    open: [Option<Open>; 2],
}

/// Counts lines that say that something failed and that no rule knows.
const UNKNOWN: (usize, usize) = (usize::MAX, 0);

/// A sign that looks for more in the lines after it.
#[derive(Debug, Clone)]
struct Open {
    rule: String,
    then: Vec<Regex>,
    left: usize,
}

impl Matcher {
    /// For the log of a node in this role.
    #[must_use]
    pub fn new(config: &Config, role: Role) -> Self {
        let place = match role {
            Role::Head => Place::HeadLog,
            Role::Worker => Place::WorkerLog,
        };
        Self::at(config, place, builtin())
    }

    /// The same, with these rules in place of those that come with the program.
    #[must_use]
    pub fn by(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// For texts of any kind.
    pub(super) fn at(config: &Config, place: Place, rules: &Rules) -> Self {
        Self {
            rules: rules.clone(),
            place,
            addresses: config.nodes.iter().map(|n| n.fabric_address.clone()).collect(),
            counts: BTreeMap::new(),
            open: [None, None],
        }
    }

    /// What a line says by these rules, where `facts` is what the engine's grammar finds in it by the rules that come with the program: a failure that is
    /// none by these is taken away, one that is one by these alone is added.
    #[must_use]
    pub fn settle(&self, text: &str, mut facts: Vec<LineFact>) -> Vec<LineFact> {
        match self.rules.says(text) {
            Some(Kind::Pointer) => facts.retain(|fact| !matches!(fact, LineFact::Failure(_))),
            Some(Kind::Quiet) => {
                facts.retain(|fact| !matches!(fact, LineFact::Failure(_) | LineFact::GaveUp { .. }));
            }
            // Which rank wrote it, and that nothing comes after it, says nothing of what it says.
            Some(Kind::Cause | Kind::Echo)
                if facts
                    .iter()
                    .all(|fact| matches!(fact, LineFact::Rank(_) | LineFact::GaveUp { .. })) =>
            {
                facts.push(LineFact::Failure(cut(text.trim(), TEXT)));
            }
            Some(Kind::Cause | Kind::Echo | Kind::Warning) | None => {}
        }
        facts
    }

    /// Reads a line that has ended. `facts` is what the engine's grammar finds in it: a new start, or that something failed, which is told as unknown when no
    /// rule knows better. `backlog` says that the line was there before.
    pub fn read(&mut self, line: &log::Line, facts: &[LineFact], backlog: bool) -> Vec<Sign> {
        let stream = match line.stream {
            log::Stream::Out => 0,
            log::Stream::Err => 1,
        };
        let text = line.text();
        let mut signs = self.text(&text, stream, facts);
        if !signs.is_empty() {
            let written = line.time.as_deref().and_then(wall);
            for sign in &mut signs {
                sign.written = written;
                sign.backlog = backlog && written.is_none();
            }
        }
        signs
    }

    fn text(&mut self, line: &str, stream: usize, facts: &[LineFact]) -> Vec<Sign> {
        let mut signs = Vec::new();
        if facts.contains(&LineFact::NewStart) {
            self.counts.clear();
            self.open = [None, None];
            signs.push(sign(SignKind::NewStart, line, Vec::new(), 1));
        }
        for fact in facts {
            if let LineFact::Outlived(text) = fact {
                self.uncount(text);
            }
        }
        let line = looked_at(line);
        signs.extend(self.more(line, stream));
        let failure = facts.iter().find_map(|fact| match fact {
            LineFact::Failure(text) => Some(text.as_str()),
            LineFact::NewStart
            | LineFact::Stage(_)
            | LineFact::Bar { .. }
            | LineFact::Checkpoint(_)
            | LineFact::Download { .. }
            | LineFact::Rank(_)
            | LineFact::StillWaits
            | LineFact::GpuWait { .. }
            | LineFact::Transport(_)
            | LineFact::Outlived(_)
            | LineFact::ShutsDown
            | LineFact::GaveUp { .. } => None,
        });
        match self.rule(line, stream, failure) {
            Some(found) => signs.extend(found),
            None => signs.extend(failure.and_then(|text| {
                let times = self.count(UNKNOWN);
                told(times).then(|| sign(SignKind::Unknown, text, Vec::new(), times))
            })),
        }
        signs
    }

    /// What the rule that the line fits makes of it; `None` when it fits none.
    fn rule(&mut self, line: &str, stream: usize, failure: Option<&str>) -> Option<Option<Sign>> {
        let rules = self.rules.clone();
        for (rule, wanted, number) in rules.candidates(line) {
            let Some((fields, end)) = self.fits(wanted, line) else {
                continue;
            };
            match rule.kind {
                Kind::Pointer | Kind::Quiet => return Some(None),
                Kind::Cause | Kind::Echo | Kind::Warning => {}
            }
            let times = self.count(number);
            if times < wanted.times {
                // Not often enough yet: until then it is as if the line said nothing.
                return Some(None);
            }
            if !told(times.saturating_sub(wanted.times).saturating_add(1)) {
                return Some(None);
            }
            let mut fields = fields;
            let mut then = wanted.then.clone();
            take_more(&mut then, line.get(end..).unwrap_or_default(), &mut fields);
            let open = (!then.is_empty()).then(|| Open {
                rule: rule.id.clone(),
                then,
                left: AFTER,
            });
            if let Some(slot) = self.open.get_mut(stream) {
                *slot = open;
            }
            let kind = SignKind::Rule(rule.id.clone());
            return Some(Some(sign(kind, failure.unwrap_or(line), fields, times)));
        }
        None
    }

    /// What a sign captures of a line and where that ends; `None` when it does not fit.
    fn fits(&self, wanted: &TextSign, line: &str) -> Option<(Vec<(String, String)>, usize)> {
        if !self.place.among(&wanted.places) {
            return None;
        }
        let mut fields = Vec::new();
        let mut end = line.find(&wanted.has)?.saturating_add(wanted.has.len());
        if let Some(pattern) = &wanted.pattern {
            let captures = pattern.captures(line)?;
            end = captures.get(0).map_or(end, |whole| whole.end().max(end));
            fields = values(pattern, &captures);
        }
        let value = |name: &String| fields.iter().find(|(n, _)| n == name).map(|(_, v)| v);
        let foreign = wanted
            .foreign
            .as_ref()
            .is_none_or(|name| value(name).is_some_and(|address| !self.addresses.iter().any(|own| own == address)));
        let enough = wanted.at_least.iter().all(|(name, least)| {
            value(name)
                .and_then(|v| v.parse::<u64>().ok())
                .is_some_and(|n| n >= *least)
        });
        (foreign && enough).then_some((fields, end))
    }

    /// What an earlier sign finds in this line.
    fn more(&mut self, line: &str, stream: usize) -> Option<Sign> {
        let slot = self.open.get_mut(stream)?;
        let open = slot.as_mut()?;
        let mut fields = Vec::new();
        take_more(&mut open.then, line, &mut fields);
        open.left = open.left.saturating_sub(1);
        let found = (!fields.is_empty()).then(|| sign(SignKind::More(open.rule.clone()), line, fields, 1));
        if open.then.is_empty() || open.left == 0 {
            *slot = None;
        }
        found
    }

    /// A line that was counted was no failure: the next one like it is told as if this one had not been.
    fn uncount(&mut self, text: &str) {
        let mut candidates = self.rules.candidates(text).into_iter();
        let known = candidates.find(|(_, wanted, _)| self.fits(wanted, text).is_some());
        let number = match known.map(|(rule, _, number)| (rule.kind, number)) {
            Some((Kind::Pointer | Kind::Quiet, _)) => return,
            Some((Kind::Cause | Kind::Echo | Kind::Warning, number)) => number,
            None => UNKNOWN,
        };
        if let Some(count) = self.counts.get_mut(&number) {
            *count = count.saturating_sub(1);
        }
    }

    fn count(&mut self, of: (usize, usize)) -> u64 {
        let count = self.counts.entry(of).or_default();
        *count = count.saturating_add(1);
        *count
    }
}

/// Signs in lines that a command or verb which failed has printed, or that a probe complains with.
#[must_use]
pub fn read_output<'a>(
    config: &Config,
    rules: &Rules,
    place: Place,
    lines: impl Iterator<Item = &'a String>,
) -> Vec<Sign> {
    let mut matcher = Matcher::at(config, place, rules);
    lines.flat_map(|line| matcher.text(line, 0, &[])).collect()
}

/// What to do about a command that failed on a node, when a rule knows its words.
#[must_use]
pub fn advice<'a>(
    config: &Config,
    rules: &Rules,
    node: NodeId,
    lines: impl Iterator<Item = &'a String>,
) -> Option<String> {
    read_output(config, rules, Place::Output, lines)
        .into_iter()
        .find_map(|sign| {
            let SignKind::Rule(id) = sign.what else { return None };
            let fields = sign.fields.into_iter().collect();
            let values = Values {
                config,
                node: Some(node),
                fields: &fields,
            };
            Some(rules.get(&id)?.fix.as_ref()?.fill(&values))
        })
}

/// Whether a sign is told at this count of it.
fn told(times: u64) -> bool {
    times <= TOLD || times.is_power_of_two()
}

/// Takes what the next expressions find in a line, one after the other, each after the one before.
fn take_more(then: &mut Vec<Regex>, line: &str, fields: &mut Vec<(String, String)>) {
    let mut at = 0;
    let mut done = 0;
    for regex in then.iter() {
        let Some(rest) = line.get(at..) else { break };
        let Some(captures) = regex.captures(rest) else { break };
        fields.extend(values(regex, &captures));
        at = at.saturating_add(captures.get(0).map_or(0, |whole| whole.end()));
        done += 1;
    }
    then.drain(..done);
}

fn values(regex: &Regex, captures: &Captures<'_>) -> Vec<(String, String)> {
    let names = regex.capture_names().flatten();
    names
        .filter_map(|name| Some((name.to_owned(), cut(captures.name(name)?.as_str(), VALUE))))
        .collect()
}

fn sign(what: SignKind, text: &str, fields: Vec<(String, String)>, times: u64) -> Sign {
    Sign {
        what,
        text: cut(text.trim(), TEXT),
        written: None,
        backlog: false,
        fields,
        times,
    }
}

fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

/// A time as `docker logs --timestamps` prints it.
#[must_use]
pub fn wall(time: &str) -> Option<Wall> {
    let time: Timestamp = time.parse().ok()?;
    u64::try_from(time.as_millisecond()).ok().map(Wall)
}
