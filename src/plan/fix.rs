//! What to do about a condition that does not hold.

use crate::config::Config;
use crate::config::types::Engine;
use crate::domain::command::quote;
use crate::domain::link::LinkState;
use crate::domain::observed::Observed;
use crate::domain::{NodeId, Stamp};

use super::condition::Condition;
use super::judge::{judge, ours, stray_of};

/// What to do, in words, and what to run for it on a node where the words name one command that looks and changes nothing.
#[must_use]
pub(super) fn cure(
    condition: &Condition,
    observed: &Observed,
    config: &Config,
    named: bool,
) -> (Option<String>, Option<(NodeId, String)>) {
    (
        fix(condition, observed, config, named),
        command(condition, observed, config),
    )
}

/// The command that the words of [`fix`] name.
fn command(condition: &Condition, observed: &Observed, config: &Config) -> Option<(NodeId, String)> {
    let (node, container) = match condition {
        Condition::NameFree(n, c) => {
            let found = observed.node(*n)?.containers.value()?.named(c)?;
            (*n, (!ours(config, found)).then_some(c)?)
        }
        Condition::ContainerRuns(n) | Condition::StartLost(n) | Condition::RayListens(n) => {
            if there(observed, config, *n) == Some(false) {
                return None;
            }
            (*n, &config.container.name)
        }
        Condition::RayMember(n) | Condition::WrongAddress(n) => {
            if stray(observed, config, *n) || no_head(observed, config) {
                return None;
            }
            (*n, &config.container.name)
        }
        Condition::NodeReachable(_)
        | Condition::FabricAddressPresent(_)
        | Condition::ImagePresent(_)
        | Condition::ImagesEqual
        | Condition::VersionsEqual
        | Condition::PortFree(..)
        | Condition::GpuFree(_)
        | Condition::RayComplete
        | Condition::ModelListed
        | Condition::WrongModel
        | Condition::ServeLost
        | Condition::Healthy
        | Condition::TokenSeen
        | Condition::ContainerGone(_)
        | Condition::StartUnderWay(_)
        | Condition::ServeUnderWay
        | Condition::ServeGone
        | Condition::VerbEnded(_)
        | Condition::VerbFailed(_) => return None,
    };
    Some((node, format!("{} logs {}", config.container.docker, quote(container))))
}

/// What to do, when it is known. `named` tells whether the logs hold a line that names a failure: nobody is sent to look for one that isn't there.
#[must_use]
pub(super) fn fix(condition: &Condition, observed: &Observed, config: &Config, named: bool) -> Option<String> {
    let name = |n: NodeId| config.node_name(n);
    let image = &config.container.image;
    let docker = &config.container.docker;
    let container = &config.container.name;
    match condition {
        Condition::NodeReachable(n) => match &observed.node(*n)?.link {
            LinkState::Down { error, .. } => error.fix.clone(),
            LinkState::Idle | LinkState::Connecting | LinkState::Asking => None,
            LinkState::Up | LinkState::Silent { .. } => None,
        },
        Condition::FabricAddressPresent(n) => Some(format!(
            "bring the fabric interface of {} up, or set fabric_address and fabric_interface to what `ip addr` shows there",
            name(*n)
        )),
        Condition::ImagePresent(n) => Some(format!("on {}: {docker} pull {image}", name(*n))),
        Condition::ImagesEqual => Some(format!(
            "make them equal: `{docker} save {image}` on {} into `{docker} load` on the others, or pull the same digest everywhere",
            name(config.head())
        )),
        Condition::VersionsEqual => {
            Some("use one image on every node, with ray and vllm in it; Ray wants the same Python too".to_owned())
        }
        Condition::PortFree(n, port) => Some(format!(
            "end what holds port {port} on {}, or set another port in the config",
            name(*n)
        )),
        Condition::NameFree(n, c) => {
            let found = observed
                .node(*n)
                .and_then(|o| o.containers.value())
                .and_then(|f| f.named(c));
            Some(if found.is_some_and(|f| ours(config, f)) {
                "X stops and removes it".to_owned()
            } else {
                format!(
                    "see what it is with `{docker} logs {c}` on {}; remove it there with `{docker} rm -f {c}`, or set another container name",
                    name(*n)
                )
            })
        }
        Condition::GpuFree(n) => Some(format!("end these processes on {}, or wait for them", name(*n))),
        Condition::RayMember(n) | Condition::WrongAddress(n) => Some(membership(observed, config, *n)),
        Condition::RayComplete => config
            .node_ids()
            .find(|n| stray(observed, config, *n) || no_head(observed, config))
            .map(|n| membership(observed, config, n))
            .or_else(|| {
                let more = config.workers().any(|n| there(observed, config, n) == Some(true));
                let more = more.then(|| format!("; `{docker} logs {container}` there says more"));
                Some(format!("join the missing nodes with W{}", more.unwrap_or_default()))
            }),
        Condition::ContainerRuns(n) | Condition::StartLost(n) | Condition::RayListens(n) => {
            Some(match there(observed, config, *n) {
                Some(false) => gone(config, *n),
                Some(true) | None => format!("`{docker} logs {container}` on {} says why", name(*n)),
            })
        }
        Condition::ModelListed | Condition::WrongModel => Some(
            "set serve.served_name to the name that the server gives, or stop it with X and serve the configured model with S".to_owned(),
        ),
        Condition::ServeLost | Condition::Healthy | Condition::TokenSeen if named => Some(format!(
            "the first failure line in the log of {} says why; look at the other nodes' logs too",
            name(config.head())
        )),
        Condition::ServeLost | Condition::Healthy | Condition::TokenSeen => Some(unnamed(condition, observed, config)),
        Condition::ContainerGone(n) => Some(format!("on {}: {docker} rm -f {container}", name(*n))),
        Condition::StartUnderWay(_)
        | Condition::ServeUnderWay
        | Condition::ServeGone
        | Condition::VerbEnded(_)
        | Condition::VerbFailed(_) => None,
    }
}

