//! The run of a plan.

use crate::domain::Source;
use crate::domain::effect::{Effect, RunOutcome};
use crate::domain::event::CommandDone;
use crate::domain::intent::{Action, Mode};
use crate::domain::load::Stage;
use crate::domain::serving::ServerProbe;
use crate::domain::step::StepEventKind;
use crate::plan::{Do, Machine, Progress, StepState, Want};

use super::causes;
use super::foreign;
use super::intents::show;
use super::load::{Load, failures};
use super::server;
use super::state::State;
use super::update::notice;
use super::way::command_line;

/// Starts the shown plan.
pub(super) fn confirm(state: &mut State, effects: &mut Vec<Effect>) {
    if state.run_under_way() {
        notice(
            state,
            Source::Operator,
            "a run is under way; wait for it, or stop it: X, then r".to_owned(),
        );
        return;
    }
    let Some(plan) = state.plan.take_if(|p| p.refusals.is_empty()) else {
        notice(
            state,
            Source::Operator,
            "this plan can't run: see its refusals".to_owned(),
        );
        return;
    };
    let now = state.now.stamp;
    state.evidence.new_run();
    foreign::begins(state);
    let (machine, todo) = Machine::new(plan, state.options.no_probe, now);
    state.run = Some(machine.by(state.evidence.rules().clone()));
    show(state, Mode::Run);
    perform(state, todo, effects);
}

/// Moves the run on, as far as what is known now allows.
pub(super) fn advance(state: &mut State, effects: &mut Vec<Effect>) {
    let progress = progress(state);
    let now = state.now.stamp;
    let Some(machine) = state.run.as_mut().filter(|m| m.outcome().is_none()) else {
        return;
    };
    let todo = machine.on_tick(&state.observed, &state.config, &progress, now);
    perform(state, todo, effects);
}

/// What the latest run was for may have come true after it was over.
pub(super) fn look_back(state: &mut State) {
    if let Some(machine) = state.run.as_mut() {
        machine.look_back(&state.observed, &state.config, state.now.stamp);
    }
}

/// Tells the run that one of its commands ended.
pub(super) fn command_done(state: &mut State, done: &CommandDone, effects: &mut Vec<Effect>) {
    let now = state.now.stamp;
    let Some(machine) = state.run.as_mut().filter(|m| m.outcome().is_none()) else {
        return;
    };
    let todo = machine.on_command_done(done, &state.config, now);
    perform(state, todo, effects);
}

/// No new steps.
pub(super) fn abort(state: &mut State, effects: &mut Vec<Effect>) {
    let now = state.now.stamp;
    let Some(machine) = state.run.as_mut().filter(|m| m.outcome().is_none()) else {
        return;
    };
    let todo = machine.abort(now);
    perform(state, todo, effects);
}

/// What there is to do about the step that failed, as the screen shows it.
pub(super) enum Cure {
    /// A line for the operator's own shell, that runs as it is.
    Line(String),
    /// Words alone: what a shell makes of them is not what they say.
    Words,
}

/// The cure of the step that failed, when one is known: that of its first cause, else what the step itself knows to do.
pub(super) fn cure(state: &State) -> Option<Cure> {
    // What has come true since needs no cure.
    if state.run.as_ref()?.steps().iter().any(|s| s.later.is_some()) {
        return None;
    }
    let cause = causes::failed_step(state).and_then(|step| state.step_cause(step));
    if let Some(line) = cause.as_ref().and_then(|c| state.by_hand(c)) {
        return Some(Cure::Line(line));
    }
    if cause.is_some_and(|c| c.fix.is_some()) {
        return Some(Cure::Words);
    }
    step_cure(state)
}

