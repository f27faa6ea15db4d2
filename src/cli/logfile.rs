//! The console's own log file: bounded, never on the screen.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use color_eyre::eyre::{Result, WrapErr, eyre};
use tracing_appender::non_blocking::WorkerGuard;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use super::{out, paths};

/// Bytes of the log file before it becomes the old one; there is one old one.
const MOST: u64 = 4 << 20;

/// Starts logging to `bringup.log` in the state directory. The log is written until the guard goes. Where there can be none, that is said, and the program
/// goes on without: a full or read-only home must keep nobody from looking, or from stopping what runs.
pub(super) fn start(level: &str) -> Option<WorkerGuard> {
    match open(level) {
        Ok(guard) => Some(guard),
        Err(why) => {
            out::error(&format!("there is no log file of this run: {why:#}"));
            None
        }
    }
}

fn open(level: &str) -> Result<WorkerGuard> {
    let level: LevelFilter = level
        .parse()
        .map_err(|_| eyre!("--log-level '{level}' is none of error, warn, info, debug, trace"))?;
    let dir = paths::state_dir()?;
    fs::create_dir_all(&dir).wrap_err_with(|| format!("the directory {} could not be made", dir.display()))?;
    let file = BoundedFile::open(&dir.join("bringup.log")).wrap_err("the log file could not be opened")?;
    let (writer, guard) = tracing_appender::non_blocking(file);
    // russh prints the contents of packets at its finest level: never more than warnings of it.
    let filter = EnvFilter::default()
        .add_directive(level.into())
        .add_directive("russh=warn".parse()?);
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_writer(writer)
        .try_init()
        .map_err(|e| eyre!("logging could not be started: {e}"))?;
    Ok(guard)
}

/// A file that starts anew when it is full, keeping the one before under `.old`.
struct BoundedFile {
    path: PathBuf,
    file: File,
    size: u64,
}

impl BoundedFile {
    fn open(path: &Path) -> io::Result<Self> {
        let file = private().append(true).open(path)?;
        let size = file.metadata()?.len();
        Ok(Self {
            path: path.to_path_buf(),
            file,
            size,
        })
    }
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

impl Write for BoundedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.size > 0 && self.size.saturating_add(bytes.len() as u64) > MOST {
            fs::rename(&self.path, self.path.with_extension("log.old"))?;
            *self = Self::open(&self.path)?;
        }
        let n = self.file.write(bytes)?;
        self.size = self.size.saturating_add(n as u64);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_file_starts_anew_and_keeps_one_old() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bringup.log");
        let mut file = BoundedFile::open(&path).unwrap();
        let block = vec![b'x'; 1 << 20];
        for _ in 0..5 {
            file.write_all(&block).unwrap();
        }
        assert_eq!(fs::metadata(&path).unwrap().len(), 1 << 20);
        assert_eq!(fs::metadata(dir.path().join("bringup.log.old")).unwrap().len(), MOST);
    }
}
