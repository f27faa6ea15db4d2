//! Signs of a failure in a log or in a command's output, on their way to the evidence.

use serde::Serialize;

use super::time::Wall;

/// One sign.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sign {
    /// What it is a sign of.
    pub what: SignKind,
    /// The line, masked and bounded.
    pub text: String,
    /// When the line was written, by the node's own clock; `None` where the log has no times that can be read.
    pub written: Option<Wall>,
    /// Whether the line was there before it could be followed: that it was read now says nothing of when it was written.
    pub backlog: bool,
    /// What the rule found in the line: name and value, both bounded.
    pub fields: Vec<(String, String)>,
    /// How often it has come in this start of the server, this time counted.
    pub times: u64,
}

/// What a sign is of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SignKind {
    /// A server starts from the beginning: what was said before is about another one.
    NewStart,
    /// The rule of this id.
    Rule(String),
    /// More values for the sign of this rule that came before.
    More(String),
    /// A line that says that something failed and that no rule knows.
    Unknown,
}
