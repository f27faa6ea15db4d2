//! What only a person can answer at a login: the server's own questions (keyboard-interactive), and a password.
//!
//! What is typed goes to the server and nowhere else. A password that was accepted is kept in memory for the next connection; a one-time code is not.

use std::time::{Duration, Instant};

use russh::client::{AuthResult, Handle, KeyboardInteractiveAuthResponse as Said, Prompt};
use russh::{MethodKind, MethodSet};
use secrecy::{ExposeSecret, SecretString};

use super::auth::{MAX_TRIES, Outcome, Refusal};
use super::errors::printable;
use super::host_key::Client;
use super::keyring::{Account, Keyring};
use super::settings::{Asker, Reply};
use crate::domain::question::Ask;

/// How often a password is asked for, and how often the server's questions are answered anew.
const TRIES: usize = 3;

/// How long a round of the server's questions stays open: sshd waits no longer (LoginGraceTime), and its hanging up is not seen until there is an answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(120);

/// Rounds of questions in one try.
const MAX_ROUNDS: usize = 16;

/// Questions in one round.
const MAX_PROMPTS: usize = 16;

/// Words by which a server asks for what is good only once, or for another password than the one of this login.
const NOT_KEPT: [&str; 12] = [
    "one-time", "one time", "otp", "code", "token", "pin", "passcode", "new", "retype", "again", "current", "old",
];

/// What answering takes.
pub(super) struct Interactive<'a> {
    pub(super) handle: &'a mut Handle<Client>,
    pub(super) user: &'a str,
    /// Names the login in questions and in the keyring.
    pub(super) account: &'a str,
    pub(super) keyring: &'a Keyring,
    pub(super) asker: &'a Asker,
    pub(super) refusal: &'a mut Refusal,
    /// What the server takes.
    pub(super) offered: &'a mut Option<MethodSet>,
}

/// What one try of the server's questions gave.
enum Tried {
    Done(Outcome),
    /// It said no. Whether it had asked anything, and whether a person had answered.
    Refused {
        asked: bool,
        by_person: bool,
    },
}

/// Answers of one try.
#[derive(Default)]
struct Answers {
    /// A password among them, to be kept when it was right.
    password: Option<SecretString>,
    /// Whether that was kept from before.
    kept: bool,
    asked: bool,
    by_person: bool,
}

/// Why a question has no answer.
enum Unanswered {
    Dismissed,
    /// The connection has ended, or its server waits no longer.
    Ended,
}

