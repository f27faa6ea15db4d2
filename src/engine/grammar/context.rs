//! What a line is by those before it: part of a record that only informs, or of a traceback; and whether whoever printed an exception goes on.
//!
//! vLLM marks each line of a record. Other programs do not: the lines below such a record, of a prompt for one, are part of it, and an exception among them
//! is none of the program's. A traceback is told by its first line, whatever stands before it: that is how a server dies, and what it said last only informs.
//! Where its writer goes on with records of its own, it was survived. A web server's records prove nothing of the kind: they come from any process, and it
//! answers and says goodbye long after the engine behind it has died.

use std::collections::BTreeMap;

use crate::diagnose::wall;
use crate::domain::load::LineFact;

use super::{LOOKED_AT, failure, first, rank_facts, read_text, record};

/// Writers that are told apart; a cluster's engine has a few dozen processes.
const WRITERS: usize = 64;

/// Exceptions remembered of one writer, until it goes on; a load remembers as many failures.
const RAISED: usize = 8;

/// How a traceback begins.
const TRACEBACK: &str = "Traceback (most recent call last)";

/// Time within which all lines of a record are written, in milliseconds. What comes later below it stands for itself.
const ONE_RECORD: u64 = 1000;

/// The lines of one log, as far as the next one may be part of them.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// By the prefixes of their lines.
    writers: BTreeMap<String, Writer>,
    /// Whether the server says that it ends: what is printed then is of its end, until another one begins.
    ends: bool,
    /// Exceptions by which a process without an owner has ended.
    fatal: Vec<String>,
}

/// What a line says, by those before it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Said {
    /// What it says of the load.
    pub facts: Vec<LineFact>,
    /// Whether it is part of a record that only informs, whatever its own words say.
    pub quoted: bool,
    /// Whether it has the words of a failure that the program's rules know, and is none where it stands.
    pub tame: bool,
}

#[derive(Debug, Clone, Default)]
struct Writer {
    /// By stream: whether a record that only informs is the last, and when it was written, as its log prints it.
    mild: [Option<Option<String>>; 2],
    /// By stream: whether a traceback has begun that has named no exception yet.
    traceback: [bool; 2],
    /// By stream: whether Python says that a process ends by the traceback that follows.
    ended: [bool; 2],
    /// Exceptions that it printed by themselves.
    raised: Vec<String>,
}

impl Context {
    /// Reads a line that has ended: `err` where it comes from the error stream, `time` when it was written, where the log tells it.
    pub fn read(&mut self, line: &str, err: bool, time: Option<&str>) -> Said {
        let plain = record::plain(first(line, LOOKED_AT));
        let (owner, text) = record::owned(&plain);
        let stream = usize::from(err);
        let message = record::message(&plain);
        let is_record = message.len() < text.trim().len();
        let mut said = Said::default();
        if !self.writers.contains_key(owner) && self.writers.len() >= WRITERS {
            self.writers.pop_first();
        }
        let writer = match self.writers.get_mut(owner) {
            Some(writer) => writer,
            None => self.writers.entry(owner.to_owned()).or_default(),
        };
        if !is_record {
            said.quoted = writer.quotes(stream, text.trim(), time);
        }
        said.facts = read_text(line, said.quoted);
        said.facts.extend(rank_facts(line, &said.facts));
        said.tame = said.quoted;
        if said.facts.contains(&LineFact::NewStart) {
            self.ends = false;
            self.fatal.clear();
        }
        if !is_record {
            // Without an owner, it is any process that goes on.
            let ended = owner.is_empty() && writer.ended.get(stream).is_some_and(|ended| *ended);
            remember(if ended { &mut self.fatal } else { &mut writer.raised }, &said.facts);
            return said;
        }
        let mild = record::is_mild(&plain);
        writer.begins(stream, message);
        said.tame = mild && failure::tame(message);
        if let Some(slot) = writer.mild.get_mut(stream) {
            *slot = mild.then(|| time.map(str::to_owned));
        }
        // Ray's own records stand in the same log, without a name, and so do uvicorn's.
        let goodbye = failure::goodbye(message);
        self.ends |= said.facts.contains(&LineFact::ShutsDown) || (goodbye && message.starts_with("Shutting down"));
        let goes_on = mild && record::placed(text) && !goodbye && !self.ends;
        if goes_on && !said.facts.iter().any(LineFact::waits) {
            let outlived = std::mem::take(&mut writer.raised);
            // Another writer may have printed the same, and die of it.
            let others =
                |text: &String| self.fatal.contains(text) || self.writers.values().any(|w| w.raised.contains(text));
            let alone = outlived.into_iter().filter(|text| !others(text));
            said.facts.extend(alone.map(LineFact::Outlived));
        }
        said
    }
}

