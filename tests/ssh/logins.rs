//! Logins: kinds of keys, passphrases, the agent, and what is said when nobody is let in.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bringup::domain::command::Command;
use bringup::domain::link::LinkErrorKind;
use bringup::domain::question::Ask;
use bringup::ssh::{Reply, Reporter, Session};
use russh::keys::ssh_key::private::{KeypairData, RsaKeypair};
use russh::keys::{Algorithm, EcdsaCurve, HashAlg, PrivateKey};
use secrecy::SecretString;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::person::{Home, NODE, Person, here, text};
use crate::server::{Server, key};

pub async fn works(session: &Session) {
    let output = session
        .exec(&Command::argv(["echo", "in"], Duration::from_secs(50)), None)
        .await;
    assert_eq!(output.text(), "in\n", "{output:?}");
}

/// Answers a passphrase with these, one after the other, and trusts every host.
fn knows(passphrases: &'static [&'static str]) -> Arc<Person> {
    let given = std::sync::atomic::AtomicUsize::new(0);
    Person::new(move |ask, _| {
        Some(match ask {
            Ask::HostKey { .. } => Reply::Yes,
            Ask::Login { .. } => Reply::No,
            Ask::Passphrase { .. } => match passphrases.get(given.fetch_add(1, Ordering::Relaxed)) {
                Some(p) => Reply::Secret(SecretString::from(*p)),
                None => Reply::No,
            },
        })
    })
}

fn passphrase_asks(person: &Person) -> Vec<bool> {
    let again = |ask| match ask {
        Ask::Passphrase { again, .. } => Some(again),
        Ask::HostKey { .. } | Ask::Login { .. } => None,
    };
    person.asks().into_iter().filter_map(again).collect()
}

#[tokio::test]
async fn every_kind_of_key_opens() {
    let home = Home::new();
    let rsa = PrivateKey::try_from(KeypairData::from(
        RsaKeypair::random(&mut russh::keys::key::safe_rng(), 2048).unwrap(),
    ))
    .unwrap();
    let keys = [
        key(Algorithm::Ed25519),
        key(Algorithm::Ecdsa {
            curve: EcdsaCurve::NistP256,
        }),
        key(Algorithm::Ecdsa {
            curve: EcdsaCurve::NistP384,
        }),
        rsa,
    ];
    for key in &keys {
        let server = Server::new(&[key]);
        let mut target = home.target(server.listen().await);
        target.keys = vec![home.write_key("this", key)];
        works(&home.connect(&target, &Person::trusting()).await.unwrap()).await;
    }
}

#[tokio::test]
async fn a_passphrase_is_asked_once_and_again_when_it_is_wrong() {
    let home = Home::new();
    let locked = home.key.encrypt(&mut russh::keys::key::safe_rng(), "right").unwrap();
    home.write_key("id", &locked);
    let server = Server::new(&[&home.key]);
    let target = home.target(server.listen().await);
    let person = knows(&["wrong", "right"]);
    // Two at once and one later: one person, one answer.
    let (a, b) = tokio::join!(home.connect(&target, &person), home.connect(&target, &person));
    works(&a.unwrap()).await;
    works(&b.unwrap()).await;
    works(&home.connect(&target, &person).await.unwrap()).await;
    assert_eq!(passphrase_asks(&person), [false, true]);
}

#[tokio::test]
async fn a_passphrase_is_not_asked_for_a_key_that_the_server_refuses() {
    let home = Home::new();
    home.write_key(
        "id",
        &home.key.encrypt(&mut russh::keys::key::safe_rng(), "right").unwrap(),
    );
    let server = Server::new(&[]);
    let person = knows(&["right"]);
    let error = home
        .connect(&home.target(server.listen().await), &person)
        .await
        .err()
        .unwrap();
    assert_eq!(error.kind, LinkErrorKind::Refused);
    assert_eq!(passphrase_asks(&person), Vec::<bool>::new());
}

#[tokio::test]
async fn three_wrong_passphrases_are_enough_and_a_dismissed_question_is_not_repeated() {
    let home = Home::new();
    home.write_key(
        "id",
        &home.key.encrypt(&mut russh::keys::key::safe_rng(), "right").unwrap(),
    );
    let server = Server::new(&[&home.key]);
    let target = home.target(server.listen().await);
    let person = knows(&["a", "b", "c", "right"]);
    let error = home.connect(&target, &person).await.err().unwrap();
    assert!(
        error.kind == LinkErrorKind::Local && error.text.contains("its passphrase was wrong 3 times"),
        "{}",
        error.text
    );
    let error = home.connect(&target, &person).await.err().unwrap();
    assert!(error.text.contains("its passphrase was not given"), "{}", error.text);
    assert_eq!(passphrase_asks(&person), [false, true, true]);
}

