//! Commands that follow a log, and how one goes on after a connection was lost.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use jiff::Timestamp;

use crate::domain::command::{Command, Output, program, quote};
use crate::domain::logs::Older;
use crate::domain::units::Bytes;
use crate::log::{Line, Stream};

use super::position::FilePosition;
use super::short;

/// Lines of an existing log that are shown when it is followed for the first time.
pub const FIRST_LINES: u32 = 2000;

/// Lines from which on it is asked whether Docker has older ones: fewer than [`FIRST_LINES`], as one that is longer than 16 KiB counts more than once there.
const ASK_FROM: u32 = FIRST_LINES / 2;

/// Id of the script that asks for the first line that Docker has of a container.
pub const OLDER_ID: &str = "log.older";

/// Gives the beginning of the first line, and ends Docker's client with that: $1 is Docker's program, $2 a time up to which a line counts, $3 the container.
const OLDER: &str = "$1 logs --timestamps --until \"$2\" \"$3\" 2>&1 | head -c 64\n";

/// Bytes of an existing log file that are shown when it is followed for the first time.
pub const FIRST_BYTES: u64 = 512 * 1024;

/// Id of the script that follows a file on the node.
pub const FILE_ID: &str = "log.file";

/// Id of the script that follows a file inside a container.
pub const CONTAINER_FILE_ID: &str = "log.container-file";

/// Id of the script that runs a command line of the user's own.
pub const COMMAND_ID: &str = "log.command";

/// How far before the last line seen `docker logs` is asked to begin again: the two streams may have overtaken each other by that much.
const OVERLAP: Duration = Duration::from_secs(2);

/// Lines of each stream by which Docker's repetitions are known.
const RECENT: usize = 1024;

/// Finds where a file is to be followed from, and says so.
const TAIL: &str = include_str!("tail.sh");

/// Lines of a command of the user's own that are kept to know them again when it is run again. What comes beyond them counts each time.
const KNOWN_LINES: usize = 8192;

/// How Docker's client begins what it says itself, in the spellings of its versions.
const DOCKER_SAYS: [&str; 9] = [
    "Error response from daemon",
    // Docker before 23, and podman.
    "Error: No such ",
    "Error: no such ",
    "Error: no container with ",
    "Cannot connect to Podman",
    "Cannot connect to the Docker daemon",
    "failed to connect to the docker API",
    "permission denied while trying to connect to the ",
    "error during connect: ",
];

/// Whether a line in place of a log, or between its lines, is said by Docker's client.
#[must_use]
pub fn docker_says(line: &Line) -> bool {
    // What a container has written comes with the time at which it did.
    let own = line.stream == Stream::Err && line.time.is_none();
    own && {
        let text = line.plain();
        let text = text.trim_start();
        let text = text.strip_prefix("docker: ").unwrap_or(text);
        DOCKER_SAYS.iter().any(|words| text.starts_with(words))
    }
}

/// How the shell that runs a command of the user's own begins what it says itself.
const SHELL_SAYS: &str = "/bin/sh: ";

/// Why there is nothing to read, and what the node said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotThere {
    /// Why, as a whole sentence without a full stop.
    pub why: &'static str,
    /// In whose words, where there are any.
    pub said: Option<String>,
}

impl NotThere {
    /// Reads a line that came in place of a file's first one.
    pub(super) fn of(line: &str) -> Self {
        let words = |text: &str| Some(short(text)).filter(|text| !text.is_empty());
        let (why, said) = match line.strip_prefix("@@ none ") {
            Some(rest) => rest.split_once(' ').unwrap_or((rest, "")),
            None => ("", line),
        };
        let why = match why {
            "missing" => "there is no such file",
            "folder" => "it is a folder",
            "device" => "it is a device",
            "closed" => "the login may not read it",
            _ => "it can't be read",
        };
        let said = words(said);
        Self { why, said }
    }
}

