//! The program against the embedded demo cluster, without the screen: the whole job from another process.

#![expect(clippy::expect_used, reason = "a test that did not get what it needs says what")]

#[path = "schema/check.rs"]
mod check;

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

/// Times that a status is asked for before its exit code counts.
const STATUS_TRIES: usize = 5;

/// The demo cluster in a process of its own; it ends with the value.
struct Demo {
    cluster: Child,
    config: PathBuf,
    state: tempfile::TempDir,
}

impl Demo {
    fn start(speed: &str) -> Self {
        let mut cluster = Command::new(env!("CARGO_BIN_EXE_bringup"))
            .args(["demo", "--serve-only", "--speed", speed])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let mut line = String::new();
        let out = cluster.stdout.take().expect("standard output is a pipe");
        BufReader::new(out).read_line(&mut line).expect("the first line comes");
        let config = PathBuf::from(line.trim());
        assert!(config.is_file(), "the first line is the path of a config: {line:?}");
        Self {
            cluster,
            config,
            state: tempfile::tempdir().expect("a directory for the console's files"),
        }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bringup"));
        if !args.contains(&"--config") {
            command.arg("--config").arg(&self.config);
        }
        command
            .args(args)
            .env("XDG_STATE_HOME", self.state.path())
            .stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the program runs")
    }

    /// Runs and demands an exit code.
    fn expect(&self, args: &[&str], code: i32) -> Output {
        let output = self.run(args);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{args:?}\nstdout: {}\nstderr: {}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        output
    }

    /// The status, once it exits with `code`. On a machine that is busy with other tests a node may not answer at once.
    fn status(&self, code: i32) -> Value {
        let tries = 1..STATUS_TRIES;
        let mut outputs = tries.map(|_| self.run(&["status", "--json"]));
        let output = outputs.find(|output| output.status.code() == Some(code));
        let output = output.unwrap_or_else(|| self.expect(&["status", "--json"], code));
        let status = serde_json::from_slice(&output.stdout).expect("status prints one JSON object");
        check::Checker::new().demand("what status prints", &status);
        status
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // Asked to end, it takes its keys along. One that has ended already needs no asking.
        if self.cluster.try_wait().is_ok_and(|ended| ended.is_none()) {
            signal("-TERM", &self.cluster);
        }
        let _gone = self.cluster.wait();
    }
}

fn signal(name: &str, process: &Child) {
    let sent = Command::new("kill").args([name, &process.id().to_string()]).status();
    assert!(sent.expect("kill runs").success());
}

fn lines(output: &[u8]) -> Vec<Value> {
    output
        .split(|b| *b == b'\n')
        .filter(|l| !l.is_empty())
        .map(|l| serde_json::from_slice(l).expect("each line is a JSON object"))
        .collect()
}

/// `outcome` of each step that is done, by its kind in the plan.
fn outcomes(events: &[Value]) -> Vec<(String, String)> {
    let plan = events
        .iter()
        .find(|e| e["event"] == "plan")
        .expect("the plan comes first");
    let kind = |e: &Value| {
        let step = usize::try_from(e["step"].as_u64().expect("a step has a number")).expect("a small number");
        plan["steps"][step]["kind"]
            .as_str()
            .expect("a step has a kind")
            .to_owned()
    };
    let done = events.iter().filter(|e| e["event"] == "done");
    done.map(|e| (kind(e), e["outcome"].as_str().expect("done has an outcome").to_owned()))
        .collect()
}

#[test]
fn the_whole_job_from_another_process() {
    let demo = Demo::start("30");

    let before = demo.status(4);
    assert_eq!(before["server"]["state"], "down");
    assert_eq!(before["server"]["generated_tokens"]["value"], Value::Null);
    assert!(
        before["server"]["generated_tokens"]["reason"].is_string(),
        "null comes with a reason"
    );

    let up = lines(&demo.expect(&["up", "--yes", "--json"], 0).stdout);
    assert_eq!(up.last().map(|e| e["outcome"].clone()), Some("done".into()));
    assert!(outcomes(&up).contains(&("serve".into(), "success".into())), "{up:#?}");
    let steps = up.iter().find_map(|e| e["steps"].as_array()).expect("a plan");
    assert!(
        steps.iter().all(|s| s["kind"] != "pull"),
        "the image is there: {steps:#?}"
    );

    let status = demo.status(0);
    assert_eq!(status["server"]["state"], "ready");
    assert_eq!(status["ray"]["value"]["alive"], 2);
    for node in status["ray"]["value"]["nodes"].as_array().expect("a list of nodes") {
        assert_eq!(node["alive"], true, "{node}");
        assert!(node["node"].is_string(), "each address is one of the config's: {node}");
    }
    assert!(
        status["server"]["tokens_per_second"]["generation"]["value"].is_number(),
        "{status:#}"
    );

    let bench: Value = serde_json::from_slice(&demo.expect(&["bench", "--json"], 0).stdout).expect("one JSON object");
    assert_eq!(bench["failed"], 0);
    let tokens = bench["total_output_tokens"].as_u64().expect("a count");
    assert!(tokens > 0);
    assert_eq!(
        bench["bringup"]["server_output_tokens"].as_u64(),
        Some(tokens),
        "{bench:#}"
    );

    // How long the demo took is none of what a real cluster's time left is told from.
    let own = demo.config.parent().expect("a folder").join("loads.json");
    let kept = std::fs::read_to_string(&own).expect("the demo keeps its loads beside its configuration");
    assert!(kept.contains("\"model\""), "{kept}");
    assert!(!demo.state.path().join("bringup/loads.json").exists());

    demo.expect(&["down", "--yes"], 0);
    assert_eq!(demo.status(4)["server"]["state"], "down");
}

