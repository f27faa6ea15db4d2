//! The README says what the program does: its keys, its commands and flags, its files. And `tests/facts.md` says what holds each fact.

use std::collections::BTreeSet;
use std::path::Path;

use bringup::cli::Args;
use bringup::input::{self, Group};
use clap::{Command, CommandFactory};

const README: &str = include_str!("../README.md");

/// What stands between a pair of marks.
fn between<'a>(text: &'a str, open: &str, close: &str) -> Vec<&'a str> {
    let parts = text.split(open).skip(1);
    parts
        .filter_map(|part| part.split_once(close).map(|(inner, _)| inner))
        .collect()
}

/// The code spans of a text, blocks left out.
fn spans(text: &str) -> Vec<&str> {
    let outside_blocks: Vec<&str> = text.split("```").step_by(2).collect();
    outside_blocks
        .iter()
        .flat_map(|part| part.split('`').skip(1).step_by(2))
        .collect()
}

/// The rows of the table with this heading, as cells.
fn table(heading: &str) -> Vec<Vec<&'static str>> {
    let rows = README.lines().skip_while(|line| !line.starts_with(heading)).skip(2);
    let rows: Vec<Vec<&str>> = rows
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    assert!(!rows.is_empty(), "no table {heading}");
    rows
}

/// The keys that the in-app help lists.
fn help_keys() -> BTreeSet<String> {
    let lines = input::help().into_iter().flat_map(|(_, bindings)| bindings);
    lines.flat_map(|b| b.keys.split(' ').map(str::to_owned)).collect()
}

#[test]
fn every_key_of_the_readme_is_in_the_help_and_every_action_is_in_the_readme() {
    let told: BTreeSet<String> = table("| key |")
        .iter()
        .flat_map(|row| row.iter().flat_map(|cell| spans(cell)))
        .filter(|span| !span.contains(' '))
        .map(str::to_owned)
        .collect();
    let known = help_keys();
    let unknown: Vec<&String> = told.difference(&known).filter(|k| *k != "1" && *k != "9").collect();
    assert!(unknown.is_empty(), "not in the help: {unknown:?} of {known:?}");
    for (group, bindings) in input::help() {
        if group == Group::Cluster {
            for binding in bindings
                .iter()
                .filter(|b| b.keys.len() == 1 && b.keys.chars().all(char::is_uppercase))
            {
                assert!(told.contains(binding.keys), "{} is not in the README", binding.keys);
            }
        }
    }
}

#[test]
fn every_command_is_in_the_readme_and_every_flag_of_the_readme_exists() {
    let program = Args::command();
    let rows = table("| command |");
    let told: BTreeSet<&str> = rows
        .iter()
        .filter_map(|row| spans(row[0]).first()?.strip_prefix("bringup ")?.split(' ').next())
        .collect();
    let real: BTreeSet<&str> = program.get_subcommands().map(Command::get_name).collect();
    assert_eq!(told, real);
    let flags = |c: &Command| -> Vec<String> {
        c.get_arguments()
            .filter_map(|a| a.get_long().map(|l| format!("--{l}")))
            .collect()
    };
    for row in &rows {
        let spans = spans(row[0]);
        let name = spans[0].strip_prefix("bringup ").unwrap().split(' ').next().unwrap();
        let command = program.find_subcommand(name).unwrap();
        let mut known = flags(command);
        known.extend(flags(&program));
        for flag in row[1..]
            .iter()
            .flat_map(|cell| self::spans(cell))
            .filter(|s| s.starts_with("--"))
        {
            assert!(known.iter().any(|k| k == flag), "{name} has no {flag}");
        }
    }
}

#[test]
fn every_file_that_the_readme_points_to_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let links = between(README, "](", ")");
    assert!(links.iter().any(|l| l.starts_with("assets/")), "no picture");
    for link in links.iter().filter(|l| !l.contains("://")) {
        assert!(root.join(link).is_file(), "{link}");
    }
}

#[test]
fn the_pictures_are_frames_of_the_console() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets");
    for (file, words) in [("plan", "plan:"), ("loading", "weights"), ("test", "TTFT")] {
        let picture = std::fs::read_to_string(folder.join(format!("{file}.svg"))).unwrap();
        assert!(
            picture.starts_with("<svg") && picture.contains(&format!(">{words}</text>")),
            "{file}"
        );
    }
}

#[test]
fn the_short_configuration_of_the_readme_is_whole_and_needs_each_of_its_keys() {
    let files = between(README, "```toml\n", "```");
    let [file] = files.as_slice() else { panic!("{files:?}") };
    if let Err(problems) = bringup::config::parse(file, "README.md") {
        panic!("{problems:?}");
    }
    // The way in is what most clusters of this kind need, not what the program demands.
    let optional = ["user =", "jump ="];
    let lines: Vec<&str> = file.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        if !line.contains('=') || optional.iter().any(|key| line.starts_with(key)) {
            continue;
        }
        let without: Vec<&str> = lines
            .iter()
            .enumerate()
            .filter(|(i, _)| *i != at)
            .map(|(_, l)| *l)
            .collect();
        assert!(
            bringup::config::parse(&without.join("\n"), "README.md").is_err(),
            "it is well without `{line}`"
        );
    }
}

#[test]
fn every_fact_that_was_seen_has_a_test_that_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut facts = 0;
    for line in include_str!("facts.md").lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').collect();
        if cells == [" seen ", " held by "] {
            continue;
        }
        facts += 1;
        assert_eq!(cells.len(), 2, "{line}");
        let held = spans(cells[1]);
        assert!(!held.is_empty(), "{line}");
        for place in held {
            let (file, test) = place.split_once("::").map_or((place, None), |(f, t)| (f, Some(t)));
            let path = root.join(file);
            assert!(path.exists(), "{place}");
            if let Some(test) = test {
                let text = std::fs::read_to_string(&path).unwrap();
                assert!(text.contains(&format!("fn {test}(")), "{place}");
            }
        }
    }
    assert!(facts > 0, "no fact");
}
