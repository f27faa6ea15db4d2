//! Where a node's log comes from, and how the container that wrote it ended.

use serde::Serialize;

use super::Stamp;
use super::container::{Container, ContainerFacts, ContainerState};
use super::units::Bytes;

/// How a node's log keeps up with what is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct LogFlow {
    /// Since when lines come faster than they are read: they wait on the node, and none is lost. `None` where they do not.
    pub behind: Option<Stamp>,
    /// Bytes that came faster than they could be read, found no room and do not come again. Where they are missing stands in the log.
    pub lost: u64,
    /// Lines of the console's own that stand in it.
    pub own: u64,
    /// Since when Docker has been asked for the log and has given nothing: in a long one it looks for its place for up to a minute. `None` where it has
    /// given something, and where it is no container's log.
    pub seeks: Option<Seeks>,
    /// What was there before the first line and was not read.
    pub older: Option<Older>,
}

/// Docker has been asked for a log and has given nothing of it yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Seeks {
    /// Since when.
    pub since: Stamp,
    /// Whether there must be something to give: the last line that was read is asked for again. Else the log may be empty.
    pub again: bool,
}

/// What a log holds before its first line that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Older {
    /// Lines, of which nobody knows how many.
    Lines,
    /// So many bytes of a file.
    Bytes(Bytes),
}

/// Which container is meant, by what is known of it before it is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Wanted {
    /// The one with exactly this name.
    Named(String),
    /// Those whose names fit a pattern: `*` is any text, `?` any character.
    Pattern(String),
    /// Those that carry a label.
    Label {
        /// Its key.
        key: String,
        /// Its value; `None` for any.
        value: Option<String>,
    },
}

impl Wanted {
    /// Reads a name, or a pattern where a `*` or a `?` is in it.
    #[must_use]
    pub fn named(text: &str) -> Self {
        if text.contains(['*', '?']) {
            Self::Pattern(text.to_owned())
        } else {
            Self::Named(text.to_owned())
        }
    }

    /// Whether it is by its name that one with this name is meant.
    #[must_use]
    pub fn names(&self, found: &str) -> bool {
        match self {
            Self::Named(name) => found == name,
            Self::Pattern(pattern) => fits(pattern.as_bytes(), found.as_bytes()),
            Self::Label { .. } => false,
        }
    }

    /// Whether this is one of them.
    #[must_use]
    pub fn is(&self, container: &Container) -> bool {
        match self {
            Self::Named(_) | Self::Pattern(_) => self.names(&container.name),
            Self::Label { key, value } => container
                .labels
                .get(key)
                .is_some_and(|found| value.as_ref().is_none_or(|value| value == found)),
        }
    }

    /// The one whose log counts: of those that run the one that was started last, else of those that are there.
    #[must_use]
    pub fn chosen<'a>(&self, facts: &'a ContainerFacts) -> Option<&'a Container> {
        let newest = |c: &&Container| (c.state == ContainerState::Running, c.started());
        facts.containers.iter().filter(|c| self.is(c)).max_by_key(newest)
    }

    /// How many of a node's containers run and are meant.
    #[must_use]
    pub fn running(&self, facts: &ContainerFacts) -> usize {
        let runs = |c: &&Container| c.state == ContainerState::Running && self.is(c);
        facts.containers.iter().filter(runs).count()
    }

    /// What is looked for, as in "no … on this node".
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Named(name) => format!("container {name}"),
            Self::Pattern(pattern) => format!("container whose name fits {pattern}"),
            Self::Label { key, value: None } => format!("container with the label {key}"),
            Self::Label {
                key,
                value: Some(value),
            } => format!("container with the label {key}={value}"),
        }
    }
}

/// Whether a text fits a pattern of `*` and `?`.
fn fits(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (pattern, text);
    // Where the last `*` was, and the text that it did not take yet.
    let mut back: Option<(&[u8], &[u8])> = None;
    loop {
        p = match (p.split_first(), t.split_first()) {
            (Some((b'*', rest)), _) => {
                back = Some((rest, t));
                rest
            }
            (Some((one, rest)), Some((found, after))) if *one == b'?' || one == found => {
                t = after;
                rest
            }
            (None, None) => return true,
            (Some(_) | None, _) => match back.and_then(|(rest, from)| Some((rest, from.get(1..)?))) {
                Some((rest, from)) => {
                    back = Some((rest, from));
                    t = from;
                    rest
                }
                None => return false,
            },
        };
    }
}

