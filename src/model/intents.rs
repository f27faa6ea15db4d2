//! What a person wants, and questions to that person.

use std::collections::BTreeSet;

use crate::domain::effect::Effect;
use crate::domain::intent::{Action, Intent, Mode, Pane, Scroll};
use crate::domain::link::LinkState;
use crate::domain::question::{Answer, Question};
use crate::domain::secret::SecretFrom;
use crate::domain::{NodeId, Source};
use crate::plan::{self, Plan, Refusal};

use super::bench::BenchView;
use super::state::{Quit, State};
use super::update::notice;
use super::{foreign, logs, run};

/// Open questions kept; a further one is answered with no.
const QUESTIONS: usize = 32;

/// Takes an intent.
pub(super) fn take(state: &mut State, intent: Intent, effects: &mut Vec<Effect>) {
    state.pressed = state.now.stamp;
    match intent {
        Intent::Plan(action) => show_plan(state, action),
        Intent::StopMenu => open(state, Mode::StopMenu),
        Intent::Confirm if state.screen.mode == Mode::Test => start_test(state, effects),
        Intent::Confirm => run::confirm(state, effects),
        Intent::Bench => bench(state, effects),
        Intent::Back => back(state, effects),
        Intent::NextPane => focus_by(state, 1),
        Intent::PreviousPane => focus_by(state, -1),
        Intent::PaneNumber(n) => {
            let pane = usize::from(n).checked_sub(1).and_then(|i| state.panes().nth(i));
            if let Some(pane) = pane {
                focus(state, pane);
            }
        }
        Intent::Scroll(by) => scroll(state, by),
        Intent::Follow => follow(state),
        Intent::OtherLog => logs::other(state, effects),
        Intent::Zoom => state.screen.zoom = !state.screen.zoom,
        Intent::Steps if state.screen.mode == Mode::Run => close(state),
        Intent::Steps => show(state, Mode::Run),
        Intent::StopRun => {
            run::abort(state, effects);
            show(state, Mode::Run);
        }
        Intent::Commands => toggle(state, Mode::Commands),
        Intent::Help => toggle(state, Mode::Help),
        Intent::Copy => copy(state, effects),
        Intent::Reconnect => effects.push(Effect::Reconnect),
        Intent::Answer(id, answer) => {
            state.questions.retain(|q| q.id != id);
            effects.push(Effect::Answer(id, answer));
            if state.screen.mode == Mode::Question && state.questions.is_empty() {
                close(state);
            }
        }
        Intent::Quit => quit(state, effects),
    }
}

/// An actor asks. The question comes to the front; what was open is behind it.
pub(super) fn asked(state: &mut State, question: Question, effects: &mut Vec<Effect>) {
    // Its connection is given up by now: nobody waits for the answer.
    let given_up = match question.from {
        Source::Node(node) => state.observed.node(node).is_some_and(|n| n.link.is_down()),
        Source::Hop(hop) => state.hops.get(hop.index()).is_some_and(LinkState::is_down),
        Source::Server | Source::Bench | Source::Operator | Source::Clock => false,
    };
    if given_up || state.questions.len() == QUESTIONS {
        effects.push(Effect::Answer(question.id, Answer::No));
        return;
    }
    state.questions.push_back(question);
    open(state, Mode::Question);
}

/// An actor asks no longer: nobody waits for the answer to what it has asked.
pub(super) fn withdrawn(state: &mut State, source: Source, effects: &mut Vec<Effect>) {
    let open = state.questions.len();
    let gone = state.questions.iter().filter(|q| q.from == source);
    effects.extend(gone.map(|q| Effect::Answer(q.id, Answer::No)));
    state.questions.retain(|q| q.from != source);
    if state.questions.len() < open && state.questions.is_empty() && state.screen.mode == Mode::Question {
        close(state);
    }
}

fn show_plan(state: &mut State, action: Action) {
    let mut plan = plan::make(action, &state.config, &state.observed, state.now);
    plan.refusals.extend(unset(&plan, &state.unset));
    if let Some(other) = foreign::at_work(state, state.now.stamp) {
        let text = other.text(state);
        plan.notes.insert(
            0,
            format!("{text}; two at once get in each other's way: better wait for what it does"),
        );
    }
    state.planned = state.now.wall;
    state.plan = Some(plan);
    open(state, Mode::Plan);
}

/// The secrets that commands of a plan want and that have no value: better said before the first step than in the middle of the run.
fn unset(plan: &Plan, unset: &[(SecretFrom, String)]) -> Vec<Refusal> {
    let commands = plan.steps.iter().flat_map(|s| &s.commands);
    let wanted: BTreeSet<&SecretFrom> = commands
        .filter_map(|c| Some(&c.command.secret.as_ref()?.from))
        .collect();
    let refusal = |(from, why): &(SecretFrom, String)| Refusal {
        text: format!("{why}, and a command of this plan hands its value to a node"),
        fix: Some(match from {
            SecretFrom::Variable(name) => {
                format!("export {name} and start bringup again, or take its name out of the configuration")
            }
            SecretFrom::File(path) => {
                format!(
                    "write the value into {path} as its only line and start bringup again, or take the file out of the configuration"
                )
            }
        }),
    };
    let unset = unset.iter().filter(|(from, _)| wanted.contains(from));
    unset.map(refusal).collect()
}

