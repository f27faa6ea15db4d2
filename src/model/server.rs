//! The model server: rates from counters, and where it stands.

use std::collections::BTreeSet;
use std::mem::discriminant;
use std::time::Duration;

use crate::domain::count::amount;
use crate::domain::effect::Effect;
use crate::domain::load::Stage;
use crate::domain::ray::RayVia;
use crate::domain::serving::{Health, MetricsSample, NoToken, ServerFacts, TOKEN_ASKED};
use crate::domain::time::{human, seconds};
use crate::domain::{Reading, Stamp, When};
use crate::measure::window::COUNTS_ANEW;
use crate::measure::{Figures, Rates};

use super::flow::{Gpus, UNSEEN_AFTER, Verdict};
use super::given_up;
use super::history;
use super::load::failures;
use super::load::trend::Busy;
use super::loss::{self, Losses};
use super::ray;
use super::schedule::HEALTH_EVERY;
use super::state::{ServerView, ServingState, State};
use super::survived;

/// HTTP's "service unavailable": a server that loads, or one that is broken.
const UNAVAILABLE: u16 = 503;

/// Time that a server which has closed its port takes to end, where its log does not say that it ends: what `docker stop` gives it.
const ENDING: Duration = Duration::from_secs(10);

/// Why nothing is known of a server whose port refuses.
pub(super) const PORT_REFUSES: &str = "the server's port refuses";

/// Takes an answer of the server or of Ray's dashboard.
pub(super) fn take(state: &mut State, answer: ServerFacts, at: Stamp) {
    let seen = &mut state.observed.server;
    match answer {
        ServerFacts::Health(health) => {
            match health {
                Health::Ok => {
                    state.served = pids(state);
                    state.refused_since = None;
                }
                Health::Refused => {
                    state.refused_since.get_or_insert(at);
                }
                Health::Status(_) | Health::Unreachable(_) => {}
            }
            let seen = &mut state.observed.server;
            if health == Health::Refused {
                // The server that gave the proof is gone; the next one must prove itself again.
                seen.token = Reading::absent(PORT_REFUSES);
                seen.models = Reading::absent(PORT_REFUSES);
                seen.metrics = Reading::absent(PORT_REFUSES);
                forget_rates(&mut state.server, PORT_REFUSES);
                // What the next server counts does not follow on what this one did.
                state.server.window.clear();
                state.server.flow.forget();
                state.server.counted = None;
                state.token_failed = None;
                state.token_asked = None;
            }
            seen.health = Reading::known(health, at);
        }
        ServerFacts::Models(Ok(names)) => seen.models = Reading::known(names, at),
        ServerFacts::Models(Err(why)) => seen.models = Reading::absent(why),
        ServerFacts::Metrics(Ok(sample)) => {
            take_sample(&mut state.server, &sample, at);
            // Beside the reading, because a scrape that fails in between takes that away.
            let restarted = state.server_started.is_some() && state.server_started != sample.started;
            state.server_started = sample.started;
            if restarted {
                seen.token = Reading::absent("the server was started anew");
                state.losses = Losses::default();
                state.token_failed = None;
                state.token_asked = None;
            }
            if counts_tokens(&sample) {
                state.token_failed = None;
            }
            seen.metrics = Reading::known(*sample, at);
            state.metrics_failed = false;
        }
        ServerFacts::Metrics(Err(why)) => {
            forget_rates(&mut state.server, &why);
            seen.metrics = Reading::absent(why);
            state.metrics_failed = true;
        }
        ServerFacts::Token(Ok(proof)) => {
            seen.token = Reading::known(proof, at);
            state.token_failed = None;
        }
        ServerFacts::Token(Err(why)) => {
            seen.token = Reading::absent(why.why().to_owned());
            state.token_failed = Some(why);
        }
        ServerFacts::Ray(Ok(ray)) => ray::take(state, ray, at),
        // Nothing is said of the membership yet: it is asked for in the container now.
        ServerFacts::Ray(Err(why)) => state.ray.failed(RayVia::Dashboard, &why, at, false),
    }
}