/// What a node's log is read from now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum LogSource {
    /// It is followed.
    Follows {
        /// What, as an operator would type it or name it: `docker logs node-1234`, a path, a command.
        what: String,
        /// Containers that run and are meant; the newest of them is followed. 1 where it is no container.
        of: usize,
    },
    /// There is nothing to follow.
    Nothing {
        /// What is looked for, as in "no … on this node".
        wanted: String,
    },
    /// It is to be followed, and is not there or can't be read.
    Absent {
        /// What, as in [`LogSource::Follows`].
        what: String,
        /// Why, as a whole sentence without a full stop: `there is no such file`.
        why: String,
        /// What the node said, in its own words; `None` where it said nothing.
        said: Option<String>,
    },
    /// The files that Ray's workers on this node write, in their container.
    Ray {
        /// The container.
        container: String,
    },
}

impl LogSource {
    /// What is read, or is to be.
    #[must_use]
    pub fn what(&self) -> &str {
        match self {
            Self::Follows { what, .. } | Self::Absent { what, .. } => what,
            Self::Nothing { wanted } => wanted,
            Self::Ray { container } => container,
        }
    }

    /// Why there is nothing to read, in words that go on after "no log: "; `None` where there is.
    #[must_use]
    pub fn missing(&self) -> Option<String> {
        match self {
            Self::Follows { .. } | Self::Ray { .. } => None,
            Self::Nothing { wanted } => Some(format!("no {wanted} on this node")),
            Self::Absent { what, why, .. } => Some(format!("{what}: {why}")),
        }
    }

    /// Why there is nothing to read of what is to be; `None` where there is, and where nothing is to be.
    #[must_use]
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Absent { why, .. } => Some(why),
            Self::Follows { .. } | Self::Nothing { .. } | Self::Ray { .. } => None,
        }
    }

    /// What the node said where there is nothing to read.
    #[must_use]
    pub fn said(&self) -> Option<&str> {
        match self {
            Self::Absent { said, .. } => said.as_deref(),
            Self::Follows { .. } | Self::Nothing { .. } | Self::Ray { .. } => None,
        }
    }
}

/// Which log of a node is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogChoice {
    /// The configured one.
    #[default]
    Own,
    /// The files that Ray's workers on the node write.
    Ray,
}

/// How a container ended, as Docker told when it did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ContainerEnd {
    /// Its full id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Exit code; 128 and a signal's number where one ended it. `None` where Docker does not know of its end any more.
    pub code: Option<i32>,
    /// Whether the kernel killed something in it for the memory that it may take.
    pub oom: bool,
    /// The least available memory of the node that was read in the seconds before; `None` where it was not read.
    pub available: Option<Bytes>,
    /// Why Docker could not be asked how it ended; `None` where it was asked, or where its state told it.
    pub unasked: Option<String>,
}

/// Exit code of a process that SIGKILL ended.
const KILLED: i32 = 137;

impl ContainerEnd {
    /// How, in words that go on after "ended": `with exit code 1`.
    #[must_use]
    pub fn words(&self) -> String {
        match (self.code, self.oom) {
            (Some(code), true) => format!("out of memory, with exit code {code}: the kernel killed a process of it"),
            (Some(KILLED), false) => {
                let memory = self
                    .available
                    .map(|b| format!("; {:.1} GiB of memory were available just before", b.gib()))
                    .unwrap_or_default();
                format!(
                    "with exit code {KILLED}: killed, by `docker kill`, by a stop that waited in vain, or by a host short of memory{memory}"
                )
            }
            (Some(code), false) => format!("with exit code {code}"),
            (None, _) => match &self.unasked {
                Some(why) => format!("in a way that is not known: Docker's events could not be read ({why})"),
                None => "in a way that is not known: Docker has no event of its end any more".to_owned(),
            },
        }
    }

