//! Rules from text, or what is wrong with it and where.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use regex::{Regex, RegexBuilder};
use serde::Deserialize;
use toml::Spanned;

use super::rule::{ANY, FactName, Kind, On, Place, Rule, Step, TextSign};
use super::rules::{Rules, builtin};
use super::template::{KNOWN, Template};

/// Shortest text that may be searched for: a shorter one stands in too many lines.
const SHORTEST: usize = 8;

/// Longest file of a user's own rules, in bytes.
pub const MOST: usize = 256 << 10;

/// Most rules in a file.
const RULES: usize = 500;

/// Most signs of a rule.
const SIGNS: usize = 32;

/// Longest regular expression, in bytes, and the most memory that one may take when it is compiled.
const EXPRESSION: usize = 1000;
const COMPILED: usize = 1 << 20;

/// What is wrong with a file of rules.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct RuleProblem {
    /// The file, as it was named.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong; a fragment.
    pub message: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    rule: Vec<RawRule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    id: Spanned<String>,
    kind: Kind,
    #[serde(default)]
    step: Vec<Step>,
    cause: Option<Spanned<String>>,
    fix: Option<Spanned<String>>,
    command: Option<Spanned<String>>,
    #[serde(default)]
    on: On,
    #[serde(default)]
    of: Vec<Spanned<String>>,
    #[serde(default)]
    confidence: Sure,
    sign: Vec<Spanned<RawSign>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Sure {
    #[default]
    Known,
    Likely,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSign {
    #[serde(rename = "in")]
    places: Option<Vec<Place>>,
    has: Option<String>,
    pattern: Option<Spanned<String>>,
    #[serde(default)]
    then: Vec<Spanned<String>>,
    foreign: Option<String>,
    about: Option<String>,
    #[serde(default)]
    at_least: BTreeMap<String, u64>,
    times: Option<u64>,
    fact: Option<FactName>,
}

/// Reads rules.
///
/// # Errors
/// All that is wrong, in the order of the file. `file` is the name that the problems carry.
pub fn parse(text: &str, file: &str) -> Result<Rules, Vec<RuleProblem>> {
    together(text, file, &[])
}

/// Reads a user's own rules: they come before those of the program, and one with the id of one of those takes its place.
///
/// # Errors
/// See [`parse`], and what is more than a file of rules may hold.
pub fn own(text: &str, file: &str) -> Result<Rules, Vec<RuleProblem>> {
    if text.len() > MOST {
        let mut wrong = Wrong::new(text, file);
        wrong.add(0..0, &format!("the file is longer than {MOST} bytes"));
        return Err(wrong.list);
    }
    let builtin: Vec<Rule> = builtin().iter().cloned().collect();
    together(text, file, &builtin)
}

/// The rules of a text before others, of which those are left out that it has itself.
fn together(text: &str, file: &str, others: &[Rule]) -> Result<Rules, Vec<RuleProblem>> {
    let mut wrong = Wrong::new(text, file);
    let raw: File = match toml::from_str(text) {
        Ok(raw) => raw,
        Err(error) => {
            wrong.add(error.span().unwrap_or(0..0), error.message());
            return Err(wrong.list);
        }
    };
    if raw.rule.len() > RULES {
        wrong.add(0..0, &format!("more than {RULES} rules"));
        return Err(wrong.list);
    }
    let places: BTreeMap<&str, Range<usize>> = raw.rule.iter().map(|r| (r.id.as_ref().as_str(), r.id.span())).collect();
    let known = |id: &String| places.contains_key(id.as_str()) || others.iter().any(|rule| rule.id == *id);
    let mut seen = BTreeSet::new();
    let mut rules = Vec::new();
    for raw in &raw.rule {
        if !seen.insert(raw.id.as_ref()) {
            wrong.add(raw.id.span(), &format!("the id {} is there already", raw.id.as_ref()));
        }
        for of in &raw.of {
            if of.as_ref() != ANY && !known(of.as_ref()) {
                wrong.add(of.span(), &format!("no rule has the id {}", of.as_ref()));
            }
        }
        rules.push(rule(raw, &mut wrong));
    }
    rules.extend(others.iter().filter(|r| !seen.contains(&r.id)).cloned());
    for id in circles(&rules) {
        wrong.add(
            places.get(id.as_str()).cloned().unwrap_or(0..0),
            &format!("{id} follows from itself"),
        );
    }
    if wrong.list.is_empty() {
        Rules::of(rules, seen.len()).map_err(|why| {
            wrong.add(0..0, &why);
            wrong.list
        })
    } else {
        Err(wrong.list)
    }
}

/// Collects problems with their places.
struct Wrong<'a> {
    text: &'a str,
    file: &'a str,
    list: Vec<RuleProblem>,
}

