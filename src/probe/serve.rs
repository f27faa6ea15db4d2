//! The serve probe: model-server processes in the head's container, from its /proc. Python reads it, and where the image has none its shell does.

use std::time::Duration;

use serde::Deserialize;

use crate::domain::command::{Command, Output, quote};
use crate::domain::event::{Facts, Subject};
use crate::domain::problem::Problem;
use crate::domain::serving::{SERVE_MARK, ServeFacts, ServeProcess};
use crate::log::Masker;

use super::{Found, absent, code, docker, failure, json_line};

/// Id of the script.
pub const ID: &str = "probe.serve";

/// Why the processes of a container will never be known.
pub const UNSEEN: &str = "neither python3 nor a shell is in the container";

/// Longest command line kept, in characters.
const COMMAND_CHARS: usize = 2000;

/// Looks into a container.
#[must_use]
pub fn command(docker: &str, container: &str, limit: Duration) -> Command {
    let program = quote(include_str!("serve.py"));
    let body = format!(
        "set -- \"$1\" \"$2\" {SERVE_MARK} {program}\n{}",
        include_str!("serve.sh")
    );
    Command::script(ID, body, vec![docker.to_owned(), container.to_owned()], limit)
}

/// What the Python program prints.
#[derive(Deserialize)]
struct Printed {
    processes: Vec<Process>,
}

#[derive(Deserialize)]
struct Process {
    pid: u32,
    parent: u32,
    mark: Option<String>,
    command: String,
    up: Option<u64>,
}

/// Reads the answer. A container that is not there or does not run has no such process.
#[must_use]
pub fn parse(output: &Output) -> Found {
    if let Some(printed) = json_line::<Printed>(&output.text()) {
        let processes = servers(&printed.processes).map(process).collect();
        return (vec![Facts::Serve(ServeFacts { processes })], Vec::new());
    }
    let said = format!("{}\n{}", output.text(), output.error_text());
    if let Some(problem) = docker::refusal(&said, code(output)) {
        return absent(Subject::Serve, problem);
    }
    if docker::not_running(&said) {
        return (vec![Facts::Serve(ServeFacts::default())], Vec::new());
    }
    let problem = if said.contains("/bin/sh") && (said.contains("not found") || said.contains("no such file")) {
        Problem::error(UNSEEN)
    } else if said.contains("python3") && said.contains("not found") {
        Problem::error("python3 is not in the container")
    } else {
        Problem::error(failure(output).unwrap_or_else(|| "no answer that can be read".to_owned()))
    };
    absent(Subject::Serve, problem)
}

/// The servers among them. Not a server's own children, and not what carries the mark because Ray's workers got the server's environment from vLLM: each
/// of them has a resource tracker, for one. A server that others had Ray start has no mark and counts.
fn servers(all: &[Process]) -> impl Iterator<Item = &Process> {
    all.iter().filter(|p| {
        let parent = all.iter().find(|other| other.pid == p.parent);
        !of_ray(p) && parent.is_none_or(|parent| of_ray(parent) && p.mark.is_none())
    })
}

/// Whether Ray gave the process its title.
fn of_ray(process: &Process) -> bool {
    process.command.starts_with("ray::")
}

fn process(seen: &Process) -> ServeProcess {
    let visible: String = seen.command.chars().filter(|c| !c.is_control()).collect();
    // A secret that is cut is no longer found.
    let masked = Masker::default().text(&visible).chars().take(COMMAND_CHARS).collect();
    ServeProcess {
        pid: seen.pid,
        mark: seen.mark.clone(),
        command: masked,
        up_seconds: seen.up,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_at_the_end_of_what_is_kept_of_a_command_is_masked() {
        let before = format!("vllm serve {} --api-key ", "x".repeat(COMMAND_CHARS - 25));
        let seen = Process {
            pid: 1,
            parent: 0,
            mark: None,
            command: format!("{before}correct-horse-battery"),
            up: None,
        };
        let shown = process(&seen).command;
        assert_eq!(shown, format!("{before}***")[..COMMAND_CHARS]);
    }
}
