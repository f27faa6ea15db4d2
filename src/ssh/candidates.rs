//! Which keys and certificates are offered, and in which order.
//!
//! What was named comes first, in its order; a certificate comes before the key that it certifies. A key that the agent holds is offered through the
//! agent: no passphrase is needed then, and a hardware key works only so.

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

#[cfg(test)]
mod tests {
    use russh::keys::ssh_key::certificate::Builder;
    use russh::keys::ssh_key::{Algorithm, LineEnding, PrivateKey};
    use tempfile::TempDir;

    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn key() -> PrivateKey {
        PrivateKey::random(&mut russh::keys::key::safe_rng(), Algorithm::Ed25519).unwrap()
    }

    fn certificate(key: &PrivateKey, kind: CertType, (from, to): (u64, u64)) -> Certificate {
        let rng = &mut russh::keys::key::safe_rng();
        let mut builder = Builder::new_with_random_nonce(rng, key.public_key(), from, to).unwrap();
        builder.key_id("operator").unwrap();
        builder.cert_type(kind).unwrap();
        builder.valid_principal("aurora").unwrap();
        builder.sign(&self::key()).unwrap()
    }

    fn valid(key: &PrivateKey) -> Certificate {
        certificate(key, CertType::User, (NOW - 60, NOW + 60))
    }

    /// Files of a test, and a host whose keys are some of them.
    struct Home(TempDir);

    impl Home {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn key(&self, name: &str) -> PrivateKey {
            let key = key();
            key.write_openssh_file(self.0.path().join(name), LineEnding::LF)
                .unwrap();
            key
        }

        fn write(&self, name: &str, certificate: &Certificate) {
            certificate.write_file(&self.0.path().join(name)).unwrap();
        }

        fn host(&self, keys: &[&str], named: bool) -> Host {
            Host {
                keys: keys.iter().map(|k| self.0.path().join(k)).collect(),
                named,
                ..Host::plain("aurora", "10.0.0.1", 22)
            }
        }

        /// Each candidate as the file's name or the agent's comment, `+` before a certificate, `@` where the agent signs; and the notes.
        fn order(&self, host: &Host, held: &[AgentIdentity]) -> (Vec<String>, Vec<String>) {
            let mut notes = Vec::new();
            let folder = format!("{}/", self.0.path().display());
            let short = |c: Candidate| {
                let certificate = if matches!(c.shown, Shown::Certificate(_)) {
                    "+"
                } else {
                    ""
                };
                let agent = if matches!(c.holder, Holder::Agent(_)) { "@" } else { "" };
                let name = c.label.replace(&folder, "");
                let name = name.split(' ').next().unwrap_or_default().to_owned();
                format!("{certificate}{agent}{name}")
            };
            let order = candidates(host, held, NOW, &mut notes).into_iter().map(short).collect();
            let notes = notes.iter().map(|n| n.replace(&folder, "")).collect();
            (order, notes)
        }
    }

    fn held(key: &PrivateKey, comment: &str) -> AgentIdentity {
        AgentIdentity::PublicKey {
            key: key.public_key().clone(),
            comment: comment.into(),
        }
    }

    fn held_certificate(certificate: Certificate, comment: &str) -> AgentIdentity {
        AgentIdentity::Certificate {
            certificate,
            comment: comment.into(),
        }
    }

    #[test]
    fn a_certificate_beside_a_key_comes_before_it_and_named_keys_before_the_agents() {
        let home = Home::new();
        let (one, two, other) = (home.key("one"), home.key("two"), key());
        home.write("two-cert.pub", &valid(&two));
        let agent = [held(&other, "other"), held(&two, "two")];
        let host = home.host(&["one", "two"], true);
        assert_eq!(home.order(&host, &agent).0, ["one", "+@two-cert.pub", "@two", "@other"]);
        let only = Host {
            only_named: true,
            ..host
        };
        assert_eq!(home.order(&only, &agent).0, ["one", "+@two-cert.pub", "@two"]);
        // The usual keys: what the agent holds of them, the agent's others, the files.
        let usual = home.host(&["one", "two", "none"], false);
        let (order, notes) = home.order(&usual, &agent);
        assert_eq!(order, ["+@two-cert.pub", "@two", "@other", "one"]);
        assert!(notes.is_empty(), "{notes:?}");
        drop(one);
    }

    #[test]
    fn certificates_that_are_named_are_paired_with_their_keys_and_replace_those_beside() {
        let home = Home::new();
        let (one, two) = (home.key("one"), key());
        home.write("one-cert.pub", &valid(&one));
        for (name, key) in [("a", &one), ("b", &two), ("c", &key())] {
            home.write(name, &valid(key));
        }
        let mut host = home.host(&["one"], true);
        host.certificates = ["a", "b", "c", "d"].map(|c| home.0.path().join(c)).to_vec();
        let (order, notes) = home.order(&host, &[held(&two, "two")]);
        assert_eq!(order, ["+@b", "+a", "one", "@two"]);
        let expected = [
            "d: there is no such file",
            "c: the key that it certifies is neither named nor in the agent",
        ];
        assert_eq!(notes, expected);
    }

    #[test]
    fn a_certificate_of_the_agents_is_offered_once_and_before_its_key() {
        let home = Home::new();
        let one = home.key("one");
        let certified = valid(&one);
        home.write("one-cert.pub", &certified);
        let agent = [
            held(&one, "plain"),
            held_certificate(certified, "same"),
            held_certificate(valid(&one), "new"),
        ];
        let (order, _) = home.order(&home.host(&["one"], true), &agent);
        assert_eq!(order, ["+@one-cert.pub", "+@new", "@plain"]);
        let (order, _) = home.order(&home.host(&[], false), &agent);
        assert_eq!(order, ["+@same", "+@new", "@plain"]);
    }

    #[test]
    fn a_certificate_that_is_not_valid_is_told_and_left_out() {
        let home = Home::new();
        let one = home.key("one");
        let cases = [
            (
                CertType::User,
                (NOW - 90, NOW - 60),
                Some("the certificate expired 1m00s ago; get a new one"),
            ),
            (
                CertType::User,
                (NOW - 60, NOW),
                Some("the certificate expired 1 s ago; get a new one"),
            ),
            (
                CertType::User,
                (NOW + 60, NOW + 90),
                Some("the certificate is not valid for another 1m00s"),
            ),
            (
                CertType::Host,
                (NOW - 60, NOW + 60),
                Some("it is a certificate of a host, not of a user"),
            ),
            (CertType::User, (NOW, NOW + 1), None),
            (CertType::User, (0, u64::MAX), None),
        ];
        for (kind, valid, why) in cases {
            let certified = certificate(&one, kind, valid);
            home.write("one-cert.pub", &certified);
            let (order, notes) = home.order(&home.host(&["one"], true), &[held_certificate(certified, "held")]);
            match why {
                Some(why) => {
                    assert_eq!(order, ["one"], "{valid:?}");
                    assert_eq!(
                        notes,
                        [format!("one-cert.pub: {why}"), format!("held of the agent: {why}")]
                    );
                }
                None => assert_eq!((order.len(), notes.len()), (2, 0), "{valid:?}"),
            }
        }
    }
}
