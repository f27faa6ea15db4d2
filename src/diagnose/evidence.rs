//! What was seen of a start, on all nodes.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::domain::sign::{Sign, SignKind};
use crate::domain::time::millis;
use crate::domain::{NodeId, Now, Wall};

use super::entry::{Entry, Origin};
use super::rule::{Fact, FactName, Judged, Kind, Step};
use super::rules::Rules;
use super::time::{CLOCKS, Moment};

/// Things kept of one node's log, and as many of what commands printed there. The first ones stay, the rest is counted.
const ENTRIES: usize = 32;

/// Facts that are the end of a worker's life.
const ENDS: [FactName; 4] = [
    FactName::ContainerKilled,
    FactName::ContainerEnded,
    FactName::ContainerStopped,
    FactName::NodeNotAnswering,
];

/// How late a probe may tell of what has come: the time from one of its looks to the next, and its limit.
const NOTICED: Duration = Duration::from_secs(15);

/// Evidence of one start of the cluster.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evidence {
    rules: Rules,
    nodes: BTreeMap<NodeId, NodeEvidence>,
    facts: BTreeMap<(FactName, Option<NodeId>), Entry>,
    /// When facts were last seen not to be so.
    seen_not: BTreeMap<(FactName, Option<NodeId>), Wall>,
    /// What was written before this is about another start; by the console's clock.
    from: Option<Wall>,
    /// What was written before this has kept nothing from coming true.
    true_at: Option<Wall>,
    next: u64,
}

/// Evidence of one node.
#[derive(Debug, Clone, Default, PartialEq)]
struct NodeEvidence {
    log: Vec<Entry>,
    output: Vec<Entry>,
    /// What its probe complains of now.
    probe: Vec<Entry>,
    /// Whether its probe was heard.
    probed: bool,
    /// When it was seen to have become a member of Ray.
    joined: Option<Wall>,
    /// Things that there was no room for.
    more: u64,
    /// How far the node's clock is ahead of the console's, in milliseconds, as far as it is known and more than an error of the reading.
    ahead: i64,
}

impl Evidence {
    /// No evidence yet, to be judged by these rules.
    #[must_use]
    pub fn by(rules: Rules) -> Self {
        Self {
            rules,
            ..Self::default()
        }
    }

    /// The rules by which it is judged.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Takes a sign from a node's log.
    pub fn log(&mut self, node: NodeId, head: NodeId, sign: Sign, now: Now) {
        if sign.what == SignKind::NewStart {
            self.new_start(node, head, &sign, now);
            return;
        }
        if self.too_old(node, &sign) {
            return;
        }
        self.take(node, Origin::Log, sign, now);
    }

    /// Takes signs from what a command or verb has printed on a node. What its log has said already is not said twice.
    pub fn output(&mut self, node: NodeId, signs: Vec<Sign>, now: Now) {
        for sign in signs {
            let known = self.nodes.values().flat_map(|n| &n.log);
            let said = |line: &String| sign.text.contains(line.as_str()) || line.contains(&sign.text);
            if !known.flat_map(|entry| &entry.lines).any(said) {
                self.take(node, Origin::Output, sign, now);
            }
        }
    }

    /// Whoever printed this on a node goes on: that line is a sign of nothing any more.
    pub fn outlived(&mut self, node: NodeId, text: &str) {
        if let Some(seen) = self.nodes.get_mut(&node) {
            seen.log.retain_mut(|entry| entry.without(text));
        }
    }

    /// Takes what was judged of the cluster. A fact that was so before and is not any more is over; one of which nothing is known now stays as it was. Where a
    /// fact was never seen not to be so, nothing tells since when it is.
    pub fn facts(&mut self, judged: Vec<Judged>, now: Now) {
        for judged in judged {
            match judged {
                Judged::Not(name, node, at) => {
                    self.seen_not.insert((name, node), at);
                    if let Some(entry) = self.facts.get_mut(&(name, node)) {
                        entry.over.get_or_insert(now.wall);
                    }
                }
                Judged::So(fact) => {
                    let key = (fact.name, fact.node);
                    // When a life ended before this one is known to who has seen its end alone.
                    let watched = fact.name != FactName::WorkerAnew;
                    let not_yet = self.seen_not.get(&key).copied().filter(|_| watched);
                    self.fact(fact, not_yet, now);
                    self.began(key);
                }
            }
        }
    }

    /// Takes what a step found before it could begin. It stays until the next run.
    pub fn step_facts(&mut self, facts: Vec<Fact>, now: Now) {
        for fact in facts {
            self.fact(fact, Some(now.wall), now);
        }
    }

    /// Whether a fact is so, as far as is known.
    #[must_use]
    pub fn holds(&self, name: FactName, node: NodeId) -> bool {
        let seen = self.facts.get(&(name, Some(node)));
        seen.is_some_and(|entry| entry.over.is_none())
    }

