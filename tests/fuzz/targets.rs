//! What is given any bytes: every reader of what comes from outside, by name. A reader that panics, or whose answer breaks one of its promises, is found.

use std::sync::LazyLock;
use std::time::Duration;

use bringup::api::{Chunk, Completion, answers, chunk};
use bringup::config::{self, Config, EXAMPLE, theme};
use bringup::diagnose::{self, Matcher};
use bringup::domain::command::{Exit, Output};
use bringup::domain::event::ProbeId;
use bringup::domain::wrap::{Preamble, parse_frame};
use bringup::domain::{Role, Stamp, address};
use bringup::engine::{grammar, metrics};
use bringup::log::{Decoder, Line, LineEdit, Masker, Ring, Stream};
use bringup::probe::logs::{Follower, Place};
use bringup::probe::{self, dashboard, node, prometheus};
use bringup::record::loads;
use bringup::ssh::texts;
use bytes::Bytes;

/// A reader.
pub type Target = fn(&[u8]);

/// Every reader, and the folders of `tests/fixtures` (or files of the sources) that it starts from.
pub const TARGETS: &[(&str, Target, &[&str])] = &[
    ("log", log, &["tests/fixtures/log", "tests/fixtures/engine"]),
    ("log-file", log_file, &["tests/fixtures/log", "tests/fixtures/engine"]),
    ("grammar", grammar, &["tests/fixtures/engine", "tests/fixtures/causes"]),
    ("ray-dashboard", ray_dashboard, &["tests/fixtures/dashboard"]),
    ("ray", ray, &["tests/fixtures/ray"]),
    ("ray-stream", ray_stream, &["tests/fixtures/ray"]),
    ("ray-status", ray_status, &["tests/fixtures/ray-status"]),
    ("inside", inside, &["tests/fixtures/inside"]),
    ("node", node, &["tests/fixtures/node"]),
    ("nvidia-smi", nvidia_smi, &["tests/fuzz/seeds/nvidia-smi"]),
    ("amd-smi", amd_smi, &["tests/fuzz/seeds/amd-smi"]),
    ("docker", docker, &["tests/fuzz/seeds/docker"]),
    ("stream", stream, &["tests/fixtures/stream"]),
    ("image", image, &["tests/fixtures/image"]),
    ("versions", versions, &["tests/fixtures/versions"]),
    ("serve", serve, &["tests/fixtures/serve"]),
    ("verb", verb, &["tests/fixtures/verb"]),
    (
        "prometheus",
        prometheus,
        &["tests/fixtures/prometheus", "tests/fixtures/metrics"],
    ),
    ("sse", sse, &["tests/fixtures/api"]),
    ("sse-frames", sse_frames, &["tests/fixtures/api"]),
    ("answers", answers, &["tests/fuzz/seeds/answers"]),
    ("frame", frame, &["tests/fuzz/seeds/frame"]),
    ("config", config, &["config.example.toml", "tests/fixtures/config/bad"]),
    ("theme", theme, &["themes"]),
    ("rules", rules, &["assets/rules.toml"]),
    ("known-hosts", known_hosts, &["tests/fuzz/seeds/known-hosts"]),
    ("ssh-config", ssh_config, &["tests/fuzz/seeds/ssh-config"]),
    ("ends", ends, &["tests/fuzz/seeds/ends"]),
    ("ray-logs", ray_logs, &["tests/fuzz/seeds/ray-logs"]),
    ("loads", loads, &["tests/fuzz/seeds/loads"]),
];

