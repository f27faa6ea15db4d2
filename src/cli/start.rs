//! From arguments to a running console.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use color_eyre::eyre::Result;

use crate::app::{self, How};
use crate::config::{self, Config, place};
use crate::drive::{Console, Setup, with_ssh_config};
use crate::model::Options;
use crate::sim;

use super::args::Args;
use super::exit::Exit;
use super::out::Cluster;
use super::{logfile, out, paths, rules};

/// Longest configuration, in bytes.
const MOST: u64 = 1 << 20;

/// Reads and checks the configuration; what is wrong is printed.
///
/// # Errors
/// The exit code.
pub(super) fn load(args: &Args) -> std::result::Result<Config, Exit> {
    let (file, text) = read(args)?;
    config::parse(&text, &file.display().to_string()).map_err(|problems| {
        for problem in problems {
            out::say(&problem.to_string());
        }
        Exit::Usage
    })
}

/// Finds and reads the configuration file.
fn read(args: &Args) -> std::result::Result<(PathBuf, String), Exit> {
    let Some(found) = place(args) else {
        out::error(&not_found(args));
        return Err(Exit::Usage);
    };
    read_bounded(&found.path)
        .map(|text| (found.path.clone(), text))
        .map_err(|error| {
            if error.kind() == std::io::ErrorKind::NotFound {
                out::error(&not_found(args));
            } else {
                out::error(&format!(
                    "the configuration {} could not be read: {error}",
                    found.path.display()
                ));
            }
            Exit::Usage
        })
}

/// Reads a file that is no longer than a configuration may be.
fn read_bounded(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(MOST + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MOST {
        return Err(std::io::Error::other(format!("it is longer than {MOST} bytes")));
    }
    Ok(text)
}

/// The configuration's place.
pub(super) fn place(args: &Args) -> Option<place::Place> {
    place::search(&surroundings(args))
}

/// What to tell where there is none.
pub(super) fn not_found(args: &Args) -> String {
    place::not_found(&surroundings(args))
}

fn surroundings(args: &Args) -> place::Surroundings {
    place::Surroundings {
        flag: args.config.clone(),
        variable: std::env::var_os("BRINGUP_CONFIG").map(PathBuf::from),
        xdg: std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from),
        home: paths::home().ok(),
    }
}

/// A console on a configuration. A headless one never asks for keys or secrets.
///
/// # Errors
/// When no home directory is known, or the tunnel's directory can't be made.
pub(super) async fn open(args: &Args, config: Config, headless: bool) -> Result<Console> {
    let home = paths::home()?;
    let config = with_ssh_config(config, &home).await;
    let expand = |text: &String| place::expand(text, &home);
    let (rules, notes) = rules::read_or_say(&config, &home);
    // The console has its notices for it.
    if headless {
        notes.iter().for_each(|note| out::say(note));
    }
    let setup = Setup {
        rules,
        notes,
        known_hosts: config.ssh.known_hosts.iter().map(expand).collect(),
        results: paths::state_dir()?.join("results"),
        loads: loads(&config, &paths::state_dir()?),
        home: home.clone(),
        options: Options {
            no_probe: args.no_probe,
        },
        interactive: !headless,
        config: Arc::new(config),
    };
    Ok(Console::start(setup)?)
}

/// The file of earlier loads. How long a demo's take says nothing of any real cluster: they lie in the demo's own folder and go with it, whoever looks at
/// the demo and wherever a copy of its configuration lies.
fn loads(config: &Config, state: &Path) -> PathBuf {
    let logins = config.ssh.jump.iter().map(|hop| &hop.login);
    let mut keys = logins
        .chain(config.nodes.iter().map(|n| &n.login))
        .flat_map(|l| &l.keys);
    let demo = keys.find_map(|key| sim::folder_of(Path::new(key)));
    demo.unwrap_or(state).join("loads.json")
}

/// Opens the console on the configured cluster.
///
/// # Errors
/// See [`open`], and what the terminal refuses.
pub(super) async fn console(args: &Args) -> Result<Exit> {
    let config = match load(args) {
        Ok(config) => config,
        Err(exit) => return Ok(exit),
    };
    console_on(args, config, Cluster::Stays).await
}

/// Opens the console on a configuration, of a cluster that stays when the console leaves or ends with it.
///
/// # Errors
/// See [`open`], and what the terminal refuses.
pub(super) async fn console_on(args: &Args, config: Config, cluster: Cluster) -> Result<Exit> {
    if !app::present() {
        out::error("the console needs a terminal; without one there are `bringup status`, `up`, `down` and `bench`");
        return Ok(Exit::Usage);
    }
    let theme = match theme(&theme_name(args, &config)) {
        Ok(theme) => theme,
        Err(exit) => return Ok(exit),
    };
    let _log = logfile::start(&args.log_level);
    let ended = app::run_console(open(args, config, false).await?, theme).await?;
    out::left(&ended.left, ended.left.mid_run || ended.how != How::Quit, cluster);
    Ok(match ended.how {
        How::Quit => Exit::Done,
        How::Interrupted => Exit::Interrupted,
        // A terminal that is gone ends the program as a request to end does.
        How::Terminated | How::HungUp => Exit::Terminated,
        How::Panicked => Exit::Failed,
    })
}

/// Writes pictures of a console that does the whole job on a configuration.
///
/// # Errors
/// See [`open`]; when the job does not go as it should, or a file can't be written.
pub(super) async fn pictures_of(args: &Args, config: Config, directory: &Path) -> Result<Exit> {
    let theme = match theme(&theme_name(args, &config)) {
        Ok(theme) => theme,
        Err(exit) => return Ok(exit),
    };
    for file in app::write_pictures(open(args, config, true).await?, theme, directory).await? {
        out::line(&file.display().to_string());
    }
    Ok(Exit::Done)
}

/// The wanted theme: one configuration serves a dark terminal and a light one.
fn theme_name(args: &Args, config: &Config) -> String {
    let variable = std::env::var("BRINGUP_THEME").ok();
    config::theme::chosen(args.theme.as_deref(), variable.as_deref(), &config.ui.theme).to_owned()
}

/// A theme by name, or from a file.
fn theme(name: &str) -> std::result::Result<config::theme::Theme, Exit> {
    if let Some(theme) = config::theme::builtin(name) {
        return Ok(theme);
    }
    let text = std::fs::read_to_string(name).map_err(|error| {
        out::error(&format!(
            "'{name}' is no built-in theme and could not be read as a file: {error}"
        ));
        Exit::Usage
    })?;
    config::theme::parse_theme(&text, name).map_err(|problems| {
        for problem in problems {
            out::say(&problem.to_string());
        }
        Exit::Usage
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::EXAMPLE;
    use crate::record::Folder;

    #[test]
    fn how_long_a_demo_loads_is_kept_apart_and_what_only_looks_like_one_is_none() {
        let parent = tempfile::tempdir().unwrap();
        let folder = Folder::make(parent.path(), "demo-").unwrap();
        let other = parent.path().join("bringup-demo-notes");
        std::fs::create_dir(&other).unwrap();
        let state = Path::new("/state");
        let with = |key: PathBuf| {
            let mut config = config::parse(EXAMPLE, "config.example.toml").unwrap();
            config.ssh.jump[0].login.keys = vec![key.display().to_string()];
            loads(&config, state)
        };
        assert_eq!(with(folder.path().join("id")), folder.path().join("loads.json"));
        for key in [other.join("id"), "~/.ssh/id".into(), "id".into(), PathBuf::new()] {
            assert_eq!(with(key), state.join("loads.json"));
        }
    }
}
