//! What can be asked of the observed cluster, in words and as data. `judge` answers it.

use serde::Serialize;

use crate::config::Config;
use crate::config::types::Engine;
use crate::domain::NodeId;
use crate::domain::count::things;

/// A question about the cluster that observed facts can answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    /// Commands can run on the node.
    NodeReachable(NodeId),
    /// The node's fabric address stands on its fabric interface, or on any where none is configured.
    FabricAddressPresent(NodeId),
    /// The image is there.
    ImagePresent(NodeId),
    /// Every node's image has the same layers.
    ImagesEqual,
    /// Every node's image holds `ray` and `vllm`, with equal versions.
    VersionsEqual,
    /// Nothing listens on the port.
    PortFree(NodeId, u16),
    /// No container of that name is there.
    NameFree(NodeId, String),
    /// No process holds the GPU but those of the configured container.
    GpuFree(NodeId),
    /// The configured container runs on the node.
    ContainerRuns(NodeId),
    /// The configured container runs on the node, or the verb that starts it.
    StartUnderWay(NodeId),
    /// Neither the configured container runs on the node nor the verb that starts it.
    StartLost(NodeId),
    /// No container of ours is on the node; for the script engine none of the configured name.
    ContainerGone(NodeId),
    /// Something of the configured container listens on Ray's port, at the fabric address or at every address.
    RayListens(NodeId),
    /// Ray has the node alive, at exactly its fabric address, with its GPUs.
    RayMember(NodeId),
    /// Ray has the node alive at another address than its fabric address.
    WrongAddress(NodeId),
    /// Ray has exactly the expected nodes alive, at the right addresses, with the right GPUs.
    RayComplete,
    /// A model-server process runs in the head's container, or the verb that starts it.
    ServeUnderWay,
    /// No model-server process is left.
    ServeGone,
    /// No model-server process is left, and nothing is about to start one.
    ServeLost,
    /// No verb of the script runs on the node.
    VerbEnded(NodeId),
    /// The script's latest verb has ended with another code than 0.
    VerbFailed(NodeId),
    /// /health answers 200.
    Healthy,
    /// /v1/models names the model.
    ModelListed,
    /// The server is healthy and names other models than the configured one.
    WrongModel,
    /// A token came back from this start of the server.
    TokenSeen,
}

impl Condition {
    /// The node that it is about; `None` for the server and for the whole cluster.
    #[must_use]
    pub fn node(&self) -> Option<NodeId> {
        match self {
            Self::NodeReachable(n)
            | Self::FabricAddressPresent(n)
            | Self::ImagePresent(n)
            | Self::PortFree(n, _)
            | Self::NameFree(n, _)
            | Self::GpuFree(n)
            | Self::ContainerRuns(n)
            | Self::StartUnderWay(n)
            | Self::StartLost(n)
            | Self::ContainerGone(n)
            | Self::RayListens(n)
            | Self::RayMember(n)
            | Self::WrongAddress(n)
            | Self::VerbEnded(n)
            | Self::VerbFailed(n) => Some(*n),
            Self::ImagesEqual
            | Self::VersionsEqual
            | Self::RayComplete
            | Self::ServeUnderWay
            | Self::ServeGone
            | Self::ServeLost
            | Self::Healthy
            | Self::ModelListed
            | Self::WrongModel
            | Self::TokenSeen => None,
        }
    }

    /// What is looked at, in words: a clause that is true when the condition holds.
    #[must_use]
    pub fn text(&self, config: &Config) -> String {
        let name = |n: &NodeId| config.node_name(*n).to_owned();
        let address = |n: &NodeId| config.node(*n).map_or("?", |x| x.fabric_address.as_str());
        let container = &config.container.name;
        let image = &config.container.image;
        match self {
            Self::NodeReachable(n) => format!("{} can be reached", name(n)),
            Self::FabricAddressPresent(n) => match config.node(*n).and_then(|x| x.fabric_interface.as_deref()) {
                Some(interface) => format!("{} is on {interface} of {}", address(n), name(n)),
                None => format!("{} is on an interface of {}", address(n), name(n)),
            },
            Self::ImagePresent(n) => format!("{} has the image {image}", name(n)),
            Self::ImagesEqual => "the image has the same layers on every node".to_owned(),
            Self::VersionsEqual => "the image holds ray and vllm, with equal versions on every node".to_owned(),
            Self::PortFree(n, port) => format!("nothing listens on port {port} of {}", name(n)),
            Self::NameFree(n, c) => format!("no container named {c} is on {}", name(n)),
            Self::GpuFree(n) => format!("nobody else holds the GPU of {}", name(n)),
            Self::ContainerRuns(n) => format!("the container {container} runs on {}", name(n)),
            Self::StartUnderWay(n) => format!("{} runs already on {}", starter(config), name(n)),
            Self::StartLost(n) => format!("{} has ended on {}", starter(config), name(n)),
            Self::ContainerGone(n) => match config.engine {
                Engine::VllmRay(_) => format!("no container of ours is on {}", name(n)),
                Engine::Script(_) => format!("no container named {container} is on {}", name(n)),
            },
            Self::RayListens(n) => format!(
                "Ray listens on port {} of {}, at {} or at every address",
                config.engine.ray_port(),
                name(n),
                address(n)
            ),
            Self::RayMember(n) => format!("Ray has {} alive at {}, with {}", name(n), address(n), gpus(config, *n)),
            Self::WrongAddress(n) => format!("Ray has {} at another address than {}", name(n), address(n)),
            Self::RayComplete if config.nodes.len() == 1 => {
                "Ray has exactly one node alive, at its fabric address, with its GPUs".to_owned()
            }
            Self::RayComplete => format!(
                "Ray has exactly {} alive, at their fabric addresses, with their GPUs",
                things(config.nodes.len(), "node")
            ),
            Self::ServeUnderWay => format!("a model server runs already on {}", name(&config.head())),
            Self::ServeGone => format!("no model server runs on {}", name(&config.head())),
            Self::ServeLost => format!("the model server on {} has ended", name(&config.head())),
            Self::VerbEnded(n) => format!("no verb of the script runs on {}", name(n)),
            Self::VerbFailed(n) => format!("the script's verb has failed on {}", name(n)),
            Self::Healthy => format!("/health on port {} answers 200", config.serve.port),
            Self::ModelListed => format!("/v1/models names {}", config.serve.name()),
            Self::WrongModel => format!("the server has another model than {}", config.serve.name()),
            Self::TokenSeen => "the server has generated a token since its start".to_owned(),
        }
    }
}

/// What starts a node, in words.
fn starter(config: &Config) -> String {
    match config.engine {
        Engine::VllmRay(_) => format!("the container {}", config.container.name),
        Engine::Script(_) => format!("the container {} or the script's verb", config.container.name),
    }
}

/// A node's GPUs in words.
pub(super) fn gpus(config: &Config, node: NodeId) -> String {
    things(config.node(node).map_or(0, |n| n.gpus), "GPU")
}
