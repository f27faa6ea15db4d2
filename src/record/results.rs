//! Results of throughput tests.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::domain::Wall;
use crate::measure::result::compact_utc;

use super::atomic;

/// Results kept in a directory; older ones are removed.
pub const RESULTS: usize = 500;

/// What the name of a result begins with.
const PREFIX: &str = "bench-";

/// Longest part of a model's name in a file name, in characters.
const MODEL: usize = 80;

/// Writes a result into a directory, which is made when it is not there, and removes the oldest results beyond [`RESULTS`]. The file is called after the
/// time (UTC) and the model. Gives its path.
///
/// # Errors
/// When the file cannot be written. Old results that cannot be removed are no error.
pub async fn save_result(directory: PathBuf, ended: Wall, model: &str, result: &Value) -> io::Result<PathBuf> {
    let stem = stem(ended, model);
    let mut text = serde_json::to_string_pretty(result)?;
    text.push('\n');
    let write = move || save(&directory, &stem, text.as_bytes(), RESULTS);
    tokio::task::spawn_blocking(write).await.map_err(io::Error::other)?
}

fn save(directory: &Path, stem: &str, text: &[u8], keep: usize) -> io::Result<PathBuf> {
    atomic::make_directory(directory)?;
    let path = atomic::write_new(directory, stem, "json", text)?;
    if let Err(error) = atomic::keep_last(directory, PREFIX, "json", keep) {
        tracing::warn!(%error, "old results cannot be removed");
    }
    Ok(path)
}

fn stem(ended: Wall, model: &str) -> String {
    // The last part of a hub name or a path.
    let last = model.trim_end_matches('/').rsplit('/').next().unwrap_or(model);
    let safe = |c: char| {
        if c.is_ascii_alphanumeric() || "._-".contains(c) {
            c
        } else {
            '_'
        }
    };
    let model: String = last.chars().map(safe).take(MODEL).collect();
    format!("{PREFIX}{}-{model}", compact_utc(ended))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const ENDED: Wall = Wall(1_795_972_464_123);

    #[test]
    fn a_name_has_the_time_and_the_models_last_part() {
        let cases = [
            (
                "Qwen/Qwen3.5-122B-A10B-FP8",
                "bench-20261129-171424-Qwen3.5-122B-A10B-FP8",
            ),
            ("/models/tiny/", "bench-20261129-171424-tiny"),
            ("a b\u{1b}:é", "bench-20261129-171424-a_b___"),
            ("..", "bench-20261129-171424-.."),
            ("", "bench-20261129-171424-"),
        ];
        for (model, want) in cases {
            assert_eq!(stem(ENDED, model), want);
        }
        assert_eq!(
            stem(ENDED, &"x".repeat(999)).len(),
            "bench-20261129-171424-".len() + MODEL
        );
    }

    #[tokio::test]
    async fn a_result_is_saved_and_reads_back() {
        let dir = tempfile::tempdir().unwrap();
        let results = dir.path().join("state").join("results");
        let result = json!({"completed": 3, "output_throughput": null});
        let path = save_result(results.clone(), ENDED, "tiny", &result).await.unwrap();
        assert_eq!(path, results.join("bench-20261129-171424-tiny.json"));
        let text = std::fs::read_to_string(path).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), result);
        assert!(text.ends_with("}\n"));
    }

    #[test]
    fn the_newest_results_stay() {
        let dir = tempfile::tempdir().unwrap();
        for second in 0..5u64 {
            let stem = stem(Wall(ENDED.0 + second * 1000), "tiny");
            save(dir.path(), &stem, b"{}", 3).unwrap();
        }
        let entries = std::fs::read_dir(dir.path()).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names.len(), 3);
        assert_eq!(names[0], "bench-20261129-171426-tiny.json");
    }
}
