//! Logging in: the methods in their order, and what is said when nobody is let in.
//!
//! Keys come first, then the server's questions (keyboard-interactive), then a password; only what the server offers. A server may want several of them,
//! one after the other.

use std::collections::VecDeque;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use russh::client::{AuthResult, Handle};
use russh::{MethodKind, MethodSet};

use super::agent::Agent;
use super::alias::Host;
use super::candidates::{Candidate, Offered, candidates};
use super::fix::PublicKeySource;
use super::host_key::Client;
use super::interactive::Interactive;
use super::keyring::Keyring;
use super::offer::{LOST, Offering, RsaHash};
use super::settings::Asker;

/// Keys, answers and passwords given at most, together: sshd hangs up at its MaxAuthTries, six unless configured otherwise.
pub(super) const MAX_TRIES: usize = 6;

/// Keys offered at most where a person can answer if none is right: there must be a try left for that, and one for a slip of the finger.
const KEYS_BEFORE_A_PERSON: usize = 4;

/// Methods that a server may want one after the other.
const MAX_STAGES: usize = 8;

/// Why nobody was let in.
#[derive(Debug, Default)]
pub(super) struct Refusal {
    /// Keys that were offered and refused.
    pub(super) tried: Vec<String>,
    /// Answers and passwords that were given and refused, as fragments with how often.
    pub(super) answers: Vec<(&'static str, usize)>,
    /// What was taken although it was not enough.
    pub(super) taken: Vec<String>,
    /// Keys and methods that were not offered, and why.
    pub(super) notes: Vec<String>,
    /// What the server would take.
    pub(super) methods: Vec<&'static str>,
    /// Whether the connection ended during the login.
    pub(super) hung_up: bool,
    /// Whether it ended while an answer was awaited, or right after one.
    pub(super) while_asking: bool,
    /// The key that was offered when it ended, and got no answer.
    pub(super) unanswered: Option<String>,
    /// The key that a person most likely means, for a command to copy.
    key: Option<Offered>,
}

impl Refusal {
    /// Where the public key for a command comes from.
    pub(super) fn key(&self) -> Option<PublicKeySource<'_>> {
        self.key.as_ref().map(Offered::source)
    }

    /// How often the server has said no.
    pub(super) fn tries(&self) -> usize {
        self.tried.len() + self.answers.iter().map(|(_, times)| times).sum::<usize>()
    }

    /// Whether the server has said no to anything.
    pub(super) fn refused_anything(&self) -> bool {
        !self.tried.is_empty() || !self.answers.is_empty()
    }
}

/// What became of one method.
pub(super) enum Outcome {
    In,
    /// The server took it and wants one of these too.
    More(MethodSet),
    /// There is nothing left to try with this method.
    Spent,
    /// The connection ended.
    Ended,
    /// The login can't go on.
    Stuck,
}

/// One login under way.
struct Login<'a> {
    handle: &'a mut Handle<Client>,
    user: &'a str,
    /// Names the login in questions and in the keyring.
    account: &'a str,
    agent: Option<Agent>,
    keyring: &'a Keyring,
    asker: &'a Asker,
    candidates: VecDeque<Candidate>,
    rsa_hash: RsaHash,
    /// What the server takes, once it has said so.
    offered: Option<MethodSet>,
    /// Methods with nothing left to try.
    spent: Vec<MethodKind>,
    refusal: Refusal,
}

/// Logs in. `account` names the login in questions, and what is kept for it.
pub(super) async fn log_in(
    handle: &mut Handle<Client>,
    host: &Host,
    account: &str,
    agent: Option<&Path>,
    keyring: &Keyring,
    asker: &Asker,
) -> Result<(), Refusal> {
    let mut refusal = Refusal::default();
    let agent = match agent {
        None => None,
        Some(socket) => match Agent::open(socket).await {
            Ok(agent) => Some(agent),
            Err(why) => {
                refusal.notes.push(format!("ssh-agent: {why}"));
                None
            }
        },
    };
    let held = agent.as_ref().map_or(&[][..], |a| a.identities.as_slice());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let candidates = candidates(host, held, now, &mut refusal.notes);
    let login = Login {
        handle,
        user: &host.user,
        account,
        agent,
        keyring,
        asker,
        candidates,
        rsa_hash: RsaHash::default(),
        offered: None,
        spent: Vec::new(),
        refusal,
    };
    login.run().await
}

