//! `status` from a console that comes to a load which nobody has watched, against the demo cluster.

#![expect(clippy::expect_used, reason = "a test that did not get what it needs says what")]

#[path = "schema/check.rs"]
mod check;

use std::process::{Command, Stdio};
use std::time::Duration;

use bringup::sim::{Cluster, Options, Trouble};
use serde_json::Value;

/// How long the load has gone on when the console comes.
const LOADS_FOR: Duration = Duration::from_secs(700);

/// What `status --json` says of a load with this trouble, and the end of what `status` says.
fn status(trouble: Trouble) -> (Value, String) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let options = Options {
        trouble: Some(trouble),
        loads_for: Some(LOADS_FOR - Duration::from_secs(if trouble == Trouble::Stalls { 0 } else { 300 })),
        ..Options::default()
    };
    let cluster = runtime.block_on(Cluster::start(options)).expect("the cluster starts");
    let state = tempfile::tempdir().expect("a directory for the console's files");
    let say = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_bringup"))
            .arg("--config")
            .arg(cluster.config_path())
            .args(args)
            .env("XDG_STATE_HOME", state.path())
            .stdin(Stdio::null())
            .output()
            .expect("the program runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let json = say(&["status", "--json"]);
    let status = serde_json::from_str(&json).expect("status prints one JSON object");
    check::Checker::new().demand("what status prints", &status);
    let text = say(&["status"]);
    runtime.block_on(cluster.shutdown());
    (status, text)
}

/// A number of the answer between two bounds.
fn between(value: &Value, least: f64, most: f64) {
    let number = value.as_f64();
    assert!(
        number.is_some_and(|n| (least..most).contains(&n)),
        "{value} is not from {least} to {most}"
    );
}

#[test]
fn a_load_that_has_been_dead_for_long_is_stalled_for_who_has_just_come() {
    let (status, text) = status(Trouble::Stalls);
    assert_eq!(status["server"]["state"], "loading");
    let load = &status["load"];
    assert_eq!(
        (&load["stage"], &load["verdict"]["verdict"]),
        (&"weights".into(), &"stalled".into()),
        "{load}"
    );
    // Its last line came 25 s after its start, and that 10 s after the cluster's.
    let silent = LOADS_FOR.as_secs_f64() - 35.0;
    between(&load["verdict"]["for_s"], silent - 5.0, silent + 60.0);
    between(&load["stage_for_s"], silent + 5.0, silent + 75.0);
    between(&status["server"]["since_s"], silent + 10.0, silent + 90.0);
    assert_eq!(status["server"]["only_known_since"], false);
    between(&status["nodes"][0]["log"]["age_s"], silent - 5.0, silent + 60.0);
    between(&status["nodes"][0]["clock"]["value"]["ahead_s"], -2.0, 2.0);
    assert!(text.contains("load is stalled for 11m"), "{text}");
}

#[test]
fn a_model_that_comes_without_a_line_is_waited_for_and_not_called_dead() {
    let (status, text) = status(Trouble::SilentDownload);
    let load = &status["load"];
    assert_eq!(
        (&load["stage"], &load["verdict"]["waits_for"]),
        (&"download".into(), &"the model's files".into()),
        "{load}"
    );
    // One look tells nothing of whether it comes from the hub.
    assert_eq!(load["stage_guessed"], true);
    assert!(
        text.contains("load is waiting for the model's files: no line for 6m"),
        "{text}"
    );
}
