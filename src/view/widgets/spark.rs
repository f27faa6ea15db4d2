//! A short history of one number as a line of small columns.

use std::time::Duration;

use crate::domain::Stamp;
use crate::domain::time::millis;
use crate::model::series::Series;

/// Columns by eighths; nothing known is a blank.
const EIGHTHS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The last `span` before `now` in `width` cells, the newest at the right. A cell is the mean of its points; a cell without a point is blank.
/// Cells stand at whole multiples of their time, so that a column does not change its height as it moves.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of 0 to 1 times seven"
)]
pub(in crate::view) fn spark(series: &Series, now: Stamp, span: Duration, width: u16, top: f64) -> String {
    let cells = usize::from(width);
    if cells == 0 {
        return String::new();
    }
    let step = (millis(span) / u64::from(width)).max(1000);
    let newest = now.0 / step;
    let mut sums = vec![(0.0, 0u32); cells];
    for (at, value) in series.points().filter(|p| p.1.is_finite()) {
        let back = usize::try_from(newest.saturating_sub(at.0 / step)).unwrap_or(usize::MAX);
        if let Some(cell) = cells.checked_sub(back + 1).and_then(|i| sums.get_mut(i)) {
            cell.0 += value;
            cell.1 += 1;
        }
    }
    let column = |(sum, n): &(f64, u32)| match n {
        0 => ' ',
        n => {
            let share = if top > 0.0 {
                (sum / f64::from(*n) / top).clamp(0.0, 1.0)
            } else {
                0.0
            };
            EIGHTHS.get((share * 7.0).round() as usize).copied().unwrap_or('█')
        }
    };
    sums.iter().map(column).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(points: &[(u64, f64)]) -> Series {
        let mut s = Series::default();
        for (at, v) in points {
            s.push(Stamp(*at), *v);
        }
        s
    }

    #[test]
    fn the_newest_point_stands_at_the_right_and_gaps_are_blank() {
        let s = series(&[(1000, 0.0), (3000, 7.0), (4000, 3.5)]);
        assert_eq!(spark(&s, Stamp(4500), Duration::from_secs(5), 5, 7.0), " ▁ █▅");
    }

    #[test]
    fn old_points_and_odd_numbers_fall_out() {
        let s = series(&[(0, 7.0), (9000, f64::NAN), (10_000, 7.0)]);
        assert_eq!(spark(&s, Stamp(10_000), Duration::from_secs(3), 3, 7.0), "  █");
        assert_eq!(spark(&s, Stamp(10_000), Duration::from_secs(3), 0, 7.0), "");
        assert_eq!(spark(&s, Stamp(10_000), Duration::from_secs(3), 3, 0.0), "  ▁");
    }
}
