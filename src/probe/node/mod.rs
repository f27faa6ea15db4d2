//! The node probe: memory, GPUs, containers, listening sockets and interfaces in one command.
//!
//! The script (`node.sh`) prints sections, see [`super::sections`]; each says how its tool ended, so that a missing tool or a refusal costs one subject
//! and not the others.

mod containers;
mod gpus;
mod interfaces;
mod memory;
mod sockets;

use std::time::Duration;

use crate::domain::command::{Command, Output};
use crate::domain::event::{Facts, Subject};
use crate::domain::problem::Problem;

use super::sections::Sections;
use super::{Found, absent, failure, plain};

/// Id of the script.
pub const ID: &str = "probe.node";

/// Asks a node. `container` is the configured name; `ports` are those on which it matters who listens.
#[must_use]
pub fn command(docker: &str, container: &str, ports: &[u16], limit: Duration) -> Command {
    let mut args = vec![docker.to_owned(), container.to_owned()];
    args.extend(ports.iter().map(u16::to_string));
    Command::script(ID, include_str!("node.sh"), args, limit)
}

/// Reads its output. Each of the five subjects comes out once, as a value or as [`Facts::Absent`].
#[must_use]
pub fn parse(output: &Output) -> Found {
    let text = plain(output);
    let sections = Sections::read(&text);
    let why = failure(output).unwrap_or_else(|| "the node's answer has no such part".to_owned());
    let groups = Groups::read(&sections);
    let mut found: Found = (Vec::new(), Vec::new());
    let mut add = |what: Subject, part: Option<Part>| {
        let (fact, problems) = part.unwrap_or_else(|| Part::from(absent(what, Problem::error(why.clone()))));
        found.0.extend(fact);
        // One reason for several subjects is one problem.
        for problem in problems {
            if !found.1.contains(&problem) {
                found.1.push(problem);
            }
        }
    };
    add(Subject::Memory, memory::parse(&sections));
    add(Subject::Gpus, gpus::parse(&sections, &groups));
    add(Subject::Containers, containers::parse(&sections));
    add(Subject::Sockets, sockets::parse(&sections, &groups));
    add(Subject::Fabric, interfaces::parse(&sections));
    found
}

/// What the reader of one subject gives; it gives `None` when its section is not there.
type Part = Found;

/// Which container a process runs in, from /proc/PID/cgroup.
struct Groups(Vec<(u32, String)>);

impl Groups {
    fn read(sections: &Sections) -> Self {
        let lines = sections.get("cgroups").map(|s| s.lines.as_slice()).unwrap_or_default();
        let pairs = lines.iter().filter_map(|line| {
            let (pid, group) = line.split_once(' ')?;
            Some((pid.parse().ok()?, container_id(group)?.to_owned()))
        });
        Self(pairs.collect())
    }

    fn of(&self, pid: u32) -> Option<String> {
        self.0.iter().find(|(p, _)| *p == pid).map(|(_, id)| id.clone())
    }
}

/// The container id in a control group's path: `/docker/ID` (cgroup v1), `/system.slice/docker-ID.scope` (v2), and the like of other managers. The
/// innermost one counts.
fn container_id(path: &str) -> Option<&str> {
    /// Hex digits of an id.
    const LEN: usize = 64;
    path.split(|c: char| !c.is_ascii_hexdigit())
        .rfind(|word| word.len() == LEN)
}

/// A fact that stands alone.
fn known(fact: Facts) -> Part {
    (vec![fact], Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_found_in_every_kind_of_control_group() {
        let id = "3caa33b1718127e43d3913c4b03b36daec26b40f16437ebf349e4538468fa835";
        let other = "aaaa33b1718127e43d3913c4b03b36daec26b40f16437ebf349e4538468faaaa";
        let cases = [
            (format!("0::/system.slice/docker-{id}.scope"), Some(id)),
            (format!("12:devices:/docker/{id}"), Some(id)),
            (format!("0::/kubepods.slice/pod8e/cri-containerd-{id}.scope"), Some(id)),
            (format!("0::/docker/{other}/docker/{id}"), Some(id)),
            (format!("0::/docker/{id}/init.scope"), Some(id)),
            ("0::/user.slice/user-1000.slice/session-3.scope".to_owned(), None),
            (format!("0::/docker/{id}0"), None),
        ];
        for (path, expected) in cases {
            assert_eq!(container_id(&path), expected, "{path}");
        }
    }

    #[test]
    fn the_command_carries_its_arguments() {
        let c = command("docker", "vllm-qwen35", &[6379, 8000], Duration::from_secs(10));
        assert_eq!(c.line(), "probe.node docker vllm-qwen35 6379 8000");
    }
}
