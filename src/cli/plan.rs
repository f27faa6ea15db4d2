//! `plan`: an action as a shell script.

use std::fmt::Write;

use color_eyre::eyre::Result;

use crate::config::Config;
use crate::domain::intent::Intent;
use crate::model::State;
use crate::plan::{self, Plan};

use super::args::{Args, PlanAction};
use super::exit::Exit;
use super::headless::{Headless, Waited, reaching, unreachable};
use super::{logfile, out, start};

/// `bringup plan`.
///
/// # Errors
/// When the console can't be started.
pub(super) async fn plan(args: &Args, action: PlanAction) -> Result<Exit> {
    let config = match start::load(args) {
        Ok(config) => config,
        Err(exit) => return Ok(exit),
    };
    let _log = logfile::start(&args.log_level);
    let mut headless = Headless::new(start::open(args, config, true).await?)?;
    let limit = reaching(&headless.console.state().config);
    let exit = match headless.until(limit, State::plannable).await {
        Waited::Signal(exit) => exit,
        Waited::True | Waited::Late => {
            headless.console.intent(Intent::Plan(action.into()));
            let state = headless.console.state();
            let lost = unreachable(state);
            for line in &lost {
                out::say(line);
            }
            match &state.plan {
                None => Exit::Failed,
                Some(shown) => {
                    out::line(plan::script(shown, &state.config).trim_end());
                    for refusal in &shown.refusals {
                        out::say(&refusal.text);
                    }
                    match (lost.is_empty(), shown.refusals.is_empty()) {
                        (false, _) => Exit::Unreachable,
                        (true, false) => Exit::Failed,
                        (true, true) => Exit::Done,
                    }
                }
            }
        }
    };
    Ok(headless.leave(exit).await)
}

/// A plan as text for a person.
pub(super) fn text(plan: &Plan, config: &Config) -> String {
    let mut text = String::new();
    for step in &plan.steps {
        let _ok = writeln!(text, "{}. {}", step.id.0 + 1, step.title);
        for planned in &step.commands {
            let _ok = writeln!(
                text,
                "   {}$ {}",
                config.node_name(planned.node),
                planned.command.line()
            );
        }
    }
    for note in &plan.notes {
        let _ok = writeln!(text, "note: {note}");
    }
    for refusal in &plan.refusals {
        let _ok = writeln!(text, "can't run: {}", refusal.text);
        if let Some(fix) = &refusal.fix {
            let _ok = writeln!(text, "  {fix}");
        }
    }
    text
}
