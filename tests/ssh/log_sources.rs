//! What a node's actor tells of a log that there is none of: since when, why, and in whose words; nothing of that is a line of the log.

use std::sync::Arc;

use bringup::config::types::LogPlace;
use bringup::config::{self, EXAMPLE};
use bringup::domain::event::EventKind;
use bringup::domain::logs::{LogFlow, LogSource, Older, Wanted};
use bringup::domain::units::Bytes;
use bringup::log::Line;

use crate::nodes::Node;
use crate::person::{Home, Person};
use crate::processes::gone;
use crate::server::Server;

/// A node whose log is read from there, and its home.
struct Place {
    home: Home,
    server: Arc<Server>,
}

impl Place {
    fn new() -> Self {
        let home = Home::new();
        let server = Server::new(&[&home.key]);
        Self { home, server }
    }

    async fn start(&self, place: LogPlace) -> Node {
        let mut config = config::parse(EXAMPLE, "config.example.toml").unwrap();
        config.logs.head = place;
        let target = self.home.target(self.server.listen().await);
        Node::start_with(&self.home, target, &Person::trusting(), config)
    }

    async fn end(&self, node: Node) {
        node.handle.stop().await;
        gone(&self.server.mark).await;
    }
}

/// The next source that is told.
async fn source(node: &mut Node) -> LogSource {
    node.tells("a source", |kind| match kind {
        EventKind::LogSource(source) => Some(source),
        _ => None,
    })
    .await
}

async fn flow(node: &mut Node, wanted: impl Fn(&LogFlow) -> bool) -> LogFlow {
    node.tells("how it keeps up", |kind| match kind {
        EventKind::LogFlow(flow) if wanted(&flow) => Some(flow),
        _ => None,
    })
    .await
}

fn lines(node: &Node) -> Vec<String> {
    node.log.lock().unwrap().last(10).map(Line::plain).collect()
}

#[tokio::test]
async fn a_file_that_is_not_there_is_said_to_be_so_until_it_is_and_has_no_line_before() {
    let place = Place::new();
    let path = place.home.path("server.log").display().to_string();
    let mut node = place.start(LogPlace::File(path.clone())).await;
    let LogSource::Absent { what, why, said } = source(&mut node).await else {
        panic!("it is told as read");
    };
    assert_eq!((what.as_str(), why.as_str()), (path.as_str(), "there is no such file"));
    let said = said.unwrap();
    assert!(said.starts_with("ls: ") && said.contains(&path), "{said}");
    assert_eq!(lines(&node), [] as [&str; 0]);
    std::fs::write(&path, "one\n").unwrap();
    assert_eq!(source(&mut node).await, LogSource::Follows { what: path, of: 1 });
    node.tells("its line", |kind| {
        matches!(kind, EventKind::LogAdvanced { seq: 1, .. }).then_some(())
    })
    .await;
    place.end(node).await;
}

#[tokio::test]
async fn a_folder_is_no_log() {
    let place = Place::new();
    let path = place.home.path("folder").display().to_string();
    std::fs::create_dir(&path).unwrap();
    let mut node = place.start(LogPlace::File(path)).await;
    let told = source(&mut node).await;
    assert!(
        matches!(&told, LogSource::Absent { why, .. } if why == "it is a folder"),
        "{told:?}"
    );
    place.end(node).await;
}

#[tokio::test]
async fn a_file_of_which_only_the_end_was_read_says_how_much_was_not() {
    let place = Place::new();
    let path = place.home.path("server.log").display().to_string();
    let text = format!("{}\n", "x".repeat(999)).repeat(600);
    std::fs::write(&path, &text).unwrap();
    let mut node = place.start(LogPlace::File(path)).await;
    let told = flow(&mut node, |flow| flow.older.is_some()).await;
    assert_eq!(told.older, Some(Older::Bytes(Bytes(600_000 - 512 * 1024))));
    place.end(node).await;
}

#[tokio::test]
async fn a_command_that_is_not_found_is_said_to_be_so_once_in_the_shells_words() {
    let place = Place::new();
    let mut node = place.start(LogPlace::Command("no-such-program -f".into())).await;
    let LogSource::Absent { what, why, said } = source(&mut node).await else {
        panic!("it is told as read");
    };
    assert_eq!(
        (what.as_str(), why.as_str()),
        ("no-such-program -f", "the command is not found")
    );
    let said = said.unwrap();
    assert!(
        said.starts_with("/bin/sh: ") && said.contains("no-such-program"),
        "{said}"
    );
    // It is tried again: nothing of that is said anew, and what was said is no line of the log.
    for _ in 0..2 {
        node.tells("its end", |kind| {
            matches!(kind, EventKind::CommandDone(done) if done.exit == bringup::domain::command::Exit::Code(127))
                .then_some(())
        })
        .await;
    }
    let all = lines(&node);
    assert_eq!(all.len(), 1, "{all:?}");
    assert!(all[0].starts_with("… the shell says: /bin/sh: "), "{all:?}");
    place.end(node).await;
}

