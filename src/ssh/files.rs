//! Files of the operator's that are read.

use std::fs::File;
use std::io;
use std::path::Path;

/// Opens a file to read. What can keep whoever opens it waiting, as a pipe does, is refused.
///
/// # Errors
/// Why it can't be read.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let kind = path.metadata()?.file_type();
    if kind.is_dir() {
        return Err(io::Error::other("it is a directory"));
    }
    if waits(kind) {
        return Err(io::Error::other("it is a pipe or a socket"));
    }
    File::open(path)
}

#[cfg(unix)]
fn waits(kind: std::fs::FileType) -> bool {
    use std::os::unix::fs::FileTypeExt;
    kind.is_fifo() || kind.is_socket()
}

#[cfg(not(unix))]
fn waits(_: std::fs::FileType) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_pipe_and_a_directory_are_refused_at_once_and_no_file_reads_as_an_empty_one() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        assert_eq!(open(&pipe).unwrap_err().to_string(), "it is a pipe or a socket");
        assert_eq!(open(folder.path()).unwrap_err().to_string(), "it is a directory");
        let mut text = String::new();
        open(Path::new("/dev/null")).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "");
        assert_eq!(
            open(&folder.path().join("none")).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
    }
}
