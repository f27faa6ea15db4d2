//! The versions probe: runs the image once, without network and GPU, and asks its Python for the versions of Ray and vLLM.

use std::time::Duration;

use serde::Deserialize;

use crate::domain::command::{Command, Output, quote};
use crate::domain::event::{Facts, Subject};
use crate::domain::image::VersionFacts;
use crate::domain::problem::Problem;

use super::{Found, absent, code, docker, failure, json_line, not_there, short};

/// Id of the script.
pub const ID: &str = "probe.versions";

/// Asks an image for its versions.
#[must_use]
pub fn command(docker: &str, image: &str, limit: Duration) -> Command {
    let body = format!(
        "{} {}\n",
        include_str!("versions.sh").trim_end(),
        quote(include_str!("versions.py"))
    );
    Command::script(ID, body, vec![docker.to_owned(), image.to_owned()], limit)
}

/// What the Python program prints.
#[derive(Deserialize)]
struct Printed {
    python: Option<String>,
    ray: Option<String>,
    vllm: Option<String>,
    #[serde(default)]
    missing: Vec<String>,
}

/// Reads the answer.
#[must_use]
pub fn parse(output: &Output) -> Found {
    let text = output.text();
    let image_id = text.lines().find_map(|l| l.trim().strip_prefix("image "));
    if let (Some(id), Some(seen)) = (image_id, json_line::<Printed>(&text)) {
        let facts = VersionFacts {
            image_id: id.to_owned(),
            ray: seen.ray.as_deref().map(short),
            vllm: seen.vllm.as_deref().map(short),
            python: seen.python.as_deref().map(short),
            missing: seen.missing.iter().map(|l| short(l)).collect(),
        };
        return (vec![Facts::Versions(facts)], Vec::new());
    }
    let said = format!("{text}\n{}", output.error_text());
    if let Some(id) = image_id
        && said.contains("python3")
        && said.contains("not found")
    {
        let facts = VersionFacts {
            image_id: id.to_owned(),
            missing: vec!["python3 is not in the image".to_owned()],
            ..VersionFacts::default()
        };
        return (vec![Facts::Versions(facts)], Vec::new());
    }
    if docker::no_such(&said) {
        return not_there(Subject::Versions, "the image is not there");
    }
    let problem = docker::refusal(&said, code(output)).unwrap_or_else(|| {
        Problem::error(
            failure(output).unwrap_or_else(|| "the image's Python printed nothing that can be read".to_owned()),
        )
    });
    absent(Subject::Versions, problem)
}
