//! Rules for single values: names, addresses, durations, variables, secrets.

use std::time::Duration;

/// What is wrong with a value and what to write instead; both fragments.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub what: String,
    pub fix: String,
}

fn wrong(what: impl Into<String>, fix: impl Into<String>) -> Result<(), Wrong> {
    Err(Wrong {
        what: what.into(),
        fix: fix.into(),
    })
}

/// What to do about a secret in the file.
pub(super) const SECRET_FIX: &str = "put it in a variable or a file of your own machine and write that one's name: [secrets] hf_token_env, hf_token_file, api_key_env or api_key_file";

/// Longest name of a cluster, node, hop or container.
const MAX_NAME: usize = 63;

/// Longest wait that can be asked for.
const MAX_DURATION: Duration = Duration::from_secs(7 * 24 * 3600);

/// Shortest run of letters and digits after a token's prefix that counts as a secret.
const MIN_SECRET: usize = 16;

/// Prefixes of tokens that providers hand out.
const SECRET_PREFIXES: [&str; 4] = ["hf_", "sk-", "ghp_", "nvapi-"];

/// Whether some word of the text looks like a token of a provider.
pub(super) fn looks_secret(text: &str) -> bool {
    let part_of_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    text.split(|c| !part_of_word(c)).any(|word| {
        SECRET_PREFIXES.iter().any(|prefix| {
            let rest = word.strip_prefix(prefix);
            // A token mixes letters and digits or cases; a plain word such as `hf_home_of_the_group` does not.
            rest.is_some_and(|r| {
                r.len() >= MIN_SECRET && r.chars().any(|c| c.is_ascii_digit() || c.is_ascii_uppercase())
            })
        })
    })
}

/// A name on the screen, in labels and in Docker: letters, digits, `_`, `.` and `-`, the first a letter or digit.
pub(super) fn name(text: &str) -> Result<(), Wrong> {
    let inside = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    let starts = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    if starts && text.chars().all(inside) && text.len() <= MAX_NAME {
        return Ok(());
    }
    wrong(
        format!("`{text}` cannot be a name"),
        format!("use letters, digits, `_`, `.` and `-`, a letter or digit first, at most {MAX_NAME} characters"),
    )
}

/// A name of a container: at least two characters, as Docker wants.
pub(super) fn container_name(text: &str) -> Result<(), Wrong> {
    if text.chars().count() == 1 {
        return wrong(
            format!("`{text}` is too short for a container"),
            "Docker wants at least two characters",
        );
    }
    name(text)
}

/// A user name to log in with.
pub(super) fn user(text: &str) -> Result<(), Wrong> {
    if text.contains(|c: char| c.is_whitespace() || "@:/".contains(c)) || text.starts_with('-') {
        return wrong(format!("`{text}` cannot be a user"), "write the user's name alone");
    }
    Ok(())
}

/// The name of an environment variable.
pub(super) fn variable(text: &str) -> Result<(), Wrong> {
    let inside = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if text.starts_with(|c: char| c.is_ascii_digit()) || !text.chars().all(inside) {
        // The text may be a secret of an unknown shape: it is not repeated.
        return wrong(
            "this is not the name of a variable",
            "write the variable's name, never its value, such as \"HF_TOKEN\"",
        );
    }
    Ok(())
}

/// A file of the operator's machine, from the root or from the home directory: where the console is started must not matter.
pub(super) fn file(text: &str) -> Result<(), Wrong> {
    if text.starts_with('/') || text.strip_prefix("~/").is_some_and(|rest| !rest.is_empty()) {
        return Ok(());
    }
    wrong(
        "this is not the path of a file",
        "write the path of the file that holds it, from / or ~/, such as \"~/.cache/huggingface/token\"",
    )
}

/// A network interface or an RDMA device.
pub(super) fn device(text: &str) -> Result<(), Wrong> {
    if text.contains(|c: char| c.is_whitespace() || "/,=".contains(c)) || text.starts_with('-') {
        return wrong(
            format!("`{text}` is no name of a device"),
            "write one name, such as enp1s0f1np1 or rocep1s0f1",
        );
    }
    Ok(())
}

/// One word that can stand in a command: no blank, no leading dash.
pub(super) fn word(text: &str) -> Result<(), Wrong> {
    if text.contains(char::is_whitespace) || text.starts_with('-') {
        return wrong(format!("`{text}` is not one word"), "write one word without blanks");
    }
    Ok(())
}

/// A program with words before or after it, as it stands in a command without any quoting.
pub(super) fn program(text: &str) -> Result<(), Wrong> {
    const FIX: &str = "write a name or a path, with what it is run through, such as \"docker\", \"/opt/bin/podman\" or \"sudo -n docker\"";
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    let mut words = text.split(' ');
    if let Some(odd) = text.chars().find(|c| *c != ' ' && !plain(*c)) {
        return wrong(format!("{odd:?} cannot stand in a program's words"), FIX);
    }
    let first = words.next().unwrap_or_default();
    if first.starts_with('-') || first.contains('=') || first.is_empty() || words.any(str::is_empty) {
        return wrong(
            format!("`{text}` does not begin with a program, or holds two blanks in a row"),
            FIX,
        );
    }
    Ok(())
}

