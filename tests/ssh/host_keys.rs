//! Host keys: asked about once, kept, and refused when they change.

use std::sync::Arc;

use bringup::domain::link::{HostKeys, LinkErrorKind, LinkState};
use bringup::domain::question::Ask;
use bringup::ssh::Reply;
use russh::keys::{Algorithm, EcdsaCurve, HashAlg, PublicKey};

use crate::person::{Home, NODE, Person, text};
use crate::server::{Server, key};

fn fingerprint(key: &PublicKey) -> String {
    key.fingerprint(HashAlg::Sha256).to_string()
}

fn line(port: u16, key: &PublicKey) -> String {
    format!("[127.0.0.1]:{port} {}\n", key.to_openssh().unwrap().trim())
}

#[tokio::test]
async fn an_unknown_key_is_asked_about_once_and_kept() {
    let home = Home::new();
    let server = Server::new(&[&home.key]);
    let port = server.listen().await;
    let person = Person::trusting();
    home.connect(&home.target(port), &person).await.unwrap();
    let expected = Ask::HostKey {
        host: format!("127.0.0.1:{port}"),
        algorithm: "ssh-ed25519".into(),
        fingerprint: fingerprint(&server.host_key()),
        file: home.path("known_hosts").display().to_string(),
    };
    assert_eq!(person.asks(), [expected]);
    assert_eq!(home.known_hosts(), line(port, &server.host_key()));
    assert_eq!(
        person.links(NODE),
        [
            LinkState::Connecting,
            LinkState::Asking,
            LinkState::Connecting,
            LinkState::Up
        ]
    );
    home.connect(&home.target(port), &person).await.unwrap();
    assert_eq!(person.asks().len(), 1);
}

#[tokio::test]
async fn two_connections_to_one_host_ask_once() {
    let home = Home::new();
    let server = Server::new(&[&home.key]);
    let target = home.target(server.listen().await);
    let person = Person::trusting();
    let (a, b) = tokio::join!(home.connect(&target, &person), home.connect(&target, &person));
    assert!(a.is_ok() && b.is_ok());
    assert_eq!(person.asks().len(), 1);
    assert_eq!(home.known_hosts().lines().count(), 1);
}

#[tokio::test]
async fn no_is_an_answer() {
    let home = Home::new();
    let server = Server::new(&[&home.key]);
    let person = Person::new(|_, _| Some(Reply::No));
    let error = home
        .connect(&home.target(server.listen().await), &person)
        .await
        .err()
        .unwrap();
    assert_eq!(error.kind, LinkErrorKind::HostKeyUnknown);
    assert!(error.text.contains("it was not accepted"), "{}", error.text);
    assert_eq!(home.known_hosts(), "");
}

#[tokio::test]
async fn where_nobody_can_be_asked_nothing_is_asked() {
    let mut home = Home::new();
    home.settings.interactive = false;
    let server = Server::new(&[&home.key]);
    let port = server.listen().await;
    let person = Person::trusting();
    let error = home.connect(&home.target(port), &person).await.err().unwrap();
    assert_eq!(error.kind, LinkErrorKind::HostKeyUnknown);
    let text = text(&error);
    assert!(text.contains(&fingerprint(&server.host_key())), "{text}");
    let (how, command) = error.fix.as_deref().unwrap().split_once('\n').unwrap();
    assert_eq!(how, "log in once by hand:");
    let expected = [
        "ssh",
        "-i",
        &home.target(port).keys[0],
        "-o",
        &format!("UserKnownHostsFile={}", home.path("known_hosts").display()),
        "-p",
        &port.to_string(),
        "aurora@127.0.0.1",
        "true",
    ];
    assert_eq!(shlex::split(command).unwrap(), expected);
    assert!(person.asks().is_empty());
}

#[tokio::test]
async fn accept_new_writes_down_a_new_key_and_refuses_a_changed_one() {
    let mut home = Home::new();
    home.settings.host_keys = Some(HostKeys::AcceptNew);
    home.settings.interactive = false;
    let server = Server::new(&[&home.key]);
    let port = server.listen().await;
    let person = Person::trusting();
    let target = home.target(port);
    let (a, b) = tokio::join!(home.connect(&target, &person), home.connect(&target, &person));
    assert!(a.is_ok() && b.is_ok());
    assert_eq!(home.known_hosts(), line(port, &server.host_key()));

    let old = key(Algorithm::Ed25519).public_key().clone();
    std::fs::write(home.path("known_hosts"), line(port, &old)).unwrap();
    let error = home.connect(&target, &person).await.err().unwrap();
    assert_eq!(error.kind, LinkErrorKind::HostKeyChanged);
    assert_eq!(home.known_hosts(), line(port, &old));
    assert!(person.asks().is_empty());
}

#[tokio::test]
async fn strict_takes_what_is_on_file_alone() {
    let mut home = Home::new();
    home.settings.host_keys = Some(HostKeys::Strict);
    let server = Server::new(&[&home.key]);
    let port = server.listen().await;
    let person = Person::trusting();
    let error = home.connect(&home.target(port), &person).await.err().unwrap();
    assert_eq!(error.kind, LinkErrorKind::HostKeyUnknown);
    let text = text(&error);
    assert!(
        text.contains("no new one is accepted") && text.contains("StrictHostKeyChecking=ask"),
        "{text}"
    );
    assert!(person.asks().is_empty());
    assert_eq!(home.known_hosts(), "");
    std::fs::write(home.path("known_hosts"), line(port, &server.host_key())).unwrap();
    home.connect(&home.target(port), &person).await.unwrap();
}

