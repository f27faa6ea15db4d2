//! A ProxyCommand: a program whose input and output are the wire to a host.
//!
//! It runs in a process group of its own, which ends with the connection; what it said last is part of what is told of a failure.

use std::io;
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, BufReader, Join, ReadBuf};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::errors::printable;
use super::wire::{Bytestream, Pulse};

/// How long it may take to end by itself once it is asked to.
const END_LIMIT: Duration = Duration::from_secs(2);

/// How often it is looked whether what it has started is gone.
const LOOK: Duration = Duration::from_millis(50);

/// How long its own words are waited for when the connection through it fails.
const WORDS_LIMIT: Duration = Duration::from_secs(2);

/// Longest line of it that is kept whole.
const MAX_LINE: u64 = 4096;

/// What the program says beside the wire.
pub(super) struct Words {
    ended: watch::Receiver<Option<String>>,
}

impl Words {
    /// Why it ended and what it said last, if it has ended by now or does in a moment.
    pub(super) async fn last(&self) -> Option<String> {
        let mut ended = self.ended.clone();
        let told = tokio::time::timeout(WORDS_LIMIT, ended.wait_for(Option::is_some)).await;
        told.ok()?.ok()?.clone()
    }
}

/// Starts the command, already expanded, as ssh does: through the operator's shell.
///
/// # Errors
/// A fragment.
pub(super) fn start(command: &str, pulse: &Arc<Pulse>) -> Result<(Box<dyn Bytestream>, Words), String> {
    let shell = std::env::var_os("SHELL").filter(|s| !s.is_empty());
    let mut child = Command::new(shell.unwrap_or_else(|| "/bin/sh".into()))
        .arg("-c")
        .arg(format!("exec {command}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|e| format!("the ProxyCommand `{command}` could not be started: {e}"))?;
    let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(format!("the ProxyCommand `{command}` has no pipes"));
    };
    let unwanted = CancellationToken::new();
    let (tell, ended) = watch::channel(None);
    tokio::spawn(watch_over(
        Group::of(child),
        stderr,
        unwanted.clone(),
        Arc::clone(pulse),
        tell,
    ));
    let stream = Piped {
        pipes: tokio::io::join(stdout, stdin),
        _end: unwanted.drop_guard(),
    };
    Ok((Box::new(stream), Words { ended }))
}

/// Reads what it says, and ends it when nobody wants it any more.
async fn watch_over(
    mut group: Group,
    stderr: ChildStderr,
    unwanted: CancellationToken,
    pulse: Arc<Pulse>,
    tell: watch::Sender<Option<String>>,
) {
    let last = Arc::new(Mutex::new(String::new()));
    let listening = tokio::spawn(listen(stderr, Arc::clone(&last)));
    let status = tokio::select! {
        status = group.child.wait() => status.ok(),
        // Where its output has ended the wire is dropped at once: it may be ending by itself, and its words say why.
        () = unwanted.cancelled() => tokio::time::timeout(OWN_END, group.child.wait()).await.ok().and_then(Result::ok),
    };
    let Some(status) = status else {
        group.end(Signal::TERM);
        let _ = tokio::time::timeout(END_LIMIT, group.child.wait()).await;
        group.end(Signal::KILL);
        let _ = group.child.wait().await;
        return;
    };
    // Its last words may still be in the pipe, which a grandchild may hold open.
    let _ = tokio::time::timeout(WORDS_LIMIT / 2, listening).await;
    let last = last.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let why = ending(status, &last);
    pulse.explain(&why);
    tell.send_replace(Some(why));
    // What it has started goes with it.
    group.end(Signal::TERM);
    let deadline = Instant::now() + END_LIMIT;
    while group.lives() {
        if Instant::now() >= deadline {
            group.end(Signal::KILL);
            return;
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn ending(status: ExitStatus, last: &str) -> String {
    if last.is_empty() {
        format!("the ProxyCommand ended ({status})")
    } else {
        format!("the ProxyCommand ended ({status}): {last}")
    }
}

/// Keeps the last line that is not empty.
async fn listen(stderr: ChildStderr, last: Arc<Mutex<String>>) {
    let mut reader = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut reader).take(MAX_LINE).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let text = printable(&String::from_utf8_lossy(&line));
        if !text.is_empty() {
            *last.lock().unwrap_or_else(PoisonError::into_inner) = text;
        }
    }
}

/// How long a program that is not wanted any more has to end by itself.
const OWN_END: Duration = Duration::from_millis(300);

/// The program and what it has started.
struct Group {
    child: Child,
    id: Option<Pid>,
}

impl Group {
    fn of(child: Child) -> Self {
        let id = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        Self { child, id }
    }

    /// Whether a process of it is left.
    fn lives(&self) -> bool {
        self.id.is_some_and(|id| test_kill_process_group(id).is_ok())
    }

    /// Signals all of it. A group without a process is none: its number is not given out again while one of them lives.
    fn end(&self, signal: Signal) {
        if let Some(id) = self.id {
            let _ = kill_process_group(id, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The console's runtime is going: nobody waits any more.
        if self.child.id().is_some() {
            self.end(Signal::TERM);
        }
    }
}

/// The program's output and input; the program ends with it.
struct Piped {
    pipes: Join<ChildStdout, ChildStdin>,
    _end: DropGuard,
}

impl AsyncRead for Piped {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.pipes).poll_read(cx, buf)
    }
}

impl AsyncWrite for Piped {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.pipes).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.pipes).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.pipes).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    #[tokio::test]
    async fn its_input_and_output_are_the_wire() {
        let pulse = Pulse::new();
        let (mut stream, _words) = start("cat", &pulse).unwrap();
        stream.write_all(b"hello").await.unwrap();
        let mut read = [0; 5];
        stream.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"hello");
        assert_eq!(pulse.why(), None);
    }

    #[tokio::test]
    async fn its_end_is_told_with_what_it_said_last() {
        let pulse = Pulse::new();
        let (_stream, words) = start("sh -c 'echo one >&2; echo; echo \"no route\" >&2; exit 7'", &pulse).unwrap();
        let said = words.last().await.unwrap();
        assert_eq!(said, "the ProxyCommand ended (exit status: 7): no route");
        assert_eq!(pulse.why(), Some(said));
    }

    #[tokio::test]
    async fn what_it_has_started_ends_with_the_stream() {
        let (mut stream, words) = start("sh -c 'sleep 1000 & echo $!; wait'", &Pulse::new()).unwrap();
        let mut line = String::new();
        BufReader::new(&mut stream).read_line(&mut line).await.unwrap();
        let id = Pid::from_raw(line.trim().parse().unwrap()).unwrap();
        assert!(rustix::process::test_kill_process(id).is_ok());
        drop(stream);
        // Its watcher goes last of all.
        let mut ended = words.ended.clone();
        while ended.changed().await.is_ok() {}
        let gone = || match std::fs::read_to_string(format!("/proc/{}/stat", id.as_raw_nonzero())) {
            Ok(stat) => stat.contains(") Z "),
            Err(_) => rustix::process::test_kill_process(id).is_err(),
        };
        tokio::time::timeout(END_LIMIT, async {
            while !gone() {
                tokio::task::yield_now().await;
            }
        })
        .await
        .unwrap();
    }
}
