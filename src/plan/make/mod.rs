//! From what is wanted and what is seen to a plan.
//!
//! What is seen decides what the plan holds (a pull only where the image is missing, `--device` only where there is one) and what it refuses. Whether a
//! step is true already or under way is decided when its turn comes, from newer facts.

mod start;
mod stop;

use std::time::Duration;

use crate::config::Config;
use crate::config::types::Engine;
use crate::domain::command::Command;
use crate::domain::container::{Container, ContainerState};
use crate::domain::intent::Action;
use crate::domain::link::LinkState;
use crate::domain::observed::Observed;
use crate::domain::problem::Verdict;
use crate::domain::{NodeId, Now, Stamp, StepId};

use super::condition::Condition;
use super::fix::fix;
use super::judge::judge;
use super::types::{Plan, PlannedCommand, Refusal, Step, StepKind};

/// What is noted of a step that will find nothing to do.
pub const SKIPPED: &str = "true already, will be skipped";

/// Plans an action.
#[must_use]
pub fn make(action: Action, config: &Config, observed: &Observed, now: Now) -> Plan {
    let mut maker = Maker {
        config,
        observed,
        now,
        plan: Plan {
            action,
            steps: Vec::new(),
            refusals: Vec::new(),
            notes: Vec::new(),
        },
    };
    match action {
        Action::Head => maker.head(),
        Action::Workers => maker.workers(),
        Action::Serve => maker.serve(),
        Action::Up => maker.up(),
        Action::StopServe => maker.stop_serve_only(),
        Action::StopAll => maker.stop_all(),
    }
    maker.outlook();
    maker.plan
}

/// A plan in the making.
struct Maker<'a> {
    config: &'a Config,
    observed: &'a Observed,
    now: Now,
    plan: Plan,
}

impl<'a> Maker<'a> {
    fn name(&self, node: NodeId) -> &'a str {
        self.config.node_name(node)
    }

    fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.plan.notes.contains(&text) {
            self.plan.notes.push(text);
        }
    }

    /// Says which steps will find nothing to do, as far as is known now.
    fn outlook(&mut self) {
        let mut notes = Vec::new();
        for (place, step) in self.plan.steps.iter().enumerate() {
            // What an earlier step takes away is neither there nor under way by then.
            let before = self.plan.steps.iter().take(place);
            if before
                .into_iter()
                .any(|s| s.kind == StepKind::StopNode && s.node == step.node)
            {
                continue;
            }
            let all = |conditions: &[Condition]| !conditions.is_empty() && conditions.iter().all(|c| self.holds(c));
            if all(&step.after) {
                notes.push(format!("{}: {SKIPPED}", step.title));
            } else if all(&step.under_way) {
                let missing = step.after.iter().any(|c| self.fails(c));
                let text = if missing {
                    "under way already, will be waited for"
                } else {
                    "runs already, will not be started again"
                };
                notes.push(format!("{}: {text}", step.title));
            }
        }
        self.plan.notes.extend(notes);
    }

    fn refuse(&mut self, text: impl Into<String>, fix: Option<String>) {
        let refusal = Refusal { text: text.into(), fix };
        if !self.plan.refusals.contains(&refusal) {
            self.plan.refusals.push(refusal);
        }
    }

    /// Refuses if the condition is known not to hold now.
    fn refuse_unless(&mut self, condition: &Condition) {
        if let Verdict::Fails { seen, expected } = self.judge(condition) {
            let needed = condition.text(self.config);
            let text = format!("it needs that {needed}; seen {seen}, expected {expected}");
            self.refuse(text, fix(condition, self.observed, self.config, false));
        }
    }

    /// The answer from what is known, however old: good enough to plan on, checked again before a command runs.
    fn judge(&self, condition: &Condition) -> Verdict {
        judge(condition, self.observed, self.config, Stamp(0))
    }

    fn holds(&self, condition: &Condition) -> bool {
        self.judge(condition).holds()
    }

    /// Whether it is known not to hold. What is not known yet refuses nothing: the step looks again.
    fn fails(&self, condition: &Condition) -> bool {
        matches!(self.judge(condition), Verdict::Fails { .. })
    }

    /// The next step, with the defaults of a check that needs no command. It is not in the plan yet.
    fn step(&self, kind: StepKind, node: Option<NodeId>, title: String, limit: Duration) -> Step {
        Step {
            id: StepId(u16::try_from(self.plan.steps.len()).unwrap_or(u16::MAX)),
            title,
            kind,
            node,
            before: Vec::new(),
            under_way: Vec::new(),
            commands: Vec::new(),
            after: Vec::new(),
            broken_by: Vec::new(),
            settle: Duration::ZERO,
            limit,
            finally: Vec::new(),
            evidence: Vec::new(),
            stall: None,
        }
    }

    fn add(&mut self, step: Step) {
        self.plan.steps.push(step);
    }

    /// Refuses unless commands can run on the node.
    fn reach(&mut self, node: NodeId) {
        let name = self.name(node);
        let via = self
            .config
            .node(node)
            .and_then(|n| n.via)
            .and_then(|hop| self.config.ssh.jump.get(hop.index()))
            .map(|hop| format!(" (via {})", hop.name))
            .unwrap_or_default();
        let Some(seen) = self.observed.node(node) else { return };
        match &seen.link {
            LinkState::Up | LinkState::Silent { .. } => {}
            LinkState::Down { error, .. } => {
                self.refuse(
                    format!("{name}{via} can't be reached: {}", error.text),
                    error.fix.clone(),
                );
            }
            LinkState::Idle | LinkState::Connecting => {
                self.refuse(
                    format!("{name}{via} is not connected yet"),
                    Some("wait until it is".to_owned()),
                );
            }
            LinkState::Asking => {
                self.refuse(
                    format!("{name}{via} waits for an answer to a question"),
                    Some("answer it first".to_owned()),
                );
            }
        }
    }

    /// The container of the configured name on a node, as last seen.
    fn container(&self, node: NodeId) -> Option<&'a Container> {
        let facts = self.observed.node(node)?.containers.value()?;
        facts.named(&self.config.container.name)
    }

    /// Whether the node runs already, or starts, so that nothing will be started there.
    fn started(&self, node: NodeId) -> bool {
        self.holds(&Condition::StartUnderWay(node))
    }

    fn scripted(&self) -> bool {
        match self.config.engine {
            Engine::VllmRay(_) => false,
            Engine::Script(_) => true,
        }
    }
}

fn on(node: NodeId, command: Command) -> PlannedCommand {
    PlannedCommand { node, command }
}

/// Whether a container has ended, or was never started, and only stands in the way of its name.
fn ended(container: &Container) -> bool {
    match &container.state {
        ContainerState::Created | ContainerState::Exited { .. } | ContainerState::Other(_) => true,
        ContainerState::Running | ContainerState::Paused | ContainerState::Restarting => false,
    }
}
