//! `config`: an example, a check, the places.

use std::fmt::Write;
use std::path::Path;

use color_eyre::eyre::Result;

use crate::config::types::{Engine, Login};
use crate::config::{self, Config, EXAMPLE, place};
use crate::diagnose::{BUILTIN, Rules};
use crate::domain::HopId;
use crate::domain::count::things;
use crate::domain::secret::SecretFrom;
use crate::node::Secrets;
use crate::plan::way;

use super::args::{Args, ConfigCommand};
use super::exit::Exit;
use super::{out, paths, rules, start};

/// `bringup config`.
///
/// # Errors
/// When the configuration can't be printed.
pub(super) fn config(args: &Args, what: &ConfigCommand) -> Result<Exit> {
    match what {
        ConfigCommand::Example => {
            out::line(EXAMPLE.trim_end());
        }
        ConfigCommand::Check { json, .. } => match start::load(args).and_then(with_own_rules) {
            Ok((config, _)) if *json => {
                out::line(&serde_json::to_string_pretty(&config)?);
            }
            Ok((config, rules)) => {
                out::line(&summary(&config));
                rules::summary(&config, &rules).iter().for_each(|line| {
                    out::line(line);
                });
                lacks(&config, &paths::home()?).iter().for_each(|note| out::say(note));
            }
            Err(exit) => return Ok(exit),
        },
        ConfigCommand::Rules => {
            out::line(BUILTIN.trim_end());
        }
        ConfigCommand::Path => match start::place(args) {
            Some(place) => {
                out::line(&place.path.display().to_string());
            }
            None => {
                out::error(&start::not_found(args));
                return Ok(Exit::Usage);
            }
        },
    }
    Ok(Exit::Done)
}

/// The configuration with the rules to judge by, where those that it names can be read too.
fn with_own_rules(config: Config) -> std::result::Result<(Config, Rules), Exit> {
    let home = paths::home().map_err(|error| {
        out::error(&format!("{error:#}"));
        Exit::Failed
    })?;
    match rules::read(&config, &home) {
        Ok(rules) => Ok((config, rules)),
        Err(problems) => {
            problems.iter().for_each(|problem| out::say(problem));
            Err(Exit::Usage)
        }
    }
}

/// What a configuration comes to, for a person.
fn summary(config: &Config) -> String {
    let mut text = format!("cluster {}\n", config.cluster);
    let hop = |via: Option<HopId>| {
        let name = via
            .and_then(|id| config.ssh.jump.get(id.index()))
            .map(|h| h.name.as_str());
        name.map(|name| format!(" through {name}")).unwrap_or_default()
    };
    for jump in &config.ssh.jump {
        let _ok = writeln!(text, "jump    {}: {}{}", jump.name, dialled(&jump.login), hop(jump.via));
    }
    for node in &config.nodes {
        let _ok = writeln!(
            text,
            "{:<7} {}: {}{}{}, fabric {}, {}",
            node.role.word(),
            node.name,
            dialled(&node.login),
            hop(node.via),
            if node.relayed { " by its own key" } else { "" },
            node.fabric_address,
            things(node.gpus, "GPU")
        );
    }
    let engine = match config.engine {
        Engine::VllmRay(_) => "vllm-ray",
        Engine::Script(_) => "script",
    };
    let _ok = write!(
        text,
        "serve   {} with tensor parallel size {} on port {}, engine {engine}, container {}",
        config.serve.name(),
        config.serve.tensor_parallel_size,
        config.serve.port,
        config.container.name
    );
    text
}

/// Where a login goes; with the port, unless `ssh` would take that one by itself.
fn dialled(login: &Login) -> String {
    let port = login.ssh_port().map(|p| format!(" port {p}")).unwrap_or_default();
    format!("{}{port}", way::user_at(login))
}

/// What the file names and this machine lacks. Not wrong as such: an agent may hold the key, and not every command needs the variable.
fn lacks(config: &Config, home: &Path) -> Vec<String> {
    let logins = config.ssh.jump.iter().map(|h| &h.login);
    let mut keys: Vec<&String> = logins
        .chain(config.nodes.iter().map(|n| &n.login))
        .flat_map(|login| &login.keys)
        .collect();
    keys.sort();
    keys.dedup();
    // Of a key that only an agent holds, the public part is enough.
    let there = |key: &str| place::expand(key, home).exists() || place::expand(&format!("{key}.pub"), home).exists();
    let missing = keys.into_iter().filter(|key| !there(key));
    let mut all: Vec<String> = missing.map(|key| format!("note: the key {key} is not there")).collect();
    if config::parse(EXAMPLE, "").is_ok_and(|example| example == *config) {
        all.push("note: this is the example as it stands: its hosts, user and model are not yours".to_owned());
    }
    let missing = Secrets::read(config, home).missing();
    all.extend(missing.iter().map(|(_, why)| format!("note: {why}")));
    let open = config.secrets().filter(|from| readable_by_others(from, home));
    all.extend(open.map(|from| format!("note: {} can be read by other users of this machine", from.words())));
    all
}

/// Whether a secret lies in a file that is not its owner's alone.
fn readable_by_others(from: &SecretFrom, home: &Path) -> bool {
    match from {
        SecretFrom::Variable(_) => false,
        SecretFrom::File(path) => paths::readable_by_others(&place::expand(path, home)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_example_as_it_stands_is_called_so() {
        let mut config = config::parse(EXAMPLE, "mine.toml").unwrap();
        let said = |config: &Config| {
            let notes = lacks(config, Path::new("/nowhere"));
            notes.iter().any(|note| note.contains("the example as it stands"))
        };
        assert!(said(&config));
        config.ssh.jump[0].login.host = "bastion".into();
        assert!(!said(&config));
    }

    #[test]
    fn a_summary_names_the_ports_that_are_not_the_usual_one() {
        let mut config = config::parse(EXAMPLE, "config.example.toml").unwrap();
        assert!(!summary(&config).contains(" port 22"));
        config.ssh.jump[0].login.port = Some(2222);
        config.nodes[1].login.port = Some(2022);
        let text = summary(&config);
        let jump = way::user_at(&config.ssh.jump[0].login);
        let node = way::user_at(&config.nodes[1].login);
        assert!(text.contains(&format!("{jump} port 2222")), "{text}");
        assert!(text.contains(&format!("{node} port 2022 through ")), "{text}");
    }
}
