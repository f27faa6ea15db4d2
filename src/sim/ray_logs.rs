//! The files that Ray's workers on a node write, and the events that Docker's engine remembers.

use std::time::Duration;

use crate::probe::ends;

use super::answer::Answer;
use super::clock::Moment;
use super::world::World;
use super::world::host::{Container, End};
use super::world::script::pid;

/// Most lines of a log that are looked through for a worker's.
const LINES: usize = 10_000;

/// What a worker's file holds: the lines that the driver prints of it, without the prefix that says whose they are there. They stand there at once; a demo's
/// driver is never silent for long. A container holds what was written since it was made.
pub fn files(world: &World, container: &Container, now: Moment) -> Answer {
    let address = &container.address;
    let mark = format!("pid={}, ip={address})", pid::RANK);
    let mut text = ":job_id:01000000\n:actor_name:RayWorkerWrapper\n".to_owned();
    for head in world.hosts.iter().flat_map(|h| &h.containers) {
        let (lines, _) = head.log.read(0, now, LINES);
        for line in lines.iter().filter(|line| line.at >= container.started) {
            if let Some((_, said)) = line.text.split_once(&mark) {
                text.push_str(said.trim_start_matches("\u{1b}[0m").trim_start());
                text.push('\n');
            }
        }
    }
    let file = format!("worker-{}-01000000-{}.out", "5d".repeat(28), pid::RANK);
    let raylet = "[state-dump] NodeManager: 1 worker registered\n";
    let out = format!(
        "@@ file raylet.err {}\n{raylet}@@ file {file} {}\n{text}",
        raylet.len(),
        text.len()
    );
    Answer::Silence {
        out,
        err: String::new(),
    }
}

/// How far back `docker events` looks for a person.
const BACK: Duration = Duration::from_secs(24 * 60 * 60);

/// The ends of the containers of a name, for `docker events` as a person asks who looks into one that was stopped. A simulated engine has no other event.
fn told(world: &World, node: usize, name: &str, now: Moment) -> Answer {
    let ends = world.hosts.get(node).map(|host| host.ends(name)).unwrap_or_default();
    let there = |(_, end): &(&str, End)| end.at <= now && end.at.saturating_add(BACK) >= now;
    let line = |(id, end): (&str, End)| {
        let at = world.calendar.docker(end.at);
        format!("{at} container die {id} (exitCode={}, name={name})\n", end.code)
    };
    Answer::now(ends.into_iter().filter(there).map(line).collect::<String>(), "", 0)
}

/// The end of a container, for `docker events` as [`ends::command`] asks; nothing where it runs. A removed one's is remembered.
pub fn events(world: &World, node: usize, words: &[String], now: Moment) -> Answer {
    if let [since, back, until, end, filter, name] = words
        && [since, back, until, end, filter] == ["--since", "24h", "--until", "0s", "--filter"]
        && let Some(name) = name.strip_prefix("container=")
    {
        return told(world, node, name, now);
    }
    let id = words.iter().rev().find_map(|w| w.strip_prefix("container="));
    let asked = id.map(|id| ends::command("docker", id, std::time::Duration::ZERO).line());
    if asked.as_deref() != Some(format!("docker events {}", crate::domain::command::quote_all(words)).as_str()) {
        return Answer::unknown("docker events");
    }
    let ended = world
        .hosts
        .get(node)
        .zip(id)
        .and_then(|(host, id)| host.end(id))
        .filter(|end| end.at <= now);
    let text = ended.map(|end| format!("{}000000000 die {}\n", world.calendar.unix_seconds(end.at), end.code));
    Answer::now(text.unwrap_or_default(), "", 0)
}

#[cfg(test)]
mod tests {
    use super::super::clock::{Calendar, Pace};
    use super::*;

    #[test]
    fn a_container_holds_nothing_of_what_the_one_before_it_wrote() {
        let at = Duration::from_secs;
        let mut world = World::new(2, Pace::new(1.0), Calendar::at(at(1_795_978_690)));
        world.begin_loaded("Qwen/Qwen3.5-122B-A10B-FP8");
        let mut said = |started: Duration| {
            world.hosts[1].containers[0].started = started;
            match files(&world, &world.hosts[1].containers[0], at(60)) {
                Answer::Silence { out, .. } => out.contains("Starting to load model"),
                _ => false,
            }
        };
        assert!(said(at(3)));
        assert!(!said(at(59)), "the head still holds those lines");
    }
}
