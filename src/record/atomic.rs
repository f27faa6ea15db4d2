//! Whole files or none.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Other names that are tried when a name is taken.
const NAMES: u32 = 100;

/// What the names of unfinished files begin with.
const UNFINISHED: &str = ".bringup-";

/// Makes a directory, and those above it, for the owner alone. One that is there stays as it is.
///
/// # Errors
/// When it cannot be made.
pub fn make_directory(directory: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

/// Writes a new file `stem.extension` in a directory, mode 0600, on the disk before its name appears. When the name is taken, `stem-2.extension` and so
/// on. Gives the path.
///
/// # Errors
/// When it cannot be written; then nothing is left of it.
pub fn write_new(directory: &Path, stem: &str, extension: &str, bytes: &[u8]) -> io::Result<PathBuf> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(UNFINISHED);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600));
    let mut file = builder.tempfile_in(directory)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    for number in 1..=NAMES {
        let name = if number == 1 {
            format!("{stem}.{extension}")
        } else {
            format!("{stem}-{number}.{extension}")
        };
        let path = directory.join(name);
        match file.persist_noclobber(&path) {
            Ok(_) => {
                // The name itself is on the disk only after its directory is.
                File::open(directory)?.sync_all()?;
                return Ok(path);
            }
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => file = error.file,
            Err(error) => return Err(error.error),
        }
    }
    let taken = format!("{NAMES} files named {stem} are there already");
    Err(io::Error::new(io::ErrorKind::AlreadyExists, taken))
}

/// Writes a file in the place of the one of that name, mode 0600: whoever reads it sees the old one or the new one, whole.
///
/// # Errors
/// When it cannot be written; then the old one is still there.
pub fn replace(directory: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(UNFINISHED);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600));
    let mut file = builder.tempfile_in(directory)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(directory.join(name)).map_err(|e| e.error)?;
    File::open(directory)?.sync_all()
}

/// Removes all but the last `keep` files by name that begin with `prefix` and have this extension.
///
/// # Errors
/// When the directory cannot be read or a file cannot be removed.
pub fn keep_last(directory: &Path, prefix: &str, extension: &str, keep: usize) -> io::Result<()> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let path = entry.path();
        let named = path
            .file_name()
            .and_then(OsStr::to_str)
            .is_some_and(|name| name.starts_with(prefix));
        if named && path.extension() == Some(OsStr::new(extension)) && entry.file_type()?.is_file() {
            names.push(path);
        }
    }
    names.sort();
    let old = names.len().saturating_sub(keep);
    for path in names.iter().take(old) {
        match fs::remove_file(path) {
            // Another console was quicker.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => other?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_taken_name_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        for (text, name) in [("one", "a.json"), ("two", "a-2.json"), ("three", "a-3.json")] {
            let path = write_new(dir.path(), "a", "json", text.as_bytes()).unwrap();
            assert_eq!(path, dir.path().join(name));
        }
        assert_eq!(fs::read(dir.path().join("a.json")).unwrap(), b"one");
        assert_eq!(names(dir.path()), ["a-2.json", "a-3.json", "a.json"]);
    }

    #[test]
    #[cfg(unix)]
    fn files_and_directories_are_the_owners_alone() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("state/results");
        make_directory(&deep).unwrap();
        make_directory(&deep).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&deep), 0o700);
        assert_eq!(mode(&write_new(&deep, "a", "json", b"x").unwrap()), 0o600);
    }

    #[test]
    fn nothing_is_left_of_a_file_that_cannot_be_written() {
        let dir = tempfile::tempdir().unwrap();
        // A directory of that name for every try's first, and a name that no file can have.
        assert!(write_new(dir.path(), "no/such", "json", b"x").is_err());
        assert!(write_new(&dir.path().join("gone"), "a", "json", b"x").is_err());
        assert_eq!(names(dir.path()), [""; 0]);
    }

    #[test]
    fn only_our_oldest_files_go() {
        let dir = tempfile::tempdir().unwrap();
        for name in [
            "bench-1.json",
            "bench-2.json",
            "bench-3.json",
            "bench-0.txt",
            "mine.json",
        ] {
            fs::write(dir.path().join(name), "x").unwrap();
        }
        fs::create_dir(dir.path().join("bench-0.json")).unwrap();
        keep_last(dir.path(), "bench-", "json", 2).unwrap();
        assert_eq!(
            names(dir.path()),
            [
                "bench-0.json",
                "bench-0.txt",
                "bench-2.json",
                "bench-3.json",
                "mine.json"
            ]
        );
        keep_last(dir.path(), "bench-", "json", 9).unwrap();
        assert_eq!(names(dir.path()).len(), 5);
    }
}
