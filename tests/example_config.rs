//! config.example.toml is the manual: it parses, names every key, and says the truth about the defaults. Beside it: what a broken file is told, as a
//! folder of files in fixtures/config/bad, each with the expected lines next to it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use bringup::config::{self, Config, ConfigProblem, EXAMPLE};

/// A line of the example that sets a key, in whichever of its four shapes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    /// Place of the line, from 0.
    line: usize,
    /// The section's header, without brackets.
    section: String,
    /// `key = value`, without marks.
    text: String,
    shape: Shape,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Shape {
    /// `key = value`
    Set,
    /// `key = value  # default: X`, with X.
    SetOver(String),
    /// `# key = value`
    Default,
    /// `#: key = value`
    Optional,
}

impl Entry {
    fn key(&self) -> String {
        let key = self.text.split(" = ").next().unwrap_or_default();
        if self.section.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.section)
        }
    }
}

/// Every entry of the example's body: what stands before the first section explains the marks.
fn entries() -> Vec<Entry> {
    let mut section: Option<String> = None;
    let mut found = Vec::new();
    for (line, raw) in EXAMPLE.lines().enumerate() {
        if raw.starts_with('[') {
            section = Some(raw.trim_matches(['[', ']']).to_owned());
            continue;
        }
        let Some(section) = &section else { continue };
        let (text, shape) = if let Some(text) = raw.strip_prefix("#: ") {
            (text, Shape::Optional)
        } else if let Some(text) = raw.strip_prefix("# ") {
            (text, Shape::Default)
        } else if let Some((text, default)) = raw.split_once("  # default: ") {
            (text, Shape::SetOver(default.to_owned()))
        } else {
            (raw, Shape::Set)
        };
        let is_key = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if text.split_once(" = ").is_some_and(|(key, _)| is_key(key)) {
            found.push(Entry {
                line,
                section: section.clone(),
                text: text.to_owned(),
                shape,
            });
        }
    }
    found
}

/// The example with some lines replaced; a line replaced by nothing is empty, so that places stay.
fn with(changes: &[(usize, &str)]) -> String {
    let line = |(place, text): (usize, &'static str)| {
        let change = changes.iter().find(|(changed, _)| *changed == place);
        change.map_or(text, |(_, text)| *text).to_owned()
    };
    let lines: Vec<String> = EXAMPLE.lines().enumerate().map(line).collect();
    lines.join("\n")
}

