//! The terminal: keys in, frames out.
//!
//! Owns the terminal's modes and their way back, the events of the keyboard, the field that a secret is typed into, the pace of frames, the clipboard
//! and the bell. Knows nothing of the cluster: it turns keys into intents, hands them to the console, and draws the state.
//!
//! Invariants: the terminal is as it was before on every way out (return, error, panic in any thread, SIGTERM, SIGINT, SIGHUP, Ctrl-Z); a write that
//! fails ends the console; nothing is drawn when nothing visible changed; a secret stays in its field, which is wiped, and goes to the waiting end
//! only; pasted text is never taken for keys.

mod asked;
mod frame;
mod keys;
mod look;
mod picture;
mod run;
mod screen;
mod scroll;
mod secret;
mod signals;
mod terminal;

pub use look::look;
pub use picture::write_pictures;
pub use run::{Ended, How, run_console};
pub use terminal::present;
