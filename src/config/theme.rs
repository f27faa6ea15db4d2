//! Themes: what each role on the screen looks like, in the 16 ANSI colours.

use super::problem::ConfigProblem;
use super::read::{Reader, Section};
use super::words::Wrong;

/// Name of the theme that is used when none is named.
pub const DEFAULT: &str = "default";

/// The themes that come with the program: name and text.
const BUILTIN: [(&str, &str); 3] = [
    (DEFAULT, include_str!("../../themes/default.toml")),
    ("light", include_str!("../../themes/light.toml")),
    ("high-contrast", include_str!("../../themes/high-contrast.toml")),
];

/// A colour that every terminal has; the terminal's own palette says how it looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Color {
    /// The terminal's own foreground or background.
    #[default]
    Default,
    /// ANSI 0.
    Black,
    /// ANSI 1.
    Red,
    /// ANSI 2.
    Green,
    /// ANSI 3.
    Yellow,
    /// ANSI 4.
    Blue,
    /// ANSI 5.
    Magenta,
    /// ANSI 6.
    Cyan,
    /// ANSI 7.
    White,
    /// ANSI 8.
    BrightBlack,
    /// ANSI 9.
    BrightRed,
    /// ANSI 10.
    BrightGreen,
    /// ANSI 11.
    BrightYellow,
    /// ANSI 12.
    BrightBlue,
    /// ANSI 13.
    BrightMagenta,
    /// ANSI 14.
    BrightCyan,
    /// ANSI 15.
    BrightWhite,
}

/// The words for colours in a theme.
const COLORS: [(&str, Color); 17] = [
    ("default", Color::Default),
    ("black", Color::Black),
    ("red", Color::Red),
    ("green", Color::Green),
    ("yellow", Color::Yellow),
    ("blue", Color::Blue),
    ("magenta", Color::Magenta),
    ("cyan", Color::Cyan),
    ("white", Color::White),
    ("bright-black", Color::BrightBlack),
    ("bright-red", Color::BrightRed),
    ("bright-green", Color::BrightGreen),
    ("bright-yellow", Color::BrightYellow),
    ("bright-blue", Color::BrightBlue),
    ("bright-magenta", Color::BrightMagenta),
    ("bright-cyan", Color::BrightCyan),
    ("bright-white", Color::BrightWhite),
];

/// How a role looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Style {
    /// Foreground.
    pub fg: Color,
    /// Background.
    pub bg: Color,
    /// Bold.
    pub bold: bool,
    /// Dim.
    pub dim: bool,
    /// Underlined.
    pub underline: bool,
    /// Foreground and background exchanged.
    pub reverse: bool,
}

/// Makes the struct, the list of names and the ways over all roles from one list.
macro_rules! roles {
    ($($(#[$doc:meta])* $role:ident,)+) => {
        /// What each role looks like.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct Theme {
            $($(#[$doc])* pub $role: Style,)+
        }

        /// Names of all roles, as a theme's file writes them.
        pub const ROLES: &[&str] = &[$(stringify!($role)),+];

        impl Theme {
            fn of(mut style: impl FnMut(&'static str) -> Style) -> Self {
                Self { $($role: style(stringify!($role)),)+ }
            }

            /// Every role's name and look.
            #[must_use]
            pub fn roles(&self) -> Vec<(&'static str, Style)> {
                vec![$((stringify!($role), self.$role)),+]
            }
        }
    };
}

roles! {
    /// Values and plain text.
    text,
    /// What matters less: units, reasons, ages.
    dim,
    /// Names of values.
    label,
    /// Titles of panes.
    title,
    /// Borders.
    border,
    /// Border and title of the focused pane.
    focus,
    /// Well: ready, alive, done.
    good,
    /// Worth a look.
    warn,
    /// Failed, dead, refused.
    bad,
    /// Under way: connecting, loading, running.
    busy,
    /// A reading that is too old to trust.
    stale,
    /// Filled part of a bar.
    bar,
    /// Prompt tokens in a chart.
    chart_prompt,
    /// Generated tokens in a chart.
    chart_generation,
    /// The selected line.
    selected,
    /// A key to press.
    key,
}

impl Theme {
    /// The same without colours; weight, underline and reverse stay.
    #[must_use]
    pub fn no_color(&self) -> Self {
        let roles = self.roles();
        let style = |name| roles.iter().find(|(role, _)| *role == name).map(|(_, style)| *style);
        Self::of(|name| Style {
            fg: Color::Default,
            bg: Color::Default,
            ..style(name).unwrap_or_default()
        })
    }
}

/// A theme that comes with the program.
#[must_use]
pub fn builtin(name: &str) -> Option<Theme> {
    let (name, text) = BUILTIN.iter().find(|(known, _)| *known == name)?;
    parse_theme(text, name).ok()
}

/// Which theme is wanted: a flag wins over a variable, a variable over the file. An empty variable counts as unset.
#[must_use]
pub fn chosen<'a>(flag: Option<&'a str>, variable: Option<&'a str>, file: &'a str) -> &'a str {
    flag.or(variable.filter(|name| !name.is_empty())).unwrap_or(file)
}

/// Names of the themes that come with the program.
#[must_use]
pub fn names() -> Vec<&'static str> {
    BUILTIN.iter().map(|(name, _)| *name).collect()
}

/// Reads a theme: one line a role, such as `good = { fg = "green", bold = true }`.
///
/// # Errors
///
/// Everything that is wrong, in the order of the file. Every role must be there.
pub fn parse_theme(text: &str, file: &str) -> Result<Theme, Vec<ConfigProblem>> {
    let mut r = Reader::new(file, text);
    let document = r.document();
    if !r.clean() {
        return Err(r.into_problems());
    }
    let mut root = Section::root(&document);
    let theme = Theme::of(|role| {
        let found = root.has(role).then_some(());
        root.require(&mut r, role, found, &format!("{role} = {{ fg = \"cyan\" }}"));
        let section = root.section(&mut r, role);
        style(&mut r, section)
    });
    root.finish(&mut r);
    if r.clean() { Ok(theme) } else { Err(r.into_problems()) }
}

fn style(r: &mut Reader<'_>, mut s: Section<'_>) -> Style {
    let mut color = |r: &mut Reader<'_>, key| {
        let word = s.text_by(r, key, |t| color_word(t).map(|_| ()));
        word.and_then(|w| color_word(&w.value).ok()).unwrap_or_default()
    };
    let (fg, bg) = (color(r, "fg"), color(r, "bg"));
    let mut flag = |r: &mut Reader<'_>, key| s.flag(r, key).unwrap_or(false);
    let style = Style {
        fg,
        bg,
        bold: flag(r, "bold"),
        dim: flag(r, "dim"),
        underline: flag(r, "underline"),
        reverse: flag(r, "reverse"),
    };
    s.finish(r);
    style
}

