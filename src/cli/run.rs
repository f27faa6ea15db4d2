//! `up` and `down`: the plan, the question, the steps.

use color_eyre::eyre::Result;

use crate::domain::StepId;
use crate::domain::effect::RunOutcome;
use crate::domain::intent::{Action, Intent};
use crate::domain::load::Stage;
use crate::domain::step::{StepEvent, StepEventKind, StepOutcome};
use crate::drive::{ForFront, Left};
use crate::model::State;
use crate::model::loading;
use crate::model::state::ServingState;
use crate::plan::{Plan, StepKind};
use crate::report;

use super::args::Args;
use super::exit::Exit;
use super::headless::{Headless, Waited, reaching, unreachable};
use super::{cause, logfile, out, plan, start};

/// `bringup up`.
///
/// # Errors
/// When the console can't be started.
pub(super) async fn up(args: &Args, yes: bool, json: bool) -> Result<Exit> {
    run(args, Action::Up, yes, json).await
}

/// `bringup down`.
///
/// # Errors
/// When the console can't be started.
pub(super) async fn down(args: &Args, yes: bool, json: bool, serve: bool) -> Result<Exit> {
    run(args, if serve { Action::StopServe } else { Action::StopAll }, yes, json).await
}

async fn run(args: &Args, action: Action, yes: bool, json: bool) -> Result<Exit> {
    if !yes && !out::has_person() {
        out::error("nobody is here to confirm the plan: give --yes, or run it in a terminal");
        return Ok(Exit::Usage);
    }
    let config = match start::load(args) {
        Ok(config) => config,
        Err(exit) => return Ok(exit),
    };
    let _log = logfile::start(&args.log_level);
    let mut headless = Headless::new(start::open(args, config, true).await?)?;
    let exit = steps(&mut headless, action, yes, json).await;
    let now = headless.console.now();
    let tell = |left: &Left| {
        if json && matches!(exit, Exit::Interrupted | Exit::Terminated) {
            out::json(&report::step::interrupted(&left.cut_short, &left.goes_on, now));
        }
    };
    Ok(headless.leave_telling(exit, tell).await)
}

async fn steps(headless: &mut Headless, action: Action, yes: bool, json: bool) -> Exit {
    let limit = reaching(&headless.console.state().config);
    if let Waited::Signal(exit) = headless.until(limit, State::plannable).await {
        return exit;
    }
    headless.console.intent(Intent::Plan(action));
    let Some(shown) = headless.console.state().plan.clone() else {
        return Exit::Failed;
    };
    show(headless, &shown, !yes, json);
    let lost = unreachable(headless.console.state());
    for line in &lost {
        out::say(line);
    }
    if !lost.is_empty() && !goes_on_without(action, headless.console.state(), &shown) {
        return Exit::Unreachable;
    }
    if !shown.refusals.is_empty() {
        return Exit::Failed;
    }
    if !yes {
        match headless.confirm("Run this plan?").await {
            Ok(true) => {}
            Ok(false) => return Exit::Failed,
            Err(exit) => return exit,
        }
    }
    // What the plan rests on may have changed while a person read it: the step machine looks again before each step.
    let mut news = headless.console.intent(Intent::Confirm);
    let mut load = Load::default();
    loop {
        for item in news {
            match item {
                ForFront::Step(event) => {
                    load.step = Some(event.step);
                    tell(headless, &event, &shown, json);
                }
                ForFront::RunOver(outcome) => return over(headless, outcome, json),
                ForFront::Redraw | ForFront::Notify(_) | ForFront::Copy(_) | ForFront::Quit { .. } => {}
            }
        }
        if let Some(event) = load.news(headless.console.state(), &shown) {
            tell(headless, &event, &shown, json);
        }
        news = match headless.step().await {
            Ok(news) => news,
            Err(exit) => return exit,
        };
    }
}

/// How far the load has been told: each stage, and each tenth of its bar.
#[derive(Default)]
struct Load {
    step: Option<StepId>,
    told: Option<(Stage, u64)>,
}

