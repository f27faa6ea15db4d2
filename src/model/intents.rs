//! What a person wants, and questions to that person.

use crate::domain::effect::Effect;
use crate::domain::intent::{Action, Intent, Mode, Pane, Scroll};
use crate::domain::question::{Answer, Question};
use crate::domain::{NodeId, Source};
use crate::plan;

use super::bench::BenchView;
use super::run;
use super::state::{Quit, ServingState, State};
use super::update::notice;

/// Open questions kept; a further one is answered with no.
const QUESTIONS: usize = 32;

/// Takes an intent.
pub(super) fn take(state: &mut State, intent: Intent, effects: &mut Vec<Effect>) {
    match intent {
        Intent::Plan(action) => show_plan(state, action),
        Intent::StopMenu => open(state, Mode::StopMenu),
        Intent::Confirm => run::confirm(state, effects),
        Intent::Bench => bench(state, effects),
        Intent::Back => back(state, effects),
        Intent::NextPane => focus_by(state, 1),
        Intent::PreviousPane => focus_by(state, -1),
        Intent::PaneNumber(n) => {
            let pane = usize::from(n).checked_sub(1).and_then(|i| state.panes().nth(i));
            if let Some(pane) = pane {
                state.screen.focus = pane;
            }
        }
        Intent::Scroll(by) => scroll(state, by),
        Intent::Follow => follow(state),
        Intent::Zoom => state.screen.zoom = !state.screen.zoom,
        Intent::Steps => toggle(state, Mode::Run),
        Intent::StopRun => {
            run::abort(state, effects);
            open(state, Mode::Run);
        }
        Intent::Commands => toggle(state, Mode::Commands),
        Intent::Help => toggle(state, Mode::Help),
        Intent::Copy => copy(state, effects),
        Intent::Reconnect => effects.push(Effect::Reconnect),
        Intent::Answer(id, answer) => {
            state.questions.retain(|q| q.id != id);
            effects.push(Effect::Answer(id, answer));
            if state.screen.mode == Mode::Question && state.questions.is_empty() {
                state.screen.mode = Mode::Panes;
            }
        }
        Intent::Quit => quit(state, effects),
    }
}

/// An actor asks. The question comes to the front; what was open is behind it.
pub(super) fn asked(state: &mut State, question: Question, effects: &mut Vec<Effect>) {
    if state.questions.len() == QUESTIONS {
        effects.push(Effect::Answer(question.id, Answer::No));
        return;
    }
    state.questions.push_back(question);
    open(state, Mode::Question);
}

fn show_plan(state: &mut State, action: Action) {
    let plan = plan::make(action, &state.config, &state.observed, state.now);
    state.plan = Some(plan);
    open(state, Mode::Plan);
}

fn bench(state: &mut State, effects: &mut Vec<Effect>) {
    if state.bench.as_ref().is_some_and(BenchView::running) {
        effects.push(Effect::CancelBench);
        return;
    }
    match &state.server.state {
        ServingState::Answering | ServingState::Ready | ServingState::Degraded(_) => {
            let profile = state.config.bench.clone();
            state.bench = Some(BenchView::new(profile.clone(), state.now.stamp));
            state.screen.focus = Pane::Bench;
            open(state, Mode::Panes);
            effects.push(Effect::StartBench(profile));
        }
        other @ (ServingState::Unknown | ServingState::Down | ServingState::Loading | ServingState::Failed(_)) => {
            let text = format!(
                "the throughput test needs a server that answers; this one is {}",
                other.word()
            );
            notice(state, Source::Operator, text);
        }
    }
}

fn back(state: &mut State, effects: &mut Vec<Effect>) {
    match state.screen.mode {
        Mode::Panes => state.screen.zoom = false,
        Mode::Plan => {
            state.plan = None;
            open(state, Mode::Panes);
        }
        Mode::Question => {
            if let Some(question) = state.questions.pop_front() {
                effects.push(Effect::Answer(question.id, Answer::No));
            }
            if state.questions.is_empty() {
                open(state, Mode::Panes);
            }
        }
        Mode::Run | Mode::StopMenu | Mode::Commands | Mode::Help => open(state, Mode::Panes),
    }
}

fn open(state: &mut State, mode: Mode) {
    state.screen.mode = mode;
    state.screen.overlay_top = 0;
}

fn toggle(state: &mut State, mode: Mode) {
    let next = if state.screen.mode == mode { Mode::Panes } else { mode };
    open(state, next);
}

fn focus_by(state: &mut State, by: isize) {
    let panes: Vec<Pane> = state.panes().collect();
    let at = panes.iter().position(|p| *p == state.screen.focus).unwrap_or(0);
    let count = isize::try_from(panes.len()).unwrap_or(1).max(1);
    let next = (isize::try_from(at).unwrap_or(0) + by).rem_euclid(count);
    if let Some(pane) = usize::try_from(next).ok().and_then(|i| panes.get(i)) {
        state.screen.focus = *pane;
    }
}

fn scroll(state: &mut State, by: Scroll) {
    if state.screen.mode != Mode::Panes {
        let top = &mut state.screen.overlay_top;
        *top = match by {
            Scroll::Lines(n) | Scroll::Pages(n) => top.saturating_add_signed(n),
            Scroll::Top => 0,
            Scroll::End => u16::MAX,
        };
        return;
    }
    let Some(node) = state.focused_node() else { return };
    let Some(log) = state.nodes.get(node.index()).map(|n| n.log) else {
        return;
    };
    let held = state.screen.held.get(&node).copied().unwrap_or(log.seq);
    let next = match by {
        Scroll::Lines(n) | Scroll::Pages(n) => held.saturating_add_signed(i64::from(n)),
        Scroll::Top => log.dropped,
        Scroll::End => log.seq,
    };
    hold(state, node, next.clamp(log.dropped, log.seq), log.seq);
}

/// Holds a log at a line; at its end it follows again.
fn hold(state: &mut State, node: NodeId, at: u64, end: u64) {
    if at >= end {
        state.screen.held.remove(&node);
    } else {
        state.screen.held.insert(node, at);
    }
}

fn follow(state: &mut State) {
    let Some(node) = state.focused_node() else { return };
    let seq = state.nodes.get(node.index()).map_or(0, |n| n.log.seq);
    if state.screen.held.remove(&node).is_none() {
        state.screen.held.insert(node, seq);
    }
}

fn copy(state: &State, effects: &mut Vec<Effect>) {
    let text = match state.screen.mode {
        Mode::Plan => state.plan.as_ref().map(|p| plan::script(p, &state.config)),
        Mode::Run => run::fix(state),
        Mode::Panes | Mode::StopMenu | Mode::Commands | Mode::Help | Mode::Question => {
            Some(super::tunnel_line(&state.config))
        }
    };
    if let Some(text) = text {
        effects.push(Effect::Copy(text));
    }
}

fn quit(state: &mut State, effects: &mut Vec<Effect>) {
    state.quit = match state.quit {
        Quit::No => Quit::Asked,
        Quit::Asked | Quit::Now => Quit::Now,
    };
    run::abort(state, effects);
    effects.push(Effect::Quit {
        now: state.quit == Quit::Now,
    });
}