impl Interactive<'_> {
    /// Answers the server's questions.
    pub(super) async fn questions(mut self) -> Outcome {
        if !self.may_ask("answers to its questions (keyboard-interactive)") {
            return Outcome::Spent;
        }
        let account = self.keyring.account(self.account);
        let Some(mut account) = self.turn(&account).await else {
            return Outcome::Ended;
        };
        let mut refused = 0;
        while refused < TRIES {
            if account.dismissed.still() {
                return self.dismissed();
            }
            if self.refusal.tries() >= MAX_TRIES {
                return self.no_try_left(&mut account, refused);
            }
            match self.one_try(&mut account, refused > 0).await {
                Tried::Done(outcome) => return outcome,
                Tried::Refused { asked: false, .. } => return Outcome::Spent,
                Tried::Refused { by_person, .. } => {
                    // A password from memory that is no longer right is no wrong answer of the person's.
                    account.password = None;
                    refused += usize::from(by_person);
                    self.count("keyboard-interactive");
                }
            }
            if !self.offers(MethodKind::KeyboardInteractive) {
                return Outcome::Spent;
            }
        }
        // A password may be right where the answers were not; then it is the one that is not asked for again.
        if !self.offers(MethodKind::Password) {
            account.dismissed.now();
        }
        Outcome::Spent
    }

    /// Gives a password.
    pub(super) async fn password(mut self) -> Outcome {
        if !self.may_ask("a password") {
            return Outcome::Spent;
        }
        let account = self.keyring.account(self.account);
        let Some(mut account) = self.turn(&account).await else {
            return Outcome::Ended;
        };
        let mut refused = 0;
        while refused < TRIES {
            if self.refusal.tries() >= MAX_TRIES {
                return self.no_try_left(&mut account, refused);
            }
            let kept = account.password.take();
            let by_person = kept.is_none();
            let password = match kept {
                Some(password) => password,
                None if account.dismissed.still() => return self.dismissed(),
                None => match self.ask("", "password", false, (1, 1), refused > 0, None).await {
                    Ok(password) => password,
                    Err(Unanswered::Ended) => return Outcome::Ended,
                    Err(Unanswered::Dismissed) => {
                        account.dismissed.now();
                        return self.dismissed();
                    }
                },
            };
            let done = self.handle.authenticate_password(self.user, password.expose_secret());
            match done.await {
                Ok(AuthResult::Success) => {
                    account.keep(Some(password));
                    return Outcome::In;
                }
                Ok(AuthResult::Failure {
                    remaining_methods,
                    partial_success: true,
                }) => {
                    account.keep(Some(password));
                    self.refusal.taken.push("the password".to_owned());
                    return Outcome::More(remaining_methods);
                }
                Ok(AuthResult::Failure { remaining_methods, .. }) if remaining_methods.is_empty() => {
                    account.put_back(Some(password).filter(|_| !by_person));
                    return Outcome::Ended;
                }
                Ok(AuthResult::Failure { remaining_methods, .. }) => {
                    self.count("password");
                    refused += usize::from(by_person);
                    *self.offered = Some(remaining_methods);
                }
                Err(_) => {
                    account.put_back(Some(password).filter(|_| !by_person));
                    return Outcome::Ended;
                }
            }
            if !self.offers(MethodKind::Password) {
                return Outcome::Spent;
            }
        }
        account.dismissed.now();
        Outcome::Spent
    }

    /// One try: rounds of questions until the server says yes or no.
    async fn one_try(&mut self, account: &mut Account, again: bool) -> Tried {
        let mut answers = Answers::default();
        let tried = self.rounds(account, &mut answers, again).await;
        if matches!(tried, Tried::Done(Outcome::Ended | Outcome::Stuck)) && answers.kept {
            account.put_back(answers.password);
        }
        tried
    }

    async fn rounds(&mut self, account: &mut Account, answers: &mut Answers, again: bool) -> Tried {
        let mut heard = Vec::new();
        let mut said = self
            .handle
            .authenticate_keyboard_interactive_start(self.user, None)
            .await;
        for _ in 0..MAX_ROUNDS {
            let (name, instructions, prompts) = match said {
                Err(_) => return Tried::Done(Outcome::Ended),
                Ok(Said::Success) => {
                    account.keep(answers.password.take());
                    return Tried::Done(Outcome::In);
                }
                Ok(Said::Failure {
                    remaining_methods,
                    partial_success: true,
                }) => {
                    account.keep(answers.password.take());
                    self.refusal.taken.push("the answers to its questions".to_owned());
                    return Tried::Done(Outcome::More(remaining_methods));
                }
                Ok(Said::Failure { remaining_methods, .. }) if remaining_methods.is_empty() => {
                    return Tried::Done(Outcome::Ended);
                }
                Ok(Said::Failure { remaining_methods, .. }) => {
                    *self.offered = Some(remaining_methods);
                    if let Some(last) = heard.pop() {
                        self.note(&format!("it said: {last}"));
                    }
                    return Tried::Refused {
                        asked: answers.asked,
                        by_person: answers.by_person,
                    };
                }
                Ok(Said::InfoRequest {
                    name,
                    instructions,
                    prompts,
                }) => (name, instructions, prompts),
            };
            if prompts.len() > MAX_PROMPTS {
                self.note("it asked too many questions at once");
                return Tried::Done(Outcome::Stuck);
            }
            let words = [printable(&name), printable(&instructions)];
            heard.extend(words.into_iter().filter(|w| !w.is_empty()));
            let texts = if prompts.is_empty() {
                Vec::new()
            } else {
                let words = std::mem::take(&mut heard).join(" — ");
                match self.round(account, answers, &words, &prompts, again).await {
                    Ok(texts) => texts,
                    Err(Unanswered::Ended) => return Tried::Done(Outcome::Ended),
                    Err(Unanswered::Dismissed) => {
                        account.dismissed.now();
                        self.dismissed();
                        // The server waits for an answer that does not come: there is nothing to go on with.
                        return Tried::Done(Outcome::Stuck);
                    }
                }
            };
            let texts = texts.iter().map(|t| t.expose_secret().to_owned()).collect();
            said = self.handle.authenticate_keyboard_interactive_respond(texts).await;
        }
        self.note("it asked without end");
        Tried::Done(Outcome::Stuck)
    }

    /// Answers one round.
    async fn round(
        &self,
        account: &mut Account,
        answers: &mut Answers,
        words: &str,
        prompts: &[Prompt],
        again: bool,
    ) -> Result<Vec<SecretString>, Unanswered> {
        let mut texts = Vec::new();
        let deadline = Instant::now() + ANSWER_LIMIT;
        for (prompt, number) in prompts.iter().zip(1..) {
            let text = printable(&prompt.prompt);
            let password = !prompt.echo && is_password(&text);
            answers.asked = true;
            // Used once: the next question for a password means that it was wrong.
            let kept = if password { account.password.take() } else { None };
            let was_kept = kept.is_some();
            let answer = match kept {
                Some(kept) => kept,
                None => {
                    answers.by_person = true;
                    let place = (number, prompts.len());
                    self.ask(words, &text, prompt.echo, place, again, Some(deadline))
                        .await?
                }
            };
            if password {
                answers.kept = was_kept;
                answers.password = Some(answer.clone());
            }
            texts.push(answer);
        }
        Ok(texts)
    }

    async fn ask(
        &self,
        said: &str,
        prompt: &str,
        echo: bool,
        place: (usize, usize),
        again: bool,
        deadline: Option<Instant>,
    ) -> Result<SecretString, Unanswered> {
        let ask = Ask::Login {
            account: self.account.to_owned(),
            said: said.to_owned(),
            prompt: prompt.to_owned(),
            echo,
            number: place.0,
            of: place.1,
            again,
        };
        let reply = match deadline {
            None => self.asker.ask(ask).await,
            Some(deadline) => self.asker.ask_until(ask, deadline).await,
        };
        match reply.ok_or(Unanswered::Ended)? {
            Reply::Secret(text) => Ok(text),
            Reply::Yes | Reply::No => Err(Unanswered::Dismissed),
        }
    }

    /// Waits for its turn with this login: whoever waits here waits for a person. `None` when the connection ended first.
    async fn turn<'m>(&self, account: &'m tokio::sync::Mutex<Account>) -> Option<tokio::sync::MutexGuard<'m, Account>> {
        let _pause = self.asker.pause();
        self.asker.while_up(account.lock()).await
    }

    /// The server hangs up at the next wrong answer, or has by now.
    fn no_try_left(&mut self, account: &mut Account, refused: usize) -> Outcome {
        self.note(&format!("no more than {MAX_TRIES} keys and answers are tried"));
        if refused > 0 {
            account.dismissed.now();
        }
        Outcome::Stuck
    }

    /// Whether a person can be asked; says what for where nobody can.
    fn may_ask(&mut self, what: &str) -> bool {
        if !self.asker.interactive() {
            self.note(&format!("it takes {what}; bringup asks for that only on the screen"));
        }
        self.asker.interactive()
    }

    fn dismissed(&mut self) -> Outcome {
        self.note("its question was not answered; `n` asks again");
        Outcome::Stuck
    }

    fn note(&mut self, text: &str) {
        if !self.refusal.notes.iter().any(|n| n == text) {
            self.refusal.notes.push(text.to_owned());
        }
    }

    fn count(&mut self, method: &'static str) {
        match self.refusal.answers.iter_mut().find(|(m, _)| *m == method) {
            Some((_, times)) => *times += 1,
            None => self.refusal.answers.push((method, 1)),
        }
    }

    fn offers(&self, method: MethodKind) -> bool {
        self.offered.as_ref().is_none_or(|m| m.contains(&method))
    }
}

