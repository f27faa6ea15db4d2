//! A plan as a shell script: what a person would type, with the checks as comments.

use std::fmt::Write as _;

use crate::config::Config;
use crate::domain::NodeId;
use crate::domain::command::{ARGV, quote, quote_all};
use crate::domain::secret::SecretFrom;

use super::condition::Condition;
use super::types::{Plan, PlannedCommand, Step, StepKind};
use super::way;

/// The line that ends a script's text in a here-document; no script of ours holds it.
const END: &str = "END_OF_BRINGUP_SCRIPT";

/// The plan as a POSIX shell script for the operator's machine. It checks nothing by itself: what bringup would check stands there as comments.
#[must_use]
pub fn script(plan: &Plan, config: &Config) -> String {
    let mut text = String::from(
        "#!/bin/sh\n# To be run step by step: what bringup would check and wait for stands here as comments.\nset -eu\n",
    );
    for note in &plan.notes {
        comment(&mut text, "note", note);
    }
    for refusal in &plan.refusals {
        comment(&mut text, "cannot run", &refusal.text);
        if let Some(fix) = &refusal.fix {
            comment(&mut text, "fix", fix);
        }
    }
    if !plan.refusals.is_empty() {
        text.push_str("exit 1\n");
    }
    for (number, step) in plan.steps.iter().enumerate() {
        write_step(&mut text, number + 1, step, config);
    }
    text
}

fn write_step(text: &mut String, number: usize, step: &Step, config: &Config) {
    text.push('\n');
    comment(text, &number.to_string(), &step.title);
    let lists: [(&str, &[Condition]); 3] = [
        ("check first", &step.before),
        ("skip the commands if", &step.under_way),
        ("verify after", &step.after),
    ];
    let (first, after) = lists.split_at(2);
    for (word, conditions) in first {
        write_conditions(text, word, conditions, config);
    }
    for planned in &step.commands {
        match step.kind {
            StepKind::StopNode if planned.command.id == ARGV => write_stop(text, planned, config),
            StepKind::StopNode
            | StepKind::Pull
            | StepKind::Image
            | StepKind::Head
            | StepKind::Join
            | StepKind::Membership
            | StepKind::Serve
            | StepKind::StopServe => write_command(text, planned, config),
        }
    }
    for planned in &step.finally {
        write_command(text, planned, config);
    }
    for (word, conditions) in after {
        write_conditions(text, word, conditions, config);
    }
}

fn write_conditions(text: &mut String, word: &str, conditions: &[Condition], config: &Config) {
    for condition in conditions {
        comment(text, word, &condition.text(config));
    }
}

/// A comment of one line: nothing in it can begin a line of its own.
fn comment(text: &mut String, word: &str, what: &str) {
    let what = what.replace(['\n', '\r'], " ");
    // Writing to a string cannot fail.
    let _ = writeln!(text, "# {word}: {what}");
}

/// A command that stops or removes a container. One that goes by itself may be gone before it: then that none is left counts, not the exit code.
fn write_stop(text: &mut String, planned: &PlannedCommand, config: &Config) {
    write_command(text, planned, config);
    let Some(name) = planned.command.args.last().filter(|_| text.ends_with('\n')) else {
        return;
    };
    text.truncate(text.len() - 1);
    let filter = quote(&format!("name=^{name}$"));
    let docker = &config.container.docker;
    let gone = format!("left=$({docker} ps -aq --filter {filter}) && [ -z \"$left\" ]");
    let line = ssh_line(config, planned.node, &["-n"], &gone);
    // Writing to a string cannot fail.
    let _ = writeln!(text, " ||\n  {line}");
}

fn write_command(text: &mut String, planned: &PlannedCommand, config: &Config) {
    let command = &planned.command;
    let words = quote_all(&command.args);
    let line = match &command.secret {
        Some(secret) => {
            // The far shell reads the secret from its standard input; it stands on no command line.
            let run = if command.id == ARGV {
                format!("exec {words}")
            } else {
                command.render()
            };
            let inner = format!(
                "IFS= read -r {0} && [ -n \"${0}\" ] && export {0} && {run}",
                secret.name
            );
            let inner = format!("/bin/sh -c {}", quote(&inner));
            format!(
                "{} | {}\n",
                print(&secret.from),
                ssh_line(config, planned.node, &[], &inner)
            )
        }
        // Without -n, ssh would read on in the script that it stands in.
        None if command.id == ARGV => format!("{}\n", ssh_line(config, planned.node, &["-n"], &words)),
        // A script of ours on the far shell's standard input.
        None => format!(
            "{} <<'{END}'\n{}{END}\n",
            ssh_line(config, planned.node, &[], "/bin/sh -s"),
            command.render()
        ),
    };
    text.push_str(&line);
}

/// A secret's value on the standard output, and on no command line.
fn print(from: &SecretFrom) -> String {
    let value = match from {
        SecretFrom::Variable(name) => format!("${{{name}}}"),
        SecretFrom::File(path) => {
            let path = match path.strip_prefix("~/") {
                Some(rest) => format!("~/{}", quote(rest)),
                None => quote(path),
            };
            // The file may have no end of line, and the far shell waits for one.
            format!("$(head -n 1 {path} | tr -d '\\r')")
        }
    };
    format!("printf '%s\\n' \"{value}\"")
}

/// The line that runs a command on a node by hand.
fn ssh_line(config: &Config, node: NodeId, options: &[&str], command: &str) -> String {
    match config.node(node) {
        Some(node) => way::remote(config, options, node, command),
        None => format!("ssh {}", quote(command)),
    }
}
