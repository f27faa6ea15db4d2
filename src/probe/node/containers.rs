//! Containers, from `docker ps` and `docker inspect`.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;

use crate::domain::container::{Container, ContainerFacts, ContainerState, Labels, label};
use crate::domain::event::{Facts, Subject};
use crate::domain::problem::Problem;
use crate::domain::time::Wall;

use super::super::sections::Sections;
use super::super::{absent, docker, short};
use super::Part;

/// Labels kept of a container.
const LABELS: usize = 128;

/// One line of the script's `docker inspect` template.
#[derive(Deserialize)]
struct Inspect {
    id: String,
    name: String,
    image: Option<String>,
    status: Option<String>,
    code: Option<i32>,
    oom: Option<bool>,
    pid: Option<u32>,
    started: Option<String>,
    restarts: Option<u32>,
    labels: Option<BTreeMap<String, String>>,
}

/// Reads `@@ containers`; the clock is the node's own (`@@ clock`).
pub fn parse(sections: &Sections) -> Option<Part> {
    let section = sections.get("containers")?;
    let clock = clock(sections).and_then(Result::ok);
    let clock = clock.and_then(|c| i64::try_from(c.shows.0 / 1000).ok());
    let mut containers = Vec::new();
    let mut problems = Vec::new();
    let mut gone = false;
    for line in section.lines.iter().map(|l| l.trim()) {
        if line.starts_with('{') {
            match serde_json::from_str(line) {
                Ok(inspect) => containers.push(container(inspect, clock)),
                Err(_) if section.code.is_some() => {
                    problems.push(Problem::warning(format!(
                        "a container could not be read: {}",
                        short(line)
                    )));
                }
                Err(_) => {}
            }
        } else if docker::no_such(line) {
            // It went between the list and the look at it.
            gone = true;
        }
    }
    if section.ok() || (gone && section.code.is_some() && docker::refusal(&section.text(), None).is_none()) {
        return Some((vec![Facts::Containers(ContainerFacts { containers })], problems));
    }
    let problem = match section.code {
        Some(code) if super::ended(code) => Problem::error("docker does not answer"),
        code => docker::problem(&section.text(), code),
    };
    Some(absent(Subject::Containers, problem))
}

/// What the node's clock showed while it was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shown {
    /// What it showed, and how far that may be off for its fineness.
    pub shows: Wall,
    pub fine: Duration,
    /// Hundredths of a second from the node's start to just after that.
    pub after: Option<u64>,
}

/// Reads `@@ clock`; the error says what stands there instead of a time. `None` where it was not asked for.
pub(super) fn clock(sections: &Sections) -> Option<Result<Shown, String>> {
    let section = sections.get("clock")?;
    let mut lines = section.lines.iter();
    let time = lines.next().map_or("", |line| line.trim());
    let Some((shows, fine)) = crate::domain::clock::read(time) else {
        return Some(Err(match time {
            "" => "the node's `date` printed nothing".to_owned(),
            time => format!("the node's `date` printed no time: {}", short(time)),
        }));
    };
    let after = lines.next().and_then(|line| line.trim().parse().ok());
    Some(Ok(Shown { shows, fine, after }))
}

fn container(seen: Inspect, clock: Option<i64>) -> Container {
    let state = match seen.status.as_deref() {
        Some("created") => ContainerState::Created,
        Some("running") => ContainerState::Running,
        Some("paused") => ContainerState::Paused,
        Some("restarting") => ContainerState::Restarting,
        Some("exited") => match seen.code {
            Some(code) => ContainerState::Exited {
                code,
                oom: seen.oom.unwrap_or(false),
            },
            None => ContainerState::Other("exited".to_owned()),
        },
        Some(other) => ContainerState::Other(short(other)),
        None => ContainerState::Other("unknown".to_owned()),
    };
    let started: Option<Timestamp> = seen.started.as_deref().and_then(|s| s.parse().ok());
    // Docker writes the year 1 for "never".
    let started = started.filter(|t| t.as_second() > 0);
    let runs = matches!(state, ContainerState::Running | ContainerState::Paused);
    let up = started
        .zip(clock)
        .map(|(started, now)| now.saturating_sub(started.as_second()));
    Container {
        id: seen.id,
        name: short(seen.name.trim_start_matches('/')),
        image: short(&seen.image.unwrap_or_default()),
        started_at: seen.started.filter(|_| started.is_some()),
        up_seconds: up.filter(|_| runs).map(|s| u64::try_from(s).unwrap_or(0)),
        restarts: seen.restarts.unwrap_or(0),
        ours: seen.labels.as_ref().and_then(ours),
        labels: labels(seen.labels.unwrap_or_default()),
        pid: seen.pid.filter(|pid| *pid != 0 && runs),
        state,
    }
}

/// Labels, each cut short, the first of them where there are very many.
fn labels(all: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let short = |(key, value): (String, String)| (short(&key), short(&value));
    all.into_iter().take(LABELS).map(short).collect()
}

/// Our labels, when the one that names the cluster is there.
fn ours(labels: &BTreeMap<String, String>) -> Option<Labels> {
    let get = |key: &str| labels.get(key).map(|v| short(v)).unwrap_or_default();
    labels.contains_key(label::CLUSTER).then(|| Labels {
        cluster: get(label::CLUSTER),
        role: get(label::ROLE),
        node: get(label::NODE),
        hash: get(label::HASH),
        generation: get(label::GENERATION),
    })
}
