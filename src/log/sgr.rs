//! SGR parameters (`ESC [ … m`) to a style of our own.

use super::line::{Color, Style};

/// Applies one SGR sequence. `params` are its parameters, each with its colon-separated parts.
pub fn apply<'a>(style: &mut Style, params: impl IntoIterator<Item = &'a [u16]>) {
    let mut params = params.into_iter();
    while let Some(param) = params.next() {
        let code = param.first().copied().unwrap_or(0);
        match code {
            0 => *style = Style::default(),
            1 => style.bold = true,
            2 => style.dim = true,
            4 => style.underline = param.get(1) != Some(&0),
            22 => {
                style.bold = false;
                style.dim = false;
            }
            24 => style.underline = false,
            30..=37 => style.fg = ansi(code - 30),
            39 => style.fg = None,
            90..=97 => style.fg = ansi(code - 90 + 8),
            38 => style.fg = extended(param, &mut params),
            // A background is not kept, but its parameters must not be read as codes of their own.
            48 | 58 => drop(extended(param, &mut params)),
            _ => {}
        }
    }
}

/// One of the 16 ANSI colours.
fn ansi(n: u16) -> Option<Color> {
    match n {
        1 => Some(Color::Red),
        2 => Some(Color::Green),
        3 => Some(Color::Yellow),
        4 => Some(Color::Blue),
        5 => Some(Color::Magenta),
        6 => Some(Color::Cyan),
        8 => Some(Color::Gray),
        9 => Some(Color::BrightRed),
        10 => Some(Color::BrightGreen),
        11 => Some(Color::BrightYellow),
        12 => Some(Color::BrightBlue),
        13 => Some(Color::BrightMagenta),
        14 => Some(Color::BrightCyan),
        _ => None,
    }
}

/// `38;5;N`, `38;2;R;G;B` and their forms with colons.
fn extended<'a>(param: &[u16], rest: &mut impl Iterator<Item = &'a [u16]>) -> Option<Color> {
    let mut next = || rest.next().and_then(|p| p.first().copied());
    if let Some((_, parts)) = param.split_first().filter(|(_, parts)| !parts.is_empty()) {
        return match *parts {
            [5, n, ..] => indexed(n),
            [2, r, g, b] | [2, _, r, g, b, ..] => nearest(r, g, b),
            _ => None,
        };
    }
    match next()? {
        5 => indexed(next()?),
        2 => nearest(next()?, next()?, next()?),
        _ => None,
    }
}

/// A colour of the 256-colour table.
fn indexed(n: u16) -> Option<Color> {
    /// Levels of the 6x6x6 cube.
    const LEVELS: [u16; 6] = [0, 95, 135, 175, 215, 255];
    let level = |i: u16| LEVELS.get(usize::from(i)).copied().unwrap_or(0);
    match n {
        0..16 => ansi(n),
        16..232 => {
            let n = n - 16;
            nearest(level(n / 36), level(n / 6 % 6), level(n % 6))
        }
        232..256 => {
            let gray = 8 + (n - 232) * 10;
            nearest(gray, gray, gray)
        }
        _ => None,
    }
}

/// The ANSI colour nearest to an RGB value, in the table that xterm uses.
fn nearest(r: u16, g: u16, b: u16) -> Option<Color> {
    const TABLE: [(u16, u16, u16); 16] = [
        (0, 0, 0),
        (205, 0, 0),
        (0, 205, 0),
        (205, 205, 0),
        (0, 0, 238),
        (205, 0, 205),
        (0, 205, 205),
        (229, 229, 229),
        (127, 127, 127),
        (255, 0, 0),
        (0, 255, 0),
        (255, 255, 0),
        (92, 92, 255),
        (255, 0, 255),
        (0, 255, 255),
        (255, 255, 255),
    ];
    let distance = |t: &(u16, u16, u16)| {
        let d = |a: u16, b: u16| u32::from(a.min(255).abs_diff(b)).pow(2);
        d(r, t.0) + d(g, t.1) + d(b, t.2)
    };
    let (n, _) = (0u16..).zip(&TABLE).min_by_key(|(_, t)| distance(t))?;
    ansi(n)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn style(params: &[&[u16]]) -> Style {
        let mut s = Style::default();
        apply(&mut s, params.iter().copied());
        s
    }

    #[test]
    fn colours_of_every_form_come_to_the_sixteen() {
        let cases: [(&[&[u16]], Option<Color>); 12] = [
            (&[&[0], &[36]], Some(Color::Cyan)),
            (&[&[90]], Some(Color::Gray)),
            (&[&[37]], None),
            (&[&[97]], None),
            (&[&[38], &[5], &[9]], Some(Color::BrightRed)),
            (&[&[38], &[5], &[196]], Some(Color::BrightRed)),
            (&[&[38], &[5], &[244]], Some(Color::Gray)),
            (&[&[38], &[2], &[0], &[200], &[10]], Some(Color::Green)),
            (&[&[38, 2, 0, 0, 200, 10]], Some(Color::Green)),
            (&[&[38, 5, 12]], Some(Color::BrightBlue)),
            (&[&[31], &[48], &[5], &[32]], Some(Color::Red)),
            (&[&[31], &[39]], None),
        ];
        for (params, fg) in cases {
            assert_eq!(style(params).fg, fg, "{params:?}");
        }
    }

    #[test]
    fn bold_and_dim_end_together() {
        assert_eq!(style(&[&[1], &[2], &[22]]), Style::default());
        assert!(style(&[&[1]]).bold);
        assert!(style(&[&[2]]).dim);
        assert!(!style(&[&[4], &[4, 0]]).underline);
    }

    #[test]
    fn an_incomplete_colour_is_no_colour() {
        assert_eq!(style(&[&[38], &[5]]), Style::default());
        assert_eq!(style(&[&[38]]), Style::default());
        assert_eq!(style(&[&[38], &[2], &[1]]), Style::default());
    }
}
