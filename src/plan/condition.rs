//! What can be asked of the observed cluster, and how it is judged.

use serde::Serialize;

use crate::domain::NodeId;

/// A question about the cluster that observed facts can answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub enum Condition {
    /// Commands can run on the node.
    NodeReachable(NodeId),
    /// The node's fabric address stands on one of its interfaces.
    FabricAddressPresent(NodeId),
    /// The image is there.
    ImagePresent(NodeId),
    /// Every node's image has the same layers.
    ImagesEqual,
    /// Every node's image holds `ray` and `vllm`, with equal versions.
    VersionsEqual,
    /// Nothing but our own container listens on the port.
    PortFree(NodeId, u16),
    /// No container of that name is there.
    NameFree(NodeId, String),
    /// No process holds the GPU but those of our own container.
    GpuFree(NodeId),
    /// Our container runs on the node.
    ContainerRuns(NodeId),
    /// Our container is there and has ended.
    ContainerEnded(NodeId),
    /// No container of ours, nor the configured name, is on the node.
    ContainerGone(NodeId),
    /// A process of our container listens on Ray's port, at the fabric address or at every address.
    RayListens(NodeId),
    /// Ray has the node alive, at exactly its fabric address, with its GPUs.
    RayMember(NodeId),
    /// Ray has exactly the expected nodes alive, at the right addresses, with the right GPUs.
    RayComplete,
    /// A model-server process runs in the head's container.
    ServeRuns,
    /// No model-server process is left.
    ServeGone,
    /// The script's detached verb has ended.
    VerbEnded(NodeId),
    /// The script's detached verb runs.
    VerbRuns(NodeId),
    /// The script's detached verb has ended with another code than 0.
    VerbFailed(NodeId),
    /// /health answers 200.
    Healthy,
    /// /v1/models names the model.
    ModelListed,
    /// A token came back from this start of the server.
    TokenSeen,
    /// The server's port refuses.
    PortRefuses,
}
