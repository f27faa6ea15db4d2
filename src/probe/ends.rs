//! How a container ended, from the events that Docker's engine still knows: also of one that was removed with its end (`docker run --rm`), of which
//! nothing else is left.

use std::time::Duration;

use crate::domain::command::{Command, Output, program};

use super::failure;

/// How far back an end is looked for. The engine keeps its last 256 events (moby's `eventsLimit`).
const BACK: &str = "24h";

/// Most bytes of an answer: an engine's list of events is not longer.
const BYTES: usize = 64 * 1024;

/// What Docker tells of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// When, in nanoseconds since 1970 by the node's clock.
    pub at: u64,
    /// Exit code, where it was told.
    pub code: Option<i32>,
    /// Whether the kernel killed something in the container for memory in that life of it.
    pub oom: bool,
    /// Whether it was started again since.
    pub again: bool,
}

/// Asks for the events of a container, by id.
#[must_use]
pub fn command(docker: &str, id: &str, limit: Duration) -> Command {
    let options = [
        "events",
        "--since",
        BACK,
        // Until now, so that it ends.
        "--until",
        "0s",
        "--filter",
        "event=start",
        "--filter",
        "event=oom",
        "--filter",
        "event=die",
        "--format",
        "{{.TimeNano}} {{.Action}} {{.Actor.Attributes.exitCode}}",
        "--filter",
    ];
    let words = program(docker).chain(options.map(str::to_owned));
    let mut command = Command::argv(words.chain([format!("container={id}")]), limit);
    command.limit.bytes = BYTES;
    command
}

/// Reads the last end; `None` where the engine has no event of one.
///
/// # Errors
/// Why the engine's events could not be read, where no end stands in what was.
pub fn parse(output: &Output) -> Result<Option<End>, String> {
    match (last_end(output), failure(output)) {
        (None, Some(why)) => Err(why),
        (end, _) => Ok(end),
    }
}

fn last_end(output: &Output) -> Option<End> {
    let text = output.text();
    let mut oom = false;
    let mut last: Option<End> = None;
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let (Some(at), Some(action)) = (words.next().and_then(|w| w.parse().ok()), words.next()) else {
            continue;
        };
        match action {
            "start" => {
                oom = false;
                last = last.map(|end| End { again: true, ..end });
            }
            "oom" => oom = true,
            "die" => {
                let code = words.next().and_then(|w| w.parse().ok());
                last = Some(End {
                    at,
                    code,
                    oom,
                    again: false,
                });
            }
            _ => {}
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use crate::domain::command::Exit;

    use super::*;

    fn said(text: &str) -> Output {
        Output {
            stdout: text.as_bytes().to_vec(),
            stderr: Vec::new(),
            dropped: 0,
            exit: Exit::Code(0),
            took: Duration::ZERO,
        }
    }

    #[test]
    fn the_last_end_counts_with_what_happened_in_that_life() {
        let text = "1796000000000000001 start \n1796000000000000002 oom <no value>\n1796000000000000003 die 137\n";
        let end = |at, code, oom| {
            Some(End {
                at,
                code,
                oom,
                again: false,
            })
        };
        assert_eq!(
            parse(&said(text)).unwrap(),
            end(1_796_000_000_000_000_003, Some(137), true)
        );
        let again = format!("{text}1796000000000000004 start\n1796000000000000005 die 1\n");
        assert_eq!(
            parse(&said(&again)).unwrap(),
            end(1_796_000_000_000_000_005, Some(1), false)
        );
        let runs = format!("{again}1796000000000000006 start\n");
        assert!(parse(&said(&runs)).unwrap().unwrap().again);
        let odd = "Error response from daemon: x\n17960 die <no value>\n";
        assert_eq!(parse(&said(odd)).unwrap(), end(17960, None, false));
        assert_eq!(parse(&said("1796 start\n")), Ok(None));
        assert_eq!(parse(&said("")), Ok(None));
    }

    #[test]
    fn events_that_could_not_be_read_are_not_no_events() {
        let failed = |text: &str, exit| Output {
            stderr: b"Cannot connect to the Docker daemon at unix:///var/run/docker.sock.\n".to_vec(),
            exit,
            ..said(text)
        };
        let why = "exit 1: Cannot connect to the Docker daemon at unix:///var/run/docker.sock.";
        assert_eq!(parse(&failed("", Exit::Code(1))), Err(why.to_owned()));
        assert_eq!(
            parse(&failed("1 start\n", Exit::TimedOut)),
            Err("no answer in time".to_owned())
        );
        // An end that stands there is one.
        assert_eq!(parse(&failed("17 die 1\n", Exit::TimedOut)).unwrap().unwrap().at, 17);
    }

    #[test]
    fn the_command_asks_for_one_container_and_ends() {
        let line = command("sudo -n docker", "3f9a", Duration::from_secs(10)).line();
        assert!(
            line.starts_with("sudo -n docker events --since 24h --until 0s "),
            "{line}"
        );
        assert!(line.ends_with(" --filter 'container=3f9a'"), "{line}");
    }
}
