//! Plans that stop. The server first, then the workers, then the head.

use crate::config::types::Engine;
use crate::domain::NodeId;
use crate::domain::link::LinkState;
use crate::domain::observed::VerbFacts;
use crate::engine;
use crate::probe::serve::UNSEEN;

use super::super::condition::Condition;
use super::super::judge::{ours, process_text};
use super::super::types::StepKind;
use super::{Maker, on};

impl Maker<'_> {
    pub(super) fn stop_serve_only(&mut self) {
        let head = self.config.head();
        self.reach(head);
        self.running_requests();
        if let Some(stranger) = self.stranger() {
            self.refuse(
                format!(
                    "the model server on {} was not started by bringup: {stranger}",
                    self.name(head)
                ),
                Some("stop it where it was started, or stop all".to_owned()),
            );
        }
        if self.unseen() {
            self.refuse(
                format!(
                    "what serves on {} can't be seen or ended by itself: {UNSEEN}",
                    self.name(head)
                ),
                Some("X and then a stops the container with all that is in it".to_owned()),
            );
        }
        self.stop_serve_step();
    }

    pub(super) fn stop_all(&mut self) {
        let head = self.config.head();
        self.running_requests();
        if let Some(stranger) = self.stranger() {
            self.note(format!(
                "the model server was not started by bringup and ends with its container: {stranger}"
            ));
        } else if self.unseen() {
            self.note(format!(
                "{UNSEEN}: a model server in it can't be ended by itself and ends with its container"
            ));
        } else if self.reachable(head) && self.holds(&Condition::ContainerRuns(head)) && !self.has_stop_verb() {
            self.stop_serve_step();
        }
        // A node that can't be reached comes last, so that it keeps no other from being stopped; one that may yet be reached comes before it.
        let mut order: Vec<NodeId> = self.config.workers().collect();
        order.push(head);
        order.sort_by_key(|n| (!self.reachable(*n), self.lost(*n)));
        for node in order {
            self.stop_node(node);
        }
        if self.plan.steps.is_empty() && self.plan.refusals.is_empty() {
            self.note("nothing of ours runs: there is nothing to stop");
        }
    }

    fn reachable(&self, node: NodeId) -> bool {
        self.observed.node(node).is_some_and(|n| n.link.usable())
    }

    fn lost(&self, node: NodeId) -> bool {
        let link = self.observed.node(node).map(|n| &n.link);
        link.is_some_and(|l| matches!(l, LinkState::Down { .. }))
    }

    fn has_stop_verb(&self) -> bool {
        match &self.config.engine {
            Engine::VllmRay(_) => false,
            Engine::Script(s) => s.stop.is_some(),
        }
    }

    /// Warns of requests that would be cut off.
    fn running_requests(&mut self) {
        let Some(sample) = self.observed.server.metrics.value() else {
            return;
        };
        let (running, waiting) = (sample.running.unwrap_or(0.0), sample.waiting.unwrap_or(0.0));
        if running + waiting >= 1.0 {
            self.note(format!(
                "requests running: {running}, waiting: {waiting}; they will be cut off"
            ));
        }
    }

    /// A model-server process in our container that others started.
    fn stranger(&self) -> Option<String> {
        if self.scripted() {
            return None;
        }
        let facts = self.observed.node(self.config.head())?.serve.value()?;
        let process = facts.processes.iter().find(|p| p.mark.is_none())?;
        Some(process_text(process))
    }

    /// Whether nothing can look into the head's container.
    pub(super) fn unseen(&self) -> bool {
        let serve = self.observed.node(self.config.head()).map(|n| &n.serve);
        serve.and_then(|s| s.reason()) == Some(UNSEEN)
    }

    fn stop_serve_step(&mut self) {
        let head = self.config.head();
        let title = format!("stop the model server on {}", self.name(head));
        let command = engine::stop_serve(self.config);
        let clean = self.scripted().then(|| on(head, engine::script::clean(self.config)));
        let mut step = self.step(StepKind::StopServe, Some(head), title, self.config.limits.stop);
        step.before = vec![Condition::NodeReachable(head)];
        step.commands = vec![on(head, command)];
        step.after = vec![Condition::ServeGone];
        step.finally = clean.into_iter().collect();
        self.add(step);
    }

    fn stop_node(&mut self, node: NodeId) {
        let place = self.name(node);
        let containers = self.observed.node(node).and_then(|n| n.containers.value());
        let mut names: Vec<&str> = Vec::new();
        match containers {
            Some(facts) => {
                for container in &facts.containers {
                    if ours(self.config, container) {
                        names.push(&container.name);
                    } else if container.name == self.config.container.name {
                        self.note(format!("{} on {place} is not ours and is left alone", container.name));
                    }
                }
            }
            None if self.reachable(node) => {
                self.refuse(
                    format!("what runs on {place} is not known yet"),
                    Some("wait for its first answer".to_owned()),
                );
                return;
            }
            None => {}
        }
        if names.is_empty() && self.reachable(node) && !self.verb_there(node) {
            return;
        }
        let title = if names.is_empty() {
            format!("stop {place}")
        } else {
            format!("stop and remove {} on {place}", names.join(", "))
        };
        let commands = engine::stop_node(self.config, &names);
        let verb = self.has_stop_verb();
        let clean = verb.then(|| on(node, engine::script::clean(self.config)));
        let limit = if verb {
            self.config.limits.stop.max(self.config.limits.verb)
        } else {
            self.config.limits.stop
        };
        let mut step = self.step(StepKind::StopNode, Some(node), title, limit);
        step.before = vec![Condition::NodeReachable(node)];
        step.commands = commands.into_iter().map(|c| on(node, c)).collect();
        step.after = vec![Condition::ContainerGone(node)];
        if verb {
            step.after.push(Condition::VerbEnded(node));
            step.broken_by = vec![Condition::VerbFailed(node)];
        }
        step.finally = clean.into_iter().collect();
        self.add(step);
    }

    /// Whether a verb of the script runs on the node, or has left its files there.
    fn verb_there(&self, node: NodeId) -> bool {
        let verb = self.observed.node(node).and_then(|n| n.verb.value());
        match verb {
            Some(VerbFacts::Running { .. } | VerbFacts::Ended { .. }) => self.scripted(),
            Some(VerbFacts::None) | None => false,
        }
    }
}
