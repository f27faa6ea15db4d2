//! `status`: what is running, and how fast.

use std::borrow::Cow;
use std::fmt::Write;
use std::time::Duration;

use color_eyre::eyre::Result;

use crate::domain::count::amount;
use crate::domain::event::Subject;
use crate::domain::gpu::{Gpu, GpuFacts};
use crate::domain::logs::Wanted;
use crate::domain::time::human;
use crate::domain::units::Bytes;
use crate::domain::{NodeId, Reading, Stamp, When};
use crate::measure::window::Quantiles;
use crate::model::facts::memory_alarm;
use crate::model::flow::UNSEEN_AFTER;
use crate::model::foreign;
use crate::model::loading;
use crate::model::ray::members::{self, Standing};
use crate::model::ray::ranks::ranks;
use crate::model::schedule::{HEALTH_EVERY, METRICS_EVERY, every, ray_every};
use crate::model::state::ServingState;
use crate::model::{self, State};
use crate::report;

use super::args::Args;
use super::exit::Exit;
use super::headless::{
    FIRST_ANSWERS, FIRST_LINES, GRACE, Headless, SECOND_LOOK, Waited, logs_heard, logs_placed, look_again, pending,
    server_answered, unreachable,
};
use super::{cause, logfile, out, start};

/// `bringup status --schema`.
pub(super) fn schema() -> Exit {
    out::line(report::STATUS_SCHEMA.trim_end());
    Exit::Done
}

/// `bringup status`.
///
/// # Errors
/// When the console can't be started.
pub(super) async fn status(args: &Args, json: bool) -> Result<Exit> {
    let config = match start::load(args) {
        Ok(config) => config,
        Err(exit) => return Ok(exit),
    };
    let _log = logfile::start(&args.log_level);
    let mut headless = Headless::new(start::open(args, config, true).await?)?;
    let answered = |s: &State| s.nodes_answered() && server_answered(s);
    let mut waited = headless.until(FIRST_ANSWERS, answered).await;
    if matches!(waited, Waited::Late) {
        waited = headless.until(GRACE, |s| answered(s) || !pending(s)).await;
    }
    if !matches!(waited, Waited::Signal(_)) {
        waited = headless.until(FIRST_LINES, logs_placed).await;
    }
    // Why it does not serve is in the logs.
    if !matches!(waited, Waited::Signal(_)) && verdict(headless.console.state()) != Exit::Done {
        waited = headless.until(FIRST_LINES, logs_heard).await;
    }
    if !matches!(waited, Waited::Signal(_)) && look_again(headless.console.state()) {
        waited = headless.until(SECOND_LOOK, |s| !look_again(s)).await;
    }
    // Requests run, and their tokens come with an engine's steps: from two scrapes nobody knows whether they do.
    if !matches!(waited, Waited::Signal(_)) && model::look_on(headless.console.state()) {
        waited = headless.until(FLOW_LOOK, |s| !model::look_on(s)).await;
    }
    // A ready server beside a cause of a failure: one of the two is older.
    if !matches!(waited, Waited::Signal(_)) && at_odds(headless.console.state()) {
        let asked = headless.console.now().stamp;
        let health = |s: &State| s.observed.server.health.at().is_some_and(|at| at > asked);
        waited = headless.until(HEALTH_AGAIN, |s| !at_odds(s) || health(s)).await;
    }
    let exit = match waited {
        Waited::Signal(exit) => exit,
        // What has not answered by now is shown as that.
        Waited::True | Waited::Late => {
            let (state, now) = (headless.console.state(), headless.console.now());
            if json {
                out::json(&report::status::status(state, now));
            } else {
                out::line(text(state).trim_end());
            }
            verdict(state)
        }
    };
    Ok(headless.leave(exit).await)
}

/// Longest wait of `status` for a second answer of /health: the time to the next question, and some for the answer.
const HEALTH_AGAIN: Duration = HEALTH_EVERY.saturating_mul(2);

