//! Conditions on the model server: its process and its answers.

use crate::config::types::Engine;
use crate::domain::NodeId;
use crate::domain::container::ContainerState;
use crate::domain::observed::VerbFacts;
use crate::domain::problem::Verdict;
use crate::domain::serving::{Health, ServeProcess};

use super::{Answer, Ctx, fails};

/// Characters of a command line in a message.
const COMMAND: usize = 80;

impl<'a> Ctx<'a> {
    pub(super) fn has_verbs(&self) -> bool {
        match self.config.engine {
            Engine::VllmRay(_) => false,
            Engine::Script(_) => true,
        }
    }

    /// The model-server processes in the head's container; none when it doesn't run.
    fn servers(&self) -> Result<&'a [ServeProcess], String> {
        let head = self.config.head();
        let name = &self.config.container.name;
        let container = self.container(head)?;
        if !container.is_some_and(|c| c.state == ContainerState::Running) {
            return Ok(&[]);
        }
        let facts = self.fresh(&self.node(head)?.serve, &format!("processes in {name}"))?;
        Ok(&facts.processes)
    }

    pub(super) fn serve_under_way(&self) -> Answer {
        if !self.servers()?.is_empty() || self.serve_verb_runs()? {
            return Ok(Verdict::Holds);
        }
        Ok(fails("no model server runs", "a model server that starts"))
    }

    /// Whether the verb that serves runs now. Another verb starts no server.
    fn serve_verb_runs(&self) -> Result<bool, String> {
        let verb = self.verb_running(self.config.head())?;
        Ok(match &self.config.engine {
            Engine::VllmRay(_) => false,
            Engine::Script(script) => verb == Some(script.serve.as_str()),
        })
    }

    pub(super) fn serve_gone(&self) -> Answer {
        let left = self.servers()?;
        let Some(first) = left.first() else {
            return Ok(Verdict::Holds);
        };
        Ok(fails(process_text(first), "no model server"))
    }

    pub(super) fn serve_lost(&self) -> Answer {
        Ok(match self.serve_under_way()? {
            Verdict::Holds => fails("it runs", "ended"),
            Verdict::Fails { .. } | Verdict::Unknown(_) => Verdict::Holds,
        })
    }

    pub(super) fn healthy(&self) -> Answer {
        let port = self.config.serve.port;
        let expected = "200 from /health";
        match self.fresh(&self.observed.server.health, "/health")? {
            Health::Ok => Ok(Verdict::Holds),
            Health::Status(code) => Ok(fails(format!("/health answers {code}"), expected)),
            Health::Refused => Ok(fails(format!("port {port} refuses"), expected)),
            Health::Unreachable(why) => Err(format!("/health: {why}")),
        }
    }

    pub(super) fn model_listed(&self) -> Answer {
        let names = self.fresh(&self.observed.server.models, "/v1/models")?;
        let wanted = self.config.serve.name();
        if names.iter().any(|n| n == wanted) {
            return Ok(Verdict::Holds);
        }
        let seen = if names.is_empty() {
            "no model".to_owned()
        } else {
            names.join(", ")
        };
        Ok(fails(seen, wanted))
    }

    /// An empty list says nothing yet: a server may name its models only later.
    pub(super) fn wrong_model(&self) -> Answer {
        let expected = "the configured model";
        if !self.healthy()?.holds() {
            return Ok(fails("no server that answers", expected));
        }
        let names = self.fresh(&self.observed.server.models, "/v1/models")?;
        let other = !names.is_empty() && !self.model_listed()?.holds();
        Ok(if other {
            Verdict::Holds
        } else {
            fails(names.join(", "), expected)
        })
    }

    /// Tokens that the server has counted are proof; else one that came back to us.
    pub(super) fn token_seen(&self) -> Answer {
        let server = &self.observed.server;
        let counted = server.metrics.fresh(self.after).and_then(|m| m.generation_tokens);
        if counted.is_some_and(|n| n >= 1.0) || server.token.fresh(self.after).is_some() {
            return Ok(Verdict::Holds);
        }
        match server.token.reason() {
            Some(why) => Err(format!("one generated token: {why}")),
            None => Err("one generated token: not asked again yet".to_owned()),
        }
    }

    /// What the script's latest verb on the head came to, when it failed.
    #[must_use]
    pub(super) fn verb_end(&self, node: NodeId) -> Option<String> {
        match self.observed.node(node)?.verb.value()? {
            VerbFacts::Ended { verb, code, .. } => Some(format!("the verb {verb} ended with exit code {code}")),
            VerbFacts::None | VerbFacts::Running { .. } => None,
        }
    }
}

pub(in crate::plan) fn process_text(process: &ServeProcess) -> String {
    let command: String = process.command.chars().take(COMMAND).collect();
    let whose = if process.mark.is_some() { "" } else { ", not ours" };
    format!("process {}{whose}: {command}", process.pid)
}
