//! The program in a pseudo-terminal, on its own demo cluster: whatever ends it or stops it, the terminal is whole afterwards.

#![cfg(unix)]
#![expect(clippy::expect_used, reason = "a test that cannot go on says so")]

#[path = "tty/asking.rs"]
mod asking;
#[path = "tty/term.rs"]
mod term;

use std::path::Path;
use std::process::{Command, Stdio};

use asking::Asking;
use russh::keys::PrivateKey;
use russh::keys::ssh_key::LineEnding;
use term::Term;

const PROGRAM: &str = env!("CARGO_BIN_EXE_bringup");
const SIZE: (u16, u16) = (120, 40);

/// The console on its demo cluster.
fn demo() -> Term {
    Term::start(&[PROGRAM, "demo"], &[], SIZE)
}

/// Waits until the console is on the screen.
fn up(term: &Term) {
    term.wait("the console", |s| {
        s.alternate_screen() && s.contents().contains("spark-2") && s.contents().contains("q quit")
    });
}

#[test]
fn it_starts_shows_its_keys_and_quits() {
    let mut term = demo();
    up(&term);
    assert!(term.screen(|s| s.hide_cursor() && s.bracketed_paste()));
    term.send("?");
    term.wait("the help", |s| s.contents().contains("Act on the cluster"));
    term.send("\u{1b}");
    term.wait("the panes", |s| !s.contents().contains("Act on the cluster"));
    term.send("q");
    assert_eq!(term.end(), 0);
    term.assert_whole();
}

#[test]
fn ctrl_c_leaves_too() {
    let mut term = demo();
    up(&term);
    term.send("\u{3}");
    assert_eq!(term.end(), 0);
    term.assert_whole();
}

#[test]
fn after_a_panic_the_terminal_is_whole_and_shows_it() {
    let mut term = Term::start(&[PROGRAM, "demo"], &[("BRINGUP_PANIC", "draw")], SIZE);
    assert_ne!(term.end(), 0);
    term.wait("the panic's message", |s| s.contents().contains("on purpose"));
    term.assert_whole();
}

#[test]
fn signals_end_it_with_their_codes() {
    for (signal, code) in [("TERM", 143), ("INT", 130), ("HUP", 143)] {
        let mut term = demo();
        up(&term);
        term.signal(signal);
        assert_eq!(term.end(), code, "{signal}");
        term.wait("what became of the demo cluster", |s| {
            s.contents().contains("the demo cluster ended with this console")
        });
        assert!(term.screen(|s| !s.contents().contains("left running")), "{signal}");
        term.assert_whole();
    }
}

#[test]
fn ctrl_z_gives_the_terminal_to_the_shell_and_fg_brings_all_of_it_back() {
    let mut term = Term::start(&["sh", "-i"], &[], SIZE);
    term.wait("the shell", |s| s.contents().contains("ready> "));
    let before = term.modes();
    term.send(&format!("'{PROGRAM}' demo\n"));
    up(&term);
    term.send("\u{1a}");
    term.wait("the shell again", |s| {
        !s.alternate_screen() && !s.hide_cursor() && s.contents().matches("ready> ").count() == 2
    });
    assert_eq!(term.modes(), before);
    term.send("fg\n");
    up(&term);
    term.send("q");
    term.wait("the shell at last", |s| {
        !s.alternate_screen() && s.contents().matches("ready> ").count() >= 3
    });
    term.send("exit\n");
    assert_eq!(term.end(), 0);
    term.assert_whole();
}

#[test]
fn it_draws_anew_at_every_size() {
    let mut term = demo();
    up(&term);
    for (width, height) in [(80, 24), (1, 1), (30, 6), (200, 50)] {
        term.resize((width, height));
        if width > 60 {
            term.wait("the keys on the last line", |s| {
                let last = s.rows(0, width).nth(usize::from(height) - 1).unwrap_or_default();
                last.contains("H head") && last.contains("q quit")
            });
        }
    }
    term.send("q");
    assert_eq!(term.end(), 0);
    term.assert_whole();
}

#[test]
fn keys_that_come_faster_than_frames_all_count() {
    let mut term = Term::start(&[PROGRAM, "demo"], &[], (80, 24));
    up(&term);
    term.send("?");
    term.wait("the help", |s| s.contents().contains("lines 1-"));
    term.send("jjjjj");
    term.wait("the sixth line", |s| s.contents().contains("lines 6-"));
    term.send("kk");
    term.wait("the fourth line", |s| s.contents().contains("lines 4-"));
    term.send("q");
    assert_eq!(term.end(), 0);
}

#[test]
fn pasted_text_is_not_taken_for_keys() {
    let mut term = demo();
    up(&term);
    term.send("\u{1b}[200~U\rq\u{1b}[201~");
    term.send("?");
    term.wait("the help", |s| s.contents().contains("Act on the cluster"));
    assert!(!term.screen(|s| s.contents().contains("plan: bring everything up")));
    term.send("q");
    assert_eq!(term.end(), 0);
}

#[test]
fn the_question_before_a_plan_can_be_interrupted() {
    let (_cluster, config) = cluster();
    let mut term = Term::start(&[PROGRAM, "--config", &config, "up"], &[], SIZE);
    term.wait("the question", |s| s.contents().contains("Run this plan? [y/N]"));
    term.send("\u{3}");
    assert_eq!(term.end(), 130);
}