    /// A worker that was started anew has ended before: that is one event, and told as one by who has seen the end and by who came later.
    fn began(&mut self, key: (FactName, Option<NodeId>)) {
        if key.0 != FactName::WorkerAnew {
            return;
        }
        for end in ENDS {
            let end = (end, key.1);
            let over = self.facts.get(&end).is_some_and(|entry| entry.over.is_some());
            let end = over.then(|| self.facts.remove(&end)).flatten();
            if let (Some(anew), Some(end)) = (self.facts.get_mut(&key), end) {
                anew.began_with(end);
            }
        }
    }

    fn fact(&mut self, fact: Fact, not_yet: Option<Wall>, now: Now) {
        let Some(rule) = self.rules.by_fact(fact.name).map(|rule| rule.id.clone()) else {
            return;
        };
        let seq = self.number();
        let key = (fact.name, fact.node);
        match self.facts.get_mut(&key).filter(|e| e.over.is_none()) {
            Some(entry) => {
                entry.now_says(fact.fields, fact.text);
            }
            None => {
                let entry = Entry::fact(rule, fact.node, not_yet, now.wall, seq).says(fact.fields, fact.text);
                self.facts.insert(key, entry);
            }
        }
    }

    /// Takes what a node's probe complains of now, in place of what it complained of before.
    pub fn probe(&mut self, node: NodeId, signs: Vec<Sign>, now: Now) {
        let seen = self.nodes.entry(node).or_default();
        let before = std::mem::take(&mut seen.probe);
        // What it complains of at once was so before.
        let heard = seen.probed;
        seen.probed = true;
        for sign in signs {
            let SignKind::Rule(id) = sign.what else { continue };
            let known = before.iter().find(|e| e.rule.as_deref() == Some(&id)).cloned();
            let seq = self.number();
            let not_yet = heard.then(|| Wall(now.wall.0.saturating_sub(millis(NOTICED))));
            let new = || Entry::fact(id, Some(node), not_yet, now.wall, seq).says(sign.fields, sign.text);
            let entry = known.unwrap_or_else(new);
            let seen = self.nodes.entry(node).or_default();
            if seen.probe.len() < ENTRIES {
                seen.probe.push(entry);
            }
        }
    }

    /// A node has become a member of Ray: what kept it from that before is of no matter.
    pub fn joined(&mut self, node: NodeId, now: Now) {
        let seen = self.nodes.entry(node).or_default();
        seen.joined = Some(now.wall);
        seen.log
            .retain(|entry| !entry.rule.as_deref().is_some_and(|id| joins(&self.rules, id)));
        seen.output.clear();
    }

    /// A new run of steps: what earlier commands printed is about earlier tries.
    pub fn new_run(&mut self) {
        self.facts.retain(|(name, _), _| !name.of_step());
        for node in self.nodes.values_mut() {
            node.output.clear();
        }
    }

    /// A container of a node was started: what the log of the one before said is about that one. `by_node` is the start by the node's own clock, `at` by the
    /// console's; the clock of the node is that much ahead.
    pub fn container_started(&mut self, node: NodeId, by_node: Option<Wall>) {
        let Some(seen) = self.nodes.get_mut(&node) else { return };
        seen.log.retain(|entry| match (entry.written, by_node) {
            (Some(written), Some(started)) => written >= started,
            (Some(_) | None, _) => false,
        });
    }

    /// How far a node's clock is ahead of the console's, as two readings of the same moment say.
    pub fn clock(&mut self, node: NodeId, by_node: Wall, by_console: Wall) {
        let ahead = i128::from(by_node.0) - i128::from(by_console.0);
        let beyond = ahead.unsigned_abs() > CLOCKS.as_millis();
        let ahead = if beyond { ahead } else { 0 };
        self.nodes.entry(node).or_default().ahead = i64::try_from(ahead).unwrap_or(0);
    }

    /// What the start was for had come true by then: what was said before has kept nothing from it. Warnings stay.
    pub fn came_true(&mut self, at: Wall) {
        self.true_at = Some(at);
        let rules = &self.rules;
        let warning = |entry: &Entry| entry.rule.as_deref().is_some_and(|id| warns(rules, id));
        for node in self.nodes.values_mut() {
            let ahead = node.ahead;
            node.log
                .retain(|entry| warning(entry) || entry.moment(ahead).wall >= at);
            node.output.retain(|entry| entry.read >= at);
            node.more = 0;
        }
        self.facts.retain(|(name, _), entry| {
            let step = name.of_step() && entry.read < at;
            !step && entry.over.is_none_or(|over| over >= at)
        });
    }

    /// Forgets everything: what was stopped on purpose has no cause.
    pub fn clear(&mut self, now: Now) {
        self.from = Some(now.wall);
        self.facts.clear();
        for node in self.nodes.values_mut() {
            node.log.clear();
            node.output.clear();
            node.more = 0;
        }
    }

