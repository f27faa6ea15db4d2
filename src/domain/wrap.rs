//! How a command travels to a node and how it ends there.
//!
//! The console sends one constant exec string, [`BOOTSTRAP`], which means the same to sh, bash, zsh, fish and csh. Everything else comes on standard
//! input. First a [`frame`]: the [`opening`] (a line and the wrapper's text), then the job (a line and the script). The opening can be sent ahead of the
//! job: the wrapper then waits for it, and ends by itself when none comes. The wrapper (`wrapper.sh`, plain POSIX sh) prints the nonce on a line of its own
//! on both outputs: what a login shell printed before it is noise ([`Preamble`] drops it). Only then the console sends the line that lets the script
//! begin, empty or with the secret: a command whose nonce has not come has certainly not begun, and no secret reaches a login shell. From then on it
//! sends one newline every [`HEARTBEAT`].
//!
//! The wrapper runs the script with /dev/null or the secret as standard input and ends the script's whole process group at the end of file, after
//! [`SILENCE`] without a newline, and when its limit is over. What a signal has ended takes its group along too: no trap of it has run. The exit code is
//! the script's.
//!
//! A script that arrives in part is never run: its last line must be `# end NONCE`.
//!
//! The demo cluster reads the same bytes back with [`parse_frame`].

use std::time::Duration;

use super::command::{Command, CommandKind};

/// What is sent as the command of every exec request: it reads two numbers' worth of text from standard input and runs the first.
pub const BOOTSTRAP: &str = "exec /bin/sh -c 'read -r w h && eval \"$(dd bs=$w count=1 iflag=fullblock 2>/dev/null || dd ibs=1 count=$w 2>/dev/null)\"'";

/// The wrapper's text. It leans on `dd` and `sleep`, and on `setsid` where there is one: without it only the script's own shell is ended.
const WRAPPER: &str = include_str!("wrapper.sh");

/// Pace of the newlines that tell the wrapper that the console is there.
pub const HEARTBEAT: Duration = Duration::from_secs(5);

/// Silence after which the wrapper ends the script: an end of file does not come when the network dies silently.
pub const SILENCE: Duration = Duration::from_secs(30);

/// How often the wrapper of a command that answers once looks at its limit.
const TICK_ONCE: Duration = Duration::from_secs(1);

/// The line of standard input on which the wrapper stops the command: what it prints cannot be read as fast. It counts as a heartbeat, as any line does.
pub const HOLD: &str = "hold\n";

/// The line on which the command goes on.
pub const GO: &str = "go\n";

/// How often the wrapper of a followed command looks at its clock; longer, as each look is a `sleep` on the node.
const TICK_FOLLOW: Duration = Duration::from_secs(5);

/// What the node adds to a command's limit, so that the console's own clock speaks first.
const LIMIT_GRACE: Duration = Duration::from_secs(3);

/// Longest script: the kernel carries one string of at most 128 KiB to a new program.
pub const MAX_SCRIPT: usize = 120 * 1024;

/// Longest first line that [`parse_frame`] reads.
const MAX_HEADER: usize = 256;

/// Longest noise before the nonce on one stream; a login shell that prints more is given up.
pub const MAX_NOISE: usize = 256 * 1024;

/// Bytes of the noise that are kept, to show what a login shell said instead of running the command.
const NOISE_KEPT: usize = 2048;

/// The first line of a frame, after the length of the wrapper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Printed by the wrapper before the script's first byte; hexadecimal digits.
    pub nonce: String,
    /// Whether the script answers once or goes on.
    pub kind: CommandKind,
    /// Whole seconds after which the wrapper ends the script; 0 means never.
    pub limit_seconds: u64,
    /// Whole seconds without a heartbeat after which it ends the script.
    pub silence_seconds: u64,
    /// Whole seconds between two looks at the clock.
    pub tick_seconds: u64,
    /// Whether the line that lets the script begin holds a secret.
    pub secret: bool,
}

impl Header {
    /// The header of a command. A followed command has no limit: it ends with the console.
    #[must_use]
    pub fn of(command: &Command, nonce: &str) -> Self {
        let (limit, tick) = match command.kind {
            CommandKind::Once => (whole_seconds(command.limit.time.saturating_add(LIMIT_GRACE)), TICK_ONCE),
            CommandKind::Follow => (0, TICK_FOLLOW),
        };
        Self {
            nonce: nonce.to_owned(),
            kind: command.kind,
            limit_seconds: limit,
            silence_seconds: SILENCE.as_secs(),
            tick_seconds: tick.as_secs(),
            secret: command.secret.is_some(),
        }
    }

    /// The bytes to send for a script under this header.
    #[must_use]
    pub fn frame(&self, script: &str) -> Vec<u8> {
        [opening(None), self.job(script)].concat()
    }

