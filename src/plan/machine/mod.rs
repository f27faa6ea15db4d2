//! The step machine: runs a plan one step at a time, on what is observed.
//!
//! A step is looked at (is it true already? under way? may it run?), its commands run one after the other, and then what it was for is verified by
//! observing, not by an exit code. The machine is pure: it gets facts and times and gives what to do. It never resumes blindly: when a node was lost with
//! a command in flight, the run is over as unknown, and whoever wants to go on plans anew.

mod ask;
mod check;
mod command;
mod verify;

#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::config::Config;
use crate::diagnose::Rules;
use crate::domain::command::Command;
use crate::domain::effect::RunOutcome;
use crate::domain::event::CommandDone;
use crate::domain::observed::Observed;
use crate::domain::problem::Verdict;
use crate::domain::step::{Failure, StepEvent, StepEventKind, StepOutcome};
use crate::domain::{NodeId, RunId, Stamp, StepId};

use super::condition::Condition;
use super::judge::judge;
use super::status::{StepState, StepStatus};
use super::types::{Plan, PlannedCommand, Step};
use super::want::Want;

/// Longest time for the checks before a step: what is not known by then will not be.
const CHECK_LIMIT: Duration = Duration::from_secs(120);

/// Longest wait for more answers once enough is known to go on with.
const ENOUGH: Duration = Duration::from_secs(5);

/// Longest wait for answers that may show what is under way to be true already. Nothing is held up by it: either way it is watched, not started.
const ADOPT: Duration = Duration::from_secs(20);

/// Time that a command's processes get to show themselves before their absence counts.
const START_GRACE: Duration = Duration::from_secs(5);

/// How long something must look broken before it counts: a fact read just before may arrive just after.
const BREAK_CONFIRM: Duration = Duration::from_secs(3);

/// What an answer may take beyond its command's own limit before the command counts as lost.
const COMMAND_GRACE: Duration = Duration::from_secs(30);

/// Shortest time between two tellings of what a step waits for.
const TELL_EVERY: Duration = Duration::from_secs(2);

/// Notes kept of a step; the oldest goes first.
const NOTES: usize = 50;

/// Times that a token is asked for when the server failed to give one.
const TOKEN_TRIES: u32 = 3;

/// A token that has not come by then counts as failed.
const TOKEN_LIMIT: Duration = Duration::from_secs(300);

/// Lines that a failure keeps.
const LINES: usize = 40;

/// Run ids of steps are above this, so that they never meet those of probes. They stay below 2^53, where JSON numbers are exact.
const STEP_RUNS: u64 = 1 << 52;

/// Something that the machine wants done.
#[derive(Debug, Clone, PartialEq)]
pub enum Do {
    /// Ask a node or the server. One that is still under way need not be asked again.
    Want(Want),
    /// Run a command of a step.
    Run {
        /// Names it in `CommandDone`.
        run: RunId,
        /// Where.
        node: NodeId,
        /// What.
        command: Command,
    },
    /// Tell the news of a step.
    Event(StepEvent),
    /// The run is over.
    Over(RunOutcome),
}

/// What is known of the load beside the observed facts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Progress {
    /// Last sign of progress: a stage, a bar that moved, memory that grew.
    pub last: Option<Stamp>,
    /// Whether the head may be downloading the model: an engine can do that for hours without a line, so that silence is no stall.
    pub downloading: bool,
    /// Failure lines of all nodes' logs since the start, the first one first.
    pub failures: Vec<String>,
}

/// What the machine looks at on a tick.
#[derive(Clone, Copy)]
struct Scene<'a> {
    observed: &'a Observed,
    config: &'a Config,
    progress: &'a Progress,
    now: Stamp,
}

impl Scene<'_> {
    /// Whether some log holds a line that names a failure.
    fn names_failure(self) -> bool {
        !self.progress.failures.is_empty()
    }
}

/// Where the current step is.
#[derive(Debug, Clone, PartialEq)]
enum Phase {
    /// What must hold before is looked at.
    Checking,
    /// A command of the step is in flight.
    Running(Flight),
    /// What must hold afterwards is looked at.
    Verifying(Watch),
    /// The step is decided, and what follows it is in flight.
    Tidying {
        /// How it ends.
        end: End,
        /// What is in flight.
        flight: Flight,
    },
    /// Nothing is left to do.
    Over,
}

/// A command in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Flight {
    run: RunId,
    /// Its place in the list that it comes from.
    place: usize,
    /// When it counts as lost.
    deadline: Stamp,
}

/// What a verification keeps in mind.
#[derive(Debug, Clone, PartialEq)]
struct Watch {
    /// Facts from before do not count.
    since: Stamp,
    /// How the step ends if all holds.
    outcome: StepOutcome,
    /// Since when all holds.
    held: Option<Stamp>,
    /// By `broken_by`: since when it looks broken.
    broken: Vec<Option<Stamp>>,
    /// Conditions that held on the last look.
    holding: usize,
    /// When one more came to hold, or the verification began.
    moved: Stamp,
}

