//! The script that follows a file, run by the shells of this machine, while the file is rotated: no line is lost and none comes twice.
#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command as Process, Stdio};
use std::time::Duration;

use bringup::probe::logs::{Follower, Place};

use crate::scripts::each_shell;

const LIMIT: Duration = Duration::from_secs(20);

/// One run of the script.
struct Run {
    child: Child,
    text: String,
}

impl Run {
    fn start(shell: &[&str], follower: &mut Follower) -> Self {
        let child = Process::new(shell[0])
            .args(&shell[1..])
            .args(["-c", &follower.command(LIMIT).render()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            child,
            text: String::new(),
        }
    }

    /// Reads on until the log's text holds this, or to the end.
    fn read(&mut self, follower: &mut Follower, until: Option<&str>) {
        let mut bytes = [0; 7];
        while until.is_none_or(|text| !self.text.contains(text)) {
            let n = self.child.stdout.as_mut().unwrap().read(&mut bytes).unwrap();
            if n == 0 {
                assert_eq!(until, None, "{}", self.text);
                return;
            }
            self.text
                .push_str(std::str::from_utf8(follower.content(&bytes[..n])).unwrap());
        }
    }

    /// Waits for its own end.
    fn end(mut self, follower: &mut Follower) -> String {
        self.read(follower, None);
        assert!(self.child.wait().unwrap().success());
        self.text
    }

    /// Ends it as the wrapper would.
    fn stop(mut self) -> String {
        let id = self.child.id().to_string();
        assert!(Process::new("kill").arg(id).status().unwrap().success());
        self.child.wait().unwrap();
        self.text
    }
}

fn append(path: &Path, text: &str) -> File {
    let mut file = File::options().append(true).create(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

#[test]
fn a_file_that_another_one_replaces_is_read_to_its_end_first() {
    each_shell(|_, shell| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run one.log");
        let mut follower = Follower::new(Place::File {
            path: path.to_str().unwrap().to_owned(),
        });
        let mut held = append(&path, "one\ntwo\n");
        let mut run = Run::start(shell, &mut follower);
        run.read(&mut follower, Some("two\n"));
        // Whose log is renamed writes on until it opens the new one.
        fs::rename(&path, folder.path().join("run one.log.1")).unwrap();
        held.write_all(b"three\n").unwrap();
        run.read(&mut follower, Some("three\n"));
        held.write_all(b"four\n").unwrap();
        append(&path, "five\n");
        let mut all = run.end(&mut follower);
        let mut run = Run::start(shell, &mut follower);
        run.read(&mut follower, Some("five\n"));
        append(&path, "six\n");
        run.read(&mut follower, Some("six\n"));
        all += &run.stop();
        assert_eq!(all, "one\ntwo\nthree\nfour\nfive\nsix\n", "{shell:?}");
        assert_eq!(follower.notice(), None);

        // Rotated while nobody read.
        append(&path, "seven\n");
        fs::rename(&path, folder.path().join("run one.log.1")).unwrap();
        let mut run = Run::start(shell, &mut follower);
        run.read(&mut follower, Some("seven\n"));
        append(&path, "eight\n");
        let mut all = run.end(&mut follower);
        let mut run = Run::start(shell, &mut follower);
        run.read(&mut follower, Some("eight\n"));
        all += &run.stop();
        assert_eq!(all, "seven\neight\n", "{shell:?}");
        assert_eq!(follower.notice(), None);

        // Twice while nobody read.
        fs::remove_file(folder.path().join("run one.log.1")).unwrap();
        for (line, to) in [("a\n", ".3"), ("b\n", ".2")] {
            append(&path, line);
            fs::rename(&path, folder.path().join(format!("run one.log{to}"))).unwrap();
            // Which file is the newer one is told by whole seconds where the tools are small.
            let seconds = if to == ".3" { 100 } else { 50 };
            let file = File::open(folder.path().join(format!("run one.log{to}"))).unwrap();
            file.set_modified(std::time::SystemTime::now() - Duration::from_secs(seconds))
                .unwrap();
        }
        append(&path, "c\n");
        let mut all = Run::start(shell, &mut follower).end(&mut follower);
        let mut run = Run::start(shell, &mut follower);
        run.read(&mut follower, Some("c\n"));
        all += &run.stop();
        assert_eq!(all, "a\nb\nc\n", "{shell:?}");
        assert_eq!(follower.notice(), None);

        // The earlier file is gone.
        append(&folder.path().join("new"), "nine\n");
        fs::rename(folder.path().join("new"), &path).unwrap();
        let mut run = Run::start(shell, &mut follower);
        run.read(&mut follower, Some("nine\n"));
        assert!(follower.notice().unwrap().contains("may be missing"), "{shell:?}");
        // It is cut while it is read.
        File::create(&path).unwrap();
        run.end(&mut follower);
        let mut run = Run::start(shell, &mut follower);
        append(&path, "ten\n");
        run.read(&mut follower, Some("ten\n"));
        assert!(follower.notice().unwrap().contains("was cut"), "{shell:?}");
        assert_eq!(run.stop(), "ten\n", "{shell:?}");
    });
}
