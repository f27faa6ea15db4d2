//! A terminal for a program: its screen is read as a person would see it, and every wait is for something on it.

use std::io::{Read, Write};
use std::num::NonZero;
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, SlavePty, native_pty_system};
use tempfile::TempDir;
use vt100::{Parser, Screen};

/// Longest wait for anything: a busy machine starts the demo slowly.
const LIMIT: Duration = Duration::from_secs(120);

/// A program in a terminal. It is killed when this goes.
pub struct Term {
    master: Box<dyn MasterPty + Send>,
    /// Kept open, so that the terminal outlives the program and its modes can be read.
    _slave: Box<dyn SlavePty + Send>,
    keys: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    seen: Arc<Seen>,
    /// The terminal's modes before the program started.
    before: String,
    /// Home and state of the program.
    _home: TempDir,
}

struct Seen {
    parser: Mutex<Parser>,
    changed: Condvar,
}

impl Seen {
    fn lock(&self) -> MutexGuard<'_, Parser> {
        self.parser.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn size((cols, rows): (u16, u16)) -> PtySize {
    PtySize {
        rows,
        cols,
        pixel_width: 0,
        pixel_height: 0,
    }
}

impl Term {
    /// Starts a program in a terminal of this size (columns, rows), with an environment of its own.
    pub fn start(words: &[&str], variables: &[(&str, &str)], at: (u16, u16)) -> Self {
        let home = tempfile::tempdir().expect("a directory");
        let mut command = CommandBuilder::new(words[0]);
        command.args(&words[1..]);
        command.env_clear();
        let common = [
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
            ("TERM", "xterm-256color"),
            ("LANG", "C.UTF-8"),
            ("PS1", "ready> "),
        ];
        for (name, value) in common.iter().chain(variables) {
            command.env(name, value);
        }
        command.env("HOME", home.path());
        command.env("XDG_STATE_HOME", home.path());
        let pair = native_pty_system().openpty(size(at)).expect("a pseudo-terminal");
        let before = modes(&*pair.master);
        let child = pair.slave.spawn_command(command).expect("the program starts");
        let seen = Arc::new(Seen {
            parser: Mutex::new(Parser::new(cells(at.1), cells(at.0), 0)),
            changed: Condvar::new(),
        });
        let reader = pair.master.try_clone_reader().expect("a reader");
        let watcher = Arc::clone(&seen);
        std::thread::spawn(move || watch(reader, &watcher));
        Self {
            keys: pair.master.take_writer().expect("a writer"),
            master: pair.master,
            _slave: pair.slave,
            child,
            seen,
            before,
            _home: home,
        }
    }

    /// Types.
    pub fn send(&mut self, keys: &str) {
        self.keys
            .write_all(keys.as_bytes())
            .and_then(|()| self.keys.flush())
            .expect("the terminal takes keys");
    }

    /// Reads the screen as it is.
    pub fn screen<T>(&self, read: impl Fn(&Screen) -> T) -> T {
        read(self.seen.lock().screen())
    }

    /// Waits until something is on the screen.
    #[track_caller]
    pub fn wait(&self, what: &str, so: impl Fn(&Screen) -> bool) {
        let end = Instant::now() + LIMIT;
        let mut parser = self.seen.lock();
        while !so(parser.screen()) {
            let left = end.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero(),
                "waited in vain for {what}:\n{}",
                parser.screen().contents()
            );
            parser = self
                .seen
                .changed
                .wait_timeout(parser, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Gives the terminal another size.
    pub fn resize(&self, at: (u16, u16)) {
        self.seen.lock().screen_mut().set_size(cells(at.1), cells(at.0));
        self.master.resize(size(at)).expect("a new size");
    }

    /// Sends a signal to the program.
    pub fn signal(&self, name: &str) {
        let pid = self.child.process_id().expect("it runs").to_string();
        let sent = Command::new("kill")
            .args(["-s", name, &pid])
            .status()
            .expect("kill runs");
        assert!(sent.success());
    }

    /// Waits for the program's end and gives its exit code.
    #[track_caller]
    pub fn end(&mut self) -> u32 {
        let end = Instant::now() + LIMIT;
        loop {
            if let Some(status) = self.child.try_wait().expect("its state") {
                return status.exit_code();
            }
            let text = self.screen(Screen::contents);
            assert!(Instant::now() < end, "it does not end:\n{text}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The terminal's modes, as one would see them with `stty -a`.
    pub fn modes(&self) -> String {
        modes(&*self.master)
    }

    /// Asserts that the terminal is as it was before the program.
    #[track_caller]
    pub fn assert_whole(&self) {
        self.wait("the terminal to be given back", |s| {
            !s.alternate_screen() && !s.hide_cursor() && !s.bracketed_paste()
        });
        assert_eq!(self.modes(), self.before);
    }
}

impl Drop for Term {
    fn drop(&mut self) {
        // It may have ended already.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

fn cells(n: u16) -> NonZero<u16> {
    NonZero::new(n).expect("a terminal has cells")
}

fn modes(master: &dyn MasterPty) -> String {
    format!("{:?}", master.get_termios().expect("a terminal has modes"))
}

/// Feeds what the program writes to the screen.
fn watch(mut reader: Box<dyn Read + Send>, seen: &Seen) {
    let mut bytes = [0; 4096];
    while let Ok(n @ 1..) = reader.read(&mut bytes) {
        seen.lock().process(&bytes[..n]);
        seen.changed.notify_all();
    }
}