/// Where a log is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// `docker logs` of a container.
    Container {
        /// Docker's program.
        docker: String,
        /// The container's name.
        name: String,
    },
    /// A file on the node.
    File {
        /// Its path; `~/` is the login's home.
        path: String,
    },
    /// A file inside a container.
    ContainerFile {
        /// Docker's program.
        docker: String,
        /// The container's name.
        name: String,
        /// Its path.
        path: String,
    },
    /// What a command line prints, run by /bin/sh; it begins anew each time.
    Command {
        /// The line.
        line: String,
    },
}

impl Place {
    /// The same as an operator would type it or name it.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Container { docker, name } => format!("{docker} logs {name}"),
            Self::File { path } => path.clone(),
            Self::ContainerFile { name, path, .. } => format!("{name}:{path}"),
            Self::Command { line } => line.clone(),
        }
    }
}

/// A followed log and how far it was read, so that following it again neither repeats nor leaves out lines.
///
/// `docker logs --since` repeats lines: they are known by their times. A file is taken up after its last whole line. Each run of the command wants a
/// decoder of its own.
#[derive(Debug, Clone)]
pub struct Follower {
    place: Place,
    out: Seen,
    err: Seen,
    file: FilePosition,
    runs: Runs,
    notice: Option<String>,
    first: First,
}

/// The first lines that were read of a container's log.
#[derive(Debug, Clone, Default)]
struct First {
    /// How many, up to [`ASK_FROM`].
    lines: u32,
    /// The time of the earliest of them.
    earliest: Option<String>,
    /// Whether it was asked what Docker has before it.
    asked: bool,
    /// The time of the earliest line that Docker has.
    oldest: Option<String>,
}

/// Lines of a command that is run again and again, by their marks: how often each came in this run, and the most in an earlier one.
#[derive(Debug, Clone, Default)]
struct Runs {
    now: HashMap<u64, u32>,
    before: HashMap<u64, u32>,
}

impl Runs {
    /// A new run begins.
    fn begin(&mut self) {
        let now = std::mem::take(&mut self.now);
        if self.before.len().saturating_add(now.len()) > KNOWN_LINES {
            self.before.clear();
        }
        for (mark, times) in now {
            let most = self.before.entry(mark).or_default();
            *most = times.max(*most);
        }
    }

    /// Whether a line came as often as this in an earlier run.
    fn again(&mut self, line: &Line) -> bool {
        let mark = mark("", line);
        if self.now.len() >= KNOWN_LINES && !self.now.contains_key(&mark) {
            return false;
        }
        let times = self.now.entry(mark).or_default();
        *times = times.saturating_add(1);
        self.before.get(&mark).is_some_and(|most| *times <= *most)
    }
}

/// How far one stream of `docker logs` was read.
#[derive(Debug, Clone, Default)]
struct Seen {
    /// Time of the last line.
    last: Option<String>,
    /// Lines up to this time come again and are dropped, until a later one comes.
    again: Option<String>,
    /// Marks of the last lines, the newest last: Docker 20.10 repeats the first lines of a new file to who had come to the old one's end.
    recent: VecDeque<u64>,
    /// The last line itself was asked for again: where a later one comes first, lines are missing.
    expected: bool,
}

/// A line with its time in few bytes.
fn mark(time: &str, line: &Line) -> u64 {
    let mut hasher = DefaultHasher::new();
    time.hash(&mut hasher);
    line.text().hash(&mut hasher);
    hasher.finish()
}

impl Follower {
    /// A log that was not read yet.
    #[must_use]
    pub fn new(place: Place) -> Self {
        Self {
            place,
            out: Seen::default(),
            err: Seen::default(),
            file: FilePosition::default(),
            runs: Runs::default(),
            notice: None,
            first: First::default(),
        }
    }

