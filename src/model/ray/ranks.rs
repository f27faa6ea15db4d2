//! Engines without Ray: ranks that find each other by themselves.

use crate::domain::NodeId;
use crate::domain::container::{Container, ContainerState};
use crate::domain::serving::ServeProcess;
use crate::model::State;

/// Words of a server's command line that say that it uses no Ray.
const NO_RAY: [&str; 2] = ["--nnodes", "--no-ray"];

/// The ranks of a server without Ray.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranks<'a> {
    /// How it is known.
    pub why: String,
    /// One entry a node, in the config's order.
    pub ranks: Vec<Rank<'a>>,
}

/// What runs of the server on one node.
#[derive(Debug, Clone, PartialEq)]
pub struct Rank<'a> {
    /// The node's number among the nodes: the head's is told by its command line, a worker's is its place in the config.
    pub node_rank: u32,
    /// Ranks that the node's own log names, in order; empty where it names none.
    pub numbers: Vec<u32>,
    /// Where.
    pub id: NodeId,
    /// Its container, where one of the configured name is known.
    pub container: Option<&'a Container>,
    /// Processes of it that hold a GPU; `None` where that is not known.
    pub processes: Option<usize>,
    /// Since when its container is up, in seconds.
    pub up_seconds: Option<u64>,
}

impl Rank<'_> {
    /// The ranks in words: `rank 0`, `ranks 0-7`, else the node's number, `node rank 1`.
    #[must_use]
    pub fn words(&self) -> String {
        match self.numbers.as_slice() {
            [] => format!("node rank {}", self.node_rank),
            [one] => format!("rank {one}"),
            [first, .., last]
                if last.saturating_sub(*first).saturating_add(1) == u32::try_from(self.numbers.len()).unwrap_or(0) =>
            {
                format!("ranks {first}-{last}")
            }
            some => {
                let words: Vec<String> = some.iter().map(u32::to_string).collect();
                format!("ranks {}", words.join(","))
            }
        }
    }

    /// Whether its container runs.
    #[must_use]
    pub fn runs(&self) -> bool {
        self.container.is_some_and(|c| c.state == ContainerState::Running)
    }
}

/// The ranks, where the server that runs on the head uses no Ray.
#[must_use]
pub fn ranks(state: &State) -> Option<Ranks<'_>> {
    let head = state.config.head();
    let serve = state.observed.node(head)?.serve.value()?;
    let (process, word) = serve.processes.iter().find_map(|p| Some((p, without_ray(p)?)))?;
    let own = option(process, "--node-rank").and_then(|n| n.parse().ok()).unwrap_or(0);
    let mut next = 0..;
    let ranks = state
        .config
        .node_ids()
        .map(|id| {
            let rank = if id == head {
                own
            } else {
                next.by_ref().find(|n| *n != own).unwrap_or(0)
            };
            rank_of(state, id, rank)
        })
        .collect();
    Some(Ranks {
        why: format!("the server runs with {word}"),
        ranks,
    })
}

fn rank_of(state: &State, id: NodeId, node_rank: u32) -> Rank<'_> {
    let seen = state.observed.node(id);
    let name = &state.config.container.name;
    let container = seen.and_then(|n| n.containers.value()).and_then(|c| c.named(name));
    let gpus = seen
        .and_then(|n| n.gpus.value())
        .filter(|g| g.processes_unknown.is_none());
    let processes = gpus.zip(container).map(|(gpus, container)| {
        let own = |p: &&crate::domain::gpu::GpuProcess| p.container.as_deref() == Some(container.id.as_str());
        gpus.computing().filter(own).count()
    });
    let named = state.nodes.get(id.index()).map(|n| n.load.ranks.as_slice());
    let mut numbers: Vec<u32> = named
        .unwrap_or_default()
        .iter()
        .filter(|r| r.address.is_none())
        .filter_map(|r| r.number)
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    Rank {
        node_rank,
        numbers,
        id,
        container,
        processes,
        up_seconds: container.and_then(|c| c.up_seconds),
    }
}

/// What in a command line says that the server uses no Ray.
fn without_ray(process: &ServeProcess) -> Option<String> {
    // A server that names its executor says most.
    match option(process, "--distributed-executor-backend") {
        Some("ray") => return None,
        Some(other) => return Some(format!("--distributed-executor-backend {other}")),
        None => {}
    }
    let mut words = process.command.split_ascii_whitespace();
    let word = words.find_map(|w| {
        let name = w.split_once('=').map_or(w, |(name, _)| name);
        NO_RAY.into_iter().find(|n| *n == name)
    })?;
    Some(match option(process, word).filter(|v| !v.starts_with('-')) {
        Some(value) => format!("{word} {value}"),
        None => word.to_owned(),
    })
}

/// The value of an option in a command line.
fn option<'p>(process: &'p ServeProcess, name: &str) -> Option<&'p str> {
    let mut words = process.command.split_ascii_whitespace();
    words
        .find_map(|w| match w.split_once('=') {
            Some((n, value)) if n == name => Some(Some(value)),
            None if w == name => Some(None),
            Some(_) | None => None,
        })?
        .or_else(|| words.next())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(command: &str) -> ServeProcess {
        ServeProcess {
            pid: 1,
            mark: None,
            command: command.to_owned(),
            up_seconds: None,
        }
    }

    #[test]
    fn a_command_line_tells_whether_ray_is_used() {
        for (command, word) in [
            ("vllm serve m --tensor-parallel-size 2", None),
            (
                "vllm serve m --nnodes 2 --node-rank 0 --master-addr 10.0.0.1",
                Some("--nnodes 2"),
            ),
            ("vllm serve m --nnodes=2 --headless", Some("--nnodes 2")),
            ("run.sh --no-ray --tp 2", Some("--no-ray")),
            ("vllm serve m --nnodes 2 --distributed-executor-backend ray", None),
            (
                "vllm serve m --distributed-executor-backend=mp",
                Some("--distributed-executor-backend mp"),
            ),
            ("vllm serve --nnodesx 2", None),
        ] {
            assert_eq!(without_ray(&process(command)).as_deref(), word, "{command}");
        }
        let ranked = process("vllm serve m --nnodes 2 --node-rank 1");
        assert_eq!(option(&ranked, "--node-rank"), Some("1"));
        assert_eq!(option(&process("vllm serve --node-rank"), "--node-rank"), None);
    }

    #[test]
    fn ranks_are_named_as_far_as_they_are_known() {
        let words = |numbers: &[u32]| {
            let rank = Rank {
                node_rank: 1,
                numbers: numbers.to_vec(),
                id: NodeId(1),
                container: None,
                processes: None,
                up_seconds: None,
            };
            rank.words()
        };
        assert_eq!(words(&[]), "node rank 1");
        assert_eq!(words(&[3]), "rank 3");
        assert_eq!(words(&[4, 5, 6, 7]), "ranks 4-7");
        assert_eq!(words(&[0, 2]), "ranks 0,2");
    }
}
