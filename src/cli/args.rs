//! Arguments.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Error, Parser, Subcommand, ValueEnum};

use crate::domain::command::quote_all;
use crate::domain::intent::Action;

const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    a step, a verification or a request of the throughput test failed, or a wait ran out
  2    usage, config, or --yes missing without a terminal
  3    a configured hop or node could not be reached or refused us (wins over 4)
  4    reached, and the cluster is not serving
  130  ended by SIGINT (what was left running is said)
  143  ended by SIGTERM or SIGHUP (what was left running is said)";

/// Words of `--log-level`.
const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

/// Bring up a model server across GPU nodes, and watch it.
///
/// Without a command, the console opens on the configured cluster. `bringup demo` needs no configuration.
#[derive(Debug, Parser)]
#[command(name = "bringup", version, after_help = EXIT_CODES)]
pub struct Args {
    /// Configuration file [default: $BRINGUP_CONFIG, else bringup/config.toml in $XDG_CONFIG_HOME or ~/.config]
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Theme: default, light, high-contrast, or a file [default: $BRINGUP_THEME, else that of the configuration]
    #[arg(long, global = true, value_name = "NAME")]
    pub theme: Option<String>,
    /// Never ask the server for a token: report *answering* instead of *ready*
    #[arg(long, global = true)]
    pub no_probe: bool,
    /// Detail of the console's own log file: error, warn, info, debug or trace
    #[arg(long, global = true, value_name = "LEVEL", default_value = "info", value_parser = LEVELS, ignore_case = true, hide_possible_values = true)]
    pub log_level: String,
    /// What to do; without it the console opens
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What to do without the screen.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start the head, join the workers, serve the model, and wait for a token
    Up {
        /// Run the plan without asking
        #[arg(long)]
        yes: bool,
        /// Print one JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Stop the model server and our containers
    Down {
        /// Run the plan without asking
        #[arg(long)]
        yes: bool,
        /// Print one JSON object a line
        #[arg(long)]
        json: bool,
        /// Stop the model server only
        #[arg(long)]
        serve: bool,
    },
    /// Say what is running, and how fast
    Status {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
        /// Print the JSON Schema of that object, and look at nothing
        #[arg(long, conflicts_with = "json")]
        schema: bool,
    },
    /// Run the throughput test against the server
    Bench {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Print the plan of an action as a shell script
    Plan {
        /// The action
        #[arg(value_enum, default_value = "up")]
        action: PlanAction,
    },
    /// The configuration: an example, a check, the rules of failures, or where it is looked for
    Config {
        /// What of it
        #[command(subcommand)]
        what: ConfigCommand,
    },
    /// Open the console on an embedded demo cluster that needs nothing
    Demo(Demo),
}

/// What to do with the configuration.
#[derive(Debug, Clone, Subcommand)]
pub enum ConfigCommand {
    /// Print an example that documents every key
    Example,
    /// Check the configuration and say what it comes to
    Check {
        /// The file, as --config names it
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// Print all of it as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the rules that failures are known by, and the form of your own ([diagnose] rules)
    Rules,
    /// Print where the configuration is looked for
    Path,
}

/// The embedded demo cluster.
#[derive(Debug, Clone, clap::Args)]
pub struct Demo {
    /// Nodes of the cluster
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub nodes: u16,
    /// How much faster than by itself the cluster goes, and all rates with it; at 1 the model loads in about a minute
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = speed)]
    pub speed: f64,
    /// Run only the cluster: print the path of a config for it and a line that kills a container of it, and stay until Ctrl-C
    #[arg(long)]
    pub serve_only: bool,
    /// Do the whole job without a terminal and write pictures of it, for the manual, into a directory
    #[arg(long, value_name = "DIR", conflicts_with = "serve_only", hide = true)]
    pub pictures: Option<PathBuf>,
}

impl Args {
    /// Reads the words of a command line, the program's name first.
    ///
    /// # Errors
    /// What is wrong with them, or what they ask to be printed.
    pub fn read(words: Vec<OsString>) -> Result<Self, Error> {
        let mut args = Self::try_parse_from(&words).map_err(|error| with_cure(error, &words))?;
        if let Some(Command::Config {
            what: ConfigCommand::Check { file, .. },
        }) = &mut args.command
            && let Some(file) = file.take()
        {
            if args.config.is_some() {
                let why = "the configuration is named twice: as FILE and with --config";
                return Err(Self::command().error(ErrorKind::ArgumentConflict, why));
            }
            args.config = Some(file);
        }
        Ok(args)
    }
}

/// A file where none is taken was meant to be the configuration: then the line that says so is told.
fn with_cure(mut error: Error, words: &[OsString]) -> Error {
    let said = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.clone()),
        _ => None,
    };
    let argument = said(ContextKind::InvalidArg);
    // The value of an option was meant for that one.
    let of_option = argument.as_ref().is_some_and(|arg| arg.starts_with('-'));
    let refused = [
        said(ContextKind::InvalidSubcommand),
        said(ContextKind::InvalidValue),
        argument,
    ];
    let file = refused.into_iter().flatten().find(|word| names_a_file(word));
    let Some(file) = file.filter(|_| !of_option) else {
        return error;
    };
    let words: Vec<String> = words.iter().map(|w| w.to_string_lossy().into_owned()).collect();
    let Some(at) = words.iter().rposition(|word| *word == file) else {
        return error;
    };
    let rest = words.iter().enumerate().filter(|(n, _)| *n != 0 && *n != at);
    let cure = ["bringup", "--config", &file]
        .into_iter()
        .chain(rest.map(|(_, w)| w.as_str()));
    let cure: Vec<&str> = cure.collect();
    let tip = format!("the configuration is named with --config: {}", quote_all(&cure));
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    error
}