/// A token is asked for: until it comes, nothing that was said of one before counts as the answer.
pub(super) fn token_asked(state: &mut State) {
    state.token_asked = Some(state.now.stamp);
    let token = &mut state.observed.server.token;
    if token.value().is_none() {
        *token = Reading::absent(TOKEN_ASKED);
    }
}

/// The way to the head is gone: a request that failed or was under way says nothing of the server.
pub(super) fn head_lost(state: &mut State) {
    state.token_failed = None;
    if !proven(state) {
        state.token_asked = None;
    }
}

/// The rates of now, and the figures of the window. A counter that went down was reset, as is all that another process counts: there is no rate until the
/// next scrape.
fn take_sample(view: &mut ServerView, sample: &MetricsSample, at: Stamp) {
    let last = view.window.newest().map(|(at, sample)| (at, sample.clone()));
    let reset = view.window.push(at, sample.clone());
    let last = last.filter(|_| !reset);
    view.figures = view.window.figures();
    view.flow.take(last.as_ref().map(|(_, sample)| sample), sample, at);
    if let Some((old_at, old)) = last
        && sample.generation_tokens > old.generation_tokens
    {
        view.counted = Some(old_at);
    }
    let rates = if reset {
        Rates::absent(COUNTS_ANEW)
    } else {
        view.window.rates()
    };
    if let Some(rate) = rates.generation.value() {
        view.generation_history.push(at, *rate);
    }
    if let Some(rate) = rates.prompt.value() {
        view.prompt_history.push(at, *rate);
    }
    set_rates(view, rates);
}

fn set_rates(view: &mut ServerView, rates: Rates) {
    view.generation = rates.generation;
    view.prompt = rates.prompt;
    view.live = rates.span;
}

fn forget_rates(view: &mut ServerView, why: &str) {
    set_rates(view, Rates::absent(why));
    view.figures = Figures::absent(why);
}

/// Decides anew where the server stands.
pub(super) fn settle(state: &mut State, now: Stamp, effects: &mut Vec<Effect>) {
    loss::settle(state, now);
    let next = judge(state, now);
    if next == state.server.state {
        survived::settle(state, now);
        return;
    }
    // A run tells how it ended itself.
    if !state.run_under_way() {
        effects.extend(news(state, &next).map(Effect::Notify));
    }
    state.awaited = match next {
        ServingState::Down | ServingState::Loading | ServingState::Stopping | ServingState::Failed(_) => true,
        ServingState::Ready => false,
        ServingState::Answering | ServingState::Degraded(_) | ServingState::Unknown => state.awaited,
    };
    if next == ServingState::Ready {
        let before = state.server.state.clone();
        survived::ready(state, &before);
    }
    if state.server.state == ServingState::Loading && next.answers() {
        let wall = state.now.wall;
        effects.extend(history::finished(state, now, wall).map(Effect::KeepLoad));
    }
    // Another reason for the same state does not begin it anew.
    if discriminant(&state.server.state) != discriminant(&next) {
        state.server.found = found(&state.server, &next);
        state.server.since = now;
    }
    state.server.state = next;
}

/// Since when the server is where it stands. A state that was found has begun before, and for some of them the log says when.
#[must_use]
pub fn server_since(state: &State) -> When {
    let view = &state.server;
    if !view.found {
        return When::at(view.since);
    }
    let head = state.nodes.get(state.config.head().index()).map(|node| &node.load);
    let told = match &view.state {
        ServingState::Loading => head.and_then(|load| load.started),
        ServingState::Failed(why) => {
            let said = given_up::lines(state).into_iter().find(|(_, text)| text == why);
            said.map(|(at, _)| *at)
        }
        ServingState::Unknown
        | ServingState::Down
        | ServingState::Answering
        | ServingState::Ready
        | ServingState::Degraded(_)
        | ServingState::Stopping => None,
    };
    let told = told.and_then(When::sure).filter(|at| *at <= view.since);
    told.map_or(When::found(view.since), When::at)
}

