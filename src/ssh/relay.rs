//! A host that only the key of the hop before it opens: commands, streams and tunnels run through the hop's own `ssh` client.
//!
//! One `ssh` on the hop holds the login (a ControlMaster, ssh_config(5)); its socket lies in a private directory there. It runs under the wrapper, so
//! that it ends with the console and takes the directory along. A command is an `ssh` on the hop that joins it and runs the same wrapper on the host
//! behind; a beat from there tells that the host is alive. A port is forwarded to a socket in the same directory: no TCP port is opened, and what
//! goes through it is no session, of which a server allows few.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{oneshot, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::door::{Between, Door};
use super::errors::{link_error, printable};
use super::known_hosts::host_name;
use super::pipe::{Chunks, pipe};
use super::session::{Chunk, Follow, Stream, exec, follow};
use super::settings::Target;
use super::spare::Spare;
use super::tunnel::TunnelError;
use crate::domain::command::{Command, Exit, Output, quote, quote_all};
use crate::domain::link::{LinkError, LinkErrorKind};
use crate::domain::wrap::BOOTSTRAP;

/// Longest text kept of what the hop's `ssh` says, in bytes.
const SAID: usize = 8192;

/// Longest wait for a port to be forwarded.
const FORWARD_LIMIT: Duration = Duration::from_secs(10);

/// Longest wait for the beat's script to begin.
const BEAT_LIMIT: Duration = Duration::from_secs(20);

/// Exit code of the master's script where no private directory could be made.
const NO_DIRECTORY: u32 = 126;

/// Exit code of a shell that found no such program.
const NO_PROGRAM: u32 = 127;

/// Keeps the login. `$1` is the longest wait for a connection in seconds, the rest goes to `ssh`: where to.
const MASTER: &str = r#"umask 077
d=$(mktemp -d "${TMPDIR:-/tmp}/bringup-XXXXXXXX") || exit 126
p=
trap '[ -z "$p" ] || kill "$p" 2>/dev/null; rm -rf "$d"' EXIT
trap 'exit 143' HUP INT TERM
limit=$1
shift
echo "at $d"
ssh -M -S "$d/s" -N -T -a -x -o BatchMode=yes -o ConnectTimeout="$limit" -o ServerAliveInterval=5 -o ServerAliveCountMax=3 \
  -o ControlPersist=no -o ClearAllForwardings=yes -o RemoteCommand=none -o PermitLocalCommand=yes -o LocalCommand='echo up' "$@" &
p=$!
wait "$p"
code=$?
p=
exit "$code"
"#;

/// Tells every two seconds that the host is alive: as often as other connections are asked.
const BEAT: &str = "echo; while sleep 2; do echo; done";

/// A login that the hop's `ssh` keeps.
pub(super) struct Relay {
    /// The private directory on the hop.
    directory: String,
    /// Where to, as `ssh` takes it.
    place: Vec<String>,
    /// Runs commands on the hop itself.
    hop: Arc<Door>,
    /// Ports that are forwarded already.
    forwarded: tokio::sync::Mutex<HashSet<(String, u16)>>,
    /// Why the login ended.
    ended: watch::Receiver<Option<String>>,
    _end: DropGuard,
}

impl Relay {
    /// Logs in from the hop.
    ///
    /// # Errors
    /// What the hop's `ssh` said, and what to do about it.
    pub(super) async fn start(
        hop: Arc<Door>,
        target: &Target,
        limit: Duration,
    ) -> Result<(Arc<Self>, Arc<Door>), LinkError> {
        let place = place(target);
        let args = [vec![limit.as_secs().max(1).to_string()], place.clone()].concat();
        let command = Command::script("ssh.master", MASTER, args, limit).follow();
        let (inlet, mut chunks) = pipe();
        let label = label(&hop, target);
        let mut master = follow(&hop, &command, inlet, None)
            .await
            .map_err(|exit| not_begun(&label, &exit))?;
        let mut said = Said::default();
        // `ssh` has a limit of its own for the connection; its login may take as long again.
        let up = tokio::time::timeout(limit * 2, async {
            while let Some(chunk) = chunks.recv().await {
                said.take(&chunk);
                if said.up() {
                    return true;
                }
            }
            false
        });
        match up.await {
            Ok(true) => {}
            Ok(false) => {
                let exit = master.wait().await;
                return Err(refused(&label, &hop.name, target, &said, &exit));
            }
            Err(_) => {
                let text = format!("{label}: no login within {} s", (limit * 2).as_secs());
                return Err(link_error(LinkErrorKind::Unreachable, text));
            }
        }
        let Some(directory) = said.directory() else {
            let text = format!("{label}: the hop did not say where its socket is");
            return Err(link_error(LinkErrorKind::Unreachable, text));
        };
        let end = CancellationToken::new();
        // Whatever goes wrong from here on, the master must not outlive this call.
        let guard = end.clone().drop_guard();
        let (tell, ended) = watch::channel(None);
        let tell = Arc::new(tell);
        tokio::spawn(keep(master, chunks, said, Arc::clone(&tell), end.clone()));
        let (beats, beat) = watch::channel(None);
        let door = Arc::new(Door {
            link: Arc::clone(&hop.link),
            name: target.name.clone(),
            exec: exec_line(&directory, &place),
            between: Some(Between {
                ended: ended.clone(),
                beat,
            }),
            spare: Spare::default(),
        });
        let begun = beating(&door, beats, tell, end).await;
        begun.map_err(|exit| not_begun(&label, &exit))?;
        let relay = Arc::new(Self {
            directory,
            place,
            hop,
            forwarded: tokio::sync::Mutex::default(),
            ended,
            _end: guard,
        });
        Ok((relay, door))
    }