fn said(problems: &[ConfigProblem]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

fn parse(text: &str) -> Result<Config, Vec<String>> {
    config::parse(text, "config.toml").map_err(|p| said(&p))
}

#[test]
fn the_example_is_the_storys_cluster() {
    let config = parse(EXAMPLE).unwrap();
    let hop = &config.ssh.jump[0];
    assert_eq!(
        (hop.login.host.as_str(), hop.login.user.as_deref()),
        ("10.1.230.180", Some("aurora"))
    );
    let nodes: Vec<_> = config
        .nodes
        .iter()
        .map(|n| (n.name.as_str(), n.role.word(), n.fabric_address.as_str(), n.via))
        .collect();
    let via = Some(bringup::domain::HopId(0));
    assert_eq!(
        nodes,
        [
            ("spark-1", "head", "192.168.200.12", via),
            ("spark-2", "worker", "192.168.200.13", via)
        ]
    );
    assert_eq!(config.container.image, "hellohal2064/vllm-qwen3.5-gb10");
    assert_eq!(config.container.name, "vllm-qwen35");
    assert_eq!(config.serve.name(), "Qwen/Qwen3.5-122B-A10B-FP8");
    assert_eq!((config.serve.tensor_parallel_size, config.gpus()), (2, 2));
    assert_eq!(config.nodes[1].hcas, ["rocep1s0f1", "roceP2p1s0f1"]);
    assert_eq!(config.engine.word(), "vllm-ray");
}

#[test]
fn the_example_names_every_key_and_no_other() {
    let named: BTreeSet<String> = entries().iter().map(Entry::key).collect();
    let headers = EXAMPLE
        .lines()
        .filter(|l| l.starts_with('['))
        .map(|l| l.trim_matches(['[', ']']).to_owned());
    let sections: BTreeSet<String> = headers.collect();
    let mut known = config::keys();
    for section in &sections {
        // `[container.environment]` holds names of the operator's own.
        assert!(
            known.remove(section) || known.iter().any(|k| k.starts_with(&format!("{section}."))),
            "{section}"
        );
    }
    known.retain(|key| !sections.iter().any(|s| s.starts_with(&format!("{key}."))));
    let own = |key: &String| !key.starts_with("container.environment.");
    let named: BTreeSet<String> = named.into_iter().filter(own).collect();
    assert_eq!(named, known);
}

#[test]
fn a_default_in_the_example_is_the_default_in_the_code() {
    let base = parse(EXAMPLE).unwrap();
    let entries = entries();
    let defaults: Vec<_> = entries.iter().filter(|e| e.shape == Shape::Default).collect();
    assert!(!defaults.is_empty());
    let all: Vec<(usize, &str)> = defaults.iter().map(|e| (e.line, e.text.as_str())).collect();
    assert_eq!(parse(&with(&all)), Ok(base), "with every default written out");
    for entry in &entries {
        if let Shape::SetOver(default) = &entry.shape {
            let key = entry.text.split(" = ").next().unwrap_or_default();
            let written = parse(&with(&[(entry.line, &format!("{key} = {default}"))]));
            assert!(written.is_ok(), "{key}: {written:?}");
            assert_eq!(written, parse(&with(&[(entry.line, "")])), "{}", entry.key());
        }
    }
}

#[test]
fn an_optional_key_of_the_example_can_be_switched_on() {
    let base = parse(EXAMPLE).unwrap();
    for entry in entries().iter().filter(|e| e.shape == Shape::Optional) {
        let mut changes = vec![(entry.line, entry.text.as_str())];
        if entry.text.starts_with("alias ") {
            // An alias stands instead of the host.
            let instead = entries().into_iter().find(|e| {
                e.line < entry.line
                    && e.section == entry.section
                    && (e.text.starts_with("host ") || e.text.starts_with("address "))
            });
            changes.push((instead.unwrap().line, ""));
        }
        let on = parse(&with(&changes)).unwrap_or_else(|p| panic!("{}: {p:?}", entry.text));
        let script_only = entry.section == "engine.script";
        let says_the_default = entry.text == "via = \"gate\"";
        assert_eq!(on == base, script_only || says_the_default, "{}", entry.text);
    }
}

#[test]
fn the_example_serves_the_script_engine_too() {
    let entries = entries();
    let kind = entries.iter().find(|e| e.key() == "engine.kind").unwrap();
    let path = entries.iter().find(|e| e.key() == "engine.script.path").unwrap();
    let text = with(&[(kind.line, "kind = \"script\""), (path.line, &path.text)]);
    assert_eq!(parse(&text).unwrap().engine.word(), "script");
    let problems = parse(&with(&[(kind.line, "kind = \"script\"")])).unwrap_err();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(
        problems[0].contains("`path` is missing in [engine.script]; write path = "),
        "{problems:?}"
    );
}

/// A file NAME.toml and beside it NAME.expected, the lines that it must be told.
#[test]
fn a_broken_file_is_told_what_where_and_what_instead() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/config/bad");
    let mut names: Vec<_> = fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).collect();
    names.retain(|p| p.extension().is_some_and(|e| e == "toml"));
    names.sort();
    assert!(!names.is_empty());
    let mut wrong = Vec::new();
    for path in names {
        let text = fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let told = match config::parse(&text, &name) {
            Ok(_) => vec!["(accepted)".to_owned()],
            Err(problems) => said(&problems),
        };
        let expected = path.with_extension("expected");
        let expected = fs::read_to_string(expected).unwrap_or_default();
        if told != expected.lines().collect::<Vec<_>>() {
            wrong.push(format!("{name} is told:\n{}", told.join("\n")));
        }
        let secrets = ["hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345", "sk-proj1234567890abcdef"];
        assert!(
            !secrets.iter().any(|s| told.join("\n").contains(s)),
            "{name}: a secret is repeated"
        );
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n\n"));
}

#[test]
fn a_small_file_is_enough_and_gets_the_defaults() {
    let text = "[cluster]\nname = \"one\"\n[[node]]\nname = \"a\"\nrole = \"head\"\naddress = \"10.0.0.1\"\nfabric_address = \"fd00:0:0::1\"\n\
                [engine]\nkind = \"vllm-ray\"\n[container]\nimage = \"i\"\nname = \"vllm\"\n[serve]\nmodel = \"m\"\n";
    let config = parse(text).unwrap();
    assert_eq!(config.nodes.len(), 1);
    assert_eq!(config.nodes[0].fabric_address, "fd00::1");
    assert_eq!((config.nodes[0].via, config.nodes[0].login.port), (None, Some(22)));
    assert_eq!(config.serve.tensor_parallel_size, 1);
    assert_eq!(config.workers().count(), 0);
}

