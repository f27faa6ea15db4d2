//! From evidence to causes: the first one first, with what follows from it folded under it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::config::Config;
use crate::domain::{NodeId, Wall};

use super::entry::{Entry, Origin};
use super::evidence::Evidence;
use super::rule::{Kind, On, Rule, Step};
use super::rules::Rules;
use super::template::{Template, Values, at};
use super::time::{Moment, Order};

/// Lines of evidence of one cause.
const LINES: usize = 6;

/// Why something fails, or may.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cause {
    /// The rule; `None` for a failure that no rule knows, which is quoted.
    pub rule: Option<String>,
    /// What it is: a cause, an echo whose cause was not seen, or a warning.
    pub kind: Kind,
    /// One clause without a final period.
    pub text: String,
    /// The node that it is about; `None` for the cluster.
    pub node: Option<NodeId>,
    /// When it was seen first, by the console's clock.
    pub at: Wall,
    /// Whether it was only found then, and may have happened before.
    pub found: bool,
    /// When it was so no longer.
    pub over: Option<Wall>,
    /// How sure it is.
    pub confidence: Confidence,
    /// What keeps it from being sure.
    pub note: Option<String>,
    /// The first lines that say so.
    pub evidence: Vec<Line>,
    /// How often it was said.
    pub times: u64,
    /// What follows from it.
    pub echoes: Vec<Echo>,
    /// What to do.
    pub fix: Option<String>,
    /// What to run, and on which node.
    pub command: Option<(NodeId, String)>,
    /// Steps of a plan that it is about; empty for a failure that no rule knows.
    pub steps: Vec<Step>,
}

/// A line of evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// On which node it was read; `None` for what is known of the cluster.
    pub node: Option<NodeId>,
    /// The line, masked and bounded.
    pub text: String,
}

/// What follows from a cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Echo {
    /// The rule; `None` for a line that no rule knows.
    pub rule: Option<String>,
    /// One clause, or the line itself.
    pub text: String,
    /// On which node it was seen.
    pub node: Option<NodeId>,
    /// When, by the console's clock.
    pub at: Wall,
}

/// How sure a cause is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// A rule knows its words, and it was first.
    Known,
    /// A rule knows its words, and something leaves a doubt.
    Likely,
    /// It is the first line that says that something failed.
    Quoted,
}

impl Confidence {
    /// The word on the screen.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Known => "known",
            Self::Likely => "likely",
            Self::Quoted => "quoted",
        }
    }
}

/// One thing that was seen on one node, from its log, a command and the facts together.
struct Group<'a> {
    rule: Option<&'a Rule>,
    kind: Kind,
    entries: Vec<&'a Entry>,
    node: Option<NodeId>,
    about: Option<NodeId>,
    fields: BTreeMap<String, String>,
    moment: Moment,
    seq: u64,
    origin: Origin,
}

/// Causes, the first one first, warnings last.
#[must_use]
pub fn rank(evidence: &Evidence, config: &Config) -> Vec<Cause> {
    let groups = groups(evidence, evidence.rules(), config);
    let parents = parents(&groups);
    let root = |i: usize| root(&parents, i);
    let mut causes: Vec<(usize, Cause)> = Vec::new();
    for (i, group) in groups.iter().enumerate() {
        let folded = parents.get(i).copied().flatten().is_some();
        // What is over and has left nothing behind needs no cause.
        let idle = group.over().is_some() && !(0..groups.len()).any(|j| j != i && root(j) == i);
        if !folded && !idle {
            causes.push((i, cause(group, &groups, config)));
        }
    }
    for (i, group) in groups.iter().enumerate() {
        let root = root(i);
        if root != i
            && let Some((_, cause)) = causes.iter_mut().find(|(r, _)| *r == root)
        {
            cause.echoes.push(Echo {
                rule: group.rule.map(|r| r.id.clone()),
                text: group.text(config),
                node: group.node,
                at: group.moment.wall,
            });
        }
    }
    causes.into_iter().map(|(_, cause)| cause).collect()
}

/// Groups in the order in which they may be causes: by sort, then by time.
fn groups<'a>(evidence: &'a Evidence, rules: &'a Rules, config: &Config) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for entry in evidence.entries() {
        let rule = entry.rule.as_deref().and_then(|id| rules.get(id));
        let moment = evidence.moment(entry);
        let id = |r: Option<&Rule>| r.map(|r| r.id.clone());
        match groups
            .iter_mut()
            .find(|g| id(g.rule) == id(rule) && g.node == entry.node)
        {
            Some(group) => group.add(entry, moment),
            None => groups.push(Group {
                rule,
                kind: rule.map_or(Kind::Echo, |r| r.kind),
                node: entry.node,
                about: None,
                fields: entry.fields.clone(),
                entries: vec![entry],
                moment,
                seq: entry.seq,
                origin: entry.origin,
            }),
        }
    }
    for group in &mut groups {
        group.about = group.subject(config);
    }
    groups.sort_by_key(|g| (g.sort(), g.moment.wall, g.seq));
    groups
}

