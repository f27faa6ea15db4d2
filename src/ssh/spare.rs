//! A channel on which the wrapper waits already, so that the next command begins at once: starting a login shell and the wrapper is most of what a short
//! command takes.
//!
//! There is at most one for a connection, made when a command has ended. Whoever opens a channel takes it first, so that it is never in anybody's way.
//! The wrapper on the node ends by itself when no work comes, as nothing would tell it that the network died.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use russh::client::Msg;
use russh::{ChannelMsg, ChannelReadHalf, ChannelWriteHalf};
use tokio::sync::oneshot;

use super::command::Rest;
use super::link::Link;
use super::slots::Slot;
use crate::domain::wrap::opening;

/// How long the wrapper waits for work.
const IDLE: Duration = Duration::from_secs(90);

/// Age from which it is not used any more, and closed: well before the wrapper gives up.
const FRESH: Duration = Duration::from_secs(60);

/// Messages kept of what a login shell prints meanwhile; one that prints more has no spare.
const HEARD: usize = 64;

/// An open channel with the wrapper on it.
pub(super) struct Ready {
    pub(super) read: ChannelReadHalf,
    pub(super) write: ChannelWriteHalf<Msg>,
    pub(super) slot: Slot,
    /// What came on it so far.
    pub(super) heard: Vec<ChannelMsg>,
}

/// The place of the spare channel.
#[derive(Default)]
pub(super) struct Spare(Mutex<Option<oneshot::Sender<oneshot::Sender<Ready>>>>);

impl Spare {
    /// Takes it, when there is one that is fit for use; waits while it is being opened.
    pub(super) async fn take(&self) -> Option<Ready> {
        let asked = self.0.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let (give, given) = oneshot::channel();
        asked.send(give).ok()?;
        given.await.ok()
    }

    /// Sees to it that there is one.
    pub(super) fn prepare(&self, link: &Arc<Link>, exec: &str) {
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.as_ref().is_some_and(|s| !s.is_closed()) {
            return;
        }
        let (ask, asked) = oneshot::channel();
        *spare = Some(ask);
        tokio::spawn(keep(Arc::clone(link), exec.to_owned(), asked));
    }
}

/// Opens the channel and keeps it until it is asked for, too old, or not wanted any more.
async fn keep(link: Arc<Link>, exec: String, mut asked: oneshot::Receiver<oneshot::Sender<Ready>>) {
    // A command that waits for a place comes first.
    let Some(slot) = link.slots().spare() else { return };
    let Ok((channel, slot)) = link.open_session(slot).await else {
        return;
    };
    let (mut read, write) = channel.split();
    let sent = async {
        write.exec(true, exec).await?;
        write.data_bytes(opening(Some(IDLE))).await
    };
    let mut heard = Vec::new();
    if sent.await.is_ok() {
        let old = tokio::time::sleep(FRESH);
        tokio::pin!(old);
        loop {
            tokio::select! {
                biased;
                wanted = &mut asked => match wanted {
                    Ok(give) => {
                        // Whoever asked may be gone by now.
                        let Err(Ready { read, write, slot, .. }) = give.send(Ready { read, write, slot, heard }) else { return };
                        Rest::new(read, write, slot).end().await;
                        return;
                    }
                    Err(_) => break,
                },
                message = read.wait() => match message {
                    None | Some(ChannelMsg::Close | ChannelMsg::Failure) => break,
                    Some(_) if heard.len() == HEARD => break,
                    Some(message) => heard.push(message),
                },
                () = &mut old => break,
            }
        }
    }
    // Whoever asks from now on opens a channel of its own.
    drop(asked);
    Rest::new(read, write, slot).end().await;
}
