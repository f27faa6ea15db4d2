//! The program from its arguments to its exit code: the console, and the same operations without the screen.
//!
//! Owns arguments, exit codes, the console's own log file, and what the headless commands print. Holds no logic of the cluster: everything goes
//! through `drive` and the core.
//!
//! Invariants: standard output carries results only; headless commands never ask for a secret or a key; an exit code means one thing.

mod args;
mod bench;
mod cause;
mod config;
mod demo;
mod exit;
mod headless;
mod logfile;
mod out;
mod paths;
mod plan;
mod rules;
mod run;
mod start;
mod status;

use std::io::Write;
use std::process::ExitCode;

pub use args::Args;
use args::Command;
use exit::Exit;

/// Runs the program.
#[must_use]
pub fn main() -> ExitCode {
    let args = match Args::read(std::env::args_os().collect()) {
        Ok(args) => args,
        Err(error) => {
            // Help and version are no errors; clap knows which stream each belongs to.
            let code = if error.use_stderr() { Exit::Usage } else { Exit::Done };
            let printed = error.print().and_then(|()| std::io::stdout().flush());
            return match printed {
                Err(why) if code == Exit::Done && why.kind() != std::io::ErrorKind::BrokenPipe => {
                    out::error(&format!("standard output could not be written: {why}"));
                    Exit::Failed.into()
                }
                Ok(()) | Err(_) => code.into(),
            };
        }
    };
    if let Err(error) = color_eyre::install() {
        out::error(&format!("error reports could not be set up: {error}"));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build();
    match runtime {
        Ok(runtime) => {
            let exit = runtime.block_on(dispatch(args));
            // Tasks that outlive their purpose must not hold the process.
            runtime.shutdown_timeout(std::time::Duration::from_secs(1));
            exit.into()
        }
        Err(error) => {
            out::error(&format!("the runtime could not be started: {error}"));
            Exit::Failed.into()
        }
    }
}

/// Threads of the runtime: one for the loop, one for encryption.
const WORKERS: usize = 2;

async fn dispatch(args: Args) -> Exit {
    let result = match &args.command {
        None => start::console(&args).await,
        Some(Command::Up { yes, json }) => run::up(&args, *yes, *json).await,
        Some(Command::Down { yes, json, serve }) => run::down(&args, *yes, *json, *serve).await,
        Some(Command::Status { schema: true, .. }) => Ok(status::schema()),
        Some(Command::Status { json, .. }) => status::status(&args, *json).await,
        Some(Command::Bench { json }) => bench::bench(&args, *json).await,
        Some(Command::Plan { action }) => plan::plan(&args, *action).await,
        Some(Command::Config { what }) => config::config(&args, what),
        Some(Command::Demo(demo)) => demo::demo(&args, demo).await,
    };
    let exit = result.unwrap_or_else(|error| {
        out::error(&format!("{error:#}"));
        Exit::Failed
    });
    if exit == Exit::Done && out::lost() {
        Exit::Failed
    } else {
        exit
    }
}
