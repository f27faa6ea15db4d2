//! The file of rules, and what is said of a bad one.

use crate::diagnose::{Kind, builtin, parse};

const BUILTIN: &str = include_str!("../../../assets/rules.toml");

#[test]
fn the_rules_that_come_with_the_program_can_be_read() {
    let rules = parse(BUILTIN, "assets/rules.toml").unwrap_or_else(|problems| {
        let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
        panic!("\n{}\n", all.join("\n"))
    });
    assert_eq!(rules.iter().count(), builtin().iter().count());
    assert!(rules.iter().any(|r| r.kind == Kind::Cause));
}

#[test]
fn every_fact_has_one_rule() {
    use crate::diagnose::FactName as F;
    let all = [
        F::RayAddressDiffers,
        F::GpusTooFew,
        F::MemoryFloor,
        F::PortTaken,
        F::NameTaken,
        F::GpuTaken,
        F::VersionsDiffer,
        F::ImagesDiffer,
        F::ImageMissing,
        F::FabricAddressMissing,
        F::NodeNotAnswering,
        F::WorkerLeft,
        F::ContainerKilled,
        F::ContainerEnded,
        F::ContainerRestarts,
        F::HealthFails,
    ];
    for name in all {
        let rules = builtin().iter().filter(|r| r.facts.contains(&name)).count();
        assert_eq!(rules, 1, "{name:?}");
    }
}

/// One rule with this body, and what is wrong with it.
fn wrong(body: &str) -> Vec<String> {
    match parse(body, "rules.toml") {
        Ok(_) => Vec::new(),
        Err(problems) => problems.iter().map(ToString::to_string).collect(),
    }
}

#[test]
fn a_bad_rule_is_told_with_its_place() {
    let rule = |body: &str| format!("[[rule]]\nid = \"a\"\nkind = \"cause\"\nstep = [\"serve\"]\n{body}\n");
    let sign = "sign = [{ has = \"something failed\" }]";
    let cases = [
        (rule(&format!("cause = \"it\"\n{sign}")), ""),
        (
            rule(sign),
            "rules.toml:2:6: a rule that is shown wants `cause` and `step`",
        ),
        (
            rule(&format!("cause = \"{{nope}}\"\n{sign}")),
            "rules.toml:5:9: no sign of the rule gives {nope}",
        ),
        (
            rule(&format!("cause = \"a [b\"\n{sign}")),
            "rules.toml:5:9: [ is not closed",
        ),
        (
            rule(&format!("cause = \"it\"\nof = [\"b\"]\n{sign}")),
            "rules.toml:6:7: no rule has the id b",
        ),
        (
            rule(&format!("cause = \"it\"\nof = [\"a\"]\n{sign}")),
            "rules.toml:2:6: a follows from itself",
        ),
        (
            rule("cause = \"it\"\nsign = [{ has = \"something failed\", pattern = '(' }]"),
            "rules.toml:6:47: the expression can't be read: error: unclosed group",
        ),
        (
            rule("cause = \"it\"\nsign = [{ has = \"short\" }]"),
            "rules.toml:6:9: `has` wants 8 characters at least",
        ),
        (
            rule("cause = \"it\"\nsign = [{ has = \"something failed\", foreign = \"x\" }]"),
            "rules.toml:6:9: no expression of the sign has the group x",
        ),
        (
            rule("cause = \"it\"\nsign = [{ times = 2 }]"),
            "rules.toml:6:9: a sign has either `has` or `fact`",
        ),
        (
            rule(
                "cause = \"{x}\"\nsign = [{ has = \"something failed\", pattern = '(?P<x>f)' }, { has = \"another text\" }]",
            ),
            "rules.toml:5:9: not every sign of the rule gives {x}: put it in [ ]",
        ),
        (
            rule(&format!("cause = \"it\"\n{sign}\nextra = 1")),
            "rules.toml:7:1: unknown field `extra`, expected one of `id`, `kind`, `step`, `cause`, `fix`, `command`, `on`, `of`, `confidence`, `sign`",
        ),
        ("[[rule]\n".to_owned(), "rules.toml:1:8"),
    ];
    for (text, expected) in cases {
        let all = wrong(&text).join("\n");
        assert!(
            all.starts_with(expected) && all.is_empty() == expected.is_empty(),
            "{text}\n{all}"
        );
    }
    let twice = format!("{0}{0}", rule(&format!("cause = \"it\"\n{sign}")));
    assert_eq!(wrong(&twice), ["rules.toml:8:6: the id a is there already"]);
}