    /// Whether the login is still there, as far as is known.
    pub(super) fn lives(&self) -> bool {
        self.ended.borrow().is_none() && self.hop.link.gone().is_none()
    }

    /// Resolves when the login is gone, with why.
    pub(super) async fn closed(&self) -> String {
        let mut ended = self.ended.clone();
        let why = ended.wait_for(Option::is_some).await.ok().and_then(|why| why.clone());
        why.unwrap_or_else(|| "the login through the hop's ssh ended".to_owned())
    }

    /// A socket on the hop that leads to a port of the host; made with the first call.
    ///
    /// # Errors
    /// What the hop's `ssh` said.
    pub(super) async fn socket(&self, host: &str, port: u16) -> Result<String, TunnelError> {
        let socket = format!("{}/{port}", self.directory);
        let mut forwarded = self.forwarded.lock().await;
        if forwarded.contains(&(host.to_owned(), port)) {
            return Ok(socket);
        }
        let words = [
            "ssh",
            "-F",
            "/dev/null",
            "-S",
            &self.control(),
            "-O",
            "forward",
            "-L",
            &format!("{socket}:{host}:{port}"),
        ];
        let words = words.into_iter().map(str::to_owned).chain(self.place.iter().cloned());
        let output = exec(&self.hop, &Command::argv(words, FORWARD_LIMIT), None).await;
        if !output.exit.ok() {
            return Err(TunnelError::NoChannel(format!(
                "{}: {}",
                self.hop.name,
                last_words(&output)
            )));
        }
        forwarded.insert((host.to_owned(), port));
        Ok(socket)
    }

    fn control(&self) -> String {
        format!("{}/s", self.directory)
    }
}

/// Where to, as words of an `ssh` command line.
fn place(target: &Target) -> Vec<String> {
    let mut words = Vec::new();
    // Its usual port may be another one by the hop's ssh_config.
    if let Some(port) = target.port.filter(|port| *port != 22) {
        words.extend(["-p".to_owned(), port.to_string()]);
    }
    if let Some(user) = &target.user {
        words.extend(["-l".to_owned(), user.clone()]);
    }
    words.push(target.host.clone());
    words
}

/// The exec string for the hop. It only joins the master: without one it must not log in by itself, nor take from the hop's ssh_config what the master
/// was denied. Every login shell reads single quotes alike, and `'\''` within them.
fn exec_line(directory: &str, place: &[String]) -> String {
    let quoted = BOOTSTRAP.replace('\'', "'\\''");
    format!(
        "exec ssh -F /dev/null -S {}/s -T -a -x -o BatchMode=yes -o ProxyCommand=false {} '{quoted}'",
        quote(directory),
        quote_all(place)
    )
}

fn label(hop: &Door, target: &Target) -> String {
    let user = target.user.as_ref().map(|u| format!("{u}@")).unwrap_or_default();
    format!("{} ({user}{} by the ssh of {})", target.name, target.host, hop.name)
}

