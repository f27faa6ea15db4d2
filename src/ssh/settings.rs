//! What a caller says about a host and how it hears about it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use secrecy::SecretString;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::keyring::Keyring;
use crate::domain::link::LinkState;
use crate::domain::question::Ask;
use crate::domain::{Source, Stamp};

/// One host and how to log in to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Name in messages.
    pub name: String,
    /// Host name or address as seen from the hop before; an ssh_config alias when `alias` is true.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// User; `None` means the local user's name.
    pub user: Option<String>,
    /// Private key files in the order in which they are tried; empty means the usual names in ~/.ssh.
    pub keys: Vec<String>,
    /// Whether `ssh -G` says what is not said here: host name, a port other than 22, user, keys.
    pub alias: bool,
}

/// What holds for every host.
#[derive(Debug, Clone)]
pub struct Settings {
    /// known_hosts files; accepted keys are written to the first.
    pub known_hosts: Vec<PathBuf>,
    /// Socket of the ssh-agent whose keys are tried; `None` means no agent. See [`agent_socket`].
    pub agent: Option<PathBuf>,
    /// Longest TCP connection, longest handshake and longest authentication, each.
    pub connect_limit: Duration,
    /// Whether a person can be asked; otherwise what would be a question is an error that says what is missing.
    pub interactive: bool,
    /// Decrypted keys, shared by all connections of a console.
    pub keyring: Keyring,
}

/// The agent that the environment names.
#[must_use]
pub fn agent_socket() -> Option<PathBuf> {
    std::env::var_os("SSH_AUTH_SOCK")
        .filter(|s| !s.is_empty())
        .map(PathBuf::from)
}

/// Hears about connections, and takes their questions to a person.
pub trait Reporter: Send + Sync {
    /// A connection changed. Never blocks.
    fn link(&self, source: Source, state: LinkState);

    /// Asks a person. A sender that is dropped counts as [`Reply::No`].
    fn ask(&self, source: Source, ask: Ask) -> oneshot::Receiver<Reply>;

    /// The console's clock.
    fn now(&self) -> Stamp;
}

/// A person's answer.
#[derive(Debug)]
pub enum Reply {
    /// Yes.
    Yes,
    /// No, or dismissed.
    No,
    /// The secret that was asked for.
    Secret(SecretString),
}

/// Asks in the name of one connection, and lets its timers stand still meanwhile.
#[derive(Clone)]
pub(super) struct Asker {
    reporter: Arc<dyn Reporter>,
    source: Source,
    interactive: bool,
    paused: Arc<AtomicUsize>,
    /// The connection's end: nobody waits for an answer after it.
    ended: CancellationToken,
}

/// Timers stand still while it lives.
pub(super) struct Pause(Arc<AtomicUsize>);

impl Drop for Pause {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Asker {
    pub(super) fn new(
        reporter: Arc<dyn Reporter>,
        source: Source,
        interactive: bool,
        ended: CancellationToken,
    ) -> Self {
        Self {
            reporter,
            source,
            interactive,
            paused: Arc::default(),
            ended,
        }
    }

    pub(super) fn interactive(&self) -> bool {
        self.interactive
    }

    /// Stops the timers; also for one that waits behind another connection's question.
    pub(super) fn pause(&self) -> Pause {
        self.paused.fetch_add(1, Ordering::Relaxed);
        Pause(Arc::clone(&self.paused))
    }

    /// Asks, and waits for as long as it takes.
    pub(super) async fn ask(&self, ask: Ask) -> Reply {
        let _pause = self.pause();
        self.reporter.link(self.source, LinkState::Asking);
        let answer = self.reporter.ask(self.source, ask);
        let reply = tokio::select! {
            reply = answer => reply.unwrap_or(Reply::No),
            () = self.ended.cancelled() => Reply::No,
        };
        self.reporter.link(self.source, LinkState::Connecting);
        reply
    }

    /// Waits for `work` at most this long, not counting the time of questions.
    pub(super) async fn limited<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
        /// How finely the time is counted.
        const GRAIN: Duration = Duration::from_millis(50);
        let mut left = limit;
        tokio::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return Some(done),
                () = tokio::time::sleep(GRAIN.min(left)) => {}
            }
            if self.paused.load(Ordering::Relaxed) == 0 {
                left = left.saturating_sub(GRAIN);
                if left.is_zero() {
                    return None;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Quiet;

    impl Reporter for Quiet {
        fn link(&self, _: Source, _: LinkState) {}
        fn ask(&self, _: Source, _: Ask) -> oneshot::Receiver<Reply> {
            oneshot::channel().1
        }
        fn now(&self) -> Stamp {
            Stamp(0)
        }
    }

    #[tokio::test]
    async fn a_timer_stands_still_while_a_person_is_asked() {
        let asker = Asker::new(Arc::new(Quiet), Source::Operator, true, CancellationToken::new());
        let limit = Duration::from_millis(100);
        assert_eq!(asker.limited(limit, std::future::pending::<()>()).await, None);
        let asking = async {
            let pause = asker.pause();
            tokio::time::sleep(limit * 4).await;
            drop(pause);
            7
        };
        assert_eq!(asker.limited(limit, asking).await, Some(7));
    }
}