/// Askings for a token within a step.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct TokenAsks {
    tries: u32,
    /// When it was asked for last.
    last: Option<Stamp>,
}

/// How a decided step ends.
#[derive(Debug, Clone, PartialEq)]
enum End {
    Well(StepOutcome),
    Badly(Failure),
}

/// Runs a plan, one step at a time, on what is observed.
#[derive(Debug, Clone)]
pub struct Machine {
    plan: Plan,
    steps: Vec<StepStatus>,
    current: usize,
    phase: Phase,
    outcome: Option<RunOutcome>,
    aborting: bool,
    no_probe: bool,
    next_run: u64,
    asked: Vec<(Want, Stamp)>,
    token: TokenAsks,
    /// Whether the step has run something or watches what runs already.
    touched: bool,
    told: Option<(String, Stamp)>,
    /// The node on which the step broke, when one is to blame.
    broke_on: Option<NodeId>,
    /// Rules that know what to do about a command that failed.
    rules: Rules,
}

impl Machine {
    /// Starts a plan. With `no_probe` no token is asked for and a server that answers is enough.
    #[must_use]
    pub fn new(mut plan: Plan, no_probe: bool, now: Stamp) -> (Self, Vec<Do>) {
        if no_probe {
            for step in &mut plan.steps {
                step.after.retain(|c| *c != Condition::TokenSeen);
            }
        }
        let refused = !plan.refusals.is_empty();
        let mut machine = Self {
            steps: vec![StepStatus::default(); plan.steps.len()],
            plan,
            current: 0,
            phase: Phase::Over,
            outcome: None,
            aborting: false,
            no_probe,
            // Two machines of one console differ in the millisecond of their start.
            next_run: STEP_RUNS | ((now.0 & 0xff_ffff_ffff) << 12),
            asked: Vec::new(),
            token: TokenAsks::default(),
            touched: false,
            told: None,
            broke_on: None,
            rules: Rules::default(),
        };
        let mut out = Vec::new();
        if refused {
            machine.over(RunOutcome::Failed, &mut out);
        } else {
            machine.begin(now, &mut out);
        }
        (machine, out)
    }