/// Keeps the master until it ends or nobody wants it; it is read all the while.
async fn keep(
    mut master: Follow,
    mut chunks: Chunks,
    mut said: Said,
    tell: Arc<watch::Sender<Option<String>>>,
    end: CancellationToken,
) {
    let listen = async {
        while let Some(chunk) = chunks.recv().await {
            said.take(&chunk);
        }
        master.wait().await
    };
    let exit = tokio::select! {
        exit = listen => Some(exit),
        () = end.cancelled() => None,
    };
    let why = match exit {
        None => {
            master.stop().await;
            "closed by bringup".to_owned()
        }
        Some(Exit::Unknown(why) | Exit::NotStarted(why)) => why,
        Some(exit) => said
            .last()
            .unwrap_or_else(|| format!("the hop's ssh ended with {}", exit.word())),
    };
    over(&tell, why);
}

/// Tells why the login is over; the first reason stays.
fn over(tell: &watch::Sender<Option<String>>, why: String) {
    tell.send_if_modified(|told| {
        let first = told.is_none();
        told.get_or_insert(why);
        first
    });
}

/// Starts the beat, and waits for the first one.
async fn beating(
    door: &Arc<Door>,
    beats: watch::Sender<Option<Instant>>,
    tell: Arc<watch::Sender<Option<String>>>,
    end: CancellationToken,
) -> Result<(), Exit> {
    let (inlet, mut chunks) = pipe();
    let command = Command::script("ssh.beat", BEAT, Vec::new(), BEAT_LIMIT).follow();
    let mut follow = follow(door, &command, inlet, None).await?;
    let (first, begun) = oneshot::channel();
    tokio::spawn(async move {
        let mut first = Some(first);
        loop {
            tokio::select! {
                chunk = chunks.recv() => if chunk.is_none() { break },
                () = end.cancelled() => {
                    follow.stop().await;
                    return;
                }
            }
            beats.send_replace(Some(Instant::now()));
            if let Some(first) = first.take() {
                let _ = first.send(());
            }
        }
        // Without it nobody would know whether the host lives: the login is given up, and the master with it.
        let exit = follow.wait().await;
        over(&tell, format!("its sign of life ended with {}", exit.word()));
        end.cancel();
    });
    match tokio::time::timeout(BEAT_LIMIT, begun).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(Exit::Unknown("its first word did not come".to_owned())),
        Err(_) => Err(Exit::TimedOut),
    }
}

/// What the master has said so far.
#[derive(Default)]
struct Said {
    out: String,
    err: String,
}

impl Said {
    fn take(&mut self, chunk: &Chunk) {
        let text = match chunk.stream {
            Stream::Out => &mut self.out,
            Stream::Err => &mut self.err,
        };
        text.push_str(&String::from_utf8_lossy(&chunk.bytes));
        // The last words are those that tell.
        while text.len() > SAID {
            let line = text.find('\n').map_or(text.len(), |at| at + 1);
            text.drain(..line);
        }
    }

    fn up(&self) -> bool {
        self.out.lines().any(|l| l == "up") && self.out.ends_with('\n')
    }

    fn directory(&self) -> Option<String> {
        self.out.lines().find_map(|l| l.strip_prefix("at ")).map(str::to_owned)
    }

    fn last(&self) -> Option<String> {
        self.err.lines().map(printable).rfind(|l| !l.is_empty())
    }
}

fn last_words(output: &Output) -> String {
    let text = output.error_text();
    let last = text.lines().map(printable).rfind(|l| !l.is_empty());
    last.unwrap_or_else(|| format!("ssh ended with {}", output.exit.word()))
}

fn not_begun(label: &str, exit: &Exit) -> LinkError {
    let why = match exit {
        Exit::NotStarted(why) | Exit::Unknown(why) => why.clone(),
        Exit::TimedOut => "no answer in time".to_owned(),
        exit @ (Exit::Code(_) | Exit::Signal(_)) => format!("it ended with {}", exit.word()),
    };
    link_error(LinkErrorKind::Unreachable, format!("{label}: {why}"))
}

