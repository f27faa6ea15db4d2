//! The timeline of a start of the model server: which line appears when, and what the load has come to at a moment.
//!
//! Lines have the shapes of real starts (captured logs, field cases); a start takes about a minute at pace 1.

use crate::sim::clock::{Calendar, Moment, Pace};

use super::script::{Line, SHARDS, Script, core_prefix, graph_bar, pid, rank_prefix, shard_bar, thousands};
use super::spec::{Spec, TOTAL_GIB};

/// Version that the simulated image holds.
pub const VLLM_VERSION: &str = "0.17.0";

/// Sizes for which CUDA graphs are captured, mixed and decode only.
const GRAPHS: [u32; 2] = [51, 35];

/// Seconds that a silent download takes.
const DOWNLOAD: f64 = 600.0;

/// Second in which a load stalls: some shards are read.
const STALL: f64 = 25.0;

/// What a load runs into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// It stops in the middle of its weights: its processes stay, and neither speak nor move any more.
    Stalls,
    /// The model is not on the nodes, and comes from the hub without a line for ten minutes.
    SilentDownload,
}

/// Boundaries of the stages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Marks {
    /// Ranks begin to find each other.
    pub distributed: Moment,
    /// The model comes from the hub, from when to when, where it does.
    pub download: Option<(Moment, Moment)>,
    /// When nothing moves any more, where the load stalls.
    pub stalls: Option<Moment>,
    /// First shard is read.
    pub weights: Moment,
    /// Weights stand in memory.
    pub loaded: Moment,
    /// torch.compile is over.
    pub compiled: Moment,
    /// The KV cache stands.
    pub cached: Moment,
    /// Graphs are captured.
    pub captured: Moment,
    /// The port answers.
    pub ready: Moment,
}

/// Share of a stage that is over at a moment.
fn share(from: Moment, to: Moment, now: Moment) -> f64 {
    let all = to.saturating_sub(from).as_secs_f64();
    if all <= 0.0 {
        return if now >= to { 1.0 } else { 0.0 };
    }
    (now.saturating_sub(from).as_secs_f64() / all).clamp(0.0, 1.0)
}

impl Marks {
    /// The moment up to which the load has come by now.
    pub fn reached(&self, now: Moment) -> Moment {
        self.stalls.map_or(now, |stalls| stalls.min(now))
    }

    /// Share of the weights that are in memory.
    pub fn weights_share(&self, now: Moment) -> f64 {
        share(self.weights, self.loaded, self.reached(now))
    }

    /// Share of the model that has come from the hub.
    pub fn downloaded_share(&self, now: Moment) -> f64 {
        self.download.map_or(0.0, |(from, to)| share(from, to, now))
    }

    /// GiB of GPU memory that a rank holds.
    pub fn held_gib(&self, spec: &Spec, now: Moment) -> f64 {
        let now = self.reached(now);
        let context = 0.6 * share(self.distributed, self.weights, now);
        let weights = spec.weights_gib() * self.weights_share(now);
        let compile = 1.6 * share(self.loaded, self.compiled, now);
        let cache = spec.kv_gib() * share(self.compiled, self.cached, now);
        let graphs = 1.2 * share(self.cached, self.captured, now);
        context + weights + compile + cache + graphs
    }
}

/// What the start finds around it.
pub struct Around<'a> {
    /// Ray's address, such as `192.168.200.12:6379`.
    pub ray: &'a str,
    /// Address of each rank's node, rank 0 first.
    pub ranks: &'a [String],
    /// NCCL's transport when NCCL_DEBUG asks for its lines.
    pub nccl: Option<Nccl<'a>>,
}

/// How NCCL reaches the other node.
#[derive(Debug, Clone, Copy)]
pub struct Nccl<'a> {
    /// Over RDMA with these devices; without, over a socket.
    pub hcas: Option<&'a str>,
    /// Interface of the sockets.
    pub interface: &'a str,
}

