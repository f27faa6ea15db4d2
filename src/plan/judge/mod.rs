//! Answers conditions from observed facts, in words that say what was seen and what was expected.
//!
//! A fact that was read before the moment that counts is not taken: the answer is then unknown, with the reason.

mod image;
mod node;
mod ray;
mod serve;

use crate::config::Config;
use crate::config::types::Engine;
use crate::domain::container::{Container, ContainerState};
use crate::domain::observed::{NodeObserved, Observed};
use crate::domain::problem::Verdict;
use crate::domain::{NodeId, Reading, Stamp};

use super::condition::Condition;

pub(crate) use ray::stray_of;
pub(super) use serve::process_text;

/// Answers a condition. Readings from before `after` do not count.
#[must_use]
pub fn judge(condition: &Condition, observed: &Observed, config: &Config, after: Stamp) -> Verdict {
    let ctx = Ctx {
        observed,
        config,
        after,
    };
    let answer = match condition {
        Condition::NodeReachable(n) => ctx.reachable(*n),
        Condition::FabricAddressPresent(n) => ctx.fabric_address(*n),
        Condition::PortFree(n, port) => ctx.port_free(*n, *port),
        Condition::NameFree(n, name) => ctx.name_free(*n, name),
        Condition::GpuFree(n) => ctx.gpu_free(*n),
        Condition::ContainerRuns(n) => ctx.container_runs(*n),
        Condition::StartUnderWay(n) => ctx.start_under_way(*n),
        Condition::StartLost(n) => ctx.start_lost(*n),
        Condition::ContainerGone(n) => ctx.container_gone(*n),
        Condition::VerbEnded(n) => ctx.verb_ended(*n),
        Condition::VerbFailed(n) => ctx.verb_failed(*n),
        Condition::ImagePresent(n) => ctx.image_present(*n),
        Condition::ImagesEqual => ctx.images_equal(),
        Condition::VersionsEqual => ctx.versions_equal(),
        Condition::RayListens(n) => ctx.ray_listens(*n),
        Condition::RayMember(n) => ctx.ray_member(*n),
        Condition::WrongAddress(n) => ctx.wrong_address(*n),
        Condition::RayComplete => ctx.ray_complete(),
        Condition::ServeUnderWay => ctx.serve_under_way(),
        Condition::ServeGone => ctx.serve_gone(),
        Condition::ServeLost => ctx.serve_lost(),
        Condition::Healthy => ctx.healthy(),
        Condition::ModelListed => ctx.model_listed(),
        Condition::WrongModel => ctx.wrong_model(),
        Condition::TokenSeen => ctx.token_seen(),
    };
    answer.unwrap_or_else(Verdict::Unknown)
}

/// What a condition that ends a wait has come from: what was seen and what was expected instead.
#[must_use]
pub fn explain(condition: &Condition, observed: &Observed, config: &Config) -> (String, String) {
    let ctx = Ctx {
        observed,
        config,
        after: Stamp(0),
    };
    let with_verb = |seen: String, node| match ctx.verb_end(node) {
        Some(verb) => format!("{seen}; {verb}"),
        None => seen,
    };
    match condition {
        Condition::StartLost(n) => {
            let seen = ctx.no_container(*n).unwrap_or_else(|why| why);
            let expected = format!("container {} running", config.container.name);
            (with_verb(seen, *n), expected)
        }
        Condition::WrongAddress(n) => match ctx.ray_member(*n) {
            Ok(Verdict::Fails { seen, expected }) => (seen, expected),
            Ok(Verdict::Holds | Verdict::Unknown(_)) | Err(_) => {
                (condition.text(config), "its fabric address".to_owned())
            }
        },
        Condition::ServeLost => {
            let seen = "the model server has ended before it answered".to_owned();
            (with_verb(seen, config.head()), "a model server that answers".to_owned())
        }
        Condition::WrongModel => match ctx.model_listed() {
            Ok(Verdict::Fails { seen, expected }) => (format!("/v1/models names {seen}"), expected),
            Ok(Verdict::Holds | Verdict::Unknown(_)) | Err(_) => {
                (condition.text(config), config.serve.name().to_owned())
            }
        },
        Condition::VerbFailed(n) => {
            let seen = ctx.verb_end(*n).unwrap_or_else(|| condition.text(config));
            (seen, "exit code 0".to_owned())
        }
        Condition::NodeReachable(_)
        | Condition::FabricAddressPresent(_)
        | Condition::ImagePresent(_)
        | Condition::ImagesEqual
        | Condition::VersionsEqual
        | Condition::PortFree(..)
        | Condition::NameFree(..)
        | Condition::GpuFree(_)
        | Condition::ContainerRuns(_)
        | Condition::StartUnderWay(_)
        | Condition::ContainerGone(_)
        | Condition::RayListens(_)
        | Condition::RayMember(_)
        | Condition::RayComplete
        | Condition::ServeUnderWay
        | Condition::ServeGone
        | Condition::VerbEnded(_)
        | Condition::Healthy
        | Condition::ModelListed
        | Condition::TokenSeen => (condition.text(config), "otherwise".to_owned()),
    }
}