    /// How little memory there was before the end, where that may be why.
    #[must_use]
    pub fn memory_before(&self) -> Option<String> {
        let killed = self.oom || self.code == Some(KILLED);
        let available = self.available.filter(|_| killed)?;
        Some(format!("{:.1} GiB were available before", available.gib()))
    }

    /// The same in few words.
    #[must_use]
    pub fn short(&self) -> String {
        match (self.code, self.oom) {
            (Some(code), true) => format!("out of memory ({code})"),
            (Some(KILLED), false) => format!("killed ({KILLED})"),
            (Some(code), false) => format!("ended ({code})"),
            (None, _) => "gone".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(name: &str, state: ContainerState, started: &str, labels: &[(&str, &str)]) -> Container {
        Container {
            id: name.into(),
            name: name.into(),
            image: String::new(),
            state,
            started_at: Some(started.into()),
            up_seconds: None,
            restarts: 0,
            ours: None,
            labels: labels.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect(),
            pid: None,
        }
    }

    #[test]
    fn patterns_fit_whole_names() {
        let cases = [
            ("node-*", "node-1234", true),
            ("node-*", "node-", true),
            ("node-*", "anode-1", false),
            ("*vllm*", "my-vllm-1", true),
            ("n?de", "node", true),
            ("n?de", "nde", false),
            ("*-a-*b", "x-a-a-cb", true),
            ("*-a-*b", "x-a-a-bc", false),
            ("", "", true),
            ("*", "", true),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(fits(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn the_newest_that_runs_counts_and_an_ended_one_only_where_none_runs() {
        let (runs, ended) = (ContainerState::Running, ContainerState::Exited { code: 1, oom: false });
        let vllm = [("com.docker.compose.service", "vllm")];
        let mut facts = ContainerFacts {
            containers: vec![
                // Docker leaves out zeros at the end: times are not compared as texts.
                container("node-1", runs.clone(), "2026-11-29T17:04:55.5Z", &vllm),
                container("node-2", runs.clone(), "2026-11-29T17:04:55.516948455Z", &vllm),
                container("node-3", ended, "2026-11-29T18:00:00Z", &[]),
                container("other", runs, "2026-11-29T19:00:00Z", &[]),
            ],
        };
        let name = |wanted: &Wanted, facts: &ContainerFacts| wanted.chosen(facts).map(|c| c.name.clone());
        let pattern = Wanted::named("node-*");
        let label = |value: Option<&str>| Wanted::Label {
            key: "com.docker.compose.service".into(),
            value: value.map(str::to_owned),
        };
        assert_eq!(name(&pattern, &facts).as_deref(), Some("node-2"));
        assert_eq!(pattern.running(&facts), 2);
        assert_eq!(name(&label(Some("vllm")), &facts).as_deref(), Some("node-2"));
        assert_eq!(name(&label(None), &facts).as_deref(), Some("node-2"));
        assert_eq!(name(&label(Some("sglang")), &facts), None);
        assert_eq!(name(&Wanted::named("node-1"), &facts).as_deref(), Some("node-1"));
        facts.containers.drain(..2);
        assert_eq!(name(&pattern, &facts).as_deref(), Some("node-3"));
        assert_eq!(pattern.running(&facts), 0);
    }

    #[test]
    fn an_end_says_what_docker_told_and_no_more() {
        let mut end = ContainerEnd {
            id: "c1".into(),
            name: "vllm".into(),
            code: Some(1),
            oom: false,
            available: Some(Bytes(3 << 30)),
            unasked: None,
        };
        assert_eq!(end.words(), "with exit code 1");
        end.code = Some(137);
        assert!(end.words().ends_with("; 3.0 GiB of memory were available just before"));
        end.oom = true;
        assert!(end.words().starts_with("out of memory"));
        assert_eq!(end.memory_before().as_deref(), Some("3.0 GiB were available before"));
        end.code = None;
        end.oom = false;
        assert_eq!((end.short().as_str(), end.memory_before()), ("gone", None));
        assert_eq!(
            end.words(),
            "in a way that is not known: Docker has no event of its end any more"
        );
        end.unasked = Some("no answer in time".into());
        assert_eq!(
            end.words(),
            "in a way that is not known: Docker's events could not be read (no answer in time)"
        );
    }
}