impl<'a> Group<'a> {
    fn add(&mut self, entry: &'a Entry, moment: Moment) {
        for (name, value) in &entry.fields {
            self.fields.entry(name.clone()).or_insert_with(|| value.clone());
        }
        // A log knows when it was; who only found it does not.
        let better = moment.certain && !self.moment.certain;
        if better || (moment.certain == self.moment.certain && moment.wall < self.moment.wall) {
            self.moment = moment;
        }
        self.entries.push(entry);
    }

    /// Causes before unknown failures before echoes; warnings stand apart at the end.
    fn sort(&self) -> u8 {
        match (self.kind, self.rule) {
            (Kind::Cause, _) => 0,
            (Kind::Echo | Kind::Pointer | Kind::Quiet, _) => 1,
            (Kind::Warning, _) => 2,
        }
    }

    /// The node that the cause is about: the one whose address a line names, else the one where it was seen.
    fn subject(&self, config: &Config) -> Option<NodeId> {
        let names = self
            .rule
            .into_iter()
            .flat_map(|r| &r.signs)
            .filter_map(|s| s.about.as_ref());
        let mut named = names.filter_map(|name| at(config, self.fields.get(name)?));
        named.next().or(self.node)
    }

    fn over(&self) -> Option<Wall> {
        let over = |e: &&Entry| e.over.is_none();
        if self.entries.iter().any(over) {
            None
        } else {
            self.entries.iter().filter_map(|e| e.over).max()
        }
    }

    /// Whether it was over when another began, as far as is known of that.
    fn over_before(&self, other: &Self) -> bool {
        self.over().is_some_and(|over| over < other.moment.from)
    }

    fn order(&self, other: &Self) -> Order {
        if self.node == other.node && self.origin == Origin::Log && other.origin == Origin::Log {
            return if self.seq < other.seq {
                Order::Before
            } else {
                Order::After
            };
        }
        self.moment.order(other.moment)
    }

    fn values<'b>(&'b self, config: &'b Config) -> Values<'b> {
        Values {
            config,
            node: self.about,
            fields: &self.fields,
        }
    }

    fn text(&self, config: &Config) -> String {
        match self.rule {
            Some(rule) => rule.cause.fill(&self.values(config)),
            None => self.lines().next().map_or_else(String::new, |l| l.text),
        }
    }

    /// The first lines, each once: a log and a command's output may both hold one, with other spaces in it.
    fn evidence(&self) -> Vec<Line> {
        let mut kept: Vec<Line> = Vec::new();
        for line in self.lines() {
            if kept.len() < LINES && !kept.iter().any(|k| same(&k.text, &line.text)) {
                kept.push(line);
            }
        }
        kept
    }

    fn lines(&self) -> impl Iterator<Item = Line> {
        let lines = self
            .entries
            .iter()
            .flat_map(|e| e.lines.iter().map(|text| (e.node, text)));
        lines.map(|(node, text)| Line {
            node,
            text: text.clone(),
        })
    }
}

/// Whether two lines are the same but for the spaces in them.
fn same(one: &str, other: &str) -> bool {
    one.split_whitespace().eq(other.split_whitespace())
}

