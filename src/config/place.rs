//! Where the configuration is looked for.

use std::path::{Path, PathBuf};

/// What names a place, as the program was started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// `--config`.
    pub flag: Option<PathBuf>,
    /// `$BRINGUP_CONFIG`; empty counts as unset.
    pub variable: Option<PathBuf>,
    /// `$XDG_CONFIG_HOME`; a relative one is no place, as its specification says.
    pub xdg: Option<PathBuf>,
    /// The home directory.
    pub home: Option<PathBuf>,
}

/// A place and what names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub path: PathBuf,
    /// What names it, such as `--config`.
    pub named_by: &'static str,
}

/// The one file to read: what is named on the command line, else by the variable, else the standard place. `None` when there is no home.
#[must_use]
pub fn search(around: &Surroundings) -> Option<Place> {
    let named = |path: &Option<PathBuf>, named_by| {
        let path = path.clone().filter(|p| !p.as_os_str().is_empty())?;
        Some(Place { path, named_by })
    };
    let inside = |folder: &Path| folder.join("bringup").join("config.toml");
    named(&around.flag, "--config")
        .or_else(|| named(&around.variable, "$BRINGUP_CONFIG"))
        .or_else(|| {
            let xdg = around.xdg.as_deref().filter(|p| p.is_absolute())?;
            named(&Some(inside(xdg)), "$XDG_CONFIG_HOME")
        })
        .or_else(|| {
            let home = around.home.as_deref()?;
            named(&Some(inside(&home.join(".config"))), "the standard place")
        })
}

/// What to tell when there is no file at `place`.
#[must_use]
pub fn not_found(place: Option<&Place>) -> String {
    let looked = match place {
        Some(place) => format!("looked at {} ({})", place.path.display(), place.named_by),
        None => "there is no home directory to look in".to_owned(),
    };
    format!(
        "no configuration: {looked}\n\
         name one with --config FILE or $BRINGUP_CONFIG, or put it at ~/.config/bringup/config.toml\n\
         `bringup config example` prints one to start from; `bringup demo` shows the console on a cluster of its own and needs none"
    )
}

/// A path of the configuration: `~` and `~/…` stand for the home directory.
#[must_use]
pub fn expand(text: &str, home: &Path) -> PathBuf {
    match text.strip_prefix('~') {
        Some("") => home.to_path_buf(),
        Some(rest) => rest
            .strip_prefix('/')
            .map_or_else(|| PathBuf::from(text), |r| home.join(r)),
        None => PathBuf::from(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_wins_then_the_variable_then_the_standard_place() {
        let mut around = Surroundings {
            flag: Some("a.toml".into()),
            variable: Some("b.toml".into()),
            xdg: Some("/xdg".into()),
            home: Some("/home/aurora".into()),
        };
        let found = |around: &Surroundings| search(around).map(|p| p.path.display().to_string());
        assert_eq!(found(&around).as_deref(), Some("a.toml"));
        around.flag = None;
        assert_eq!(found(&around).as_deref(), Some("b.toml"));
        around.variable = Some("".into());
        assert_eq!(found(&around).as_deref(), Some("/xdg/bringup/config.toml"));
        around.xdg = Some("relative".into());
        assert_eq!(
            found(&around).as_deref(),
            Some("/home/aurora/.config/bringup/config.toml")
        );
        around.home = None;
        assert_eq!(found(&around), None);
    }

    #[test]
    fn who_has_no_file_is_told_where_it_was_looked_for_and_what_to_do() {
        let place = Place {
            path: "/x/config.toml".into(),
            named_by: "--config",
        };
        let said = not_found(Some(&place));
        for part in [
            "looked at /x/config.toml (--config)",
            "`bringup demo`",
            "`bringup config example`",
        ] {
            assert!(said.contains(part), "{said}");
        }
        assert!(not_found(None).contains("no home directory"));
    }

    #[test]
    fn only_a_leading_tilde_of_ones_own_is_home() {
        let home = Path::new("/home/op");
        assert_eq!(expand("~/.ssh/id", home), Path::new("/home/op/.ssh/id"));
        assert_eq!(expand("~", home), home);
        assert_eq!(expand("~other/x", home), Path::new("~other/x"));
        assert_eq!(expand("/a/~/b", home), Path::new("/a/~/b"));
    }
}
