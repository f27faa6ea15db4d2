//! Plans: what is wanted and what is seen (`fixtures/plans/*.toml`) gives the text of a plan; every refusal has a case.
//!
//! The step machine's own tests stand beside it, in `src/plan/machine`.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

#[path = "plans/case.rs"]
mod case;
#[path = "plans/shell.rs"]
mod shell;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use bringup::config::Config;
use bringup::domain::{Now, Stamp, Wall};
use bringup::plan::{self, Condition, Plan, PlannedCommand, Step};

use case::Case;

const NOW: Now = Now {
    stamp: Stamp(60_000),
    wall: Wall(1_764_444_000_000),
};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/plans")
}

/// All cases with their names, in the order of their names.
fn cases() -> Vec<(String, Case)> {
    let mut all: Vec<(String, Case)> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path).unwrap();
            let case = toml::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
            (name, case)
        })
        .collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

fn made(case: &Case) -> (Plan, Config) {
    let config = case.config();
    let observed = case.observed(&config);
    (plan::make(case.action(), &config, &observed, NOW), config)
}

#[test]
fn every_case_gives_its_plan() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("plans/snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let all = cases();
    assert!(all.len() > 20, "the cases are not there");
    for (name, case) in all {
        let (plan, config) = made(&case);
        settings.set_description(case.about.clone());
        settings.bind(|| insta::assert_snapshot!(name.as_str(), text(&plan, &config)));
    }
}

#[test]
fn a_plan_that_is_refused_says_why_and_what_to_do() {
    for (name, case) in cases() {
        let (plan, _) = made(&case);
        let refused: Vec<&str> = plan.refusals.iter().map(|r| r.text.as_str()).collect();
        assert_eq!(refused.len(), case.refusals.len(), "{name}: {refused:?}");
        for (seen, part) in refused.iter().zip(&case.refusals) {
            assert!(seen.contains(part.as_str()), "{name}: {seen:?} does not say {part:?}");
        }
        for refusal in &plan.refusals {
            assert!(refusal.fix.is_some(), "{name}: no fix for {:?}", refusal.text);
            assert!(!refusal.text.ends_with('.'), "{name}: {:?}", refusal.text);
        }
    }
}

#[test]
fn steps_are_numbered_bounded_and_their_commands_read_back() {
    for (name, case) in cases() {
        let (plan, config) = made(&case);
        for (place, step) in plan.steps.iter().enumerate() {
            assert_eq!(usize::from(step.id.0), place, "{name}");
            assert!(!step.limit.is_zero(), "{name}: {} has no limit", step.title);
            for planned in step.commands.iter().chain(&step.finally).chain(&step.evidence) {
                assert!(config.node(planned.node).is_some(), "{name}");
                assert!(!planned.command.limit.time.is_zero(), "{name}");
                let (id, args) = bringup::domain::command::Command::parse(&planned.command.render()).unwrap();
                assert_eq!(id, planned.command.id, "{name}");
                assert_eq!(args, planned.command.args, "{name}");
            }
        }
    }
}

#[test]
fn no_plan_touches_what_is_not_ours() {
    for (name, case) in cases() {
        let (plan, config) = made(&case);
        let observed = case.observed(&config);
        let script = matches!(config.engine, bringup::config::types::Engine::Script(_));
        for step in plan.steps.iter().filter(|_| !script) {
            for planned in &step.commands {
                let args = &planned.command.args;
                let stops = args.iter().any(|a| a == "stop" || a == "rm");
                let containers = observed.node(planned.node).and_then(|n| n.containers.value());
                for container in containers.into_iter().flat_map(|c| &c.containers) {
                    let foreign = container.ours.as_ref().is_none_or(|l| l.cluster != config.cluster);
                    assert!(
                        !(stops && foreign && args.contains(&container.name)),
                        "{name}: {args:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_plan_can_be_copied_as_a_shell_script() {
    let case = cases()
        .into_iter()
        .find(|(name, _)| name == "up-from-nothing-uneven")
        .unwrap()
        .1;
    let (plan, config) = made(&case);
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("plans/snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("script", masked(&plan::script(&plan, &config), &config)));
}

#[test]
fn a_copied_stop_goes_on_where_a_container_went_by_itself() {
    let case = cases().into_iter().find(|(name, _)| name == "stop-all").unwrap().1;
    let (plan, config) = made(&case);
    let folder = tempfile::tempdir().unwrap();
    let program = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    };
    // Every node is this machine.
    program(
        "ssh",
        "#!/bin/sh\nfor last; do :; done\n[ \"$last\" = -s ] && exec /bin/sh -s\nexec /bin/sh -c \"$last\"\n",
    );
    let run = |left: &str| {
        let docker = format!(
            "#!/bin/sh\ncase $1 in\nrm) echo 'No such container' >&2; exit 1 ;;\nps) printf '%s' '{left}' ;;\nexec) cat >/dev/null ;;\nesac\n"
        );
        program("docker", &docker);
        let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
        let mut sh = std::process::Command::new("/bin/sh");
        sh.args(["-c", &plan::script(&plan, &config)]).env("PATH", path);
        sh.output().unwrap()
    };
    let gone = run("");
    assert!(gone.status.success(), "{}", String::from_utf8_lossy(&gone.stderr));
    assert_eq!(run("3f9a").status.code(), Some(1), "one that is left is not stopped");
}

/// A plan as text, with all that it holds.
fn text(plan: &Plan, config: &Config) -> String {
    let mut out = String::new();
    for note in &plan.notes {
        writeln!(out, "note: {note}").unwrap();
    }
    for refusal in &plan.refusals {
        writeln!(out, "refused: {}", refusal.text).unwrap();
        if let Some(fix) = &refusal.fix {
            writeln!(out, "    fix: {fix}").unwrap();
        }
    }
    for step in &plan.steps {
        write_step(&mut out, step, config);
    }
    masked(&out, config)
}

fn write_step(out: &mut String, step: &Step, config: &Config) {
    let seconds = |d: std::time::Duration| d.as_secs();
    write!(out, "\n{} {} [{}s", step.id.0, step.title, seconds(step.limit)).unwrap();
    if !step.settle.is_zero() {
        write!(out, ", stays {}s", seconds(step.settle)).unwrap();
    }
    if let Some(stall) = step.stall {
        write!(out, ", stall {}s", seconds(stall)).unwrap();
    }
    out.push_str("]\n");
    let mut conditions = |word: &str, all: &[Condition]| {
        for condition in all {
            writeln!(out, "    {word}: {}", condition.text(config)).unwrap();
        }
    };
    conditions("before", &step.before);
    conditions("under way", &step.under_way);
    conditions("after", &step.after);
    conditions("broken by", &step.broken_by);
    let mut commands = |word: &str, all: &[PlannedCommand]| {
        for planned in all {
            let secret = planned.command.secret.as_ref();
            let secret = secret.map(|s| format!(" ({} from {})", s.name, s.from.words()));
            writeln!(
                out,
                "    {word} {}{}: {}",
                config.node_name(planned.node),
                secret.unwrap_or_default(),
                planned.command.line()
            )
            .unwrap();
        }
    };
    commands("run on", &step.commands);
    commands("finally on", &step.finally);
    commands("if it fails, on", &step.evidence);
}

/// Hashes by their meaning: they change with every change of the configuration's types.
fn masked(text: &str, config: &Config) -> String {
    let mut text = text.replace(&config.serve_hash(), "SERVE-HASH");
    for node in config.node_ids() {
        text = text.replace(&config.container_hash(node), &format!("HASH-{}", node.0));
    }
    text
}