#[tokio::test]
async fn a_revoked_key_refuses_under_every_policy() {
    for policy in HostKeys::ALL {
        let mut home = Home::new();
        home.settings.host_keys = Some(policy);
        let server = Server::new(&[&home.key]);
        let port = server.listen().await;
        let on_file = line(port, &server.host_key());
        std::fs::write(
            home.path("known_hosts"),
            format!("{on_file}@revoked * {}", on_file.split_once(' ').unwrap().1),
        )
        .unwrap();
        let error = home
            .connect(&home.target(port), &Person::trusting())
            .await
            .err()
            .unwrap();
        assert!(
            error.text.contains("is marked as revoked"),
            "{policy:?}: {}",
            error.text
        );
        assert!(error.text.contains("line 2"), "{}", error.text);
    }
}

#[tokio::test]
async fn what_the_machines_own_file_revokes_counts_beside_files_of_ours() {
    if !crate::person::here("/usr/bin/ssh") {
        return;
    }
    for policy in HostKeys::ALL {
        let mut home = Home::new();
        home.settings.host_keys = Some(policy);
        let server = Server::new(&[&home.key]);
        let port = server.listen().await;
        std::fs::write(home.path("known_hosts"), line(port, &server.host_key())).unwrap();
        let config = format!(
            "Host spark\n  HostName 127.0.0.1\n  GlobalKnownHostsFile {}\n",
            home.path("global").display()
        );
        std::fs::write(home.path("config"), config).unwrap();
        home.settings.ssh_config = Some(home.path("config"));
        let mut target = home.target_at("spark", port);
        target.alias = true;
        home.connect(&target, &Person::trusting()).await.unwrap();
        let revoked = format!("@revoked * {}", server.host_key().to_openssh().unwrap());
        std::fs::write(home.path("global"), revoked).unwrap();
        let error = home.connect(&target, &Person::trusting()).await.err().unwrap();
        assert_eq!(error.kind, LinkErrorKind::HostKeyChanged, "{policy:?}: {}", error.text);
        assert!(error.text.contains("is marked as revoked"), "{}", error.text);
    }
}

#[tokio::test]
async fn a_changed_key_refuses_and_shows_both() {
    let home = Home::new();
    let server = Server::new(&[&home.key]);
    let port = server.listen().await;
    let old = key(Algorithm::Ed25519).public_key().clone();
    std::fs::write(home.path("known_hosts"), line(port, &old)).unwrap();
    let person = Person::trusting();
    let error = home.connect(&home.target(port), &person).await.err().unwrap();
    assert_eq!(error.kind, LinkErrorKind::HostKeyChanged);
    let text = text(&error);
    for part in [
        fingerprint(&old),
        fingerprint(&server.host_key()),
        "line 1".into(),
        "spark-1 (aurora@127.0.0.1".into(),
        "ssh-keygen -R ".into(),
    ] {
        assert!(text.contains(&part), "{part} is not in {text}");
    }
    assert!(person.asks().is_empty());
    assert_eq!(home.known_hosts(), line(port, &old));
}

#[tokio::test]
async fn the_algorithm_on_file_is_asked_for_first() {
    let home = Home::new();
    let ecdsa = key(Algorithm::Ecdsa {
        curve: EcdsaCurve::NistP256,
    });
    let server = Server::with_host_keys(&[&home.key], vec![key(Algorithm::Ed25519), ecdsa.clone()]);
    let port = server.listen().await;
    std::fs::write(home.path("known_hosts"), line(port, ecdsa.public_key())).unwrap();
    let person = Person::trusting();
    home.connect(&home.target(port), &person).await.unwrap();
    assert!(person.asks().is_empty());
}

#[tokio::test]
async fn a_key_of_another_algorithm_than_on_file_is_a_change() {
    let home = Home::new();
    let server = Server::new(&[&home.key]);
    let port = server.listen().await;
    let old = key(Algorithm::Ecdsa {
        curve: EcdsaCurve::NistP256,
    });
    std::fs::write(home.path("known_hosts"), line(port, old.public_key())).unwrap();
    let person = Person::trusting();
    let error = home.connect(&home.target(port), &person).await.err().unwrap();
    assert_eq!(error.kind, LinkErrorKind::HostKeyChanged);
    assert!(person.asks().is_empty());
}

#[tokio::test]
async fn a_key_that_cannot_be_kept_is_not_accepted() {
    let mut home = Home::new();
    // A directory stands where the file should be.
    home.settings.known_hosts = vec![home.folder.path().to_owned()];
    let server = Server::new(&[&home.key]);
    let person = Person::trusting();
    let error = home
        .connect(&home.target(server.listen().await), &person)
        .await
        .err()
        .unwrap();
    assert!(
        error.kind == LinkErrorKind::Local && error.text.contains("could not be written"),
        "{}",
        error.text
    );
    drop(Arc::clone(&server));
}
