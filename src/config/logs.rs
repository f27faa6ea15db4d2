//! `[logs]`: where each role's log is.

use crate::domain::logs::Wanted;

use super::read::{Reader, Section};
use super::types::{LogPlace, Logs};
use super::words::{self, Wrong};

/// What a place can be.
const PLACES: &str = "write \"container\", \"container:NAME\" with * and ? for any text and any character, \"label:KEY=VALUE\", either with :/PATH after it \
                      for a file inside, \"container-file:/path\", \"file:/path\" or \"command:WORDS\"";

/// Longest command, in bytes.
const MAX_COMMAND: usize = 4096;

/// Reads `[logs]`; `name` is that of the configured container.
pub(super) fn logs(r: &mut Reader<'_>, mut s: Section<'_>, name: Option<&str>) -> Logs {
    let name = name.unwrap_or_default();
    let mut log = |r: &mut Reader<'_>, key| {
        let text = s.text_by(r, key, |t| place(t, name).map(|_| ()));
        text.and_then(|t| place(&t.value, name).ok())
            .unwrap_or_else(|| LogPlace::Container(Wanted::Named(name.to_owned())))
    };
    let logs = Logs {
        head: log(r, "head"),
        worker: log(r, "worker"),
    };
    s.finish(r);
    logs
}

fn place(text: &str, name: &str) -> Result<LogPlace, Wrong> {
    let configured = Wanted::Named(name.to_owned());
    match text.split_once(':') {
        None if text == "container" => Ok(LogPlace::Container(configured)),
        Some(("container-file", path)) => Ok(LogPlace::ContainerFile(configured, absolute(path)?)),
        Some(("file", path)) => Ok(LogPlace::File(absolute(path)?)),
        Some(("container", rest)) => {
            let (name, path) = parts(rest);
            container(name)?;
            of(Wanted::named(name), path)
        }
        Some(("label", rest)) => {
            let (label, path) = parts(rest);
            of(wanted_label(label)?, path)
        }
        Some(("command", line)) => command(line.trim()),
        Some(_) | None => Err(Wrong {
            what: format!("`{text}` is no place of a log"),
            fix: PLACES.to_owned(),
        }),
    }
}

/// Splits `NAME:/PATH`, as `docker cp` takes it.
fn parts(text: &str) -> (&str, Option<&str>) {
    match text.find(":/").and_then(|at| text.split_at_checked(at)) {
        Some((name, path)) => (name, path.get(1..)),
        None => (text, None),
    }
}

fn of(wanted: Wanted, path: Option<&str>) -> Result<LogPlace, Wrong> {
    Ok(match path {
        None => LogPlace::Container(wanted),
        Some(path) => LogPlace::ContainerFile(wanted, absolute(path)?),
    })
}

fn absolute(path: &str) -> Result<String, Wrong> {
    let fits = path.starts_with('/') && path.len() > 1 && !path.chars().any(char::is_control);
    fits.then(|| path.to_owned()).ok_or_else(|| Wrong {
        what: format!("`{path}` is no path of a log file"),
        fix: "write the whole path, beginning with /".to_owned(),
    })
}

/// A name that Docker could give, with `*` and `?` in it or not.
fn container(name: &str) -> Result<(), Wrong> {
    let literal = name.replace('*', "xx").replace('?', "x");
    words::container_name(&literal).map_err(|_| Wrong {
        what: format!("`{name}` is no name of a container and no pattern for one"),
        fix: "write letters, digits, `_`, `.` and `-`, with `*` for any text and `?` for any character".to_owned(),
    })
}

fn wanted_label(text: &str) -> Result<Wanted, Wrong> {
    let (key, value) = match text.split_once('=') {
        Some((key, value)) => (key, Some(value.to_owned())),
        None => (text, None),
    };
    let fits = !key.is_empty() && !text.chars().any(|c| c.is_control() || c.is_whitespace());
    let key = key.to_owned();
    fits.then_some(Wanted::Label { key, value }).ok_or_else(|| Wrong {
        what: format!("`{text}` is no label of a container"),
        fix: "write KEY=VALUE, or KEY for any value, such as com.docker.compose.service=vllm".to_owned(),
    })
}

fn command(line: &str) -> Result<LogPlace, Wrong> {
    let wrong = |what: &str, fix: &str| {
        Err(Wrong {
            what: what.to_owned(),
            fix: fix.to_owned(),
        })
    };
    if line.is_empty() {
        return wrong(
            "`command:` without a command",
            "write one that goes on by itself, such as \"command:tail -F /var/log/vllm.log\"",
        );
    }
    if line.len() > MAX_COMMAND || line.chars().any(char::is_control) {
        return wrong(
            "the command is too long or has a control character",
            "put it into a script on the node and write that script's path",
        );
    }
    Ok(LogPlace::Command(line.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_every_kind_are_read() {
        let pattern = || Wanted::Pattern("node-*".into());
        let label = |value: Option<&str>| Wanted::Label {
            key: "com.docker.compose.service".into(),
            value: value.map(str::to_owned),
        };
        let cases = [
            ("container", LogPlace::Container(Wanted::Named("v".into()))),
            (
                "container:ray-head",
                LogPlace::Container(Wanted::Named("ray-head".into())),
            ),
            ("container:node-*", LogPlace::Container(pattern())),
            ("container:*", LogPlace::Container(Wanted::Pattern("*".into()))),
            (
                "container:node-*:/var/log/vllm.log",
                LogPlace::ContainerFile(pattern(), "/var/log/vllm.log".into()),
            ),
            (
                "container-file:/var/log/vllm.log",
                LogPlace::ContainerFile(Wanted::Named("v".into()), "/var/log/vllm.log".into()),
            ),
            (
                "label:com.docker.compose.service=vllm",
                LogPlace::Container(label(Some("vllm"))),
            ),
            ("label:com.docker.compose.service", LogPlace::Container(label(None))),
            (
                "label:com.docker.compose.service=vllm:/tmp/x",
                LogPlace::ContainerFile(label(Some("vllm")), "/tmp/x".into()),
            ),
            ("file:/var/log/vllm.log", LogPlace::File("/var/log/vllm.log".into())),
            (
                "command: journalctl -fu vllm | grep -v :/",
                LogPlace::Command("journalctl -fu vllm | grep -v :/".into()),
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(place(text, "v").unwrap(), expected, "{text}");
        }
        for text in [
            "",
            "Container",
            "journal:x",
            "container:",
            "file:x",
            "file:/",
            "label:",
            "label:a b",
            "command:",
        ] {
            assert!(place(text, "v").is_err(), "{text}");
        }
    }
}
