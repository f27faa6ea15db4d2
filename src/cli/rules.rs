//! The operator's own rules of what is why something fails.

use std::io::Read;
use std::path::Path;

use crate::config::{Config, place};
use crate::diagnose::{self, MOST, Rules};
use crate::domain::count::things;

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
    let text = read_bounded(&place::expand(named, home)).map_err(|why| vec![unread(config, named, &why)])?;
    diagnose::own(&text, named).map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

/// That the file can't be read, at the place that names it.
fn unread(config: &Config, named: &str, why: &std::io::Error) -> String {
    let at = &config.diagnose.named_at;
    let at = if at.is_empty() {
        String::new()
    } else {
        format!("{at}: ")
    };
    format!("{at}the rules in {named} can't be read: {why}; write the path of a file of rules, or leave `rules` out")
}

/// What a file of own rules comes to, for a person; nothing where none is named.
pub(super) fn summary(config: &Config, rules: &Rules) -> Option<String> {
    let named = config.diagnose.rules.as_ref()?;
    let replaced = rules
        .of_file()
        .filter(|rule| diagnose::builtin().get(&rule.id).is_some());
    let (own, replaced) = (rules.of_file().count(), replaced.count());
    let instead = match replaced {
        0 => String::new(),
        n => format!(", {n} of them in the place of the program's"),
    };
    let own = match own {
        0 => "none".to_owned(),
        n => n.to_string(),
    };
    Some(format!("rules   {own} of your own in {named}{instead}"))
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
                    "your own rules have {} more: see `bringup config check`",
                    things(more, "problem")
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
        assert_eq!(
            summary(&config, &rules).as_deref(),
            Some("rules   1 of your own in ~/rules.toml")
        );
        assert_eq!(rules.iter().next().map(|r| r.id.as_str()), Some("mine"));
        assert_eq!(rules.iter().count(), Rules::default().iter().count() + 1);

        let (config, home) = with(&good.replace("cause = \"it\"\n", ""));
        let said = ["~/rules.toml:2:6: a rule that is shown wants `cause`: one clause that names it"];
        assert_eq!(read(&config, home.path()), Err(said.map(str::to_owned).to_vec()));
        let (rules, notes) = read_or_say(&config, home.path());
        assert_eq!(rules, Rules::default());
        assert_eq!(notes, [format!("your own rules are not used: {}", said[0])]);
    }

    #[test]
    fn a_check_tells_how_many_rules_there_are_and_which_take_the_place_of_others() {
        let quiet = |id: &str| {
            format!("[[rule]]\nid = \"{id}\"\nkind = \"quiet\"\nsign = [{{ has = \"some of our words\" }}]\n")
        };
        let cases = [
            (String::new(), "rules   none of your own in ~/rules.toml"),
            (
                format!("{}{}", quiet("mine"), quiet("nccl-error")),
                "rules   2 of your own in ~/rules.toml, 1 of them in the place of the program's",
            ),
        ];
        for (text, wanted) in cases {
            let (config, home) = with(&text);
            let rules = read(&config, home.path()).unwrap();
            assert_eq!(summary(&config, &rules).as_deref(), Some(wanted));
        }
        let config = config::parse(EXAMPLE, "config.example.toml").unwrap();
        assert_eq!(summary(&config, &Rules::default()), None);
    }

    #[test]
    fn a_file_that_is_not_there_is_told_at_the_line_that_names_it() {
        let text = EXAMPLE.replace(
            "#: rules = \"~/.config/bringup/rules.toml\"",
            "rules = \"~/nowhere.toml\"",
        );
        let config = config::parse(&text, "config.toml").unwrap();
        let line = text.lines().position(|l| l.starts_with("rules = ")).unwrap() + 1;
        let home = tempfile::tempdir().unwrap();
        let said = read(&config, home.path()).unwrap_err();
        assert_eq!(
            said,
            [format!(
                "config.toml:{line}:9: the rules in ~/nowhere.toml can't be read: No such file or directory (os error 2); write the path of a file of rules, or leave `rules` out"
            )]
        );
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
        let said = read(&config, home.path()).unwrap_err();
        assert!(
            said[0].starts_with("the rules in /dev/null can't be read: this is no file;"),
            "{said:?}"
        );
    }
}