/// Gives bytes to the reader of this name; nothing where there is none.
pub fn run(name: &str, bytes: &[u8]) {
    if let Some((_, target, _)) = TARGETS.iter().find(|(known, ..)| *known == name) {
        target(bytes);
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Lines of a log as they are kept: masked, in a small ring, never with a control character.
fn log(bytes: &[u8]) {
    let (mut decoder, mut ring) = (Decoder::new(), Ring::new(4096));
    let masker = Masker::new(["s3cret".to_owned()]);
    let mut take = |edit: LineEdit| {
        let edit = match edit {
            LineEdit::Push(line) => LineEdit::Push(masker.line(line)),
            LineEdit::Live(stream, line) => LineEdit::Live(stream, line.map(|l| masker.line(l))),
        };
        if let LineEdit::Push(line) | LineEdit::Live(_, Some(line)) = &edit {
            let text = line.plain();
            assert!(!text.chars().any(char::is_control), "{text:?}");
            assert!(!text.contains("s3cret"), "{text:?}");
        }
        ring.apply(edit);
    };
    // Both streams, in turns: each has a decoder's state of its own.
    for (n, piece) in bytes.chunks(97).enumerate() {
        let stream = if n % 2 == 0 { Stream::Out } else { Stream::Err };
        decoder.feed(stream, piece, &mut take);
    }
    decoder.finish(Stream::Out, &mut take);
    decoder.finish(Stream::Err, &mut take);
    let _lines = ring.last(usize::MAX).count();
}

/// What a follower makes of the output of its own command.
fn log_file(bytes: &[u8]) {
    let places = [
        Place::File { path: "/x".to_owned() },
        Place::Container {
            docker: "docker".to_owned(),
            name: "v".to_owned(),
        },
    ];
    for place in places {
        let mut follower = Follower::new(place);
        follower.command(LIMIT);
        for piece in bytes.chunks(61) {
            let content = follower.content(piece).to_vec();
            let _notice = follower.notice();
            let _fresh = follower.fresh(&Line::of(Stream::Out, lossy(&content)));
        }
        follower.lost(bytes.len() as u64);
        follower.command(LIMIT);
    }
}

const LIMIT: Duration = Duration::from_secs(10);

/// What the engine's grammar and the rules find in lines.
fn grammar(bytes: &[u8]) {
    static CONFIG: LazyLock<Option<Config>> = LazyLock::new(|| config::parse(EXAMPLE, "config.example.toml").ok());
    let Some(config) = CONFIG.as_ref() else { return };
    let mut matcher = Matcher::new(config, Role::Head);
    let mut context = grammar::Context::default();
    for line in lossy(bytes).split('\n') {
        let (time, text) = line
            .split_once(' ')
            .map_or((None, line), |(time, text)| (Some(time), text));
        let _said = [context.read(line, false, None), context.read(text, true, time)];
        let facts = matcher.settle(line, grammar::read(line));
        let _signs = matcher.read(&Line::of(Stream::Out, line), &facts, false);
        let _facts = grammar::read_line(line);
    }
}

fn ray_dashboard(bytes: &[u8]) {
    let _membership = dashboard::parse(bytes);
    let _groups = dashboard::groups(bytes);
    let _version = dashboard::version(bytes);
    let _python = dashboard::python(&lossy(bytes));
}

fn output(stdout: &[u8], exit: Exit) -> Output {
    Output {
        stdout: stdout.to_vec(),
        stderr: stdout.to_vec(),
        dropped: 0,
        exit,
        took: Duration::from_millis(20),
    }
}

/// A probe's reader always says something of its subject, if only that nothing is known.
fn probe(probe: ProbeId, bytes: &[u8]) {
    for exit in [Exit::Code(0), Exit::Code(1), Exit::Code(127), Exit::TimedOut] {
        let (facts, _) = probe::parse(probe, &output(bytes, exit));
        assert!(!facts.is_empty(), "{probe:?} says nothing of its subject");
    }
}

fn ray(bytes: &[u8]) {
    probe(ProbeId::Ray, bytes);
}

/// What the program in the head's container prints, cut anywhere.
fn ray_stream(bytes: &[u8]) {
    let mut reader = probe::ray::Reader::default();
    for piece in bytes.chunks(13) {
        let _records = reader.feed(piece);
    }
    reader.lost();
}

fn ray_status(bytes: &[u8]) {
    probe(ProbeId::RayStatus, bytes);
    let _status = probe::ray_status::status(&lossy(bytes));
}

fn inside(bytes: &[u8]) {
    probe(ProbeId::Inside, bytes);
}

fn node(bytes: &[u8]) {
    probe(ProbeId::Node, bytes);
}

/// The bytes as the answer of these tools in a node's output.
fn sections(names: &[&str], bytes: &[u8]) {
    for name in names {
        let mut text = format!("@@ clock\n1795972680\n@= 0\n@@ {name}\n").into_bytes();
        text.extend(bytes);
        text.extend(b"\n@= 0\n");
        let (facts, _) = probe::parse(ProbeId::Node, &output(&text, Exit::Code(0)));
        assert!(!facts.is_empty(), "nothing is said of {name}");
    }
}

fn nvidia_smi(bytes: &[u8]) {
    sections(&["gpus", "apps", "slices"], bytes);
}

fn amd_smi(bytes: &[u8]) {
    sections(&["rocm", "amd"], bytes);
}

fn docker(bytes: &[u8]) {
    sections(&["containers"], bytes);
}

/// A node's stream of readings, cut anywhere.
fn stream(bytes: &[u8]) {
    for size in [bytes.len().max(1), 7] {
        let mut reader = node::stream::Reader::new("5f3a", LIMIT, Stamp(0));
        for (n, piece) in bytes.chunks(size).enumerate() {
            let now = Stamp(n as u64 * 500);
            let _readings = reader.feed(piece, now);
            let _silent = reader.silent(now);
        }
        reader.lost();
        let _torn = reader.torn();
    }
}

fn image(bytes: &[u8]) {
    probe(ProbeId::Image, bytes);
}

fn versions(bytes: &[u8]) {
    probe(ProbeId::Versions, bytes);
}

fn serve(bytes: &[u8]) {
    probe(ProbeId::Serve, bytes);
}

fn verb(bytes: &[u8]) {
    probe(ProbeId::Verb, bytes);
}

/// A scrape: what is counted is a number of its own, and never less than nothing.
fn prometheus(bytes: &[u8]) {
    let text = lossy(bytes);
    let _samples = prometheus::parse(&text);
    let _sample = metrics::sample(&text);
}

/// The data of events of a stream.
fn sse(bytes: &[u8]) {
    for line in lossy(bytes).lines() {
        let _chunk = chunk::parse(line.strip_prefix("data: ").unwrap_or(line));
    }
}

/// A whole stream: what comes of one that ends well is the same however its bytes are cut.
fn sse_frames(bytes: &[u8]) {
    thread_local! {
        // A stream's end is waited for with a limit of time.
        static RUNTIME: Option<tokio::runtime::Runtime> =
            tokio::runtime::Builder::new_current_thread().enable_time().build().ok();
    }
    let read = |size: usize| {
        let pieces: Vec<_> = bytes
            .chunks(size)
            .map(|piece| Ok(Bytes::copy_from_slice(piece)))
            .collect();
        let mut stream = Completion::of(futures_util::stream::iter(pieces));
        let mut chunks: Vec<Chunk> = Vec::new();
        RUNTIME.with(|runtime| {
            let run = async {
                while let Some(chunk) = stream.next().await? {
                    chunks.push(chunk);
                }
                Ok::<_, bringup::api::ApiError>(())
            };
            runtime.as_ref().map(|runtime| runtime.block_on(run)).unwrap_or(Ok(()))
        })?;
        Ok::<_, bringup::api::ApiError>(chunks)
    };
    let (whole, cut) = (read(bytes.len().max(1)), read(3));
    if let Ok(whole) = whole {
        assert_eq!(Ok(whole), cut, "cut");
    }
}

/// Bodies of answers.
fn answers(bytes: &[u8]) {
    let _models = answers::models(bytes);
    let _completion = answers::completion(bytes);
    let _count = answers::token_count(bytes);
    let _error = answers::error_text(bytes);
}

/// The frame of a command, at both of its ends.
fn frame(bytes: &[u8]) {
    let _frame = parse_frame(bytes);
    let mut opening = Preamble::new("00ff");
    for piece in bytes.chunks(5) {
        let _passed = opening.feed(piece);
    }
}

/// A configuration that is taken can be hashed; one that is not has a problem with a place.
fn config(bytes: &[u8]) {
    let text = lossy(bytes);
    if let Err(problems) = config::parse(&text, "fuzz.toml") {
        assert!(!problems.is_empty(), "refused for no reason");
    }
}

fn theme(bytes: &[u8]) {
    if let Err(problems) = theme::parse_theme(&lossy(bytes), "fuzz.toml") {
        assert!(!problems.is_empty(), "refused for no reason");
    }
}

fn rules(bytes: &[u8]) {
    let text = lossy(bytes);
    for read in [diagnose::parse, diagnose::own] {
        if let Err(problems) = read(&text, "fuzz.toml") {
            assert!(!problems.is_empty(), "refused for no reason");
        }
    }
}

/// A key that is in no file unless its text is.
const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIK0M0WuGh9Qi9EWe7pB3s/zAgMxYnWs8u7YFLLVsHOs3";

/// Files of host keys: no text makes a key known or revoked that it does not hold.
fn known_hosts(bytes: &[u8]) {
    let text = lossy(bytes);
    let held = text.contains(KEY.rsplit(' ').next().unwrap_or_default());
    for (host, port) in [("spark-1", 22), ("10.1.230.180", 2222), ("", 0)] {
        let verdict = texts::known_hosts(&text, host, port, KEY);
        assert!(
            held || !matches!(verdict, None | Some("known" | "revoked")),
            "{verdict:?}"
        );
    }
    assert!(held || texts::revoked(&text, KEY) != Ok(true));
}

/// ssh_config, as `ssh -G` prints it and as a file: a host's name never becomes more than a word of a command.
fn ssh_config(bytes: &[u8]) {
    let text = lossy(bytes);
    // The file's reader would follow it.
    let includes = text.to_lowercase().contains("include");
    for alias in ["spark-1", "jump", "-oProxyCommand=x", "$(id)", ""] {
        let printed = texts::printed(&text, alias);
        let read = if includes { None } else { texts::file(bytes, alias).ok() };
        for came in [Some(printed), read].into_iter().flatten() {
            if let Some(Ok(command)) = came.command {
                let own = alias.is_empty() || texts::plain(alias) || text.contains(alias);
                assert!(own || !command.contains(alias), "{command}");
            }
            for host in came.jumps.iter().flatten() {
                assert!(texts::plain(host), "{host}");
            }
        }
    }
    for line in text.lines() {
        if let Ok(address) = address::parse(line) {
            assert!(texts::plain(&address.host), "{}", address.host);
        }
    }
}

/// The ends of a container, as Docker tells them.
fn ends(bytes: &[u8]) {
    let _end = probe::ends::parse(&output(bytes, Exit::Code(0)));
}

/// Files of Ray's workers, piece by piece: nothing comes out that did not go in.
fn ray_logs(bytes: &[u8]) {
    let mut all = 0;
    let mut pieces = probe::ray_logs::Pieces::default();
    for piece in bytes.chunks(11) {
        pieces.feed(piece, &mut |file, content| {
            all += content.len();
            let mut owner = probe::ray_logs::Owner::of(file);
            let _note = owner.note(&lossy(content));
            let _prefix = owner.prefix();
        });
    }
    assert!(all <= bytes.len());
}

/// The file of earlier loads.
fn loads(bytes: &[u8]) {
    if let Ok(loads) = loads::loads_of(bytes, "a", 3) {
        assert!(loads.len() <= 3);
    }
}
