//! One exec channel of a simulated node: reads the command's frame, asks the world, and writes the answer.
//!
//! Two tasks a channel: one reads whatever comes and never waits for anything else (an unread channel would stall the whole connection), the other
//! writes and may wait for the client's window.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use russh::server::Msg;
use russh::{Channel, ChannelMsg, ChannelReadHalf, ChannelWriteHalf};
use tokio::sync::watch;

use crate::domain::cadence;
use crate::domain::wrap::{self, BOOTSTRAP, Frame};
use crate::probe;

use super::answer::{Answer, Readings, Tail, Write};
use super::clock::Moment;
use super::commands;
use super::probes;
use super::shared::Shared;

/// Longest standard input that is kept while a frame is not complete.
const MAX_INPUT: usize = 2 * wrap::MAX_SCRIPT;

/// Longest line with a secret.
const MAX_SECRET: usize = 16 * 1024;

/// Lines of a log that are sent in one write.
const LINES_AT_ONCE: usize = 64;

/// Exit code of a command that was ended: 128 and SIGTERM.
const ENDED: u32 = 143;

/// Exit code of the wrapper when the frame is none.
const BAD_FRAME: u32 = 125;

/// What the reading task has seen.
#[derive(Debug, Clone, Default)]
struct Heard {
    /// The frame, once it is complete.
    frame: Option<Arc<Frame>>,
    /// The line after it, when that holds a secret.
    secret: Option<Arc<str>>,
    /// The bytes are no frame.
    bad: bool,
    /// Standard input is over: the console has gone or ends the command.
    ended: bool,
    /// The channel is closed, or its connection is gone.
    closed: bool,
    /// Counts what came after the frame.
    beats: u64,
}

/// Runs what an exec request asks for on a node (`None`: on the jump host, which has neither docker nor a world). `place` is its place among the
/// connection's channels.
pub async fn run(
    shared: Arc<Shared>,
    node: Option<usize>,
    channel: Channel<Msg>,
    command: Vec<u8>,
    place: impl Send + 'static,
) {
    let (read, write) = channel.split();
    let framed = command == BOOTSTRAP.as_bytes();
    let (tell, heard) = watch::channel(Heard::default());
    let reader = shared.tasks.spawn(listen(read, tell, framed));
    let code = if framed {
        follow_frame(&shared, node, &write, heard).await
    } else {
        let (answer, asked) = commands::plain(&shared, node, &String::from_utf8_lossy(&command));
        let mut gone = heard;
        tokio::select! {
            code = give(&shared, &write, answer, asked) => code,
            _ = gone.wait_for(|h| h.closed) => None,
            () = shared.cancel.cancelled() => None,
        }
    };
    if let Some(code) = code {
        // The order in which sshd sends them; a client that has gone is told nothing.
        let _ = write.exit_status(code).await;
        let _ = write.eof().await;
    }
    // Free before the client knows: it may open another channel at once.
    drop(place);
    let _ = write.close().await;
    // russh does not tell a channel that this side has closed of the other side's close.
    reader.abort();
}

/// Writes to stdout or stderr; `None` when the client has gone.
async fn put(write: &ChannelWriteHalf<Msg>, err: bool, text: String) -> Option<()> {
    let bytes = Bytes::from(text);
    let sent = if err {
        write.extended_data_bytes(1, bytes).await
    } else {
        write.data_bytes(bytes).await
    };
    sent.ok()
}