/// Longest wait of `status` for a token of the requests that run: the time after which none is said to have come, and some for the scrapes.
const FLOW_LOOK: Duration = UNSEEN_AFTER.saturating_add(Duration::from_secs(3));

/// Whether a server is ready by what it answered, and something says that it failed.
fn at_odds(state: &State) -> bool {
    verdict(state) == Exit::Done && state.first_cause().is_some()
}

fn verdict(state: &State) -> Exit {
    if !unreachable(state).is_empty() {
        return Exit::Unreachable;
    }
    match state.server.state {
        // That it once gave tokens is no word on now, while requests wait for theirs.
        ServingState::Ready if model::unproven(state, state.now.stamp) => Exit::NotServing,
        ServingState::Ready => Exit::Done,
        // Without a token an answer is all that can be had.
        ServingState::Answering if state.options.no_probe => Exit::Done,
        ServingState::Answering
        | ServingState::Unknown
        | ServingState::Down
        | ServingState::Loading
        | ServingState::Degraded(_)
        | ServingState::Stopping
        | ServingState::Failed(_) => Exit::NotServing,
    }
}

/// The state in a few lines for a person.
fn text(state: &State) -> String {
    let mut text = String::new();
    let config = &state.config;
    let _ok = writeln!(
        text,
        "{}  {}  {}",
        config.cluster,
        config.engine.word(),
        config.serve.name()
    );
    for line in unreachable(state) {
        let _ok = writeln!(text, "  ! {line}");
    }
    if let Some(other) = foreign::at_work(state, state.now.stamp) {
        let _ok = writeln!(text, "  ! {}", other.text(state));
    }
    for id in config.node_ids() {
        let (Some(node), Some(seen)) = (config.node(id), state.observed.node(id)) else {
            continue;
        };
        let now = state.now.stamp;
        let containers = &seen.containers;
        let containers = containers
            .value()
            .filter(|_| !containers.stale(now, every(state, id, Subject::Containers)));
        let container = match containers.map(|c| c.named(&config.container.name)) {
            Some(Some(c)) => format!("{} {}", c.name, c.state.words()),
            Some(None) => format!("no container {}", config.container.name),
            None => {
                let why = why(state, id, &seen.containers);
                format!("container unknown ({why})")
            }
        };
        let membership = &state.observed.ray;
        let membership = membership.value().filter(|r| !membership.stale(now, ray_every(r.via)));
        let member = membership.and_then(|_| members::members(state)?.into_iter().find(|m| m.id == id));
        let doubted = member.as_ref().is_some_and(members::Member::doubted);
        let mut ray = match member.map(|m| m.standing) {
            Some(Standing::Alive(_)) if doubted => "Ray still says alive".to_owned(),
            Some(Standing::Alive(seen)) if seen.has_gpus(node.gpus) => "alive in Ray".to_owned(),
            Some(Standing::Alive(seen)) => {
                format!(
                    "alive in Ray with {} instead of {}",
                    amount(seen.gpus, "GPU"),
                    node.gpus
                )
            }
            Some(Standing::Elsewhere(seen)) => {
                format!(
                    "registered in Ray as {}, expected {}",
                    seen.address, node.fabric_address
                )
            }
            Some(Standing::Dead(seen)) => match &seen.message {
                Some(why) => format!("dead in Ray: {why}"),
                None => "dead in Ray".to_owned(),
            },
            Some(Standing::Absent) => "not in Ray".to_owned(),
            None if ranks(state).is_some() => "Ray is not used".to_owned(),
            None => {
                let why = why(state, config.head(), &state.observed.ray);
                format!("Ray unknown ({why})")
            }
        };
        if let Some(silent) = members::silent(state, id) {
            let _ok = write!(ray, "; {}", silent.text(now));
        }
        let _ok = writeln!(
            text,
            "  {:<12} {:<6} {:<16} {container}, {ray}",
            node.name,
            node.role.word(),
            node.fabric_address
        );
        text.push_str(&memory(state, id));
        text.push_str(&gpus(state, id));
        let problems = problems(state, id, &text);
        text.push_str(&problems);
        text.push_str(&log(state, id, &text));
    }
    let why = state.server_why().map(|why| format!(": {why}")).unwrap_or_default();
    let unproven = if model::unproven(state, state.now.stamp) {
        ", which is not proven now"
    } else {
        ""
    };
    let _ok = writeln!(text, "  server is {}{unproven}{why}", state.server.state.word());
    let _ok = writeln!(text, "  {}", place(state));
    if let Some(line) = serving(state) {
        let _ok = writeln!(text, "  {line}");
    }
    let metrics = &state.observed.server.metrics;
    let missed = state.server.state.answers() && metrics.asked();
    if let Some(why) = metrics.reason().filter(|_| missed) {
        let _ok = writeln!(text, "  ! /metrics tells nothing: {why}");
    }
    if state.server.state == ServingState::Loading {
        text.push_str(&load(state));
    }
    for line in cause::text(state) {
        let _ok = writeln!(text, "  {line}");
    }
    text
}

