//! Key chords to intents.
//!
//! Owns the one table of bindings; the help and the hints on the last line are made from it, so they cannot say anything else. Never reads a key and
//! knows no terminal library: `app` turns the terminal's events into [`Chord`]s. A passphrase that is typed goes past this room.
//!
//! Invariants: in one mode a chord means one thing; capital letters act on the cluster, small ones on the view.

mod bindings;
mod chord;

pub use bindings::{BINDINGS, Binding, Group, Press};
pub use chord::{Chord, Key};

use crate::domain::QuestionId;
use crate::domain::intent::{Intent, Mode};

/// What a chord means in a mode. `question` is the one in front; without one there is nothing to answer.
#[must_use]
pub fn intent(mode: Mode, chord: Chord, question: Option<QuestionId>) -> Option<Intent> {
    let here = BINDINGS.iter().filter(|b| b.modes.contains(&mode));
    let (_, press) = here.flat_map(|b| b.chords).find(|(bound, _)| *bound == chord)?;
    match press {
        Press::Intent(intent) => Some(intent.clone()),
        Press::Answer(answer) => question.map(|id| Intent::Answer(id, *answer)),
    }
}

/// The bindings that are worth a place on the last line in this mode, in the table's order.
#[must_use]
pub fn hints(mode: Mode) -> Vec<&'static Binding> {
    BINDINGS
        .iter()
        .filter(|b| b.modes.contains(&mode) && !b.hint.is_empty())
        .collect()
}

