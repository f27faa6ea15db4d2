//! Where the console's files are.

use std::path::{Path, PathBuf};

use color_eyre::eyre::{Result, eyre};
use etcetera::BaseStrategy;

/// The operator's home directory.
///
/// # Errors
/// When there is none.
pub(super) fn home() -> Result<PathBuf> {
    etcetera::home_dir().map_err(|e| eyre!("no home directory is known: {e}"))
}

/// The directory of the console's own log and results: `bringup` in $XDG_STATE_HOME or ~/.local/state.
///
/// # Errors
/// When no home directory is known.
pub(super) fn state_dir() -> Result<PathBuf> {
    let xdg = etcetera::base_strategy::Xdg::new().map_err(|e| eyre!("no home directory is known: {e}"))?;
    let state = xdg.state_dir().ok_or_else(|| eyre!("no state directory is known"))?;
    Ok(state.join("bringup"))
}

/// Whether the file's mode lets others than its owner read it. What can't be looked at is not said to be open.
#[cfg(unix)]
pub(super) fn readable_by_others(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    path.metadata().is_ok_and(|m| m.is_file() && m.mode() & 0o044 != 0)
}

/// Files have no such mode here.
#[cfg(not(unix))]
pub(super) fn readable_by_others(_: &Path) -> bool {
    false
}