/// By group: what it follows from. No group follows from itself, over however many others.
fn parents(groups: &[Group<'_>]) -> Vec<Option<usize>> {
    let mut parents: Vec<Option<usize>> = vec![None; groups.len()];
    // What a rule names comes before what may follow from anything.
    for may in [named as fn(&Group<'_>, &Group<'_>, bool) -> bool, any] {
        for (i, own) in groups.iter().enumerate() {
            if parents.get(i).copied().flatten().is_some() {
                continue;
            }
            let follows =
                |(j, other): &(usize, &Group<'_>)| *j != i && may(own, other, *j < i) && root(&parents, *j) != i;
            let mut known = groups.iter().enumerate().filter(follows);
            // What was over by then may have left something behind: where nothing that was so then explains it.
            let standing = known.clone().find(|(_, other)| !other.over_before(own));
            let parent = standing.or_else(|| known.next()).map(|(j, _)| j);
            if let Some(slot) = parents.get_mut(i) {
                *slot = parent;
            }
        }
    }
    parents
}

/// What a group follows from in the end.
fn root(parents: &[Option<usize>], mut i: usize) -> usize {
    while let Some(parent) = parents.get(i).copied().flatten() {
        i = parent;
    }
    i
}

/// Whether a thing follows from another because its rule names it, and the other did not surely come later.
fn named(own: &Group<'_>, other: &Group<'_>, _sorted_before: bool) -> bool {
    follows(own, other) && other.order(own) != Order::After
}

/// Whether a thing may follow from another as from anything.
fn any(own: &Group<'_>, other: &Group<'_>, sorted_before: bool) -> bool {
    let may = match own.kind {
        Kind::Echo => own.rule.is_none_or(Rule::of_any),
        // One of its own that any other explains.
        Kind::Cause => own.rule.is_some_and(Rule::of_any),
        Kind::Warning | Kind::Pointer | Kind::Quiet => false,
    };
    if !may {
        return false;
    }
    match other.kind {
        // Of two causes that any other explains, the later follows from the earlier.
        Kind::Cause if own.kind == Kind::Cause && other.rule.is_some_and(Rule::of_any) => sorted_before,
        Kind::Cause => other.order(own) != Order::After,
        // Of two that are no causes, the later follows from the earlier; they are sorted by time.
        Kind::Echo => sorted_before && own.kind == Kind::Echo,
        Kind::Warning | Kind::Pointer | Kind::Quiet => false,
    }
}

fn cause(group: &Group<'_>, groups: &[Group<'_>], config: &Config) -> Cause {
    let fill = |t: &Template| t.fill(&group.values(config));
    let rule = group.rule;
    let note = doubt(group, groups, config);
    let confidence = match rule {
        None => Confidence::Quoted,
        Some(rule) if rule.likely || note.is_some() || group.kind == Kind::Echo => Confidence::Likely,
        Some(_) => Confidence::Known,
    };
    let on = |on: On| match on {
        On::Node => group.about.unwrap_or_else(|| config.head()),
        On::Head => config.head(),
    };
    let command = rule.and_then(|rule| Some((on(rule.on), rule.command.as_ref()?.fill_quoted(&group.values(config)))));
    Cause {
        rule: rule.map(|r| r.id.clone()),
        kind: group.kind,
        text: group.text(config),
        node: group.about,
        at: group.moment.wall,
        found: !group.moment.certain,
        over: group.over(),
        confidence,
        note,
        evidence: group.evidence(),
        times: group.entries.iter().map(|e| e.times).max().unwrap_or(1),
        echoes: Vec::new(),
        fix: rule.and_then(|r| r.fix.as_ref()).map(fill),
        command,
        steps: rule.map(|r| r.step.clone()).unwrap_or_default(),
    }
}

/// What keeps a cause from being sure to be the first.
fn doubt(group: &Group<'_>, groups: &[Group<'_>], config: &Config) -> Option<String> {
    let name = |g: &Group<'_>| g.node.map_or("the cluster", |n| config.node_name(n)).to_owned();
    match (group.kind, group.rule) {
        (Kind::Cause, _) => {}
        (Kind::Echo, Some(_)) => return Some("it follows from something that was not seen".to_owned()),
        (Kind::Echo | Kind::Warning | Kind::Pointer | Kind::Quiet, _) => return None,
    }
    let earlier = groups
        .iter()
        .find(|g| g.rule.is_none() && g.order(group) == Order::Before);
    if let Some(earlier) = earlier {
        return Some(format!(
            "a line before it on {} says that something failed, and no rule knows it",
            name(earlier)
        ));
    }
    let others: BTreeSet<String> = groups
        .iter()
        .filter(|g| g.kind == Kind::Cause && !std::ptr::eq(*g, group) && !follows(g, group) && !follows(group, g))
        .filter(|g| !g.rule.is_some_and(Rule::of_any))
        .filter(|g| g.order(group) == Order::Unclear)
        .map(&name)
        .collect();
    let others: Vec<String> = others.into_iter().collect();
    (!others.is_empty()).then(|| {
        format!(
            "another cause was seen on {} at about the same time: which was first can't be told",
            others.join(" and ")
        )
    })
}

/// Whether a thing's rule names another's as what it follows from.
fn follows(own: &Group<'_>, other: &Group<'_>) -> bool {
    let id = other.rule.map(|r| r.id.as_str());
    own.rule
        .is_some_and(|rule| rule.of.iter().any(|of| Some(of.as_str()) == id))
}
