//! Bytes of a followed log to lines of the ring and to what they say.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::sync::PoisonError;

use crate::diagnose::{Matcher, wall};
use crate::domain::clock::Written;
use crate::domain::count::things;
use crate::domain::event::EventKind;
use crate::domain::load::LineFact;
use crate::domain::logs::{LogFlow, Seeks};
use crate::domain::{NodeId, Source, Stamp};
use crate::engine::grammar::{self, Context};
use crate::log::{Decoder, Line, LineEdit, Masker, Span, Stream};
use crate::probe::docker::no_such;
use crate::probe::logs::{Follower, NotThere, Place, Speaker};
use crate::probe::ray_logs::{Owner, Pieces};
use crate::ssh::{self, Chunk};

use super::feed::Feed;
use super::follow::{NodeLog, SharedLog};

/// Findings that wait for room in the queue; when too many wait, the oldest bar goes first, then the newest failure line.
const FINDINGS: usize = 256;

/// What came of a run of a log's command that is no line of the log.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// Whether something of the log itself came, or the file was found that holds it.
    pub(super) began: bool,
    /// Why there is nothing to read, where the node says so.
    pub(super) absent: Option<NotThere>,
    /// What Docker or the shell said last in its place.
    pub(super) said: Option<String>,
    /// Whether Docker says that the container is not there.
    pub(super) gone: bool,
}

/// Files of Ray's that are decoded at a time. One more takes the place of another, whose unfinished line is then a line.
const FILES: usize = 64;

/// Turns bytes into lines of the ring and into findings.
pub(super) struct Reader<'a> {
    log: &'a SharedLog,
    masker: &'a Masker,
    follower: &'a mut Follower,
    matcher: &'a mut Matcher,
    context: Context,
    decoder: Decoder,
    findings: VecDeque<EventKind>,
    /// Ray's files, where it is those that come.
    files: Option<Files>,
    /// Whether what is read now was there before it could be followed.
    pub(super) backlog: bool,
    advanced: bool,
    /// The newest line of the log's own that was not told yet, and the newest that says more than that something is waited for.
    newest: Option<LineTime>,
    spoke: Option<LineTime>,
    /// Bytes whose loss stands in the log, of this run of its command.
    lost: u64,
    /// How the log keeps up, and what was told of that last.
    flow: &'a mut LogFlow,
    told: &'a mut LogFlow,
    pub(super) heard: Heard,
    /// What of Docker's and the shell's own words stands in the log last.
    words: &'a mut Option<String>,
    /// Whether the log's first line is the first of what is read now.
    first: bool,
}

/// What tells when a line was written; its time is read when it is wanted.
#[derive(Clone)]
struct LineTime {
    time: Option<String>,
    backlog: bool,
}

impl LineTime {
    fn written(&self) -> Written {
        Written {
            by_node: self.time.as_deref().and_then(wall),
            backlog: self.backlog,
        }
    }
}

/// Ray's files, each with a decoder of its own.
#[derive(Default)]
struct Files {
    pieces: Pieces,
    open: BTreeMap<String, (Owner, Decoder)>,
}

impl Files {
    /// Decodes what the script printed.
    fn feed(&mut self, bytes: &[u8], sink: &mut impl FnMut(LineEdit)) {
        let open = &mut self.open;
        self.pieces.feed(bytes, &mut |file, piece| {
            if open.len() >= FILES
                && !open.contains_key(file)
                && let Some((_, (mut owner, mut decoder))) = open.pop_first()
            {
                let stream = owner.stream;
                decoder.finish(stream, &mut |edit| owned(&mut owner, edit, sink));
            }
            let (owner, decoder) = open
                .entry(file.to_owned())
                .or_insert_with(|| (Owner::of(file), Decoder::new()));
            let stream = owner.stream;
            decoder.feed(stream, piece, &mut |edit| owned(owner, edit, sink));
        });
    }

    /// No more comes.
    fn finish(&mut self, sink: &mut impl FnMut(LineEdit)) {
        while let Some((_, (mut owner, mut decoder))) = self.open.pop_first() {
            let stream = owner.stream;
            decoder.finish(stream, &mut |edit| owned(&mut owner, edit, sink));
        }
        self.pieces = Pieces::default();
    }
}

/// Puts before a line of a file whose it is; leaves out Ray's own notes.
fn owned(owner: &mut Owner, edit: LineEdit, sink: &mut impl FnMut(LineEdit)) {
    let name = |owner: &Owner, mut line: Line| {
        let text = owner.prefix();
        if let Some(bar) = &mut line.bar {
            bar.key.insert_str(0, text.trim_end());
        }
        let style = crate::log::Style {
            dim: true,
            ..crate::log::Style::default()
        };
        line.spans.insert(0, Span { text, style });
        line
    };
    match edit {
        LineEdit::Push(line) => {
            if !owner.note(&line.text()) {
                sink(LineEdit::Push(name(owner, line)));
            }
        }
        LineEdit::Live(stream, line) => {
            let line = line.filter(|l| !l.plain().starts_with(':')).map(|l| name(owner, l));
            sink(LineEdit::Live(stream, line));
        }
    }
}

