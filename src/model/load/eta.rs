//! How much longer a load takes: from earlier loads of the same model, else from its own rate.

use std::time::Duration;

use serde::Serialize;

use crate::domain::load::{EarlierLoad, Stage};

/// Share of the longest time that a stage took in earlier loads by which it may take longer before its end is not known any more: no two loads take the
/// same time to the second.
const OVER_SHARE: f64 = 0.2;

/// The same at least: of a stage of some seconds the share is less than its lines are late.
const OVER_LEAST: Duration = Duration::from_secs(5);

/// How many times as long as an earlier load this one may take, or the other way round, and still count as one that goes like it. The same model loads many
/// times as fast from the page cache as from a network, and compiles or finds what was compiled before.
const ALIKE: f64 = 2.0;

/// Share of a bar that is done before its rate says anything: the first shard is often the slowest.
const TELLING: f64 = 0.1;

/// What a time left is known from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// So many earlier loads of the same model and parameters on this cluster that went as this one goes.
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
#[derive(Debug, Clone, PartialEq)]
pub struct Now {
    /// The stages that are over, with how long each took; those of which that is not known are left out.
    pub over: Vec<(Stage, Duration)>,
    /// The stage.
    pub stage: Stage,
    /// How long it has gone on, where that is known.
    pub took: Option<Duration>,
    /// Share of it that is done, where a bar tells.
    pub share: Option<f64>,
    /// Time left of it at its own rate, where that is known.
    pub rate: Option<Duration>,
}

/// Time left, or why there is none. Earlier loads tell it that went as this one goes, over all its stages; where none did, its own rate tells what is left
/// of its stage.
///
/// # Errors
/// Why it is not known, as a fragment.
pub fn eta(now: &Now, earlier: &[EarlierLoad]) -> Result<Eta, &'static str> {
    let known = now.share.is_some() || now.took.is_some();
    let mut lefts: Vec<Duration> = earlier
        .iter()
        .filter(|load| known && !overdue(now, load) && alike(now, load))
        .map(|load| rest(now, load))
        .collect();
    lefts.sort();
    if let Some(left) = median(&lefts) {
        let basis = Basis::EarlierLoads(lefts.len());
        return Ok(Eta { left, basis });
    }
    let rate = now.rate.map(|left| Eta {
        left,
        basis: Basis::Rate(now.stage),
    });
    rate.ok_or(match earlier {
        [] => "no earlier load of this model is known, and no rate yet",
        _ if !known => "when this stage began is not known",
        _ if earlier.iter().all(|load| overdue(now, load)) => "this stage takes longer than in earlier loads",
        _ => "no earlier load went at the pace of this one",
    })
}

/// Whether a stage without a bar takes far longer than it did in an earlier load: it may end in a moment, or not at all, and what followed it then is no
/// answer. Until then it is due, and what followed it is what is left.
fn overdue(now: &Now, load: &EarlierLoad) -> bool {
    let whole = load.took(now.stage);
    let due = whole.saturating_add(whole.mul_f64(OVER_SHARE).max(OVER_LEAST));
    now.share.is_none() && now.took.is_some_and(|took| took > due) && whole > Duration::ZERO
}

/// Whether an earlier load went as this one goes: in the stages that are over for both, and by the rate of this stage's bar.
fn alike(now: &Now, load: &EarlierLoad) -> bool {
    let both = now.over.iter().map(|(stage, took)| (*took, load.took(*stage)));
    let both = both.filter(|(_, then)| *then > Duration::ZERO);
    let (took, then) = both.fold((Duration::ZERO, Duration::ZERO), |sum, (took, then)| {
        (sum.0.saturating_add(took), sum.1.saturating_add(then))
    });
    let telling = now.share.filter(|share| *share >= TELLING);
    let by_rate = telling
        .zip(now.rate)
        .is_none_or(|(share, left)| near(left, here(share, load.took(now.stage))));
    near(took, then) && by_rate
}

/// Whether two times are the same but for what two loads differ by as a rule.
fn near(one: Duration, other: Duration) -> bool {
    let (short, long) = (one.min(other), one.max(other));
    long - short <= OVER_LEAST || long <= short.mul_f64(ALIKE)
}

/// What was left of a stage that took so long when this share of it was done.
fn here(share: f64, whole: Duration) -> Duration {
    whole.mul_f64((1.0 - share).clamp(0.0, 1.0))
}