#[tokio::test]
async fn a_key_encrypted_the_old_way_opens() {
    if !here("/usr/bin/ssh-keygen") {
        return;
    }
    let home = Home::new();
    for (kind, extra) in [("rsa", &["-b", "2048"][..]), ("ecdsa", &[]), ("ed25519", &[])] {
        for format in ["PKCS8", "RFC4716"] {
            let path = home.path(&format!("{kind}-{format}"));
            let mut make = tokio::process::Command::new("ssh-keygen");
            make.args(["-q", "-t", kind, "-m", format, "-N", "right", "-f"])
                .arg(&path)
                .args(extra);
            assert!(make.stdin(Stdio::null()).status().await.unwrap().success());
            let public = russh::keys::load_public_key(home.path(&format!("{kind}-{format}.pub"))).unwrap();
            let server = Server::for_keys(vec![public]);
            let mut target = home.target(server.listen().await);
            target.keys = vec![path.display().to_string()];
            let person = knows(&["right"]);
            match home.connect(&target, &person).await {
                Ok(session) => works(&session).await,
                Err(error) => panic!("{kind} {format}: {}", error.text),
            }
            assert_eq!(passphrase_asks(&person), [false], "{kind} {format}");
        }
    }
}

#[tokio::test]
async fn where_nobody_can_be_asked_an_encrypted_key_says_what_is_missing() {
    let mut home = Home::new();
    home.settings.interactive = false;
    home.write_key(
        "id",
        &home.key.encrypt(&mut russh::keys::key::safe_rng(), "right").unwrap(),
    );
    let server = Server::new(&[&home.key]);
    let port = server.listen().await;
    let known = format!("[127.0.0.1]:{port} {}\n", server.host_key().to_openssh().unwrap());
    std::fs::write(home.path("known_hosts"), known).unwrap();
    let person = knows(&["right"]);
    let error = home.connect(&home.target(port), &person).await.err().unwrap();
    assert!(
        error.text.contains("nobody can be asked for its passphrase"),
        "{}",
        error.text
    );
    assert!(person.asks().is_empty());
}

#[tokio::test]
async fn a_refusal_names_the_host_and_the_keys_and_how_to_add_one() {
    let home = Home::new();
    let server = Server::new(&[]);
    let port = server.listen().await;
    let mut target = home.target(port);
    let other = key(Algorithm::Ed25519);
    target.keys.push(home.write_key("other key", &other));
    target.keys.push(home.path("missing").display().to_string());
    std::fs::write(home.path("id.pub"), "").unwrap();
    let error = home.connect(&target, &Person::trusting()).await.err().unwrap();
    assert_eq!(error.kind, LinkErrorKind::Refused);
    let text = text(&error);
    let fingerprint = |k: &PrivateKey| k.public_key().fingerprint(HashAlg::Sha256).to_string();
    let parts = [
        format!("spark-1 (aurora@127.0.0.1:{port}): it refused every key"),
        format!("{} (ssh-ed25519 {})", home.path("id").display(), fingerprint(&home.key)),
        format!(
            "{} (ssh-ed25519 {})",
            home.path("other key").display(),
            fingerprint(&other)
        ),
        format!("{}: there is no such file", home.path("missing").display()),
        format!(" -p {port} aurora@127.0.0.1 "),
        format!(" < {}", home.path("id.pub").display()),
    ];
    for part in parts {
        assert!(text.contains(&part), "{part} is not in {text}");
    }
}

#[tokio::test]
async fn no_more_keys_are_offered_than_a_server_lets_pass() {
    let home = Home::new();
    let server = Server::new(&[&home.key]);
    let mut target = home.target(server.listen().await);
    target.keys = (0..9)
        .map(|n| home.write_key(&format!("k{n}"), &key(Algorithm::Ed25519)))
        .collect();
    let error = home.connect(&target, &Person::trusting()).await.err().unwrap();
    assert!(error.text.contains("no more than 6 keys are offered"), "{}", error.text);
    assert_eq!(server.keys_offered.load(Ordering::Relaxed), 6);
}

#[tokio::test]
async fn no_agent_is_no_error() {
    let mut home = Home::new();
    home.settings.agent = Some(home.path("no-such-socket"));
    let server = Server::new(&[&home.key]);
    works(
        &home
            .connect(&home.target(server.listen().await), &Person::trusting())
            .await
            .unwrap(),
    )
    .await;
    let server = Server::new(&[]);
    let error = home
        .connect(&home.target(server.listen().await), &Person::trusting())
        .await
        .err()
        .unwrap();
    assert!(error.text.contains("ssh-agent: "), "{}", error.text);
}