impl Writer {
    /// Whether a line that is no record is an exception within a record that only informs.
    fn quotes(&mut self, stream: usize, text: &str, time: Option<&str>) -> bool {
        let (Some(mild), Some(traceback)) = (self.mild.get_mut(stream), self.traceback.get_mut(stream)) else {
            return false;
        };
        if text.contains(TRACEBACK) {
            *traceback = true;
            return false;
        }
        if process(text)
            && let Some(ended) = self.ended.get_mut(stream)
        {
            *ended = true;
        }
        if !failure::raised(text) {
            return false;
        }
        let told = std::mem::take(traceback);
        let quoted = !told && mild.as_ref().is_some_and(|at| together(at.as_deref(), time));
        if !quoted {
            // What follows is of the exception, and not of the record before it.
            *mild = None;
        }
        quoted
    }

    /// A record begins: it may be the first line of a traceback itself, and one before it is over.
    fn begins(&mut self, stream: usize, message: &str) {
        if let (Some(traceback), Some(ended)) = (self.traceback.get_mut(stream), self.ended.get_mut(stream)) {
            *traceback |= message.contains(TRACEBACK);
            *ended = false;
        }
    }
}

/// Remembers what a writer printed by itself, to take it back if it goes on.
fn remember(raised: &mut Vec<String>, facts: &[LineFact]) {
    for fact in facts {
        if let LineFact::Failure(text) = fact
            && failure::raised(text)
            && raised.len() < RAISED
        {
            raised.push(text.clone());
        }
    }
}

/// What Python prints before the traceback of which a process of several ends: `Process EngineCore_0:`.
fn process(text: &str) -> bool {
    let name = text.strip_prefix("Process ").and_then(|rest| rest.strip_suffix(':'));
    name.is_some_and(|name| !name.is_empty() && !name.contains(' '))
}