/// What was left in an earlier load when it had come as far.
fn rest(now: &Now, load: &EarlierLoad) -> Duration {
    let after: Duration = load
        .stages
        .iter()
        .filter(|(stage, _)| *stage > now.stage)
        .map(|(_, took)| *took)
        .sum();
    let whole = load.took(now.stage);
    let left = match now.share {
        Some(share) => here(share, whole),
        None => whole.saturating_sub(now.took.unwrap_or_default()),
    };
    after.saturating_add(left)
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
            over: Vec::new(),
            stage,
            took: Some(Duration::from_secs(took)),
            share,
            rate: rate.map(Duration::from_secs),
        }
    }

    #[test]
    fn earlier_loads_say_what_is_left_of_this_stage_and_of_those_after_it() {
        let earlier = [load(300, 60, 20), load(340, 80, 20), load(480, 60, 20)];
        // A quarter is left of the weights: 75 + 80, 85 + 100, 120 + 80.
        let eta = eta(&now(Stage::Weights, 210, Some(0.75), Some(70)), &earlier).unwrap();
        assert_eq!(eta.left, Duration::from_secs(185));
        assert_eq!(eta.text(), "about 3 min left, from 3 earlier loads");
    }

    #[test]
    fn without_a_bar_the_time_that_has_passed_is_taken_off() {
        let earlier = [load(300, 60, 20)];
        let left = |took| eta(&now(Stage::Compile, took, None, None), &earlier);
        assert_eq!(left(15).unwrap().text(), "about 1 min left, from 1 earlier load");
        assert_eq!(left(15).unwrap().left, Duration::from_secs(65));
        // A stage that earlier loads did not have.
        let download = eta(&now(Stage::Download, 500, None, None), &earlier).unwrap();
        assert_eq!(download.left, Duration::from_secs(380));
    }

    #[test]
    fn a_stage_that_is_over_its_earlier_time_is_due_for_a_share_of_it() {
        let earlier = [load(300, 60, 20)];
        let left = |stage, took| eta(&now(stage, took, None, None), &earlier).map(|eta| eta.text());
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
    fn only_earlier_loads_that_went_as_this_one_goes_say_what_is_left() {
        // From the page cache, from the disk twice, and over a network.
        let earlier = [
            load(10, 60, 20),
            load(300, 60, 20),
            load(320, 60, 20),
            load(2000, 60, 20),
        ];
        let left = |now: Now| eta(&now, &earlier).map(|eta| (eta.left.as_secs(), eta.basis));
        let at = |took, rate| left(now(Stage::Weights, took, Some(0.5), Some(rate)));
        // Half of the weights is left: 150 + 80 and 160 + 80; 5 + 80; 1000 + 80.
        assert_eq!(at(150, 150), Ok((235, Basis::EarlierLoads(2))));
        assert_eq!(at(5, 5), Ok((85, Basis::EarlierLoads(1))));
        assert_eq!(at(900, 900), Ok((1080, Basis::EarlierLoads(1))));
        // At a pace that none of them had, what comes after the weights is not told either.
        assert_eq!(at(30, 30), Ok((30, Basis::Rate(Stage::Weights))));
        // The first shard says nothing of the rest.
        let first = left(now(Stage::Weights, 1, Some(0.05), Some(19)));
        assert_eq!(first.map(|(_, basis)| basis), Ok(Basis::EarlierLoads(4)));
    }

    #[test]
    fn the_stages_that_are_over_tell_which_earlier_loads_are_like_this_one() {
        let earlier = [load(10, 2, 20), load(12, 2, 20), load(300, 60, 40)];
        let left = |weights: u64, took| {
            let over = vec![(Stage::Weights, Duration::from_secs(weights))];
            let now = Now {
                over,
                ..now(Stage::Compile, took, None, None)
            };
            eta(&now, &earlier).map(|eta| (eta.left.as_secs(), eta.basis))
        };
        assert_eq!(left(290, 10), Ok((90, Basis::EarlierLoads(1))));
        assert_eq!(left(11, 1), Ok((21, Basis::EarlierLoads(2))));
        assert_eq!(left(80, 1), Err("no earlier load went at the pace of this one"));
        // What was compiled before is not there any more: no load that was as fast says how long that takes.
        assert_eq!(left(11, 30), Err("no earlier load went at the pace of this one"));
        assert_eq!(left(290, 100), Err("this stage takes longer than in earlier loads"));
    }

    #[test]
    fn without_earlier_loads_there_is_the_rate_of_the_stage_or_nothing() {
        let rate = eta(&now(Stage::Weights, 100, Some(0.75), Some(33)), &[]).unwrap();
        assert_eq!(rate.text(), "about 35 s left of weights, from the current rate");
        let none = eta(&now(Stage::Compile, 100, None, None), &[]);
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
