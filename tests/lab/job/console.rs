//! The console, run as the operator would run it: on the operator's network, headless, with a configuration made from a template.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::hosts::{self, Lab};
use super::outside;

/// Longest run of a command of the console; the limits of its waits end it far earlier.
const LIMIT: Duration = Duration::from_secs(5 * 60);

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_bringup");

/// The console on one configuration.
pub struct Console<'a> {
    lab: &'a Lab,
    config: PathBuf,
}

/// What came of a command.
#[derive(Debug)]
pub struct Run {
    /// The JSON objects that it printed.
    pub out: Vec<Value>,
    /// What it said on standard error.
    pub said: String,
    /// From its start to its end.
    pub took: Duration,
}

impl<'a> Console<'a> {
    /// Writes a configuration from a template. A placeholder that is not there is a mistake, and so is one that stays.
    pub fn new(lab: &'a Lab, name: &str, template: &str, placeholders: &[(&str, &str)]) -> Self {
        let keys = hosts::directory().join("keys");
        let keys = keys.to_str().unwrap();
        let mut text = template.replace("@KEYS@", keys);
        for (placeholder, value) in placeholders {
            assert!(text.contains(placeholder), "{name}: no {placeholder} in the template");
            text = text.replace(placeholder, value);
        }
        if let Some(at) = text.find("= \"@") {
            panic!(
                "{name}: not filled in: {}",
                &text[at..].lines().next().unwrap_or_default()
            );
        }
        let config = lab.home.path().join(format!("{name}.toml"));
        std::fs::write(&config, text).unwrap();
        Self { lab, config }
    }

    fn command(&self, args: &[&str]) -> Command {
        let home = self.lab.home.path();
        let mut command = hosts::script(&["op", PROGRAM, "--config"]);
        command.arg(&self.config).args(args);
        command.env("HOME", home).env("XDG_STATE_HOME", home.join("state"));
        command.env_remove("SSH_AUTH_SOCK");
        command
    }

    /// Runs a command to its end, which must be this exit code.
    pub fn run(&self, args: &[&str], exit: i32) -> Run {
        let start = Instant::now();
        let out = hosts::bounded(&mut self.command(args), LIMIT);
        let (stdout, said) = (
            String::from_utf8(out.stdout).unwrap(),
            String::from_utf8(out.stderr).unwrap(),
        );
        assert_eq!(out.status.code(), Some(exit), "{args:?}\n{stdout}\n{said}");
        let object = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{args:?}: {e} in {line}"));
        Run {
            out: stdout.lines().map(object).collect(),
            said,
            took: start.elapsed(),
        }
    }

    /// Starts a command that goes on; killing the child kills the console itself.
    pub fn start(&self, args: &[&str]) -> Child {
        let mut command = self.command(args);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// `status --json` with its exit code.
    pub fn status(&self, exit: i32) -> Value {
        self.run(&["status", "--json"], exit).only()
    }
}

impl Run {
    /// The one object that was printed.
    pub fn only(mut self) -> Value {
        assert_eq!(self.out.len(), 1, "{self:?}");
        self.out.remove(0)
    }

    /// Each step that is done: its title and how it ended.
    pub fn outcomes(&self) -> Vec<(&str, &str)> {
        let done = self.out.iter().filter(|e| e["event"] == "done");
        done.map(|e| (e["title"].as_str().unwrap(), e["outcome"].as_str().unwrap()))
            .collect()
    }

    /// The failure that ended it.
    pub fn failure(&self) -> &Value {
        let failed = self.out.iter().find(|e| e["event"] == "failed");
        failed.unwrap_or_else(|| panic!("nothing failed: {self:?}"))
    }
}

/// The status of a cluster that serves: ready, both nodes alive in Ray at their fabric addresses.
pub fn ready(console: &Console<'_>) -> Value {
    let status = console.status(0);
    assert_eq!(status["server"]["state"], "ready", "{status}");
    assert_eq!(status["ray"]["value"]["alive"], 2, "{status}");
    let nodes = status["ray"]["value"]["nodes"].as_array().unwrap();
    let mut seen: Vec<(&str, &str, bool)> = nodes
        .iter()
        .map(|n| {
            (
                n["node"].as_str().unwrap_or("?"),
                n["address"].as_str().unwrap_or("?"),
                n["alive"] == true,
            )
        })
        .collect();
    seen.sort_unstable();
    assert_eq!(
        seen,
        [("spark-1", "192.168.200.12", true), ("spark-2", "192.168.200.13", true)]
    );
    status
}

/// The throughput test: nothing fails, and its tokens are those that the server itself has counted meanwhile.
pub fn measure(lab: &Lab, console: &Console<'_>) {
    let before = outside::generated_tokens(lab);
    let result = console.run(&["bench", "--json"], 0).only();
    let grown = outside::generated_tokens(lab) - before;
    let figures = &result["bringup"];
    assert_eq!(
        (&result["completed"], &result["failed"]),
        (&Value::from(8), &Value::from(0)),
        "{result}"
    );
    assert_eq!(result["total_output_tokens"], 8 * 32, "{result}");
    assert_eq!(figures["tokens_counted_by_server"], true, "{result}");
    assert_eq!(figures["server_output_tokens"], 8 * 32, "{result}");
    assert_eq!(
        grown,
        8 * 32 + figures["other_output_tokens"].as_u64().unwrap(),
        "{result}"
    );
}
