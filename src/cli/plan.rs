//! `plan`: an action as a shell script.

use std::fmt::Write;

use color_eyre::eyre::Result;

use crate::config::Config;
use crate::domain::command::ARGV;
use crate::domain::intent::Intent;
use crate::model::State;
use crate::plan::{self, Plan, PlannedCommand};

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

/// A plan as text for a person. `whole` is for one who is asked to agree to it: every script stands there in full, as on the screen.
pub(super) fn text(plan: &Plan, config: &Config, whole: bool) -> String {
    let mut text = String::new();
    for step in &plan.steps {
        let _ok = writeln!(text, "{}. {}", step.id.0 + 1, step.title);
        write_commands(&mut text, "", &step.commands, config, whole);
        if whole {
            write_commands(&mut text, "at the end ", &step.finally, config, whole);
            write_commands(&mut text, "if it fails ", &step.evidence, config, whole);
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

/// Commands as they will run: a program as one would type it, a script in full or named as what it is.
fn write_commands(text: &mut String, when: &str, all: &[PlannedCommand], config: &Config, whole: bool) {
    for planned in all {
        let (node, command) = (config.node_name(planned.node), &planned.command);
        if command.id == ARGV {
            let _ok = writeln!(text, "   {when}{node}$ {}", command.line());
        } else if whole {
            let _ok = writeln!(text, "   {when}on {node}, as a script:");
            for line in command.render().lines() {
                let _ok = writeln!(text, "     {line}");
            }
        } else {
            let _ok = writeln!(
                text,
                "   {when}on {node}: a script of bringup's, which `bringup plan` prints"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::config::{self, EXAMPLE};
    use crate::domain::command::Command;
    use crate::domain::intent::Action;
    use crate::domain::{NodeId, StepId};
    use crate::plan::{Step, StepKind};

    use super::*;

    fn shown(whole: bool) -> String {
        let config = config::parse(EXAMPLE, "config.example.toml").unwrap();
        let on = |command| PlannedCommand {
            node: NodeId(0),
            command,
        };
        let limit = Duration::from_secs(9);
        let script = Command::script("x.stop", "kill \"$1\"\nwait\n", vec!["10".into()], limit);
        let step = Step {
            id: StepId(0),
            title: "stop the model server".into(),
            kind: StepKind::StopServe,
            node: None,
            before: Vec::new(),
            under_way: Vec::new(),
            commands: vec![on(Command::argv(["docker", "rm", "a b"], limit)), on(script)],
            after: Vec::new(),
            broken_by: Vec::new(),
            settle: Duration::ZERO,
            limit,
            finally: vec![on(Command::argv(["rm", "x"], limit))],
            evidence: Vec::new(),
            stall: None,
        };
        let plan = Plan {
            action: Action::StopServe,
            steps: vec![step],
            refusals: Vec::new(),
            notes: Vec::new(),
        };
        text(&plan, &config, whole)
    }

    #[test]
    fn who_is_asked_sees_what_will_run() {
        let text = shown(true);
        for part in [
            "   spark-1$ docker rm 'a b'\n",
            "   on spark-1, as a script:\n",
            "     set -- 10\n     kill \"$1\"\n     wait\n",
            "   at the end spark-1$ rm x\n",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }

    #[test]
    fn who_is_not_asked_reads_no_internal_name() {
        let text = shown(false);
        assert!(
            text.contains("spark-1$ docker rm 'a b'\n") && text.contains("on spark-1: a script"),
            "{text}"
        );
        assert!(!text.contains("x.stop") && !text.contains("kill"), "{text}");
    }
}
