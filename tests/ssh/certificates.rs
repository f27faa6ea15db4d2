//! User certificates, checked by a real sshd.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use bringup::domain::question::Ask;
use bringup::ssh::Reply;
use russh::keys::ssh_key::certificate::{Builder, CertType};
use russh::keys::ssh_key::private::{KeypairData, RsaKeypair};
use russh::keys::{Algorithm, Certificate, PrivateKey};
use secrecy::SecretString;

use crate::logins::{Agent, works};
use crate::person::{Home, Person, here};
use crate::server::key;
use crate::sshd::{Sshd, restrict};

const HOUR: u64 = 3600;

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// A certificate for the target's user, valid until this second.
fn certificate(authority: &PrivateKey, key: &PrivateKey, user: &str, until: u64) -> Certificate {
    let rng = &mut russh::keys::key::safe_rng();
    let mut builder = Builder::new_with_random_nonce(rng, key.public_key(), now() - 2 * HOUR, until).unwrap();
    builder.key_id("operator").unwrap();
    builder.cert_type(CertType::User).unwrap();
    builder.valid_principal(user).unwrap();
    builder.sign(authority).unwrap()
}

/// An sshd that trusts an authority and no key.
async fn trusting(authority: &PrivateKey) -> Option<Sshd> {
    let sshd = Sshd::start_as(&[], |home| {
        std::fs::write(home.path("ca"), authority.public_key().to_openssh().unwrap()).unwrap();
        restrict(&home.path("ca"));
        format!(
            "TrustedUserCAKeys {}\nAuthorizedKeysFile none",
            home.path("ca").display()
        )
    });
    sshd.await
}

fn user(sshd: &Sshd) -> String {
    sshd.target.user.clone().unwrap()
}

fn write(home: &Home, name: &str, certificate: &Certificate) {
    std::fs::write(home.path(name), certificate.to_openssh().unwrap()).unwrap();
}

fn rsa() -> PrivateKey {
    let pair = RsaKeypair::random(&mut russh::keys::key::safe_rng(), 2048).unwrap();
    PrivateKey::try_from(KeypairData::from(pair)).unwrap()
}

#[tokio::test]
async fn a_certificate_beside_its_key_opens_for_every_kind_of_key() {
    let authority = key(Algorithm::Ed25519);
    let Some(mut sshd) = trusting(&authority).await else {
        return;
    };
    for (name, key) in [("ed", key(Algorithm::Ed25519)), ("rsa", rsa())] {
        sshd.target.keys = vec![sshd.home.write_key(name, &key)];
        let certified = certificate(&authority, &key, &user(&sshd), now() + HOUR);
        write(&sshd.home, &format!("{name}-cert.pub"), &certified);
        works(&sshd.session().await).await;
    }
}

#[tokio::test]
async fn the_key_of_a_certificate_is_decrypted_only_when_the_server_would_take_it() {
    let authority = key(Algorithm::Ed25519);
    let Some(mut sshd) = trusting(&authority).await else {
        return;
    };
    let locked = key(Algorithm::Ed25519);
    let encrypted = locked.encrypt(&mut russh::keys::key::safe_rng(), "right").unwrap();
    sshd.target.keys = vec![sshd.home.write_key("locked", &encrypted)];
    let person = || {
        Person::new(|ask, _| {
            Some(match ask {
                Ask::Passphrase { .. } => Reply::Secret(SecretString::from("right")),
                Ask::HostKey { .. } => Reply::Yes,
                Ask::Login { .. } => Reply::No,
            })
        })
    };
    let passphrases = |asks: Vec<Ask>| asks.iter().filter(|a| matches!(a, Ask::Passphrase { .. })).count();
    let others = certificate(&authority, &locked, "somebody-else", now() + HOUR);
    write(&sshd.home, "locked-cert.pub", &others);
    let refused = person();
    let error = sshd.home.connect(&sshd.target, &refused).await.err().unwrap();
    assert!(
        error.text.contains("(certificate \"operator\" for ssh-ed25519 SHA256:"),
        "{}",
        error.text
    );
    assert_eq!(passphrases(refused.asks()), 0);
    let mine = certificate(&authority, &locked, &user(&sshd), now() + HOUR);
    write(&sshd.home, "locked-cert.pub", &mine);
    let taken = person();
    works(&sshd.home.connect(&sshd.target, &taken).await.unwrap()).await;
    assert_eq!(passphrases(taken.asks()), 1);
}

#[tokio::test]
async fn an_expired_certificate_is_told_and_not_offered() {
    let authority = key(Algorithm::Ed25519);
    let Some(sshd) = trusting(&authority).await else { return };
    let expired = certificate(&authority, &sshd.home.key, &user(&sshd), now() - HOUR);
    write(&sshd.home, "id-cert.pub", &expired);
    let error = sshd
        .home
        .connect(&sshd.target, &Person::trusting())
        .await
        .err()
        .unwrap();
    assert!(
        error.text.contains("id-cert.pub: the certificate expired 1h00m ago"),
        "{}",
        error.text
    );
    assert!(!error.text.contains("(certificate"), "{}", error.text);
}

#[tokio::test]
async fn the_agent_signs_for_a_certificate_that_it_holds_and_for_one_in_a_file() {
    if !here("/usr/bin/ssh-agent") || !here("/usr/bin/ssh-add") {
        return;
    }
    let authority = key(Algorithm::Ed25519);
    let Some(mut sshd) = trusting(&authority).await else {
        return;
    };
    let agent = Agent::start(&sshd.home).await;
    sshd.home.settings.agent = Some(agent.socket.clone());
    let held = rsa();
    sshd.home.write_key("held", &held);
    restrict(&sshd.home.path("held"));
    let certified = certificate(&authority, &held, &user(&sshd), now() + HOUR);

    // The agent has the key only; the certificate is beside a public key's file, and the private one is gone.
    ssh_add(&agent, &sshd.home.path("held")).await;
    std::fs::remove_file(sshd.home.path("held")).unwrap();
    std::fs::write(sshd.home.path("held.pub"), held.public_key().to_openssh().unwrap()).unwrap();
    write(&sshd.home, "held-cert.pub", &certified);
    sshd.target.keys = vec![sshd.home.path("held.pub").display().to_string()];
    works(&sshd.session().await).await;

    // The agent has both, and nothing is named.
    let agent = {
        let folder = Home::new();
        let agent = Agent::start(&folder).await;
        let path = folder.path("held");
        folder.write_key("held", &held);
        restrict(&path);
        write(&folder, "held-cert.pub", &certified);
        ssh_add(&agent, &path).await;
        (agent, folder)
    };
    sshd.home.settings.agent = Some(agent.0.socket.clone());
    sshd.target.keys = vec![sshd.home.path("id").display().to_string()];
    works(&sshd.session().await).await;
}

async fn ssh_add(agent: &Agent, key: &Path) {
    let mut add = tokio::process::Command::new("ssh-add");
    let done = add
        .arg("-q")
        .arg(key)
        .env("SSH_AUTH_SOCK", &agent.socket)
        .status()
        .await;
    assert!(done.unwrap().success());
}
