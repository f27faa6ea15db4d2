//! One reading over the last minutes: whether it moves, and how fast.

use std::collections::VecDeque;
use std::time::Duration;

use serde::Serialize;

use crate::domain::Stamp;
use crate::domain::time::human;

use super::{RATE_WINDOW, WINDOW};

/// Points kept of one reading: two minutes and a half at the pace of memory, the one that comes most often.
const POINTS: usize = 75;

/// Part of a step by which a reading must have grown before it is said to rise: what else a host does is less.
const PART: f64 = 3.0;

/// Part of a step by which a reading that rises may fall from one look to the next.
const DIPS: f64 = 32.0;

/// Time below which what an amount does is told as what it did: a rate of two looks a second apart says more than anybody knows.
const RATE_LEAST: Duration = Duration::from_secs(5);

/// Bytes in a GiB.
const GIB: f64 = 1_073_741_824.0;

/// A reading over the last minutes.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(super) struct Trend {
    /// The points, the oldest first.
    pub(super) points: VecDeque<(Stamp, f64)>,
    /// When it was seen to move last.
    pub(super) moved_at: Option<Stamp>,
}

impl Trend {
    /// Adds a point; says whether it has grown by `step` since the lowest point of the window, or since it was seen to move last.
    pub(super) fn grows(&mut self, at: Stamp, value: f64, step: f64) -> bool {
        self.grows_beyond(at, value, step, f64::NEG_INFINITY)
    }

    /// The same of what counts only beyond `most`.
    pub(super) fn grows_beyond(&mut self, at: Stamp, value: f64, step: f64, most: f64) -> bool {
        let lowest = self.window(at).fold(value, f64::min);
        self.push(at, value);
        let moved = value - lowest >= step && value > most;
        if moved {
            self.moved_at = Some(at);
        }
        moved
    }

    /// Adds a point; says whether it differs by `step` from one in the window.
    pub(super) fn changes(&mut self, at: Stamp, value: f64, step: f64) -> bool {
        let far = self.window(at).any(|v| (v - value).abs() >= step);
        self.push(at, value);
        far
    }

    /// Values since the window began, or since the last movement; at least the one before.
    fn window(&self, now: Stamp) -> impl Iterator<Item = f64> + '_ {
        let moved = self.moved_at.unwrap_or_default();
        let last = self.points.back().map(|p| p.1);
        let inside = move |p: &&(Stamp, f64)| now.since(p.0) <= WINDOW && p.0 >= moved;
        self.points.iter().filter(inside).map(|p| p.1).chain(last)
    }

    /// The lowest value of the window.
    pub(super) fn lowest(&self, now: Stamp) -> Option<f64> {
        let inside = self.points.iter().filter(|p| now.since(p.0) <= WINDOW);
        inside.map(|p| p.1).reduce(f64::min)
    }

    fn push(&mut self, at: Stamp, value: f64) {
        if self.points.len() == POINTS {
            self.points.pop_front();
        }
        self.points.push_back((at, value));
    }

    /// Whether it rises at a rate of `step` a minute: by a part of that already, and without a dip, for what goes up and down does not rise.
    pub(super) fn rises(&self, now: Stamp, step: f64) -> bool {
        let inside: Vec<f64> = self
            .points
            .iter()
            .filter(|p| now.since(p.0) <= WINDOW)
            .map(|p| p.1)
            .collect();
        let grown = inside
            .last()
            .zip(inside.first())
            .map_or(0.0, |(last, first)| last - first);
        let mut steps = inside.iter().zip(inside.iter().skip(1));
        grown >= step / PART && steps.all(|(before, after)| before - after <= step / DIPS)
    }

    /// Growth a minute over a window; `None` where one point alone is known.
    pub(super) fn slope(&self, now: Stamp, window: Duration) -> Option<f64> {
        self.growth(now, window, None).map(|(grown, minutes)| grown / minutes)
    }

    /// Growth over a window, at least since the point before, and the minutes that it took; nothing from before `began` is looked at. `None` where one
    /// point alone is known.
    fn growth(&self, now: Stamp, window: Duration, began: Option<Stamp>) -> Option<(f64, f64)> {
        let of_this = |p: &&(Stamp, f64)| began.is_none_or(|began| p.0 >= began);
        let (last_at, last) = *self.points.back().filter(of_this)?;
        let old = |p: &&(Stamp, f64)| now.since(p.0) <= window && p.0 < last_at && of_this(p);
        let before = self.points.iter().rev().nth(1).filter(of_this);
        let (first_at, first) = *self.points.iter().find(old).or(before)?;
        let minutes = last_at.since(first_at).as_secs_f64() / 60.0;
        (minutes > 0.0).then_some((last - first, minutes))
    }

    /// Whether it grows now, at a rate that would count as movement, and by more than chance.
    pub(super) fn grows_now(&self, now: Stamp, step: f64, began: Option<Stamp>) -> bool {
        let growth = self.growth(now, RATE_WINDOW, began);
        growth.is_some_and(|(grown, minutes)| grown / minutes >= step && grown >= step / PART)
    }

    /// What an amount does, as a fragment: what it does now, else what it did in the last minute, for that is what counts as movement. What was before
    /// `began` is another load's. `young` says that it is not looked at for as long as movement takes to be one: what grows by then is no movement.
    pub(super) fn text(&self, now: Stamp, step: f64, began: Option<Stamp>, young: bool) -> String {
        let Some((grown, minutes)) = self.growth(now, RATE_WINDOW, began) else {
            let read = self
                .points
                .back()
                .is_some_and(|p| began.is_none_or(|began| p.0 >= began));
            let how = if read { "read once" } else { "not read" };
            return format!("was {how} since the load began");
        };
        // Over some seconds an amount that goes up and down looks like a rate: it has to be more than that as well.
        let rate = grown / minutes;
        if rate.abs() >= step && grown.abs() >= step / PART {
            let moves = self.moved_at.is_some_and(|at| now.since(at) <= WINDOW);
            if rate > 0.0 && !moves && !young {
                return "has hardly grown".to_owned();
            }
            let (does, did) = if rate > 0.0 {
                ("grows", "grew")
            } else {
                ("falls", "fell")
            };
            let took = Duration::from_secs_f64(minutes * 60.0);
            return if took < RATE_LEAST {
                format!("{did} by {:.1} GiB in {}", grown.abs() / GIB, human(took))
            } else {
                format!("{does} {:.1} GiB/min", rate.abs() / GIB)
            };
        }
        match self.growth(now, WINDOW, began) {
            Some((grown, _)) if grown >= step => {
                let cut = began.is_some_and(|began| now.since(began) < WINDOW);
                let over = if cut {
                    "since the load began"
                } else {
                    "in the last minute"
                };
                format!("has grown {:.1} GiB {over}", grown / GIB)
            }
            Some(_) | None => "does not grow".to_owned(),
        }
    }
}