impl Login<'_> {
    async fn run(mut self) -> Result<(), Refusal> {
        let mut stages = 0;
        loop {
            let Some(method) = self.next() else {
                return Err(self.end());
            };
            let outcome = match method {
                MethodKind::PublicKey => self.keys().await,
                MethodKind::None => self.ask_methods().await,
                other => self.interactive(other).await,
            };
            match outcome {
                Outcome::In => return Ok(()),
                Outcome::More(methods) => {
                    stages += 1;
                    if stages == MAX_STAGES {
                        self.refusal.notes.push("it never had enough".to_owned());
                        return Err(self.end());
                    }
                    self.offered = Some(methods);
                    self.spent.clear();
                }
                Outcome::Spent => self.spent.push(method),
                Outcome::Ended => {
                    self.refusal.hung_up = true;
                    return Err(self.end());
                }
                Outcome::Stuck => return Err(self.end()),
            }
        }
    }

    /// The method that is tried next.
    fn next(&self) -> Option<MethodKind> {
        let open = |m: &MethodKind| !self.spent.contains(m);
        match &self.offered {
            None if !self.candidates.is_empty() && open(&MethodKind::PublicKey) => Some(MethodKind::PublicKey),
            None => Some(MethodKind::None).filter(open),
            Some(offered) => [
                MethodKind::PublicKey,
                MethodKind::KeyboardInteractive,
                MethodKind::Password,
            ]
            .into_iter()
            .filter(open)
            .find(|m| offered.contains(m)),
        }
    }

    /// Nothing was offered yet: the server names its methods when it is asked with none.
    async fn ask_methods(&mut self) -> Outcome {
        match self.handle.authenticate_none(self.user).await {
            Ok(AuthResult::Success) => Outcome::In,
            Ok(AuthResult::Failure { remaining_methods, .. }) if !remaining_methods.is_empty() => {
                self.offered = Some(remaining_methods);
                Outcome::Spent
            }
            Ok(AuthResult::Failure { .. }) | Err(_) => Outcome::Ended,
        }
    }

    /// Offers what there is, until one is taken.
    async fn keys(&mut self) -> Outcome {
        while let Some(candidate) = self.candidates.pop_front() {
            let most = if self.person_follows() {
                KEYS_BEFORE_A_PERSON
            } else {
                MAX_TRIES
            };
            if self.refusal.tried.len() >= most || self.refusal.tries() >= MAX_TRIES {
                self.refusal.notes.push(format!(
                    "no more than {most} keys are offered; name the right one in the config"
                ));
                return Outcome::Spent;
            }
            let offering = Offering {
                handle: self.handle,
                user: self.user,
                agent: self.agent.as_mut(),
                keyring: self.keyring,
                asker: self.asker,
                rsa_hash: &mut self.rsa_hash,
            };
            let outcome = offering.offer(&candidate).await;
            let label = candidate.label.clone();
            let mut asked = false;
            match outcome {
                Ok(AuthResult::Success) => return Outcome::In,
                // A server that refuses a key names what it would take: this is how russh tells that the connection ended.
                Ok(AuthResult::Failure { remaining_methods, .. }) if remaining_methods.is_empty() => {
                    self.refusal.key.get_or_insert_with(|| candidate.offered());
                    self.refusal.unanswered = Some(label);
                    return Outcome::Ended;
                }
                Ok(AuthResult::Failure {
                    remaining_methods,
                    partial_success: true,
                }) => {
                    self.refusal.taken.push(label);
                    return Outcome::More(remaining_methods);
                }
                Ok(AuthResult::Failure { remaining_methods, .. }) => {
                    self.refusal.key.get_or_insert_with(|| candidate.offered());
                    self.refusal.tried.push(label);
                    let keys = remaining_methods.contains(&MethodKind::PublicKey);
                    self.offered = Some(remaining_methods);
                    if !keys {
                        return Outcome::Spent;
                    }
                }
                Err(why) => {
                    // The server takes it, and a signature was waited for.
                    asked = why != LOST;
                    self.refusal.notes.push(format!("{label}: {why}"));
                }
            }
            if self.handle.is_closed() || self.asker.has_ended() {
                self.refusal.while_asking = asked;
                return Outcome::Ended;
            }
        }
        Outcome::Spent
    }

    /// Whether a person is asked when no key is right.
    fn person_follows(&self) -> bool {
        let asks = |m: &MethodKind| matches!(m, MethodKind::KeyboardInteractive | MethodKind::Password);
        let open = |m: &MethodKind| asks(m) && !self.spent.contains(m);
        let offered = self.offered.as_ref().is_some_and(|offered| offered.iter().any(open));
        let account = self.keyring.account(self.account);
        // One that is locked is being asked about now.
        let dismissed = account.try_lock().is_ok_and(|account| account.dismissed.still());
        offered && self.asker.interactive() && !dismissed
    }

    async fn interactive(&mut self, method: MethodKind) -> Outcome {
        let interactive = Interactive {
            handle: self.handle,
            user: self.user,
            account: self.account,
            keyring: self.keyring,
            asker: self.asker,
            refusal: &mut self.refusal,
            offered: &mut self.offered,
        };
        let outcome = match method {
            MethodKind::KeyboardInteractive => interactive.questions().await,
            _ => interactive.password().await,
        };
        self.refusal.while_asking = matches!(outcome, Outcome::Ended);
        outcome
    }

    /// The login is over without success.
    fn end(self) -> Refusal {
        let mut refusal = self.refusal;
        refusal.methods = self.offered.as_ref().map(methods).unwrap_or_default();
        refusal
    }
}

fn methods(set: &MethodSet) -> Vec<&'static str> {
    let of_interest = |m: &&MethodKind| !matches!(m, MethodKind::None);
    set.iter().filter(of_interest).map(<&'static str>::from).collect()
}