/// Where the server is or will be, and how long it has been as it is.
fn place(state: &State) -> String {
    let from = match state.config.ssh.jump.last() {
        Some(jump) => format!(" as seen from {}", jump.name),
        None => String::new(),
    };
    let lasts = model::serves_for(state, state.now.stamp);
    let unknown = state.server.state == ServingState::Unknown;
    let plain = lasts.starts_with(|c: char| c.is_ascii_digit());
    let short = model::server_since(state).age(state.now.stamp) < Duration::from_secs(1);
    let lasts = match (plain, short) {
        // Until it was asked there is nothing that lasts.
        _ if unknown && !state.observed.server.health.asked() => ", which nobody has asked yet".to_owned(),
        (true, true) if unknown => String::new(),
        (true, false) if unknown => format!(", not known for {lasts}"),
        // A state that began this moment has lasted for no time.
        (true, true) => ", since just now".to_owned(),
        (true, false) => format!(", so for {lasts}"),
        (false, _) => format!(", {lasts}"),
    };
    format!("at {}{from}{lasts}", model::server_url(&state.config))
}

/// How far the load is, how it goes and how long it still takes.
fn load(state: &State) -> String {
    let now = state.now.stamp;
    let Some(part) = loading::whole(state) else {
        return String::new();
    };
    let bar = part.bar.map_or(String::new(), |b| format!(" {}/{}", b.done, b.total));
    let judged = loading::judge(state, None, now);
    let left = match loading::time_left(state, judged.as_ref(), now) {
        Ok(eta) => eta.text(),
        Err(why) => format!("time left not known: {why}"),
    };
    let mut text = format!("  load: {}{bar}; {left}\n", part.word());
    if let Some(judged) = judged {
        let evidence = if judged.evidence.is_empty() { "" } else { ": " };
        let because = judged.evidence.join("; ");
        let _ok = writeln!(text, "  load is {}{evidence}{because}", judged.verdict.text(now));
        if let Some(advice) = judged.advice {
            let _ok = writeln!(text, "  {advice}");
        }
    }
    text
}

/// The four numbers of a node's memory, and a warning where little is left.
fn memory(state: &State, id: NodeId) -> String {
    let Some(seen) = state.observed.node(id) else {
        return String::new();
    };
    let now = state.now.stamp;
    let stale = seen.memory.stale(now, every(state, id, Subject::Memory));
    let Some(m) = seen.memory.value().filter(|_| !stale) else {
        return format!("    memory unknown ({})\n", why(state, id, &seen.memory));
    };
    let gib = |b: Bytes| format!("{:.1}", b.gib());
    let or_dash = |b: Option<Bytes>| b.map_or_else(|| "-".to_owned(), gib);
    let gpus = seen.gpus.value();
    let held = gpus.and_then(GpuFacts::held);
    // What processes hold of a GPU's own memory is none of the host's.
    let own = gpus.is_some_and(|g| !g.gpus.iter().any(|gpu| gpu.unified));
    let of_it = if own {
        String::new()
    } else {
        format!(", gpu-held {}", or_dash(held))
    };
    let mut text = format!(
        "    memory used {}/{} GiB{of_it}, page cache {}, free {}",
        gib(m.used()),
        gib(m.total),
        or_dash(m.cached),
        or_dash(m.free)
    );
    if let Some(rest) = gpus.filter(|g| g.all_unified()).and_then(|_| m.unaccounted(held)) {
        text.push_str(&format!(", unaccounted {}", gib(rest)));
    }
    text.push('\n');
    if let Some(alarm) = memory_alarm(state, id) {
        text.push_str(&format!("  ! {}: {alarm}\n", state.config.node_name(id)));
    }
    text
}

