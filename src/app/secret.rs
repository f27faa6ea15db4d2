//! The field that a secret is typed into.

use secrecy::SecretString;
use zeroize::Zeroize;

use crate::domain::QuestionId;
use crate::input::{Chord, Key};

/// Longest secret, in bytes. The room is taken at once, so that no part of a secret stays behind in memory that grew too small.
const MOST: usize = 1024;

/// Text that is wiped when it has been used.
pub(super) struct SecretField {
    text: String,
    /// The question that it answers.
    question: Option<QuestionId>,
}

/// What a key did to the field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Typed {
    /// The text changed.
    Changed,
    /// The text is the answer.
    Answer,
    /// The key is no text; it means what it means elsewhere.
    Other,
}

impl SecretField {
    pub(super) fn new() -> Self {
        Self {
            text: String::with_capacity(MOST),
            question: None,
        }
    }

    /// The field belongs to this question, or to none. Text for another one is wiped.
    pub(super) fn belongs_to(&mut self, question: Option<QuestionId>) {
        if self.question != question {
            self.question = question;
            self.wipe();
        }
    }

    /// Characters typed so far.
    pub(super) fn typed(&self) -> usize {
        self.text.chars().count()
    }

    /// The text itself, for a question that lets it be seen.
    pub(super) fn shown(&self) -> &str {
        &self.text
    }

    /// Takes a key.
    pub(super) fn key(&mut self, chord: Chord) -> Typed {
        match chord {
            Chord { key: Key::Enter, .. } => Typed::Answer,
            Chord {
                key: Key::Char('u'),
                ctrl: true,
                ..
            } => {
                self.wipe();
                Typed::Changed
            }
            Chord {
                key: Key::Char(c),
                ctrl: false,
                alt: false,
            } => {
                self.add(c);
                Typed::Changed
            }
            Chord {
                key: Key::Backspace, ..
            } => {
                self.text.pop();
                Typed::Changed
            }
            _ => Typed::Other,
        }
    }

    /// Takes pasted text, up to the end of its line. Terminals hand a line's end over as a carriage return alone.
    pub(super) fn paste(&mut self, text: &str) {
        for c in text.chars().take_while(|c| !matches!(c, '\n' | '\r')) {
            self.add(c);
        }
    }

    /// The secret; the field is empty afterwards.
    pub(super) fn take(&mut self) -> SecretString {
        let secret = SecretString::from(self.text.as_str());
        self.wipe();
        secret
    }

    fn add(&mut self, c: char) {
        if self.text.len() + c.len_utf8() <= MOST {
            self.text.push(c);
        }
    }

    /// Overwrites the text; its room stays.
    fn wipe(&mut self) {
        self.text.zeroize();
        self.text.reserve(MOST);
    }
}

impl Drop for SecretField {
    fn drop(&mut self) {
        self.text.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    fn typed(field: &mut SecretField, text: &str) {
        for c in text.chars() {
            assert_eq!(field.key(Chord::char(c)), Typed::Changed);
        }
    }

    #[test]
    fn what_is_typed_is_the_answer_and_is_gone_afterwards() {
        let mut field = SecretField::new();
        field.belongs_to(Some(QuestionId(1)));
        typed(&mut field, "hé lux");
        field.key(Chord::key(Key::Backspace));
        assert_eq!(field.typed(), 5);
        assert_eq!(field.key(Chord::key(Key::Enter)), Typed::Answer);
        assert_eq!(field.take().expose_secret(), "hé lu");
        assert_eq!(field.typed(), 0);
    }

    #[test]
    fn text_for_one_question_never_answers_another() {
        let mut field = SecretField::new();
        field.belongs_to(Some(QuestionId(1)));
        typed(&mut field, "abc");
        field.belongs_to(Some(QuestionId(1)));
        assert_eq!(field.typed(), 3);
        field.belongs_to(Some(QuestionId(2)));
        assert_eq!(field.typed(), 0);
    }

    #[test]
    fn the_field_never_grows() {
        let mut field = SecretField::new();
        let room = field.text.capacity();
        field.paste(&"x".repeat(5000));
        assert_eq!((field.typed(), field.text.capacity()), (MOST, room));
        field.key(Chord::ctrl('u'));
        for text in ["one\ntwo", "one\r", "one\r\n", "one\rtwo\r", "one"] {
            field.paste(text);
            assert_eq!(field.take().expose_secret(), "one", "{text:?}");
        }
    }

    #[test]
    fn keys_that_are_no_text_are_left_to_others() {
        let mut field = SecretField::new();
        for chord in [Chord::ctrl('c'), Chord::key(Key::Esc), Chord::key(Key::Up)] {
            assert_eq!(field.key(chord), Typed::Other);
        }
    }
}
