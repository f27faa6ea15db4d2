//! A command for a node, as data.
//!
//! There is one place where a command becomes text for `/bin/sh`: [`Command::render`]. The plan view prints that text, `ssh` sends it, and the
//! demo cluster reads the same text back with [`Command::parse`]. The first line names the command and its arguments, so that a reader need not
//! understand shell.

use std::borrow::Cow;
use std::time::Duration;

use serde::Serialize;

use super::secret::SecretEnv;

/// First characters of every rendered command.
pub const HEADER: &str = "# bringup: ";

/// The id of a command that is a plain program with arguments.
pub const ARGV: &str = "argv";

/// Longest output kept of a command unless it says otherwise, in bytes for each of stdout and stderr.
pub const DEFAULT_BYTES: usize = 1 << 20;

/// A command that can run on a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Command {
    /// [`ARGV`], or the id of a script such as `probe.node`.
    pub id: Cow<'static, str>,
    /// The program and its arguments, or the script's `$1`, `$2`, ….
    pub args: Vec<String>,
    /// The script's text in POSIX sh; empty for [`ARGV`].
    pub body: Cow<'static, str>,
    /// Ends the command on the node when it is over.
    pub limit: Limit,
    /// Whether it answers once or goes on until it is ended.
    pub kind: CommandKind,
    /// A secret that the command gets on its standard input and exports under a name; never in an argv.
    pub secret: Option<SecretEnv>,
}

/// Bounds of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Limit {
    /// Longest run time. For [`CommandKind::Follow`] it bounds the start only.
    pub time: Duration,
    /// Bytes kept of stdout, and as many of stderr; more are read, counted and dropped.
    pub bytes: usize,
}

/// How a command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum CommandKind {
    /// Ends by itself within its limit.
    Once,
    /// Goes on; ended on the node when the console goes (see `ssh::wrap`).
    Follow,
}

impl Command {
    /// A program with its arguments, run once.
    pub fn argv<S: Into<String>>(words: impl IntoIterator<Item = S>, time: Duration) -> Self {
        Self {
            id: Cow::Borrowed(ARGV),
            args: words.into_iter().map(Into::into).collect(),
            body: Cow::Borrowed(""),
            limit: Limit {
                time,
                bytes: DEFAULT_BYTES,
            },
            kind: CommandKind::Once,
            secret: None,
        }
    }

    /// A script of our own with its arguments (`$1`, `$2`, …), run once.
    pub fn script(id: &'static str, body: impl Into<Cow<'static, str>>, args: Vec<String>, time: Duration) -> Self {
        Self {
            id: Cow::Borrowed(id),
            args,
            body: body.into(),
            limit: Limit {
                time,
                bytes: DEFAULT_BYTES,
            },
            kind: CommandKind::Once,
            secret: None,
        }
    }

    /// The same command, to be followed until the console goes.
    #[must_use]
    pub fn follow(mut self) -> Self {
        self.kind = CommandKind::Follow;
        self
    }

    /// The same command with a secret on its standard input.
    #[must_use]
    pub fn with_secret(mut self, secret: Option<SecretEnv>) -> Self {
        self.secret = secret;
        self
    }

    /// One line for a list: the quoted program, or the script's id and arguments.
    #[must_use]
    pub fn line(&self) -> String {
        let words = quote_all(&self.args);
        if self.id == ARGV {
            words
        } else {
            format!("{} {words}", self.id).trim_end().to_owned()
        }
    }

    /// The text that `/bin/sh` runs on the node. A NUL in an argument is left out: no shell can carry one.
    #[must_use]
    pub fn render(&self) -> String {
        let words = quote_all(&self.args);
        let mut text = format!("{HEADER}{}", self.id);
        if !words.is_empty() {
            text.push(' ');
            // The header is a comment and ends at the end of its line.
            text.push_str(&words.replace('\n', " "));
        }
        text.push('\n');
        if let Some(secret) = &self.secret {
            text.push_str(&format!("IFS= read -r {0} && export {0}\n", secret.name));
        }
        if self.id == ARGV {
            text.push_str(&words);
        } else {
            if !words.is_empty() {
                text.push_str("set -- ");
                text.push_str(&words);
                text.push('\n');
            }
            text.push_str(&self.body);
        }
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text
    }