impl<'a> Reader<'a> {
    /// Reads on; `ray` where pieces of Ray's files come.
    pub(super) fn new(log: &'a SharedLog, masker: &'a Masker, node: &'a mut NodeLog, ray: bool) -> Self {
        Self {
            files: ray.then(Files::default),
            log,
            masker,
            follower: &mut node.follower,
            matcher: &mut node.matcher,
            context: Context::default(),
            decoder: Decoder::new(),
            findings: VecDeque::new(),
            backlog: true,
            advanced: false,
            newest: None,
            spoke: None,
            lost: 0,
            flow: &mut node.flow,
            told: &mut node.flow_told,
            heard: Heard::default(),
            words: &mut node.words,
            first: node.first,
        }
    }

    pub(super) fn take(&mut self, chunk: &Chunk) {
        if chunk.dropped > 0 {
            self.gap(chunk.dropped);
        }
        let mut edits = Vec::new();
        match (chunk.stream, &mut self.files) {
            (ssh::Stream::Out, Some(files)) => {
                files.feed(&chunk.bytes, &mut |edit| edits.push(edit));
                self.heard.began |= files.pieces.begun();
                if files.pieces.none() {
                    let why = "there are none yet";
                    self.heard.absent = Some(NotThere { why, said: None });
                }
            }
            (ssh::Stream::Out, None) => {
                let content = self.follower.content(&chunk.bytes);
                self.heard.began |= self.follower.found() || !content.is_empty();
                if let Some(absent) = self.follower.absent() {
                    self.heard.absent = Some(absent);
                }
                self.notice();
                self.decoder.feed(Stream::Out, content, &mut |edit| edits.push(edit));
            }
            (ssh::Stream::Err, _) => self
                .decoder
                .feed(Stream::Err, &chunk.bytes, &mut |edit| edits.push(edit)),
        }
        self.apply(edits);
    }

    /// Whether what finds no room comes again when the log is followed from where it was left.
    pub(super) fn comes_again(&self) -> bool {
        self.files.is_none() && self.follower.goes_on()
    }

    /// Since when the command is held on its node because this does not read as fast as it prints.
    pub(super) fn behind(&mut self, since: Option<Stamp>) {
        self.flow.behind = since;
    }

    /// Since when Docker has been asked for the log and has given nothing.
    pub(super) fn seeks(&mut self, since: Option<Stamp>) {
        let again = self.follower.expects();
        self.flow.seeks = since.map(|since| Seeks { since, again });
    }

    /// The log that is read.
    pub(super) fn follower(&mut self) -> &mut Follower {
        self.follower
    }

    /// Writes into the log that bytes are missing here; what comes after them does not go on the line before.
    fn gap(&mut self, bytes: u64) {
        self.lost = self.lost.saturating_add(bytes);
        self.flow.lost = self.flow.lost.saturating_add(bytes);
        self.finish();
        self.decoder = Decoder::new();
        if self.files.is_none() {
            self.follower.lost(bytes);
        }
        let (bytes, were) = (things(bytes, "byte"), if bytes == 1 { "was" } else { "were" });
        let text = format!("… {bytes} of the log {were} lost here: they came faster than they could be read");
        self.say(&text);
    }

    /// The command has ended, by itself and well or not; so many bytes were lost in all. A line that has no end yet is one only if nothing more of it
    /// can come: after a loss of the connection it comes again, whole.
    pub(super) fn end(&mut self, lost: u64, well: bool) {
        match lost.saturating_sub(self.lost) {
            0 if self.files.is_some() || (well && !self.follower.repeats()) => self.finish(),
            0 => {}
            last => self.gap(last),
        }
    }

    /// Writes into the log what the follower has found of it.
    fn notice(&mut self) {
        if let Some(text) = self.follower.notice() {
            self.say(&text);
        }
    }

    /// Writes a line of the console's own.
    pub(super) fn say(&mut self, text: &str) {
        self.flow.own = self.flow.own.saturating_add(1);
        self.put(LineEdit::Push(Line::of(Stream::Out, text)));
    }

