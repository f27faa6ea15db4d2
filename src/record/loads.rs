//! How long earlier loads took: one small file, `loads.json`, that holds the latest of them.

use std::fs::{File, TryLockError};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::domain::Wall;
use crate::domain::load::{self, EarlierLoad, Stage};
use crate::domain::time::millis;

use super::atomic;

/// Loads kept in the file, over all clusters and models; the oldest goes first.
pub const LOADS: usize = 60;

/// Longest file that is read, in bytes: several times what [`LOADS`] loads take.
const MOST: u64 = 256 << 10;

/// Longest model's name that is kept, in characters.
const MODEL: usize = 200;

/// The format that this program writes. A file of a newer one is left alone.
const VERSION: u32 = 1;

/// How often another console's turn at the file is waited for, and the wait between two times. A turn takes milliseconds.
const TRIES: u32 = 40;

/// See [`TRIES`].
const TRY_AGAIN: Duration = Duration::from_millis(50);

#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    version: u32,
    loads: Vec<Load>,
}

/// A load; a stage is its name and its milliseconds.
#[derive(Debug, Serialize, Deserialize)]
struct Load {
    key: String,
    model: String,
    ended_ms: u64,
    stages: Vec<(Stage, u64)>,
}

impl From<Load> for EarlierLoad {
    fn from(load: Load) -> Self {
        let took = |(stage, ms)| (stage, Duration::from_millis(ms));
        Self {
            key: load.key,
            model: load.model,
            ended: Wall(load.ended_ms),
            stages: load.stages.into_iter().map(took).collect(),
        }
    }
}

impl From<EarlierLoad> for Load {
    fn from(load: EarlierLoad) -> Self {
        let took = |(stage, took)| (stage, millis(took));
        Self {
            key: load.key,
            model: load.model.chars().take(MODEL).collect(),
            ended_ms: load.ended.0,
            stages: load.stages.into_iter().map(took).collect(),
        }
    }
}

/// The latest `most` loads with this key, oldest first. Where there is no file there are none.
///
/// # Errors
/// Why the file can't be read, as a fragment with its path.
pub fn earlier_loads(file: &Path, key: &str, most: usize) -> Result<Vec<EarlierLoad>, String> {
    let stored = read(file).map_err(|why| format!("{}: {why}", file.display()))?;
    Ok(latest(stored, key, most))
}

/// The same of the bytes of such a file.
///
/// # Errors
/// What is wrong with them, as a fragment.
pub fn loads_of(bytes: &[u8], key: &str, most: usize) -> Result<Vec<EarlierLoad>, String> {
    let stored = parse(bytes).map_err(|why| why.to_string())?;
    Ok(latest(stored, key, most))
}

/// An older program wrote down what it saw of a load beside what another one saw of it: one of them counts.
fn latest(stored: Vec<EarlierLoad>, key: &str, most: usize) -> Vec<EarlierLoad> {
    let mut loads = Vec::new();
    for load in stored.into_iter().filter(|load| load.key == key) {
        load::add(&mut loads, load);
    }
    let old = loads.len().saturating_sub(most);
    loads.split_off(old)
}

/// Adds a load to the file, whose directory is made when it is not there, and leaves out the oldest beyond [`LOADS`]. A file that is no such file any more is
/// written anew; one of a newer program stays as it is. Of a load that another console has written too, the record stays that saw more of it.
///
/// # Errors
/// When the file cannot be written, or is of a newer program.
pub async fn keep_load(file: PathBuf, load: EarlierLoad) -> io::Result<()> {
    tokio::task::spawn_blocking(move || keep(&file, load))
        .await
        .map_err(io::Error::other)?
}

fn keep(file: &Path, load: EarlierLoad) -> io::Result<()> {
    let directory = file.parent().unwrap_or(Path::new("."));
    let name = file
        .file_name()
        .and_then(|n| n.to_str())
        .ok_or_else(|| io::Error::other("no file name"))?;
    atomic::make_directory(directory)?;
    let _turn = turn(directory);
    let stored = match read(file) {
        Ok(loads) => loads,
        Err(Bad::Newer(version)) => return Err(io::Error::other(Bad::Newer(version).to_string())),
        Err(Bad::Unreadable(why)) => return Err(io::Error::other(why)),
        Err(Bad::Broken(_)) => Vec::new(),
    };
    let mut loads = Vec::new();
    for load in stored.into_iter().chain([load]) {
        load::add(&mut loads, load);
    }
    let old = loads.len().saturating_sub(LOADS);
    let loads = loads.split_off(old);
    let stored = Stored {
        version: VERSION,
        loads: loads.into_iter().map(Load::from).collect(),
    };
    let mut text = serde_json::to_string_pretty(&stored)?;
    text.push('\n');
    atomic::replace(directory, name, text.as_bytes())
}

/// Waits until no other console is between reading the file and writing it, and holds the others off for as long as what it gives lives. The lock is on the
/// directory, so that nothing is left of it. Without it, where it cannot be had or does not come free, the load is written all the same.
fn turn(directory: &Path) -> Option<File> {
    let open = File::open(directory).ok()?;
    for _ in 0..TRIES {
        match open.try_lock() {
            Ok(()) => return Some(open),
            Err(TryLockError::WouldBlock) => std::thread::sleep(TRY_AGAIN),
            Err(TryLockError::Error(_)) => return None,
        }
    }
    None
}