    /// Where it is.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The command that follows it from where it was left. Its stdout passes [`Self::content`] before it is decoded; each line passes
    /// [`Self::fresh`].
    pub fn command(&mut self, limit: Duration) -> Command {
        self.file.begin();
        self.runs.begin();
        let since = self.since();
        for seen in [&mut self.out, &mut self.err] {
            seen.again = seen.last.clone();
            // Times of one format: their order is that of their texts, up to the digits that one of them lacks.
            seen.expected = since.as_ref().is_some_and(|since| seen.last.as_ref() > Some(since));
        }
        let (from, inode) = self.file.place();
        let part = FIRST_BYTES.to_string();
        let command = match &self.place {
            Place::Container { docker, name } => {
                let options = ["logs", "--timestamps", "--follow"].map(str::to_owned);
                let mut words: Vec<String> = program(docker).chain(options).collect();
                match since {
                    Some(time) => words.extend(["--since".to_owned(), time]),
                    None => words.extend(["--tail".to_owned(), FIRST_LINES.to_string()]),
                }
                words.push(name.clone());
                Command::argv(words, limit)
            }
            Place::File { path } => Command::script(FILE_ID, TAIL, vec![path.clone(), from, part, inode], limit),
            Place::ContainerFile { docker, name, path } => {
                let args = vec![docker.clone(), name.clone(), path.clone(), from, part, inode];
                Command::script(CONTAINER_FILE_ID, in_container(TAIL, 4), args, limit)
            }
            Place::Command { line } => {
                Command::script(COMMAND_ID, "exec /bin/sh -c \"$1\"\n", vec![line.clone()], limit)
            }
        };
        command.follow()
    }

