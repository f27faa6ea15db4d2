//! All rules, and the one search that tells which of them a line may fit.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use super::parse;
use super::rule::{FactName, Kind, Place, Rule, TextSign};

/// Longest part of a line that is searched, in bytes: vLLM prints its whole configuration as one line.
pub const LOOKED_AT: usize = 4096;

/// The rules that come with the program, and the manual of their form. Printed by `bringup config rules`.
pub const BUILTIN: &str = include_str!("../../assets/rules.toml");

/// The name of their file in problems.
const BUILTIN_FILE: &str = "assets/rules.toml";

/// Rules in the order in which they count. A copy is cheap.
#[derive(Debug, Clone)]
pub struct Rules(Arc<Searched>);

#[derive(Debug, Default)]
struct Searched {
    rules: Vec<Rule>,
    /// How many of the rules the file held that was read last.
    first: usize,
    /// All texts that signs look for, at once. `None` without any.
    search: Option<AhoCorasick>,
    /// By text of the search: the signs that look for it, as rule and place in it.
    looking: Vec<Vec<(usize, usize)>>,
}

/// The rules that come with the program. A test reads them, so that they can be read here.
pub fn builtin() -> &'static Rules {
    static RULES: LazyLock<Rules> =
        LazyLock::new(|| parse(BUILTIN, BUILTIN_FILE).unwrap_or_else(|_| Rules(Arc::default())));
    &RULES
}

impl Default for Rules {
    fn default() -> Self {
        builtin().clone()
    }
}

/// The same ones: rules are read once.
impl PartialEq for Rules {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Rules {}

impl Rules {
    /// Prepares the search. `first` of the rules are those of the file.
    ///
    /// # Errors
    /// Why the search can't be made, as a fragment.
    pub(super) fn of(rules: Vec<Rule>, first: usize) -> Result<Self, String> {
        let mut texts: BTreeMap<&str, Vec<(usize, usize)>> = BTreeMap::new();
        for (r, rule) in rules.iter().enumerate() {
            for (s, sign) in rule.signs.iter().enumerate() {
                texts.entry(&sign.has).or_default().push((r, s));
            }
        }
        // The fastest of them: every line of every log is searched.
        let search = AhoCorasick::builder()
            .kind(Some(AhoCorasickKind::DFA))
            .build(texts.keys())
            .map_err(|error| error.to_string())?;
        let looking: Vec<_> = texts.into_values().collect();
        Ok(Self(Arc::new(Searched {
            search: (!looking.is_empty()).then_some(search),
            looking,
            rules,
            first,
        })))
    }

    /// Every rule.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.0.rules.iter()
    }

    /// The rules of the file that was read: those of the program, or a user's own where there are such.
    pub fn of_file(&self) -> impl Iterator<Item = &Rule> {
        self.iter().take(self.0.first)
    }

    /// The rule of this id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&Rule> {
        self.0.rules.iter().find(|r| r.id == id)
    }

    /// The rule that a fact of the cluster is a sign of.
    #[must_use]
    pub fn by_fact(&self, name: FactName) -> Option<&Rule> {
        self.0.rules.iter().find(|r| r.facts.contains(&name))
    }

    /// What a log's line is by its own words alone: signs that want more than those, such as a count, do not answer here.
    #[must_use]
    pub fn says(&self, line: &str) -> Option<Kind> {
        let line = looked_at(line);
        let fits = |sign: &TextSign| {
            let words = sign.pattern.as_ref().is_none_or(|p| p.is_match(line));
            words && !sign.guarded() && Place::Log.among(&sign.places)
        };
        let mut candidates = self.candidates(line).into_iter();
        candidates.find(|(_, sign, _)| fits(sign)).map(|(rule, ..)| rule.kind)
    }

    /// Signs whose text the line holds, in the order of the rules, each with a number of its own.
    pub(super) fn candidates(&self, line: &str) -> Vec<(&Rule, &TextSign, (usize, usize))> {
        let Some(search) = &self.0.search else {
            return Vec::new();
        };
        // Most lines hold none of the texts.
        let mut found = search.find_overlapping_iter(line).peekable();
        if found.peek().is_none() {
            return Vec::new();
        }
        let mut held = vec![false; self.0.looking.len()];
        for text in found {
            if let Some(held) = held.get_mut(text.pattern().as_usize()) {
                *held = true;
            }
        }
        let mut places: Vec<(usize, usize)> = held
            .iter()
            .zip(&self.0.looking)
            .filter(|(held, _)| **held)
            .flat_map(|(_, signs)| signs.iter().copied())
            .collect();
        places.sort_unstable();
        let of = |(r, s): (usize, usize)| {
            let rule = self.0.rules.get(r)?;
            Some((rule, rule.signs.get(s)?, (r, s)))
        };
        places.into_iter().filter_map(of).collect()
    }
}

/// The part of a line that is searched.
pub(super) fn looked_at(line: &str) -> &str {
    let mut end = LOOKED_AT.min(line.len());
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    line.get(..end).unwrap_or(line)
}