/// What the hop's `ssh` gave up for, by the words of OpenSSH's client.
fn refused(label: &str, hop: &str, target: &Target, said: &Said, exit: &Exit) -> LinkError {
    let last = said
        .last()
        .unwrap_or_else(|| format!("its ssh ended with {}", exit.word()));
    // The host's own banner comes before.
    let has = |words: &str| last.contains(words);
    let changed = said.err.contains("REMOTE HOST IDENTIFICATION HAS CHANGED");
    let by_hand = format!("log in once by hand, from {hop}:\nssh {}", quote_all(&place(target)));
    let (kind, text, fix) = if let Exit::Unknown(why) | Exit::NotStarted(why) = exit {
        (LinkErrorKind::ViaDown, why.clone(), None)
    } else if *exit == Exit::Code(NO_DIRECTORY) {
        let text = format!("no private directory could be made on {hop}: {last}");
        (LinkErrorKind::Local, text, None)
    } else if *exit == Exit::Code(NO_PROGRAM) {
        (LinkErrorKind::Local, format!("{hop} has no ssh client"), None)
    } else if changed {
        let name = quote(&host_name(&target.host, target.port.unwrap_or(22)));
        let forget = format!("if the host was set up anew, forget its old key, on {hop}:\nssh-keygen -R {name}");
        let text = format!("the host key is another one than {hop} has on file");
        (LinkErrorKind::HostKeyChanged, text, Some(forget))
    } else if has("Host key verification failed") {
        let text = format!("{hop} has no host key of it on file");
        (LinkErrorKind::HostKeyUnknown, text, Some(by_hand))
    } else if has("Permission denied") || has("Too many authentication failures") {
        let text = format!("it refuses the key of {hop}: {last}");
        (LinkErrorKind::Refused, text, Some(by_hand))
    } else {
        (LinkErrorKind::Unreachable, last, None)
    };
    LinkError {
        kind,
        text: format!("{label}: {text}"),
        fix,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target() -> Target {
        Target {
            name: "spark-2".into(),
            host: "192.168.200.13".into(),
            port: Some(2222),
            user: Some("aurora".into()),
            keys: Vec::new(),
            alias: false,
            direct: false,
        }
    }

    #[test]
    fn the_exec_string_carries_the_wrappers_first_line_through_two_shells() {
        let line = exec_line("/tmp/bringup-x", &place(&target()));
        let words = shlex::split(&line).unwrap();
        assert_eq!(words[..6], ["exec", "ssh", "-F", "/dev/null", "-S", "/tmp/bringup-x/s"]);
        assert_eq!(
            words[words.len() - 2..],
            ["192.168.200.13".to_owned(), BOOTSTRAP.to_owned()]
        );
        assert!(line.contains(" -p 2222 -l aurora "), "{line}");
    }

    #[test]
    fn what_openssh_says_becomes_a_kind_and_a_cure() {
        let cases = [
            (
                "aurora@192.168.200.13: Permission denied (publickey).\n",
                255,
                LinkErrorKind::Refused,
                "refuses the key of gate",
            ),
            (
                "No ED25519 host key is known for x and you have requested strict checking.\nHost key verification failed.\n",
                255,
                LinkErrorKind::HostKeyUnknown,
                "no host key of it",
            ),
            (
                "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.\n",
                255,
                LinkErrorKind::HostKeyChanged,
                "another one",
            ),
            (
                "ssh: connect to host 192.168.200.13 port 22: Connection refused\n",
                255,
                LinkErrorKind::Unreachable,
                "Connection refused",
            ),
            (
                "/bin/sh: 9: ssh: not found\n",
                127,
                LinkErrorKind::Local,
                "no ssh client",
            ),
            ("", 255, LinkErrorKind::Unreachable, "ended with 255"),
            (
                "mktemp: failed to create directory: No space left on device\n",
                NO_DIRECTORY,
                LinkErrorKind::Local,
                "No space left",
            ),
            (
                "Permission denied to strangers: a banner\nssh: connect to host x port 22: Connection timed out\n",
                255,
                LinkErrorKind::Unreachable,
                "timed out",
            ),
            (
                "mktemp: failed to create directory: No space left on device\n",
                126,
                LinkErrorKind::Local,
                "No space left",
            ),
            (
                "Permission denied to strangers: a banner\nssh: connect to host x port 22: Connection timed out\n",
                255,
                LinkErrorKind::Unreachable,
                "timed out",
            ),
        ];
        for (err, code, kind, part) in cases {
            let said = Said {
                out: String::new(),
                err: err.to_owned(),
            };
            let error = refused("spark-2", "gate", &target(), &said, &Exit::Code(code));
            assert_eq!(error.kind, kind, "{err}");
            assert!(error.text.contains(part), "{}", error.text);
        }
    }

    #[test]
    fn what_is_kept_of_the_masters_words_is_bounded() {
        let mut said = Said::default();
        for n in 0..10_000 {
            let bytes = bytes::Bytes::from(format!("line {n}\n"));
            said.take(&Chunk {
                stream: Stream::Err,
                bytes,
                dropped: 0,
            });
        }
        assert!(said.err.len() <= SAID);
        assert_eq!(said.last().as_deref(), Some("line 9999"));
    }
}
