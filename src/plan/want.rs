//! Which probe answers which condition.

use crate::config::Config;
use crate::config::types::Engine;
use crate::domain::NodeId;
use crate::domain::event::ProbeId;
use crate::domain::serving::ServerProbe;

use super::condition::Condition;

/// Something to be asked of a node or of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Want {
    /// A node's probe.
    Node(NodeId, ProbeId),
    /// A question to the model server or to Ray's dashboard.
    Server(ServerProbe),
}

/// The probes that answer a condition; none for those that the state of the connections answers.
#[must_use]
pub fn wants(condition: &Condition, config: &Config) -> Vec<Want> {
    let head = config.head();
    let node = |n: NodeId| Want::Node(n, ProbeId::Node);
    let every = |probe| config.node_ids().map(move |n| Want::Node(n, probe));
    match condition {
        Condition::NodeReachable(_) => Vec::new(),
        Condition::FabricAddressPresent(n)
        | Condition::PortFree(n, _)
        | Condition::NameFree(n, _)
        | Condition::GpuFree(n)
        | Condition::ContainerRuns(n)
        | Condition::ContainerGone(n)
        | Condition::RayListens(n) => vec![node(*n)],
        Condition::StartUnderWay(n) | Condition::StartLost(n) => {
            let mut all = vec![node(*n)];
            all.extend(verb(config, *n));
            all
        }
        Condition::VerbEnded(n) | Condition::VerbFailed(n) => verb(config, *n),
        Condition::ImagePresent(n) => vec![Want::Node(*n, ProbeId::Image)],
        Condition::ImagesEqual => every(ProbeId::Image).collect(),
        Condition::VersionsEqual => every(ProbeId::Image).chain(every(ProbeId::Versions)).collect(),
        Condition::RayMember(_) | Condition::WrongAddress(_) | Condition::RayComplete => {
            vec![
                node(head),
                Want::Server(ServerProbe::Ray),
                Want::Node(head, ProbeId::Ray),
            ]
        }
        Condition::ServeUnderWay | Condition::ServeLost => {
            let mut all = vec![node(head), Want::Node(head, ProbeId::Serve)];
            all.extend(verb(config, head));
            all
        }
        Condition::ServeGone => vec![node(head), Want::Node(head, ProbeId::Serve)],
        Condition::Healthy => vec![Want::Server(ServerProbe::Health)],
        Condition::ModelListed => vec![Want::Server(ServerProbe::Models)],
        Condition::WrongModel => vec![Want::Server(ServerProbe::Health), Want::Server(ServerProbe::Models)],
        Condition::TokenSeen => vec![Want::Server(ServerProbe::Metrics), Want::Server(ServerProbe::Token)],
    }
}

/// The verb's probe, where the engine has verbs.
fn verb(config: &Config, node: NodeId) -> Vec<Want> {
    match config.engine {
        Engine::VllmRay(_) => Vec::new(),
        Engine::Script(_) => vec![Want::Node(node, ProbeId::Verb)],
    }
}
