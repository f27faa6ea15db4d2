//! The terminal's modes: taking it over, and giving it back on every way out.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::cursor::{Hide, Show};
use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::style::{Attribute, ResetColor, SetAttribute};
use crossterm::terminal::{
    EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use crossterm::{execute, queue};

/// Whether the terminal is ours at the moment.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Whether a thread of this program has panicked since the terminal was taken.
static PANICKED: AtomicBool = AtomicBool::new(false);

/// Whether a person can see the screen and type.
#[must_use]
pub fn present() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// The terminal as long as it is ours.
pub(super) struct Guard(());

impl Guard {
    /// Takes the terminal over. From here on a panic in any thread gives it back before it prints.
    pub(super) fn take() -> io::Result<Self> {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            PANICKED.store(true, Ordering::SeqCst);
            // Nothing more can be done about a terminal that refuses.
            let _refused = give_back();
            before(info);
        }));
        let guard = Self(());
        take_again()?;
        Ok(guard)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Nothing more can be done about a terminal that refuses.
        let _refused = give_back();
    }
}

/// Takes the terminal over, also when another program changed its modes meanwhile.
pub(super) fn take_again() -> io::Result<()> {
    // Raw mode that is already on would not be set again.
    disable_raw_mode()?;
    enable_raw_mode()?;
    TAKEN.store(true, Ordering::SeqCst);
    execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste, Hide)
}

/// Gives the terminal back as it was. A second call does nothing.
pub(super) fn give_back() -> io::Result<()> {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return Ok(());
    }
    let mut out = io::stdout();
    let written = queue!(
        out,
        EndSynchronizedUpdate,
        ResetColor,
        SetAttribute(Attribute::Reset),
        DisableBracketedPaste,
        LeaveAlternateScreen,
        Show
    )
    .and_then(|()| out.flush());
    // The modes come back even when the text could not be written.
    disable_raw_mode()?;
    written
}

/// Whether the terminal may be drawn on.
pub(super) fn taken() -> bool {
    TAKEN.load(Ordering::SeqCst)
}

/// Whether a thread has panicked: what it did is not done any more.
pub(super) fn panicked() -> bool {
    PANICKED.load(Ordering::SeqCst)
}

/// Gives the terminal back, stops the process as Ctrl-Z does, and takes the terminal over again when it goes on.
///
/// Where no shell could wake it again, the system ignores the signal, and this returns at once.
pub(super) fn suspend() -> io::Result<()> {
    give_back()?;
    signal_hook::low_level::raise(signal_hook::consts::SIGTSTP)?;
    take_again()
}
