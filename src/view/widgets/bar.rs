//! A horizontal bar in eighths of a cell.

/// Fillings of one cell, by eighths.
const EIGHTHS: [char; 9] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

/// A bar of `width` cells, ends included, filled to `share` (0 to 1; others are clamped, NaN is empty).
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to 0..=1 and a screen's width before"
)]
pub(in crate::view) fn bar(share: f64, width: u16) -> String {
    let cells = usize::from(width.saturating_sub(2));
    let share = if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) };
    let total = u32::try_from(cells * 8).unwrap_or(u32::MAX);
    let mut eighths = (share * f64::from(total)).round() as usize;
    // A bar that is full although something is missing, or empty although something is there, would say what is not so.
    if share < 1.0 && total > 0 && eighths == cells * 8 {
        eighths -= 1;
    }
    if share > 0.0 && total > 0 && eighths == 0 {
        eighths = 1;
    }
    let mut text = String::from("▕");
    for i in 0..cells {
        let fill = eighths.saturating_sub(i * 8).min(8);
        text.push(EIGHTHS.get(fill).copied().unwrap_or(' '));
    }
    text.push('▏');
    text
}

#[cfg(test)]
mod tests {
    use super::bar;

    #[test]
    fn a_bar_fills_by_eighths() {
        let cases = [
            (0.0, 6, "▕    ▏"),
            (0.5, 6, "▕██  ▏"),
            (0.53125, 6, "▕██▏ ▏"),
            (1.0, 6, "▕████▏"),
            (7.0, 6, "▕████▏"),
            (-1.0, 6, "▕    ▏"),
            (f64::NAN, 6, "▕    ▏"),
            (0.5, 0, "▕▏"),
        ];
        for (share, width, text) in cases {
            assert_eq!(bar(share, width), text, "{share} {width}");
        }
    }

    #[test]
    fn only_all_is_full_and_only_nothing_is_empty() {
        assert_eq!(bar(0.9999, 6), "▕███▉▏");
        assert_eq!(bar(0.0001, 6), "▕▏   ▏");
    }
}
