//! What stands for something else in ssh_config's values: `~`, `%h` and its like, `${VARIABLE}`.

use std::path::{Path, PathBuf};

/// What means something to a shell.
pub(super) const UNQUOTED: &str = " '\"`$\\;&<>|(){}*?[]#!";

/// What the percent signs of one host stand for.
pub(super) struct Tokens<'a> {
    /// `%n`: the host as it was asked for.
    pub(super) name: &'a str,
    /// `%h`: the host as it is dialled.
    pub(super) host: &'a str,
    /// `%p`.
    pub(super) port: u16,
    /// `%r`: the user on the host.
    pub(super) user: &'a str,
    /// `%k`: the name under which its key is on file.
    pub(super) known_as: &'a str,
    /// `%d`.
    pub(super) home: Option<&'a Path>,
}

impl Tokens<'_> {
    /// A path with all of it filled in.
    ///
    /// # Errors
    /// A fragment that names what can't be filled in.
    pub(super) fn path(&self, text: &str) -> Result<PathBuf, String> {
        let text = variables(&self.percent(text)?)?;
        Ok(tilde(&text, self.home))
    }

    /// A command for a shell with its percent signs filled in, as ssh does since its version 9.6: a name that the shell would read as more than a name
    /// is refused.
    ///
    /// # Errors
    /// A fragment that names what can't be filled in.
    pub(super) fn command(&self, text: &str) -> Result<String, String> {
        for (sign, value) in [
            ("%h", self.host),
            ("%n", self.name),
            ("%r", self.user),
            ("%k", self.known_as),
        ] {
            let plain = !value.starts_with('-') && !value.contains(|c: char| UNQUOTED.contains(c) || c.is_control());
            if text.contains(sign) && !plain {
                return Err(format!(
                    "the {sign} of `{text}` stands for `{}`, which a shell would read as more than a name",
                    value.escape_debug()
                ));
            }
        }
        self.percent(text)
    }

    /// A text with its percent signs filled in.
    ///
    /// # Errors
    /// A fragment that names the one that can't be.
    pub(super) fn percent(&self, text: &str) -> Result<String, String> {
        let mut out = String::with_capacity(text.len());
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            if c != '%' {
                out.push(c);
                continue;
            }
            match chars.next() {
                Some('%') => out.push('%'),
                Some('h') => out.push_str(self.host),
                Some('n') => out.push_str(self.name),
                Some('p') => out.push_str(&self.port.to_string()),
                Some('r') => out.push_str(self.user),
                Some('k') => out.push_str(self.known_as),
                Some('u') => out.push_str(&super::alias::local_user().ok_or("%u stands there, and $USER is empty")?),
                Some('d') => match self.home.and_then(Path::to_str) {
                    Some(home) => out.push_str(home),
                    None => return Err("%d stands there, and $HOME is empty".to_owned()),
                },
                Some('i') => out.push_str(&rustix::process::getuid().as_raw().to_string()),
                Some('l') => out.push_str(&here()),
                Some('L') => out.push_str(here().split('.').next().unwrap_or_default()),
                Some(other) => return Err(format!("bringup can't fill in the %{other} of `{text}`")),
                None => return Err(format!("`{text}` ends in a percent sign")),
            }
        }
        Ok(out)
    }
}

/// This machine's name.
fn here() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// `${NAME}` becomes the variable's value.
fn variables(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, behind)) = after.split_once('}') else {
            return Err(format!("`{text}` has no closing brace"));
        };
        out.push_str(before);
        out.push_str(&std::env::var(name).map_err(|_| format!("the variable {name} of `{text}` is not set"))?);
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}

/// `~/` and `~` alone become the home directory.
pub(super) fn tilde(path: &str, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix('~'), home) {
        (Some(""), Some(home)) => home.to_owned(),
        (Some(rest), Some(home)) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => PathBuf::from(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens() -> Tokens<'static> {
        Tokens {
            name: "spark",
            host: "spark.lab",
            port: 2222,
            user: "aurora",
            known_as: "sparks",
            home: Some(Path::new("/home/a")),
        }
    }

    #[test]
    fn percent_signs_are_filled_in() {
        let here = here();
        let cases = [
            ("nc %h %p", "nc spark.lab 2222".to_owned()),
            ("%r@%n 100%%", "aurora@spark 100%".to_owned()),
            ("%d/%k", "/home/a/sparks".to_owned()),
            ("%l", here.clone()),
            ("plain", "plain".to_owned()),
            ("%%h", "%h".to_owned()),
        ];
        for (text, expected) in cases {
            assert_eq!(tokens().percent(text), Ok(expected), "{text}");
        }
        assert!(tokens().percent("%T").unwrap_err().contains("%T"));
        assert!(tokens().percent("50%").unwrap_err().contains("ends in a percent sign"));
    }

    #[test]
    fn the_home_directory_and_variables_are_filled_in() {
        let path = std::env::var("PATH").unwrap();
        let cases = [
            ("~/.ssh/id_%n", "/home/a/.ssh/id_spark".to_owned()),
            ("~", "/home/a".to_owned()),
            ("~b/k", "~b/k".to_owned()),
            ("/k", "/k".to_owned()),
            ("/a/${PATH}/b", format!("/a/{path}/b")),
        ];
        for (text, expected) in cases {
            assert_eq!(tokens().path(text), Ok(PathBuf::from(expected)), "{text}");
        }
        assert!(
            tokens()
                .path("${BRINGUP_NO_SUCH}")
                .unwrap_err()
                .contains("BRINGUP_NO_SUCH")
        );
        assert!(tokens().path("${PATH").unwrap_err().contains("closing brace"));
    }

    #[test]
    fn a_name_that_a_shell_would_read_as_more_is_in_no_command() {
        let text = "nc %h %p";
        let mut hostile = tokens();
        for host in [
            "a;reboot",
            "$(reboot)",
            "-oProxyCommand=x",
            "a b",
            "a\nb",
            "a`b`",
            "a|b",
            "a'b",
        ] {
            hostile.host = host;
            let why = hostile.command(text).unwrap_err();
            assert!(why.contains("%h"), "{why}");
            assert!(hostile.command("nc other %p").is_ok(), "{host} does not stand in it");
        }
        for host in ["node-1.example", "10.1.230.180", "2001:db8::1", "fe80::1%eth0"] {
            hostile.host = host;
            assert!(hostile.command(text).is_ok(), "{host}");
        }
    }
}
