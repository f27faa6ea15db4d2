//! How much longer a load takes: from earlier loads of the same model, else from its own rate.

use std::time::Duration;

use serde::Serialize;

use crate::domain::load::{EarlierLoad, Stage};

/// Share of the longest time that a stage took in earlier loads by which it may take longer before its end is not known any more: no two loads take the
/// same time to the second.
const OVER_SHARE: f64 = 0.2;

/// The same at least: of a stage of some seconds the share is less than its lines are late.
const OVER_LEAST: Duration = Duration::from_secs(5);

/// What a time left is known from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// So many earlier loads of the same model and parameters on this cluster.
    EarlierLoads(usize),
    /// The rate of this load's shards or bytes: it says nothing of the stages that come after.
    Rate(Stage),
}

/// Time left, and what it is known from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Eta {
    /// Time left.
    pub left: Duration,
    /// From what.
    pub basis: Basis,
}

impl Eta {
    /// `about 3 min left, from 2 earlier loads`.
    #[must_use]
    pub fn text(&self) -> String {
        let left = about(self.left);
        match self.basis {
            Basis::EarlierLoads(1) => format!("{left} left, from 1 earlier load"),
            Basis::EarlierLoads(n) => format!("{left} left, from {n} earlier loads"),
            Basis::Rate(stage) => format!("{left} left of {}, from the current rate", stage.word()),
        }
    }
}

/// A time as rough as it is known: `about 40 s`, `about 3 min`, `about 1 h 20 min`.
#[must_use]
pub fn about(d: Duration) -> String {
    let s = d.as_secs_f64();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "seconds of a duration, rounded"
    )]
    let rounded = |unit: f64| (s / unit).round() as u64;
    match rounded(1.0) {
        0..5 => "a moment".to_owned(),
        5..55 => format!("about {} s", (rounded(5.0) * 5).max(5)),
        55..3570 => format!("about {} min", rounded(60.0).max(1)),
        _ => {
            let minutes = rounded(600.0) * 10;
            format!("about {} h {:02} min", minutes / 60, minutes % 60)
        }
    }
}

/// How far a stage is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Now {
    /// The stage.
    pub stage: Stage,
    /// How long it has gone on, where that is known.
    pub took: Option<Duration>,
    /// Share of it that is done, where a bar tells.
    pub share: Option<f64>,
    /// Time left of it at its own rate, where that is known.
    pub rate: Option<Duration>,
}

/// Time left, or why there is none.
///
/// # Errors
/// Why it is not known, as a fragment.
pub fn eta(now: Now, earlier: &[EarlierLoad]) -> Result<Eta, &'static str> {
    if !earlier.is_empty() {
        return from_earlier(now, earlier);
    }
    let left = now
        .rate
        .ok_or("no earlier load of this model is known, and no rate yet")?;
    let basis = Basis::Rate(now.stage);
    Ok(Eta { left, basis })
}

fn from_earlier(now: Now, earlier: &[EarlierLoad]) -> Result<Eta, &'static str> {
    if now.share.is_none() && now.took.is_none() {
        return Err("when this stage began is not known");
    }
    let mut lefts: Vec<Duration> = earlier.iter().map(|load| rest(now, load)).collect();
    lefts.sort();
    let left = median(&lefts).unwrap_or_default();
    let longest = earlier
        .iter()
        .map(|load| load.took(now.stage))
        .max()
        .unwrap_or_default();
    // A stage that takes far longer than it ever did may end in a moment, or not at all: what follows it is no answer. Until then it is due, and what
    // follows it is what is left.
    let due = longest.saturating_add(longest.mul_f64(OVER_SHARE).max(OVER_LEAST));
    if now.share.is_none() && now.took.is_some_and(|took| took > due) && longest > Duration::ZERO {
        return Err("this stage takes longer than in earlier loads");
    }
    let basis = Basis::EarlierLoads(earlier.len());
    Ok(Eta { left, basis })
}

/// What was left in an earlier load when it had come as far.
fn rest(now: Now, load: &EarlierLoad) -> Duration {
    let after: Duration = load
        .stages
        .iter()
        .filter(|(stage, _)| *stage > now.stage)
        .map(|(_, took)| *took)
        .sum();
    let whole = load.took(now.stage);
    let here = match now.share {
        Some(share) => whole.mul_f64((1.0 - share).clamp(0.0, 1.0)),
        None => whole.saturating_sub(now.took.unwrap_or_default()),
    };
    after.saturating_add(here)
}

