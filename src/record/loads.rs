//! How long earlier loads took: one small file, `loads.json`, that holds the latest of them.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::domain::Wall;
use crate::domain::load::{EarlierLoad, Stage};
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

fn latest(stored: Vec<Load>, key: &str, most: usize) -> Vec<EarlierLoad> {
    let mut loads: Vec<EarlierLoad> = stored
        .into_iter()
        .filter(|load| load.key == key)
        .map(|load| EarlierLoad {
            key: load.key,
            model: load.model,
            ended: Wall(load.ended_ms),
            stages: load
                .stages
                .into_iter()
                .map(|(stage, ms)| (stage, Duration::from_millis(ms)))
                .collect(),
        })
        .collect();
    let old = loads.len().saturating_sub(most);
    loads.split_off(old)
}

/// Adds a load to the file, whose directory is made when it is not there, and leaves out the oldest beyond [`LOADS`]. A file that is no such file any more is
/// written anew; one of a newer program stays as it is.
///
/// # Errors
/// When the file cannot be written, or is of a newer program.
pub async fn keep_load(file: PathBuf, load: EarlierLoad) -> io::Result<()> {
    tokio::task::spawn_blocking(move || keep(&file, load))
        .await
        .map_err(io::Error::other)?
}

fn keep(file: &Path, load: EarlierLoad) -> io::Result<()> {
    let mut loads = match read(file) {
        Ok(loads) => loads,
        Err(Bad::Newer(version)) => return Err(io::Error::other(Bad::Newer(version).to_string())),
        Err(Bad::Unreadable(why)) => return Err(io::Error::other(why)),
        Err(Bad::Broken(_)) => Vec::new(),
    };
    loads.push(Load {
        key: load.key,
        model: load.model.chars().take(MODEL).collect(),
        ended_ms: load.ended.0,
        stages: load
            .stages
            .into_iter()
            .map(|(stage, took)| (stage, millis(took)))
            .collect(),
    });
    let old = loads.len().saturating_sub(LOADS);
    let loads = loads.split_off(old);
    let stored = Stored {
        version: VERSION,
        loads,
    };
    let mut text = serde_json::to_string_pretty(&stored)?;
    text.push('\n');
    let directory = file.parent().unwrap_or(Path::new("."));
    let name = file
        .file_name()
        .and_then(|n| n.to_str())
        .ok_or_else(|| io::Error::other("no file name"))?;
    atomic::make_directory(directory)?;
    atomic::replace(directory, name, text.as_bytes())
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

fn read(file: &Path) -> Result<Vec<Load>, Bad> {
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

fn parse(bytes: &[u8]) -> Result<Vec<Load>, Bad> {
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
    Ok(stored.loads)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn load(key: &str, ended: u64) -> EarlierLoad {
        EarlierLoad {
            key: key.into(),
            model: "tiny".into(),
            ended: Wall(ended),
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
    fn only_so_many_are_kept_and_they_fit_what_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("loads.json");
        let mut long = load("a", 0);
        long.model = "x".repeat(9999);
        for ended in 0..LOADS as u64 + 3 {
            long.ended = Wall(ended);
            keep(&file, long.clone()).unwrap();
        }
        let all = earlier_loads(&file, "a", usize::MAX).unwrap();
        assert_eq!((all.len(), all[0].ended), (LOADS, Wall(3)));
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