#[test]
fn jump_hosts_go_through_the_one_before_unless_told_otherwise() {
    let ways = |jump: &str, node: &str| {
        let text = format!(
            "[cluster]\nname = \"one\"\n[ssh]\nuser = \"u\"\nport = 2200\n{jump}\n[[node]]\nname = \"a\"\nrole = \"head\"\naddress = \"10.0.0.1\"\n\
             fabric_address = \"10.0.0.1\"\n{node}\n[engine]\nkind = \"vllm-ray\"\n[container]\nimage = \"i\"\nname = \"vllm\"\n[serve]\nmodel = \"m\"\n"
        );
        let config = parse(&text).unwrap();
        let id = |via: Option<bringup::domain::HopId>| via.map(|h| h.0);
        let hops: Vec<_> = config
            .ssh
            .jump
            .iter()
            .map(|h| (h.name.clone(), h.login.alias, h.login.port, id(h.via)))
            .collect();
        (hops, id(config.nodes[0].via))
    };
    let hop = |name: &str, alias, port, via| (name.to_owned(), alias, port, via);
    let chain = vec![hop("a", true, None, None), hop("b", true, None, Some(0))];
    assert_eq!(ways("jump = [\"a\", \"b\"]", ""), (chain.clone(), Some(1)));
    assert_eq!(ways("jump = [\"a\", \"b\"]", "via = \"a\""), (chain.clone(), Some(0)));
    assert_eq!(ways("jump = [\"a\", \"b\"]", "via = \"direct\""), (chain, None));
    let two = "[[ssh.jump]]\nname = \"inner\"\nhost = \"h1\"\nvia = \"outer\"\n[[ssh.jump]]\nname = \"outer\"\nhost = \"h2\"\nport = 22\nvia = \"direct\"";
    let turned = vec![
        hop("inner", false, Some(2200), Some(1)),
        hop("outer", false, Some(22), None),
    ];
    assert_eq!(ways(two, "via = \"inner\""), (turned, Some(0)));
    let line = vec![
        hop("ops@b:22", true, Some(22), None),
        hop("[fd00::1]:23", true, Some(23), Some(0)),
    ];
    assert_eq!(
        ways("jump = [\"ops@b:22\", \"[fd00::1]:23\"]", "via = \"ops@b:22\""),
        (line, Some(0))
    );
}

#[test]
fn a_host_is_written_as_ssh_takes_it_and_what_is_named_wins() {
    let login = |lines: &str| {
        let text = format!(
            "[cluster]\nname = \"one\"\n[ssh]\nuser = \"u\"\nport = 2200\n[[node]]\nname = \"a\"\nrole = \"head\"\n{lines}\n\
             fabric_address = \"10.0.0.1\"\n[engine]\nkind = \"vllm-ray\"\n[container]\nimage = \"i\"\nname = \"vllm\"\n[serve]\nmodel = \"m\"\n"
        );
        let login = parse(&text).unwrap().nodes.remove(0).login;
        (login.host, login.port, login.user, login.alias, login.direct)
    };
    let expected = |host: &str, port, user: Option<&str>, alias, direct| {
        (host.to_owned(), port, user.map(str::to_owned), alias, direct)
    };
    let cases = [
        ("address = \"n\"", expected("n", Some(2200), Some("u"), false, false)),
        (
            "address = \"n\"\nport = 22",
            expected("n", Some(22), Some("u"), false, false),
        ),
        ("address = \"a@n:22\"", expected("n", Some(22), Some("a"), false, false)),
        (
            "address = \"[fd00::2]:23\"",
            expected("fd00::2", Some(23), Some("u"), false, false),
        ),
        (
            "address = \"fd00::2\"",
            expected("fd00::2", Some(2200), Some("u"), false, false),
        ),
        ("alias = \"n\"", expected("n", None, None, true, false)),
        (
            "alias = \"n\"\nport = 22\nuser = \"a\"",
            expected("n", Some(22), Some("a"), true, false),
        ),
        ("alias = \"n\"\nvia = \"direct\"", expected("n", None, None, true, true)),
    ];
    for (lines, login_expected) in cases {
        assert_eq!(login(lines), login_expected, "{lines}");
    }
}

#[test]
fn no_text_makes_it_panic_and_every_problem_lies_in_the_text() {
    let lines = EXAMPLE.lines().count();
    for cut in (0..EXAMPLE.len()).step_by(7).filter(|n| EXAMPLE.is_char_boundary(*n)) {
        for text in [&EXAMPLE[..cut], &EXAMPLE[cut..]] {
            if let Err(problems) = config::parse(text, "config.toml") {
                assert!(!problems.is_empty());
                assert!(
                    problems
                        .iter()
                        .all(|p| p.line >= 1 && p.line <= lines + 1 && p.column >= 1),
                    "{problems:?}"
                );
            }
        }
    }
}
