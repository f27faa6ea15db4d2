//! The node probe: memory, GPUs, containers, listening sockets, interfaces and disks.
//!
//! One script answers once, or goes on as a stream of records (see [`stream`]); each subject's part of it stands beside its reader. It prints sections, see
//! [`super::sections`]; each says how its tool ended, so that a missing tool or a refusal costs one subject and not the others.

mod amd;
mod containers;
mod disk;
mod fabric;
mod gpus;
mod memory;
mod sockets;
pub mod stream;

use std::time::Duration;

use crate::domain::cadence;
use crate::domain::clock::NodeClock;
use crate::domain::command::{Command, Output};
use crate::domain::event::{Facts, Subject};
use crate::domain::logs::Wanted;
use crate::domain::problem::Problem;

use super::sections::Sections;
use super::{Found, absent, failure, plain};

/// Id of the script where it answers once.
pub const ID: &str = "probe.node";

/// Id of the script where it goes on.
pub const STREAM_ID: &str = "probe.stream";

/// The mark of a single answer.
const ONCE: &str = "once";

/// The script: what all parts use, the parts, and what runs them.
const SCRIPT: &str = concat!(
    include_str!("frame.sh"),
    include_str!("memory.sh"),
    include_str!("fabric.sh"),
    include_str!("sockets.sh"),
    include_str!("containers.sh"),
    include_str!("gpus.sh"),
    include_str!("apps.sh"),
    include_str!("disk.sh"),
    include_str!("main.sh"),
);

/// Longest time for one tool of a single answer: two of them can hang before the answer itself is over time.
const TOOL_LIMIT: Duration = Duration::from_secs(4);

/// What a node is asked about.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// Docker's program, of one or several words.
    pub docker: &'a str,
    /// Name of the configured container.
    pub container: &'a str,
    /// Which container's log is wanted, where it is not that one's.
    pub log: Option<&'a Wanted>,
    /// Folder of the model cache on the node; `None` for the hub's own.
    pub cache: Option<&'a str>,
    /// Ports on which it matters who listens.
    pub ports: &'a [u16],
}

/// Asks a node once.
#[must_use]
pub fn command(ask: Ask<'_>, limit: Duration) -> Command {
    script(ID, ONCE, ask, limit, limit.min(TOOL_LIMIT))
}

/// Asks a node for as long as there is a connection. `mark` stands before each line of its records; `limit` bounds the start, and each tool.
#[must_use]
pub fn watch(ask: Ask<'_>, mark: &str, limit: Duration) -> Command {
    script(STREAM_ID, mark, ask, limit, limit).follow()
}

fn script(id: &'static str, mark: &str, ask: Ask<'_>, limit: Duration, tool: Duration) -> Command {
    let paces = [
        cadence::MEMORY_EVERY,
        cadence::GPUS_EVERY,
        cadence::DOCKER_EVERY,
        cadence::CONTAINERS_EVERY,
        cadence::SOCKETS_EVERY,
        cadence::FABRIC_EVERY,
        cadence::DISK_EVERY,
        cadence::AMD_EVERY,
        cadence::AGAIN_EVERY,
        tool,
    ];
    let mut args = vec![
        mark.to_owned(),
        ask.docker.to_owned(),
        ask.container.to_owned(),
        ask.cache.unwrap_or_default().to_owned(),
    ];
    args.extend(paces.map(|pace| pace.as_secs().max(1).to_string()));
    args.extend(meant(ask.log));
    args.extend(ask.ports.iter().map(u16::to_string));
    Command::script(id, SCRIPT, args, limit)
}

/// What the script knows an ended container by whose log is wanted: a pattern of the shell for its name, and what `docker ps` is to print of those with a
/// label, as a piece of its template. What is not asked for is empty.
fn meant(log: Option<&Wanted>) -> [String; 2] {
    let none = String::new;
    match log {
        None => [none(), none()],
        Some(Wanted::Named(name) | Wanted::Pattern(name)) => [name.clone(), none()],
        Some(Wanted::Label { key, value }) => [none(), label_mark(key, value.as_deref())],
    }
}

