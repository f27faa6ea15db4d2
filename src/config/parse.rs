//! The whole file: sections in, a checked [`Config`] or all that is wrong with it out.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::domain::bench::{BenchProfile, CHUNKS, CONCURRENCY, PROMPT_TOKENS, REQUESTS};
use crate::domain::count::things;
use crate::domain::secret::SecretFrom;
use crate::domain::units::Bytes;

use super::problem::ConfigProblem;
use super::read::{At, Reader, Section};
use super::types::{Config, Container, Diagnose, Engine, Limits, Node, Serve, Ui, Watch};
use super::words::{self, Wrong};
use super::{engine, hops, nodes, theme};

/// Port of the model server: vLLM's own.
const SERVE_PORT: u16 = 8000;

/// Available memory below which a node is in danger: a Spark with less answers late, and then not at all.
const MEMORY_FLOOR: Bytes = Bytes(4 << 30);

/// Largest such floor.
const MEMORY_FLOOR_MAX: u32 = 4096;

/// Most times that a text is read again for names that are misspelt: once for each level of tables, and once for keys.
const DEPTH: usize = 4;

/// Reads a configuration.
///
/// # Errors
///
/// Everything that is wrong, in the order of the file. `file` is the name that the problems carry.
pub fn parse(text: &str, file: &str) -> Result<Config, Vec<ConfigProblem>> {
    let mut r = Reader::new(file, text);
    if text.trim().is_empty() {
        r.problem(
            0,
            "",
            "the file is empty",
            "start from what `bringup config example` prints",
        );
    }
    let document = r.document();
    // A text that is no TOML is read in part only: more problems would be guesses.
    let config = if r.clean() {
        read(&mut r, Section::root(&document))
    } else {
        None
    };
    // What stands in a misspelt table may be misspelt too.
    for _ in 0..DEPTH {
        let Some(mut again) = r.again() else { break };
        let root = Section::root(&document).taking(&again);
        read(&mut again, root);
        r = again;
    }
    match config {
        Some(config) if r.clean() => Ok(config),
        _ => Err(r.into_problems()),
    }
}

/// Every key that a configuration can have, such as `serve.port`: what [`parse`] asks for.
#[must_use]
pub fn keys() -> BTreeSet<String> {
    let mut r = Reader::new("", "[[ssh.jump]]\n[[node]]\n");
    let document = r.document();
    read(&mut r, Section::root(&document));
    r.into_keys()
}

fn read(r: &mut Reader<'_>, mut root: Section<'_>) -> Option<Config> {
    let mut cluster_section = root.section(r, "cluster");
    let cluster = cluster_section.text_by(r, "name", words::name);
    let cluster = cluster_section.require(r, "name", cluster, "name = \"sparks\"");
    cluster_section.finish(r);
    let ssh_section = root.section(r, "ssh");
    let (ssh, defaults) = hops::ssh(r, ssh_section);
    let nodes = nodes::nodes(r, &mut root, &defaults, &ssh.jump);
    let engine_section = root.section(r, "engine");
    let engine = engine::engine(r, engine_section);
    let container_section = root.section(r, "container");
    let container = engine::container(r, container_section);
    let serve_section = root.section(r, "serve");
    let serve = serve(r, serve_section, &nodes, engine.as_ref());
    let logs_section = root.section(r, "logs");
    let name = container.as_ref().map(|c| c.name.as_str());
    let logs = super::logs::logs(r, logs_section, name);
    let limits_section = root.section(r, "limits");
    let limits = limits(r, limits_section);
    let watch_section = root.section(r, "watch");
    let watch = watch(r, watch_section, container.as_ref());
    let mut diagnose_section = root.section(r, "diagnose");
    let rules = diagnose_section.text_by(r, "rules", own_rules);
    let diagnose = Diagnose {
        named_at: rules.as_ref().map(|t| r.place(t.at)).unwrap_or_default(),
        rules: rules.map(|t| t.value),
    };
    diagnose_section.finish(r);
    let bench_section = root.section(r, "bench");
    let bench = bench(r, bench_section);
    let mut secrets = root.section(r, "secrets");
    let api_key = secret(r, &mut secrets, "api_key_env", "api_key_file");
    let hf_token = secret(r, &mut secrets, "hf_token_env", "hf_token_file");
    secrets.finish(r);
    let ui_section = root.section(r, "ui");
    let ui = ui(r, ui_section);
    root.finish(r);
    let (engine, serve) = (engine?, serve?);
    Some(Config {
        cluster: cluster?.value,
        ssh,
        nodes,
        engine,
        container: container?,
        serve,
        logs,
        limits,
        watch,
        diagnose,
        bench,
        api_key,
        hf_token,
        ui,
    })
}

/// The file of the operator's own rules.
fn own_rules(text: &str) -> Result<(), Wrong> {
    words::file(text).map_err(|wrong| Wrong {
        fix: "write its path from / or ~/, such as \"~/.config/bringup/rules.toml\"".to_owned(),
        ..wrong
    })
}

/// Where a secret is: in a variable or in a file.
fn secret(r: &mut Reader<'_>, s: &mut Section<'_>, variable: &'static str, file: &'static str) -> Option<SecretFrom> {
    let both = s.has(variable) && s.has(file);
    let named = s
        .text_by(r, variable, words::variable)
        .map(|t| SecretFrom::Variable(t.value));
    let kept = s.text_by(r, file, words::file).map(|t| SecretFrom::File(t.value));
    if both {
        r.problem(
            s.at_key(file),
            &format!("secrets.{file}"),
            format!("the secret has two places: {variable} and {file}"),
            "write one of the two",
        );
    }
    named.or(kept)
}