impl Account {
    fn keep(&mut self, password: Option<SecretString>) {
        if password.is_some() {
            self.password = password;
            self.put_back = false;
        }
    }

    /// Puts back a password that was right before and got no answer this time. Only once: a server may hang up on one that is no longer right.
    fn put_back(&mut self, password: Option<SecretString>) {
        if !self.put_back && password.is_some() {
            self.password = password;
            self.put_back = true;
        }
    }
}

/// Whether the answer to this is the login's password. When in doubt it is not, and is asked for each time.
fn is_password(prompt: &str) -> bool {
    let prompt = prompt.to_lowercase();
    prompt.contains("password") && !NOT_KEPT.iter().any(|word| prompt.contains(word))
}

#[cfg(test)]
mod tests {
    use super::is_password;

    #[test]
    fn a_password_is_told_from_what_is_good_once() {
        for prompt in [
            "Password: ",
            "(aurora@10.0.0.1) Password:",
            "Password for aurora@spark-1:",
        ] {
            assert!(is_password(prompt), "{prompt}");
        }
        for prompt in [
            "Verification code: ",
            "One-time password (OATH) for `aurora':",
            "Password & verification code:",
            "(current) UNIX password:",
            "New password:",
            "Retype new password:",
            "Passcode or option (1-2):",
            "",
        ] {
            assert!(!is_password(prompt), "{prompt}");
        }
    }
}
