//! Which keys and certificates are offered, and in which order.
//!
//! What was named comes first, in its order; a certificate comes before the key that it certifies. A key that the agent holds is offered through the
//! agent: no passphrase is needed then, and a hardware key works only so.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use russh::keys::agent::AgentIdentity;
use russh::keys::ssh_key::certificate::CertType;
use russh::keys::ssh_key::public::KeyData;
use russh::keys::{Certificate, PublicKey};

use super::alias::Host;
use super::errors::printable;
use super::fix::PublicKeySource;
use super::keys::{KeyFile, KeyProblem, KeyState, load_certificate};
use super::known_hosts::fingerprint;
use crate::domain::time::human;

/// One key or certificate to offer.
pub(super) struct Candidate {
    pub(super) shown: Shown,
    pub(super) holder: Holder,
    /// Names it in messages.
    pub(super) label: String,
}

/// What the server is shown.
pub(super) enum Shown {
    /// A plain key; absent where only its passphrase tells it.
    Key(Option<PublicKey>),
    Certificate(Box<Certificate>),
}

/// Who signs.
pub(super) enum Holder {
    File(Arc<KeyFile>),
    /// The agent, which knows the key by this.
    Agent(Box<AgentIdentity>),
}

/// What a command takes a public key from.
#[derive(Debug)]
pub(super) enum Offered {
    File(PathBuf),
    Agent(String),
}

impl Offered {
    pub(super) fn source(&self) -> PublicKeySource<'_> {
        match self {
            Self::File(path) => PublicKeySource::File(path),
            Self::Agent(text) => PublicKeySource::Text(text.clone()),
        }
    }
}

impl Candidate {
    pub(super) fn offered(&self) -> Offered {
        match &self.holder {
            Holder::File(file) => Offered::File(file.path.clone()),
            Holder::Agent(identity) => Offered::Agent(identity.public_key().to_openssh().unwrap_or_default()),
        }
    }
}

/// A certificate that may be offered now.
struct Certified {
    certificate: Certificate,
    /// Names it in messages.
    from: String,
}

/// All that is offered to a host, in order. `now`: seconds of the Unix clock. What is left out for a reason is said in `notes`.
pub(super) fn candidates(
    host: &Host,
    held: &[AgentIdentity],
    now: u64,
    notes: &mut Vec<String>,
) -> VecDeque<Candidate> {
    let files = files(host, notes);
    let mut certificates = named_certificates(host, &files, now, notes);
    let mut agent = Held::new(held, now, notes);
    let (mut through_agent, mut from_files) = (Vec::new(), Vec::new());
    for file in files {
        let group = of_file(&file, &mut certificates, &mut agent, notes);
        let by_agent = group.iter().any(|c| matches!(c.holder, Holder::Agent(_)));
        if by_agent || host.named {
            through_agent.extend(group);
        } else {
            from_files.extend(group);
        }
    }
    // What is named as a certificate only: its key is the agent's.
    let mut first = Vec::new();
    for certified in certificates {
        match agent.signer(certified.certificate.public_key()) {
            Some(identity) => first.push(certified.candidate(Holder::Agent(Box::new(identity)))),
            None => notes.push(format!(
                "{}: the key that it certifies is neither named nor in the agent",
                certified.from
            )),
        }
    }
    agent.forget_certificates(&first);
    first.extend(through_agent);
    if !host.only_named {
        first.extend(agent.rest());
    }
    first.extend(from_files);
    first.into()
}

/// The key files that can be used.
fn files(host: &Host, notes: &mut Vec<String>) -> Vec<Arc<KeyFile>> {
    let mut files = Vec::new();
    for path in &host.keys {
        match KeyFile::load(path) {
            Ok(file) => files.push(Arc::new(file)),
            Err(KeyProblem::Missing) if !host.named => {}
            Err(problem) => notes.push(problem.of(path)),
        }
    }
    files
}

/// The certificates that were named; where none was, those beside the keys. So does ssh.
fn named_certificates(host: &Host, files: &[Arc<KeyFile>], now: u64, notes: &mut Vec<String>) -> Vec<Certified> {
    let beside = host.certificates.is_empty();
    let paths: Vec<PathBuf> = if beside {
        files.iter().map(|f| f.certificate_path()).collect()
    } else {
        host.certificates.clone()
    };
    let mut found = Vec::new();
    for path in paths {
        let from = path.display().to_string();
        match load_certificate(&path) {
            Ok(certificate) => match unusable(&certificate, now) {
                None => found.push(Certified { certificate, from }),
                Some(why) => notes.push(format!("{from}: {why}")),
            },
            Err(KeyProblem::Missing) if beside => {}
            Err(problem) => notes.push(problem.of(&path)),
        }
    }
    found
}

/// What is offered for one file: its certificates, then itself.
fn of_file(
    file: &Arc<KeyFile>,
    certificates: &mut Vec<Certified>,
    agent: &mut Held<'_>,
    notes: &mut Vec<String>,
) -> Vec<Candidate> {
    let Some(public) = &file.public else {
        let label = file.path.display().to_string();
        let holder = Holder::File(Arc::clone(file));
        return vec![Candidate {
            shown: Shown::Key(None),
            holder,
            label,
        }];
    };
    let data = public.key_data();
    let signer = agent.signer(data);
    let holder = |signer: &Option<AgentIdentity>| match signer {
        Some(identity) => Holder::Agent(Box::new(identity.clone())),
        None => Holder::File(Arc::clone(file)),
    };
    if let (None, KeyState::AgentOnly(why)) = (&signer, &file.state) {
        certificates.retain(|c| c.certificate.public_key() != data);
        notes.push(format!("{}: {why}", file.path.display()));
        return Vec::new();
    }
    let (mine, others) = std::mem::take(certificates)
        .into_iter()
        .partition(|c| c.certificate.public_key() == data);
    *certificates = others;
    let mine: Vec<Certified> = mine;
    let mut group: Vec<Candidate> = mine.into_iter().map(|c| c.candidate(holder(&signer))).collect();
    agent.forget_certificates(&group);
    group.extend(agent.take_certificates(data));
    // An agent that holds only the certificate signs for nothing else.
    let plain = agent.take_plain(data).unwrap_or_else(|| Candidate {
        label: label(&file.path.display().to_string(), public),
        shown: Shown::Key(Some(public.clone())),
        holder: Holder::File(Arc::clone(file)),
    });
    if !matches!((&plain.holder, &file.state), (Holder::File(_), KeyState::AgentOnly(_))) {
        group.push(plain);
    }
    group
}

