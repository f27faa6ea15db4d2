//! Private folders below the temporary directory. They go with the program that made them; what a killed one left goes when the next one starts.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use tempfile::TempDir;

/// What the names of all private folders begin with.
const PREFIX: &str = "bringup-";

/// A file that the program keeps locked while its folder is in use. The system lets go of the lock however the program ends.
const HELD: &str = "held";

/// What stands in it: a folder of somebody else's with a file of that name is not ours.
const MARK: &[u8] = b"held by bringup while it runs\n";

/// Its name before it is locked: a folder that is just being made is never taken for one that was left.
const NOT_YET_HELD: &str = "held.new";

/// Entries of the temporary directory that are looked at for folders that were left.
const LOOKED_AT: usize = 4096;

/// Left folders that one start removes.
const REMOVED: usize = 64;

/// A folder that only its owner can enter, removed when dropped.
#[derive(Debug)]
pub struct Folder {
    directory: TempDir,
    _held: File,
}

impl Folder {
    /// Makes one below `parent`, with `what` in its name, and removes those that killed programs of the same user left there.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn make(parent: &Path, what: &str) -> io::Result<Self> {
        remove_left(parent);
        let mut builder = tempfile::Builder::new();
        let prefix = format!("{PREFIX}{what}");
        builder.prefix(&prefix);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let directory = builder.tempdir_in(parent)?;
        let unheld = directory.path().join(NOT_YET_HELD);
        let mut held = File::create_new(&unheld)?;
        held.write_all(MARK)?;
        held.try_lock()?;
        fs::rename(unheld, directory.path().join(HELD))?;
        Ok(Self { directory, _held: held })
    }

    /// Whether a directory is such a folder of this user, made with `what` in its name.
    #[must_use]
    pub fn is(directory: &Path, what: &str) -> bool {
        let name = directory.file_name().and_then(|name| name.to_str());
        let rest = name.and_then(|name| name.strip_prefix(PREFIX));
        rest.is_some_and(|rest| rest.starts_with(what)) && made(directory).is_some()
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// Removes folders of ours that nobody holds any more. What can't be looked at or removed stays: it is no reason not to start.
fn remove_left(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    let ours = |name: &std::ffi::OsStr| name.to_str().is_some_and(|name| name.starts_with(PREFIX));
    let folders = entries
        .take(LOOKED_AT)
        .filter_map(Result::ok)
        .filter(|e| ours(&e.file_name()));
    for folder in folders
        .map(|entry| entry.path())
        .filter(|path| left(path))
        .take(REMOVED)
    {
        if let Err(error) = fs::remove_dir_all(&folder) {
            tracing::debug!(%error, folder = %folder.display(), "a folder that was left stays");
        }
    }
}

/// Whether it is a private folder of this user with a file that a program once held, and holds no longer.
fn left(folder: &Path) -> bool {
    made(folder).is_some_and(|held| held.try_lock().is_ok())
}

/// The file that a program holds or once held, where it lies in a private folder of this user.
fn made(folder: &Path) -> Option<File> {
    let held = folder.join(HELD);
    let private = private(folder, fs::FileType::is_dir) && private(&held, fs::FileType::is_file);
    let held = private.then(|| File::open(held).ok()).flatten()?;
    marked(&held).then_some(held)
}

/// Whether our mark stands in a file, and nothing else.
fn marked(file: &File) -> bool {
    let mut start = Vec::new();
    let most = MARK.len() as u64 + 1;
    file.take(most).read_to_end(&mut start).is_ok() && start == MARK
}

/// Whether it is of this kind itself, no link to one, belongs to this user, and is closed to everybody else if it is a folder.
#[cfg(unix)]
fn private(path: &Path, kind: fn(&fs::FileType) -> bool) -> bool {
    use std::os::unix::fs::MetadataExt;
    let me = rustix::process::geteuid().as_raw();
    let closed = |meta: &fs::Metadata| !meta.is_dir() || meta.mode() & 0o077 == 0;
    fs::symlink_metadata(path).is_ok_and(|meta| kind(&meta.file_type()) && meta.uid() == me && closed(&meta))
}

#[cfg(not(unix))]
fn private(path: &Path, kind: fn(&fs::FileType) -> bool) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| kind(&meta.file_type()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn a_folder_is_private_and_goes_away() {
        use std::os::unix::fs::PermissionsExt;
        let parent = tempfile::tempdir().unwrap();
        let folder = Folder::make(parent.path(), "test-").unwrap();
        let path = folder.path().to_owned();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn what_a_killed_program_left_goes_at_the_next_start_and_what_is_in_use_stays() {
        let parent = tempfile::tempdir().unwrap();
        let in_use = Folder::make(parent.path(), "").unwrap();
        let Folder { directory, _held } = Folder::make(parent.path(), "").unwrap();
        let left = directory.keep();
        fs::write(left.join("key"), "secret").unwrap();
        drop(_held);
        let next = Folder::make(parent.path(), "").unwrap();
        assert!(!left.exists());
        assert!(in_use.path().exists() && next.path().exists());
    }

    #[test]
    #[cfg(unix)]
    fn folders_that_are_not_known_to_be_left_by_us_stay() {
        use std::os::unix::fs::PermissionsExt;
        let parent = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        fs::write(elsewhere.path().join(HELD), MARK).unwrap();
        let at = |name: &str| parent.path().join(name);
        for name in ["bringup-being-made", "bringup-nobody's", "other"] {
            fs::create_dir(at(name)).unwrap();
        }
        fs::write(at("bringup-being-made").join(NOT_YET_HELD), "").unwrap();
        fs::write(at("other").join(HELD), MARK).unwrap();
        fs::create_dir(at("bringup-notes")).unwrap();
        fs::set_permissions(at("bringup-notes"), fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(at("bringup-notes").join(HELD), "mine").unwrap();
        fs::create_dir(at("bringup-open")).unwrap();
        fs::set_permissions(at("bringup-open"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(at("bringup-open").join(HELD), MARK).unwrap();
        fs::write(at("bringup-file"), "").unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), at("bringup-link")).unwrap();
        fs::create_dir(at("bringup-with-a-link")).unwrap();
        fs::set_permissions(at("bringup-with-a-link"), fs::Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::symlink(elsewhere.path().join(HELD), at("bringup-with-a-link").join(HELD)).unwrap();
        let before = fs::read_dir(parent.path()).unwrap().count();
        drop(Folder::make(parent.path(), "").unwrap());
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), before);
        assert!(elsewhere.path().join(HELD).exists());
    }
}
