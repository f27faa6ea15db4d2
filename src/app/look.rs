//! What the terminal can show, from the environment.

use std::env;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::config::theme::Theme;
use crate::view::{Glyphs, Look};

/// Shortest time between two frames.
const FRAME: Duration = Duration::from_millis(33);

/// Shortest time between two frames when they travel through SSH.
const FRAME_OVER_SSH: Duration = Duration::from_millis(100);

/// The look of this terminal with a theme: NO_COLOR and the locale decide on the rest.
#[must_use]
pub fn look(theme: Theme) -> Look {
    let color = !set("NO_COLOR");
    Look::new(theme, glyphs(|name| env::var(name).ok()), color, utc_offset())
}

/// Shortest time between two frames here.
pub(super) fn frame_time() -> Duration {
    if set("SSH_CONNECTION") { FRAME_OVER_SSH } else { FRAME }
}

fn set(name: &str) -> bool {
    env::var_os(name).is_some_and(|v| !v.is_empty())
}

/// The characters that locale and terminal promise.
fn glyphs(variable: impl Fn(&str) -> Option<String>) -> Glyphs {
    // The kernel's own console has few characters beside Latin.
    let poor = variable("TERM").is_none_or(|term| term == "linux" || term == "dumb");
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .filter_map(|n| variable(n))
        .find(|v| !v.is_empty());
    let utf8 = locale.is_some_and(|l| {
        let l = l.to_ascii_lowercase();
        l.contains("utf-8") || l.contains("utf8")
    });
    if utf8 && !poor { Glyphs::Unicode } else { Glyphs::Ascii }
}

/// Seconds that local time is ahead of UTC.
fn utc_offset() -> i32 {
    TimeZone::system().to_offset(Timestamp::now()).seconds()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_locale_decides_on_the_characters() {
        let with =
            |vars: &[(&str, &str)]| glyphs(|name| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()));
        assert_eq!(with(&[("TERM", "xterm"), ("LANG", "de_DE.UTF-8")]), Glyphs::Unicode);
        assert_eq!(
            with(&[("TERM", "tmux-256color"), ("LC_ALL", ""), ("LC_CTYPE", "C.utf8")]),
            Glyphs::Unicode
        );
        assert_eq!(
            with(&[("TERM", "xterm"), ("LC_ALL", "C"), ("LANG", "de_DE.UTF-8")]),
            Glyphs::Ascii
        );
        assert_eq!(with(&[("TERM", "linux"), ("LANG", "de_DE.UTF-8")]), Glyphs::Ascii);
        assert_eq!(with(&[]), Glyphs::Ascii);
    }
}
