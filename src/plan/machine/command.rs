//! Commands of a step: one after the other, each within its bound.

use std::time::Duration;

use crate::config::Config;
use crate::diagnose::{self, Rules};
use crate::domain::command::Exit;
use crate::domain::effect::RunOutcome;
use crate::domain::event::CommandDone;
use crate::domain::step::{Failure, StepEventKind, StepOutcome};
use crate::domain::time::human;
use crate::domain::{RunId, Stamp};

use super::super::status::StepState;
use super::super::types::{PlannedCommand, StepKind};
use super::{COMMAND_GRACE, Do, End, Flight, LINES, Machine, Phase, Watch};

/// What Docker (and Podman, which can stand in for it) says of a container that is gone or just going, in lower case.
const GONE: &[&str] = &[
    "no such container",
    "no container with name or id",
    "is already in progress",
];

impl Machine {
    /// Sends a command off.
    pub(super) fn fly(&mut self, planned: PlannedCommand, place: usize, now: Stamp, out: &mut Vec<Do>) -> Flight {
        let run = RunId(self.next_run);
        self.next_run += 1;
        let PlannedCommand { node, command } = planned;
        let deadline = now.plus(command.limit.time).plus(COMMAND_GRACE);
        out.push(Do::Run { run, node, command });
        Flight { run, place, deadline }
    }

    /// Runs the command at `place` of the step, or goes on to verify when none is left.
    pub(super) fn run_from(&mut self, place: usize, now: Stamp, out: &mut Vec<Do>) {
        let Some(step) = self.step() else { return };
        match step.commands.get(place).cloned() {
            Some(planned) => {
                self.touched = true;
                let flight = self.fly(planned, place, now, out);
                self.phase = Phase::Running(flight);
                self.show(StepState::Running);
            }
            None if step.after.is_empty() => self.decide(End::Well(self.success()), now, out),
            None => self.watch(self.success(), now),
        }
    }

    /// Begins to verify. Facts from before `now` will not count.
    pub(super) fn watch(&mut self, outcome: StepOutcome, now: Stamp) {
        self.touched = true;
        let broken = self.step().map_or(0, |s| s.broken_by.len());
        self.phase = Phase::Verifying(Watch {
            since: now,
            outcome,
            held: None,
            broken: vec![None; broken],
            holding: 0,
            moved: now,
        });
        self.asked.clear();
        self.show(StepState::Verifying);
    }

    pub(super) fn show(&mut self, state: StepState) {
        if let Some(status) = self.status() {
            status.state = state;
            status.pending.clear();
        }
    }

    /// How a step that ran ends when all is well.
    fn success(&self) -> StepOutcome {
        let serves = self.step().is_some_and(|s| s.kind == StepKind::Serve);
        if serves && self.no_probe {
            return StepOutcome::Warning("it answers; no token was asked for".to_owned());
        }
        match self.steps.get(self.current).and_then(|s| s.notes.last()) {
            Some(note) => StepOutcome::Warning(note.clone()),
            None => StepOutcome::Success,
        }
    }