#[tokio::test]
async fn a_command_that_printed_a_log_is_its_source_however_it_ended() {
    for end in ["exit 3", "kill -9 $$"] {
        let place = Place::new();
        let line = format!("echo one; {end}");
        let mut node = place.start(LogPlace::Command(line.clone())).await;
        let follows = LogSource::Follows { what: line, of: 1 };
        assert_eq!(source(&mut node).await, follows);
        let mut ends = 0;
        let other = node.tells("its second end", |kind| match kind {
            EventKind::LogSource(other) => Some(Some(other)),
            EventKind::CommandDone(done) if done.stdout.is_empty() => {
                ends += 1;
                (ends == 2).then_some(None)
            }
            _ => None,
        });
        assert_eq!(other.await, None, "{end}");
        place.end(node).await;
    }
}

#[tokio::test]
async fn a_device_is_no_log() {
    let place = Place::new();
    let mut node = place.start(LogPlace::File("/dev/null".into())).await;
    let told = source(&mut node).await;
    assert!(
        matches!(&told, LogSource::Absent { why, .. } if why == "it is a device"),
        "{told:?}"
    );
    assert_eq!(lines(&node).iter().filter(|l| !l.starts_with('…')).count(), 0);
    place.end(node).await;
}

#[tokio::test]
async fn a_command_that_goes_on_is_followed_though_it_says_nothing() {
    let place = Place::new();
    let mut node = place.start(LogPlace::Command("exec sleep 1013".into())).await;
    let what = "exec sleep 1013".to_owned();
    assert_eq!(source(&mut node).await, LogSource::Follows { what, of: 1 });
    place.end(node).await;
}

/// A Docker of one container, whose answers are what small scripts print.
struct Docker<'a>(&'a Place);

/// The container's id.
const ID: &str = "77aa";

impl<'a> Docker<'a> {
    /// `logs` and `events` are scripts of the shell; the arguments of the command are theirs.
    fn new(place: &'a Place, logs: &str, events: &str) -> Self {
        let docker = Self(place);
        docker.says("ps", &format!("echo '{ID}|vllm-qwen35|Up 2 minutes|'"));
        docker.says("inspect", &format!("echo '{}'", Self::inspected("running", 0)));
        docker.says("logs", logs);
        docker.says("events", events);
        let script = format!("#!/bin/sh\n. {}/$1\n", place.home.path("").display());
        let path = docker.path();
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        docker
    }

    fn path(&self) -> String {
        self.0.home.path("docker").display().to_string()
    }

    /// What it answers to a word from now on.
    fn says(&self, word: &str, script: &str) {
        let path = self.0.home.path(word);
        let new = self.0.home.path(&format!("{word}.new"));
        std::fs::write(&new, script).unwrap();
        std::fs::rename(new, path).unwrap();
    }

    fn inspected(state: &str, code: i32) -> String {
        format!(
            "{{\"id\":\"{ID}\",\"name\":\"/vllm-qwen35\",\"image\":\"i\",\"status\":\"{state}\",\"code\":{code},\"oom\":false,\"pid\":1,\
             \"started\":\"2026-11-29T17:00:00Z\",\"restarts\":0,\"labels\":{{\"app\":\"vllm\"}}}}"
        )
    }

    async fn start(&self) -> Node {
        let mut config = config::parse(EXAMPLE, "config.example.toml").unwrap();
        config.container.docker = self.path();
        let target = self.0.home.target(self.0.server.listen().await);
        Node::start_with(&self.0.home, target, &Person::trusting(), config)
    }
}

/// Prints a line of the container's as Docker does, and goes on in silence.
const ONE_LINE: &str = "echo 2026-11-29T17:04:55.000000001Z one; exec sleep 1015";

#[tokio::test]
async fn docker_that_looks_for_its_place_is_said_to_be_waited_for() {
    let place = Place::new();
    // The first time the log is empty; then it ends with a line, and that is looked for.
    let docker = Docker::new(&place, "exec sleep 1014", "");
    let mut node = docker.start().await;
    let told = flow(&mut node, |flow| flow.seeks.is_some()).await;
    assert_eq!(told.seeks.map(|seeks| seeks.again), Some(false));
    docker.says(
        "logs",
        "case $* in *--since*) exec sleep 1016 ;; esac; echo 2026-11-29T17:04:55.000000001Z one",
    );
    place.server.drop_connections();
    let told = flow(&mut node, |flow| flow.seeks.is_some_and(|seeks| seeks.again)).await;
    assert_eq!(told.own, 0);
    assert_eq!(lines(&node), ["one"]);
    docker.says("logs", ONE_LINE);
    place.server.drop_connections();
    flow(&mut node, |flow| flow.seeks.is_none()).await;
    assert_eq!(lines(&node), ["one"]);
    place.end(node).await;
}