    /// The bytes to send after the opening.
    fn job(&self, script: &str) -> Vec<u8> {
        let newline = if script.ends_with('\n') { "" } else { "\n" };
        let script = format!("{script}{newline}{}", self.last_line());
        let line = format!(
            "{} {} {} {} {} {} {}\n",
            script.len(),
            self.nonce,
            match self.kind {
                CommandKind::Once => "once",
                CommandKind::Follow => "follow",
            },
            self.limit_seconds,
            self.silence_seconds,
            self.tick_seconds,
            if self.secret { "secret" } else { "-" },
        );
        [line.as_bytes(), script.as_bytes()].concat()
    }

    fn last_line(&self) -> String {
        format!("# end {}\n", self.nonce)
    }

    /// Reads the line; gives the length of the script as well.
    fn parse(line: &str) -> Option<(usize, Self)> {
        let words: Vec<&str> = line.split(' ').collect();
        let [script, nonce, kind, limit, silence, tick, secret] = words.as_slice() else {
            return None;
        };
        let header = Self {
            nonce: (*nonce).to_owned(),
            kind: match *kind {
                "once" => CommandKind::Once,
                "follow" => CommandKind::Follow,
                _ => return None,
            },
            limit_seconds: limit.parse().ok()?,
            silence_seconds: silence.parse().ok()?,
            tick_seconds: tick.parse().ok()?,
            secret: *secret == "secret",
        };
        Some((script.parse().ok()?, header))
    }
}

/// The first bytes on a channel: the wrapper. With `idle`, whole seconds after which it ends where no job has come.
#[must_use]
pub fn opening(idle: Option<Duration>) -> Vec<u8> {
    let idle = idle.map(|idle| format!(" {}", whole_seconds(idle))).unwrap_or_default();
    format!("{}{idle}\n{WRAPPER}", WRAPPER.len()).into_bytes()
}

/// The bytes to send for a command where the opening was sent already.
#[must_use]
pub fn job(command: &Command, nonce: &str) -> Vec<u8> {
    Header::of(command, nonce).job(&command.render())
}

/// The bytes to send for a command, before the line that lets it begin and the heartbeat.
#[must_use]
pub fn frame(command: &Command, nonce: &str) -> Vec<u8> {
    Header::of(command, nonce).frame(&command.render())
}

/// A frame read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Its first line.
    pub header: Header,
    /// The script, as [`Command::render`] made it.
    pub script: String,
    /// Bytes that the frame took; the line that lets it begin and the heartbeat follow.
    pub consumed: usize,
}

/// The bytes are no frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a command frame: {0}")]
pub struct BadFrame(&'static str);

/// Reads a frame from the start of what has come so far; `None` means that more must come.
///
/// # Errors
/// When no more bytes can make it a frame.
pub fn parse_frame(bytes: &[u8]) -> Result<Option<Frame>, BadFrame> {
    let Some((line, start)) = line_at(bytes, 0)? else {
        return Ok(None);
    };
    let wrapper = line.split(' ').next().and_then(|w| w.parse::<usize>().ok());
    let wrapper = wrapper.ok_or(BadFrame("first line"))?;
    if wrapper > MAX_SCRIPT {
        return Err(BadFrame("too long"));
    }
    let Some((line, start)) = line_at(bytes, start + wrapper)? else {
        return Ok(None);
    };
    let (script, header) = Header::parse(line).ok_or(BadFrame("the job's line"))?;
    if script > MAX_SCRIPT {
        return Err(BadFrame("too long"));
    }
    let consumed = start + script;
    let Some(script) = bytes.get(start..consumed) else {
        return Ok(None);
    };
    let script = std::str::from_utf8(script).map_err(|_| BadFrame("script is not UTF-8"))?;
    let script = script
        .strip_suffix(&header.last_line())
        .ok_or(BadFrame("last line"))?
        .to_owned();
    Ok(Some(Frame {
        header,
        script,
        consumed,
    }))
}

/// The line that begins here, and where the next byte after it is; `None` while its end has not come.
fn line_at(bytes: &[u8], start: usize) -> Result<Option<(&str, usize)>, BadFrame> {
    let Some(rest) = bytes.get(start..) else {
        return Ok(None);
    };
    match rest.iter().take(MAX_HEADER).position(|b| *b == b'\n') {
        Some(end) => {
            let line = rest.get(..end).and_then(|l| std::str::from_utf8(l).ok());
            Ok(Some((line.unwrap_or_default(), start + end + 1)))
        }
        None if rest.len() < MAX_HEADER => Ok(None),
        None => Err(BadFrame("a line without an end")),
    }
}

/// Drops what a login shell prints before the nonce, on one stream.
#[derive(Debug)]
pub struct Preamble {
    mark: Vec<u8>,
    held: Vec<u8>,
    passed: bool,
    noise: usize,
}

impl Preamble {
    /// Waits for this nonce and the end of its line.
    #[must_use]
    pub fn new(nonce: &str) -> Self {
        Self {
            mark: format!("{nonce}\n").into_bytes(),
            held: Vec::new(),
            passed: false,
            noise: 0,
        }
    }

    /// What of these bytes is the script's own; empty until the nonce has come.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        if self.passed {
            return bytes.to_vec();
        }
        self.held.extend_from_slice(bytes);
        self.noise = self.noise.saturating_add(bytes.len());
        if let Some(at) = self
            .held
            .windows(self.mark.len())
            .position(|w| w == self.mark.as_slice())
        {
            self.passed = true;
            let own = self.held.split_off(at + self.mark.len());
            self.held.truncate(at);
            return own;
        }
        let excess = self.held.len().saturating_sub(NOISE_KEPT.max(self.mark.len()));
        self.held.drain(..excess);
        Vec::new()
    }

    /// Whether the nonce has come.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.passed
    }

    /// Whether so much noise came that the nonce is not worth waiting for.
    #[must_use]
    pub fn hopeless(&self) -> bool {
        !self.passed && self.noise > MAX_NOISE
    }

    /// The end of the noise.
    #[must_use]
    pub fn noise(&self) -> &[u8] {
        &self.held
    }
}