/// The first lines, which come whatever Ray has.
fn opening(s: &mut Script, spec: &Spec, ray: &str) {
    s.api(1.2, "utils.py:302", "");
    s.api(1.2, "utils.py:302", "       █     █     █▄   ▄█");
    s.api(
        1.2,
        "utils.py:302",
        &format!(" ▄▄ ▄█ █     █     █ ▀▄▀ █  version {VLLM_VERSION}"),
    );
    s.api(
        1.2,
        "utils.py:302",
        &format!("  █▄█▀ █     █     █     █  model   {}", spec.model),
    );
    s.api(1.2, "utils.py:302", "   ▀▀  ▀▀▀▀▀ ▀▀▀▀▀ ▀     ▀");
    s.api(1.2, "utils.py:302", "");
    s.api(
        1.3,
        "utils.py:238",
        &format!(
            "non-default args: {{'model_tag': '{m}', 'model': '{m}', 'port': {p}, 'tensor_parallel_size': {tp}, 'distributed_executor_backend': 'ray'}}",
            m = spec.model,
            p = spec.port,
            tp = spec.tp
        ),
    );
    s.api(
        3.4,
        "model.py:514",
        "Resolved architecture: Qwen3_5MoeForConditionalGeneration",
    );
    s.api(3.4, "model.py:1661", &format!("Using max model len {}", spec.max_len));
    s.api(
        3.6,
        "scheduler.py:224",
        "Chunked prefill is enabled with max_num_batched_tokens=8192.",
    );
    s.core(
        6.0,
        "core.py:96",
        &format!(
            "Initializing a V1 LLM engine (v{VLLM_VERSION}) with config: model='{m}', tensor_parallel_size={tp}, pipeline_parallel_size=1, quantization=fp8, max_seq_len={len}, served_model_name={n}",
            m = spec.model,
            tp = spec.tp,
            len = spec.max_len,
            n = spec.served
        ),
    );
    let date = s.calendar.ray(s.at(6.3));
    s.raw(
        6.3,
        format!("{date}\tINFO worker.py:1691 -- Using address {ray} set in the environment variable RAY_ADDRESS"),
    );
    s.raw(
        6.3,
        format!("{date}\tINFO worker.py:1832 -- Connecting to existing Ray cluster at address: {ray}..."),
    );
    let date = s.calendar.ray(s.at(6.5));
    s.raw(
        6.5,
        format!("{date}\tINFO worker.py:2004 -- Connected to Ray cluster. View the dashboard at \u{1b}[1m\u{1b}[32mhttp://127.0.0.1:8265 \u{1b}[39m\u{1b}[22m"),
    );
    s.core(
        6.8,
        "ray_utils.py:417",
        "No current placement group found. Creating a new placement group.",
    );
}

/// A start that never gets its GPUs: Ray has too few. The last line comes when vLLM gives up.
pub fn starve(spec: &Spec, around: &Around<'_>, start: Moment, pace: Pace, calendar: Calendar) -> (Vec<Line>, Moment) {
    let mut s = Script {
        start,
        pace,
        calendar,
        lines: Vec::new(),
    };
    opening(&mut s, spec, around.ray);
    let head = around.ranks.first().map_or("?", String::as_str);
    let specs: Vec<String> = (0..spec.tp)
        .map(|rank| {
            if rank == 0 {
                format!("{{'GPU': 1.0, 'node:{head}': 0.001}}")
            } else {
                "{'GPU': 1.0}".to_owned()
            }
        })
        .collect();
    let specs = specs.join(", ");
    // The real wait doubles and is given up after half an hour; that much of it is kept at every pace.
    for seconds in [10, 30, 70, 150, 310, 630, 1270] {
        s.core(
            7.0 + f64::from(seconds),
            "ray_utils.py:304",
            &format!(
                "Waiting for creating a placement group of specs for {seconds} seconds. specs=[{specs}]. Check `ray status` and `ray list nodes` to see if you have enough resources, and make sure the IP addresses used by ray cluster are the same as VLLM_HOST_IP environment variable specified in each node if you are running on a multi-node."
            ),
        );
    }
    s.raw(
        1810.0,
        format!(
            "{} ValueError: Cannot provide a placement group requiring {}.0 GPUs (placement_group_specs=[{specs}]) within 1800 seconds.",
            core_prefix(),
            spec.tp
        ),
    );
    let end = s.at(1810.0);
    (s.lines, end)
}