    /// The bytes of stdout that belong to the log.
    pub fn content<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        match &self.place {
            Place::Container { .. } | Place::Command { .. } => bytes,
            Place::File { .. } | Place::ContainerFile { .. } => {
                let content = self.file.content(bytes);
                if let Some(why) = self.file.why.take() {
                    self.notice = Some(why.to_owned());
                }
                content
            }
        }
    }

    /// What has to stand in the log before what was just read, if anything: that lines are missing.
    pub fn notice(&mut self) -> Option<String> {
        self.notice.take()
    }

    /// That there is nothing to read, where the node has just said so.
    pub fn absent(&mut self) -> Option<NotThere> {
        self.file.absent.take()
    }

    /// Whether a file that is followed was found, since the command was last given.
    #[must_use]
    pub fn found(&self) -> bool {
        match &self.place {
            Place::Container { .. } | Place::Command { .. } => false,
            Place::File { .. } | Place::ContainerFile { .. } => self.file.begun(),
        }
    }

    /// Whether Docker is to give a line again that was read.
    #[must_use]
    pub fn expects(&self) -> bool {
        self.out.expected || self.err.expected
    }

    /// What the log holds before the first line that was read; `None` where nothing is known of any.
    #[must_use]
    pub fn older(&self) -> Option<Older> {
        match &self.place {
            Place::Container { .. } => {
                let older = self.first.oldest.as_ref() < self.first.earliest.as_ref();
                (older && self.first.oldest.is_some()).then_some(Older::Lines)
            }
            Place::File { .. } | Place::ContainerFile { .. } => self
                .file
                .first
                .filter(|from| *from > 0)
                .map(|from| Older::Bytes(Bytes(from))),
            Place::Command { .. } => None,
        }
    }

    /// Asks once whether Docker has lines from before the first that was read, where so many came that it may.
    pub fn ask_older(&mut self, limit: Duration) -> Option<Command> {
        let Place::Container { docker, name } = &self.place else {
            return None;
        };
        if self.first.asked || self.first.lines < ASK_FROM {
            return None;
        }
        self.first.asked = true;
        let args = vec![docker.clone(), self.first.earliest.clone()?, name.clone()];
        Some(Command::script(OLDER_ID, OLDER, args, limit))
    }

    /// Takes the answer to that.
    pub fn take_older(&mut self, output: &Output) {
        let text = output.text();
        let time = text
            .split_whitespace()
            .next()
            .filter(|time| time.parse::<Timestamp>().is_ok());
        self.first.oldest = time.map(str::to_owned);
    }

    /// Whether a line is what the shell says that runs a command of the user's own.
    #[must_use]
    pub fn shell_says(&self, line: &Line) -> bool {
        match &self.place {
            Place::Command { .. } => line.stream == Stream::Err && line.plain().starts_with(SHELL_SAYS),
            Place::Container { .. } | Place::File { .. } | Place::ContainerFile { .. } => false,
        }
    }

    /// Whether an unfinished line at the end comes again when the log is taken up: it is no line then.
    #[must_use]
    pub fn repeats(&self) -> bool {
        match &self.place {
            Place::Container { .. } | Place::Command { .. } => false,
            Place::File { .. } | Place::ContainerFile { .. } => true,
        }
    }

    /// Whether it goes on where it was left: what came and was not taken comes again with the next [`Self::command`].
    #[must_use]
    pub fn goes_on(&self) -> bool {
        match &self.place {
            Place::Container { .. } | Place::File { .. } | Place::ContainerFile { .. } => true,
            Place::Command { .. } => false,
        }
    }

    /// Bytes of the log came and could not be taken: a file is not taken up before them again.
    pub fn lost(&mut self, bytes: u64) {
        self.file.lost(bytes);
    }

    /// Whether a line was not seen before the command was last given.
    pub fn fresh(&mut self, line: &Line) -> bool {
        let Some(time) = &line.time else { return true };
        self.first.lines = self.first.lines.saturating_add(1).min(ASK_FROM);
        if self.first.earliest.as_ref().is_none_or(|earliest| time < earliest) {
            self.first.earliest = Some(time.clone());
        }
        let seen = match line.stream {
            Stream::Out => &mut self.out,
            Stream::Err => &mut self.err,
        };
        // Docker writes all its times with the same number of digits. A clock that was set back gives earlier times too, but none that was seen.
        let mark = mark(time, line);
        let seen_before = seen.last.as_ref().is_some_and(|last| time <= last) && seen.recent.contains(&mark);
        if seen_before && seen.last.as_ref() != Some(time) {
            seen.again = seen.last.clone();
        }
        let repeated = seen_before || seen.again.as_ref().is_some_and(|again| time <= again);
        let expected = std::mem::take(&mut seen.expected);
        if repeated {
            return false;
        }
        if let Some(last) = seen.last.as_ref().filter(|_| expected) {
            self.notice = Some(format!(
                "… lines after {last} are missing here: the log was rotated and Docker has them no more, or the container is another one"
            ));
        }
        seen.again = None;
        seen.last = Some(time.clone());
        if seen.recent.len() == RECENT {
            seen.recent.pop_front();
        }
        seen.recent.push_back(mark);
        true
    }

    /// Whether an earlier run of the user's own command has printed this line too: it is shown again, and what it says has been counted.
    pub fn told_before(&mut self, line: &Line) -> bool {
        match &self.place {
            Place::Command { .. } => self.runs.again(line),
            Place::Container { .. } | Place::File { .. } | Place::ContainerFile { .. } => false,
        }
    }

    /// The time from which `docker logs` is to begin again.
    fn since(&self) -> Option<String> {
        let last = self.out.last.as_ref().max(self.err.last.as_ref())?;
        let time: Timestamp = last.parse().ok()?;
        Some(time.saturating_sub(OVERLAP).ok()?.to_string())
    }
}