    /// The same, with these rules in place of those that come with the program.
    #[must_use]
    pub fn by(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// The plan that runs.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Where its steps stand, in the plan's order.
    #[must_use]
    pub fn steps(&self) -> &[StepStatus] {
        &self.steps
    }

    /// Whether the step that runs, or that ran last, has run something or watched what ran already. One that failed before has only looked.
    #[must_use]
    pub fn began(&self) -> bool {
        self.touched
    }

    /// The step that runs; `None` when the run is over.
    #[must_use]
    pub fn current(&self) -> Option<&Step> {
        self.outcome.map_or_else(|| self.plan.steps.get(self.current), |_| None)
    }

    /// How the run ended; `None` while it goes on.
    #[must_use]
    pub fn outcome(&self) -> Option<RunOutcome> {
        self.outcome
    }

    /// Whether a command of a step is in flight on a node.
    #[must_use]
    pub fn in_flight(&self) -> bool {
        match self.phase {
            Phase::Running(_) | Phase::Tidying { .. } => true,
            Phase::Checking | Phase::Verifying(_) | Phase::Over => false,
        }
    }

    /// Looks again. To be called after every event and at least every 250 ms; a call without news gives nothing.
    #[must_use]
    pub fn on_tick(&mut self, observed: &Observed, config: &Config, progress: &Progress, now: Stamp) -> Vec<Do> {
        let scene = Scene {
            observed,
            config,
            progress,
            now,
        };
        let mut out = Vec::new();
        match &self.phase {
            Phase::Checking => self.check(scene, &mut out),
            Phase::Verifying(_) => self.verify(scene, &mut out),
            Phase::Running(flight) | Phase::Tidying { flight, .. } => {
                if now > flight.deadline {
                    let run = flight.run;
                    self.lost(run, now, &mut out);
                }
            }
            Phase::Over => {}
        }
        out
    }

    /// Looks whether what a step was for, that ended otherwise, has come true since. To be called while the run is over; it starts nothing.
    pub fn look_back(&mut self, observed: &Observed, config: &Config, now: Stamp) {
        if self.outcome.is_none() {
            return;
        }
        for (step, status) in self.plan.steps.iter().zip(&mut self.steps) {
            let since = match (&status.state, status.ended) {
                (StepState::Failed(_) | StepState::Aborted | StepState::Unknown(_), Some(ended)) => ended,
                (StepState::Waiting | StepState::Checking | StepState::Running | StepState::Verifying, _)
                | (StepState::Done(_), _)
                | (StepState::Failed(_) | StepState::Aborted | StepState::Unknown(_), None) => continue,
            };
            let all: Vec<Verdict> = step.after.iter().map(|c| judge(c, observed, config, since)).collect();
            if all.iter().any(check::fails) {
                status.later = None;
            } else if !all.is_empty() && all.iter().all(Verdict::holds) {
                status.later = status.later.or(Some(now));
            }
        }
    }

    /// Takes the end of a command. One that is not ours changes nothing.
    #[must_use]
    pub fn on_command_done(&mut self, done: &CommandDone, config: &Config, now: Stamp) -> Vec<Do> {
        let mut out = Vec::new();
        self.command_done(done, config, now, &mut out);
        out
    }

    /// No new steps: a verification stops at once, a command in flight is waited for.
    #[must_use]
    pub fn abort(&mut self, now: Stamp) -> Vec<Do> {
        let mut out = Vec::new();
        self.aborting = true;
        if !self.in_flight() && self.outcome.is_none() {
            self.aborted(now, &mut out);
        }
        out
    }

    fn step(&self) -> Option<&Step> {
        self.plan.steps.get(self.current)
    }

    fn status(&mut self) -> Option<&mut StepStatus> {
        self.steps.get_mut(self.current)
    }

    fn started(&self) -> Stamp {
        let status = self.steps.get(self.current);
        status.and_then(|s| s.started).unwrap_or_default()
    }

    /// Begins the current step, or ends the run where there is none left.
    fn begin(&mut self, now: Stamp, out: &mut Vec<Do>) {
        if self.step().is_none() {
            self.over(RunOutcome::Done, out);
            return;
        }
        self.phase = Phase::Checking;
        self.asked.clear();
        self.token = TokenAsks::default();
        self.touched = false;
        self.told = None;
        self.broke_on = None;
        if let Some(status) = self.status() {
            status.started = Some(now);
            status.state = StepState::Checking;
        }
        self.tell(StepEventKind::Started, out);
    }

    /// The step is decided: reads what a failure shows, runs what follows, then ends it.
    fn decide(&mut self, mut end: End, now: Stamp, out: &mut Vec<Do>) {
        if let End::Badly(failure) = &mut end {
            failure.after = now.since(self.started());
        }
        self.tidy(end, 0, now, out);
    }

    /// Starts the command at `place` of what follows the step, or ends the step when none is left.
    fn tidy(&mut self, end: End, place: usize, now: Stamp, out: &mut Vec<Do>) {
        match self.following(&end).get(place) {
            Some(planned) => {
                let flight = self.fly(planned.clone(), place, now, out);
                self.phase = Phase::Tidying { end, flight };
            }
            None => self.end(end, now, out),
        }
    }

    /// What follows a decided step: the evidence of a failure, then what tidies up.
    fn following(&self, end: &End) -> Vec<PlannedCommand> {
        let Some(step) = self.step().filter(|_| self.touched) else {
            return Vec::new();
        };
        let evidence = match end {
            End::Badly(_) => self.evidence(),
            End::Well(_) => Vec::new(),
        };
        let ran = match end {
            // A step that was true already has nothing to tidy up.
            End::Well(StepOutcome::Skipped) => &[],
            End::Well(_) | End::Badly(_) => step.finally.as_slice(),
        };
        evidence.into_iter().chain(ran.iter().cloned()).collect()
    }

    /// What shows why the step failed: what the node says on which it broke, or else the step's own.
    fn evidence(&self) -> Vec<PlannedCommand> {
        let Some(step) = self.step() else { return Vec::new() };
        let node = self.broke_on.or(step.node);
        let all = step.evidence.iter();
        all.filter(|p| Some(p.node) == node).cloned().collect()
    }

    /// Ends the step and goes on with the next, or ends the run.
    fn end(&mut self, end: End, now: Stamp, out: &mut Vec<Do>) {
        match end {
            End::Well(outcome) => {
                self.close(StepState::Done(outcome.clone()), now);
                self.tell(StepEventKind::Done(outcome), out);
                if self.aborting {
                    self.over(RunOutcome::Aborted, out);
                } else {
                    self.current += 1;
                    self.begin(now, out);
                }
            }
            End::Badly(failure) => {
                self.close(StepState::Failed(failure.clone()), now);
                self.tell(StepEventKind::Failed(failure), out);
                self.over(RunOutcome::Failed, out);
            }
        }
    }

    fn aborted(&mut self, now: Stamp, out: &mut Vec<Do>) {
        self.close(StepState::Aborted, now);
        self.tell(StepEventKind::Aborted, out);
        self.over(RunOutcome::Aborted, out);
    }

    fn close(&mut self, state: StepState, now: Stamp) {
        if let Some(status) = self.status() {
            status.state = state;
            status.ended = Some(now);
            status.pending.clear();
        }
    }

    fn over(&mut self, outcome: RunOutcome, out: &mut Vec<Do>) {
        self.phase = Phase::Over;
        self.outcome = Some(outcome);
        out.push(Do::Over(outcome));
    }

    fn tell(&self, kind: StepEventKind, out: &mut Vec<Do>) {
        let step = StepId(u16::try_from(self.current).unwrap_or(u16::MAX));
        out.push(Do::Event(StepEvent { step, kind }));
    }

    /// Adds a note to the step and tells it.
    fn note(&mut self, text: String, out: &mut Vec<Do>) {
        if let Some(status) = self.status() {
            if status.notes.len() == NOTES {
                status.notes.remove(0);
            }
            status.notes.push(text.clone());
        }
        self.tell(StepEventKind::Progress(text), out);
    }
}