/// GPUs by their names, each once with its number: `3 x NVIDIA H200, 1 x NVIDIA A100`.
fn named(all: &[Gpu]) -> String {
    if let [one] = all {
        return one.name.clone();
    }
    let mut names: Vec<(&str, usize)> = Vec::new();
    for gpu in all {
        match names.iter_mut().find(|(name, _)| *name == gpu.name) {
            Some((_, count)) => *count += 1,
            None => names.push((&gpu.name, 1)),
        }
    }
    let each: Vec<String> = names.iter().map(|(name, count)| format!("{count} x {name}")).collect();
    each.join(", ")
}

/// A node's GPUs in one line: the busiest, all power, the warmest, and their memory where it is their own.
fn gpus(state: &State, id: NodeId) -> String {
    let Some(seen) = state.observed.node(id) else {
        return String::new();
    };
    let stale = seen.gpus.stale(state.now.stamp, every(state, id, Subject::Gpus));
    let Some(facts) = seen.gpus.value().filter(|_| !stale) else {
        return format!("    GPUs unknown ({})\n", why(state, id, &seen.gpus));
    };
    let all = &facts.gpus;
    if all.is_empty() {
        return "    no GPU\n".to_owned();
    }
    let most = |of: fn(&Gpu) -> Option<f32>| all.iter().filter_map(of).reduce(f32::max);
    let number = |n: Option<f32>, unit: &str| n.map_or_else(|| format!("- {unit}"), |n| format!("{n:.0} {unit}"));
    let sum = |of: fn(&Gpu) -> Option<Bytes>| {
        let add = |sum: Bytes, gpu: &Gpu| Some(Bytes(sum.0.saturating_add(of(gpu)?.0)));
        all.iter().try_fold(Bytes(0), add)
    };
    let watts = all.iter().try_fold(0.0, |sum, gpu| Some(sum + gpu.power?.0));
    let (busiest, warmest) = if all.len() > 1 {
        ("busiest ", "warmest ")
    } else {
        ("", "")
    };
    let names = named(all);
    let expected = state.config.node(id).map_or(0, |node| node.gpus);
    let fewer = facts
        .fewer_than(expected)
        .map_or_else(String::new, |_| format!(" of {expected} expected"));
    let mut text = format!(
        "    {names}{fewer}: {busiest}{}, {}, {warmest}{}",
        number(most(|g| g.utilization.map(|p| p.0)), "%"),
        number(watts, "W"),
        number(most(|g| g.temperature.map(|t| t.0)), "C")
    );
    if let (Some(used), Some(total)) = (sum(|g| g.memory_used), sum(|g| g.memory_total)) {
        let held = facts
            .held()
            .map_or_else(|| "-".to_owned(), |held| format!("{:.1}", held.gib()));
        let _ok = write!(
            text,
            ", memory {:.1}/{:.1} GiB, held by processes {held}",
            used.gib(),
            total.gib()
        );
    }
    text.push('\n');
    text
}

