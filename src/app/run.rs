//! The loop: whatever happens first (news of the console, a key, a signal, the next frame's time) is taken, then a frame is drawn if one is due.

use std::io;
use std::time::Duration;

use color_eyre::eyre::{Result, WrapErr};
use crossterm::Command;
use crossterm::clipboard::CopyToClipboard;
use crossterm::event::{Event, EventStream};
use futures_util::StreamExt;
use tokio::time::{Instant, sleep_until};

use crate::config::theme::Theme;
use crate::domain::QuestionId;
use crate::domain::count::things;
use crate::domain::intent::{Intent, Mode};
use crate::drive::{Console, ForFront, LEAVE_WAIT, Left};
use crate::input::{self, Chord};
use crate::view::{Look, Regions};

use super::asked::Asked;
use super::frame::{self, Beside};
use super::keys::chord;
use super::look::{frame_time, look};
use super::screen::{self, Screen};
use super::scroll;
use super::secret::{SecretField, Typed};
use super::signals::{Caught, Signals};
use super::terminal::{self, Guard};

/// How long a word of the terminal itself (copied, …) stands above the keys.
const TOLD: Duration = Duration::from_secs(4);

/// Longest text that goes to the clipboard, in bytes: terminals drop longer ones in silence.
const CLIP: usize = 64 * 1024;

/// Name of the variable that makes a frame panic, for the test that the terminal survives it.
const PANIC: &str = "BRINGUP_PANIC";

/// How the console ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Why.
    pub how: How,
    /// What was in flight and what goes on.
    pub left: Left,
}

/// Why the console ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// The operator left.
    Quit,
    /// SIGINT.
    Interrupted,
    /// SIGTERM.
    Terminated,
    /// The terminal is gone.
    HungUp,
    /// A part of the program panicked; it has said so.
    Panicked,
}

/// Runs the console on the terminal until the operator leaves. The terminal is as before when this returns.
///
/// # Errors
/// When the terminal can't be taken over, or can't be written to.
pub async fn run_console(console: Console, theme: Theme) -> Result<Ended> {
    let signals = Signals::listen().wrap_err("signals can't be listened for")?;
    let guard = Guard::take().wrap_err("the terminal can't be taken over")?;
    let mut front = Front::new(console, theme)?;
    let ended = front.run(signals).await;
    drop(guard);
    let left = front.console.shutdown().await;
    Ok(Ended {
        how: ended.wrap_err("the terminal can't be written to")?,
        left,
    })
}

struct Front {
    console: Console,
    look: Look,
    screen: Screen,
    regions: Regions,
    secret: SecretField,
    asked: Asked,
    /// What the terminal itself has to say, and until when.
    told: Option<(String, Instant)>,
    /// Something visible may have changed.
    dirty: bool,
    /// Until when commands in flight are waited for, once asked to leave.
    leaving: Option<Instant>,
    frames: u64,
}

impl Front {
    fn new(console: Console, theme: Theme) -> io::Result<Self> {
        Ok(Self {
            console,
            look: look(theme),
            screen: Screen::new()?,
            regions: Regions::default(),
            secret: SecretField::new(),
            asked: Asked::default(),
            told: None,
            dirty: true,
            leaving: None,
            frames: 0,
        })
    }

    async fn run(&mut self, mut signals: Signals) -> io::Result<How> {
        let mut events = EventStream::new();
        let frame = frame_time();
        let mut due = Instant::now();
        loop {
            if terminal::panicked() {
                return Ok(How::Panicked);
            }
            if self.dirty && Instant::now() >= due {
                self.draw()?;
                due = Instant::now() + frame;
            }
            let anew = self.asked.anew_at();
            let ended = tokio::select! {
                news = self.console.step() => self.take(news)?,
                event = events.next() => match event {
                    Some(Ok(event)) => self.event(event)?,
                    Some(Err(_)) | None => Some(How::HungUp),
                },
                caught = signals.next() => self.caught(caught)?,
                () = sleep_until(due), if self.dirty => None,
                () = sleep_until(anew.unwrap_or(due)), if anew.is_some() => {
                    self.dirty = true;
                    None
                }
            };
            if let Some(how) = ended.or_else(|| self.left()) {
                return Ok(how);
            }
        }
    }

    /// Whether leaving is over: nothing is in flight any more, or the wait is.
    fn left(&self) -> Option<How> {
        let until = self.leaving?;
        (Instant::now() >= until || self.console.in_flight().next().is_none()).then_some(How::Quit)
    }

    fn caught(&mut self, caught: Caught) -> io::Result<Option<How>> {
        match caught {
            Caught::Interrupt => Ok(Some(How::Interrupted)),
            Caught::Terminate => Ok(Some(How::Terminated)),
            Caught::Hangup => Ok(Some(How::HungUp)),
            Caught::Resumed => {
                terminal::take_again()?;
                self.screen.measure()?;
                self.dirty = true;
                Ok(None)
            }
        }
    }

    fn event(&mut self, event: Event) -> io::Result<Option<How>> {
        match event {
            Event::Key(key) => match chord(key) {
                Some(chord) => self.key(chord),
                None => Ok(None),
            },
            Event::Resize(width, height) => {
                self.screen.resize(width, height);
                self.dirty = true;
                Ok(None)
            }
            Event::Paste(text) => {
                if self.secret_question().is_some() && !self.early() {
                    self.secret.paste(&text);
                    self.dirty = true;
                }
                Ok(None)
            }
            Event::FocusGained | Event::FocusLost | Event::Mouse(_) => Ok(None),
        }
    }