/// Whether a word is a file's name, and no word of ours that is misspelt.
fn names_a_file(word: &str) -> bool {
    !word.starts_with('-') && (word.contains('/') || word.ends_with(".toml") || Path::new(word).is_file())
}

fn speed(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| format!("'{text}' is not a number"))?;
    if (0.1..=1000.0).contains(&value) {
        Ok(value)
    } else {
        Err("a speed from 0.1 to 1000 is wanted".to_owned())
    }
}

/// Actions whose plan can be printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PlanAction {
    /// Start the head
    Head,
    /// Join the workers
    Workers,
    /// Serve the model
    Serve,
    /// All of these in order
    Up,
    /// Stop everything of ours
    Down,
    /// Stop the model server only
    DownServe,
}

impl From<PlanAction> for Action {
    fn from(action: PlanAction) -> Self {
        match action {
            PlanAction::Head => Self::Head,
            PlanAction::Workers => Self::Workers,
            PlanAction::Serve => Self::Serve,
            PlanAction::Up => Self::Up,
            PlanAction::Down => Self::StopAll,
            PlanAction::DownServe => Self::StopServe,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Args, Error> {
        Args::read(line.split(' ').map(OsString::from).collect())
    }

    #[test]
    fn a_configuration_to_be_checked_is_named_either_way_and_once() {
        for line in [
            "bringup config check /etc/my.toml",
            "bringup --config /etc/my.toml config check",
        ] {
            let args = read(line).unwrap();
            assert_eq!(args.config.as_deref(), Some(Path::new("/etc/my.toml")), "{line}");
        }
        let twice = read("bringup --config a.toml config check b.toml").unwrap_err();
        assert_eq!(twice.exit_code(), 2);
        assert!(
            twice.to_string().contains("named twice: as FILE and with --config"),
            "{twice}"
        );
    }

    #[test]
    fn a_file_where_none_is_taken_is_told_how_a_configuration_is_named() {
        for (line, cure) in [
            ("bringup my.toml", "bringup --config my.toml"),
            ("bringup /etc/my", "bringup --config /etc/my"),
            (
                "bringup status my.toml --json",
                "bringup --config my.toml status --json",
            ),
            ("bringup up --yes ./it", "bringup --config ./it up --yes"),
            ("bringup down my.toml", "bringup --config my.toml down"),
            ("bringup bench my.toml", "bringup --config my.toml bench"),
            ("bringup plan my.toml", "bringup --config my.toml plan"),
            ("bringup plan up my.toml", "bringup --config my.toml plan up"),
            ("bringup config my.toml", "bringup --config my.toml config"),
            ("bringup config rules my.toml", "bringup --config my.toml config rules"),
            ("bringup config path my.toml", "bringup --config my.toml config path"),
            (
                "bringup config check a.toml b.toml",
                "bringup --config b.toml config check a.toml",
            ),
        ] {
            let error = read(line).unwrap_err();
            let said = error.to_string();
            assert_eq!(error.exit_code(), 2, "{said}");
            let tip = format!("tip: the configuration is named with --config: {cure}\n");
            assert!(said.contains(&tip), "{line}\n{said}");
        }
        // Something else is wrong with these.
        for line in [
            "bringup statsu",
            "bringup --log-level a.toml status",
            "bringup demo --nodes x.toml",
            "bringup -x.toml",
        ] {
            let said = read(line).unwrap_err().to_string();
            assert!(!said.contains("is named with --config"), "{line}\n{said}");
        }
    }

    #[test]
    fn a_log_level_that_is_none_is_an_error_of_usage() {
        let parse = |level| Args::try_parse_from(["bringup", "--log-level", level, "status"]);
        assert_eq!(parse("DEBUG").map(|a| a.log_level).ok().as_deref(), Some("DEBUG"));
        assert_eq!(parse("foo").map_err(|e| e.exit_code()).err(), Some(2));
    }
}