/// That a node has no log to read, or that Docker has not come to it yet; that its configured container is not there has been said.
fn log(state: &State, id: NodeId, said: &str) -> String {
    let seen = state.observed.node(id).is_some_and(|seen| seen.link.usable());
    let Some(log) = state.nodes.get(id.index()).map(|view| &view.log).filter(|_| seen) else {
        return String::new();
    };
    // A node that is silent has told what was so up to its last sign of life.
    let now = model::heard_until(state, id, state.now.stamp);
    let node = state.config.node_name(id);
    let long = |since: Stamp| match now.since(since) {
        // It was found so just now, and may have been so for long.
        short if short < Duration::from_secs(1) => String::new(),
        long => format!(", for {}", human(long)),
    };
    let lasts = |since: When| match since.age(now) {
        short if since.found && short < Duration::from_secs(1) => String::new(),
        _ => format!(", {}", since.lasts(now)),
    };
    if let Some((source, _)) = &log.source
        && let Some(missing) = source.missing()
        && source.what() != Wanted::Named(state.config.container.name.clone()).words()
    {
        let words = source.said().filter(|words| !said.contains(words));
        let words = words.map(|words| format!(" ({words})")).unwrap_or_default();
        return format!(
            "  ! {node}: no log: {missing}{}{words}\n",
            log.source_since().map(lasts).unwrap_or_default()
        );
    }
    // Nobody looks for a log where Docker does not say which containers there are.
    let containers = state.observed.node(id).map(|seen| &seen.containers);
    if log.source.is_none()
        && let Some(why) = containers.filter(|c| c.asked()).and_then(Reading::reason)
    {
        let why = if said.contains(why) { "" } else { &format!(": {why}") };
        return format!("  ! {node}: no log: which containers it has is not known{why}\n");
    }
    match log.flow.seeks.filter(|seeks| seeks.again) {
        Some(seeks) => format!(
            "  ! {node}: the log waits for Docker to find its place{}\n",
            long(seeks.since)
        ),
        None => String::new(),
    }
}

/// What a node's readings complain of, but for what has been said.
fn problems(state: &State, id: NodeId, said: &str) -> String {
    let all = state.nodes.get(id.index()).into_iter().flat_map(|view| &view.problems);
    let mut text = String::new();
    for problem in all.filter(|p| !said.contains(&p.text)) {
        let _ok = writeln!(text, "  ! {}: {}", state.config.node_name(id), problem.text);
    }
    text
}

/// What the server does now, as far as its counters tell; `None` when they tell nothing, or when what they told is old.
fn serving(state: &State) -> Option<String> {
    let (server, metrics) = (&state.server, &state.observed.server.metrics);
    let sample = metrics
        .value()
        .filter(|_| !metrics.stale(state.now.stamp, METRICS_EVERY))?;
    let figures = &server.figures;
    let times = |name: &str, one: &str, q: &Quantiles| match q.few(one) {
        Some(few) => format!("{name} p50 {} {few}", q.p50),
        None => format!("{name} p50 {} p95 {}", q.p50, q.p95),
    };
    let lately = [
        figures.ttft.value().map(|q| times("TTFT", "request", q)),
        figures.itl.value().map(|q| times("ITL", "token", q)),
    ];
    let lately: Vec<String> = lately.into_iter().flatten().collect();
    let over = server
        .live_text()
        .map_or_else(String::new, |span| format!(" over {span}"));
    let span = figures.span.as_secs();
    let lately = (!lately.is_empty()).then(|| format!("in the last {span} s {}", lately.join(", ")));
    let parts = [
        server
            .generation
            .value()
            .map(|rate| format!("{rate:.1} tok/s generated{over}")),
        lately,
        sample.running.map(|n| format!("{n:.0} running")),
        sample.waiting.map(|n| format!("{n:.0} waiting")),
        sample.kv_cache.map(|p| format!("KV cache {:.1} %", p.0)),
        model::prefill(state, state.now.stamp),
        model::doubt(state, state.now.stamp),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Why what a node would tell is not known now.
fn why<'a, T>(state: &'a State, node: NodeId, reading: &'a Reading<T>) -> Cow<'a, str> {
    if reading.value().is_some() {
        return Cow::Borrowed("the last answer is old");
    }
    state.why_absent(node, reading)
}

#[cfg(test)]
mod tests;