/// A start that goes well, but for its trouble.
pub fn load(
    spec: &Spec,
    around: &Around<'_>,
    start: Moment,
    pace: Pace,
    calendar: Calendar,
    trouble: Option<Trouble>,
) -> (Vec<Line>, Marks) {
    let mut s = Script {
        start,
        pace,
        calendar,
        lines: Vec::new(),
    };
    opening(&mut s, spec, around.ray);
    let (weights_from, weights_to) = (12.0, 38.0);
    let distributed_at = s.at(8.0);
    distributed(&mut s, spec, around);
    let mut download = None;
    if trouble == Some(Trouble::SilentDownload) {
        let from = s.at(11.3);
        // What comes after it comes that much later.
        s.start = s.at(DOWNLOAD);
        download = Some((from, s.at(11.3)));
        downloaded(&mut s, spec, around);
    }
    let marks = Marks {
        distributed: distributed_at,
        download,
        stalls: (trouble == Some(Trouble::Stalls)).then(|| s.at(STALL)),
        weights: s.at(weights_from),
        loaded: s.at(weights_to),
        compiled: s.at(48.0),
        cached: s.at(51.0),
        captured: s.at(57.5),
        ready: s.at(60.0),
    };
    weights(&mut s, spec, around, weights_from, weights_to);
    warm(&mut s, spec, around);
    s.api(58.6, "api_server.py:1351", "Supported tasks: ['generate']");
    s.api(
        58.8,
        "api_server.py:1425",
        &format!("Starting vLLM API server 0 on http://0.0.0.0:{}", spec.port),
    );
    for route in [
        "/health, Methods: GET",
        "/metrics, Methods: GET",
        "/v1/models, Methods: GET",
        "/v1/completions, Methods: POST",
        "/v1/chat/completions, Methods: POST",
    ] {
        s.api(58.9, "launcher.py:46", &format!("Route: {route}"));
    }
    s.raw(59.2, format!("INFO:     Started server process [{}]", pid::API));
    s.raw(59.2, "INFO:     Waiting for application startup.");
    s.raw(60.0, "INFO:     Application startup complete.");
    if let Some(stalls) = marks.stalls {
        s.lines.retain(|(at, _)| *at <= stalls);
    }
    (s.lines, marks)
}

/// The only line that tells of a download, when it is over.
fn downloaded(s: &mut Script, spec: &Spec, around: &Around<'_>) {
    let head = around.ranks.first().map_or("?", String::as_str);
    let took = s.pace.secs(DOWNLOAD).as_secs_f64();
    let text = format!("Time spent downloading weights for {}: {took:.6} seconds", spec.model);
    s.rank(11.3, &rank_prefix(0, head), "weight_utils.py:441", &text);
}

fn distributed(s: &mut Script, spec: &Spec, around: &Around<'_>) {
    let head = around.ranks.first().map_or("?", String::as_str);
    for (rank, address) in around.ranks.iter().enumerate() {
        let prefix = rank_prefix(rank, address);
        s.rank(
            8.6,
            &prefix,
            "parallel_state.py:1247",
            &format!(
                "world_size={} rank={rank} local_rank=0 distributed_init_method=tcp://{head}:38055 backend=nccl",
                spec.tp
            ),
        );
    }
    if let (Some(nccl), true) = (around.nccl, around.ranks.len() > 1) {
        transport(s, around, nccl);
    }
    for (rank, address) in around.ranks.iter().enumerate() {
        let prefix = rank_prefix(rank, address);
        s.rank(
            10.6,
            &prefix,
            "parallel_state.py:1426",
            &format!(
                "rank {rank} in world size {} is assigned as DP rank 0, PP rank 0, PCP rank 0, TP rank {rank}, EP rank N/A",
                spec.tp
            ),
        );
        s.rank(
            11.2,
            &prefix,
            "gpu_model_runner.py:3562",
            &format!("Starting to load model {}...", spec.model),
        );
    }
}

fn transport(s: &mut Script, around: &Around<'_>, nccl: Nccl<'_>) {
    let head = around.ranks.first().map_or("?", String::as_str);
    let prefix = format!("{} {}", core_prefix(), rank_prefix(0, head));
    let host = "spark-1:490:490 [0]";
    let (using, via) = match nccl.hcas {
        Some(hcas) => {
            let device = hcas.split(',').next().unwrap_or(hcas);
            (
                format!(
                    "NET/IB : Using [0]{device}:1/RoCE [RO]; OOB {}:{head}<0>",
                    nccl.interface
                ),
                "NET/IB/0",
            )
        }
        None => (
            format!("NET/Socket : Using [0]{}:{head}<0>", nccl.interface),
            "NET/Socket/0",
        ),
    };
    s.raw(9.4, format!("{prefix} {host} NCCL INFO {using}"));
    for channel in 0..2 {
        s.raw(
            9.8,
            format!("{prefix} {host} NCCL INFO Channel {channel:02}/0 : 1[0] -> 0[0] [receive] via {via}"),
        );
        s.raw(
            9.8,
            format!("{prefix} {host} NCCL INFO Channel {channel:02}/0 : 0[0] -> 1[0] [send] via {via}"),
        );
    }
}