/// Whether two lines may have been written at once.
fn together(record: Option<&str>, line: Option<&str>) -> bool {
    match (record.and_then(wall), line.and_then(wall)) {
        (Some(record), Some(line)) => line.0.saturating_sub(record.0) <= ONE_RECORD,
        (Some(_), None) | (None, _) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OOM: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB.";

    fn failures(lines: &[&str]) -> Vec<Vec<&'static str>> {
        let mut context = Context::default();
        let word = |fact: &LineFact| {
            let kinds = [
                ("failure", matches!(fact, LineFact::Failure(_))),
                ("gave up", matches!(fact, LineFact::GaveUp { .. })),
                ("outlived", matches!(fact, LineFact::Outlived(_))),
            ];
            kinds.into_iter().find(|(_, is)| *is).map(|(word, _)| word)
        };
        let read = |line: &&str| {
            let (time, line) = line.split_once('|').map_or((None, *line), |(t, l)| (Some(t), l));
            context.read(line, false, time).facts.iter().filter_map(word).collect()
        };
        lines.iter().map(read).collect()
    }

    fn last(lines: &[&str]) -> Vec<&'static str> {
        failures(lines).pop().unwrap()
    }

    #[test]
    fn an_exception_below_a_record_that_only_informs_is_part_of_it_and_a_traceback_is_not() {
        let prompt = "INFO 11-29 18:59:08 [logger.py:39] Received request cmpl-1: prompt: 'why is this:";
        assert_eq!(last(&[prompt, OOM]), [""; 0]);
        assert_eq!(last(&[prompt, "second line", OOM, "ValueError: too"]), [""; 0]);
        let dies = ["failure", "gave up"];
        let header = "Traceback (most recent call last):";
        let place = "  File \"/usr/local/bin/vllm\", line 10, in <module>";
        assert_eq!(last(&[prompt, header, place, OOM]), dies);
        // One that another thread's record has come between.
        assert_eq!(last(&[prompt, header, prompt, OOM]), dies);
        // Of another writer, below a record that says that something failed, below none, long after it.
        assert_eq!(last(&[prompt, &format!("(EngineCore pid=7) {OOM}")]), dies);
        let failed = "ERROR 11-29 18:59:08 [core.py:1] It fails:";
        assert_eq!(last(&[prompt, failed, OOM]), dies);
        assert_eq!(last(&[OOM]), dies);
        let at = |time: &str, line: &str| format!("2026-11-29T18:{time}.000000001Z|{line}");
        let (record, same, later) = (at("59:08", prompt), at("59:08", OOM), at("59:20", OOM));
        assert_eq!(last(&[&record, &same]), [""; 0]);
        assert_eq!(last(&[&record, &later]), dies);
        // The words of other programs are no part of a record.
        for line in ["vllm: error: unrecognized arguments: x", "/bin/sh: 1: ray: not found"] {
            assert_eq!(last(&[prompt, line]), ["failure"], "{line}");
        }
        let group = "Error: No available node types can fulfill resource request {'GPU': 1.0}";
        assert_eq!(last(&[prompt, group]), ["failure"]);
    }

    #[test]
    fn an_exception_is_outlived_when_its_writer_goes_on_with_a_record_and_not_by_others() {
        let raised = [
            "(Worker_TP0 pid=85) Traceback (most recent call last):",
            "(Worker_TP0 pid=85) ValueError: x",
        ];
        let own = "(Worker_TP0 pid=85) INFO 11-29 17:32:21 [x.py:11] The next one is tried";
        let before = |line: &str| last(&[raised[0], raised[1], line]);
        assert_eq!(before(own), ["outlived"]);
        assert_eq!(before(&own.replace("TP0 pid=85", "TP1 pid=86")), [""; 0]);
        assert_eq!(before(&own.replace("INFO", "ERROR")), [""; 0]);
        let waits = "(Worker_TP0 pid=85) INFO 11-29 17:32:21 [x.py:11] No available shared memory broadcast block found in 60 seconds.";
        assert_eq!(before(waits), [""; 0]);
        // What an engine says in a record of its own that failed is not taken back.
        let told = "(Worker_TP0 pid=85) ERROR 11-29 17:32:20 [x.py:11] ValueError: x";
        assert_eq!(last(&[told, own]), [""; 0]);
        let ray = "2026-11-29 18:59:36,893 INFO worker.py:1841 -- Connected to Ray cluster.";
        assert_eq!(last(&["ValueError: x", ray]), [""; 0]);
    }

    #[test]
    fn a_web_servers_answers_and_an_end_outlive_nothing() {
        let own = "INFO 11-29 17:32:21 [loggers.py:111] Engine 000: Avg prompt throughput: 2.8 tokens/s";
        let end = "INFO:     Shutting down";
        let crash = "RuntimeError: CUDA error: an illegal memory access was encountered";
        assert_eq!(last(&[crash, own]), ["outlived"]);
        let others = [
            end,
            "INFO:     Waiting for application shutdown.",
            "INFO:     Application shutdown complete.",
            "INFO:     Finished server process [1]",
            "INFO:     127.0.0.1:1 - \"POST /v1/completions HTTP/1.1\" 500 Internal Server Error",
            "INFO 11-29 17:32:21 [launcher.py:110] Shutting down FastAPI HTTP server.",
            "INFO 11-29 17:32:21 [launcher.py:110] [shutdown] API server: shutting down FastAPI HTTP server",
            "INFO 11-29 17:32:21 [multiproc_executor.py:558] Parent process exited, terminating worker",
            "INFO 11-29 17:32:21 multiproc_worker_utils.py:137] Terminating local vLLM worker processes",
        ];
        for line in others {
            assert_eq!(last(&[crash, line]), [""; 0], "{line}");
            let owned = |line: &str| format!("(APIServer pid=422) {line}");
            assert_eq!(last(&[&owned(crash), &owned(line)]), [""; 0], "{line}");
        }
        // What comes in the course of an end is of it, until another server begins.
        assert_eq!(last(&[crash, end, own]), [""; 0]);
        let start = "INFO 11-29 17:40:00 [api_server.py:1] vLLM API server version 0.10.0";
        let header = "Traceback (most recent call last):";
        assert_eq!(last(&[end, start, header, crash, own]), ["outlived"]);
        // A process of which Python says that it ends by an exception, beside others that have no names either.
        let process = "Process EngineCore_0:";
        assert_eq!(last(&[process, header, crash, own]), [""; 0]);
        let other = "ValueError: x";
        assert_eq!(last(&[process, header, crash, own, header, other, own]), ["outlived"]);
        assert_eq!(last(&[process, header, crash, own, header, crash, own]), [""; 0]);
    }

    #[test]
    fn what_another_writer_printed_too_is_outlived_when_both_go_on() {
        let says = |rank: u32, text: &str| format!("(Worker_TP{rank} pid=8{rank}) {text}");
        let own = "INFO 11-29 17:32:21 [x.py:11] The next one is tried";
        let (first, second) = (says(0, "ValueError: x"), says(1, "ValueError: x"));
        let (goes, too) = (says(0, own), says(1, own));
        assert_eq!(last(&[&first, &second, &goes]), [""; 0]);
        assert_eq!(last(&[&first, &second, &goes, &too]), ["outlived"]);
    }

    #[test]
    fn a_record_may_be_the_first_line_of_a_traceback_and_another_ones_may_come_between() {
        let lines = [
            "[2025-03-27 21:33:30 TP0] Scheduler hit an exception: Traceback (most recent call last):",
            "INFO:     127.0.0.1:1 - \"GET /health HTTP/1.1\" 200 OK",
            OOM,
        ];
        assert_eq!(last(&lines), ["failure", "gave up"]);
    }

    #[test]
    fn writers_are_bounded() {
        let mut context = Context::default();
        for pid in 0..WRITERS * 2 {
            context.read(&format!("(Worker pid={pid}) x"), false, None);
        }
        assert_eq!(context.writers.len(), WRITERS);
    }
}