impl<'a> Wrong<'a> {
    fn new(text: &'a str, file: &'a str) -> Self {
        Self {
            text,
            file,
            list: Vec::new(),
        }
    }

    fn add(&mut self, at: Range<usize>, message: &str) {
        let before = self.text.get(..at.start).unwrap_or(self.text);
        self.list.push(RuleProblem {
            file: self.file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before.chars().rev().take_while(|c| *c != '\n').count() + 1,
            message: message.to_owned(),
        });
    }

    fn regex(&mut self, text: &Spanned<String>) -> Option<Regex> {
        if text.as_ref().len() > EXPRESSION {
            self.add(
                text.span(),
                &format!("the expression is longer than {EXPRESSION} bytes"),
            );
            return None;
        }
        match RegexBuilder::new(text.as_ref()).size_limit(COMPILED).build() {
            Ok(regex) => Some(regex),
            Err(error) => {
                let error = error.to_string();
                let last = error.lines().last().unwrap_or_default();
                self.add(text.span(), &format!("the expression can't be read: {last}"));
                None
            }
        }
    }

    fn template(&mut self, text: Option<&Spanned<String>>, given: &Given) -> Option<Template> {
        let text = text?;
        match Template::parse(text.as_ref()) {
            Ok(template) => {
                for name in template.names() {
                    if !KNOWN.contains(&name) && !given.some.contains(name) {
                        self.add(text.span(), &format!("no sign of the rule gives {{{name}}}"));
                    }
                }
                for name in template.needed() {
                    if given.some.contains(name) && !given.always.contains(name) {
                        let message = format!("not every sign of the rule gives {{{name}}}: put it in [ ]");
                        self.add(text.span(), &message);
                    }
                }
                Some(template)
            }
            Err(why) => {
                self.add(text.span(), &why);
                None
            }
        }
    }
}

/// Values that the signs of a rule give.
#[derive(Default)]
struct Given {
    /// Some sign gives it.
    some: BTreeSet<String>,
    /// Every sign gives it.
    always: BTreeSet<String>,
}

fn rule(raw: &RawRule, wrong: &mut Wrong<'_>) -> Rule {
    let mut signs = Vec::new();
    let mut facts = Vec::new();
    let mut given: Option<Given> = None;
    for raw in &raw.sign {
        let mut may = BTreeSet::new();
        let mut does = BTreeSet::new();
        match (&raw.as_ref().has, raw.as_ref().fact) {
            (Some(has), None) => {
                let sign = text_sign(raw, has, wrong);
                if let Some(pattern) = &sign.pattern {
                    does.extend(groups(pattern));
                }
                may.extend(sign.then.iter().flat_map(groups));
                signs.push(sign);
            }
            (None, Some(fact)) => {
                does.extend(fact.values().iter().map(|v| (*v).to_owned()));
                facts.push(fact);
            }
            (Some(_), Some(_)) | (None, None) => {
                wrong.add(raw.span(), "a sign has either `has` or `fact`");
            }
        }
        may.extend(does.iter().cloned());
        let given = given.get_or_insert_with(|| Given {
            some: BTreeSet::new(),
            always: does.clone(),
        });
        given.always.retain(|name| does.contains(name));
        given.some.extend(may);
    }
    let given = given.unwrap_or_default();
    let says = match raw.kind {
        Kind::Cause | Kind::Echo | Kind::Warning => true,
        Kind::Pointer | Kind::Quiet => false,
    };
    if says {
        for (there, wanted) in [
            (
                raw.cause.is_some(),
                "a rule that is shown wants `cause`: one clause that names it",
            ),
            (
                !raw.step.is_empty(),
                "a rule that is shown wants `step`: a list of pull, image, head, join, membership, serve",
            ),
        ] {
            if !there {
                wrong.add(raw.id.span(), wanted);
            }
        }
    } else {
        let texts = [("cause", &raw.cause), ("fix", &raw.fix), ("command", &raw.command)];
        for (key, text) in texts {
            if let Some(text) = text {
                wrong.add(
                    text.span(),
                    &format!("a rule that says nothing wants no `{key}`: leave it out, or make the rule a cause"),
                );
            }
        }
    }
    if raw.sign.is_empty() {
        wrong.add(raw.id.span(), "a rule wants a sign");
    }
    let id = raw.id.as_ref();
    if id.is_empty() || !id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_') {
        wrong.add(raw.id.span(), "an id is made of letters, digits, - and _");
    }
    for (key, text, lines) in [
        ("cause", &raw.cause, false),
        ("fix", &raw.fix, true),
        ("command", &raw.command, false),
    ] {
        if let Some(text) = text.as_ref().filter(|text| !shows(text.as_ref(), lines)) {
            let what = if lines { "" } else { "a line's end or " };
            wrong.add(
                text.span(),
                &format!("`{key}` has {what}a character that no screen shows"),
            );
        }
    }
    if raw.sign.len() > SIGNS {
        wrong.add(raw.id.span(), &format!("a rule has {SIGNS} signs at most"));
    }
    Rule {
        id: raw.id.as_ref().clone(),
        kind: raw.kind,
        step: raw.step.clone(),
        cause: wrong.template(raw.cause.as_ref(), &given).unwrap_or_default(),
        fix: wrong.template(raw.fix.as_ref(), &given),
        command: wrong.template(raw.command.as_ref(), &given),
        on: raw.on,
        of: raw.of.iter().map(|of| of.as_ref().clone()).collect(),
        likely: raw.confidence == Sure::Likely,
        signs,
        facts,
    }
}