fn weights(s: &mut Script, spec: &Spec, around: &Around<'_>, from: f64, to: f64) {
    let head = around.ranks.first().map_or("?", String::as_str);
    let prefix = format!("{} {}", core_prefix(), rank_prefix(0, head));
    let (size, room) = (spec.weights_gib() * f64::from(spec.tp), TOTAL_GIB - 12.0);
    s.rank(
        from - 0.2,
        &rank_prefix(0, head),
        "weight_utils.py:1108",
        &format!(
            "Filesystem type for checkpoints: EXT4. Checkpoint size: {size:.2} GiB. Available RAM: {room:.2} GiB."
        ),
    );
    for shard in 0..=SHARDS {
        // Shards differ in size; the wobble stays below the distance of two shards.
        let wobble = 0.18 * (f64::from(shard) * 2.4).sin();
        let wobble = if shard == 0 || shard == SHARDS { 0.0 } else { wobble };
        let second = from + (to - from) * f64::from(shard) / f64::from(SHARDS) + wobble;
        s.raw(
            second,
            format!(
                "{prefix} {}",
                shard_bar(shard, s.pace.secs(second - from).as_secs_f64())
            ),
        );
    }
    let took = s.pace.secs(to - from).as_secs_f64();
    s.raw(to, format!("{prefix} "));
    s.rank(
        to + 0.1,
        &rank_prefix(0, head),
        "default_loader.py:291",
        &format!("Loading weights took {took:.2} seconds"),
    );
    for (rank, address) in around.ranks.iter().enumerate() {
        s.rank(
            to + 0.6,
            &rank_prefix(rank, address),
            "gpu_model_runner.py:3659",
            &format!(
                "Model loading took {:.4} GiB memory and {:.6} seconds",
                spec.weights_gib(),
                took + 0.471
            ),
        );
    }
}

/// Compilation, KV cache and graphs.
fn warm(s: &mut Script, spec: &Spec, around: &Around<'_>) {
    let all: Vec<String> = around
        .ranks
        .iter()
        .enumerate()
        .map(|(r, a)| rank_prefix(r, a))
        .collect();
    let real = |s: &Script, seconds: f64| s.pace.secs(seconds).as_secs_f64();
    for prefix in &all {
        let (dynamo, graph) = (real(s, 3.2), real(s, 5.1));
        s.rank(
            42.0,
            prefix,
            "backends.py:916",
            &format!("Dynamo bytecode transform time: {dynamo:.2} s"),
        );
        s.rank(
            47.4,
            prefix,
            "backends.py:353",
            &format!("Compiling a graph for compile range (1, 8192) takes {graph:.2} s"),
        );
        s.rank(
            48.0,
            prefix,
            "monitor.py:48",
            &format!("torch.compile takes {:.2} s in total", dynamo + graph),
        );
    }
    for prefix in &all {
        s.rank(
            49.6,
            prefix,
            "gpu_worker.py:436",
            &format!("Available KV cache memory: {:.2} GiB", spec.kv_gib()),
        );
    }
    let tokens = spec.kv_tokens();
    s.core(
        50.0,
        "kv_cache_utils.py:1314",
        &format!("GPU KV cache size: {} tokens", thousands(tokens)),
    );
    #[expect(clippy::cast_precision_loss, reason = "printed with two decimals")]
    let at_once = tokens as f64 / spec.max_len as f64;
    s.core(
        50.0,
        "kv_cache_utils.py:1319",
        &format!(
            "Maximum concurrency for {} tokens per request: {at_once:.2}x",
            thousands(spec.max_len)
        ),
    );
    let first = all.first().cloned().unwrap_or_default();
    let [mixed, decode] = GRAPHS;
    for (second, took, what, total) in [
        (54.4, 3.2, "mixed prefill-decode, PIECEWISE", mixed),
        (57.0, 2.5, "decode, FULL", decode),
    ] {
        let took = real(s, took);
        // Docker passes a line on when its newline comes, so the whole bar arrives at once.
        s.raw(
            second,
            format!("{} {first} {}", core_prefix(), graph_bar(what, total, took)),
        );
    }
    for prefix in &all {
        let took = real(s, 6.0);
        s.rank(
            57.5,
            prefix,
            "gpu_model_runner.py:4587",
            &format!("Graph capturing finished in {took:.0} secs, took 1.20 GiB"),
        );
    }
    let took = real(s, 19.5);
    s.core(
        58.0,
        "core.py:272",
        &format!("init engine (profile, create kv cache, warmup model) took {took:.2} seconds"),
    );
}

#[cfg(test)]
mod tests;
