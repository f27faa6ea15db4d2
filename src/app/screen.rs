//! Frames: only what changed is written, in one piece.

use std::io::{self, Write};

use crossterm::queue;
use crossterm::terminal::{BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate};
use ratatui::backend::{Backend, CrosstermBackend};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::terminal;

/// The screen as it is and as it will be.
pub(super) struct Screen {
    shown: Buffer,
    next: Buffer,
    /// Whether what is on the screen is not known: all of it is written.
    unknown: bool,
    /// A frame on its way. It is a plain buffer, so that a frame that is never finished never reaches the terminal.
    out: Vec<u8>,
}

impl Screen {
    /// A screen of the terminal's size.
    pub(super) fn new() -> io::Result<Self> {
        let mut screen = Self {
            shown: Buffer::empty(Rect::ZERO),
            next: Buffer::empty(Rect::ZERO),
            unknown: true,
            out: Vec::new(),
        };
        screen.measure()?;
        Ok(screen)
    }

    /// Asks the terminal for its size; everything is drawn anew.
    pub(super) fn measure(&mut self) -> io::Result<()> {
        let (width, height) = crossterm::terminal::size()?;
        self.resize(width, height);
        Ok(())
    }

    /// The terminal has this size now; everything is drawn anew.
    pub(super) fn resize(&mut self, width: u16, height: u16) {
        let area = Rect::new(0, 0, width, height);
        self.shown = Buffer::empty(area);
        self.next = Buffer::empty(area);
        self.unknown = true;
    }

    /// The next frame, to draw into.
    pub(super) fn next(&mut self) -> &mut Buffer {
        &mut self.next
    }

    /// Writes what the next frame changes.
    pub(super) fn show(&mut self) -> io::Result<()> {
        if !terminal::taken() {
            return Ok(());
        }
        let changes = self.shown.diff(&self.next);
        if changes.is_empty() && !self.unknown {
            return Ok(());
        }
        self.out.clear();
        let mut backend = CrosstermBackend::new(&mut self.out);
        queue!(backend, BeginSynchronizedUpdate)?;
        if self.unknown {
            queue!(backend, Clear(ClearType::All))?;
        }
        backend.draw(changes.into_iter())?;
        queue!(backend, EndSynchronizedUpdate)?;
        self.unknown = false;
        std::mem::swap(&mut self.shown, &mut self.next);
        write(&self.out)
    }
}

/// Writes bytes to the terminal.
pub(super) fn write(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}
