//! The terminal library's keys as chords of our own.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::input::{Chord, Key};

/// The chord of a key that went down or repeats; `None` for a release and for keys that mean nothing here.
pub(super) fn chord(event: KeyEvent) -> Option<Chord> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    let ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
    let key = match event.code {
        // Ctrl with a letter comes in either case.
        KeyCode::Char(c) if ctrl => Key::Char(c.to_ascii_lowercase()),
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Esc,
        KeyCode::Tab if event.modifiers.contains(KeyModifiers::SHIFT) => Key::BackTab,
        KeyCode::Tab => Key::Tab,
        KeyCode::BackTab => Key::BackTab,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::F(n) => Key::F(n),
        _ => return None,
    };
    Some(Chord {
        key,
        ctrl,
        alt: event.modifiers.contains(KeyModifiers::ALT),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(code: KeyCode, modifiers: KeyModifiers) -> Option<String> {
        chord(KeyEvent::new(code, modifiers)).map(Chord::text)
    }

    #[test]
    fn keys_become_chords() {
        let (none, ctrl, shift) = (KeyModifiers::NONE, KeyModifiers::CONTROL, KeyModifiers::SHIFT);
        let cases = [
            (KeyCode::Char('H'), shift, Some("H")),
            (KeyCode::Char('j'), none, Some("j")),
            (KeyCode::Char('C'), ctrl, Some("Ctrl-C")),
            (KeyCode::Char('c'), ctrl, Some("Ctrl-C")),
            (KeyCode::BackTab, shift, Some("Shift-Tab")),
            (KeyCode::Tab, shift, Some("Shift-Tab")),
            (KeyCode::PageDown, none, Some("PgDn")),
            (KeyCode::CapsLock, none, None),
        ];
        for (code, modifiers, text) in cases {
            assert_eq!(of(code, modifiers).as_deref(), text, "{code:?}");
        }
    }

    #[test]
    fn a_key_that_goes_up_is_no_chord() {
        let mut event = KeyEvent::new(KeyCode::Char('U'), KeyModifiers::NONE);
        event.kind = KeyEventKind::Release;
        assert_eq!(chord(event), None);
    }
}
