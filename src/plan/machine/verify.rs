//! After a step ran: has what it was for come true, and does it stay?

use std::time::Duration;

use crate::domain::NodeId;
use crate::domain::observed::VerbFacts;
use crate::domain::problem::Verdict;
use crate::domain::step::{Failure, StepEventKind};
use crate::domain::time::human;

use super::super::condition::Condition;
use super::super::fix::cure;
use super::super::judge::{explain, judge};
use super::check::{fails, failure_of};
use super::command::bound_lines;
use super::{BREAK_CONFIRM, Do, End, Machine, Phase, START_GRACE, Scene, TELL_EVERY, TOKEN_TRIES, Watch};

impl Machine {
    /// One look at a step that waits for what it was for.
    pub(super) fn verify(&mut self, scene: Scene<'_>, out: &mut Vec<Do>) {
        let Phase::Verifying(mut watch) = self.phase.clone() else {
            return;
        };
        let Some(step) = self.step().cloned() else { return };
        let after: Vec<(Condition, Verdict)> = step
            .after
            .iter()
            .map(|c| (c.clone(), judge(c, scene.observed, scene.config, watch.since)))
            .collect();
        let holding = after.iter().filter(|(_, v)| v.holds()).count();
        if holding > watch.holding {
            watch.moved = scene.now;
        }
        watch.holding = holding;

        let end = if holding == after.len() {
            self.settled(&mut watch, &step.after, step.settle, scene)
        } else {
            if after.iter().any(|(_, v)| fails(v)) && watch.held.take().is_some() {
                let lost = failure_of(
                    &after.iter().filter(|(_, v)| fails(v)).cloned().collect::<Vec<_>>(),
                    scene,
                );
                self.note(format!("it held and holds no longer: {}", lost.seen), out);
            }
            None
        };
        let bad = || {
            let open: Vec<(Condition, Verdict)> = after.iter().filter(|(_, v)| !v.holds()).cloned().collect();
            failure_of(&open, scene)
        };
        let end = end
            .or_else(|| {
                let (node, failure) = broken(&mut watch, &step.broken_by, scene)?;
                self.broke_on = node;
                Some(End::Badly(failure))
            })
            .or_else(|| self.no_token(&after, scene).map(End::Badly))
            .or_else(|| stalled(&watch, step.stall, bad, scene).map(End::Badly))
            .or_else(|| self.too_late(step.limit, bad, scene).map(End::Badly));
        self.phase = Phase::Verifying(watch.clone());
        if let Some(mut end) = end {
            if let End::Badly(failure) = &mut end {
                self.add_lines(failure, scene);
            }
            self.decide(end, scene.now, out);
            return;
        }
        self.report(&after, scene, out);
        self.pending(after);
        let asked: Vec<Condition> = step.after.iter().chain(&step.broken_by).cloned().collect();
        self.ask(&asked, scene, watch.since, out);
    }

    /// Whether what holds has held long enough: by facts that were read after that time, not by the passing of it.
    fn settled(&self, watch: &mut Watch, after: &[Condition], settle: Duration, scene: Scene<'_>) -> Option<End> {
        let held = *watch.held.get_or_insert(scene.now);
        let stays = settle.is_zero()
            || after
                .iter()
                .all(|c| judge(c, scene.observed, scene.config, held.plus(settle)).holds());
        stays.then(|| End::Well(watch.outcome.clone()))
    }

    fn too_late(&self, limit: Duration, bad: impl Fn() -> Failure, scene: Scene<'_>) -> Option<Failure> {
        if scene.now.since(self.started()) <= limit {
            return None;
        }
        let mut failure = bad();
        if failure.what.is_empty() {
            failure.what = "what came true did not stay".to_owned();
        }
        failure.what = format!("{} (within {})", failure.what, human(limit));
        Some(failure)
    }

    /// The server failed to give a token too often.
    fn no_token(&self, after: &[(Condition, Verdict)], scene: Scene<'_>) -> Option<Failure> {
        let (condition, verdict) = after.iter().find(|(c, v)| *c == Condition::TokenSeen && !v.holds())?;
        if self.token.tries < TOKEN_TRIES || !self.token_failed(scene) {
            return None;
        }
        Some(failure_of(&[(condition.clone(), verdict.clone())], scene))
    }

    /// Adds what the engine's log and the script's verb say.
    fn add_lines(&self, failure: &mut Failure, scene: Scene<'_>) {
        failure.lines.extend(scene.progress.failures.iter().cloned());
        let node = self.step().and_then(|s| s.node);
        let verb = node.and_then(|n| scene.observed.node(n)).and_then(|n| n.verb.value());
        match verb {
            Some(VerbFacts::Running { tail, .. } | VerbFacts::Ended { tail, .. }) => {
                failure.lines.extend(tail.iter().cloned());
            }
            Some(VerbFacts::None) | None => {}
        }
        bound_lines(failure);
    }

    /// Tells what the step waits for, when that has changed.
    fn report(&mut self, after: &[(Condition, Verdict)], scene: Scene<'_>, out: &mut Vec<Do>) {
        let Some((condition, verdict)) = after.iter().find(|(_, v)| !v.holds()) else {
            return;
        };
        let text = condition.text(scene.config);
        let text = match verdict {
            Verdict::Fails { seen, .. } => format!("waiting until {text}; seen: {seen}"),
            // Why an answer is missing changes with every reading; it stands in `pending`.
            Verdict::Unknown(_) | Verdict::Holds => format!("waiting until {text}"),
        };
        let due = self
            .told
            .as_ref()
            .is_none_or(|(before, at)| *before != text && scene.now.since(*at) >= TELL_EVERY);
        if due {
            self.told = Some((text.clone(), scene.now));
            self.tell(StepEventKind::Progress(text), out);
        }
    }
}

/// What ended the wait, and on which node: seen twice, with time between, and after the processes had time to show themselves.
fn broken(watch: &mut Watch, by: &[Condition], scene: Scene<'_>) -> Option<(Option<NodeId>, Failure)> {
    let from = watch.since.plus(START_GRACE);
    for (condition, first) in by.iter().zip(&mut watch.broken) {
        match judge(condition, scene.observed, scene.config, from) {
            Verdict::Holds => {
                let seen_at = *first.get_or_insert(scene.now);
                let again = judge(condition, scene.observed, scene.config, seen_at.plus(BREAK_CONFIRM));
                if again.holds() {
                    let (seen, expected) = explain(condition, scene.observed, scene.config);
                    let (fix, command) = cure(condition, scene.observed, scene.config, scene.names_failure());
                    let failure = Failure {
                        what: condition.text(scene.config),
                        seen,
                        expected,
                        lines: Vec::new(),
                        fix,
                        command,
                        after: Duration::ZERO,
                    };
                    return Some((condition.node(), failure));
                }
            }
            Verdict::Fails { .. } => *first = None,
            Verdict::Unknown(_) => {}
        }
    }
    None
}

/// Whether there was no sign of progress for too long.
fn stalled(watch: &Watch, stall: Option<Duration>, bad: impl Fn() -> Failure, scene: Scene<'_>) -> Option<Failure> {
    let stall = stall.filter(|_| !scene.progress.downloading)?;
    let last = watch.moved.max(scene.progress.last.unwrap_or_default());
    let quiet = scene.now.since(last);
    if quiet <= stall {
        return None;
    }
    let mut failure = bad();
    failure.seen = format!("no sign of progress for {}; {}", human(quiet), failure.seen);
    failure.expected = format!("progress within {} (limits.stall); {}", human(stall), failure.expected);
    Some(failure)
}
