//! The `bringup` program: arguments to `cli`, its exit code back.

use std::process::ExitCode;

fn main() -> ExitCode {
    bringup::cli::main()
}
