//! The scripts that run a user's verb and that stop a server, on a real shell: they are the part of a plan that only a shell can prove.

use std::io::BufRead as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use bringup::config::types::{Engine, Script};
use bringup::config::{self, Config};
use bringup::domain::NodeId;
use bringup::domain::Wall;
use bringup::domain::serving::SERVE_MARK;
use bringup::engine::{self, Start};

/// Longest wait for something that a shell does at once.
const SOON: Duration = Duration::from_secs(30);

/// A home folder with a script in it.
struct Home {
    folder: tempfile::TempDir,
    config: Config,
}

impl Home {
    fn new(verb_limit: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("up.sh");
        std::fs::write(
            &script,
            "#!/bin/sh\necho \"verb $1\"\necho on-stderr >&2\ncase $1 in fail) exit 3 ;; long) exec sleep 1000 ;; esac\n",
        )
        .unwrap();
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut config = config::parse(config::EXAMPLE, "config.example.toml").unwrap();
        config.limits.verb = verb_limit;
        config.engine = Engine::Script(Script {
            path: "~/up.sh".to_owned(),
            directory: None,
            head: "head".to_owned(),
            worker: "worker".to_owned(),
            serve: "serve".to_owned(),
            stop: None,
            ray_port: 6379,
            dashboard_port: 8265,
        });
        Self { folder, config }
    }

    /// Starts a verb as the head's.
    fn start(&mut self, verb: &str) -> Output {
        if let Engine::Script(script) = &mut self.config.engine {
            script.head = verb.to_owned();
        }
        let start = Start {
            generation: Wall(1),
            infiniband: false,
        };
        self.sh(&engine::start_node(&self.config, NodeId(0), start).render())
    }

    fn clean(&self) -> Output {
        self.sh(&engine::script::clean(&self.config).render())
    }

    fn sh(&self, text: &str) -> Output {
        Command::new("/bin/sh")
            .args(["-c", text])
            .env("HOME", self.folder.path())
            .output()
            .unwrap()
    }

    fn files(&self) -> PathBuf {
        self.folder.path().join(".cache/bringup/sparks/verb")
    }

    /// The text of one of the verb's files, waited for.
    fn file(&self, name: &str) -> String {
        let path = self.files().join(name);
        wait_for(|| std::fs::read_to_string(&path).ok().filter(|t| !t.is_empty()))
    }

    fn leader(&self) -> String {
        self.file("pid").trim().to_owned()
    }
}

fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + SOON;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "it did not come about");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Whether any process of this process group is left.
fn group_lives(leader: &str) -> bool {
    std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // pid (name) state ppid pgrp …; a zombie is not left.
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or("").split(' ').collect();
        fields.get(2) == Some(&leader) && fields.first() != Some(&"Z")
    })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_verb_runs_detached_leaves_its_code_and_is_tidied_up() {
    let mut home = Home::new(Duration::from_secs(60));
    let started = home.start("head");
    assert!(started.status.success(), "{}", text(&started.stderr));
    assert_eq!(home.file("code").trim(), "0");
    assert_eq!(home.file("verb"), "head\n");
    assert_eq!(home.file("out"), "verb head\non-stderr\n");
    assert_eq!(text(&home.clean().stdout), "verb head\non-stderr\n");
    assert!(!Path::new(&home.files()).exists());
    assert!(!home.folder.path().join(".cache/bringup").exists());
}

#[test]
fn a_verb_that_fails_leaves_its_code() {
    let mut home = Home::new(Duration::from_secs(60));
    home.start("fail");
    assert_eq!(home.file("code").trim(), "3");
}

#[test]
fn a_verb_ends_at_its_limit_with_all_that_it_started() {
    let mut home = Home::new(Duration::from_secs(1));
    home.start("long");
    let leader = home.leader();
    assert_eq!(home.file("code").trim(), engine::script::LIMIT_CODE.to_string());
    assert!(home.file("out").contains("the limit of one verb"));
    wait_for(|| (!group_lives(&leader)).then_some(()));
}

