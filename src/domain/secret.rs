//! Secrets by where they are: the value itself is never part of the data.

use serde::Serialize;

/// A secret for one command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SecretEnv {
    /// The name under which the command's environment holds it, such as `HF_TOKEN`.
    pub name: String,
    /// Where the console finds the value.
    pub from: SecretFrom,
}

/// Where the console finds the value of a secret, on its own machine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SecretFrom {
    /// A variable of its environment.
    Variable(String),
    /// A file that holds the value as its only line; `~/` stands for the home directory.
    File(String),
}

impl SecretFrom {
    /// What a person calls it.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Variable(name) => format!("the variable {name}"),
            Self::File(path) => format!("the file {path}"),
        }
    }
}
