//! The file of rules, and what is said of a bad one.

use crate::diagnose::template::KNOWN;
use crate::diagnose::{BUILTIN, Kind, MOST, Matcher, builtin, own, parse};
use crate::domain::Role;
use crate::domain::load::{LineFact, RankLine};

use super::config;

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
        F::WrongModel,
        F::NodeNotAnswering,
        F::WorkerLeft,
        F::ContainerKilled,
        F::ContainerEnded,
        F::ContainerStopped,
        F::WorkerAnew,
        F::ContainerRestarts,
        F::HealthFails,
    ];
    for name in all {
        let rules = builtin().iter().filter(|r| r.facts.contains(&name)).count();
        assert_eq!(rules, 1, "{name:?}");
    }
}

/// The comment that opens the file.
fn manual() -> String {
    let lines = BUILTIN.lines().take_while(|line| line.starts_with('#'));
    lines
        .map(|line| line.trim_start_matches(['#', ' ']))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn the_manual_of_the_rules_names_every_fact_with_its_values_and_every_value() {
    let manual = manual();
    for rule in builtin().iter() {
        for fact in &rule.facts {
            let name = serde_json::to_value(fact).unwrap();
            let name = name.as_str().unwrap();
            let line = manual
                .lines()
                .find(|line| line.split([' ', ',']).any(|word| word == name));
            let line = line.unwrap_or_else(|| panic!("{name} is not named"));
            let values = fact.values().iter().map(|value| format!("{{{value}}}"));
            let told = fact.of_step() || values.clone().all(|value| line.contains(&value));
            assert!(told, "{name} gives {values:?}: {line}");
            assert!(!fact.of_step() || fact.values() == ["seen"], "{name}");
        }
    }
    for value in KNOWN {
        assert!(manual.contains(&format!("{{{value}}}")), "{value}");
    }
    // Every key that a rule or a sign can have.
    for bad in ["x = 1", "sign = [{ x = 1 }]"] {
        let message = &wrong(&format!("[[rule]]\n{bad}\n"))[0];
        let keys: Vec<&str> = message.split('`').skip(3).step_by(2).collect();
        assert!(keys.len() > 8, "{message}");
        for key in keys {
            assert!(
                manual.lines().any(|line| line.split(' ').next() == Some(key)),
                "{key} is not told"
            );
        }
    }
}

#[test]
fn the_rules_of_the_manual_are_rules() {
    let text = manual();
    let lines = text.lines().skip_while(|line| !line.starts_with("[[rule]]"));
    let example: Vec<&str> = lines.take_while(|line| !line.starts_with("A rule:")).collect();
    let rules = own(&example.join("\n"), "mine.toml").unwrap_or_else(|problems| panic!("{problems:?}"));
    let ids: Vec<&str> = rules.of_file().map(|rule| rule.id.as_str()).collect();
    assert_eq!(ids, ["cable", "our-plugin"]);
    assert_eq!(rules.says("eth0: link is down on enp1s0"), Some(Kind::Cause));
    assert_eq!(
        rules.says("OurPlugin: RuntimeError is expected here"),
        Some(Kind::Quiet)
    );
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
            "rules.toml:2:6: a rule that is shown wants `cause`: one clause that names it",
        ),
        (
            rule(&format!("cause = \"it\"\n{sign}")).replace("step = [\"serve\"]\n", ""),
            "rules.toml:2:6: a rule that is shown wants `step`: a list of pull, image, head, join, membership, serve",
        ),
        (
            rule(&format!("cause = \"it\"\n{sign}")).replace("\"cause\"", "\"quiet\""),
            "rules.toml:5:9: a rule that says nothing wants no `cause`: leave it out, or make the rule a cause",
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
        (
            rule(&format!("cause = \"it\\nfails\"\n{sign}")),
            "rules.toml:5:9: `cause` has a line's end or a character that no screen shows",
        ),
        (
            rule(&format!("cause = \"it\"\nfix = \"do\\u202Ethis\"\n{sign}")),
            "rules.toml:6:7: `fix` has a character that no screen shows",
        ),
        (rule(&format!("cause = \"it\"\nfix = \"do\\nthis\"\n{sign}")), ""),
        (
            rule(&format!("cause = \"it\"\n{sign}")).replace("id = \"a\"", "id = \"\""),
            "rules.toml:2:6: an id is made of letters, digits, - and _",
        ),
        (
            rule("cause = \"it\"\nsign = [{ has = \"something\\nfailed\" }]"),
            "rules.toml:6:9: `has` is a part of one line: a sign is looked for line by line",
        ),
        (
            rule("cause = \"it\"\nsign = [{ has = \"something failed\", times = 0 }]"),
            "rules.toml:6:9: `times` is 1 at least",
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

/// A user's own rule with this id and body.
fn mine(id: &str, body: &str) -> String {
    format!("[[rule]]\nid = \"{id}\"\n{body}\n")
}

#[test]
fn a_users_own_rules_come_first_and_take_the_place_of_those_with_their_ids() {
    let quiet = mine("nccl-error", "kind = \"quiet\"\nsign = [{ has = \"NCCL error\" }]");
    let cause = "kind = \"cause\"\nstep = [\"serve\"]\ncause = \"the cable\"\nof = [\"nccl-memlock\"]\nsign = [{ has = \"our own words\" }]";
    let rules = own(&format!("{quiet}{}", mine("cable", cause)), "mine.toml").unwrap();
    let ids: Vec<&str> = rules.iter().map(|r| r.id.as_str()).collect();
    assert_eq!(ids[..2], ["nccl-error", "cable"]);
    assert_eq!(ids.iter().filter(|id| **id == "nccl-error").count(), 1);
    assert_eq!(ids.len(), builtin().iter().count() + 1);

    let line = "RuntimeError: NCCL error: unhandled system error";
    assert_eq!(builtin().says(line), Some(Kind::Echo));
    assert_eq!(rules.says(line), Some(Kind::Quiet));
    assert_eq!(
        (builtin().says("our own words"), rules.says("our own words")),
        (None, Some(Kind::Cause))
    );
}

#[test]
fn what_the_grammar_calls_a_failure_is_settled_by_the_rules_of_the_matcher() {
    let text = format!(
        "{}{}",
        mine("fine", "kind = \"quiet\"\nsign = [{ has = \"HarmlessError\" }]"),
        mine(
            "bad",
            "kind = \"cause\"\nstep = [\"serve\"]\ncause = \"it\"\nsign = [{ has = \"the cable is out\" }]"
        )
    );
    let matcher = Matcher::new(&config(), Role::Head).by(own(&text, "mine.toml").unwrap());
    let failure = |text: &str| LineFact::Failure(text.to_owned());
    assert_eq!(
        matcher.settle("HarmlessError: x", vec![failure("HarmlessError: x")]),
        []
    );
    assert_eq!(
        matcher.settle("the cable is out", Vec::new()),
        [failure("the cable is out")]
    );
    assert_eq!(
        matcher.settle("ValueError: x", vec![failure("ValueError: x")]),
        [failure("ValueError: x")]
    );
    assert_eq!(matcher.settle("nothing of note", Vec::new()), []);
    let rank = LineFact::Rank(RankLine::default());
    assert_eq!(
        matcher.settle("the cable is out", vec![rank.clone()]),
        [rank, failure("the cable is out")]
    );
    // What says how far it is goes on with that.
    let wait = LineFact::GpuWait { seconds: 70 };
    assert_eq!(matcher.settle("the cable is out", vec![wait.clone()]), [wait]);
}

#[test]
fn a_file_of_own_rules_is_bounded_and_each_bound_is_told() {
    let told = |text: &str| own(text, "mine.toml").unwrap_err()[0].to_string();
    let quiet = |id: &str, pattern: &str| {
        mine(
            id,
            &format!("kind = \"quiet\"\nsign = [{{ has = \"some of our words\"{pattern} }}]"),
        )
    };
    assert_eq!(
        told(&"#".repeat(MOST + 1)),
        format!("mine.toml:1:1: the file is longer than {MOST} bytes")
    );
    let many: String = (0..501).map(|n| quiet(&n.to_string(), "")).collect();
    assert_eq!(told(&many), "mine.toml:1:1: more than 500 rules");
    let long = format!(", pattern = '{}'", "a".repeat(1001));
    assert_eq!(
        told(&quiet("a", &long)),
        "mine.toml:4:48: the expression is longer than 1000 bytes"
    );
    let large = ", pattern = '(a{1000}){1000}'";
    assert!(
        told(&quiet("a", large)).contains("the expression can't be read: "),
        "{}",
        told(&quiet("a", large))
    );
    let signs = vec!["{ has = \"some of our words\" }"; 33].join(", ");
    assert_eq!(
        told(&mine("a", &format!("kind = \"quiet\"\nsign = [{signs}]"))),
        "mine.toml:2:6: a rule has 32 signs at most"
    );
    assert_eq!(
        told(&mine(
            "ray-x",
            "kind = \"quiet\"\nof = [\"nobody\"]\nsign = [{ has = \"some of our words\" }]"
        )),
        "mine.toml:4:7: no rule has the id nobody"
    );
}

#[test]
fn own_rules_that_make_a_circle_with_those_of_the_program_are_refused() {
    let followed = builtin().iter().find(|r| r.of.iter().any(|of| of != "*")).unwrap();
    let body = format!(
        "kind = \"echo\"\nstep = [\"serve\"]\ncause = \"it\"\nof = [\"{}\"]\nsign = [{{ has = \"some of our words\" }}]",
        followed.id
    );
    let problems = own(
        &mine(followed.of.iter().find(|of| *of != "*").unwrap(), &body),
        "mine.toml",
    )
    .unwrap_err();
    assert!(
        problems.iter().any(|p| p.message.ends_with("follows from itself")),
        "{problems:?}"
    );
}
