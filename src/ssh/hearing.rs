//! What is heard of one command on its channel, until it has ended.

use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use russh::{ChannelMsg, ChannelReadHalf};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::door::Door;
use super::errors::printable;
use super::session::Stream;
use crate::domain::command::Exit;
use crate::domain::wrap::Preamble;

/// How long the rest of the output may take after the exit status: a child that was left in the background can hold it open for ever.
const REST_LIMIT: Duration = Duration::from_secs(2);

/// Exit code by which an `ssh` in between says that it failed itself (ssh(1), exit status).
const SSH_FAILED: u32 = 255;

/// Messages taken in one turn: the library holds as many before it makes the whole connection wait.
const TURN: usize = 100;

/// SSH's number of the stream that carries stderr.
const STDERR: u32 = 1;

/// Takes what a command says. It must not wait.
pub(super) trait Ear: Send {
    /// The script begins.
    fn began(&mut self) {}
    /// Bytes of one of its outputs.
    fn take(&mut self, stream: Stream, bytes: Bytes);
    /// Nothing more has come for now.
    fn pause(&mut self) {}
    /// Tells when the command is to be held on the node, and when it is to go on; `None` for one that never is.
    fn hold(&self) -> Option<watch::Receiver<bool>> {
        None
    }
}

/// Why listening ended.
pub(super) enum Heard {
    Closed,
    Stopped(Exit),
    Hopeless,
    Refused,
}

/// What has been heard of one command.
pub(super) struct Hearing {
    pub(super) out: Preamble,
    err: Preamble,
    pub(super) exit: Option<(Exit, Instant)>,
}

impl Hearing {
    pub(super) fn new(nonce: &str) -> Self {
        Self {
            out: Preamble::new(nonce),
            err: Preamble::new(nonce),
            exit: None,
        }
    }

    pub(super) fn take(&mut self, message: ChannelMsg, ear: &mut impl Ear, begin: &Notify) -> Option<Heard> {
        if let Some(exit) = exit_of(&message) {
            self.exit.get_or_insert((exit, Instant::now()));
            return None;
        }
        let (stream, preamble, data) = match message {
            ChannelMsg::Data { data } => (Stream::Out, &mut self.out, data),
            ChannelMsg::ExtendedData { data, ext: STDERR } => (Stream::Err, &mut self.err, data),
            ChannelMsg::Failure => return Some(Heard::Refused),
            ChannelMsg::Close => return Some(Heard::Closed),
            _ => return None,
        };
        if preamble.passed() {
            // As it came, without a copy: a busy log is most of what a console reads.
            ear.take(stream, data);
            return None;
        }
        let own = preamble.feed(&data);
        if stream == Stream::Out && preamble.passed() {
            begin.notify_one();
            ear.began();
        }
        if !own.is_empty() {
            ear.take(stream, own.into());
        }
        preamble.hopeless().then_some(Heard::Hopeless)
    }

    /// Takes what has come already, at most [`TURN`] messages.
    pub(super) fn take_waiting(
        &mut self,
        read: &mut ChannelReadHalf,
        ear: &mut impl Ear,
        begin: &Notify,
    ) -> Option<Heard> {
        for _ in 0..TURN {
            let heard = match read.wait().now_or_never()? {
                Some(message) => self.take(message, ear, begin),
                None => Some(Heard::Closed),
            };
            if heard.is_some() {
                return heard;
            }
        }
        None
    }

    /// Resolves some time after the exit status.
    pub(super) async fn patience(&self) {
        match &self.exit {
            Some((_, at)) => tokio::time::sleep_until(*at + REST_LIMIT).await,
            None => std::future::pending().await,
        }
    }

    /// The exit when the channel is closed.
    pub(super) async fn exit(self, door: &Door) -> Exit {
        let (link, name) = (&door.link, door.name.as_str());
        match self.exit.clone() {
            Some((exit, _)) => {
                let lost = match exit {
                    Exit::Code(SSH_FAILED) => door.lost_within(REST_LIMIT).await,
                    _ => None,
                };
                match lost {
                    Some(why) => self.lost(name, &why),
                    None if self.out.passed() => exit,
                    None => Exit::NotStarted(self.never_began(name, &exit)),
                }
            }
            None => {
                // The end of the connection closes its channels a moment before it is told.
                let why = tokio::time::timeout(REST_LIMIT, link.closed()).await;
                let why = why.unwrap_or_else(|_| "the channel was closed without an exit status".to_owned());
                self.lost(name, &why)
            }
        }
    }

    /// The exit of a command whose connection went.
    fn lost(&self, name: &str, why: &str) -> Exit {
        if self.out.passed() {
            Exit::Unknown(format!("{name}: {why}"))
        } else {
            Exit::NotStarted(format!("{name}: before it began: {why}"))
        }
    }

    fn never_began(&self, name: &str, exit: &Exit) -> String {
        let noise = [self.err.noise(), self.out.noise()].concat();
        let text = String::from_utf8_lossy(&noise);
        let last = text.lines().map(printable).rfind(|l| !l.is_empty());
        let said = last.map(|l| format!(": {l}")).unwrap_or_default();
        format!("{name}: the login shell ran no command (exit {}){said}", exit.word())
    }
}

/// The exit that a message tells.
pub(super) fn exit_of(message: &ChannelMsg) -> Option<Exit> {
    match message {
        ChannelMsg::ExitStatus { exit_status } => Some(Exit::Code(*exit_status)),
        ChannelMsg::ExitSignal { signal_name, .. } => Some(Exit::Signal(signal(signal_name))),
        _ => None,
    }
}

fn signal(name: &russh::Sig) -> String {
    match name {
        russh::Sig::Custom(name) => printable(name),
        other => format!("{other:?}"),
    }
}