#[test]
fn a_second_verb_is_refused_while_one_runs_and_stopping_ends_it() {
    let mut home = Home::new(Duration::from_secs(60));
    home.start("long");
    let leader = home.leader();
    let second = home.start("head");
    assert_eq!(second.status.code(), Some(75));
    assert!(text(&second.stderr).contains("the verb long still runs"));
    assert!(text(&home.clean().stdout).contains("still runs"));
    assert!(group_lives(&leader));
    let stop = engine::stop_node(&home.config, &[]);
    let end = home.sh(&stop[0].render());
    assert!(end.status.success());
    assert!(!group_lives(&leader));
    assert!(!home.files().exists());
}

#[test]
fn a_process_that_has_got_a_lost_verbs_number_is_left_alone() {
    let home = Home::new(Duration::from_secs(60));
    let mut stranger = Command::new("sleep").arg("1000").process_group(0).spawn().unwrap();
    std::fs::create_dir_all(home.files()).unwrap();
    std::fs::write(home.files().join("verb"), "head\n").unwrap();
    std::fs::write(home.files().join("pid"), format!("{}\n", stranger.id())).unwrap();
    let stop = engine::stop_node(&home.config, &[]);
    let end = home.sh(&stop[0].render());
    assert!(end.status.success(), "{}", text(&end.stderr));
    assert!(!home.files().exists());
    assert_eq!(stranger.try_wait().unwrap(), None, "it was ended");
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

#[test]
fn a_script_that_is_not_there_is_said_to_be_missing() {
    let mut home = Home::new(Duration::from_secs(60));
    if let Engine::Script(script) = &mut home.config.engine {
        script.path = "nowhere.sh".to_owned();
    }
    let started = home.start("head");
    assert_eq!(started.status.code(), Some(127));
    assert!(text(&started.stderr).contains("there is no ./nowhere.sh"));
}

#[test]
fn stopping_ends_the_marked_server_and_leaves_what_ray_runs_to_ray() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let docker = folder.path().join("docker");
    // A container is this machine: `docker exec -i NAME PROGRAM …` runs the program.
    std::fs::write(&docker, "#!/bin/sh\nshift 3\nexec \"$@\"\n").unwrap();
    std::fs::set_permissions(&docker, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut config = config::parse(config::EXAMPLE, "config.example.toml").unwrap();
    config.container.docker = format!("env -u NOTHING {}", docker.display());
    // A mark of this test's own: another server may run on this machine.
    let mark = format!("BRINGUP_TEST_{}", std::process::id());
    let stop = engine::stop_serve(&config).render().replace(SERVE_MARK, &mark);

    // vLLM hands its environment to Ray's workers, whose own children then carry the mark.
    let worker = format!("exec 3<&0; {mark}=1 sh -c 'read -r end <&3' & echo $!; wait");
    let mut ray = Command::new("/bin/sh")
        .arg0("ray::RayWorkerProc.run")
        .args(["-c", &worker])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut child = String::new();
    std::io::BufReader::new(ray.stdout.take().unwrap())
        .read_line(&mut child)
        .unwrap();
    let child = Path::new("/proc").join(child.trim()).join("cmdline");
    let mut server = Command::new("sleep").arg("1000").env(&mark, "1").spawn().unwrap();

    let done = Command::new("/bin/sh").args(["-c", &stop]).output().unwrap();
    assert_eq!(text(&done.stdout), format!("ending: {}\nended\n", server.id()));
    assert_eq!(server.wait().unwrap().code(), None, "ended by a signal");
    assert!(std::fs::read(&child).is_ok_and(|c| !c.is_empty()));
    let again = Command::new("/bin/sh").args(["-c", &stop]).output().unwrap();
    assert_eq!(text(&again.stdout), "no model server runs\n");
    drop(ray.stdin.take());
    ray.wait().unwrap();
}