    /// Reads id and arguments back from rendered text, as the demo cluster does.
    #[must_use]
    pub fn parse(text: &str) -> Option<(String, Vec<String>)> {
        let header = text.lines().find_map(|l| l.strip_prefix(HEADER))?;
        let mut words = shlex::split(header)?;
        if words.is_empty() {
            return None;
        }
        let id = words.remove(0);
        Some((id, words))
    }
}

/// Words quoted for a POSIX shell, joined by spaces.
pub fn quote_all<S: AsRef<str>>(words: &[S]) -> String {
    let quoted: Vec<String> = words.iter().map(|w| quote(w.as_ref())).collect();
    quoted.join(" ")
}

/// One word quoted for a POSIX shell.
#[must_use]
pub fn quote(word: &str) -> String {
    match shlex::try_quote(word) {
        Ok(q) => q.into_owned(),
        Err(_nul) => quote(&word.replace('\0', "")),
    }
}

/// The words of a program that the configuration names by one or several, such as `docker` or `sudo -n docker`. The configuration takes none that a
/// shell would read as anything else, so a script may leave them unquoted.
pub fn program(text: &str) -> impl Iterator<Item = String> {
    text.split_ascii_whitespace().map(str::to_owned)
}

/// What came of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Output {
    /// Standard output, at most the command's byte limit.
    pub stdout: Vec<u8>,
    /// Standard error, at most the command's byte limit.
    pub stderr: Vec<u8>,
    /// Bytes that came and were not kept.
    pub dropped: u64,
    /// How it ended.
    pub exit: Exit,
    /// From the request to the end, as the console saw it.
    pub took: Duration,
}

impl Output {
    /// Standard output as text; bytes that are not UTF-8 become U+FFFD.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.stdout)
    }

    /// Standard error as text; bytes that are not UTF-8 become U+FFFD.
    #[must_use]
    pub fn error_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.stderr)
    }
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Exit {
    /// Exit status.
    Code(u32),
    /// Ended by a signal, such as `TERM`.
    Signal(String),
    /// Its time limit ran out and it was ended.
    TimedOut,
    /// It could not be started: the channel or the connection refused.
    NotStarted(String),
    /// The connection was lost while it ran: whether it ended, and how, is not known.
    Unknown(String),
}

impl Exit {
    /// Exit status zero.
    #[must_use]
    pub fn ok(&self) -> bool {
        *self == Self::Code(0)
    }

    /// A word or two for a list: `0`, `1`, `TERM`, `timed out`, `not started`, `unknown`.
    #[must_use]
    pub fn word(&self) -> String {
        match self {
            Self::Code(c) => c.to_string(),
            Self::Signal(s) => s.clone(),
            Self::TimedOut => "timed out".to_owned(),
            Self::NotStarted(_) => "not started".to_owned(),
            Self::Unknown(_) => "unknown".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::secret::SecretFrom;

    const T: Duration = Duration::from_secs(1);

    #[test]
    fn a_program_renders_as_what_a_person_would_type_and_reads_back() {
        let words = ["docker", "run", "-e", "A=b c", "--name", "it's"];
        let c = Command::argv(words, T);
        assert_eq!(c.line(), "docker run -e 'A=b c' --name \"it's\"");
        let (id, args) = Command::parse(&c.render()).unwrap();
        assert_eq!((id.as_str(), args), (ARGV, words.map(str::to_owned).to_vec()));
    }

    #[test]
    fn a_script_gets_its_arguments_and_its_secret_by_name_only() {
        let secret = SecretEnv {
            name: "HF_TOKEN".into(),
            from: SecretFrom::Variable("MY_TOKEN".into()),
        };
        let c = Command::script("probe.x", "echo \"$1\"", vec!["a b".into()], T).with_secret(Some(secret));
        assert_eq!(
            c.render(),
            "# bringup: probe.x 'a b'\nIFS= read -r HF_TOKEN && export HF_TOKEN\nset -- 'a b'\necho \"$1\"\n"
        );
    }

    #[test]
    fn a_newline_in_an_argument_cannot_leave_the_header() {
        let c = Command::argv(["echo", "x\nrm -rf /"], T);
        let text = c.render();
        assert_eq!(text.lines().next(), Some("# bringup: argv echo 'x rm -rf /'"));
        assert_eq!(text.lines().nth(1), Some("echo 'x"));
    }

    #[test]
    fn a_nul_is_left_out() {
        assert_eq!(quote("a\0b"), "ab");
    }
}