#[tokio::test]
async fn a_silent_port_and_a_closed_one_are_told_apart() {
    let mut home = Home::new();
    home.settings.connect_limit = Duration::from_secs(1);
    let silent = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let error = home
        .connect(&home.target(silent.local_addr().unwrap().port()), &Person::trusting())
        .await
        .err()
        .unwrap();
    assert!(
        error.kind == LinkErrorKind::Unreachable && error.text.contains("no SSH handshake within 1 s"),
        "{}",
        error.text
    );
    let port = silent.local_addr().unwrap().port();
    drop(silent);
    let error = home
        .connect(&home.target(port), &Person::trusting())
        .await
        .err()
        .unwrap();
    assert!(
        error.kind == LinkErrorKind::Unreachable && error.text.contains("connection refused"),
        "{}",
        error.text
    );
}

#[tokio::test]
async fn a_server_without_a_common_algorithm_shows_what_it_offers() {
    let home = Home::new();
    let server = Server::new(&[&home.key]);
    server.old.store(true, Ordering::Relaxed);
    let error = home
        .connect(&home.target(server.listen().await), &Person::trusting())
        .await
        .err()
        .unwrap();
    assert_eq!(error.kind, LinkErrorKind::Unreachable);
    assert!(
        error
            .text
            .contains("no common key exchange algorithm; the server offers diffie-hellman-group1-sha1"),
        "{}",
        error.text
    );
}

#[tokio::test]
async fn a_server_that_drops_the_first_handshake_is_tried_again() {
    let home = Home::new();
    let server = Server::new(&[&home.key]);
    server.drop_first.store(1, Ordering::Relaxed);
    works(
        &home
            .connect(&home.target(server.listen().await), &Person::trusting())
            .await
            .unwrap(),
    )
    .await;
    server.drop_first.store(100, Ordering::Relaxed);
    let error = home
        .connect(&home.target(server.listen().await), &Person::trusting())
        .await
        .err()
        .unwrap();
    assert_eq!(error.kind, LinkErrorKind::Unreachable);
    assert_eq!(server.drop_first.load(Ordering::Relaxed), 97);
}

#[tokio::test]
async fn a_connection_that_is_lost_during_the_login_is_no_refusal() {
    let home = Home::new();
    let server = Server::new(&[&home.key]);
    let target = home.target(server.listen().await);
    server.hang_up_on_offer.store(1, Ordering::Relaxed);
    let error = home.connect(&target, &Person::trusting()).await.err().unwrap();
    assert_eq!(error.kind, LinkErrorKind::Unreachable, "{}", error.text);
    assert!(
        error.text.contains("the connection was lost during the login: "),
        "{}",
        error.text
    );
    assert_eq!(error.fix, None);
    works(&home.connect(&target, &Person::trusting()).await.unwrap()).await;
}

#[tokio::test]
async fn a_server_that_ends_the_login_after_too_many_keys_has_refused_them() {
    let home = Home::new();
    let server = Server::new(&[&home.key]);
    server.max_tries.store(2, Ordering::Relaxed);
    let mut target = home.target(server.listen().await);
    target.keys = (0..4)
        .map(|n| home.write_key(&format!("k{n}"), &key(Algorithm::Ed25519)))
        .collect();
    let error = home.connect(&target, &Person::trusting()).await.err().unwrap();
    assert_eq!(error.kind, LinkErrorKind::Refused, "{}", error.text);
    let parts = [
        "it refused keys: tried ",
        "of them: the server said goodbye: Too many",
        "its limit is below 6",
    ];
    for part in parts {
        assert!(error.text.contains(part), "{part} is not in {}", error.text);
    }
}

/// A real agent in a directory of the test's own.
pub struct Agent {
    pub socket: PathBuf,
    _process: tokio::process::Child,
}

impl Agent {
    pub async fn start(home: &Home) -> Self {
        let socket = home.path("agent");
        let process = tokio::process::Command::new("ssh-agent")
            .args(["-D", "-a"])
            .arg(&socket)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        crate::processes::until("the agent listens", || {
            std::os::unix::net::UnixStream::connect(&socket).is_ok()
        })
        .await;
        Self {
            socket,
            _process: process,
        }
    }

