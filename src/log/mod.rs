//! From bytes of a log to lines that are safe to draw.
//!
//! Owns the decoder (split UTF-8, carriage returns, escape sequences as spans of our own), progress bars as one line, the ring bounded in bytes,
//! the masking of secrets, and the window of lines that a frame is drawn from. Never does IO and never knows what a line means: that is the engine's
//! grammar.
//!
//! Invariants: no control character, no escape sequence and no invisible or direction-changing character survives decoding; how the input was cut
//! into chunks never changes the result; every buffer has a bound.

#![warn(clippy::indexing_slicing, clippy::wildcard_enum_match_arm)]

mod bar;
mod decoder;
mod line;
mod mask;
mod plain;
mod ring;
mod row;
mod sgr;

pub use bar::{Bar, prefix_len};
pub use decoder::{Decoder, LineEdit};
pub use line::{Color, Line, Span, Stream, Style};
pub use mask::Masker;
pub use plain::plain;
pub use ring::{LogWindows, Ring, Window};