fn color_word(text: &str) -> Result<Color, Wrong> {
    let found = COLORS.iter().find(|(word, _)| *word == text);
    found.map(|(_, color)| *color).ok_or_else(|| Wrong {
        what: format!("`{text}` is no colour"),
        fix: format!("write one of: {}", COLORS.map(|(word, _)| word).join(", ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_wins_over_a_variable_and_a_variable_over_the_file() {
        assert_eq!(chosen(None, None, "file"), "file");
        assert_eq!(chosen(None, Some(""), "file"), "file");
        assert_eq!(chosen(None, Some("variable"), "file"), "variable");
        assert_eq!(chosen(Some("flag"), Some("variable"), "file"), "flag");
    }

    #[test]
    fn every_theme_of_the_program_is_whole() {
        for (name, text) in BUILTIN {
            let theme = parse_theme(text, name).unwrap_or_else(|p| panic!("{name}: {p:?}"));
            assert_eq!(builtin(name), Some(theme));
            let (good, bad) = (theme.no_color().good, theme.no_color().bad);
            assert!(good != bad, "{name}: without colours, failure looks like success");
        }
        assert_eq!(builtin("nosuch"), None);
    }

    #[test]
    fn the_default_theme_reads_on_dark_and_on_light() {
        let theme = builtin(DEFAULT).unwrap();
        assert_eq!(theme.text, Style::default());
        // These vanish on one of the two backgrounds.
        let vanish = [
            Color::Black,
            Color::White,
            Color::BrightBlack,
            Color::BrightWhite,
            Color::BrightYellow,
            Color::BrightCyan,
            Color::BrightGreen,
        ];
        for (role, style) in theme.roles() {
            assert!(!vanish.contains(&style.fg), "{role}");
            assert_eq!(style.bg, Color::Default, "{role}");
        }
    }

    #[test]
    fn without_colours_the_weight_stays() {
        let bad = Style {
            fg: Color::Red,
            bg: Color::Blue,
            bold: true,
            ..Style::default()
        };
        let theme = Theme {
            bad,
            ..Theme::default()
        };
        let bold = Style {
            bold: true,
            ..Style::default()
        };
        assert_eq!(theme.no_color().bad, bold);
    }

    #[test]
    fn what_is_wrong_in_a_theme_has_its_place() {
        let text = BUILTIN[0].1.replace("good =", "godo =") + "bad_ = 1\n";
        let said: Vec<String> = parse_theme(&text, "t.toml")
            .unwrap_err()
            .iter()
            .map(ToString::to_string)
            .collect();
        let line = text.lines().position(|l| l.starts_with("godo")).unwrap() + 1;
        let last = text.lines().count();
        let expected = [
            "t.toml:1:1: `good` is missing at the top; write good = { fg = \"cyan\" }".to_owned(),
            format!("t.toml:{line}:1: unknown key `godo` at the top; did you mean `good`?"),
            format!("t.toml:{last}:1: unknown key `bad_` at the top; did you mean `bad`?"),
        ];
        assert_eq!(said, expected);
        let text = BUILTIN[0].1.replace("\"green\"", "\"lime\"");
        let said = parse_theme(&text, "t.toml").unwrap_err();
        assert!(
            said[0]
                .to_string()
                .contains("fg: `lime` is no colour; write one of: default, black"),
            "{}",
            said[0]
        );
    }
}