/// A demo cluster, and the path of the config for it.
fn cluster() -> (Term, String) {
    let cluster = Term::start(&[PROGRAM, "demo", "--serve-only"], &[], (200, 10));
    cluster.wait("the path of a config", |s| s.contents().contains(".toml"));
    let contents = cluster.screen(|s| s.contents());
    let config = contents.lines().map(str::trim).find(|l| l.ends_with(".toml"));
    (cluster, config.expect("a path").to_owned())
}

#[test]
fn a_passphrase_is_typed_as_dots_and_asked_again_when_it_is_wrong() {
    let (_cluster, config) = cluster();
    let key = Path::new(&config).with_file_name("id_ed25519");
    let open = PrivateKey::read_openssh_file(&key).expect("the demo's key");
    let locked = open
        .encrypt(&mut russh::keys::key::safe_rng(), "b\u{fc}rgin q")
        .expect("a passphrase");
    locked
        .write_openssh_file(&key, LineEnding::LF)
        .expect("the key is written");
    let mut term = Term::start(&[PROGRAM, "--config", &config], &[], SIZE);
    term.wait("the question", |s| {
        s.contents().contains("id_ed25519 is encrypted") && takes_answers(s)
    });
    // Letters that are keys elsewhere are text here.
    term.send("qUx");
    term.wait("three dots", |s| {
        s.contents().contains("●●●▏") && !s.contents().contains("●●●●")
    });
    term.send("\u{7f}");
    term.wait("two dots", |s| {
        s.contents().contains("●●▏") && !s.contents().contains("●●●")
    });
    assert!(!term.screen(|s| s.contents().contains("qU")));
    term.send("\r");
    term.wait("another try", |s| {
        s.contents().contains("That was not it") && takes_answers(s)
    });
    term.send("rubbish");
    term.wait("seven dots", |s| s.contents().contains("●●●●●●●▏"));
    term.send("\u{15}");
    term.wait("an empty field", |s| !s.contents().contains("●▏"));
    // A line's end that was copied too comes as a terminal sends it.
    term.send("\u{1b}[200~b\u{fc}rgin q\r\u{1b}[201~");
    term.wait("eight dots", |s| s.contents().contains("●●●●●●●●▏"));
    term.send("\r");
    term.wait("the nodes", |s| {
        !s.contents().contains("is encrypted") && s.contents().contains("ssh ✓")
    });
    term.send("q");
    assert_eq!(term.end(), 0);
    term.assert_whole();
}

/// Whether the keys that answer the question on the screen count already: the last line names them.
fn takes_answers(screen: &vt100::Screen) -> bool {
    screen.contents().contains("Enter use it")
}

#[test]
fn what_a_login_asks_is_answered_on_the_screen() {
    let (_cluster, config) = cluster();
    let gate = Asking::start().expect("a server");
    at_the_gate(&config, &gate);
    let mut term = Term::start(&[PROGRAM, "--config", &config], &[], SIZE);
    term.wait("the first question", |s| {
        s.contents().contains("Your desk:") && takes_answers(s)
    });
    assert!(term.screen(|s| s.contents().contains("The gate") && s.contents().contains("(1 of 2)")));
    term.send("north 7");
    term.wait("what was typed", |s| s.contents().contains("> north 7▏"));
    term.send("\r");
    term.wait("the second question", |s| {
        s.contents().contains("Code:") && s.contents().contains("(2 of 2)") && takes_answers(s)
    });
    assert!(!term.screen(|s| s.contents().contains("north 7")));
    term.send("271828");
    term.wait("dots", |s| s.contents().contains("> ●●●●●●▏"));
    assert!(!term.screen(|s| s.contents().contains("271828")));
    term.send("\r");
    term.wait("another try", |s| {
        s.contents().contains("That was not it") && s.contents().contains("Your desk:") && takes_answers(s)
    });
    term.send("north 7\r");
    term.wait("the second question", |s| {
        s.contents().contains("(2 of 2)") && takes_answers(s)
    });
    term.send("314159\r");
    // Beyond the gate there is nothing: the nodes say so, and that is further than the login.
    term.wait("the way beyond the gate", |s| {
        !s.contents().contains("asks (") && s.contents().contains("via gate")
    });
    term.send("q");
    assert_eq!(term.end(), 0);
    term.assert_whole();
}

/// Puts a server in the place of a config's jump host, its host key on file.
fn at_the_gate(config: &str, gate: &Asking) {
    let folder = Path::new(config).parent().expect("its folder");
    std::fs::write(folder.join("known_hosts"), &gate.known).expect("the host key is written");
    let text = std::fs::read_to_string(config).expect("the config");
    let port = text
        .lines()
        .find(|l| l.starts_with("port = "))
        .expect("the jump host's port");
    let text = text.replacen(port, &format!("port = {}", gate.port), 1);
    std::fs::write(config, text).expect("the config is written");
}

#[test]
fn without_a_terminal_it_says_what_works_there() {
    let out = Command::new(PROGRAM)
        .arg("demo")
        .stdin(Stdio::null())
        .output()
        .expect("the program starts");
    assert_eq!(out.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&out.stderr).contains("needs a terminal"),
        "{out:?}"
    );
    assert!(out.stdout.is_empty(), "{out:?}");
}
