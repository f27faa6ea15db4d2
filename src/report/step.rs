//! `bringup up --json`: one object a line for each piece of news.

use serde_json::{Value, json};

use crate::domain::Now;
use crate::domain::effect::RunOutcome;
use crate::domain::step::{StepEvent, StepEventKind, StepOutcome};
use crate::model::State;
use crate::plan::Plan;

use super::SCHEMA;
use super::causes::causes;
use super::status::timestamp;

/// The plan, before anything runs.
#[must_use]
pub fn plan(plan: &Plan, now: Now) -> Value {
    let steps: Vec<Value> = plan
        .steps
        .iter()
        .map(|s| {
            let commands: Vec<String> = s.commands.iter().map(|c| c.command.line()).collect();
            json!({ "step": s.id.0, "title": s.title, "kind": s.kind, "commands": commands })
        })
        .collect();
    json!({
        "schema": SCHEMA,
        "at": timestamp(now),
        "event": "plan",
        "action": plan.action,
        "steps": steps,
        "notes": plan.notes,
        "refusals": plan.refusals,
    })
}

/// News of a step.
#[must_use]
pub fn step(event: &StepEvent, plan: &Plan, now: Now) -> Value {
    let title = plan.steps.get(event.step.index()).map(|s| s.title.as_str());
    let mut value = json!({ "at": timestamp(now), "step": event.step.0, "title": title });
    let more = match &event.kind {
        StepEventKind::Started => json!({ "event": "started" }),
        StepEventKind::Progress(text) => json!({ "event": "progress", "text": text }),
        StepEventKind::Done(outcome) => match outcome {
            StepOutcome::Success => json!({ "event": "done", "outcome": "success" }),
            StepOutcome::Warning(text) => json!({ "event": "done", "outcome": "warning", "text": text }),
            StepOutcome::Skipped => json!({ "event": "done", "outcome": "skipped" }),
            StepOutcome::Adopted => json!({ "event": "done", "outcome": "adopted" }),
        },
        StepEventKind::Failed(f) => json!({
            "event": "failed",
            "what": f.what,
            "seen": f.seen,
            "expected": f.expected,
            "lines": f.lines,
            "fix": f.fix,
            "after_s": f.after.as_secs_f64(),
        }),
        StepEventKind::Aborted => json!({ "event": "aborted" }),
        StepEventKind::Unknown(why) => json!({ "event": "unknown", "why": why }),
    };
    if let (Value::Object(all), Value::Object(more)) = (&mut value, more) {
        all.extend(more);
    }
    value
}

/// The end of a run, and why it failed when it did.
#[must_use]
pub fn over(outcome: RunOutcome, state: &State, now: Now) -> Value {
    let causes = match outcome {
        RunOutcome::Failed | RunOutcome::Unknown => causes(state),
        RunOutcome::Done | RunOutcome::Aborted => Vec::new(),
    };
    json!({ "at": timestamp(now), "event": "over", "outcome": outcome, "causes": causes })
}

/// The end that a signal makes: whatever a run was at, and what goes on without the console, a line each.
#[must_use]
pub fn interrupted(cut_short: &[String], goes_on: &[String], now: Now) -> Value {
    json!({
        "at": timestamp(now),
        "event": "over",
        "outcome": "interrupted",
        "cut_short": cut_short,
        "left": goes_on,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_by_a_signal_says_what_is_left() {
        let said = interrupted(&["a".into()], &["b".into(), "c".into()], Now::default());
        assert_eq!(said["event"], "over");
        assert_eq!(said["outcome"], "interrupted");
        assert_eq!(said["cut_short"], json!(["a"]));
        assert_eq!(said["left"], json!(["b", "c"]));
    }
}