#[test]
fn the_schema_of_the_status_is_printed_without_a_configuration() {
    let output = Command::new(env!("CARGO_BIN_EXE_bringup"))
        .args(["--config", "/nowhere", "status", "--schema"])
        .output()
        .expect("the program runs");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stdout), bringup::report::STATUS_SCHEMA);
}

#[test]
fn own_rules_that_can_not_be_read_are_told_by_the_check_with_their_place() {
    let folder = tempfile::tempdir().expect("a directory");
    let (config, rules) = (folder.path().join("config.toml"), folder.path().join("rules.toml"));
    let named = format!("[diagnose]\nrules = \"{}\"", rules.display());
    let text = bringup::config::EXAMPLE.replace("[diagnose]", &named);
    std::fs::write(&config, text).expect("the config can be written");
    let check = |rule: &str| {
        std::fs::write(&rules, rule).expect("the rules can be written");
        let output = Command::new(env!("CARGO_BIN_EXE_bringup"))
            .arg("--config")
            .arg(&config)
            .args(["config", "check"])
            .output()
            .expect("the program runs");
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    };
    let good = "[[rule]]\nid = \"mine\"\nkind = \"quiet\"\nsign = [{ has = \"some of our words\" }]\n";
    let (code, _, told) = check(good);
    assert_eq!(code, Some(0));
    assert!(told.contains("rules   1 of your own in /"), "{told}");
    let (code, said, _) = check(&good.replace("quiet", "loud"));
    assert_eq!(code, Some(2));
    assert!(
        said.starts_with(&format!("{}:3:8: unknown variant `loud`", rules.display())),
        "{said}"
    );
    // The form is at hand without a configuration.
    let output = Command::new(env!("CARGO_BIN_EXE_bringup"))
        .args(["--config", "/nowhere", "config", "rules"])
        .output()
        .expect("the program runs");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stdout), bringup::diagnose::BUILTIN);
}

#[test]
fn nobody_to_confirm_is_a_usage_error_and_runs_nothing() {
    let demo = Demo::start("30");
    demo.expect(&["up"], 2);
    assert_eq!(demo.status(4)["server"]["state"], "down");
}

#[test]
fn stopping_the_server_keeps_the_cluster() {
    let demo = Demo::start("60");
    demo.expect(&["up", "--yes"], 0);
    demo.expect(&["down", "--serve", "--yes"], 0);
    let status = demo.status(4);
    assert_eq!(status["server"]["state"], "down");
    assert_eq!(status["ray"]["value"]["alive"], 2);
    let again = lines(&demo.expect(&["up", "--yes", "--json"], 0).stdout);
    let outcomes = outcomes(&again);
    assert!(outcomes.contains(&("head".into(), "skipped".into())), "{outcomes:?}");
    assert!(outcomes.contains(&("join".into(), "skipped".into())), "{outcomes:?}");
    assert!(outcomes.contains(&("serve".into(), "success".into())), "{outcomes:?}");
}

#[test]
fn a_node_that_is_lost_keeps_no_other_from_being_stopped() {
    let demo = Demo::start("60");
    demo.expect(&["up", "--yes"], 0);
    let text = std::fs::read_to_string(&demo.config).expect("the config is there");
    let lost = text.replace("\naddress = \"192.168.200.13\"", "\naddress = \"192.168.200.99\"");
    assert_ne!(text, lost, "the worker's address is in the config");
    let path = demo.state.path().join("lost.toml");
    std::fs::write(&path, lost).expect("the config can be written");
    let path = path.to_string_lossy();
    let output = demo.expect(&["--config", &path, "down", "--yes"], 3);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("spark-2"), "{said}");

    let status = demo.status(4);
    let container = |node: usize| status["nodes"][node]["container"]["value"]["state"].clone();
    assert_eq!(container(0), Value::Null, "the head was stopped: {status:#}");
    assert_eq!(container(1), "running", "nobody could stop the worker: {status:#}");
    demo.expect(&["down", "--yes"], 0);
}