fn median(sorted: &[Duration]) -> Option<Duration> {
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = *sorted.get((sorted.len() / 2).checked_sub(1)?)?;
    Some((lower + upper) / 2)
}

#[cfg(test)]
mod tests {
    use crate::domain::Wall;

    use super::*;

    fn load(weights: u64, compile: u64, warm: u64) -> EarlierLoad {
        let s = Duration::from_secs;
        EarlierLoad {
            key: "k".into(),
            model: "m".into(),
            ended: Wall(0),
            stages: vec![
                (Stage::Starting, s(20)),
                (Stage::Weights, s(weights)),
                (Stage::Compile, s(compile)),
                (Stage::Warmup, s(warm)),
            ],
        }
    }

    fn now(stage: Stage, took: u64, share: Option<f64>, rate: Option<u64>) -> Now {
        Now {
            stage,
            took: Some(Duration::from_secs(took)),
            share,
            rate: rate.map(Duration::from_secs),
        }
    }

    #[test]
    fn earlier_loads_say_what_is_left_of_this_stage_and_of_those_after_it() {
        let earlier = [load(300, 60, 20), load(340, 80, 20), load(900, 60, 20)];
        // A quarter is left of the weights: 75 + 80, 85 + 100, 225 + 80.
        let eta = eta(now(Stage::Weights, 100, Some(0.75), Some(33)), &earlier).unwrap();
        assert_eq!(eta.left, Duration::from_secs(185));
        assert_eq!(eta.text(), "about 3 min left, from 3 earlier loads");
    }

    #[test]
    fn without_a_bar_the_time_that_has_passed_is_taken_off() {
        let earlier = [load(300, 60, 20)];
        let left = |took| eta(now(Stage::Compile, took, None, None), &earlier);
        assert_eq!(left(15).unwrap().text(), "about 1 min left, from 1 earlier load");
        assert_eq!(left(15).unwrap().left, Duration::from_secs(65));
        // A stage that earlier loads did not have.
        let download = eta(now(Stage::Download, 500, None, None), &earlier).unwrap();
        assert_eq!(download.left, Duration::from_secs(380));
    }

    #[test]
    fn a_stage_that_is_over_its_earlier_time_is_due_for_a_share_of_it() {
        let earlier = [load(300, 60, 20)];
        let left = |stage, took| eta(now(stage, took, None, None), &earlier).map(|eta| eta.text());
        let after = Ok("about 20 s left, from 1 earlier load".to_owned());
        for took in [60, 61, 72] {
            assert_eq!(left(Stage::Compile, took), after, "{took}");
        }
        let longer = Err("this stage takes longer than in earlier loads");
        assert_eq!(left(Stage::Compile, 73), longer);
        // Nothing comes after the last one; it is short, and has some seconds all the same.
        let moment = Ok("a moment left, from 1 earlier load".to_owned());
        assert_eq!(left(Stage::Warmup, 25), moment);
        assert_eq!(left(Stage::Warmup, 26), longer);
    }

    #[test]
    fn without_earlier_loads_there_is_the_rate_of_the_stage_or_nothing() {
        let rate = eta(now(Stage::Weights, 100, Some(0.75), Some(33)), &[]).unwrap();
        assert_eq!(rate.text(), "about 35 s left of weights, from the current rate");
        let none = eta(now(Stage::Compile, 100, None, None), &[]);
        assert_eq!(none, Err("no earlier load of this model is known, and no rate yet"));
    }

    #[test]
    fn times_are_told_as_roughly_as_they_are_known() {
        for (seconds, text) in [
            (0, "a moment"),
            (8, "about 10 s"),
            (54, "about 55 s"),
            (58, "about 1 min"),
            (89, "about 1 min"),
            (91, "about 2 min"),
            (3500, "about 58 min"),
            (4900, "about 1 h 20 min"),
        ] {
            assert_eq!(about(Duration::from_secs(seconds)), text, "{seconds}");
        }
    }
}
