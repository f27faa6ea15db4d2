//! A question of an actor: a host key to trust, a passphrase, what a login wants to know.

use ratatui::layout::Rect;
use ratatui::text::Span;

use crate::domain::question::{Ask, Question};
use crate::view::Scene;
use crate::view::canvas::Canvas;
use crate::view::regions::Regions;
use crate::view::widgets::row::Row;
use crate::view::words;

use super::{Line, boxed, broken, fits, line, small, text_width};

/// Dots shown of a secret, and characters of what may be seen: a longer one shows no more.
const DOTS: usize = 32;

/// Widest text of a question.
const WIDEST: u16 = 96;

pub(super) fn draw(scene: &Scene<'_>, canvas: &mut Canvas<'_>, area: Rect, regions: &mut Regions) {
    let Some(question) = scene.state.questions.front() else {
        return;
    };
    let look = scene.look;
    let mut title = Row::new();
    let name = match &question.ask {
        Ask::HostKey { .. } => "unknown host key",
        Ask::Passphrase { .. } => "passphrase",
        Ask::Login { .. } => "login",
    };
    title.put(0, name, look.focus());
    let more = scene.state.questions.len() - 1;
    if more > 0 {
        title.put(1, format!("{more} more wait"), look.warn()).right();
    }
    let lines = text(scene, question, text_width(area).min(WIDEST));
    if fits(area, &lines) {
        boxed(scene, canvas, area, title, &lines, regions);
    } else {
        let (title, lines) = short(scene, question, area.width);
        small::draw(scene, canvas, area, &title, &lines, regions);
    }
}

/// The question in as few words as it takes: what is asked, then what the answer rests on, then the rest. The keys stand on the last line.
fn short(scene: &Scene<'_>, question: &Question, width: u16) -> (String, Vec<Line>) {
    let look = scene.look;
    let who = words::source(scene.state, question.from);
    match &question.ask {
        Ask::HostKey {
            host,
            algorithm,
            fingerprint,
            file,
        } => {
            let mut lines: Vec<Line> = small::plain(fingerprint, width, look.strong());
            for text in [format!("{host}, {algorithm}"), format!("written to {file}")] {
                lines.extend(small::plain(&text, width, look.text()));
            }
            (format!("trust {who}'s key?"), lines)
        }
        Ask::Passphrase { key, again } => {
            let mut lines = vec![field(scene, "")];
            lines.extend(refused(scene, *again));
            lines.extend(small::plain(&format!("of {key}, for {who}"), width, look.text()));
            ("passphrase?".to_owned(), lines)
        }
        Ask::Login {
            account,
            said,
            prompt,
            echo: _,
            number,
            of,
            again,
        } => {
            let mut lines = vec![field(scene, "")];
            lines.extend(refused(scene, *again));
            let text = format!("{account}{}", place(*number, *of));
            lines.extend(small::plain(&text, width, look.text()));
            lines.extend(small::plain(said, width, look.dim()));
            (prompt.clone(), lines)
        }
    }
}

fn text(scene: &Scene<'_>, question: &Question, width: u16) -> Vec<Line> {
    let look = scene.look;
    let who = words::source(scene.state, question.from);
    let mut lines = vec![Line::new()];
    match &question.ask {
        Ask::HostKey {
            host,
            algorithm,
            fingerprint,
            file,
        } => {
            let text = format!("{who} ({host}) shows a key that is in no known_hosts file:");
            lines.extend(broken(&text, 0, width, look.text()));
            lines.push(Line::new());
            lines.push(line(format!("  {algorithm}"), look.text()));
            lines.push(line(format!("  {fingerprint}"), look.strong()));
            lines.push(Line::new());
            lines.extend(broken(
                "Compare it with what that machine itself prints:",
                0,
                width,
                look.text(),
            ));
            lines.push(line(format!("  {}", print_fingerprint(algorithm)), look.dim()));
            lines.push(Line::new());
            lines.push(choice(scene, "y", &format!("trust it and write it to {file}")));
            lines.push(choice(scene, "n", "refuse; nothing is sent to that machine"));
        }
        Ask::Passphrase { key, again } => {
            lines.extend(refused(scene, *again));
            let text = format!("The key {key} is encrypted; {who} needs it.");
            lines.extend(broken(&text, 0, width, look.text()));
            lines.push(Line::new());
            lines.push(field(scene, "passphrase"));
            lines.push(Line::new());
            lines.push(choice(
                scene,
                "Enter",
                "use it; it stays in this process and is wiped after use",
            ));
            lines.push(choice(scene, "Esc", "go on without this key"));
        }
        Ask::Login {
            account,
            said,
            prompt,
            echo: _,
            number,
            of,
            again,
        } => {
            lines.extend(refused(scene, *again));
            let text = format!("{account} asks{}:", place(*number, *of));
            lines.extend(broken(&text, 0, width, look.text()));
            lines.push(Line::new());
            if !said.is_empty() {
                lines.extend(broken(said, 2, width, look.dim()));
            }
            lines.extend(broken(prompt, 2, width, look.strong()));
            lines.push(field(scene, ""));
            lines.push(Line::new());
            lines.push(choice(
                scene,
                "Enter",
                "answer; it goes to that machine and nowhere else",
            ));
            lines.push(choice(scene, "Esc", "leave this login"));
        }
    }
    lines.push(Line::new());
    lines
}

/// That the answer before was a wrong one.
fn refused(scene: &Scene<'_>, again: bool) -> Option<Line> {
    again.then(|| line("✗ That was not it.", scene.look.bad()))
}

/// Which of the questions of one login it is, where there are several.
fn place(number: usize, of: usize) -> String {
    match of {
        0 | 1 => String::new(),
        _ => format!(" ({number} of {of})"),
    }
}

/// The field that is typed into: dots, or the text where it may be seen.
fn field(scene: &Scene<'_>, name: &str) -> Line {
    let look = scene.look;
    let text = match scene.shown {
        // Its end is where the typing is.
        Some(shown) => shown.chars().skip(scene.typed.saturating_sub(DOTS)).collect(),
        None => "●".repeat(scene.typed.min(DOTS)),
    };
    let label = if name.is_empty() {
        "  > ".to_owned()
    } else {
        format!("  {name}  ")
    };
    vec![
        Span::styled(label, look.label()),
        Span::styled(text, look.strong()),
        Span::styled("▏", look.key()),
    ]
}

/// The command that prints a host key's fingerprint on the host itself, by OpenSSH's usual file names.
fn print_fingerprint(algorithm: &str) -> String {
    let kind = match algorithm {
        "ssh-ed25519" => "ed25519",
        a if a.starts_with("ecdsa-") => "ecdsa",
        a if a.contains("rsa") => "rsa",
        _ => "*",
    };
    format!("ssh-keygen -lf /etc/ssh/ssh_host_{kind}_key.pub")
}

fn choice(scene: &Scene<'_>, key: &str, text: &str) -> Line {
    vec![
        Span::styled(format!("  {key:<7}"), scene.look.key()),
        Span::styled(text.to_owned(), scene.look.text()),
    ]
}