fn whole_seconds(time: Duration) -> u64 {
    time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::secret::{SecretEnv, SecretFrom};

    fn command() -> Command {
        Command::argv(["docker", "ps"], Duration::from_millis(2500))
    }

    #[test]
    fn a_frame_reads_back_however_it_is_cut() {
        let secret = SecretEnv {
            name: "T".into(),
            from: SecretFrom::Variable("T".into()),
        };
        let command = command().with_secret(Some(secret));
        let mut bytes = frame(&command, "ab12");
        let length = bytes.len();
        bytes.extend_from_slice(b"hidden\n\n");
        for cut in [0, 1, 30, length - 1] {
            assert_eq!(parse_frame(&bytes[..cut]), Ok(None), "cut at {cut}");
        }
        let read = parse_frame(&bytes).unwrap().unwrap();
        assert_eq!(read.script, command.render());
        assert_eq!(read.consumed, length);
        let expected = Header {
            nonce: "ab12".into(),
            kind: CommandKind::Once,
            limit_seconds: 6,
            silence_seconds: 30,
            tick_seconds: 1,
            secret: true,
        };
        assert_eq!(read.header, expected);
    }

    #[test]
    fn an_opening_that_was_sent_ahead_reads_as_one_frame_with_its_job() {
        let mut bytes = opening(Some(Duration::from_secs(60)));
        assert_eq!(parse_frame(&bytes), Ok(None));
        bytes.extend(job(&command(), "ab12"));
        let read = parse_frame(&bytes).unwrap().unwrap();
        assert_eq!((read.script, read.consumed), (command().render(), bytes.len()));
    }

    #[test]
    fn a_followed_command_has_no_limit() {
        let header = Header::of(&command().follow(), "n");
        assert_eq!((header.limit_seconds, header.tick_seconds), (0, 5));
    }

    #[test]
    fn what_is_no_frame_is_refused_at_once() {
        let cases: [&[u8]; 5] = [
            b"GET / HTTP/1.1\n",
            b"0\n1 n maybe 0 30 1 -\n",
            b"99999999\n1 n once 0 30 1 -\n",
            b"0\n5 n once 0 30 1 -\nhello",
            &[b'x'; MAX_HEADER],
        ];
        for bytes in cases {
            assert!(parse_frame(bytes).is_err(), "{}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn the_exec_string_has_nothing_that_a_shell_reads_differently() {
        let inner = BOOTSTRAP
            .strip_prefix("exec /bin/sh -c '")
            .and_then(|s| s.strip_suffix('\''))
            .unwrap();
        assert!(!inner.contains(['\'', '\\', '!', '\n', '`']), "{inner}");
    }

    #[test]
    fn noise_before_the_nonce_is_dropped_wherever_it_is_cut() {
        let all = b"Welcome!\nsetlocale: nonsense ab12\nab12\nout ab12\n";
        for cut in 0..all.len() {
            let mut p = Preamble::new("ab12");
            // The nonce at the end of a line of noise counts as the nonce: noise cannot know it.
            let mut got = p.feed(&all[..cut]);
            got.extend_from_slice(&p.feed(&all[cut..]));
            assert_eq!(got, b"ab12\nout ab12\n", "cut at {cut}");
            assert!(p.passed());
        }
    }

    #[test]
    fn endless_noise_is_bounded_and_given_up() {
        let mut p = Preamble::new("ab12");
        for _ in 0..300 {
            assert!(p.feed(&[b'.'; 1024]).is_empty());
        }
        assert!(p.hopeless());
        assert_eq!(p.noise().len(), NOISE_KEPT);
    }
}
