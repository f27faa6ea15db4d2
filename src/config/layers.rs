//! The layers above the file: a flag wins over a variable, a variable over the file, the file over the defaults.

use super::problem::ConfigProblem;
use super::theme;
use super::types::Config;

/// Name of the flag for the theme.
pub const THEME_FLAG: &str = "--theme";

/// Name of the variable for the theme.
pub const THEME_VARIABLE: &str = "BRINGUP_THEME";

/// What the command line and the environment say above the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layers {
    /// `--theme`: one configuration serves a dark terminal and a light one.
    pub theme_flag: Option<String>,
    /// `$BRINGUP_THEME`; empty counts as unset.
    pub theme_variable: Option<String>,
}

impl Config {
    /// The same with the layers above the file.
    ///
    /// # Errors
    ///
    /// A theme that is not there; the problem's file is the flag or the variable.
    pub fn layered(mut self, layers: &Layers) -> Result<Self, ConfigProblem> {
        let flag = layers.theme_flag.as_deref().map(|name| (THEME_FLAG, name));
        let variable = layers.theme_variable.as_deref().map(|name| (THEME_VARIABLE, name));
        let Some((from, name)) = flag.or(variable.filter(|(_, name)| !name.is_empty())) else {
            return Ok(self);
        };
        if theme::builtin(name).is_none() {
            return Err(ConfigProblem {
                file: from.to_owned(),
                line: 1,
                column: 1,
                key: "ui.theme".to_owned(),
                message: format!("there is no theme `{name}`"),
                fix: format!("write one of: {}", theme::names().join(", ")),
            });
        }
        self.ui.theme = name.to_owned();
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{EXAMPLE, parse};

    #[test]
    fn a_flag_wins_over_a_variable_and_a_variable_over_the_file() {
        let theme = |flag: Option<&str>, variable: Option<&str>| {
            let layers = Layers {
                theme_flag: flag.map(str::to_owned),
                theme_variable: variable.map(str::to_owned),
            };
            let config = parse(EXAMPLE, "config.toml").unwrap().layered(&layers);
            config.map(|c| c.ui.theme).map_err(|p| p.to_string())
        };
        assert_eq!(theme(None, None).as_deref(), Ok("default"));
        assert_eq!(theme(None, Some("")).as_deref(), Ok("default"));
        assert_eq!(theme(None, Some("light")).as_deref(), Ok("light"));
        assert_eq!(
            theme(Some("high-contrast"), Some("light")).as_deref(),
            Ok("high-contrast")
        );
        let said = "--theme:1:1: there is no theme `solar`; write one of: default, light, high-contrast";
        assert_eq!(theme(Some("solar"), None), Err(said.to_owned()));
    }
}
