//! What stands over the panes on the smallest screens: the question and its keys are whole, and a run says which step and why.

use std::fmt::Write as _;

use bringup::domain::command::Exit;
use bringup::domain::intent::{Action, Mode, Pane};
use bringup::domain::question::{Ask, Question};
use bringup::domain::{HopId, QuestionId, Source};
use bringup::log::LogWindows;
use bringup::model::{State, tunnel_line};

use crate::build::*;
use crate::runs::*;
use crate::shot::shot;

const SIZES: [(u16, u16); 5] = [(20, 5), (30, 8), (40, 12), (60, 10), (60, 20)];
const FINGERPRINT: &str = "SHA256:uNiVztksCsDhcc0u9e8BxrQXVUpKZIDTMczCvj3tD2s";

fn in_mode(mut state: State, mode: Mode) -> State {
    state.screen.mode = mode;
    state
}

fn asked(ask: Ask) -> State {
    let mut state = in_mode(empty(example()), Mode::Question);
    state.questions.push_back(Question {
        id: QuestionId(1),
        from: Source::Hop(HopId(0)),
        ask,
    });
    state
}

fn run(exit: Exit, said: &[&str]) -> State {
    let mut state = in_mode(known(), Mode::Run);
    run_until(&mut state, exit, said);
    state
}

fn states() -> Vec<(&'static str, State, &'static [&'static str])> {
    let host_key = Ask::HostKey {
        host: "10.1.230.180:22".into(),
        algorithm: "ssh-ed25519".into(),
        fingerprint: FINGERPRINT.into(),
        file: "~/.ssh/known_hosts".into(),
    };
    let passphrase = Ask::Passphrase {
        key: "~/.ssh/id_ed25519".into(),
        again: true,
    };
    let login = Ask::Login {
        account: "gate (aurora@10.1.230.180:22)".into(),
        said: "Approve the request on your phone, or type the code it shows.".into(),
        prompt: "Verification code:".into(),
        echo: false,
        number: 2,
        of: 2,
        again: false,
    };
    let mut stop_run = run(Exit::Code(0), &[]);
    stop_run.screen.mode = Mode::StopMenu;
    let refused = {
        let mut state = known();
        state.observed.nodes[1].link = Default::default();
        in_mode(planned(state, Action::Workers), Mode::Plan)
    };
    vec![
        (
            "host key",
            asked(host_key),
            &[FINGERPRINT, "gate", "key", "y trust", "n refuse"],
        ),
        (
            "passphrase",
            asked(passphrase),
            &["passphrase", "●●●●●●●▏", "Enter use it"],
        ),
        (
            "login",
            asked(login),
            &["Verificationcode:", "●●●●●●●▏", "Enter use it"],
        ),
        (
            "stop menu",
            in_mode(ready(example()), Mode::StopMenu),
            &["stopwhat?", "server only", "everything", "Esc", "1 re"],
        ),
        (
            "stop menu in a run",
            stop_run,
            &["stopwhat?", "the run", "server only", "everything", "Esc"],
        ),
        (
            "plan",
            in_mode(planned(known(), Action::Up), Mode::Plan),
            &["bringeverythingup", "Enter run", "Esc"],
        ),
        ("plan refused", refused, &["jointheworkers", "✗", "Esc"]),
        ("run", run(Exit::Code(0), &[]), &["start the head", "X stop"]),
        ("run failed", run(Exit::Code(125), &["no gpu"]), &["failed", "X stop"]),
        ("help", in_mode(idle(example()), Mode::Help), &["keys", "Esc"]),
    ]
}

/// What is on a screen without its frames and blanks, so that a text that is broken over lines reads as one.
fn joined(text: &str) -> String {
    let frame = |c: &char| !c.is_whitespace() && !('─'..='╿').contains(c);
    text.chars().filter(frame).collect()
}

#[test]
fn the_line_that_reaches_the_server_is_whole_where_its_pane_has_the_rows() {
    let mut state = ready(example());
    state.screen.focus = Pane::Serving;
    state.screen.zoom = true;
    let line = tunnel_line(&state.config);
    for size in [(40, 22), (60, 20), (80, 24)] {
        let text = shot(&state, &LogWindows::default(), size).text();
        assert!(joined(&text).contains(&joined(&line)), "{line} at {size:?}\n{text}");
    }
}

#[test]
fn only_keys_that_do_something_are_hinted_and_the_stop_menu_names_its_own() {
    let keys = |state: &State, size| {
        let text = shot(state, &LogWindows::default(), size).text();
        text.lines().last().unwrap_or_default().to_owned()
    };
    let help = in_mode(idle(example()), Mode::Help);
    assert!(!keys(&help, (60, 20)).contains(" r run"));
    let mut after = run(Exit::Code(0), &[]);
    after.screen.mode = Mode::Help;
    assert!(keys(&after, (60, 20)).contains(" r run"));
    after.screen.mode = Mode::StopMenu;
    for state in [after, in_mode(ready(example()), Mode::StopMenu)] {
        let line = keys(&state, (40, 12));
        assert!(line.contains("s the server") && line.contains("a all"), "{line}");
    }
}

#[test]
fn a_question_and_its_keys_are_whole_at_every_size() {
    let mut all = String::new();
    for (name, state, wanted) in states() {
        for size in SIZES {
            let text = shot(&state, &LogWindows::default(), size).text();
            for part in wanted {
                assert!(
                    joined(&text).contains(&joined(part)),
                    "{part} of {name} at {size:?}\n{text}"
                );
            }
            if size.1 < 13 {
                let _ok = writeln!(all, "{name} {}x{}\n{text}\n", size.0, size.1);
            }
        }
    }
    insta::assert_snapshot!("over_small", all);
}
