//! What a caller says about a host and how it hears about it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use secrecy::SecretString;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio_util::sync::CancellationToken;

use super::keyring::Keyring;
use crate::domain::link::{HostKeys, LinkState};
use crate::domain::question::Ask;
use crate::domain::{Source, Stamp};

/// One host and how to log in to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Name in messages.
    pub name: String,
    /// Host name or address as seen from the hop before; an ssh_config alias when `alias` is true.
    pub host: String,
    /// TCP port; `None` means what ssh_config says for an alias, and SSH's own otherwise.
    pub port: Option<u16>,
    /// User; `None` means what ssh_config says for an alias, and the local user's name otherwise.
    pub user: Option<String>,
    /// Private key files in the order in which they are tried; empty means those that ssh_config names for an alias, and the usual names in ~/.ssh
    /// otherwise.
    pub keys: Vec<String>,
    /// Whether ssh_config says what is not said here: host name, port, user, keys, the way to it, and how its host key is treated.
    pub alias: bool,
    /// Whether the ProxyJump and ProxyCommand of an alias are left out.
    pub direct: bool,
}

/// What holds for every host.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The file that is read instead of the operator's ssh_config, as `ssh -F` has it.
    pub ssh_config: Option<PathBuf>,
    /// known_hosts files; accepted keys are written to the first. Empty means those that ssh_config names for an alias, and OpenSSH's own otherwise.
    pub known_hosts: Vec<PathBuf>,
    /// What becomes of an unknown host key; `None` means what ssh_config says for an alias, and a question otherwise.
    pub host_keys: Option<HostKeys>,
    /// Socket of the ssh-agent whose keys are tried where ssh_config names no other; `None` means no agent. See [`agent_socket`].
    pub agent: Option<PathBuf>,
    /// Whether no agent is asked at all, also none that ssh_config names.
    pub no_agent: bool,
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
    places: Weak<Places>,
}

/// Places among the handshakes through hops. A person may take for ever: they are given up when one is asked, and not taken back.
#[derive(Default)]
pub(super) struct Places(Mutex<Vec<OwnedSemaphorePermit>>);

impl Places {
    pub(super) fn hold(&self, place: Option<OwnedSemaphorePermit>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(place);
    }

    fn give_up(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
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
        places: &Arc<Places>,
    ) -> Self {
        Self {
            reporter,
            source,
            interactive,
            paused: Arc::default(),
            ended,
            places: Arc::downgrade(places),
        }
    }

    /// The connection has ended: open questions are withdrawn, and no more are asked.
    pub(super) fn end(&self) {
        self.ended.cancel();
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_cancelled()
    }

    /// Waits for `work` while the connection is there; `None` when it ended first.
    pub(super) async fn while_up<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.ended.cancelled() => None,
            done = work => Some(done),
        }
    }

    pub(super) fn interactive(&self) -> bool {
        self.interactive
    }

    /// Stops the timers; also for one that waits behind another connection's question.
    pub(super) fn pause(&self) -> Pause {
        if let Some(places) = self.places.upgrade() {
            places.give_up();
        }
        self.paused.fetch_add(1, Ordering::Relaxed);
        Pause(Arc::clone(&self.paused))
    }

    /// Asks, and waits for as long as it takes; `None` when the connection ended first.
    pub(super) async fn ask(&self, ask: Ask) -> Option<Reply> {
        if self.has_ended() {
            return None;
        }
        let _pause = self.pause();
        self.reporter.link(self.source, LinkState::Asking);
        let answer = self.reporter.ask(self.source, ask);
        let reply = self.while_up(answer).await;
        self.reporter.link(self.source, LinkState::Connecting);
        reply.map(|reply| reply.unwrap_or(Reply::No))
    }

    /// As [`Self::ask`]; `None` also when there was no answer until then.
    pub(super) async fn ask_until(&self, ask: Ask, deadline: Instant) -> Option<Reply> {
        let reply = tokio::time::timeout_at(deadline.into(), self.ask(ask)).await;
        if reply.is_err() {
            self.reporter.link(self.source, LinkState::Connecting);
        }
        reply.ok().flatten()
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

    fn asker(places: &Arc<Places>) -> Asker {
        Asker::new(
            Arc::new(Quiet),
            Source::Operator,
            true,
            CancellationToken::new(),
            places,
        )
    }

    /// A person who never answers; the questions stay open.
    #[derive(Default)]
    struct Away(Mutex<Vec<oneshot::Sender<Reply>>>);

    impl Reporter for Away {
        fn link(&self, _: Source, _: LinkState) {}
        fn ask(&self, _: Source, _: Ask) -> oneshot::Receiver<Reply> {
            let (sender, receiver) = oneshot::channel();
            self.0.lock().unwrap().push(sender);
            receiver
        }
        fn now(&self) -> Stamp {
            Stamp(0)
        }
    }

    #[tokio::test]
    async fn a_question_ends_with_its_connection_or_its_time_and_is_withdrawn() {
        let question = || Ask::Passphrase {
            key: "k".into(),
            again: false,
        };
        let away = Arc::new(Away::default());
        let reporter = Arc::clone(&away) as Arc<dyn Reporter>;
        let ended = CancellationToken::new();
        let asker = Asker::new(reporter, Source::Operator, true, ended, &Arc::default());
        let soon = Instant::now() + Duration::from_millis(20);
        assert!(asker.ask_until(question(), soon).await.is_none());
        let end = async {
            tokio::task::yield_now().await;
            asker.end();
        };
        assert!(tokio::join!(asker.ask(question()), end).0.is_none());
        // After it nothing is asked at all.
        assert!(asker.ask(question()).await.is_none());
        let open = away.0.lock().unwrap();
        assert_eq!((open.len(), open.iter().all(oneshot::Sender::is_closed)), (2, true));
    }

    #[tokio::test]
    async fn a_place_is_given_up_when_a_person_is_asked_or_the_try_ends() {
        let all = Arc::new(tokio::sync::Semaphore::new(2));
        for pauses in [true, false] {
            let places = Arc::new(Places::default());
            for _ in 0..2 {
                places.hold(Arc::clone(&all).acquire_owned().await.ok());
            }
            let asker = asker(&places);
            assert_eq!(all.available_permits(), 0);
            if pauses {
                let _pause = asker.pause();
                assert_eq!(all.available_permits(), 2);
            }
            drop(places);
            assert_eq!(all.available_permits(), 2);
        }
    }

    #[tokio::test]
    async fn a_timer_stands_still_while_a_person_is_asked() {
        let asker = asker(&Arc::default());
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