/// Since when a server that answers listens, as its log says; `None` where that does not tell.
#[must_use]
pub fn listens_since(state: &State) -> Option<Stamp> {
    let load = &state.nodes.get(state.config.head().index())?.load;
    let (stage, since) = load.stage.filter(|_| state.server.state.answers())?;
    since.sure().filter(|_| stage == Stage::Listening)
}

/// How long the server has been as it is: `5 s`; of one that was found so `listens for 5 s`, where its log tells, else `known for 5 s`, and in the first
/// second that nobody knows.
#[must_use]
pub fn serves_for(state: &State, now: Stamp) -> String {
    let since = server_since(state);
    match listens_since(state).filter(|_| since.found) {
        Some(listens) => format!("listens for {}", seconds(now.since(listens))),
        // Who has just come knows nothing of how long.
        None if since.found && since.age(now) < Duration::from_secs(1) => "since when is not known".to_owned(),
        None if since.found => format!("known for {}", seconds(since.age(now))),
        None => seconds(since.age(now)),
    }
}

/// Whether the next state was found so, and not seen to become so: nobody knows since when. What is learnt of a state that was found, such as the token that
/// proves it or the line that says why it is down, is no change of the server.
fn found(view: &ServerView, next: &ServingState) -> bool {
    match (&view.state, next) {
        (ServingState::Unknown, _) => true,
        (ServingState::Answering, ServingState::Ready | ServingState::Degraded(_))
        | (ServingState::Down | ServingState::Loading, ServingState::Failed(_)) => view.found,
        (
            ServingState::Down
            | ServingState::Loading
            | ServingState::Answering
            | ServingState::Ready
            | ServingState::Degraded(_)
            | ServingState::Stopping
            | ServingState::Failed(_),
            _,
        ) => false,
    }
}

/// What a person who looks elsewhere wants to know of a change. A state that was found when the console started, or after a gap, is no news.
fn news(state: &State, next: &ServingState) -> Option<String> {
    let name = &state.config.cluster;
    match next {
        ServingState::Ready => state.awaited.then(|| format!("{name}: the model is ready")),
        ServingState::Failed(why) => match state.server.state {
            ServingState::Loading
            | ServingState::Answering
            | ServingState::Ready
            | ServingState::Degraded(_)
            | ServingState::Stopping => Some(format!("{name}: the model server has failed: {why}")),
            ServingState::Unknown | ServingState::Down | ServingState::Failed(_) => None,
        },
        ServingState::Unknown
        | ServingState::Down
        | ServingState::Loading
        | ServingState::Answering
        | ServingState::Degraded(_)
        | ServingState::Stopping => None,
    }
}

fn judge(state: &State, now: Stamp) -> ServingState {
    let seen = &state.observed.server;
    let head = state.config.head();
    let head_up = state.observed.node(head).is_some_and(|n| n.link.usable());
    // What an unreachable head said last is not what it says now.
    let Some(health) = seen
        .health
        .value()
        .filter(|_| head_up && !seen.health.stale(now, HEALTH_EVERY))
    else {
        return ServingState::Unknown;
    };
    match health {
        Health::Unreachable(_) => ServingState::Unknown,
        Health::Refused => refused(state, now),
        Health::Status(UNAVAILABLE) if not_yet(state, now) => ServingState::Loading,
        // One that ends answers with an error before it closes its port; so does one whose engine has died, and which ends for that.
        Health::Status(_) if given_up::shuts_down(state) && given_up::lines(state).is_empty() => ServingState::Stopping,
        Health::Status(code) => ServingState::Failed(format!("/health answers {code}")),
        Health::Ok => {
            if let Some(why) = wrong_model(state) {
                return ServingState::Degraded(why);
            }
            if let Some(NoToken::Failed(why)) = &state.token_failed {
                return ServingState::Failed(format!("it says healthy, and no token came back: {why}"));
            }
            if !proven(state) {
                return ServingState::Answering;
            }
            loss::first(state)
                .or_else(|| frozen(state, now))
                .map_or(ServingState::Ready, ServingState::Degraded)
        }
    }
}

