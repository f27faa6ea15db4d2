//! Signals that the terminal's program must not die of unprepared.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals listened for. SIGTSTP is left alone: it stops the process, and Ctrl-Z comes as a key.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    resumed: Signal,
}

/// What came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Caught {
    /// SIGINT from outside: the keyboard's Ctrl-C is a key.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGHUP: the terminal is gone.
    Hangup,
    /// SIGCONT: the process goes on after a stop.
    Resumed,
}

impl Signals {
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            resumed: signal(SignalKind::from_raw(signal_hook::consts::SIGCONT))?,
        })
    }

    /// Waits for the next one. Cancel-safe.
    pub(super) async fn next(&mut self) -> Caught {
        tokio::select! {
            _ = self.interrupt.recv() => Caught::Interrupt,
            _ = self.terminate.recv() => Caught::Terminate,
            _ = self.hangup.recv() => Caught::Hangup,
            _ = self.resumed.recv() => Caught::Resumed,
        }
    }
}
