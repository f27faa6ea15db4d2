//! The Ray probe: a Python in the head's container asks the GCS who is a member.
//!
//! It is the way where the dashboard does not run. `ray status` is not used: it costs seconds of CPU and lists dead nodes as active in some versions.

use std::time::Duration;

use serde::Deserialize;

use crate::domain::command::{Command, Output, quote};
use crate::domain::event::{Facts, Subject};
use crate::domain::problem::Problem;
use crate::domain::ray::{RayFacts, RayNode, RayVia};

use super::{Found, absent, code, docker, failure, json_line, not_there, short};

/// Id of the script.
pub const ID: &str = "probe.ray";

/// Exit code of the Python program when its own time is over: it is ended by SIGALRM.
const ALARM_CODE: u32 = 128 + 14;

/// Asks Ray in a container; `port` is the GCS's.
#[must_use]
pub fn command(docker: &str, container: &str, port: u16, limit: Duration) -> Command {
    let body = format!(
        "exec $1 exec \"$2\" python3 -c {} \"$3\" \"$4\"\n",
        quote(include_str!("ray_nodes.py"))
    );
    let seconds = limit.as_secs().max(1).to_string();
    let args = vec![docker.to_owned(), container.to_owned(), port.to_string(), seconds];
    Command::script(ID, body, args, limit)
}

/// What the Python program prints.
#[derive(Deserialize)]
struct Printed {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    address: String,
    alive: bool,
    head: bool,
    cpus: f64,
    gpus: f64,
    message: Option<String>,
}

/// Reads the answer.
#[must_use]
pub fn parse(output: &Output) -> Found {
    if let Some(printed) = json_line::<Printed>(&output.text()) {
        let nodes = printed.nodes.into_iter().map(node).collect();
        let via = RayVia::Container;
        return (vec![Facts::Ray(RayFacts { nodes, via })], Vec::new());
    }
    let said = format!("{}\n{}", output.text(), output.error_text());
    if docker::not_running(&said) {
        return not_there(Subject::Ray, "the head's container does not run");
    }
    if code(output) == Some(ALARM_CODE) {
        return absent(Subject::Ray, Problem::warning("Ray does not answer in time"));
    }
    if said.contains("nothing listens at") {
        return not_there(Subject::Ray, "Ray does not listen in the head's container");
    }
    let problem = docker::refusal(&said, code(output)).unwrap_or_else(|| {
        if said.contains("python3") && said.contains("not found") {
            Problem::error("python3 is not in the container")
        } else if said.contains("No module named 'ray'") {
            Problem::error("Ray is not in the container").with_fix("use an image that holds Ray")
        } else {
            let why = failure(output).unwrap_or_else(|| "no answer that can be read".to_owned());
            Problem::warning(format!("Ray could not be asked: {why}"))
        }
    });
    absent(Subject::Ray, problem)
}

fn node(seen: Node) -> RayNode {
    RayNode {
        id: short(&seen.id),
        address: short(&seen.address),
        alive: seen.alive,
        head: seen.head,
        gpus: seen.gpus,
        cpus: seen.cpus,
        message: seen.message.filter(|m| !m.is_empty()).as_deref().map(short),
    }
}
