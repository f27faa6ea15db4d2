//! The versions of Ray and Python in a running container, from its packages' metadata: nothing of Ray is started for it.

use std::time::Duration;

use serde::Deserialize;

use crate::domain::command::{Command, Output, quote};
use crate::domain::event::{Facts, Subject};
use crate::domain::image::InsideFacts;
use crate::domain::problem::Problem;

use super::{Found, absent, code, docker, failure, json_line, not_there, short};

/// Id of the script.
pub const ID: &str = "probe.inside";

/// The program. The directory that it runs in may hold a folder named ray.
const PROGRAM: &str = "import importlib.metadata as m, json, platform, sys
sys.path = [p for p in sys.path if p]
try:
    ray = m.version('ray')
except m.PackageNotFoundError:
    ray = None
print(json.dumps({'python': platform.python_version(), 'ray': ray}))
";

/// Looks into a container.
#[must_use]
pub fn command(docker: &str, container: &str, limit: Duration) -> Command {
    let body = format!("exec $1 exec \"$2\" python3 -c {}\n", quote(PROGRAM));
    Command::script(ID, body, vec![docker.to_owned(), container.to_owned()], limit)
}

#[derive(Deserialize)]
struct Printed {
    python: String,
    ray: Option<String>,
}

/// Reads the answer.
#[must_use]
pub fn parse(output: &Output) -> Found {
    if let Some(printed) = json_line::<Printed>(&output.text()) {
        let facts = InsideFacts {
            ray: printed.ray.as_deref().map(short),
            python: Some(short(&printed.python)),
        };
        return (vec![Facts::Inside(facts)], Vec::new());
    }
    let said = format!("{}\n{}", output.text(), output.error_text());
    if docker::not_running(&said) {
        return not_there(Subject::Inside, "the container does not run");
    }
    let problem = docker::refusal(&said, code(output)).unwrap_or_else(|| {
        if said.contains("python3") && said.contains("not found") {
            Problem::error("python3 is not in the container")
        } else {
            Problem::error(failure(output).unwrap_or_else(|| "no answer that can be read".to_owned()))
        }
    });
    absent(Subject::Inside, problem)
}