/// Why a file gives no loads.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum Bad {
    #[error("{0}")]
    Unreadable(String),
    #[error("it is of a newer bringup (format {0})")]
    Newer(u32),
    #[error("it is broken ({0}), and is written anew with the next load")]
    Broken(String),
}

fn read(file: &Path) -> Result<Vec<EarlierLoad>, Bad> {
    let mut bytes = Vec::new();
    match File::open(file) {
        Ok(open) => open
            .take(MOST + 1)
            .read_to_end(&mut bytes)
            .map_err(|e| Bad::Unreadable(e.to_string()))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Bad::Unreadable(error.to_string())),
    };
    parse(&bytes)
}

fn parse(bytes: &[u8]) -> Result<Vec<EarlierLoad>, Bad> {
    if bytes.len() as u64 > MOST {
        return Err(Bad::Broken(format!("longer than {MOST} bytes")));
    }
    // The version first: what else a newer file holds is not known here.
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    let broken = |e: serde_json::Error| Bad::Broken(e.to_string());
    let Versioned { version } = serde_json::from_slice(bytes).map_err(broken)?;
    if version > VERSION {
        return Err(Bad::Newer(version));
    }
    let stored: Stored = serde_json::from_slice(bytes).map_err(broken)?;
    Ok(stored.loads.into_iter().map(EarlierLoad::from).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const HOUR: u64 = 3_600_000;

    /// The load that ended so many hours after 1970.
    fn load(key: &str, ended: u64) -> EarlierLoad {
        EarlierLoad {
            key: key.into(),
            model: "tiny".into(),
            ended: Wall(ended * HOUR),
            stages: vec![
                (Stage::Starting, Duration::from_millis(1500)),
                (Stage::KvCache, Duration::from_secs(60)),
            ],
        }
    }

    #[test]
    fn loads_are_kept_and_the_latest_of_the_same_kind_are_given() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("state/loads.json");
        assert_eq!(earlier_loads(&file, "a", 5), Ok(Vec::new()));
        for (key, ended) in [("a", 1), ("b", 2), ("a", 3), ("a", 4)] {
            keep(&file, load(key, ended)).unwrap();
        }
        assert_eq!(earlier_loads(&file, "a", 2), Ok(vec![load("a", 3), load("a", 4)]));
        assert_eq!(earlier_loads(&file, "b", 2), Ok(vec![load("b", 2)]));
        assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_load_that_several_consoles_watched_counts_once_also_in_a_file_that_has_it_twice() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("loads.json");
        let mut later = load("a", 1);
        later.ended = Wall(HOUR + 1057);
        later.stages[0].1 += Duration::from_millis(1054);
        let twice = Stored {
            version: VERSION,
            loads: [load("a", 1), later.clone(), load("a", 2)].map(Load::from).into(),
        };
        fs::write(&file, serde_json::to_string(&twice).unwrap()).unwrap();
        assert_eq!(earlier_loads(&file, "a", 5), Ok(vec![later.clone(), load("a", 2)]));
        keep(&file, load("a", 1)).unwrap();
        assert_eq!(read(&file), Ok(vec![later, load("a", 2)]));
    }

    #[test]
    fn consoles_that_write_at_once_lose_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("state/loads.json");
        std::thread::scope(|all| {
            for ended in 1..=8 {
                let file = &file;
                all.spawn(move || keep(file, load("a", ended)).unwrap());
            }
        });
        let expected: Vec<_> = (1..=8).map(|ended| load("a", ended)).collect();
        assert_eq!(earlier_loads(&file, "a", 9), Ok(expected));
    }

    #[test]
    fn only_so_many_are_kept_and_they_fit_what_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("loads.json");
        let mut long = load("a", 0);
        long.model = "x".repeat(9999);
        for ended in 0..LOADS as u64 + 3 {
            long.ended = Wall(ended * HOUR);
            keep(&file, long.clone()).unwrap();
        }
        let all = earlier_loads(&file, "a", usize::MAX).unwrap();
        assert_eq!((all.len(), all[0].ended), (LOADS, Wall(3 * HOUR)));
    }

    #[test]
    fn a_broken_file_is_told_and_written_anew_and_a_newer_one_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("loads.json");
        for broken in [
            "",
            "{",
            "[]",
            "{\"version\":1}",
            "{\"version\":1,\"loads\":[{\"key\":1}]}",
            "\u{0}",
        ] {
            fs::write(&file, broken).unwrap();
            let why = earlier_loads(&file, "a", 5).unwrap_err();
            assert!(why.contains("loads.json: it is broken"), "{why}");
            keep(&file, load("a", 1)).unwrap();
            assert_eq!(earlier_loads(&file, "a", 5).unwrap().len(), 1);
        }
        fs::write(&file, "x".repeat(300 << 10)).unwrap();
        assert!(earlier_loads(&file, "a", 5).is_err());
        let newer = "{\"version\":2,\"other\":true}";
        fs::write(&file, newer).unwrap();
        assert!(earlier_loads(&file, "a", 5).unwrap_err().contains("newer"));
        assert!(keep(&file, load("a", 1)).is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), newer);
    }
}