/// A volume as `docker run -v` takes it: what, where, and options.
pub(super) fn volume(text: &str) -> Result<(), Wrong> {
    let fix = "write HOST-PATH:/CONTAINER-PATH, such as /models:/models:ro";
    let mut parts = text.split(':');
    let (from, to) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    if from.starts_with('~') {
        return wrong("Docker does not expand `~`", "write the whole path on the node");
    }
    if from.is_empty() || !to.starts_with('/') || parts.count() > 1 {
        return wrong(format!("`{text}` is no volume"), fix);
    }
    Ok(())
}

/// A folder on the nodes.
pub(super) fn folder(text: &str) -> Result<(), Wrong> {
    if !text.starts_with('/') {
        return wrong(
            format!("`{text}` is no whole path"),
            "write the whole path on the node, such as \"/data/huggingface\"",
        );
    }
    Ok(())
}

/// A size as `docker run --shm-size` takes it.
pub(super) fn size(text: &str) -> Result<(), Wrong> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = text.len() - unit.len();
    if digits == 0 || !["", "b", "k", "m", "g", "kb", "mb", "gb"].contains(&unit.to_lowercase().as_str()) {
        return wrong(
            format!("`{text}` is no size"),
            "write a number and k, m or g, such as \"16g\"",
        );
    }
    Ok(())
}

/// A duration: numbers with units, such as `90s`, `2m`, `1h30m`, `500ms`.
pub(super) fn duration(text: &str) -> Result<Duration, Wrong> {
    let fail = |what: String| Wrong {
        what,
        fix: "write numbers with ms, s, m or h, such as \"10s\", \"2m\" or \"1h30m\"".to_owned(),
    };
    if text.is_empty() {
        return Err(fail("is empty".to_owned()));
    }
    let mut rest = text;
    let mut sum = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, after) = rest.split_at(digits);
        let letters = after.len() - after.trim_start_matches(|c: char| c.is_ascii_alphabetic()).len();
        let (unit, after) = after.split_at(letters);
        let millis = match unit {
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return Err(fail(format!("is `{text}`, which is no duration"))),
        };
        let number: u64 = number
            .parse()
            .map_err(|_| fail(format!("is `{text}`, which is no duration")))?;
        sum = sum.saturating_add(Duration::from_millis(number.saturating_mul(millis)));
        rest = after;
    }
    if sum.is_zero() || sum > MAX_DURATION {
        return Err(Wrong {
            what: format!("is `{text}`"),
            fix: "write more than nothing and at most 7 days (168h), such as \"2m\"".to_owned(),
        });
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_sums_of_numbers_with_units() {
        let good = [
            ("10s", 10_000),
            ("2m", 120_000),
            ("1h30m", 5_400_000),
            ("500ms", 500),
            ("1m30s", 90_000),
        ];
        for (text, ms) in good {
            assert_eq!(duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in [
            "",
            "10",
            "s",
            "1d",
            "-1s",
            "1.5s",
            "10 s",
            "0s",
            "999h",
            "99999999999999999999s",
            "1ms²",
        ] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn secrets_are_told_from_words() {
        for text in [
            "hf_AbCdEfGhIjKlMnOpQrStUvWx",
            "HF_TOKEN=hf_AbCdEfGhIjKlMnOpQrStUvWx",
            "sk-proj1234567890abcdef",
        ] {
            assert!(looks_secret(text), "{text}");
        }
        for text in [
            "HF_TOKEN",
            "hf_home_of_the_whole_group",
            "hf_x",
            "hellohal2064/vllm-qwen3.5-gb10",
            "disk-1234567890abcdefghi",
        ] {
            assert!(!looks_secret(text), "{text}");
        }
    }

    #[test]
    fn a_wrong_variable_is_not_repeated() {
        let said = variable("p4ss-w0rd!").unwrap_err();
        assert!(!said.what.contains("p4ss") && !said.fix.contains("p4ss"));
    }

    #[test]
    fn a_program_is_plain_words() {
        for good in [
            "docker",
            "/opt/my-bin/podman",
            "sudo -n docker",
            "env DOCKER_HOST=unix:///run/user/1000/docker.sock docker",
            "sudo -n -u dock@1 /usr/bin/docker",
        ] {
            assert_eq!(program(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            " docker",
            "docker ",
            "sudo  docker",
            "-n docker",
            "A=1 docker",
            "docker;id",
            "$(id)",
            "docker\t-H",
            "a*",
            "'docker'",
            "döcker",
            "docker\nid",
        ] {
            assert!(program(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn sizes_and_volumes_are_what_docker_takes() {
        assert!(["16g", "64M", "1024", "10gb"].iter().all(|s| size(s).is_ok()));
        assert!(["g", "16x", "16 g", ""].iter().all(|s| size(s).is_err()));
        assert!(
            ["/a:/b", "/a:/b:ro", "cache:/root/.cache"]
                .iter()
                .all(|s| volume(s).is_ok())
        );
        assert!(
            ["/a", "~/a:/b", ":/b", "/a:b", "/a:/b:ro:x"]
                .iter()
                .all(|s| volume(s).is_err())
        );
    }
}
