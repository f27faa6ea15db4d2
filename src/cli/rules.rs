//! The operator's own rules of what is why something fails.

use std::io::Read;
use std::path::Path;

use crate::config::{Config, place};
use crate::diagnose::{self, MOST, Rules};

/// Problems of a file that are told at once: the first ones stand for the rest.
const TOLD: usize = 5;

/// The rules to judge by: the operator's own, where the configuration names a file of them, before those that come with the program.
///
/// # Errors
/// What is wrong with the file, each with its place.
pub(super) fn read(config: &Config, home: &Path) -> Result<Rules, Vec<String>> {
    let Some(named) = &config.diagnose.rules else {
        return Ok(Rules::default());
    };
    let text = read_bounded(&place::expand(named, home)).map_err(|why| vec![format!("{named}: {why}")])?;
    diagnose::own(&text, named).map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

/// The same for a console that starts: it goes on without rules that can't be read, and says so.
pub(super) fn read_or_say(config: &Config, home: &Path) -> (Rules, Vec<String>) {
    match read(config, home) {
        Ok(rules) => (rules, Vec::new()),
        Err(problems) => {
            let more = problems.len().saturating_sub(TOLD);
            let mut notes: Vec<String> = problems
                .iter()
                .take(TOLD)
                .map(|p| format!("your own rules are not used: {p}"))
                .collect();
            if more > 0 {
                notes.push(format!(
                    "your own rules have {more} problems more: see `bringup config check`"
                ));
            }
            (Rules::default(), notes)
        }
    }
}

/// The text of a file that is one and is not longer than rules may be, and a byte more where it is.
fn read_bounded(path: &Path) -> std::io::Result<String> {
    // A pipe would be waited for.
    if !path.metadata()?.is_file() {
        return Err(std::io::Error::other("this is no file"));
    }
    let mut text = String::new();
    let most = MOST as u64 + 1;
    std::fs::File::open(path)?.take(most).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{self, EXAMPLE};

    fn with(rules: &str) -> (Config, tempfile::TempDir) {
        let mut config = config::parse(EXAMPLE, "config.example.toml").unwrap();
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("rules.toml"), rules).unwrap();
        config.diagnose.rules = Some("~/rules.toml".into());
        (config, home)
    }

    #[test]
    fn own_rules_come_before_those_of_the_program_and_a_bad_file_leaves_those() {
        let good = "[[rule]]\nid = \"mine\"\nkind = \"cause\"\nstep = [\"serve\"]\ncause = \"it\"\nsign = [{ has = \"our own words\" }]\n";
        let (config, home) = with(good);
        let rules = read(&config, home.path()).unwrap();
        assert_eq!(rules.iter().next().map(|r| r.id.as_str()), Some("mine"));
        assert_eq!(rules.iter().count(), Rules::default().iter().count() + 1);

        let (config, home) = with(&good.replace("cause = \"it\"\n", ""));
        let said = ["~/rules.toml:2:6: a rule that is shown wants `cause` and `step`"];
        assert_eq!(read(&config, home.path()), Err(said.map(str::to_owned).to_vec()));
        let (rules, notes) = read_or_say(&config, home.path());
        assert_eq!(rules, Rules::default());
        assert_eq!(notes, [format!("your own rules are not used: {}", said[0])]);
    }

    #[test]
    fn what_is_no_file_or_is_too_long_is_said() {
        let (mut config, home) = with(&"#".repeat(MOST + 1));
        let said = read(&config, home.path()).unwrap_err();
        assert_eq!(
            said,
            [format!("~/rules.toml:1:1: the file is longer than {MOST} bytes")]
        );
        config.diagnose.rules = Some("/dev/null".into());
        assert_eq!(read(&config, home.path()).unwrap_err(), ["/dev/null: this is no file"]);
        config.diagnose.rules = Some("~/none".into());
        assert!(read(&config, home.path()).unwrap_err()[0].starts_with("~/none: No such file"));
    }
}