/// The reading task.
async fn listen(mut read: ChannelReadHalf, tell: watch::Sender<Heard>, framed: bool) {
    let mut input: Vec<u8> = Vec::new();
    let mut done = !framed;
    while let Some(message) = read.wait().await {
        match message {
            ChannelMsg::Data { data } if done => {
                tell.send_modify(|h| h.beats = h.beats.wrapping_add(u64::from(!data.is_empty())))
            }
            ChannelMsg::Data { data } => {
                input.extend_from_slice(&data);
                match complete(&input) {
                    Ok(Some((frame, secret))) => {
                        done = secret.is_some() || !frame.header.secret;
                        if done {
                            input = Vec::new();
                        }
                        tell.send_modify(|h| {
                            h.frame = Some(Arc::new(frame));
                            h.secret = secret.map(Arc::from);
                        });
                    }
                    Ok(None) if input.len() <= MAX_INPUT => {}
                    Ok(None) | Err(()) => {
                        done = true;
                        input = Vec::new();
                        tell.send_modify(|h| h.bad = true);
                    }
                }
            }
            ChannelMsg::Eof => tell.send_modify(|h| h.ended = true),
            ChannelMsg::Close => break,
            _ => {}
        }
    }
    tell.send_modify(|h| {
        h.ended = true;
        h.closed = true;
    });
}

/// The frame once it is there, and the secret after it once that is; the console sends that when it has seen the nonce.
fn complete(input: &[u8]) -> Result<Option<(Frame, Option<String>)>, ()> {
    let Some(frame) = wrap::parse_frame(input).map_err(|_| ())? else {
        return Ok(None);
    };
    if !frame.header.secret {
        return Ok(Some((frame, None)));
    }
    let rest = input.get(frame.consumed..).unwrap_or_default();
    match rest.iter().position(|b| *b == b'\n') {
        Some(end) => {
            let line = String::from_utf8_lossy(rest.get(..end).unwrap_or_default()).into_owned();
            Ok(Some((frame, Some(line))))
        }
        None if rest.len() > MAX_SECRET => Err(()),
        None => Ok(Some((frame, None))),
    }
}

