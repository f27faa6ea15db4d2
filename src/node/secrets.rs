//! The values of the configured secrets, read once from the console's own environment and files: what is handed out is what is masked.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use secrecy::{ExposeSecret, SecretString};
use zeroize::Zeroizing;

use crate::config::Config;
use crate::config::place::expand;
use crate::domain::secret::SecretFrom;

/// Longest secret, in bytes: it travels as one line.
const LONGEST: u64 = 8192;

/// The values, or why there is none.
#[derive(Default)]
pub struct Secrets(BTreeMap<SecretFrom, Result<SecretString, String>>);

impl Secrets {
    /// Reads what the configuration names.
    #[must_use]
    pub fn read(config: &Config, home: &Path) -> Self {
        Self(config.secrets().map(|from| (from.clone(), value(from, home))).collect())
    }

    /// The value.
    ///
    /// # Errors
    /// Why there is none, as a sentence.
    pub fn get(&self, from: &SecretFrom) -> Result<SecretString, String> {
        let unknown = || Err(format!("{} is not in the configuration", from.words()));
        self.0.get(from).cloned().unwrap_or_else(unknown)
    }

    /// Those that have no value, with why.
    #[must_use]
    pub fn missing(&self) -> Vec<(SecretFrom, String)> {
        let missing = |(from, value): (&SecretFrom, &Result<SecretString, String>)| {
            value.as_ref().err().map(|why| (from.clone(), why.clone()))
        };
        self.0.iter().filter_map(missing).collect()
    }

    /// The values, to be hidden wherever they turn up.
    pub fn values(&self) -> impl Iterator<Item = String> {
        self.0.values().flatten().map(|value| value.expose_secret().to_owned())
    }
}

fn value(from: &SecretFrom, home: &Path) -> Result<SecretString, String> {
    let text = match from {
        SecretFrom::Variable(name) => std::env::var(name).map_err(|e| match e {
            std::env::VarError::NotPresent => format!("{} is not set here", from.words()),
            std::env::VarError::NotUnicode(_) => format!("{} holds no text", from.words()),
        })?,
        SecretFrom::File(path) => read(&expand(path, home)).map_err(|why| format!("{} {why}", from.words()))?,
    };
    let line = text
        .strip_suffix('\n')
        .map_or(text.as_str(), |t| t.strip_suffix('\r').unwrap_or(t));
    if line.is_empty() {
        return Err(match from {
            SecretFrom::Variable(_) => format!("{} is not set here", from.words()),
            SecretFrom::File(_) => format!("{} is empty", from.words()),
        });
    }
    if line.contains(|c: char| c.is_control()) {
        return Err(format!(
            "{} holds more than one line, or a control character",
            from.words()
        ));
    }
    Ok(SecretString::from(line))
}

/// The text of a file. Only a plain file is opened: a pipe could keep the console waiting.
fn read(path: &Path) -> Result<String, String> {
    let plain = path.metadata().map_err(|e| format!("can't be read: {e}"))?;
    if !plain.is_file() {
        return Err("is no file".to_owned());
    }
    let file = File::open(path).map_err(|e| format!("can't be read: {e}"))?;
    let mut bytes = Zeroizing::new(Vec::new());
    file.take(LONGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| format!("can't be read: {e}"))?;
    if bytes.len() as u64 > LONGEST {
        return Err(format!("holds more than {LONGEST} bytes"));
    }
    String::from_utf8(bytes.to_vec()).map_err(|_| "holds no text".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(content: &[u8]) -> Result<String, String> {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("key"), content).unwrap();
        let read = value(&SecretFrom::File("~/key".to_owned()), home.path());
        read.map(|v| v.expose_secret().to_owned())
    }

    #[test]
    fn a_file_holds_a_secret_as_its_only_line() {
        for content in ["hf_x y", "hf_x y\n", "hf_x y\r\n"] {
            assert_eq!(of(content.as_bytes()), Ok("hf_x y".to_owned()), "{content:?}");
        }
    }

    #[test]
    fn a_file_that_holds_something_else_says_so_without_what_it_holds() {
        let long = vec![b'x'; usize::try_from(LONGEST).unwrap() + 1];
        let cases: [(&[u8], &str); 5] = [
            (b"", "the file ~/key is empty"),
            (b"\n", "the file ~/key is empty"),
            (
                b"one\ntwo\n",
                "the file ~/key holds more than one line, or a control character",
            ),
            (b"\xff\xfe", "the file ~/key holds no text"),
            (&long, "the file ~/key holds more than 8192 bytes"),
        ];
        for (content, why) in cases {
            assert_eq!(of(content), Err(why.to_owned()));
        }
    }

    #[test]
    fn what_is_no_file_is_not_opened() {
        let home = tempfile::tempdir().unwrap();
        let from = SecretFrom::File(home.path().display().to_string());
        let why = value(&from, Path::new("/")).map(|_| ()).unwrap_err();
        assert!(why.ends_with(" is no file"), "{why}");
        let why = value(&SecretFrom::File("~/none".to_owned()), home.path())
            .map(|_| ())
            .unwrap_err();
        assert!(why.starts_with("the file ~/none can't be read: "), "{why}");
    }
}