/// What the step itself knows to do.
fn step_cure(state: &State) -> Option<Cure> {
    let failure = state.run.as_ref()?.steps().iter().find_map(|s| match &s.state {
        StepState::Failed(failure) => Some(failure),
        StepState::Waiting
        | StepState::Checking
        | StepState::Running
        | StepState::Verifying
        | StepState::Done(_)
        | StepState::Aborted
        | StepState::Unknown(_) => None,
    })?;
    let command = failure.command.as_ref();
    let line = command.and_then(|(node, line)| command_line(&state.config, *node, line));
    line.map(Cure::Line).or(failure.fix.as_ref().map(|_| Cure::Words))
}

fn progress(state: &State) -> Progress {
    Progress {
        last: state.nodes.iter().filter_map(|n| n.load.progress_at?.sure()).max(),
        downloading: state
            .nodes
            .get(state.config.head().index())
            .is_some_and(|n| n.load.stage.is_some_and(|(stage, _)| stage == Stage::Download)),
        failures: failures(state.nodes.iter().map(|n| &n.load))
            .into_iter()
            .map(|(_, text)| text.clone())
            .collect(),
    }
}

fn perform(state: &mut State, todo: Vec<Do>, effects: &mut Vec<Effect>) {
    for item in todo {
        match item {
            Do::Want(Want::Node(node, probe)) => effects.push(Effect::Probe(node, probe)),
            Do::Want(Want::Server(probe)) => {
                if probe == ServerProbe::Token {
                    server::token_asked(state);
                }
                effects.push(Effect::ProbeServer(probe));
            }
            Do::Run { run, node, command } => effects.push(Effect::Run { run, node, command }),
            Do::Event(event) => {
                if let StepEventKind::Failed(failure) = &event.kind {
                    causes::step_failed(state, event.step, failure);
                }
                effects.push(Effect::Step(event));
            }
            Do::Over(outcome) => over(state, outcome, effects),
        }
    }
}

/// Whether a run that stops the server goes on: what the server says on its way out is then no failure.
pub(super) fn stops_server(state: &State) -> bool {
    let run = state.run.as_ref().filter(|run| run.outcome().is_none());
    run.is_some_and(|run| match run.plan().action {
        Action::StopServe | Action::StopAll => true,
        Action::Head | Action::Workers | Action::Serve | Action::Up => false,
    })
}

fn over(state: &mut State, outcome: RunOutcome, effects: &mut Vec<Effect>) {
    let action = state.run.as_ref().map(|m| m.plan().action);
    if let (RunOutcome::Done, Some(Action::StopServe | Action::StopAll)) = (outcome, action) {
        // What the stopped server printed on its way out is no failure of the next one.
        for node in &mut state.nodes {
            node.load = Load::default();
        }
        state.evidence.clear(state.now);
    }
    effects.push(Effect::RunOver(outcome));
    let name = &state.config.cluster;
    let text = match (outcome, action) {
        (RunOutcome::Done, Some(Action::Up | Action::Serve)) if state.options.no_probe => {
            format!("{name}: the model server answers; no token was asked for")
        }
        (RunOutcome::Done, Some(Action::Up | Action::Serve)) => format!("{name}: the model is ready"),
        (RunOutcome::Done, _) => return,
        (RunOutcome::Failed, _) => format!(
            "{name}: {}",
            failed_step(state).unwrap_or_else(|| "a step failed".to_owned())
        ),
        (RunOutcome::Unknown, _) => format!("{name}: the link was lost in mid-step; look before you go on"),
        (RunOutcome::Aborted, _) => return,
    };
    effects.push(Effect::Notify(text));
}

fn failed_step(state: &State) -> Option<String> {
    let run = state.run.as_ref()?;
    let failed = |s: &crate::plan::StepStatus| match &s.state {
        StepState::Failed(f) => Some(f.what.clone()),
        StepState::Waiting
        | StepState::Checking
        | StepState::Running
        | StepState::Verifying
        | StepState::Done(_)
        | StepState::Aborted
        | StepState::Unknown(_) => None,
    };
    let (step, what) = run
        .plan()
        .steps
        .iter()
        .zip(run.steps())
        .find_map(|(step, s)| Some((step, failed(s)?)))?;
    Some(format!("{} failed: {what}", step.title))
}