    /// Takes the end of a command in flight.
    pub(super) fn command_done(&mut self, done: &CommandDone, config: &Config, now: Stamp, out: &mut Vec<Do>) {
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Running(flight) if flight.run == done.run => self.step_command_done(flight, done, config, now, out),
            Phase::Tidying { end, flight } if flight.run == done.run => self.tidied(end, flight, done, now, out),
            other @ (Phase::Checking
            | Phase::Running(_)
            | Phase::Verifying(_)
            | Phase::Tidying { .. }
            | Phase::Over) => self.phase = other,
        }
    }

    fn step_command_done(
        &mut self,
        flight: Flight,
        done: &CommandDone,
        config: &Config,
        now: Stamp,
        out: &mut Vec<Do>,
    ) {
        if let Exit::Unknown(why) = &done.exit {
            self.unknown(why.clone(), now, out);
        } else if self.aborting {
            self.note(format!("the command in flight ended: {}", done.exit.word()), out);
            self.aborted(now, out);
        } else if done.exit.ok() || self.gone_already(done) {
            self.run_from(flight.place + 1, now, out);
        } else {
            let planned = self.step().and_then(|s| s.commands.get(flight.place)).cloned();
            let failure = planned.map_or_else(unnamed, |p| failed(&p, done, config, &self.rules));
            self.decide(End::Badly(failure), now, out);
        }
    }

    /// Whether a command that stops or removes a container found none: it may go by itself (`--rm`, or a script that cleans up). That none is there is what
    /// the step verifies.
    fn gone_already(&self, done: &CommandDone) -> bool {
        let stops = self.step().is_some_and(|s| s.kind == StepKind::StopNode);
        let says = |line: &String| {
            let line = line.to_lowercase();
            GONE.iter().any(|words| line.contains(words))
        };
        stops && matches!(done.exit, Exit::Code(_)) && done.stderr.iter().any(says)
    }

    fn tidied(&mut self, end: End, flight: Flight, done: &CommandDone, now: Stamp, out: &mut Vec<Do>) {
        let mut end = end;
        let evidence = self.evidence().len();
        let lines = done.stdout.iter().chain(&done.stderr);
        match &mut end {
            End::Badly(failure) => {
                // The log's end; where there is no log, what a verb printed last is the best that there is.
                let shows = if flight.place < evidence {
                    done.exit.ok()
                } else {
                    failure.lines.is_empty()
                };
                if shows {
                    keep_lines(failure, lines);
                }
            }
            End::Well(_) => {
                if !done.exit.ok() {
                    self.note(format!("tidying up: {}", done.exit.word()), out);
                }
            }
        }
        self.tidy(end, flight.place + 1, now, out);
    }

    /// A command in flight gave no answer in its time.
    pub(super) fn lost(&mut self, run: RunId, now: Stamp, out: &mut Vec<Do>) {
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Tidying { end, flight } => {
                self.note("tidying up: no answer".to_owned(), out);
                self.tidy(end, flight.place + 1, now, out);
            }
            Phase::Running(_) | Phase::Checking | Phase::Verifying(_) | Phase::Over => {
                self.unknown(format!("no answer from the command (run {})", run.0), now, out);
            }
        }
    }

    fn unknown(&mut self, why: String, now: Stamp, out: &mut Vec<Do>) {
        self.close(StepState::Unknown(why.clone()), now);
        self.tell(StepEventKind::Unknown(why), out);
        self.over(RunOutcome::Unknown, out);
    }
}

/// Keeps lines of an output, after those that are there.
fn keep_lines<'a>(failure: &mut Failure, lines: impl Iterator<Item = &'a String>) {
    failure.lines.extend(lines.filter(|l| !l.trim().is_empty()).cloned());
    bound_lines(failure);
}

/// Drops lines from the middle: the first ones say what went wrong first, the last ones how it ended.
pub(super) fn bound_lines(failure: &mut Failure) {
    let more = failure.lines.len().saturating_sub(LINES);
    if more > 0 {
        failure.lines.drain(LINES / 2..LINES / 2 + more);
    }
}

/// The failure of a command.
fn failed(planned: &PlannedCommand, done: &CommandDone, config: &Config, rules: &Rules) -> Failure {
    let command = &planned.command;
    let last = done.stderr.iter().chain(&done.stdout).rfind(|l| !l.trim().is_empty());
    let said = last.map(|l| format!(": {}", l.trim())).unwrap_or_default();
    let seen = match &done.exit {
        Exit::Code(code) => format!("exit code {code}{said}"),
        Exit::Signal(signal) => format!("ended by signal {signal}{said}"),
        Exit::TimedOut => format!("it ran past its limit of {}{said}", human(command.limit.time)),
        Exit::NotStarted(why) => format!("it could not be started: {why}"),
        Exit::Unknown(why) => why.clone(),
    };
    let mut failure = Failure {
        what: command.line(),
        seen,
        expected: "exit code 0".to_owned(),
        lines: Vec::new(),
        fix: diagnose::advice(config, rules, planned.node, done.stderr.iter()),
        command: None,
        after: Duration::ZERO,
    };
    let lines = if done.stderr.is_empty() {
        &done.stdout
    } else {
        &done.stderr
    };
    keep_lines(&mut failure, lines.iter());
    failure
}

/// The failure of a command that the plan does not hold; it cannot come about.
fn unnamed() -> Failure {
    Failure {
        what: "a command".to_owned(),
        seen: "a failure".to_owned(),
        expected: "exit code 0".to_owned(),
        lines: Vec::new(),
        fix: None,
        command: None,
        after: Duration::ZERO,
    }
}