#[tokio::test]
async fn lines_that_docker_has_from_before_the_first_are_said_to_be_there() {
    let place = Place::new();
    let many = "case $* in *--until*) echo 2026-11-29T16:00:00.000000001Z old; exit ;; esac\n\
                i=0; while [ $i -lt 1000 ]; do i=$((i + 1)); echo 2026-11-29T17:04:55.000000001Z $i; done; exec sleep 1017";
    let docker = Docker::new(&place, many, "");
    let mut node = docker.start().await;
    let told = flow(&mut node, |flow| flow.older.is_some()).await;
    assert_eq!(told.older, Some(Older::Lines));
    place.end(node).await;
}

/// The log of a container that is removed under the reader, until its end stands there.
async fn removed(events: &str) -> Vec<String> {
    let place = Place::new();
    let docker = Docker::new(&place, ONE_LINE, events);
    let mut node = docker.start().await;
    node.tells("its line", |kind| {
        matches!(kind, EventKind::LogAdvanced { seq: 1, .. }).then_some(())
    })
    .await;
    docker.says(
        "logs",
        "echo 'Error response from daemon: No such container: vllm-qwen35' >&2; exit 1",
    );
    place.server.drop_connections();
    node.tells("its end", |kind| {
        matches!(kind, EventKind::ContainerEnded(_)).then_some(())
    })
    .await;
    let lines = lines(&node);
    docker.says("ps", "");
    node.tells("that there is none", |kind| {
        matches!(kind, EventKind::LogSource(LogSource::Nothing { .. })).then_some(())
    })
    .await;
    assert_eq!(self::lines(&node), lines, "it ended once");
    place.end(node).await;
    lines
}

#[tokio::test]
async fn a_container_that_was_removed_is_one_that_ended() {
    let told = removed("echo 1796000000000000003 die 0").await;
    assert_eq!(told, ["one", "… vllm-qwen35 ended with exit code 0"]);
}

#[tokio::test]
async fn an_end_whose_events_cannot_be_read_says_so() {
    let told = removed("echo 'Cannot connect to the Docker daemon at unix:///x.' >&2; exit 1").await;
    let end = "… vllm-qwen35 ended in a way that is not known: Docker's events could not be read (exit 1: Cannot connect to the Docker daemon at unix:///x.)";
    assert_eq!(told, ["one", end]);
}

/// A container that ended before the console came, of which only this is known: its last lines and its end stand in the log.
async fn ended_before(log: Wanted, listed: &str) {
    let place = Place::new();
    let docker = Docker::new(
        &place,
        "echo 2026-11-29T17:04:55.000000001Z last",
        "echo 1796000000000000003 die 3",
    );
    docker.says("ps", listed);
    docker.says("inspect", &format!("echo '{}'", Docker::inspected("exited", 3)));
    let mut config = config::parse(EXAMPLE, "config.example.toml").unwrap();
    config.container.docker = docker.path();
    config.container.name = "another".into();
    config.logs.head = LogPlace::Container(log);
    let target = place.home.target(place.server.listen().await);
    let mut node = Node::start_with(&place.home, target, &Person::trusting(), config);
    node.tells("its end", |kind| {
        matches!(kind, EventKind::ContainerEnded(_)).then_some(())
    })
    .await;
    assert_eq!(lines(&node), ["last", "… vllm-qwen35 ended with exit code 3"]);
    place.end(node).await;
}

#[tokio::test]
async fn a_container_that_ended_before_and_fits_a_pattern_shows_its_last_lines() {
    let listed = format!("echo '{ID}|vllm-qwen35|Exited (3) 5 minutes ago|'; echo '99bb|other|Exited (0) 1 hour ago|'");
    ended_before(Wanted::named("vllm-*"), &listed).await;
}

#[tokio::test]
async fn a_container_that_ended_before_and_has_the_label_shows_its_last_lines() {
    let listed = format!(
        "case $* in *'|{{{{if eq (.Label \"app\") \"vllm\"}}}}={{{{end}}}}|'*) ;; *) exit 9 ;; esac\n\
         echo '{ID}|vllm-qwen35|Exited (3) 5 minutes ago|=|'; echo '99bb|other|Exited (0) 1 hour ago||'"
    );
    let label = Wanted::Label {
        key: "app".into(),
        value: Some("vllm".into()),
    };
    ended_before(label, &listed).await;
}