/// Whether a server that calls itself unavailable loads: some answer so before they are ready. One that has answered before, or has failed, is broken.
fn not_yet(state: &State, now: Stamp) -> bool {
    let before = match state.server.state {
        ServingState::Unknown | ServingState::Down | ServingState::Loading => true,
        ServingState::Answering
        | ServingState::Ready
        | ServingState::Degraded(_)
        | ServingState::Stopping
        | ServingState::Failed(_) => false,
    };
    let failed = !failures(state.nodes.iter().map(|n| &n.load).filter(|l| !l.over)).is_empty();
    before && !failed && state.token_failed.is_none() && !proven(state) && refused(state, now) == ServingState::Loading
}

/// Whether a token of this start of the server is known.
pub(super) fn proven(state: &State) -> bool {
    let seen = &state.observed.server;
    // The window outlives a scrape that failed: what was counted of this start of the server stays counted.
    state.server.window.latest().is_some_and(counts_tokens) || seen.token.value().is_some()
}

/// Whether the server has generated a token by its own count.
fn counts_tokens(sample: &MetricsSample) -> bool {
    sample.generation_tokens.is_some_and(|n| n >= 1.0)
}

/// What the server calls its models when none of them is the configured one.
pub(super) fn wrong_model(state: &State) -> Option<String> {
    let names = state.observed.server.models.value().filter(|n| !n.is_empty())?;
    let wanted = state.config.serve.name();
    (!names.iter().any(|n| n == wanted)).then(|| format!("/v1/models names {}, not {wanted}", names.join(", ")))
}

fn refused(state: &State, now: Stamp) -> ServingState {
    let head = state.config.head();
    let runs = state
        .observed
        .node(head)
        .and_then(|n| n.serve.value())
        .map(|s| !s.processes.is_empty());
    if let Some(why) = given_up::why(state, now).filter(|_| runs == Some(true)) {
        return ServingState::Failed(why.to_owned());
    }
    let failure = given_up::lines(state).first().map(|(_, text)| text);
    match (runs, failure) {
        (Some(true), None) if ends(state, now) => match broken(state) {
            Some(why) => ServingState::Failed(why.to_owned()),
            None => ServingState::Stopping,
        },
        // It has answered, says that it failed, and has closed its port: whatever becomes of its process, this is no load.
        (Some(true), Some(why)) if answered(state) => ServingState::Failed(why.clone()),
        (Some(true), _) if gave_up(state, failure.is_some()) => ServingState::Failed(match failure {
            Some(why) => why.clone(),
            None => broken(state)
                .unwrap_or("its port refuses, and its process is still there")
                .to_owned(),
        }),
        (Some(true), _) => ServingState::Loading,
        (Some(false), Some(why)) => ServingState::Failed(why.clone()),
        (Some(false), None) => ServingState::Down,
        // The container may be gone, or the process list was not read yet.
        (None, _) => {
            let container = state.observed.node(head).and_then(|n| n.containers.value());
            if container.is_some_and(|c| c.named(&state.config.container.name).is_none()) {
                ServingState::Down
            } else {
                ServingState::Unknown
            }
        }
    }
}

/// Why the server had failed already: that its port closes then is an echo.
fn broken(state: &State) -> Option<&str> {
    if let ServingState::Failed(why) = &state.server.state {
        return Some(why);
    }
    None
}

/// Whether a server whose port refuses, and whose process is there, is on its way out: its log says so, or the process that has answered closed its port a
/// moment ago. What serves next is another process.
fn ends(state: &State, now: Stamp) -> bool {
    let closed = state.refused_since.is_some_and(|since| now.since(since) <= ENDING);
    given_up::shuts_down(state) || (closed && answered(state))
}

/// Whether a process of the server is there that has answered before, as far as was read last.
fn answered(state: &State) -> bool {
    !state.served.is_disjoint(&pids(state))
}

/// Whether a server whose port refuses, and whose process is there, does not load: the same process has answered before, or its log says that it came to
/// listen and that it failed. The processes must have been read since the port refuses: another one may have taken the place of what was there before.
fn gave_up(state: &State, failed: bool) -> bool {
    let read = state.observed.node(state.config.head()).and_then(|n| n.serve.at());
    if read.is_none() || read <= state.refused_since {
        return false;
    }
    let head = state.nodes.get(state.config.head().index());
    let listened = head.is_some_and(|view| view.load.stage.is_some_and(|(stage, _)| stage == Stage::Listening));
    answered(state) || (failed && listened)
}

