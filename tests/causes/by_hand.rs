//! What is offered to be run for a cause, from the operator's own shell.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use bringup::diagnose::builtin;
use bringup::domain::sign::{Sign, SignKind};

use crate::told::{Told, WORKER};

/// In place of `ssh`: it prints how many words it was given and the last two.
const SSH: &str = "#!/bin/sh\nn=$#\nwhile [ $# -gt 2 ]; do shift; done\nprintf '%s\\n%s\\n%s' \"$n\" \"$1\" \"$2\"\n";

#[test]
fn what_every_rule_offers_to_run_runs_from_the_operators_shell_on_the_node_that_it_is_for() {
    let folder = tempfile::tempdir().expect("a directory");
    let ssh = folder.path().join("ssh");
    std::fs::write(&ssh, SSH).expect("a program");
    std::fs::set_permissions(&ssh, PermissionsExt::from_mode(0o755)).expect("it may run");
    let shell = |words: &[&str]| {
        let mut command = Command::new("/bin/sh");
        command.args(words).env("PATH", folder.path());
        let output = command.output().expect("the shell runs");
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    let mut seen = 0;
    for rule in builtin().iter() {
        let Some(command) = &rule.command else { continue };
        seen += 1;
        let value = |name: &&str| ((*name).to_owned(), "it's a value; of $A line".to_owned());
        let values = command.names().iter().map(value).collect();
        let mut told = Told::new();
        let sign = Sign {
            what: SignKind::Rule(rule.id.clone()),
            text: "a line".to_owned(),
            written: None,
            backlog: false,
            fields: values,
            times: 1,
        };
        told.sign(WORKER, sign);
        let causes = told.causes();
        let cause = causes
            .iter()
            .find(|c| c.rule.as_ref() == Some(&rule.id))
            .expect("the cause");
        let (node, line) = cause.command.clone().expect("its command");
        let by_hand = told.by_hand(cause).expect("a line to copy");
        let said = shell(&["-c", &by_hand]);
        let host = ["aurora@192.168.200.12", "aurora@192.168.200.13"][node.index()];
        let (words, rest) = said.split_once('\n').expect("lines");
        assert_eq!(rest, format!("{host}\n{line}"), "{}: {by_hand}", rule.id);
        // The way through the jump host, and a terminal where sudo may want one.
        let terminal = usize::from(line.contains("sudo "));
        assert_eq!(words, (4 + terminal).to_string(), "{}: {by_hand}", rule.id);
        // The node's own shell can read it.
        shell(&["-n", "-c", &line]);
        assert!(!line.contains(" save "), "{}: no image onto a terminal", rule.id);
        // Without both it waits for what comes, and tells nothing of what was.
        let waits = line.contains(" events ") && !(line.contains(" --since ") && line.contains(" --until 0s "));
        assert!(!waits, "{}: {line}", rule.id);
        let status = told.status();
        let told_there = status["causes"].as_array().expect("a list");
        assert!(
            told_there.iter().any(|c| c["command"]["by_hand"] == by_hand.as_str()),
            "{status:#}"
        );
    }
    assert!(seen > 20, "{seen}");
}
