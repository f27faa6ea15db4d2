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
    named(&around.flag, "--config")
        .or_else(|| named(&around.variable, "$BRINGUP_CONFIG"))
        .or_else(|| standard(around))
}

/// Where a file is looked for that nobody names.
#[must_use]
pub fn standard(around: &Surroundings) -> Option<Place> {
    let inside = |folder: &Path| folder.join("bringup").join("config.toml");
    let xdg = around.xdg.as_deref().filter(|p| p.is_absolute());
    let (folder, named_by) = match (xdg, &around.home) {
        (Some(xdg), _) => (xdg.to_path_buf(), "$XDG_CONFIG_HOME"),
        (None, Some(home)) => (home.join(".config"), "the standard place"),
        (None, None) => return None,
    };
    let path = inside(&folder);
    Some(Place { path, named_by })
}

/// What to tell when there is no file at the place that the surroundings give.
#[must_use]
pub fn not_found(around: &Surroundings) -> String {
    let place = search(around);
    let put = standard(around).map_or_else(
        || "~/.config/bringup/config.toml".to_owned(),
        |place| place.path.display().to_string(),
    );
    let looked = match place {
        Some(place) => format!("looked at {} ({})", place.path.display(), place.named_by),
        None => "there is no home directory to look in".to_owned(),
    };
    format!(
        "no configuration: {looked}\n\
         name one with --config FILE or $BRINGUP_CONFIG, or put it at {put}\n\
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
        let mut around = Surroundings {
            flag: Some("/x/config.toml".into()),
            variable: None,
            xdg: Some("/xdg".into()),
            home: Some("/home/aurora".into()),
        };
        let said = not_found(&around);
        for part in [
            "looked at /x/config.toml (--config)",
            "put it at /xdg/bringup/config.toml",
            "`bringup demo`",
            "`bringup config example`",
        ] {
            assert!(said.contains(part), "{said}");
        }
        around.xdg = None;
        assert!(not_found(&around).contains("put it at /home/aurora/.config/bringup/config.toml"));
        (around.flag, around.home) = (None, None);
        assert!(not_found(&around).contains("no home directory"));
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