/// Whether a text can stand on a screen as it is written: nothing in it that steers a terminal or turns the direction of what follows.
fn shows(text: &str, lines: bool) -> bool {
    let turns = |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars()
        .all(|c| (lines && c == '\n') || !(c.is_control() || turns(c)))
}

fn text_sign(raw: &Spanned<RawSign>, has: &str, wrong: &mut Wrong<'_>) -> TextSign {
    let (span, raw) = (raw.span(), raw.as_ref());
    if has.len() < SHORTEST {
        wrong.add(span.clone(), &format!("`has` wants {SHORTEST} characters at least"));
    }
    if has.contains('\n') {
        wrong.add(
            span.clone(),
            "`has` is a part of one line: a sign is looked for line by line",
        );
    }
    if raw.times == Some(0) {
        wrong.add(span.clone(), "`times` is 1 at least");
    }
    let pattern = raw.pattern.as_ref().and_then(|p| wrong.regex(p));
    let then: Vec<Regex> = raw.then.iter().filter_map(|p| wrong.regex(p)).collect();
    let own: BTreeSet<String> = pattern.iter().flat_map(groups).collect();
    let all: BTreeSet<String> = own.iter().cloned().chain(then.iter().flat_map(groups)).collect();
    let guards = raw.foreign.iter().chain(raw.at_least.keys()).map(|name| (name, &own));
    for (name, among) in guards.chain(raw.about.iter().map(|name| (name, &all))) {
        if !among.contains(name) {
            wrong.add(span.clone(), &format!("no expression of the sign has the group {name}"));
        }
    }
    TextSign {
        places: raw.places.clone().unwrap_or_else(|| vec![Place::Log, Place::Output]),
        has: has.to_owned(),
        pattern,
        then,
        foreign: raw.foreign.clone(),
        about: raw.about.clone(),
        at_least: raw.at_least.clone(),
        times: raw.times.unwrap_or(1).max(1),
    }
}

fn groups(regex: &Regex) -> Vec<String> {
    regex.capture_names().flatten().map(str::to_owned).collect()
}

/// Rules that, over one rule or several, follow from themselves.
fn circles(rules: &[Rule]) -> Vec<String> {
    let of: BTreeMap<&str, &[String]> = rules.iter().map(|r| (r.id.as_str(), r.of.as_slice())).collect();
    let from_itself = |id: &str| {
        let mut seen = BTreeSet::new();
        let mut open: Vec<&String> = of.get(id).into_iter().copied().flatten().collect();
        while let Some(next) = open.pop() {
            if next == id {
                return true;
            }
            if seen.insert(next) {
                open.extend(of.get(next.as_str()).into_iter().copied().flatten());
            }
        }
        false
    };
    rules
        .iter()
        .filter(|r| from_itself(&r.id))
        .map(|r| r.id.clone())
        .collect()
}