    async fn add(&self, key: &PrivateKey) {
        let stream = tokio::net::UnixStream::connect(&self.socket).await.unwrap();
        russh::keys::agent::client::AgentClient::connect(stream)
            .add_identity(key, &[])
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn an_agents_keys_open_and_spare_the_passphrase() {
    if !here("/usr/bin/ssh-agent") {
        return;
    }
    let mut home = Home::new();
    let agent = Agent::start(&home).await;
    home.settings.agent = Some(agent.socket.clone());
    let rsa = PrivateKey::try_from(KeypairData::from(
        RsaKeypair::random(&mut russh::keys::key::safe_rng(), 2048).unwrap(),
    ))
    .unwrap();
    for held in [&key(Algorithm::Ed25519), &home.key, &rsa] {
        agent.add(held).await;
    }
    // The named key is encrypted; the agent has it open, and it goes first although the agent lists it second.
    home.write_key(
        "id",
        &home.key.encrypt(&mut russh::keys::key::safe_rng(), "unknown").unwrap(),
    );
    let server = Server::new(&[&home.key]);
    let person = knows(&[]);
    works(
        &home
            .connect(&home.target(server.listen().await), &person)
            .await
            .unwrap(),
    )
    .await;
    assert_eq!(server.keys_offered.load(Ordering::Relaxed), 1);
    assert_eq!(passphrase_asks(&person), Vec::<bool>::new());
    // Keys of the agent that nobody named come after the named ones.
    let server = Server::new(&[&rsa]);
    works(
        &home
            .connect(&home.target(server.listen().await), &person)
            .await
            .unwrap(),
    )
    .await;
}

/// Passes on what an agent is asked, signatures only after longer than the connection may take.
async fn slow_agent(agent: &Agent, home: &Home) -> PathBuf {
    async fn message(from: &mut UnixStream) -> Option<Vec<u8>> {
        let length = from.read_u32().await.ok()?;
        let mut body = vec![0; usize::try_from(length).unwrap()];
        from.read_exact(&mut body).await.ok()?;
        Some([length.to_be_bytes().as_slice(), &body].concat())
    }
    const SIGN: u8 = 13;
    let path = home.path("slow-agent");
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    let behind = agent.socket.clone();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut agent = UnixStream::connect(&behind).await.unwrap();
            while let Some(asked) = message(&mut client).await {
                if asked.get(4) == Some(&SIGN) {
                    tokio::time::sleep(Duration::from_secs(3)).await;
                }
                agent.write_all(&asked).await.unwrap();
                let answer = message(&mut agent).await.unwrap();
                client.write_all(&answer).await.unwrap();
            }
        }
    });
    path
}

#[tokio::test]
async fn an_agent_may_take_longer_than_any_limit_of_the_hosts() {
    if !here("/usr/bin/ssh-agent") {
        return;
    }
    let mut home = Home::new();
    let agent = Agent::start(&home).await;
    agent.add(&home.key).await;
    home.settings.agent = Some(slow_agent(&agent, &home).await);
    home.settings.connect_limit = Duration::from_secs(2);
    let server = Server::new(&[&home.key]);
    let target = home.target(server.listen().await);
    works(&home.connect(&target, &Person::trusting()).await.unwrap()).await;
}

#[tokio::test]
async fn a_person_may_take_longer_than_any_limit() {
    let mut home = Home::new();
    home.settings.connect_limit = Duration::from_secs(2);
    home.write_key(
        "id",
        &home.key.encrypt(&mut russh::keys::key::safe_rng(), "right").unwrap(),
    );
    let server = Server::new(&[&home.key]);
    let target = home.target(server.listen().await);
    let slow = Arc::new(Slow(knows(&["right"])));
    let session = Session::connect(&target, None, &home.settings, slow, NODE)
        .await
        .unwrap();
    works(&session).await;
}

/// A person who thinks before each answer, for longer than the connection may take.
pub struct Slow(pub Arc<Person>);

impl Reporter for Slow {
    fn link(&self, source: bringup::domain::Source, state: bringup::domain::link::LinkState) {
        self.0.link(source, state);
    }

    fn ask(&self, source: bringup::domain::Source, ask: Ask) -> tokio::sync::oneshot::Receiver<Reply> {
        let answer = self.0.ask(source, ask);
        let (sender, receiver) = tokio::sync::oneshot::channel();
        tokio::spawn(async move {
            let answer = answer.await.unwrap();
            tokio::time::sleep(Duration::from_secs(3)).await;
            let _ = sender.send(answer);
        });
        receiver
    }

    fn now(&self) -> bringup::domain::Stamp {
        self.0.now()
    }
}