#[test]
fn a_console_killed_in_mid_load_is_followed_by_one_that_adopts_the_load() {
    let demo = Demo::start("1.5");
    let mut first = demo
        .command(&["up", "--yes", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let events = BufReader::new(first.stdout.take().expect("standard output is a pipe"));
    let mut serve = None;
    for line in events.lines() {
        let event: Value = serde_json::from_str(&line.expect("a line")).expect("a JSON object");
        if event["event"] == "plan" {
            let steps = event["steps"].as_array().expect("steps").clone();
            serve = steps.iter().position(|s| s["kind"] == "serve");
        }
        // Its first progress: the command has run and the load is under way.
        if event["step"].as_u64().map(|n| n as usize) == serve && event["event"] == "progress" {
            break;
        }
    }
    first.kill().expect("SIGKILL");
    first.wait().expect("it ends");

    let status = demo.status(4);
    assert_eq!(status["server"]["state"], "loading", "{status:#}");
    assert!(status["nodes"][0]["load"]["stage"].is_string(), "{status:#}");

    let third = demo
        .command(&["up", "--yes", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    interrupted_says_what_goes_on(third);

    let second = lines(&demo.expect(&["up", "--yes", "--json"], 0).stdout);
    let told = |e: &Value| e["event"] == "progress" && e.to_string().contains("load: ");
    assert!(second.iter().any(told), "nothing is told of the load: {second:#?}");
    let outcomes = outcomes(&second);
    assert!(outcomes.contains(&("head".into(), "skipped".into())), "{outcomes:?}");
    assert!(outcomes.contains(&("join".into(), "skipped".into())), "{outcomes:?}");
    assert!(outcomes.contains(&("serve".into(), "adopted".into())), "{outcomes:?}");
}

/// A console that is interrupted while it waits for the load says that the containers and the server go on.
fn interrupted_says_what_goes_on(mut console: Child) {
    let mut told = BufReader::new(console.stdout.take().expect("standard output is a pipe"));
    let mut lines = String::new();
    while !lines.contains("load: ") {
        assert_ne!(told.read_line(&mut lines).expect("a line"), 0, "{lines}");
    }
    signal("-INT", &console);
    let mut rest = String::new();
    told.read_to_string(&mut rest).expect("all of it");
    let last = rest.lines().last().expect("a last object");
    let last: Value = serde_json::from_str(last).expect("a JSON object");
    assert_eq!(
        (last["event"].as_str(), last["outcome"].as_str()),
        (Some("over"), Some("interrupted")),
        "{last:#}"
    );
    assert!(
        last["left"].to_string().contains("left running on spark-2: container "),
        "{last:#}"
    );
    let mut text = String::new();
    let mut said = console.stderr.take().expect("standard error is a pipe");
    said.read_to_string(&mut text).expect("all of it");
    assert_eq!(console.wait().expect("it ends").code(), Some(130), "{text}");
    for node in ["spark-1", "spark-2"] {
        assert!(text.contains(&format!("left running on {node}: container ")), "{text}");
    }
    assert!(
        text.contains("left running on spark-1: the model server, loading"),
        "{text}"
    );
}

#[test]
fn a_cluster_whose_terminal_is_gone_leaves_no_key_behind() {
    let mut demo = Demo::start("30");
    let folder = demo.config.parent().expect("a folder").to_owned();
    assert!(folder.is_dir());
    signal("-HUP", &demo.cluster);
    assert_eq!(demo.cluster.wait().expect("it ends").code(), Some(143));
    assert!(!folder.exists(), "{}", folder.display());
}

#[test]
fn what_a_killed_cluster_left_goes_when_another_starts() {
    let mut killed = Demo::start("30");
    let folder = killed.config.parent().expect("a folder").to_owned();
    assert!(folder.is_dir());
    killed.cluster.kill().expect("SIGKILL");
    killed.cluster.wait().expect("it ends");
    let next = Demo::start("30");
    assert!(!folder.exists(), "{}", folder.display());
    assert!(next.config.is_file());
}

#[test]
fn a_log_that_can_not_be_written_keeps_nobody_from_looking() {
    let demo = Demo::start("30");
    let output = demo
        .command(&["status", "--json"])
        .env("XDG_STATE_HOME", "/dev/null/nowhere")
        .output()
        .expect("the program runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("no log file"), "{said}");
    let status: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert_eq!(status["server"]["state"], "down");
}

#[test]
#[cfg(target_os = "linux")]
fn a_result_that_could_not_be_written_is_a_failure() {
    for words in [
        &["config", "example"][..],
        &["demo", "--serve-only"],
        &["--help"],
        &["--version"],
    ] {
        let full = std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .expect("the full device");
        let output = Command::new(env!("CARGO_BIN_EXE_bringup"))
            .args(words)
            .stdout(full)
            .stderr(Stdio::piped())
            .output()
            .expect("the program runs");
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            said.contains("standard output could not be written"),
            "{words:?}: {said}"
        );
    }
}
