//! One thing that was seen, with the lines that say it.

use std::collections::BTreeMap;

use crate::domain::sign::Sign;
use crate::domain::{NodeId, Wall};

use super::time::Moment;

/// Lines kept of one thing; the first ones stay.
const LINES: usize = 6;

/// One thing that was seen, once or many times.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    /// The rule; `None` for a failure that no rule knows.
    pub rule: Option<String>,
    pub node: Option<NodeId>,
    pub origin: Origin,
    /// By the node's own clock, when the first line was written.
    pub written: Option<Wall>,
    /// When it was read first.
    pub read: Wall,
    /// When it was last seen not to be so, where that was looked at.
    pub not_yet: Option<Wall>,
    /// Whether it was there before it could be read.
    pub found: bool,
    /// Values of its lines, the newest ones.
    pub fields: BTreeMap<String, String>,
    pub lines: Vec<String>,
    /// Of a fact: what it began with, beside the line that says it.
    began: Vec<String>,
    /// What each of the lines has told.
    parts: Vec<Part>,
    pub times: u64,
    /// Order in which things were read.
    pub seq: u64,
    /// When it was so no longer.
    pub over: Option<Wall>,
}

/// Where a thing was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    Log,
    Output,
    Fact,
}

/// What one line told.
#[derive(Debug, Clone, PartialEq)]
struct Part {
    written: Option<Wall>,
    read: Wall,
    found: bool,
    fields: Vec<(String, String)>,
    /// Whether it only tells more of the line before it.
    more: bool,
}

impl Entry {
    /// What a line says that was read now.
    pub fn of(sign: Sign, rule: Option<String>, node: NodeId, origin: Origin, now: Wall, seq: u64) -> Self {
        Self {
            rule,
            node: Some(node),
            origin,
            written: sign.written,
            read: now,
            not_yet: None,
            found: sign.backlog,
            fields: sign.fields.iter().cloned().collect(),
            lines: vec![sign.text.clone()],
            began: Vec::new(),
            times: sign.times,
            parts: vec![Part::of(sign, false, now)],
            seq,
            over: None,
        }
    }

    /// A fact that is seen now, and was last seen not to be so then; one that was never seen not to be so is found.
    pub fn fact(rule: String, node: Option<NodeId>, not_yet: Option<Wall>, now: Wall, seq: u64) -> Self {
        Self {
            rule: Some(rule),
            node,
            origin: Origin::Fact,
            written: None,
            read: now,
            not_yet,
            found: not_yet.is_none(),
            fields: BTreeMap::new(),
            lines: Vec::new(),
            began: Vec::new(),
            parts: Vec::new(),
            times: 1,
            seq,
            over: None,
        }
    }

    /// The same with these values and this text.
    pub fn says(mut self, fields: Vec<(String, String)>, text: String) -> Self {
        self.now_says(fields, text);
        self
    }

    /// Takes the values and the text that a fact has now.
    pub fn now_says(&mut self, fields: Vec<(String, String)>, text: String) {
        self.fields = fields.into_iter().collect();
        self.lines = [text].into_iter().chain(self.began.iter().cloned()).collect();
    }

    /// Another fact is what this one began with: it was so since then, and what the other said is evidence of it.
    pub fn began_with(&mut self, other: Self) {
        if other.read < self.read {
            (self.read, self.not_yet, self.found) = (other.read, other.not_yet, other.found);
        }
        for line in other.lines {
            if self.lines.len() < LINES && !self.lines.contains(&line) {
                self.began.push(line.clone());
                self.lines.push(line);
            }
        }
    }

    /// Takes a further line of the same; `more` where it only tells more of the one before it.
    pub fn add(&mut self, sign: Sign, more: bool, now: Wall) {
        if !more {
            self.times = self.times.saturating_add(1).max(sign.times);
        }
        self.fields.extend(sign.fields.iter().cloned());
        if self.lines.len() < LINES && !self.lines.contains(&sign.text) {
            self.lines.push(sign.text.clone());
            self.parts.push(Part::of(sign, more, now));
        }
    }

    /// Takes back what a line of this text has told; says whether anything is left.
    pub fn without(&mut self, text: &str) -> bool {
        let line = |(said, part): (&String, &Part)| said == text && !part.more;
        let Some(at) = self.lines.iter().zip(&self.parts).position(line) else {
            return true;
        };
        let more = self.parts.iter().skip(at + 1).take_while(|part| part.more).count();
        self.lines.drain(at..=at + more);
        self.parts.drain(at..=at + more);
        let Some(first) = self.parts.first() else { return false };
        (self.written, self.read, self.found) = (first.written, first.read, first.found);
        self.fields = self.parts.iter().flat_map(|part| part.fields.iter().cloned()).collect();
        self.times = self.times.saturating_sub(1).max(1);
        true
    }

    /// When it was first seen, on a node whose clock is so many milliseconds ahead.
    pub fn moment(&self, ahead: i64) -> Moment {
        match self.written {
            Some(written) => {
                let wall = Wall(written.0.saturating_add_signed(ahead.saturating_neg()));
                Moment {
                    wall,
                    from: wall,
                    certain: true,
                }
            }
            None => Moment {
                wall: self.read,
                from: self.not_yet.unwrap_or(self.read).min(self.read),
                certain: !self.found,
            },
        }
    }
}

impl Part {
    fn of(sign: Sign, more: bool, now: Wall) -> Self {
        Self {
            written: sign.written,
            read: now,
            found: sign.backlog,
            fields: sign.fields,
            more,
        }
    }
}