/// The piece of a template that prints `=` for a container with this label.
#[must_use]
pub fn label_mark(key: &str, value: Option<&str>) -> String {
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let key = quoted(key);
    match value {
        Some(value) => format!("{{{{if eq (.Label \"{key}\") \"{}\"}}}}={{{{end}}}}", quoted(value)),
        None => format!("{{{{if .Label \"{key}\"}}}}={{{{end}}}}"),
    }
}

/// Whether a tool's exit code says that it was ended for taking too long: 128 and SIGTERM or SIGKILL.
fn ended(code: u32) -> bool {
    matches!(code, 143 | 137)
}

/// Reads a single answer. Each of its five subjects comes out once, as a value or as [`Facts::Absent`].
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
    add(Subject::Gpus, gpus::parse(&sections));
    add(Subject::Containers, containers::parse(&sections));
    add(Subject::Sockets, sockets::parse(&sections, &groups));
    add(Subject::Fabric, fabric::parse(&sections));
    found
}

/// What the node's own clock showed in a single answer, and how far that may be off beside the way of the question and the answer; the error says why that
/// is not known.
#[must_use]
pub fn clock(output: &Output) -> Option<Result<NodeClock, String>> {
    let text = plain(output);
    let shown = containers::clock(&Sections::read(&text))?;
    Some(shown.map(|shown| NodeClock {
        shows: shown.shows,
        within: shown.fine,
    }))
}

/// What the reader of one subject gives; it gives `None` when its section is not there.
type Part = Found;

/// Which container a process runs in, from /proc/PID/cgroup.
struct Groups(Vec<(u32, String)>);

impl Groups {
    fn read(sections: &Sections) -> Self {
        let lines = sections.all("cgroups").flat_map(|s| s.lines.iter());
        let pairs = lines.filter_map(|line| {
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
    fn a_clock_that_shows_no_time_is_told_by_what_its_node_prints() {
        let said = |shows: &str| {
            let text = format!("@@ clock\n{shows}\n7654\n@= 0\n");
            clock(&Output {
                stdout: text.into_bytes(),
                stderr: Vec::new(),
                dropped: 0,
                exit: crate::domain::command::Exit::Code(0),
                took: Duration::ZERO,
            })
        };
        let shows = said("1795972680.250").map(|shown| shown.map(|clock| clock.shows.0));
        assert_eq!(shows, Some(Ok(1_795_972_680_250)));
        for (shows, why) in [
            ("-", "the node's `date` printed no time: -"),
            ("Mon Nov 30", "the node's `date` printed no time: Mon Nov 30"),
            ("253402300800", "the node's `date` printed no time: 253402300800"),
        ] {
            assert_eq!(said(shows), Some(Err(why.to_owned())));
        }
    }

    #[test]
    fn the_command_carries_its_arguments() {
        let ask = Ask {
            docker: "sudo -n docker",
            container: "vllm-qwen35",
            log: None,
            cache: None,
            ports: &[6379, 8000],
        };
        let limit = Duration::from_secs(10);
        assert_eq!(
            command(ask, limit).line(),
            "probe.node once 'sudo -n docker' vllm-qwen35 '' 2 2 20 5 5 10 60 20 15 4 '' '' 6379 8000"
        );
        assert_eq!(
            watch(ask, "ab12", limit).line(),
            "probe.stream ab12 'sudo -n docker' vllm-qwen35 '' 2 2 20 5 5 10 60 20 15 10 '' '' 6379 8000"
        );
        let with = |log: &Wanted| command(Ask { log: Some(log), ..ask }, limit).line();
        assert!(with(&Wanted::named("node-*")).ends_with(" 15 4 'node-*' '' 6379 8000"));
        let label = Wanted::Label {
            key: "a.b".into(),
            value: None,
        };
        assert!(with(&label).ends_with(r#" '' '{{if .Label "a.b"}}={{end}}' 6379 8000"#));
        let odd = label_mark("a.b", Some(r#"x"\"#));
        assert_eq!(odd, r#"{{if eq (.Label "a.b") "x\"\\"}}={{end}}"#);
    }
}