    fn put(&mut self, edit: LineEdit) {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).apply(edit);
        self.advanced = true;
    }

    fn finish(&mut self) {
        let mut edits = Vec::new();
        if let Some(files) = &mut self.files {
            files.finish(&mut |edit| edits.push(edit));
        }
        for stream in Stream::ALL {
            self.decoder.finish(stream, &mut |edit| edits.push(edit));
        }
        self.apply(edits);
    }

    fn apply(&mut self, edits: Vec<LineEdit>) {
        for edit in edits {
            let edit = match edit {
                LineEdit::Push(line) => {
                    if self.files.is_none() && !self.follower.fresh(&line) {
                        continue;
                    }
                    self.notice();
                    let told = self.follower.told_before(&line);
                    let line = self.masker.line(line);
                    if let Some(who) = self.follower.speaker(&line) {
                        self.own_words(who, &line);
                        continue;
                    }
                    self.heard.began |= matches!(self.follower.place(), Place::Container { .. });
                    *self.words = None;
                    if !told {
                        self.hear(&line);
                    }
                    LineEdit::Push(line)
                }
                LineEdit::Live(stream, line) => {
                    let line = line.map(|l| self.masker.line(l));
                    let line = line.filter(|l| self.follower.speaker(l).is_none());
                    if let Some(line) = &line {
                        self.find(line);
                    }
                    LineEdit::Live(stream, line)
                }
            };
            self.put(edit);
        }
    }

    /// Takes what Docker's client or the shell says itself: it says nothing of the engine, and is no reason why that failed. That the container is gone
    /// is told with how it ended, and what was said before is not said again with each try.
    fn own_words(&mut self, who: Speaker, line: &Line) {
        let said = line.plain();
        if who == Speaker::Docker && no_such(&said) {
            self.heard.gone = true;
            return;
        }
        if self.words.as_ref() != Some(&said) {
            self.say(&format!("… {} says: {said}", who.word()));
        }
        *self.words = Some(said.clone());
        self.heard.said = Some(said);
    }

    /// What a line that has ended says of the engine and of why it fails; it is kept to be told.
    fn hear(&mut self, line: &Line) {
        let text = line.text();
        let said = self
            .context
            .read(&text, line.stream == Stream::Err, line.time.as_deref());
        let settled = match said.tame {
            true => said.facts,
            false => self.matcher.settle(&text, said.facts),
        };
        let facts = self.found(line, settled);
        let time = self.time_of(line);
        if !facts.iter().any(LineFact::waits) {
            self.spoke = Some(time.clone());
        }
        self.newest = Some(time);
        if said.quoted {
            return;
        }
        for sign in self.matcher.read(line, &facts, self.backlog) {
            self.keep(EventKind::Sign(sign));
        }
    }

    /// Keeps what a line that goes on being written says so far.
    fn find(&mut self, line: &Line) {
        let text = line.text();
        let facts = grammar::read(&text);
        // A bar is never whole. All else is told with its whole line, and by where that stands: of a command that is run again it was told before.
        let bar = |fact: &LineFact| matches!(fact, LineFact::Bar { .. } | LineFact::Download { .. });
        if facts.iter().any(bar) {
            self.found(line, facts);
        }
    }

    /// Keeps what was found in a line, to be told.
    fn found(&mut self, line: &Line, facts: Vec<LineFact>) -> Vec<LineFact> {
        // What Ray's files held before may be of an earlier server.
        if self.files.is_some() && self.backlog {
            return Vec::new();
        }
        if !facts.is_empty() {
            let written = self.time_of(line).written();
            for fact in &facts {
                self.keep(EventKind::Line(fact.clone(), written));
            }
        }
        facts
    }

    fn time_of(&self, line: &Line) -> LineTime {
        LineTime {
            time: line.time.clone(),
            backlog: self.backlog,
        }
    }

    /// Keeps what a line says until the queue has room. Bars and failure lines may be many and each is worth little: they make room for the rest.
    fn keep(&mut self, found: EventKind) {
        if self.findings.len() == FINDINGS {
            let bar = |f: &EventKind| {
                matches!(
                    f,
                    EventKind::Line(LineFact::Bar { .. } | LineFact::Download { .. } | LineFact::Rank(_), _)
                )
            };
            let failure = |f: &EventKind| matches!(f, EventKind::Line(LineFact::Failure(_), _));
            let place = self.findings.iter().position(bar);
            let place = place.or_else(|| self.findings.iter().rposition(failure));
            let place = place.or_else(|| self.findings.iter().position(|f| matches!(f, EventKind::Line(..))));
            self.findings.remove(place.unwrap_or(0));
        }
        self.findings.push_back(found);
    }

    /// Tells what was found, as far as the queue has room; the rest stays for the next time.
    pub(super) fn offer(&mut self, feed: &Feed, node: NodeId) {
        let source = Source::Node(node);
        while let Some(found) = self.findings.pop_front() {
            if !feed.offer(source, found.clone()) {
                self.findings.push_front(found);
                break;
            }
        }
        if self.first && self.flow.older.is_none() {
            self.flow.older = self.follower.older();
        }
        if *self.told != *self.flow && feed.offer(source, EventKind::LogFlow(*self.flow)) {
            *self.told = *self.flow;
        }
        if self.advanced {
            let (seq, dropped) = {
                let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
                (log.next_seq(), log.dropped())
            };
            let written = |told: &Option<LineTime>| told.as_ref().map(LineTime::written);
            let news = EventKind::LogAdvanced {
                seq,
                dropped,
                newest: written(&self.newest),
                spoke: written(&self.spoke),
            };
            if feed.offer(source, news) {
                (self.advanced, self.newest, self.spoke) = (false, None, None);
            }
        }
    }
}
