//! Progress bars, as tqdm draws them, with their counts.

use crate::domain::load::{LineFact, Stage};

/// Ends of the names of weight files on a hub.
const WEIGHT_FILES: [&str; 4] = [".safetensors", ".bin", ".gguf", ".pt"];

/// What a bar says: `DESCRIPTION:  55% Completed | 90/163 [00:22<00:13,  5.23it/s]` or `DESCRIPTION:  46%|████▌     | 16/35 [00:02<…`. Where states are
/// glued together the last one counts. A bar of a stage that is not known says nothing.
pub(super) fn read(text: &str) -> Option<LineFact> {
    let (before, after) = text.rsplit_once('%')?;
    let after = after.strip_prefix(" Completed").unwrap_or(after).trim_start();
    if !after.starts_with('|') {
        return None;
    }
    let description = before.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end();
    let description = description.rsplit(']').next()?.trim_matches([':', ' ']);
    let stage = stage(description)?;
    match counts(after).filter(|_| !by_file(description)) {
        Some((done, total)) => Some(LineFact::Bar { stage, done, total }),
        None => Some(LineFact::Stage(stage)),
    }
}

/// `| 90/163 [` or `|████▌     | 16/35 [`: both numbers. A count of bytes has none.
fn counts(after: &str) -> Option<(u64, u64)> {
    let bar = after.split('[').next()?;
    let (done, total) = bar.rsplit('|').next()?.trim().split_once('/')?;
    let (done, total) = (done.parse().ok()?, total.parse().ok()?);
    (total > 0 && done <= total).then_some((done, total))
}

/// Whether the bar is one file's: many of them run beside each other, so none tells how far the download is.
fn by_file(description: &str) -> bool {
    WEIGHT_FILES.iter().any(|end| description.ends_with(end))
}

fn stage(description: &str) -> Option<Stage> {
    if by_file(description)
        || ["Fetching ", "Downloading ", "Reconstructing "]
            .iter()
            .any(|b| description.starts_with(b))
    {
        return Some(Stage::Download);
    }
    if ["Capturing CUDA graph", "Capturing cudagraph", "Capturing batches"]
        .iter()
        .any(|b| description.starts_with(b))
    {
        return Some(Stage::Graphs);
    }
    let lower = description.to_lowercase();
    let weights = ["shards", "weights", "fastsafetensor", "model streamer"]
        .iter()
        .any(|w| lower.contains(w));
    (lower.contains("loading") && weights).then_some(Stage::Weights)
}