    /// Everything that was seen.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        let logs = self
            .nodes
            .values()
            .flat_map(|n| n.log.iter().chain(&n.output).chain(&n.probe));
        logs.chain(self.facts.values())
    }

    /// Whether nothing was seen.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries().next().is_none()
    }

    /// Things that were seen and not kept.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.nodes.values().map(|n| n.more).fold(0, u64::saturating_add)
    }

    /// When a thing was first seen.
    pub(super) fn moment(&self, entry: &Entry) -> Moment {
        let ahead = entry.node.and_then(|n| self.nodes.get(&n)).map_or(0, |n| n.ahead);
        entry.moment(ahead)
    }

    fn number(&mut self) -> u64 {
        self.next = self.next.saturating_add(1);
        self.next
    }

    /// When a sign's line was written by the console's clock, where the log tells.
    fn by_console(&self, node: NodeId, sign: &Sign) -> Option<Wall> {
        let ahead = self.nodes.get(&node).map_or(0, |n| n.ahead);
        let written = sign.written?;
        Some(Wall(written.0.saturating_add_signed(ahead.saturating_neg())))
    }

    fn new_start(&mut self, node: NodeId, head: NodeId, sign: &Sign, now: Now) {
        if let Some(seen) = self.nodes.get_mut(&node) {
            seen.log.clear();
            seen.more = 0;
        }
        if node != head {
            return;
        }
        let Some(start) = self
            .by_console(node, sign)
            .or_else(|| (!sign.backlog).then_some(now.wall))
        else {
            return;
        };
        self.from = Some(start);
        // One that began before it was proven is the one that came true, and its log is read late or once more.
        self.true_at = self.true_at.filter(|at| start <= *at);
        let before = before(start);
        let moments: Vec<(NodeId, Vec<bool>)> = self
            .nodes
            .iter()
            .map(|(id, n)| {
                (
                    *id,
                    n.log
                        .iter()
                        .map(|e| self.moment(e))
                        .map(|m| m.certain && m.wall < before)
                        .collect(),
                )
            })
            .collect();
        for (id, old) in moments {
            if let Some(node) = self.nodes.get_mut(&id) {
                let mut old = old.into_iter();
                node.log.retain(|_| !old.next().unwrap_or(false));
            }
        }
        self.facts.retain(|_, entry| entry.over.is_none());
    }

    /// Whether a line is about another start, or about what has come true since.
    fn too_old(&self, node: NodeId, sign: &Sign) -> bool {
        let warning = match &sign.what {
            SignKind::Rule(id) | SignKind::More(id) => warns(&self.rules, id),
            SignKind::Unknown | SignKind::NewStart => false,
        };
        let joining = match &sign.what {
            SignKind::Rule(id) | SignKind::More(id) => joins(&self.rules, id),
            SignKind::Unknown | SignKind::NewStart => false,
        };
        let joined = self.nodes.get(&node).and_then(|n| n.joined).filter(|_| joining);
        let true_at = self.true_at.filter(|_| !warning).max(joined);
        match self.by_console(node, sign) {
            Some(written) => {
                self.from.is_some_and(|from| written < before(from)) || true_at.is_some_and(|at| written < at)
            }
            // It was there when what the start was for was seen to be true.
            None => sign.backlog && true_at.is_some(),
        }
    }

    fn take(&mut self, node: NodeId, origin: Origin, sign: Sign, now: Now) {
        let (rule, more) = match &sign.what {
            SignKind::Rule(id) => (Some(id.clone()), false),
            SignKind::More(id) => (Some(id.clone()), true),
            SignKind::Unknown => (None, false),
            SignKind::NewStart => return,
        };
        let seq = self.number();
        let seen = self.nodes.entry(node).or_default();
        let list = match origin {
            Origin::Log => &mut seen.log,
            Origin::Output | Origin::Fact => &mut seen.output,
        };
        if let Some(entry) = list.iter_mut().find(|e| e.rule == rule) {
            entry.add(sign, more, now.wall);
            return;
        }
        if more {
            return;
        }
        if list.len() >= ENTRIES {
            seen.more = seen.more.saturating_add(1);
            return;
        }
        list.push(Entry::of(sign, rule, node, origin, now.wall, seq));
    }
}

/// Whether a rule only warns.
fn warns(rules: &Rules, id: &str) -> bool {
    rules.get(id).is_some_and(|rule| rule.kind == Kind::Warning)
}

/// Whether a rule is about what comes before the membership, and nothing after it.
fn joins(rules: &Rules, id: &str) -> bool {
    rules
        .get(id)
        .is_some_and(|rule| rule.kind != Kind::Warning && !rule.step.contains(&Step::Serve))
}

/// The moment before which all is older than another, whatever the clocks.
fn before(moment: Wall) -> Wall {
    Wall(moment.0.saturating_sub(millis(CLOCKS)))
}