/// Resolves when the command must end although it is not over: its input has ended, nobody has been heard for too long, or its time is up.
async fn ending(mut heard: watch::Receiver<Heard>, silence: Duration, limit: Option<Duration>) {
    let stop = async {
        match limit {
            Some(limit) => tokio::time::sleep(limit).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(stop);
    loop {
        if heard.borrow_and_update().ended {
            return;
        }
        tokio::select! {
            changed = tokio::time::timeout(silence, heard.changed()) => match changed {
                Ok(Ok(())) => {}
                // Silence, or the reader is gone.
                Err(_) | Ok(Err(_)) => return,
            },
            () = &mut stop => return,
        }
    }
}

/// Waits for the frame, says its nonce, and gives the answer. `None` when nobody is left to be told how it ended.
async fn follow_frame(
    shared: &Arc<Shared>,
    node: Option<usize>,
    write: &ChannelWriteHalf<Msg>,
    mut heard: watch::Receiver<Heard>,
) -> Option<u32> {
    let frame = {
        let seen = tokio::select! {
            seen = heard.wait_for(|h| h.frame.is_some() || h.bad || h.ended) => seen.ok()?.clone(),
            () = shared.cancel.cancelled() => return None,
        };
        match seen.frame {
            Some(frame) => frame,
            None if seen.bad => return Some(BAD_FRAME),
            None => return None,
        }
    };
    let header = &frame.header;
    for err in [false, true] {
        put(write, err, format!("{}\n", header.nonce)).await?;
    }
    let secret = if header.secret {
        let seen = tokio::select! {
            seen = heard.wait_for(|h| h.secret.is_some() || h.bad || h.ended) => seen.ok()?.secret.clone(),
            () = shared.cancel.cancelled() => return None,
        };
        match seen {
            Some(secret) => Some(secret),
            None => return Some(BAD_FRAME),
        }
    } else {
        None
    };
    let silence = Duration::from_secs(header.silence_seconds.max(1));
    let limit = (header.limit_seconds > 0).then(|| Duration::from_secs(header.limit_seconds));
    let (answer, asked) = commands::answer(shared, node, &frame.script, secret.as_deref());
    tokio::select! {
        code = give(shared, write, answer, asked) => code,
        () = ending(heard, silence, limit) => Some(ENDED),
        () = shared.cancel.cancelled() => None,
    }
}

/// Gives an answer to a command that came at `asked`.
async fn give(shared: &Shared, write: &ChannelWriteHalf<Msg>, answer: Answer, asked: Moment) -> Option<u32> {
    match answer {
        Answer::Once { writes, after, code } => {
            for Write { after, err, text } in writes {
                tokio::time::sleep_until(shared.clock.instant(asked.saturating_add(after))).await;
                put(write, err, text).await?;
            }
            tokio::time::sleep_until(shared.clock.instant(asked.saturating_add(after))).await;
            Some(code)
        }
        Answer::Log(tail) => follow_log(shared, write, tail).await,
        Answer::Readings(readings) => follow_readings(shared, write, readings).await,
        Answer::Members { container, port } => follow_members(shared, write, &container, &port).await,
        Answer::Silence { out, err } => {
            put(write, false, out).await?;
            put(write, true, err).await?;
            std::future::pending().await
        }
    }
}

/// Sends a node's readings at the paces of a real one.
async fn follow_readings(shared: &Shared, write: &ChannelWriteHalf<Msg>, readings: Readings) -> Option<u32> {
    let mut tick = tokio::time::interval(cadence::MEMORY_EVERY);
    let mut passed = Duration::ZERO;
    loop {
        tick.tick().await;
        let text = shared.with(|world, now| probes::records(world, &readings, passed, now))?;
        put(write, false, text).await?;
        passed = passed.saturating_add(cadence::MEMORY_EVERY);
    }
}

/// Sends Ray's membership at the pace of the real program, for as long as there is a Ray.
async fn follow_members(shared: &Shared, write: &ChannelWriteHalf<Msg>, container: &str, port: &str) -> Option<u32> {
    let mut tick = tokio::time::interval(probe::ray::EVERY);
    loop {
        tick.tick().await;
        match shared.with(|world, now| probes::members(world, container, port, now)) {
            Ok(record) => put(write, false, record).await?,
            Err((why, code)) => {
                put(write, true, why).await?;
                return Some(code);
            }
        }
    }
}

/// What a log has for a reader.
struct Piece {
    out: String,
    err: String,
    next: u64,
    next_at: Option<Moment>,
    over: bool,
}

fn piece(shared: &Shared, tail: &Tail, from: u64) -> Option<Piece> {
    shared.with(|world, now| {
        let calendar = world.calendar;
        let container = world
            .hosts
            .iter()
            .flat_map(|h| &h.containers)
            .find(|c| c.id == tail.container)?;
        let (lines, next) = container.log.read(from, now, LINES_AT_ONCE);
        let (mut out, mut err) = (String::new(), String::new());
        for line in &lines {
            let to = if line.err && !tail.merged { &mut err } else { &mut out };
            if tail.dates {
                to.push_str(&calendar.docker(line.at));
                to.push(' ');
            }
            to.push_str(&line.text);
            to.push('\n');
        }
        let ends = container.end.map(|e| e.at);
        let next_at = [container.log.next_at(now), ends].into_iter().flatten().min();
        Some(Piece {
            out,
            err,
            next,
            next_at,
            over: lines.is_empty() && (!tail.follow || !container.runs(now)),
        })
    })
}

/// Sends a container's log, and goes on with it until the container ends or is removed.
async fn follow_log(shared: &Shared, write: &ChannelWriteHalf<Msg>, tail: Tail) -> Option<u32> {
    let mut changes = shared.changes();
    let mut from = tail.from;
    loop {
        changes.mark_unchanged();
        let Some(piece) = piece(shared, &tail, from) else {
            return Some(0);
        };
        if piece.over {
            return Some(0);
        }
        from = piece.next;
        if piece.out.is_empty() && piece.err.is_empty() {
            shared.until(piece.next_at, &mut changes).await;
            if shared.cancel.is_cancelled() {
                return None;
            }
            continue;
        }
        for (err, text) in [(false, piece.out), (true, piece.err)] {
            if !text.is_empty() {
                put(write, err, text).await?;
            }
        }
    }
}