/// A test that runs is cancelled; else what one would send is shown.
fn bench(state: &mut State, effects: &mut Vec<Effect>) {
    if let Some(bench) = state.bench.as_mut().filter(|b| b.running()) {
        bench.cancelled = true;
        effects.push(Effect::CancelBench);
    } else {
        open(state, Mode::Test);
    }
}

fn start_test(state: &mut State, effects: &mut Vec<Effect>) {
    if let Some(why) = state.test_refusal() {
        notice(state, Source::Operator, why);
        return;
    }
    let profile = state.config.bench.clone();
    state.bench = Some(BenchView::new(profile.clone(), state.now.stamp));
    focus(state, Pane::Bench);
    show(state, Mode::Panes);
    effects.push(Effect::StartBench(profile));
}

fn back(state: &mut State, effects: &mut Vec<Effect>) {
    match state.screen.mode {
        Mode::Panes => state.screen.zoom = false,
        Mode::Plan => {
            state.plan = None;
            close(state);
        }
        Mode::Question => {
            if let Some(question) = state.questions.pop_front() {
                effects.push(Effect::Answer(question.id, Answer::No));
            }
            if state.questions.is_empty() {
                close(state);
            }
        }
        Mode::Test | Mode::Run | Mode::StopMenu | Mode::Commands | Mode::Help => close(state),
    }
}

/// Shows something over what is there, which comes back when it is closed. What was asked and has its answer does not.
fn open(state: &mut State, mode: Mode) {
    let screen = &mut state.screen;
    let comes_back = match screen.mode {
        Mode::Run | Mode::Plan | Mode::Test | Mode::Commands | Mode::Help => true,
        Mode::Panes | Mode::StopMenu | Mode::Question => false,
    };
    if comes_back {
        screen.beneath.push((screen.mode, screen.overlay_top));
    }
    // A plan or a test that is shown takes the place of another.
    let replaced = |was: Mode| was == mode || (acts(mode) && acts(was));
    screen.beneath.retain(|(was, _)| !replaced(*was));
    screen.mode = mode;
    screen.overlay_top = 0;
}

/// Whether what is shown waits for Enter.
fn acts(mode: Mode) -> bool {
    match mode {
        Mode::Plan | Mode::Test => true,
        Mode::Panes | Mode::Run | Mode::StopMenu | Mode::Commands | Mode::Help | Mode::Question => false,
    }
}

/// Closes what is shown: what was there before it comes back as it was.
fn close(state: &mut State) {
    (state.screen.mode, state.screen.overlay_top) = state.screen.beneath.pop().unwrap_or_default();
}

/// Shows something and forgets what was there: it is over.
pub(super) fn show(state: &mut State, mode: Mode) {
    state.screen.beneath.clear();
    state.screen.mode = mode;
    state.screen.overlay_top = 0;
}

fn toggle(state: &mut State, mode: Mode) {
    if state.screen.mode == mode {
        close(state);
    } else {
        open(state, mode);
    }
}

fn focus_by(state: &mut State, by: isize) {
    let panes: Vec<Pane> = state.panes().collect();
    let at = panes.iter().position(|p| *p == state.screen.focus).unwrap_or(0);
    let count = isize::try_from(panes.len()).unwrap_or(1).max(1);
    let next = (isize::try_from(at).unwrap_or(0) + by).rem_euclid(count);
    if let Some(pane) = usize::try_from(next).ok().and_then(|i| panes.get(i)) {
        focus(state, *pane);
    }
}

fn focus(state: &mut State, pane: Pane) {
    state.screen.focus = pane;
    state.screen.node = state.node_in_sight();
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
    let Some(log) = state.nodes.get(node.index()).map(|n| &n.log) else {
        return;
    };
    let (seq, dropped) = (log.seq, log.dropped);
    let held = state.screen.held.get(&node).copied().unwrap_or(seq);
    let next = match by {
        Scroll::Lines(n) | Scroll::Pages(n) => held.saturating_add_signed(i64::from(n)),
        Scroll::Top => dropped,
        Scroll::End => seq,
    };
    hold(state, node, next.clamp(dropped, seq), seq);
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

/// Copies what runs as it is from the operator's own shell, and nothing else.
fn copy(state: &mut State, effects: &mut Vec<Effect>) {
    let text = match state.screen.mode {
        Mode::Plan => state.plan.as_ref().map(|p| plan::script(p, &state.config)),
        Mode::Run => match run::cure(state) {
            Some(run::Cure::Line(line)) => Some(line),
            Some(run::Cure::Words) => {
                let said = "no command is known for this: the fix is text";
                notice(state, Source::Operator, said.to_owned());
                None
            }
            None => {
                notice(state, Source::Operator, "there is no command to copy here".to_owned());
                None
            }
        },
        Mode::Panes => state.cure().or_else(|| Some(super::tunnel_line(&state.config))),
        Mode::Test | Mode::StopMenu | Mode::Commands | Mode::Help | Mode::Question => {
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
