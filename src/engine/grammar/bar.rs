//! Progress bars, as tqdm draws them, with their counts.

use crate::domain::load::{LineFact, Stage};
use crate::domain::units::Bytes;

use super::record::message;

/// Ends of the names of weight files on a hub.
const WEIGHT_FILES: [&str; 4] = [".safetensors", ".bin", ".gguf", ".pt"];

/// Longest name of a file that is kept, in characters.
const NAME: usize = 96;

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
    let stage = if description.is_empty() {
        // Without a name it is known by the record that is glued to it.
        super::stage(message(after.split_once(']')?.1))?
    } else {
        stage(description)?
    };
    if let Some((done, total)) = bytes(after).filter(|_| stage == Stage::Download) {
        let file = by_file(description).then(|| description.chars().take(NAME).collect());
        return Some(LineFact::Download { file, done, total });
    }
    match counts(after).filter(|_| !by_file(description)) {
        Some((done, total)) => Some(LineFact::Bar { stage, done, total }),
        None => Some(LineFact::Stage(stage)),
    }
}

/// `| 90/163 [` or `|████▌     | 16/35 [`: both numbers. A count of bytes has none.
fn counts(after: &str) -> Option<(u64, u64)> {
    let (done, total) = parts(after)?;
    let (done, total) = (done.parse().ok()?, total.parse().ok()?);
    (total > 0 && done <= total).then_some((done, total))
}

/// `| 4.93G/4.93G [` or `|  0.00B / 51.6GB`: both amounts. The hub counts in thousands.
fn bytes(after: &str) -> Option<(Bytes, Bytes)> {
    let (done, total) = parts(after)?;
    let (done, total) = (amount(done)?, amount(total)?);
    (total.0 > 0).then_some((Bytes(done.0.min(total.0)), total))
}

fn parts(after: &str) -> Option<(&str, &str)> {
    let bar = after.split('[').next()?;
    let (done, total) = bar.rsplit('|').next()?.split_once('/')?;
    // A rate may follow without a bracket.
    let total = total.split(',').next()?;
    Some((done.trim(), total.trim()))
}

/// `4.93G`, `51.6GB`, `0.00B`, `512k`. A bare number is no amount: that is a count of something else.
fn amount(text: &str) -> Option<Bytes> {
    let unit = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at_checked(unit)?;
    let thousands = match unit.trim_end_matches('B') {
        "" => 0,
        "k" | "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        _ => return None,
    };
    let number: f64 = number
        .trim()
        .parse()
        .ok()
        .filter(|n: &f64| n.is_finite() && *n >= 0.0)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative; the cast keeps within the type"
    )]
    Some(Bytes((number * 1000f64.powi(thousands)) as u64))
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
