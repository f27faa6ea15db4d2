//! Arguments.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

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

    #[test]
    fn a_log_level_that_is_none_is_an_error_of_usage() {
        let parse = |level| Args::try_parse_from(["bringup", "--log-level", level, "status"]);
        assert_eq!(parse("DEBUG").map(|a| a.log_level).ok().as_deref(), Some("DEBUG"));
        assert_eq!(parse("foo").map_err(|e| e.exit_code()).err(), Some(2));
    }
}