/// All bindings by group, in the table's order.
#[must_use]
pub fn help() -> Vec<(Group, Vec<&'static Binding>)> {
    let of = |group: Group| BINDINGS.iter().filter(move |b| b.group == group).collect();
    Group::ALL.map(|group| (group, of(group))).to_vec()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::domain::intent::{Action, Scroll};
    use crate::domain::question::Answer;

    const MODES: [Mode; 8] = [
        Mode::Panes,
        Mode::Plan,
        Mode::Test,
        Mode::Run,
        Mode::StopMenu,
        Mode::Commands,
        Mode::Help,
        Mode::Question,
    ];
    const ASKED: Option<QuestionId> = Some(QuestionId(7));

    fn bound(mode: Mode) -> Vec<(Chord, Intent)> {
        let here = BINDINGS.iter().filter(|b| b.modes.contains(&mode));
        here.flat_map(|b| b.chords)
            .filter_map(|(c, _)| Some((*c, intent(mode, *c, ASKED)?)))
            .collect()
    }

    /// A word for each kind of intent. A new variant does not compile until it has one; then [`every_intent_of_a_person_has_a_key`] wants a key for it.
    fn kind(intent: &Intent) -> &'static str {
        match intent {
            Intent::Plan(Action::Head) => "head",
            Intent::Plan(Action::Workers) => "workers",
            Intent::Plan(Action::Serve) => "serve",
            Intent::Plan(Action::Up) => "up",
            Intent::Plan(Action::StopServe) => "stop-serve",
            Intent::Plan(Action::StopAll) => "stop-all",
            Intent::StopMenu => "stop-menu",
            Intent::Confirm => "confirm",
            Intent::StopRun => "stop-run",
            Intent::Bench => "bench",
            Intent::Back => "back",
            Intent::NextPane => "next-pane",
            Intent::PreviousPane => "previous-pane",
            Intent::PaneNumber(_) => "pane-number",
            Intent::Scroll(Scroll::Lines(_)) => "lines",
            Intent::Scroll(Scroll::Pages(_)) => "pages",
            Intent::Scroll(Scroll::Top) => "top",
            Intent::Scroll(Scroll::End) => "end",
            Intent::Follow => "follow",
            Intent::OtherLog => "other-log",
            Intent::Zoom => "zoom",
            Intent::Steps => "steps",
            Intent::Commands => "commands",
            Intent::Help => "help",
            Intent::Copy => "copy",
            Intent::Reconnect => "reconnect",
            Intent::Answer(_, Answer::Yes) => "yes",
            Intent::Answer(_, Answer::No) => "no",
            Intent::Answer(_, Answer::Given) => "given",
            Intent::Quit => "quit",
        }
    }

    #[test]
    fn every_intent_of_a_person_has_a_key() {
        let reached: BTreeSet<_> = MODES
            .into_iter()
            .flat_map(bound)
            .map(|(_, intent)| kind(&intent))
            .collect();
        // A secret is given by typing it, which is app's own.
        let all = "head workers serve up stop-serve stop-all stop-menu stop-run confirm bench back next-pane previous-pane pane-number lines pages top end \
                   follow other-log zoom steps commands reconnect help copy yes no quit";
        assert_eq!(reached, all.split_whitespace().collect());
    }

    #[test]
    fn no_chord_means_two_things_in_one_mode() {
        for mode in MODES {
            let mut seen = BTreeSet::new();
            for (chord, _) in bound(mode) {
                assert!(seen.insert(chord), "{} in {mode:?}", chord.text());
            }
        }
    }

    #[test]
    fn capitals_act_on_the_cluster_and_small_letters_on_the_view() {
        let acts = |intent: &Intent| ["head", "workers", "serve", "up", "stop-menu", "bench"].contains(&kind(intent));
        for mode in MODES {
            for (chord, intent) in bound(mode) {
                let Key::Char(c) = chord.key else { continue };
                // `G` is the last line wherever text is paged.
                let capital = c.is_uppercase() && c != 'G';
                assert_eq!(acts(&intent), capital, "{} in {mode:?}", chord.text());
            }
        }
        let keys: Vec<_> = bound(Mode::Panes)
            .iter()
            .filter(|(_, i)| acts(i))
            .map(|(c, _)| c.text())
            .collect();
        assert_eq!(keys, ["H", "W", "S", "T", "U", "X"]);
    }

    #[test]
    fn every_mode_has_a_way_back_and_a_way_out() {
        for mode in MODES {
            assert_eq!(
                intent(mode, Chord::key(Key::Esc), ASKED),
                Some(Intent::Back),
                "{mode:?}"
            );
            assert_eq!(intent(mode, Chord::ctrl('c'), None), Some(Intent::Quit), "{mode:?}");
            assert!(
                hints(mode).iter().any(|b| b.keys.contains("Esc")) || mode == Mode::Panes,
                "{mode:?}"
            );
        }
        assert_eq!(intent(Mode::Question, Chord::char('q'), ASKED), None);
    }

    #[test]
    fn enter_runs_a_plan_and_nothing_else() {
        let enter = Chord::key(Key::Enter);
        let runs: Vec<Mode> = MODES
            .into_iter()
            .filter(|m| intent(*m, enter, ASKED).is_some())
            .collect();
        assert_eq!(runs, [Mode::Plan, Mode::Test]);
        assert_eq!(intent(Mode::Plan, enter, None), Some(Intent::Confirm));
    }

    #[test]
    fn an_answer_goes_to_the_question_in_front() {
        let yes = Chord::char('y');
        assert_eq!(
            intent(Mode::Question, yes, ASKED),
            Some(Intent::Answer(QuestionId(7), Answer::Yes))
        );
        assert_eq!(intent(Mode::Question, yes, None), None);
        assert_eq!(intent(Mode::Plan, yes, ASKED), Some(Intent::Copy));
    }

    #[test]
    fn digits_name_panes() {
        for n in 1..=9u8 {
            let chord = Chord::char(char::from(b'0' + n));
            assert_eq!(intent(Mode::Panes, chord, None), Some(Intent::PaneNumber(n)));
        }
        assert_eq!(intent(Mode::Panes, Chord::char('0'), None), None);
    }

    #[test]
    fn help_names_every_binding_once_and_its_keys_are_true() {
        let named: Vec<_> = help().into_iter().flat_map(|(_, bindings)| bindings).collect();
        assert_eq!(named.len(), BINDINGS.len());
        for binding in BINDINGS {
            let first = binding.chords.first().map(|(chord, _)| chord.text()).unwrap();
            assert!(binding.keys.contains(&first), "{} is shown as {}", first, binding.keys);
            assert!(
                !binding.help.is_empty() && !binding.modes.is_empty(),
                "{}",
                binding.keys
            );
        }
    }

    #[test]
    fn the_last_line_of_the_panes_is_the_story() {
        let line: Vec<_> = hints(Mode::Panes)
            .iter()
            .map(|b| format!("{} {}", b.keys, b.hint))
            .collect();
        let expected = "H head|W workers|S serve|T test|U all|X stop|Tab pane|f follow|z zoom|r run|c commands|y copy|? help|q quit";
        assert_eq!(line.join("|"), expected);
    }
}
