//! Before a step runs: is it true already, under way, or may it run?

use std::time::Duration;

use crate::domain::problem::Verdict;
use crate::domain::step::{Failure, StepOutcome};
use crate::domain::{NodeId, Stamp};

use super::super::condition::Condition;
use super::super::fix::cure;
use super::super::judge::judge;
use super::{ADOPT, CHECK_LIMIT, Do, ENOUGH, End, Machine, Phase, Scene};

/// Conditions with their answers.
type Answers = Vec<(Condition, Verdict)>;

impl Machine {
    /// One look at a step that has not run.
    pub(super) fn check(&mut self, scene: Scene<'_>, out: &mut Vec<Do>) {
        let Some(step) = self.step() else { return };
        let since = self.started();
        let waited = scene.now.since(since);
        let after = answers(&step.after, scene, since);
        let under_way = answers(&step.under_way, scene, since);
        let before = answers(&step.before, scene, since);
        let late = waited > step.limit.min(CHECK_LIMIT);

        if !after.is_empty() && all_hold(&after) {
            self.true_already(scene.now, out);
            return;
        }
        let decided = after.is_empty() || any_fails(&after);
        let adopt = !under_way.is_empty() && all_hold(&under_way);
        if adopt && (decided || waited > ADOPT) {
            self.note(
                "it is under way already: it is waited for, not started again".to_owned(),
                out,
            );
            self.watch(StepOutcome::Adopted, since);
            return;
        }
        let free = under_way.is_empty() || any_fails(&under_way);
        // Without a connection nothing else will become known.
        let cut = before
            .iter()
            .any(|(c, v)| matches!(c, Condition::NodeReachable(_)) && fails(v));
        let known = before.iter().all(|(c, v)| !unknown(v) || passes(c, scene, since));
        if cut || (free && any_fails(&before) && (known || waited > ENOUGH)) {
            let failure = failing(&before, scene);
            self.decide(End::Badly(failure), scene.now, out);
            return;
        }
        if decided && free && known && !any_fails(&before) {
            self.pass(&before, out);
            self.run_from(0, scene.now, out);
            return;
        }
        if late {
            let all: Answers = before.into_iter().chain(under_way).chain(after).collect();
            let failure = undecided(&all, scene);
            self.decide(End::Badly(failure), scene.now, out);
            return;
        }
        let asked: Vec<Condition> = [&before, &under_way, &after]
            .into_iter()
            .flatten()
            .filter(|(_, v)| !v.holds())
            .map(|(c, _)| c.clone())
            .collect();
        self.pending(before.into_iter().chain(after).filter(|(_, v)| !v.holds()).collect());
        self.ask(&asked, scene, since, out);
    }

    /// What the step is for holds before it ran. Where it must stay, it is watched that long.
    fn true_already(&mut self, now: Stamp, out: &mut Vec<Do>) {
        let settles = self.step().is_some_and(|s| !s.settle.is_zero());
        if !settles {
            self.decide(End::Well(StepOutcome::Skipped), now, out);
            return;
        }
        let since = self.started();
        self.watch(StepOutcome::Success, since);
        if let Phase::Verifying(watch) = &mut self.phase {
            watch.held = Some(now);
            watch.moved = now;
        }
    }

    /// Notes the answers that could not be had and are let pass.
    fn pass(&mut self, before: &Answers, out: &mut Vec<Do>) {
        for (_, verdict) in before {
            if let Verdict::Unknown(why) = verdict {
                self.note(format!("not known, going on: {why}"), out);
            }
        }
    }

    pub(super) fn pending(&mut self, answers: Answers) {
        if let Some(status) = self.status() {
            status.pending = answers;
        }
    }
}

/// Answers conditions from facts of `since` or later. A token proves the server's start, however old it is: whoever holds the facts forgets it when the
/// server starts anew.
fn answers(conditions: &[Condition], scene: Scene<'_>, since: Stamp) -> Answers {
    conditions
        .iter()
        .map(|c| {
            let since = if *c == Condition::TokenSeen { Stamp(0) } else { since };
            (c.clone(), judge(c, scene.observed, scene.config, since))
        })
        .collect()
}

pub(super) fn fails(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Fails { .. })
}

pub(super) fn unknown(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Unknown(_))
}

fn all_hold(answers: &Answers) -> bool {
    answers.iter().all(|(_, v)| v.holds())
}

fn any_fails(answers: &Answers) -> bool {
    answers.iter().any(|(_, v)| fails(v))
}

/// Whether an unknown answer is let pass: the node has answered, and not about this.
fn passes(condition: &Condition, scene: Scene<'_>, since: Stamp) -> bool {
    let answered = |n: NodeId| {
        let node = scene.observed.node(n);
        node.is_some_and(|n| n.containers.fresh(since).is_some())
    };
    if let Condition::GpuFree(n) = condition {
        return answered(*n);
    }
    false
}

/// The failure that shows every condition that fails.
pub(super) fn failing(answers: &Answers, scene: Scene<'_>) -> Failure {
    let bad: Answers = answers.iter().filter(|(_, v)| fails(v)).cloned().collect();
    failure_of(&bad, scene)
}

/// The failure of a step whose facts did not come in time.
fn undecided(answers: &Answers, scene: Scene<'_>) -> Failure {
    let open: Answers = answers.iter().filter(|(_, v)| unknown(v)).cloned().collect();
    failure_of(&open, scene)
}

/// The failure that shows these conditions.
pub(super) fn failure_of(bad: &[(Condition, Verdict)], scene: Scene<'_>) -> Failure {
    let mut whats = Vec::new();
    let mut seens = Vec::new();
    let mut expecteds = Vec::new();
    for (condition, verdict) in bad {
        let text = condition.text(scene.config);
        match verdict {
            Verdict::Fails { seen, expected } => {
                seens.push(seen.clone());
                expecteds.push(expected.clone());
            }
            Verdict::Unknown(why) => {
                seens.push(format!("not known ({why})"));
                expecteds.push(text.clone());
            }
            Verdict::Holds => {}
        }
        whats.push(text);
    }
    expecteds.dedup();
    seens.dedup();
    let (fix, command) = bad
        .iter()
        .map(|(c, _)| cure(c, scene.observed, scene.config, scene.names_failure()))
        .find(|(fix, _)| fix.is_some())
        .unwrap_or_default();
    Failure {
        what: whats.join("; "),
        seen: seens.join("; "),
        expected: expecteds.join("; "),
        lines: Vec::new(),
        fix,
        command,
        after: Duration::ZERO,
    }
}
