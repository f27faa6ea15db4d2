//! A session channel for a command: waits for a place, and asks again where a server refuses for a while.

use std::sync::Arc;
use std::time::Duration;

use russh::Channel;
use russh::client::Msg;
use tokio::time::Instant;

use super::errors::refusal;
use super::link::{Link, NoChannel, SILENT_AFTER};
use super::slots::{Refusal, Refusals, SESSION_CHANNELS, Slot};
use crate::domain::command::Exit;

/// First wait after a refused session channel; each one after it is twice as long.
const AFTER_REFUSAL: Duration = Duration::from_millis(50);

/// Longest such wait.
const AFTER_REFUSALS: Duration = Duration::from_millis(800);

/// When to stop listening.
pub(super) struct Stop<'a> {
    /// The time is up.
    pub(super) deadline: Option<Instant>,
    /// Nobody wants it any more.
    pub(super) unwanted: &'a tokio_util::sync::CancellationToken,
}

impl Stop<'_> {
    /// Resolves to the exit that it means.
    pub(super) async fn wait(&self) -> Exit {
        let time = async {
            match self.deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = time => Exit::TimedOut,
            () = self.unwanted.cancelled() => Exit::Unknown("nobody waited for its end".to_owned()),
        }
    }
}

/// Waits for a place among the session channels and opens one.
///
/// # Errors
/// Why there is none.
pub(super) async fn channel(link: &Arc<Link>, stop: &Stop<'_>) -> Result<(Channel<Msg>, Slot), String> {
    let _asking = link.slots().ask();
    let mut refusals = Refusals::default();
    let mut pause = AFTER_REFUSAL;
    loop {
        let slot = tokio::select! {
            slot = link.slots().take() => slot.ok_or("the connection is gone")?,
            _ = stop.wait() => return Err(no_slot(link)),
        };
        let ended = link.slots().ended();
        let no_answer = || Err("no answer to a channel request".to_owned());
        let opened = tokio::select! {
            opened = link.open_session(slot) => opened,
            _ = stop.wait() => return no_answer(),
        };
        let (reason, said) = match opened {
            Ok(opened) => return Ok(opened),
            Err(NoChannel::Refused(reason, said)) => (reason, said),
            // A peer that says nothing at all comes back, or is given up within seconds.
            Err(NoChannel::NoAnswer) if link.quiet_for() > SILENT_AFTER => continue,
            Err(NoChannel::NoAnswer) => return no_answer(),
            Err(NoChannel::Gone) => return Err(format!("the connection is gone: {}", link.closed().await)),
        };
        match link.slots().refused(&mut refusals, ended) {
            Refusal::Unproved => {
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    _ = stop.wait() => return Err(no_slot(link)),
                }
                pause = (pause * 2).min(AFTER_REFUSALS);
            }
            Refusal::Full => {
                link.end_streams();
                pause = AFTER_REFUSAL;
            }
            Refusal::Never => {
                let said = said.map(|s| format!(" ({s})")).unwrap_or_default();
                return Err(format!(
                    "it refused a session channel: {}{said}; see MaxSessions in its sshd_config",
                    refusal(&reason)
                ));
            }
        }
    }
}

/// Why a request got no place in its time.
fn no_slot(link: &Link) -> String {
    let allowed = link.slots().allowed();
    let cause = match allowed < SESSION_CHANNELS {
        true => "; its sshd refuses more: see MaxSessions in its sshd_config",
        false => "",
    };
    format!("no place among its {allowed} session channels in time{cause}")
}