/// A script that follows something inside a container: its first words are Docker's program and the container's name, then come `args` more that are its
/// own. What `docker exec` starts there outlives its client; it ends with an input that the client keeps open.
pub(super) fn in_container(script: &str, args: usize) -> String {
    let script: String = script
        .split_inclusive('\n')
        .filter(|line| !line.trim_start().starts_with('#'))
        .collect();
    let inner = format!(
        "exec 4<&0\n(\n{script}) </dev/null 4<&- &\njob=$!\n{{ cat <&4 >/dev/null; kill \"$job\" 2>/dev/null; }} &\near=$!\nexec 4<&-\n\
         wait \"$job\"\ncode=$?\nkill \"$ear\" 2>/dev/null\nexit \"$code\"\n"
    );
    let own: String = (3..3 + args).map(|n| format!(" \"${n}\"")).collect();
    format!(
        "while echo; do sleep 5; done 2>/dev/null | $1 exec -i \"$2\" /bin/sh -c {} tail{own}\n",
        quote(&inner)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    fn line(stream: Stream, time: &str) -> Line {
        Line {
            stream,
            time: Some(time.into()),
            ..Line::default()
        }
    }

    #[test]
    fn docker_logs_go_on_where_they_stopped() {
        let mut log = Follower::new(Place::Container {
            docker: "docker".into(),
            name: "vllm-qwen35".into(),
        });
        assert_eq!(
            log.command(LIMIT).line(),
            "docker logs --timestamps --follow --tail 2000 vllm-qwen35"
        );
        let (a, b, c) = (
            "2026-11-29T17:04:55.000000001Z",
            "2026-11-29T17:04:55.000000002Z",
            "2026-11-29T17:04:56.000000000Z",
        );
        assert!(log.fresh(&line(Stream::Err, a)));
        let other = Line {
            time: Some(a.into()),
            ..Line::of(Stream::Err, "other")
        };
        assert!(log.fresh(&other), "two lines of one moment are two lines");
        assert!(!log.fresh(&other), "and one line twice is one");
        assert!(log.fresh(&line(Stream::Out, b)));
        assert_eq!(
            log.command(LIMIT).line(),
            "docker logs --timestamps --follow --since 2026-11-29T17:04:53.000000002Z vllm-qwen35"
        );
        assert!(!log.fresh(&line(Stream::Err, a)));
        assert!(!log.fresh(&line(Stream::Out, b)));
        assert!(log.fresh(&line(Stream::Err, b)), "each stream has its own last line");
        assert!(log.fresh(&line(Stream::Out, c)));
    }

    #[test]
    fn what_dockers_client_says_itself_is_known_by_its_words_and_by_the_time_that_it_lacks() {
        let own = [
            "Error response from daemon: No such container: vllm-qwen35",
            "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
            "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock",
            "docker: Error response from daemon: Conflict.",
            "Error: No such container: vllm-qwen35",
            "Error: No such object: vllm-qwen35",
            "Error: no container with name or ID \"vllm-qwen35\" found: no such container",
        ];
        for text in own {
            assert!(docker_says(&Line::of(Stream::Err, text)), "{text}");
            // A program in the container that uses Docker itself.
            let timed = Line {
                time: Some("2026-11-29T17:04:55.000000001Z".into()),
                ..Line::of(Stream::Err, text)
            };
            assert!(!docker_says(&timed) && !docker_says(&Line::of(Stream::Out, text)));
        }
        // The rest of a line whose beginning was lost.
        assert!(!docker_says(&Line::of(Stream::Err, "Error: CUDA out of memory")));
    }

    #[test]
    fn a_command_that_is_run_again_says_what_it_has_said_once() {
        let mut log = Follower::new(Place::Command { line: "cat x".into() });
        let mut run = |lines: &[&str]| -> Vec<bool> {
            log.command(LIMIT);
            lines
                .iter()
                .map(|l| log.told_before(&Line::of(Stream::Out, *l)))
                .collect()
        };
        assert_eq!(run(&["a", "b", "a"]), [false, false, false]);
        assert_eq!(run(&["a", "b", "a", "a", "c"]), [true, true, true, false, false]);
        assert_eq!(run(&[]), [] as [bool; 0]);
        assert_eq!(run(&["a", "a", "a", "a", "c"]), [true, true, true, false, true]);
        let many: Vec<String> = (0..2 * KNOWN_LINES).map(|n| n.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        run(&many);
        let again = run(&many).into_iter().filter(|again| *again).count();
        assert_eq!(again, KNOWN_LINES);
        let mut file = Follower::new(Place::File { path: "/x".into() });
        for _ in 0..2 {
            file.command(LIMIT);
            assert!(!file.told_before(&Line::of(Stream::Out, "a")));
        }
    }

    #[test]
    fn older_lines_are_asked_for_once_where_many_came_and_told_only_where_docker_has_one() {
        let mut log = Follower::new(Place::Container {
            docker: "sudo -n docker".into(),
            name: "c".into(),
        });
        log.command(LIMIT);
        let time = |n: u32| format!("2026-11-29T17:04:55.{n:09}Z");
        for n in 1..ASK_FROM {
            assert!(log.fresh(&line(Stream::Out, &time(n + 10))));
            assert_eq!(log.ask_older(LIMIT), None);
        }
        // The other stream began earlier.
        assert!(log.fresh(&line(Stream::Err, &time(5))));
        let asked = log.ask_older(LIMIT).unwrap();
        assert_eq!(asked.line(), format!("log.older 'sudo -n docker' {} c", time(5)));
        assert_eq!(log.ask_older(LIMIT), None);
        let mut older = |text: &str| {
            log.take_older(&Output {
                stdout: text.as_bytes().to_vec(),
                stderr: Vec::new(),
                dropped: 0,
                exit: crate::domain::command::Exit::Code(0),
                took: Duration::ZERO,
            });
            log.older()
        };
        assert_eq!(
            older(&format!("{} first\n", time(5))),
            None,
            "it is the first that was read"
        );
        assert_eq!(older(&format!("{} fir", time(4))), Some(Older::Lines));
        for nothing in [
            "",
            "Error response from daemon: No such container: c\n",
            "2026-11-29T17:0",
        ] {
            assert_eq!(older(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn a_file_says_how_much_of_it_was_not_read_and_that_it_is_not_there() {
        let mut log = Follower::new(Place::File { path: "/x".into() });
        log.command(LIMIT);
        assert_eq!(
            log.content(b"@@ none missing ls: cannot access '/x': No such file or directory\n@@ "),
            b""
        );
        let absent = log.absent().unwrap();
        assert_eq!(absent.why, "there is no such file");
        assert_eq!(
            absent.said.as_deref(),
            Some("ls: cannot access '/x': No such file or directory")
        );
        assert!(!log.found() && log.absent().is_none() && log.older().is_none());
        assert_eq!(log.content(b"from 0 7 0 \nall\n"), b"all\n");
        assert!(log.found() && log.older().is_none());
        let mut log = Follower::new(Place::File { path: "/x".into() });
        log.command(LIMIT);
        log.content(b"@@ from 100 7 0 \nrest\nline\n");
        assert_eq!(log.older(), Some(Older::Bytes(Bytes(100))));
        // Where it goes on is not its beginning.
        log.command(LIMIT);
        log.content(b"@@ from 300 7 0 \n");
        assert_eq!(log.older(), Some(Older::Bytes(Bytes(100))));
        // What else stands there is no log.
        let mut log = Follower::new(Place::File { path: "/x".into() });
        log.command(LIMIT);
        assert_eq!(log.content(b"OCI runtime exec failed: no /bin/sh\n"), b"");
        assert_eq!(
            log.absent(),
            Some(NotThere {
                why: "it can't be read",
                said: Some("OCI runtime exec failed: no /bin/sh".into()),
            })
        );
    }

    #[test]
    fn a_file_goes_on_after_its_last_whole_line() {
        let mut log = Follower::new(Place::File {
            path: "~/vllm.log".into(),
        });
        assert_eq!(log.command(LIMIT).line(), "log.file '~/vllm.log' - 524288 -");
        assert_eq!(log.content(b"@@ fro"), b"");
        assert_eq!(log.content(b"m 100 7 0 \nrest of a li"), b"");
        assert_eq!(log.content(b"ne\nwhole\npart"), b"whole\npart");
        // 100 + "rest of a line\n" + "whole\n"
        assert_eq!(log.command(LIMIT).line(), "log.file '~/vllm.log' 121 524288 7");
        assert_eq!(log.content(b"@@ from 121 7 0 \npartial\n"), b"partial\n");
        assert_eq!(log.command(LIMIT).line(), "log.file '~/vllm.log' 129 524288 7");
    }

    #[test]
    fn a_file_that_began_again_is_shown_from_its_start() {
        let mut log = Follower::new(Place::File { path: "/x".into() });
        log.command(LIMIT);
        log.content(b"@@ from 0 7 0 \nold\n");
        assert_eq!(log.notice(), None);
        log.command(LIMIT);
        assert_eq!(log.content(b"@@ from 0 7 0 cut\nnew\n"), b"new\n");
        assert!(log.notice().unwrap().contains("was cut"));
        assert_eq!(log.command(LIMIT).line(), "log.file /x 4 524288 7");
        log.content(b"@@ from 0 8 0 anew\n");
        assert!(log.notice().unwrap().contains("another file"));
    }

    #[test]
    fn what_an_earlier_file_still_held_comes_before_the_new_file() {
        let mut log = Follower::new(Place::File { path: "/x".into() });
        log.command(LIMIT);
        log.content(b"@@ from 0 7 0 \none\ntw");
        log.command(LIMIT);
        assert_eq!(log.content(b"@@ from 0 8 10 \ntwo\nth"), b"two\nth");
        assert_eq!(
            log.command(LIMIT).line(),
            "log.file /x 8 524288 7",
            "six of the ten bytes came, of which four are lines"
        );
        assert_eq!(log.content(b"@@ from 0 8 6 \nthree\nfour\nfi"), b"three\nfour\nfi");
        assert_eq!(log.command(LIMIT).line(), "log.file /x 5 524288 8");
        assert_eq!(log.notice(), None);
    }

    #[test]
    fn lines_that_docker_repeats_at_a_rotation_are_dropped_and_a_clock_set_back_is_not() {
        let mut log = Follower::new(Place::Container {
            docker: "docker".into(),
            name: "c".into(),
        });
        log.command(LIMIT);
        let mut fresh = |ms: u32| log.fresh(&line(Stream::Out, &format!("2026-11-29T17:04:50.{ms:03}000000Z")));
        let came = [1, 2, 2, 3, 2, 3, 4, 2, 3, 4, 5].map(&mut fresh);
        assert_eq!(
            came,
            [true, true, false, true, false, false, true, false, false, false, true]
        );
        let after_a_step = [0, 6].map(&mut fresh);
        assert_eq!(after_a_step, [true, true]);
    }

    #[test]
    fn lines_that_docker_has_no_more_are_told_once() {
        let mut log = Follower::new(Place::Container {
            docker: "docker".into(),
            name: "c".into(),
        });
        log.command(LIMIT);
        assert!(log.fresh(&line(Stream::Err, "2026-11-29T17:04:50.000000000Z")));
        assert!(log.fresh(&line(Stream::Out, "2026-11-29T17:04:55.000000000Z")));
        log.command(LIMIT);
        assert!(!log.fresh(&line(Stream::Out, "2026-11-29T17:04:55.000000000Z")));
        assert!(log.fresh(&line(Stream::Out, "2026-11-29T17:04:56.000000000Z")));
        // Its last line was too long ago to be asked for again.
        assert!(log.fresh(&line(Stream::Err, "2026-11-29T17:04:56.500000000Z")));
        assert_eq!(log.notice(), None);
        log.command(LIMIT);
        assert!(log.fresh(&line(Stream::Out, "2026-11-29T17:05:10.000000000Z")));
        let told = log.notice().unwrap();
        assert!(
            told.contains("after 2026-11-29T17:04:56.000000000Z are missing"),
            "{told}"
        );
        assert!(log.fresh(&line(Stream::Out, "2026-11-29T17:05:11.000000000Z")));
        assert_eq!(log.notice(), None);
    }
}
