//! One command on one channel, from the first byte sent to the last one read.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::Duration;

use bytes::Bytes;
use russh::client::Msg;
use russh::{ChannelReadHalf, ChannelWriteHalf};
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::{Notify, watch};
use zeroize::Zeroizing;

use super::channel::{Stop, channel};
use super::door::Door;
use super::hearing::{Ear, Heard, Hearing, exit_of};
use super::link::SILENT_AFTER;
use super::slots::Slot;
use super::spare::Ready;
use crate::domain::command::{Command, Exit};
use crate::domain::time::human;
use crate::domain::wrap::{GO, HEARTBEAT, HOLD, MAX_SCRIPT, frame, job};

/// How long a command that was told to end may take before its channel is closed over it; the wrapper kills within two of its ticks.
const END_LIMIT: Duration = Duration::from_secs(15);

/// How a conversation with a command ended.
pub(super) struct Ending {
    pub(super) exit: Exit,
    /// The channel, if the command may still be running on it.
    pub(super) rest: Option<Rest>,
}

impl From<Exit> for Ending {
    fn from(exit: Exit) -> Self {
        Self { exit, rest: None }
    }
}

/// A channel whose command must be ended.
pub(super) struct Rest {
    read: ChannelReadHalf,
    write: ChannelWriteHalf<Msg>,
    slot: Slot,
}

impl Rest {
    pub(super) fn new(read: ChannelReadHalf, write: ChannelWriteHalf<Msg>, slot: Slot) -> Self {
        Self { read, write, slot }
    }

    /// Closes the channel. It is not read any more by then: the connection's loop waits for a reader that is there and does not read.
    async fn close(self) {
        let Self { read, write, slot } = self;
        drop(read);
        let _ = write.close().await;
        drop(slot);
    }

    /// Sends the end of file, on which the wrapper ends the command, and reads until the channel is closed. Gives the exit, if one came.
    pub(super) async fn end(mut self) -> Option<Exit> {
        let mut exit = None;
        let drain = async {
            if self.write.eof().await.is_err() {
                return;
            }
            while let Some(message) = self.read.wait().await {
                exit = exit_of(&message).or(exit.take());
            }
        };
        let _ = tokio::time::timeout(END_LIMIT, drain).await;
        if exit.is_some() {
            self.slot = self.slot.told();
        }
        self.close().await;
        exit
    }
}

/// Runs a command under the wrapper and gives `ear` what it says, until it ends or `stop` fires.
pub(super) async fn converse(
    door: &Door,
    command: &Command,
    secret: Option<SecretString>,
    ear: &mut impl Ear,
    stop: Stop<'_>,
) -> Ending {
    let not_started = |why: String| Ending::from(Exit::NotStarted(format!("{}: {why}", door.name)));
    let nonce = nonce();
    if frame(command, &nonce).len() > MAX_SCRIPT {
        return not_started("the script is too long".to_owned());
    }
    let secret = match checked(command, secret) {
        Ok(line) => line,
        Err(why) => return not_started(why.to_owned()),
    };
    let spare = tokio::select! {
        spare = door.spare.take() => spare,
        _ = stop.wait() => return not_started("no answer to a channel request".to_owned()),
    };
    if let Some(ready) = spare {
        let talk = Talk {
            door,
            exec: None,
            bytes: job(command, &nonce),
            secret: secret.as_ref(),
            nonce: &nonce,
        };
        match talk.run(ready, ear, &stop).await {
            // Its wrapper was gone already: nothing has begun.
            Talked::NotBegun(_) => {}
            Talked::Over(ending) => return ending,
        }
    }
    let (channel, slot) = match channel(&door.link, &stop).await {
        Ok(opened) => opened,
        Err(why) => return not_started(why),
    };
    let (read, write) = channel.split();
    let ready = Ready {
        read,
        write,
        slot,
        heard: Vec::new(),
    };
    let talk = Talk {
        door,
        exec: Some(&door.exec),
        bytes: frame(command, &nonce),
        secret: secret.as_ref(),
        nonce: &nonce,
    };
    match talk.run(ready, ear, &stop).await {
        Talked::NotBegun(exit) => exit.into(),
        Talked::Over(ending) => ending,
    }
}

/// One conversation on one channel.
struct Talk<'a> {
    door: &'a Door,
    /// The exec request, where none was made yet.
    exec: Option<&'a str>,
    bytes: Vec<u8>,
    secret: Option<&'a Zeroizing<Vec<u8>>>,
    nonce: &'a str,
}

/// How it ended.
enum Talked {
    /// The channel was closed before the script began, as this exit says.
    NotBegun(Exit),
    Over(Ending),
}

