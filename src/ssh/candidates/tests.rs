//! Which keys are tried, in which order, and what is said of those that are not.

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
