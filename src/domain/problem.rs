//! Problems and verdicts.

use serde::Serialize;

/// Something a parser, a probe or a check found wrong.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// One sentence without a final period.
    pub text: String,
    /// What to do, when it is known.
    pub fix: Option<String>,
}

impl Problem {
    /// A problem that stops nothing.
    pub fn warning(text: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            text: text.into(),
            fix: None,
        }
    }

    /// A problem that stops what depends on it.
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            text: text.into(),
            fix: None,
        }
    }

    /// The same with a cure.
    #[must_use]
    pub fn with_fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth a look.
    Warning,
    /// Stops what depends on it.
    Error,
}

/// Answer of a check that looks at observed facts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Verdict {
    /// It is so.
    Holds,
    /// It is not so.
    Fails {
        /// What was seen.
        seen: String,
        /// What should have been seen.
        expected: String,
    },
    /// Not known yet, or no longer.
    Unknown(String),
}

impl Verdict {
    /// Whether it holds.
    #[must_use]
    pub fn holds(&self) -> bool {
        *self == Self::Holds
    }
}
