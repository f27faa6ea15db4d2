//! What vLLM's log lines say, and SGLang's: stages of a load, bars, waits for GPUs, transports, failures.
//!
//! The words are those of vLLM 0.6 to 0.32, of the Ray, torch and NCCL that come with them, and of the hub's downloads. A line is read by itself; whoever
//! follows a load keeps the furthest stage since the last [`LineFact::NewStart`], because Ray collects the lines of its workers from two streams and hands
//! some on late.

mod bar;
mod context;
mod failure;
mod rank;
mod record;
#[cfg(test)]
mod tests;

use crate::domain::load::{LineFact, Stage, Transport};
use crate::domain::units::Bytes;

pub use context::{Context, Said};
use record::message;

/// Longest part of a line that is looked at, in characters: vLLM prints its whole configuration as one line.
const LOOKED_AT: usize = 2000;

/// Longest part of a line's beginning that is searched for the rank that wrote it, in characters.
const PREFIXES: usize = 400;

/// What a line says about the load, and of which rank.
#[must_use]
pub fn read(line: &str) -> Vec<LineFact> {
    let mut facts = read_line(line);
    facts.extend(rank_facts(line, &facts));
    facts
}

/// The rank that wrote a line which says this.
fn rank_facts(line: &str, facts: &[LineFact]) -> Option<LineFact> {
    rank::read(&record::plain(first(line, PREFIXES)), facts).map(LineFact::Rank)
}

/// At most so many characters of a text's beginning.
fn first(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    let end = text.char_indices().nth(most).map_or(text.len(), |(at, _)| at);
    text.get(..end).unwrap_or(text)
}

/// What a line says about the load; nothing for most lines. Colours and prefixes may still be there.
#[must_use]
pub fn read_line(line: &str) -> Vec<LineFact> {
    read_text(line, false)
}

/// The same of a line that may be quoted in a record which only informs.
fn read_text(line: &str, quoted: bool) -> Vec<LineFact> {
    let line = first(line, LOOKED_AT);
    // A bar that rewrites itself holds its states in one line, one after a carriage return each.
    line.split('\r')
        .filter(|part| !part.trim().is_empty())
        .flat_map(|part| read_part(part, quoted))
        .collect()
}

fn read_part(part: &str, quoted: bool) -> Vec<LineFact> {
    let plain = record::plain(part);
    let text = message(&plain);
    if text.is_empty() {
        return Vec::new();
    }
    if new_start(text) {
        return vec![LineFact::NewStart, LineFact::Stage(Stage::Starting)];
    }
    if let Some(fact) = bar::read(text) {
        return vec![fact];
    }
    if let Some(seconds) = gpu_wait(text) {
        return vec![LineFact::Stage(Stage::Placement), LineFact::GpuWait { seconds }];
    }
    if text.starts_with("No available shared memory broadcast block found") {
        return vec![LineFact::StillWaits];
    }
    if shuts_down(text) {
        return vec![LineFact::ShutsDown];
    }
    if let Some(size) = checkpoint(text) {
        return vec![LineFact::Stage(Stage::Weights), LineFact::Checkpoint(size)];
    }
    if let Some(transport) = transport(text) {
        return vec![LineFact::Transport(transport)];
    }
    if let Some(stage) = stage(text) {
        return vec![LineFact::Stage(stage)];
    }
    let loud = !quoted && !record::is_mild(&plain);
    let failure = failure::read(text, loud).map(LineFact::Failure);
    failure.into_iter().chain(failure::gives_up(text, loud)).collect()
}

/// The line with which a server begins: older versions name themselves in words, newer ones draw a banner with the version in its third row; a rank
/// without a server says that it has none; SGLang prints its arguments.
fn new_start(text: &str) -> bool {
    let words = ["vLLM API server version", "Launching vLLM (", "server_args=ServerArgs("];
    words.iter().any(|w| text.starts_with(w)) || (text.contains('█') && text.contains(" version "))
}

/// What uvicorn says when it was told to end, and vLLM before it in newer versions; SGLang's server is uvicorn too.
fn shuts_down(text: &str) -> bool {
    text == "Shutting down"
        || text.starts_with("Waiting for application shutdown")
        || text.starts_with("[shutdown] API server: ")
}