fn serve(r: &mut Reader<'_>, mut s: Section<'_>, nodes: &[Node], engine: Option<&Engine>) -> Option<Serve> {
    let model = s.text_by(r, "model", words::word);
    let model = s.require(r, "model", model, "model = \"ORG/NAME\"");
    let served_name = s.text_by(r, "served_name", words::word).map(|t| t.value);
    let port = s.port(r, "port").unwrap_or(SERVE_PORT);
    if engine.is_some_and(|e| [e.ray_port(), e.dashboard_port()].contains(&port)) {
        let message = format!("port {port} is Ray's already");
        r.problem(
            s.at_key("port"),
            "serve.port",
            message,
            "give the model server, Ray and its dashboard a port each",
        );
    }
    let gpus: u32 = nodes.iter().map(|n| n.gpus).sum();
    let size = s.number(r, "tensor_parallel_size", 1..=u32::from(u16::MAX));
    // Without nodes there is nothing to compare with, and that problem is reported already.
    if let Some(size) = size.as_ref().filter(|s| s.value > gpus && gpus > 0) {
        let message = format!(
            "tensor_parallel_size is {}, and all nodes together have {}",
            size.value,
            things(gpus, "GPU")
        );
        let fix = format!("write at most {gpus}, or set `gpus` of the nodes");
        r.problem(size.at, "serve.tensor_parallel_size", message, fix);
    }
    s.finish(r);
    Some(Serve {
        model: model?.value,
        served_name,
        port,
        tensor_parallel_size: size.map_or(gpus, |s| s.value),
    })
}

fn limits(r: &mut Reader<'_>, mut s: Section<'_>) -> Limits {
    let mut wait = |key, default| s.duration(r, key).unwrap_or(Duration::from_secs(default));
    let limits = Limits {
        connect: wait("connect", 10),
        command: wait("command", 10),
        pull: wait("pull", 3600),
        head: wait("head", 120),
        join: wait("join", 120),
        settle: wait("settle", 10),
        serve: wait("serve", 3600),
        stall: wait("stall", 600),
        stop: wait("stop", 120),
        verb: wait("verb", 600),
    };
    s.finish(r);
    limits
}

fn watch(r: &mut Reader<'_>, mut s: Section<'_>, container: Option<&Container>) -> Watch {
    let floor = s.gib(r, "memory_floor_gib", 0..=MEMORY_FLOOR_MAX);
    let cache = s.text_by(r, "model_cache", words::folder).map(|t| t.value);
    s.finish(r);
    Watch {
        memory_floor: floor.unwrap_or(MEMORY_FLOOR),
        cache: cache.or_else(|| container.and_then(mounted_cache)),
    }
}

/// The folder that the container sees as the hub's cache.
fn mounted_cache(container: &Container) -> Option<String> {
    let volume = |text: &String| {
        let mut parts = text.split(':');
        let (host, inside) = (parts.next()?, parts.next()?);
        let is_cache = inside.trim_end_matches('/').ends_with("/.cache/huggingface");
        (is_cache && host.starts_with('/')).then(|| host.to_owned())
    };
    container.volumes.iter().find_map(volume)
}

fn bench(r: &mut Reader<'_>, mut s: Section<'_>) -> BenchProfile {
    let requests = s.number(r, "requests", 1..=REQUESTS);
    let concurrency = s.number(r, "concurrency", 1..=CONCURRENCY);
    let prompt_tokens = s.number(r, "prompt_tokens", 1..=PROMPT_TOKENS);
    let tokens = s.number(r, "output_tokens", 1..=u32::MAX);
    let warmup = s.number(r, "warmup", 0..=REQUESTS);
    let or = |number: &Option<At<u32>>, default| number.as_ref().map_or(default, |n| n.value);
    let profile = BenchProfile {
        requests: or(&requests, 32),
        concurrency: or(&concurrency, 8),
        prompt_tokens: or(&prompt_tokens, 512),
        output_tokens: or(&tokens, 128),
        warmup: or(&warmup, 1),
        request_limit: s.duration(r, "request_limit").unwrap_or(Duration::from_secs(600)),
    };
    let chunks = u64::from(profile.requests) * u64::from(profile.output_tokens);
    if let Some(at) = tokens.or(requests).map(|n| n.at).filter(|_| chunks > CHUNKS) {
        let message = format!("requests times output_tokens is {chunks}: the time of each token is kept");
        r.problem(
            at,
            "bench.output_tokens",
            message,
            format!("write less: at most {CHUNKS} in all"),
        );
    }
    s.finish(r);
    profile
}

fn ui(r: &mut Reader<'_>, mut s: Section<'_>) -> Ui {
    let theme = s.text_by(r, "theme", |name| match theme::builtin(name) {
        Some(_) => Ok(()),
        None => Err(Wrong {
            what: format!("there is no theme `{name}`"),
            fix: format!("write one of: {}", theme::names().join(", ")),
        }),
    });
    let ui = Ui {
        theme: theme.map_or_else(|| theme::DEFAULT.to_owned(), |t| t.value),
        bell: s.flag(r, "bell").unwrap_or(true),
        notify: s.flag(r, "notify").unwrap_or(true),
    };
    s.finish(r);
    ui
}
