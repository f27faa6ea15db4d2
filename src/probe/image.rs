//! The image probe: whether a node has the configured image, and its layers.

use std::time::Duration;

use crate::domain::command::{Command, Output, program};
use crate::domain::event::{Facts, Subject};
use crate::domain::image::ImageFacts;
use crate::domain::problem::Problem;

use super::{Found, absent, docker, failure};

/// The id, then the layers. Neither the id nor a digest can be compared between hosts: storage drivers differ and `save | load` drops digests.
const FORMAT: &str = "{{.Id}}{{range .RootFS.Layers}} {{.}}{{end}}";

/// Asks a node for an image.
#[must_use]
pub fn command(docker: &str, image: &str, limit: Duration) -> Command {
    let words = ["image", "inspect", "--format", FORMAT, image].map(str::to_owned);
    Command::argv(program(docker).chain(words), limit)
}

/// Reads the answer.
#[must_use]
pub fn parse(output: &Output) -> Found {
    let Some(why) = failure(output) else {
        let text = output.text();
        let mut words = text.split_whitespace().skip_while(|w| !w.starts_with("sha256:"));
        let facts = words.next().map(|id| ImageFacts::Present {
            id: id.to_owned(),
            layers: words.map(str::to_owned).collect(),
        });
        return match facts {
            Some(facts) => (vec![Facts::Image(facts)], Vec::new()),
            None => absent(Subject::Image, Problem::error("docker's answer holds no image id")),
        };
    };
    let said = format!("{}\n{}", output.text(), output.error_text());
    if let Some(problem) = docker::refusal(&said, super::code(output)) {
        return absent(Subject::Image, problem);
    }
    if docker::no_such(&said) {
        return (vec![Facts::Image(ImageFacts::Missing)], Vec::new());
    }
    absent(Subject::Image, Problem::error(why))
}