/// `Filesystem type for checkpoints: EXT4. Checkpoint size: 17.69 GiB. Available RAM: 51.99 GiB.`
fn checkpoint(text: &str) -> Option<Bytes> {
    let (_, rest) = text.split_once("Checkpoint size: ")?;
    let (number, rest) = rest.split_once(' ')?;
    let unit: u64 = match rest.get(..3)? {
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        _ => return None,
    };
    let number: f64 = number.parse().ok().filter(|n: &f64| n.is_finite() && *n >= 0.0)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "not negative; the cast keeps within the type; the line itself has two decimals"
    )]
    Some(Bytes((number * unit as f64) as u64))
}

/// `Waiting for creating a placement group of specs for 70 seconds. specs=[…`
fn gpu_wait(text: &str) -> Option<u64> {
    let rest = text.strip_prefix("Waiting for creating a placement group of specs for ")?;
    rest.split(' ').next()?.parse().ok()
}

/// `… NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0`
fn transport(text: &str) -> Option<Transport> {
    let (_, via) = text
        .split_once(" via NET/")
        .filter(|(before, _)| before.contains("NCCL INFO"))?;
    if via.starts_with("IB") {
        Some(Transport::Ib)
    } else {
        via.starts_with("Socket").then_some(Transport::Socket)
    }
}

/// How a message of a stage begins.
const BEGINNINGS: &[(Stage, &[&str])] = &[
    (
        Stage::Starting,
        &[
            "non-default args:",
            "args: Namespace(",
            "Initializing a V1 LLM engine",
            "Initializing an LLM engine",
        ],
    ),
    (
        Stage::Placement,
        &[
            "Connecting to existing Ray cluster",
            "No current placement group found",
            "Using the existing placement group",
        ],
    ),
    (
        Stage::Distributed,
        &[
            "world_size=",
            "vLLM is using nccl==",
            "Init torch distributed begin",
            "Init torch distributed ends",
        ],
    ),
    (
        Stage::Download,
        &["Time spent downloading weights", "Downloading weights"],
    ),
    (
        Stage::Weights,
        &[
            "Loading model from scratch",
            "Loading weights took",
            "Loading model weights took",
            "Model loading took",
            "model weights take",
            "Load weight begin",
            "Load weight end",
        ],
    ),
    (
        Stage::Compile,
        &[
            "Dynamo bytecode transform time",
            "Start compiling function",
            "Compiling a graph for",
            "Cache the graph",
            "Directly load the compiled graph",
            "torch.compile takes",
            "torch.compile took",
            "Warming up model for the compilation",
        ],
    ),
    (
        Stage::KvCache,
        &[
            "Available KV cache memory",
            "GPU KV cache size",
            "CPU KV cache size",
            "Maximum concurrency for",
            "Memory profiling takes",
            "# GPU blocks",
            "# CUDA blocks",
            "# cuda blocks",
            "KV Cache is allocated",
            "Memory pool end",
        ],
    ),
    (
        Stage::Graphs,
        &[
            "Capturing CUDA graph",
            "Capturing cudagraphs",
            "Capturing the model for CUDA graphs",
            "Capture cuda graph begin",
            "Capture cuda graph end",
            "Graph capturing finished",
        ],
    ),
    (
        Stage::Warmup,
        &[
            "init engine (profile",
            "Supported tasks:",
            "Supported_tasks:",
            "Starting vLLM API server",
            "Starting vLLM server on",
            "Started server process",
            "Waiting for application startup",
        ],
    ),
    (
        Stage::Listening,
        &[
            "Application startup complete",
            "Uvicorn running on",
            "The server is fired up and ready to roll",
        ],
    ),
];

/// What a message of a stage holds, where its beginning varies.
const PARTS: &[(Stage, &[&str])] = &[
    (Stage::Distributed, &[" in world size "]),
    (
        Stage::Compile,
        &[
            "for vLLM's torch.compile",
            "saved AOT compiled function",
            "Initial profiling/warmup run took",
        ],
    ),
    (Stage::KvCache, &["GiB for KV cache"]),
];

fn stage(text: &str) -> Option<Stage> {
    if let Some(model) = text.strip_prefix("Starting to load model ") {
        return Some(load_begins(model));
    }
    let begins = BEGINNINGS
        .iter()
        .find(|(_, all)| all.iter().any(|b| text.starts_with(b)));
    let holds = || PARTS.iter().find(|(_, all)| all.iter().any(|p| text.contains(p)));
    begins.or_else(holds).map(|(stage, _)| *stage)
}

/// A model that is named as on a hub may have to come from there, without a line until it is there; a path is read at once.
fn load_begins(model: &str) -> Stage {
    if model.starts_with(['/', '.', '~']) {
        Stage::Weights
    } else {
        Stage::Download
    }
}
