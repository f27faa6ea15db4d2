//! The container image on a node.

use serde::Serialize;

/// What a node has under the configured image reference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum ImageFacts {
    /// The reference resolves.
    Present {
        /// Local image id. Differs between hosts for equal content; never compare it across nodes.
        id: String,
        /// `RootFS.Layers`, in order: equal content has equal layers on every host.
        layers: Vec<String>,
    },
    /// The reference is not known there.
    Missing,
}

/// Versions in a running container, which may hold more than its image: some install Ray when they start.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct InsideFacts {
    /// Ray's version; `None` when it is not installed.
    pub ray: Option<String>,
    /// Python's version.
    pub python: Option<String>,
}

/// Versions that the image holds, asked by running it once.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct VersionFacts {
    /// Image id that was asked, so that a new image is asked again.
    pub image_id: String,
    /// `ray.__version__`; `None` when the module is not there.
    pub ray: Option<String>,
    /// vLLM's version; `None` when the module is not there.
    pub vllm: Option<String>,
    /// Python's version.
    pub python: Option<String>,
    /// Why a module could not be read, one line each.
    pub missing: Vec<String>,
}
