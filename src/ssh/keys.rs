//! Private keys in files, as far as they can be read without a passphrase.

use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use russh::keys::{Algorithm, Certificate, PrivateKey, PublicKey, decode_secret_key};
use secrecy::{ExposeSecret, SecretString};

use super::files;

/// Longest key or certificate file that is read.
const MAX_FILE: u64 = 64 * 1024;

/// A key file as it can be read without a passphrase.
pub(super) struct KeyFile {
    pub(super) path: PathBuf,
    /// Absent in an encrypted file of an old format that has no `.pub` beside it.
    pub(super) public: Option<PublicKey>,
    pub(super) state: KeyState,
}

/// What of the private key a file gives.
pub(super) enum KeyState {
    Open(Arc<PrivateKey>),
    Encrypted(SecretString),
    /// Only an agent can sign with it. A fragment says why.
    AgentOnly(&'static str),
}

/// Why a key or certificate file can't be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum KeyProblem {
    Missing,
    /// A fragment.
    Unusable(String),
}

impl KeyFile {
    /// Reads a file of any format that OpenSSH or OpenSSL write, or a public key whose private half an agent may hold.
    pub(super) fn load(path: &Path) -> Result<Self, KeyProblem> {
        let text = match read(path) {
            Ok(text) => text,
            // As ssh does: the public half alone names a key of the agent's.
            Err(KeyProblem::Missing) => return Self::public_half(path),
            Err(problem) => return Err(problem),
        };
        let (public, state) = if text.expose_secret().contains("BEGIN OPENSSH PRIVATE KEY") {
            openssh(text)?
        } else if !text.expose_secret().contains("-----BEGIN")
            && let Ok(public) = PublicKey::from_openssh(text.expose_secret().trim())
        {
            (
                Some(public),
                KeyState::AgentOnly("it is a public key, and the agent does not hold the private one"),
            )
        } else if Certificate::from_openssh(text.expose_secret().trim()).is_ok() {
            return Err(KeyProblem::Unusable(
                "it is a certificate; name the key that it certifies, and keep it beside as KEY-cert.pub".to_owned(),
            ));
        } else if is_encrypted_pem(text.expose_secret()) {
            (public_at(&with_ending(path, ".pub")), KeyState::Encrypted(text))
        } else {
            let key = decode_secret_key(text.expose_secret(), None).map_err(|e| unusable(&e))?;
            (Some(key.public_key().clone()), KeyState::Open(Arc::new(key)))
        };
        Ok(Self {
            path: path.to_owned(),
            public,
            state,
        })
    }

    fn public_half(path: &Path) -> Result<Self, KeyProblem> {
        let public = public_at(&with_ending(path, ".pub")).ok_or(KeyProblem::Missing)?;
        Ok(Self {
            path: path.to_owned(),
            public: Some(public),
            state: KeyState::AgentOnly("only its public half is here, and the agent does not hold the private one"),
        })
    }

    /// Where ssh keeps a certificate of this key.
    pub(super) fn certificate_path(&self) -> PathBuf {
        let public = self.path.extension().is_some_and(|e| e == "pub");
        let base = if public {
            self.path.with_extension("")
        } else {
            self.path.clone()
        };
        with_ending(&base, "-cert.pub")
    }
}

/// Reads a user certificate.
pub(super) fn load_certificate(path: &Path) -> Result<Certificate, KeyProblem> {
    let text = read(path)?;
    Certificate::from_openssh(text.expose_secret().trim()).map_err(|e| unusable(&e))
}

fn openssh(text: SecretString) -> Result<(Option<PublicKey>, KeyState), KeyProblem> {
    let key = PrivateKey::from_openssh(text.expose_secret()).map_err(|e| unusable(&e))?;
    let public = key.public_key().clone();
    let state = match public.algorithm() {
        Algorithm::SkEd25519 | Algorithm::SkEcdsaSha2NistP256 => {
            KeyState::AgentOnly("a hardware key works only through an ssh-agent, and the agent does not hold it")
        }
        _ if key.is_encrypted() => KeyState::Encrypted(text),
        _ => KeyState::Open(Arc::new(key)),
    };
    Ok((Some(public), state))
}

fn unusable(e: &dyn fmt::Display) -> KeyProblem {
    KeyProblem::Unusable(e.to_string().to_lowercase())
}

fn public_at(path: &Path) -> Option<PublicKey> {
    PublicKey::from_openssh(read(path).ok()?.expose_secret().trim()).ok()
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut longer = path.as_os_str().to_owned();
    longer.push(ending);
    PathBuf::from(longer)
}

fn is_encrypted_pem(text: &str) -> bool {
    text.contains("ENCRYPTED")
}

fn read(path: &Path) -> Result<SecretString, KeyProblem> {
    let text = || -> io::Result<String> {
        let mut text = String::new();
        files::open(path)?.take(MAX_FILE).read_to_string(&mut text)?;
        Ok(text)
    };
    text().map(SecretString::from).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => KeyProblem::Missing,
        _ => KeyProblem::Unusable(e.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_is_told_from_a_broken_one() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(
            KeyFile::load(&folder.path().join("none")).err(),
            Some(KeyProblem::Missing)
        );
        let broken = folder.path().join("broken");
        std::fs::write(
            &broken,
            "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n",
        )
        .unwrap();
        assert!(matches!(KeyFile::load(&broken), Err(KeyProblem::Unusable(_))));
    }

    #[test]
    fn a_public_half_names_a_key_of_the_agents() {
        let folder = tempfile::tempdir().unwrap();
        let key = PrivateKey::random(&mut russh::keys::key::safe_rng(), Algorithm::Ed25519).unwrap();
        let beside = folder.path().join("id.pub");
        std::fs::write(&beside, key.public_key().to_openssh().unwrap()).unwrap();
        for name in ["id", "id.pub"] {
            let file = KeyFile::load(&folder.path().join(name)).unwrap();
            assert_eq!(
                file.public.as_ref().map(PublicKey::key_data),
                Some(key.public_key().key_data())
            );
            assert!(matches!(file.state, KeyState::AgentOnly(_)), "{name}");
            assert_eq!(file.certificate_path(), folder.path().join("id-cert.pub"));
        }
    }
}