    fn key(&mut self, chord: Chord) -> io::Result<Option<How>> {
        if chord == Chord::ctrl('z') {
            terminal::suspend()?;
            self.screen.measure()?;
            self.dirty = true;
            return Ok(None);
        }
        if self.early() && chord != Chord::ctrl('c') {
            return Ok(None);
        }
        let asked = self.secret_question();
        self.secret.belongs_to(asked);
        if let Some(id) = asked {
            match self.secret.key(chord) {
                Typed::Changed => {
                    self.dirty = true;
                    return Ok(None);
                }
                Typed::Answer => {
                    let secret = self.secret.take();
                    let news = self.console.reply_secret(id, secret);
                    return self.take(news);
                }
                // Letters are text here: what is left is Esc and Ctrl-C.
                Typed::Other => {}
            }
        }
        let question = self.console.state().questions.front().map(|q| q.id);
        match input::intent(self.console.state().screen.mode, chord, question) {
            Some(intent) => self.intent(intent),
            None => Ok(None),
        }
    }

    fn intent(&mut self, intent: Intent) -> io::Result<Option<How>> {
        let intents = match intent {
            Intent::Scroll(by) => {
                // Keys may come faster than frames: each scrolls from where the one before it came to.
                if self.dirty {
                    self.compose();
                }
                let steps = scroll::within(self.console.state(), &self.regions, by);
                steps.into_iter().map(Intent::Scroll).collect()
            }
            other => vec![other],
        };
        for intent in intents {
            let news = self.console.intent(intent);
            if let Some(how) = self.take(news)? {
                return Ok(Some(how));
            }
        }
        Ok(None)
    }

    /// The question that keys answer.
    fn question(&self) -> Option<QuestionId> {
        let state = self.console.state();
        let front = state.questions.front().map(|q| q.id);
        front.filter(|_| state.screen.mode == Mode::Question)
    }

    /// Whether the question that keys would answer is too new for an answer.
    fn early(&self) -> bool {
        self.asked.early(self.question(), Instant::now())
    }

    /// The question that wants a secret, when one is in front.
    fn secret_question(&self) -> Option<QuestionId> {
        let state = self.console.state();
        let question = state.questions.front()?;
        (state.screen.mode == Mode::Question && question.ask.secret()).then_some(question.id)
    }

    /// Whether what is typed for the question in front may be seen.
    fn echoes(&self) -> bool {
        let question = self.console.state().questions.front();
        self.secret_question().is_some() && question.is_some_and(|q| q.ask.echo())
    }

    fn take(&mut self, news: Vec<ForFront>) -> io::Result<Option<How>> {
        for item in news {
            match item {
                ForFront::Redraw => self.dirty = true,
                ForFront::Notify(text) => self.notify(&text)?,
                ForFront::Copy(text) => self.copy(&text)?,
                ForFront::Step(_) | ForFront::RunOver(_) => {}
                ForFront::Quit { now: true } => return Ok(Some(How::Quit)),
                ForFront::Quit { now: false } => self.leaving = Some(Instant::now() + LEAVE_WAIT),
            }
        }
        Ok(None)
    }

    fn notify(&mut self, text: &str) -> io::Result<()> {
        let ui = &self.console.state().config.ui;
        let mut bytes = String::new();
        if ui.bell {
            bytes.push('\u{7}');
        }
        if ui.notify {
            let plain: String = text.chars().filter(|c| !c.is_control()).collect();
            bytes.push_str("\u{1b}]9;");
            bytes.push_str(&plain);
            bytes.push('\u{7}');
        }
        screen::write(bytes.as_bytes())
    }

    fn copy(&mut self, text: &str) -> io::Result<()> {
        let said = if text.len() > CLIP {
            format!(
                "not copied: {} are more than terminals take",
                things(text.len(), "byte")
            )
        } else {
            let mut bytes = String::new();
            if CopyToClipboard::to_clipboard_from(text).write_ansi(&mut bytes).is_ok() {
                screen::write(bytes.as_bytes())?;
            }
            let first = text.lines().next().unwrap_or_default();
            format!("copied (if this terminal takes OSC 52): {first}")
        };
        self.told = Some((said, Instant::now() + TOLD));
        self.dirty = true;
        Ok(())
    }

    /// Composes a frame and writes what changed.
    fn draw(&mut self) -> io::Result<()> {
        self.dirty = false;
        self.frames += 1;
        if self.told.as_ref().is_some_and(|(_, until)| Instant::now() >= *until) {
            self.told = None;
        }
        let early = self.early();
        self.compose();
        panic_on_purpose(self.frames);
        self.screen.show()?;
        self.asked.drew(self.question(), early, Instant::now());
        Ok(())
    }

    /// Composes a frame.
    fn compose(&mut self) {
        let asked = self.secret_question();
        self.secret.belongs_to(asked);
        let beside = Beside {
            typed: self.secret.typed(),
            shown: self.echoes().then(|| self.secret.shown()),
            early: self.early(),
            told: self.told.as_ref().map(|(text, _)| text.as_str()),
        };
        frame::compose(&self.console, &self.look, beside, self.screen.next(), &mut self.regions);
    }
}

/// Panics in the middle of a frame when asked to.
#[expect(
    clippy::panic,
    reason = "asked for by a variable: a test sees that the terminal survives it"
)]
fn panic_on_purpose(frames: u64) {
    if frames == 3 && std::env::var_os(PANIC).is_some_and(|v| v == "draw") {
        panic!("on purpose: {PANIC}=draw");
    }
}