/// An answer, or why there is none yet.
type Answer = Result<Verdict, String>;

/// What a judgement looks at.
#[derive(Clone, Copy)]
struct Ctx<'a> {
    observed: &'a Observed,
    config: &'a Config,
    after: Stamp,
}

impl<'a> Ctx<'a> {
    /// The value of a reading if it is new enough.
    fn fresh<T>(&self, reading: &'a Reading<T>, what: &str) -> Result<&'a T, String> {
        match reading.fresh(self.after) {
            Some(value) => Ok(value),
            None => Err(match reading.reason() {
                Some(why) => format!("{what}: {why}"),
                None => format!("{what}: not read again yet"),
            }),
        }
    }

    fn node(&self, node: NodeId) -> Result<&'a NodeObserved, String> {
        self.observed.node(node).ok_or_else(|| "no such node".to_owned())
    }

    fn name(&self, node: NodeId) -> &'a str {
        self.config.node_name(node)
    }

    fn address(&self, node: NodeId) -> &'a str {
        self.config.node(node).map_or("?", |n| n.fabric_address.as_str())
    }

    /// The container of the configured name, when one is there. For the `vllm-ray` engine it need not be ours; [`ours`] tells.
    fn container(&self, node: NodeId) -> Result<Option<&'a Container>, String> {
        let what = format!("containers of {}", self.name(node));
        let facts = self.fresh(&self.node(node)?.containers, &what)?;
        Ok(facts.named(&self.config.container.name))
    }

    /// The configured container, when it runs and is one that this configuration may take for its own.
    fn running(&self, node: NodeId) -> Result<Option<&'a Container>, String> {
        let container = self.container(node)?;
        Ok(container.filter(|c| c.state == ContainerState::Running && ours(self.config, c)))
    }
}

/// Whether a container belongs to this configuration: by label for the `vllm-ray` engine, by name for what the user's script starts.
pub(crate) fn ours(config: &Config, container: &Container) -> bool {
    match config.engine {
        Engine::VllmRay(_) => container.ours.as_ref().is_some_and(|l| l.cluster == config.cluster),
        Engine::Script(_) => container.name == config.container.name,
    }
}

/// A container's state in words.
pub(super) fn state_text(container: &Container) -> String {
    match &container.state {
        ContainerState::Created => "was made and never started".to_owned(),
        ContainerState::Running => "runs".to_owned(),
        ContainerState::Paused => "is paused".to_owned(),
        ContainerState::Restarting => "restarts again and again".to_owned(),
        ContainerState::Exited { code, oom: true } => format!("was killed for lack of memory (exit code {code})"),
        ContainerState::Exited { code: 137, oom: false } => {
            "was killed (exit code 137), by hand or for lack of memory on the host".to_owned()
        }
        ContainerState::Exited { code, oom: false } => format!("has ended with exit code {code}"),
        ContainerState::Other(word) => format!("is {word}"),
    }
}

fn fails(seen: impl Into<String>, expected: impl Into<String>) -> Verdict {
    Verdict::Fails {
        seen: seen.into(),
        expected: expected.into(),
    }
}
