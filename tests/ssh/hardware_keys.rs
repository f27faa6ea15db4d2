//! Hardware keys: an agent of the test's own signs as one that holds a token would, and a real sshd checks the signature.

use std::path::PathBuf;

use russh::keys::signature::Signer;
use russh::keys::ssh_encoding::{Decode, Encode};
use russh::keys::ssh_key::Signature;
use russh::keys::ssh_key::public::KeyData;
use russh::keys::{Algorithm, EcdsaCurve, PrivateKey, PublicKey};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::logins::works;
use crate::person::{Home, Person};
use crate::server::{Server, key};
use crate::sshd::Sshd;

const APPLICATION: &str = "ssh:";

/// The person touched the token.
const TOUCHED: u8 = 1;

/// A key as a token has it, made of one in software.
#[derive(Clone)]
struct Token {
    key: PrivateKey,
    kind: &'static str,
}

impl Token {
    fn new(algorithm: Algorithm) -> Self {
        let kind = match algorithm {
            Algorithm::Ed25519 => "sk-ssh-ed25519@openssh.com",
            _ => "sk-ecdsa-sha2-nistp256@openssh.com",
        };
        Self {
            key: key(algorithm),
            kind,
        }
    }

    /// The public key as it goes over a wire: the kind, what the software key has behind its own kind, the application.
    fn blob(&self) -> Vec<u8> {
        let plain = self.key.public_key().to_bytes().unwrap();
        let mut rest = plain.as_slice();
        String::decode(&mut rest).unwrap();
        let mut blob = Vec::new();
        self.kind.encode(&mut blob).unwrap();
        blob.extend_from_slice(rest);
        APPLICATION.encode(&mut blob).unwrap();
        blob
    }

    fn public(&self) -> PublicKey {
        PublicKey::from(KeyData::decode(&mut self.blob().as_slice()).unwrap())
    }

    /// As a token signs: over the hash of the application, what the person did, a counter, and the hash of the data.
    fn sign(&self, data: &[u8], counter: u32) -> Vec<u8> {
        let mut message = Sha256::digest(APPLICATION).to_vec();
        message.push(TOUCHED);
        message.extend(counter.to_be_bytes());
        message.extend(Sha256::digest(data));
        let signature: Signature = self.key.try_sign(&message).unwrap();
        let mut blob = Vec::new();
        self.kind.encode(&mut blob).unwrap();
        signature.as_bytes().encode(&mut blob).unwrap();
        blob.push(TOUCHED);
        blob.extend(counter.to_be_bytes());
        blob
    }

    /// An agent that holds it: lists it (11, answered by 12) and signs (13, answered by 14).
    async fn agent(&self, home: &Home) -> PathBuf {
        let path = home.path("token");
        let listener = tokio::net::UnixListener::bind(&path).unwrap();
        let token = self.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut counter = 0;
                while let Some(asked) = message(&mut stream).await {
                    let mut answer = Vec::new();
                    match asked.split_first() {
                        Some((11, _)) => {
                            answer.push(12);
                            answer.extend(1_u32.to_be_bytes());
                            token.blob().encode(&mut answer).unwrap();
                            "token".encode(&mut answer).unwrap();
                        }
                        Some((13, mut rest)) => {
                            assert_eq!(Vec::<u8>::decode(&mut rest).unwrap(), token.blob());
                            let data = Vec::<u8>::decode(&mut rest).unwrap();
                            counter += 1;
                            answer.push(14);
                            token.sign(&data, counter).encode(&mut answer).unwrap();
                        }
                        _ => answer.push(5),
                    }
                    let mut framed = Vec::new();
                    answer.encode(&mut framed).unwrap();
                    stream.write_all(&framed).await.unwrap();
                }
            }
        });
        path
    }
}

async fn message(from: &mut UnixStream) -> Option<Vec<u8>> {
    let length = from.read_u32().await.ok()?;
    let mut body = vec![0; usize::try_from(length).unwrap()];
    from.read_exact(&mut body).await.ok()?;
    Some(body)
}

fn kinds() -> [Algorithm; 2] {
    let curve = EcdsaCurve::NistP256;
    [Algorithm::Ed25519, Algorithm::Ecdsa { curve }]
}

#[tokio::test]
async fn a_real_sshd_takes_a_tokens_signature_through_the_agent() {
    for algorithm in kinds() {
        let token = Token::new(algorithm);
        let line = token.public().to_openssh().unwrap();
        let Some(mut sshd) = Sshd::start_as(&[], |_| String::new()).await else {
            return;
        };
        std::fs::write(sshd.home.path("authorized"), &line).unwrap();
        sshd.home.settings.agent = Some(token.agent(&sshd.home).await);
        // Nothing is named but what the agent holds as well, by its public half.
        std::fs::write(sshd.home.path("token.pub"), &line).unwrap();
        sshd.target.keys = vec![sshd.home.path("token.pub").display().to_string()];
        works(&sshd.session().await).await;
        // And among the agent's other keys, where another one is named.
        sshd.target.keys = vec![sshd.home.path("id").display().to_string()];
        works(&sshd.session().await).await;
    }
}

#[tokio::test]
async fn a_named_public_key_that_no_agent_holds_is_told() {
    let home = Home::new();
    let server = Server::new(&[]);
    let mut target = home.target(server.listen().await);
    let token = Token::new(Algorithm::Ed25519);
    std::fs::write(home.path("token.pub"), token.public().to_openssh().unwrap()).unwrap();
    target.keys = ["token.pub", "token"]
        .map(|n| home.path(n).display().to_string())
        .to_vec();
    let error = home.connect(&target, &Person::trusting()).await.err().unwrap();
    for part in [
        "token.pub: it is a public key, and the agent does not hold the private one",
        "token: only its public half is here, and the agent does not hold the private one",
    ] {
        assert!(error.text.contains(part), "{part} is not in {}", error.text);
    }
}