impl Load {
    /// What there is to tell of the load while the model is being served.
    fn news(&mut self, state: &State, shown: &Plan) -> Option<StepEvent> {
        let step = self.step?;
        let serves = shown.steps.get(step.index()).is_some_and(|s| s.kind == StepKind::Serve);
        let load = state.nodes.iter().map(|n| &n.load).find(|l| l.stage.is_some())?;
        let (stage, _) = load.stage?;
        let tenth = load.bar.map_or(0, |b| b.done * 10 / b.total.max(1));
        if !serves || state.server.state != ServingState::Loading || self.told == Some((stage, tenth)) {
            return None;
        }
        self.told = Some((stage, tenth));
        let bar = load.bar.map_or(String::new(), |b| format!(" {}/{}", b.done, b.total));
        let now = state.now.stamp;
        let judged = loading::judge(state, None, now);
        let left = loading::time_left(state, judged.as_ref(), now);
        let left = left.map_or(String::new(), |eta| format!(", {}", eta.text()));
        let word = loading::whole(state).filter(|part| part.stage == stage);
        let word = word.map_or(stage.word(), |part| part.word());
        let kind = StepEventKind::Progress(format!("load: {word}{bar}{left}"));
        Some(StepEvent { step, kind })
    }
}

/// Whether an action is of use although something can't be reached: a node that is lost keeps no other from being stopped.
fn goes_on_without(action: Action, state: &State, shown: &Plan) -> bool {
    match action {
        Action::StopServe | Action::StopAll => {
            shown.refusals.is_empty() && state.observed.nodes.iter().any(|n| n.link.usable())
        }
        Action::Head | Action::Workers | Action::Serve | Action::Up => false,
    }
}

fn show(headless: &Headless, shown: &Plan, whole: bool, json: bool) {
    if json {
        out::json(&report::step::plan(shown, headless.console.now()));
        return;
    }
    out::say(&plan::text(shown, &headless.console.state().config, whole));
}

fn tell(headless: &Headless, event: &StepEvent, shown: &Plan, json: bool) {
    if json {
        out::json(&report::step::step(event, shown, headless.console.now()));
        return;
    }
    let title = shown.steps.get(event.step.index()).map_or("?", |s| s.title.as_str());
    let number = event.step.0 + 1;
    let line = match &event.kind {
        StepEventKind::Started => format!("{number}. {title}"),
        StepEventKind::Progress(text) => format!("   {text}"),
        StepEventKind::Done(StepOutcome::Success) => "   done".to_owned(),
        StepEventKind::Done(StepOutcome::Warning(text)) => format!("   done, with a warning: {text}"),
        StepEventKind::Done(StepOutcome::Skipped) => "   skipped: it is so already".to_owned(),
        StepEventKind::Done(StepOutcome::Adopted) => "   done; it was under way already".to_owned(),
        StepEventKind::Failed(f) => {
            let mut text = format!(
                "   FAILED: {}\n     seen:     {}\n     expected: {}",
                f.what, f.seen, f.expected
            );
            for line in &f.lines {
                text.push_str(&format!("\n     | {line}"));
            }
            let state = headless.console.state();
            match state.step_cause(event.step) {
                Some(known) => {
                    for line in cause::of(state, &known) {
                        text.push_str(&format!("\n     {line}"));
                    }
                    if let Some(fix) = f.fix.as_ref().filter(|_| known.fix.is_none()) {
                        text.push_str(&format!("\n     fix: {fix}"));
                    }
                }
                None => {
                    if let Some(fix) = &f.fix {
                        text.push_str(&format!("\n     fix: {fix}"));
                    }
                }
            }
            text
        }
        StepEventKind::Aborted => "   stopped".to_owned(),
        StepEventKind::Unknown(why) => format!("   UNKNOWN: {why}"),
    };
    out::line(&line);
}

fn over(headless: &Headless, outcome: RunOutcome, json: bool) -> Exit {
    if json {
        let state = headless.console.state();
        out::json(&report::step::over(outcome, state, headless.console.now()));
    }
    let lost = !unreachable(headless.console.state()).is_empty();
    match outcome {
        RunOutcome::Unknown => Exit::Unreachable,
        // Whatever was done, a part of the cluster was not there: it may have kept what was to be stopped, or be why a step failed.
        RunOutcome::Done | RunOutcome::Failed if lost => Exit::Unreachable,
        RunOutcome::Done => Exit::Done,
        RunOutcome::Failed | RunOutcome::Aborted => Exit::Failed,
    }
}
