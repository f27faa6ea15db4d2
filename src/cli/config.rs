//! `config`: an example, a check, the places.

use color_eyre::eyre::Result;

use crate::config::{EXAMPLE, place};

use super::args::{Args, ConfigCommand};
use super::exit::Exit;
use super::{out, start};

/// `bringup config`.
///
/// # Errors
/// When the configuration can't be printed.
pub(super) fn config(args: &Args, what: &ConfigCommand) -> Result<Exit> {
    match what {
        ConfigCommand::Example => {
            out::line(EXAMPLE.trim_end());
        }
        ConfigCommand::Check => match start::load(args) {
            Ok(config) => {
                out::line(&serde_json::to_string_pretty(&config)?);
            }
            Err(exit) => return Ok(exit),
        },
        ConfigCommand::Path => match start::place(args) {
            Some(place) => {
                out::line(&place.path.display().to_string());
            }
            None => {
                out::error(&place::not_found(None));
                return Ok(Exit::Usage);
            }
        },
    }
    Ok(Exit::Done)
}