impl Talk<'_> {
    async fn run(self, ready: Ready, ear: &mut impl Ear, stop: &Stop<'_>) -> Talked {
        let Ready {
            mut read,
            write,
            slot,
            heard,
        } = ready;
        let (door, nonce) = (self.door, self.nonce);
        let mut hearing = Hearing::new(nonce);
        let begin = Notify::new();
        let heard = {
            let speaking = self.speak(&write, &begin, ear.hold());
            tokio::pin!(speaking);
            let stopped = stop.wait();
            tokio::pin!(stopped);
            let mut earlier = heard.into_iter();
            loop {
                if let Some(message) = earlier.next() {
                    let heard = hearing.take(message, ear, &begin);
                    ear.pause();
                    match heard {
                        Some(heard) => break heard,
                        None => continue,
                    }
                }
                tokio::select! {
                    message = read.wait() => match message {
                        Some(message) => {
                            // With what came behind it: a busy log's lines come one by one, and everything else here is looked at after each turn.
                            let heard = match hearing.take(message, ear, &begin) {
                                None => hearing.take_waiting(&mut read, ear, &begin),
                                heard => heard,
                            };
                            ear.pause();
                            if let Some(heard) = heard { break heard }
                        }
                        None => break Heard::Closed,
                    },
                    () = &mut speaking => {}
                    exit = &mut stopped => break Heard::Stopped(exit),
                    () = hearing.patience() => break Heard::Closed,
                }
            }
        };
        let slot = if hearing.exit.is_some() { slot.told() } else { slot };
        let rest = Rest { read, write, slot };
        let left = |why: &str, rest| {
            Talked::Over(Ending {
                exit: Exit::NotStarted(format!("{}: {why}", door.name)),
                rest: Some(rest),
            })
        };
        match heard {
            Heard::Stopped(_) if !hearing.out.passed() => {
                let quiet = door.quiet_for();
                if quiet > SILENT_AFTER {
                    left(&format!("it has not answered for {}", human(quiet)), rest)
                } else {
                    left("the login shell did not run it in time", rest)
                }
            }
            Heard::Stopped(exit) => Talked::Over(Ending { exit, rest: Some(rest) }),
            Heard::Hopeless => left("the login shell prints without end", rest),
            Heard::Refused => left("it refuses to run commands", rest),
            Heard::Closed => {
                rest.close().await;
                let begun = hearing.out.passed();
                let exit = hearing.exit(door).await;
                if begun {
                    Talked::Over(exit.into())
                } else {
                    Talked::NotBegun(exit)
                }
            }
        }
    }

    /// Sends the request and the frame, the line that lets the script begin once the wrapper is there, then the heartbeat, and when the script is to be
    /// held, for as long as the future is polled.
    async fn speak(self, write: &ChannelWriteHalf<Msg>, begin: &Notify, mut hold: Option<watch::Receiver<bool>>) {
        let sent = async {
            if let Some(exec) = self.exec {
                write.exec(true, exec).await?;
            }
            write.data_bytes(self.bytes).await?;
            begin.notified().await;
            if let Some(secret) = self.secret {
                write.data(secret.as_slice()).await?;
            }
            let mut word = "\n";
            loop {
                write.data_bytes(Bytes::from_static(word.as_bytes())).await?;
                word = match tokio::time::timeout(HEARTBEAT, changed(&mut hold)).await {
                    Ok(true) => HOLD,
                    Ok(false) => GO,
                    Err(_) => "\n",
                };
            }
        };
        let _: Result<(), russh::Error> = sent.await;
        // Sending ends only with the connection, and reading tells that.
        std::future::pending().await
    }
}

/// Resolves when the command is to be held, or to go on.
async fn changed(hold: &mut Option<watch::Receiver<bool>>) -> bool {
    if let Some(hold) = hold
        && hold.changed().await.is_ok()
    {
        return *hold.borrow_and_update();
    }
    std::future::pending().await
}

/// The secret for a command that wants one.
fn checked(command: &Command, secret: Option<SecretString>) -> Result<Option<Zeroizing<Vec<u8>>>, &'static str> {
    match (&command.secret, secret) {
        (None, _) => Ok(None),
        (Some(_), None) => Err("the secret that the command needs is not there"),
        (Some(_), Some(secret)) if secret.expose_secret().contains(['\n', '\0']) => {
            Err("the secret holds a line break")
        }
        (Some(_), Some(secret)) => Ok(Some(Zeroizing::new(secret.expose_secret().as_bytes().to_vec()))),
    }
}

/// Something that no login shell prints.
fn nonce() -> String {
    // The standard library's hashers are seeded by the system.
    let random = || RandomState::new().hash_one(0);
    format!("{:016x}{:016x}", random(), random())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::secret::{SecretEnv, SecretFrom};

    #[test]
    fn a_secret_is_one_line_and_goes_only_where_it_is_wanted() {
        let plain = Command::argv(["true"], Duration::from_secs(1));
        let wants = plain.clone().with_secret(Some(SecretEnv {
            name: "T".into(),
            from: SecretFrom::Variable("T".into()),
        }));
        let secret = || Some(SecretString::from("s3 cret"));
        assert_eq!(checked(&plain, secret()), Ok(None));
        assert_eq!(checked(&wants, secret()).unwrap().unwrap().as_slice(), b"s3 cret");
        assert!(checked(&wants, None).is_err());
        assert!(checked(&wants, Some(SecretString::from("a\nb"))).is_err());
    }

    #[test]
    fn nonces_differ_and_are_hexadecimal() {
        let (a, b) = (nonce(), nonce());
        assert_ne!(a, b);
        assert!(a.len() == 32 && a.chars().all(|c| c.is_ascii_hexdigit()));
    }
}