/// The processes of model servers on the head.
fn pids(state: &State) -> BTreeSet<u32> {
    let serve = state.observed.node(state.config.head()).and_then(|n| n.serve.value());
    serve
        .map(|s| s.processes.iter().map(|p| p.pid).collect())
        .unwrap_or_default()
}

/// What its own counts say of a server whose tokens do not flow.
fn frozen(state: &State, now: Stamp) -> Option<String> {
    match flow(state, now)? {
        Verdict::Frozen(why) => Some(why),
        Verdict::Doubt(_) => None,
    }
}

/// What may be wrong with a ready server and is not sure.
#[must_use]
pub fn doubt(state: &State, now: Stamp) -> Option<String> {
    let ready = state.server.state == ServingState::Ready;
    match flow(state, now).filter(|_| ready) {
        Some(Verdict::Doubt(why)) => Some(why),
        Some(Verdict::Frozen(_)) => None,
        None => {
            let (time, running) = unseen(state).filter(|(time, _)| *time >= UNSEEN_AFTER)?;
            let works = match gpus(state, now) {
                Gpus::Work(which) => format!("; {which}, and works, as in a long prefill"),
                Gpus::Idle(which) => format!("; {which}"),
                Gpus::Even | Gpus::Unknown => String::new(),
            };
            Some(format!(
                "it has given tokens since its start, and none in the {} since this console looks, with {} running{works}",
                human(time),
                amount(running.round(), "request")
            ))
        }
    }
}

/// Why a ready server gives no token for long although it works: as a prefill does.
#[must_use]
pub fn prefill(state: &State, now: Stamp) -> Option<String> {
    let ready = state.server.state == ServingState::Ready;
    state.server.flow.works(now).filter(|_| ready)
}

/// Whether a ready server's proof is its count of earlier tokens alone while requests run and none comes: for how long one has looked, and how many run.
fn unseen(state: &State) -> Option<(Duration, f64)> {
    let own = state.observed.server.token.value().is_some();
    let ready = state.server.state == ServingState::Ready;
    state.server.flow.unseen().filter(|_| ready && !own)
}

/// Whether one has looked too shortly at a ready server to know that its tokens come: requests run, and none came yet.
#[must_use]
pub fn look_on(state: &State) -> bool {
    unseen(state).is_some_and(|(time, _)| time < UNSEEN_AFTER)
}

/// Whether that a server is ready is not proven now: its requests run, none of them was seen to get a token, and nothing shows that the engine works.
#[must_use]
pub fn unproven(state: &State, now: Stamp) -> bool {
    unseen(state).is_some() && !matches!(gpus(state, now), Gpus::Work(_))
}

fn flow(state: &State, now: Stamp) -> Option<Verdict> {
    state.server.flow.verdict(now, &gpus(state, now))
}

/// What the GPUs of all nodes do since the server's counts stand still.
fn gpus(state: &State, now: Stamp) -> Gpus {
    let Some(since) = state.server.flow.still_since() else {
        return Gpus::Unknown;
    };
    let seen = state.config.node_ids().filter_map(|id| {
        let (busy, figures) = state.nodes.get(id.index())?.trends.busy(since, now)?;
        Some((busy, format!("the GPU of {} is {figures}", state.config.node_name(id))))
    });
    let seen: Vec<(Busy, String)> = seen.collect();
    let first = |which: Busy| {
        seen.iter()
            .find(|(busy, _)| *busy == which)
            .map(|(_, text)| text.clone())
    };
    match (first(Busy::Works), first(Busy::Idle)) {
        (Some(which), _) => Gpus::Work(which),
        (None, Some(which)) => Gpus::Idle(which),
        (None, None) if seen.is_empty() => Gpus::Unknown,
        (None, None) => Gpus::Even,
    }
}