impl Certified {
    fn candidate(self, holder: Holder) -> Candidate {
        Candidate {
            label: certificate_label(&self.from, &self.certificate),
            shown: Shown::Certificate(Box::new(self.certificate)),
            holder,
        }
    }
}

/// What an agent holds and nothing has offered yet.
struct Held<'a> {
    left: Vec<&'a AgentIdentity>,
    all: &'a [AgentIdentity],
}

impl<'a> Held<'a> {
    fn new(all: &'a [AgentIdentity], now: u64, notes: &mut Vec<String>) -> Self {
        let mut left = Vec::new();
        for identity in all {
            let why = match identity {
                AgentIdentity::PublicKey { .. } => None,
                AgentIdentity::Certificate { certificate, .. } => unusable(certificate, now),
            };
            match why {
                None => left.push(identity),
                Some(why) => notes.push(format!("{}: {why}", of_agent(identity.comment()))),
            }
        }
        Self { left, all }
    }

    /// By what the agent signs for this key: the key itself if it has that, else a certificate of it.
    fn signer(&self, key: &KeyData) -> Option<AgentIdentity> {
        let holds = |i: &&AgentIdentity| i.public_key().key_data() == key;
        let plain = |i: &&AgentIdentity| matches!(i, AgentIdentity::PublicKey { .. });
        let mut those = self.all.iter().filter(holds);
        let first = those.clone().find(plain);
        first.or_else(|| those.next()).cloned()
    }

    /// Certificates that were found in files are not offered twice.
    fn forget_certificates(&mut self, offered: &[Candidate]) {
        self.left.retain(|identity| {
            let AgentIdentity::Certificate { certificate, .. } = identity else {
                return true;
            };
            !offered
                .iter()
                .any(|o| matches!(&o.shown, Shown::Certificate(c) if **c == *certificate))
        });
    }

    fn take_certificates(&mut self, key: &KeyData) -> Vec<Candidate> {
        self.take(|i| matches!(i, AgentIdentity::Certificate { certificate, .. } if certificate.public_key() == key))
    }

    fn take_plain(&mut self, key: &KeyData) -> Option<Candidate> {
        self.take(|i| matches!(i, AgentIdentity::PublicKey { key: k, .. } if k.key_data() == key))
            .pop()
    }

    /// All that is left: the certificates of a key before the key.
    fn rest(&mut self) -> Vec<Candidate> {
        let mut rest = Vec::new();
        while let Some(identity) = self.left.first() {
            let key = identity.public_key().into_owned();
            rest.extend(self.take_certificates(key.key_data()));
            rest.extend(self.take_plain(key.key_data()));
        }
        rest
    }

    fn take(&mut self, which: impl Fn(&AgentIdentity) -> bool) -> Vec<Candidate> {
        let (taken, left): (Vec<_>, Vec<_>) = self.left.iter().partition(|i| which(i));
        self.left = left;
        taken.into_iter().map(candidate).collect()
    }
}

fn candidate(identity: &AgentIdentity) -> Candidate {
    let from = of_agent(identity.comment());
    let (shown, label) = match identity {
        AgentIdentity::PublicKey { key, .. } => (Shown::Key(Some(key.clone())), label(&from, key)),
        AgentIdentity::Certificate { certificate, .. } => (
            Shown::Certificate(Box::new(certificate.clone())),
            certificate_label(&from, certificate),
        ),
    };
    Candidate {
        shown,
        holder: Holder::Agent(Box::new(identity.clone())),
        label,
    }
}

impl KeyProblem {
    /// The problem of this file, as a fragment.
    fn of(self, path: &Path) -> String {
        match self {
            Self::Missing => format!("{}: there is no such file", path.display()),
            Self::Unusable(why) => format!("{}: {why}", path.display()),
        }
    }
}

fn of_agent(comment: &str) -> String {
    format!("{} of the agent", printable(comment))
}

fn label(from: &str, key: &PublicKey) -> String {
    format!("{from} ({} {})", key.algorithm(), fingerprint(key))
}

fn certificate_label(from: &str, certificate: &Certificate) -> String {
    let key = PublicKey::from(certificate.public_key().clone());
    format!(
        "{from} (certificate \"{}\" for {} {})",
        printable(certificate.key_id()),
        key.algorithm(),
        fingerprint(&key)
    )
}

/// Why no server would take this certificate now, as a fragment.
fn unusable(certificate: &Certificate, now: u64) -> Option<String> {
    if certificate.cert_type() != CertType::User {
        return Some("it is a certificate of a host, not of a user".to_owned());
    }
    let (from, to) = (certificate.valid_after(), certificate.valid_before());
    // Both ends as sshd reads them: the last second is out.
    if now < from {
        let ahead = Duration::from_secs(from - now);
        return Some(format!("the certificate is not valid for another {}", human(ahead)));
    }
    (now >= to).then(|| {
        format!(
            "the certificate expired {} ago; get a new one",
            human(Duration::from_secs((now - to).max(1)))
        )
    })
}
