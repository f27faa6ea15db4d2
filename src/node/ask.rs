//! Which command asks which question of this node.

use std::time::Duration;

use crate::config::Config;
use crate::domain::NodeId;
use crate::domain::command::Command;
use crate::domain::event::ProbeId;
use crate::domain::logs::Wanted;
use crate::probe;
use crate::probe::node::Ask;

/// Longest wait for the versions in an image: it runs the image once and imports what it holds.
const VERSIONS_LIMIT: Duration = Duration::from_secs(120);

/// Longest wait for `ray status`: a start of its program takes seconds on a busy head.
const STATUS_LIMIT: Duration = Duration::from_secs(30);

/// The stream of a node's readings; `mark` stands before each line of it.
pub(super) fn watch(config: &Config, node: NodeId, mark: &str) -> Command {
    probe::node::watch(ask(config, node, &ports(config)), mark, config.limits.command)
}

/// Ports on which it matters who listens.
fn ports(config: &Config) -> [u16; 3] {
    [
        config.engine.ray_port(),
        config.engine.dashboard_port(),
        config.serve.port,
    ]
}

fn ask<'a>(config: &'a Config, node: NodeId, ports: &'a [u16]) -> Ask<'a> {
    let wanted = config.node(node).and_then(|n| config.logs.of(n.role).wanted());
    let own = Wanted::Named(config.container.name.clone());
    Ask {
        docker: &config.container.docker,
        container: &config.container.name,
        log: wanted.filter(|wanted| **wanted != own),
        cache: config.watch.cache.as_deref(),
        ports,
    }
}

/// The command of a probe.
pub(super) fn command(id: ProbeId, config: &Config, node: NodeId) -> Command {
    let (docker, name) = (config.container.docker.as_str(), config.container.name.as_str());
    let limit = config.limits.command;
    match id {
        ProbeId::Node => probe::node::command(ask(config, node, &ports(config)), limit),
        ProbeId::Image => probe::image::command(docker, &config.container.image, limit),
        ProbeId::Versions => probe::versions::command(docker, &config.container.image, VERSIONS_LIMIT),
        ProbeId::Inside => probe::inside::command(docker, name, limit),
        ProbeId::RayStatus => probe::ray_status::command(docker, name, config.engine.ray_port(), STATUS_LIMIT),
        ProbeId::Ray => probe::ray::command(docker, name, config.engine.ray_port(), limit),
        ProbeId::Serve => probe::serve::command(docker, name, limit),
        ProbeId::Verb => probe::verb::command(&config.cluster, limit),
    }
}