/// What to do where no log names a failure. A server that still runs was not stopped by the run that gave up.
fn unnamed(condition: &Condition, observed: &Observed, config: &Config) -> String {
    let runs = judge(&Condition::ServeUnderWay, observed, config, Stamp(0)).holds();
    if *condition == Condition::TokenSeen && runs {
        return "no log names a failure; X stops the server, and S starts it anew".to_owned();
    }
    if runs {
        return "no log names a failure, and the server was left running: S waits for it anew and starts no second one; X stops it".to_owned();
    }
    "no log names a failure: what each node printed last stands in its pane".to_owned()
}

/// Whether a container of the configured name was seen on a node, in whatever state; `None` when nobody knows.
fn there(observed: &Observed, config: &Config, node: NodeId) -> Option<bool> {
    let containers = observed.node(node)?.containers.value()?;
    Some(containers.named(&config.container.name).is_some())
}

/// What to do about a container that is not there any more: its log went with it.
fn gone(config: &Config, node: NodeId) -> String {
    let name = config.node_name(node);
    match &config.engine {
        Engine::VllmRay(_) => {
            format!("somebody removed it, and its log with it; U starts anew on {name} what is missing")
        }
        Engine::Script(s) => format!(
            "it is gone, and its log with it: let {} start it without --rm, and `{} logs {}` on {name} will say why",
            s.path, config.container.docker, config.container.name
        ),
    }
}

fn stray(observed: &Observed, config: &Config, node: NodeId) -> bool {
    let ray = observed.ray.value();
    ray.is_some_and(|r| stray_of(observed, config, r, node).is_some())
}

/// Whether it was seen that the head has no container at all.
fn no_head(observed: &Observed, config: &Config) -> bool {
    let containers = observed.node(config.head()).and_then(|n| n.containers.value());
    containers.is_some_and(|c| c.named(&config.container.name).is_none())
}

fn membership(observed: &Observed, config: &Config, node: NodeId) -> String {
    let name = config.node_name(node);
    let address = config.node(node).map_or("?", |n| n.fabric_address.as_str());
    let head = config.node(config.head()).map_or("?", |n| n.fabric_address.as_str());
    if !stray(observed, config, node) {
        if no_head(observed, config) {
            return "start the head with H, or all with U".to_owned();
        }
        let (docker, container) = (&config.container.docker, &config.container.name);
        if node == config.head() {
            return format!("`{docker} logs {container}` on {name} says why");
        }
        return format!(
            "`{docker} logs {container}` on {name} says why; can it reach {head}:{}?",
            config.engine.ray_port()
        );
    }
    match &config.engine {
        Engine::VllmRay(_) => {
            format!(
                "nothing in ray_start_args may set another address; stop with X and start again, so that {name} registers at {address}"
            )
        }
        Engine::Script(s) => format!(
            "let {} start Ray on {name} with --node-ip-address {address} and VLLM_HOST_IP={address}; stop with X and start again",
            s.path
        ),
    }
}
