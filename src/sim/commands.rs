//! From a command's text to an answer: programs by name, scripts by id. Nothing is ever run.

use std::sync::Arc;

use crate::domain::command::{ARGV, Command};

use super::answer::Answer;
use super::clock::Moment;
use super::docker;
use super::probes;

use super::shared::Shared;
use super::world::World;

/// Answers a script; also when it was asked.
pub fn answer(shared: &Arc<Shared>, node: Option<usize>, script: &str, secret: Option<&str>) -> (Answer, Moment) {
    let Some((id, args)) = Command::parse(script) else {
        return (Answer::unknown("?"), shared.clock.now());
    };
    let name = secret_name(script);
    let secret = name.zip(secret);
    shared.change(|world, now| (on(world, node, &id, &args, secret, now), now))
}

/// Answers a command line that a person gives to `ssh`; also when it was asked.
pub fn plain(shared: &Arc<Shared>, node: Option<usize>, line: &str) -> (Answer, Moment) {
    let words = shlex::split(line).unwrap_or_default();
    if words.is_empty() {
        return (Answer::now("", "", 0), shared.clock.now());
    }
    shared.change(|world, now| (on(world, node, ARGV, &words, None, now), now))
}

/// The variable that the secret on standard input is read into.
fn secret_name(script: &str) -> Option<&str> {
    let line = script.lines().find_map(|l| l.strip_prefix("IFS= read -r "))?;
    line.split(' ').next()
}

fn on(
    world: &mut World,
    node: Option<usize>,
    id: &str,
    args: &[String],
    secret: docker::Secret<'_>,
    now: Moment,
) -> Answer {
    let program = args.first().map_or("", String::as_str);
    let node = match (id, program, node) {
        (ARGV, "true" | ":" | "exit", _) => return Answer::now("", "", 0),
        (ARGV, _, None) => return Answer::unknown(program),
        (_, _, None) => return Answer::unknown(id),
        (_, _, Some(node)) => node,
    };
    match (id, program) {
        (ARGV, program) if program == "docker" || program.ends_with("/docker") => {
            docker::answer(world, node, args.get(1..).unwrap_or_default(), secret, now)
        }
        (ARGV, _) => Answer::unknown(program),
        _ => probes::answer(world, node, id, args, now).unwrap_or_else(|| Answer::unknown(id)),
    }
}
