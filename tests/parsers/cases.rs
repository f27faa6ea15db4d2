//! The folders of cases.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bringup::domain::command::{Exit, Output};
use bringup::domain::event::ProbeId;
use bringup::domain::ray::PlacementGroup;
use bringup::log::{Decoder, LineEdit, Ring, Stream};
use bringup::probe::{self, dashboard, prometheus};
use serde_json::{Value, json};

/// Folder of a probe's cases.
pub const PROBES: [(&str, ProbeId); 8] = [
    ("node", ProbeId::Node),
    ("image", ProbeId::Image),
    ("versions", ProbeId::Versions),
    ("ray", ProbeId::Ray),
    ("ray-status", ProbeId::RayStatus),
    ("inside", ProbeId::Inside),
    ("serve", ProbeId::Serve),
    ("verb", ProbeId::Verb),
];

#[test]
fn outputs_of_probes_come_to_facts_and_problems() {
    for (group, probe) in PROBES {
        run(group, |case| {
            let (facts, problems) = probe::parse(probe, &case.output());
            json!({ "facts": rounded(&facts), "problems": rounded(&problems) })
        });
    }
}

#[test]
fn answers_of_the_dashboard_come_to_membership() {
    run("dashboard", |case| {
        match dashboard::parse(&case.read("input").unwrap_or_default()) {
            Ok(facts) => rounded(&facts),
            Err(why) => json!({ "error": why }),
        }
    });
}

#[test]
fn placement_groups_of_the_dashboard_come_to_what_waits() {
    run("groups", |case| {
        match dashboard::groups(&case.read("input").unwrap_or_default()) {
            Ok(groups) => {
                json!({ "pending": rounded(&groups), "wants": groups.iter().map(PlacementGroup::wants).collect::<Vec<_>>() })
            }
            Err(why) => json!({ "error": why }),
        }
    });
}

#[test]
fn scrapes_come_to_samples() {
    run("prometheus", |case| {
        let (samples, bad) = prometheus::parse(&case.text("input"));
        let samples: Vec<Value> = samples
            .iter()
            .map(|s| {
                let labels: Vec<String> = s.labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
                // JSON has no word for NaN and infinity.
                json!([s.name, labels.join(" "), format!("{:?}", s.value)])
            })
            .collect();
        json!({ "bad": bad, "samples": samples })
    });
}

#[test]
fn logs_come_to_lines() {
    run("log", |case| {
        let mut ring = Ring::new(1 << 20);
        let mut decoder = Decoder::new();
        decoder.feed(Stream::Err, &case.read("input").unwrap_or_default(), &mut |e| {
            ring.apply(e)
        });
        decoder.finish(Stream::Err, &mut |e: LineEdit| ring.apply(e));
        ring.last(usize::MAX)
            .map(|line| match &line.bar {
                Some(bar) => json!({ "bar": bar.key, "percent": bar.percent, "text": line.plain() }),
                None => json!(line.plain()),
            })
            .collect()
    });
}

/// A folder with a case.
pub struct Case(PathBuf);

impl Case {
    /// Bytes of a file in it, if it is there.
    pub fn read(&self, name: &str) -> Option<Vec<u8>> {
        fs::read(self.0.join(name)).ok()
    }

    /// Text of a file in it; empty if it is not there.
    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name).unwrap_or_default()).unwrap()
    }

    /// Its output: `stdout`, `stderr`, and in `exit` a code or `timed out` (0 without the file).
    pub fn output(&self) -> Output {
        let exit = match self.text("exit").trim() {
            "" => Exit::Code(0),
            "timed out" => Exit::TimedOut,
            code => Exit::Code(code.parse().unwrap()),
        };
        output(
            self.read("stdout").unwrap_or_default(),
            self.read("stderr").unwrap_or_default(),
            exit,
        )
    }
}

/// An output of a command.
pub fn output(stdout: Vec<u8>, stderr: Vec<u8>, exit: Exit) -> Output {
    Output {
        stdout,
        stderr,
        dropped: 0,
        exit,
        took: Duration::from_millis(20),
    }
}

/// All cases of a group, by name.
pub fn cases(group: &str) -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(group);
    let mut found: Vec<PathBuf> = fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).collect();
    found.sort();
    assert!(!found.is_empty(), "no case in {}", folder.display());
    found.into_iter().map(Case).collect()
}

/// Runs every case of a group and reports all that differ.
fn run(group: &str, read: impl Fn(&Case) -> Value) {
    let mut wrong = Vec::new();
    for case in cases(group) {
        let actual = read(&case);
        let pretty = serde_json::to_string_pretty(&actual).unwrap() + "\n";
        let file = case.0.join("expected.json");
        if std::env::var_os("BRINGUP_BLESS").is_some() {
            fs::write(&file, &pretty).unwrap();
        }
        let expected: Value = serde_json::from_str(&case.text("expected.json")).unwrap_or_default();
        if actual != expected {
            wrong.push(format!("{}:\n{pretty}", case.0.display()));
        }
    }
    assert!(
        wrong.is_empty(),
        "these come to something else than expected:\n{}",
        wrong.join("\n")
    );
}

/// A value as the text of its JSON says it: a 32-bit float keeps its few digits.
fn rounded(value: &impl serde::Serialize) -> Value {
    serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap()
}
