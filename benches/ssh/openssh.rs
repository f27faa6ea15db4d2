//! OpenSSH's side: the `ssh` program with a configuration of its own.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::process::{Child, Command};

use super::PATIENCE;
use super::measure::{cpu, processes_with, pss};
use super::servers::{Place, shown};

pub struct OpenSsh {
    config: PathBuf,
    /// The same, and a connection that is there already is used.
    shared: PathBuf,
    /// The same, and the `ssh` that goes through the jump host writes down its own CPU time: nobody waits for the one that ProxyJump starts.
    timed: PathBuf,
    times: PathBuf,
    place: Place,
}

/// A connection that is kept up for others.
pub struct Master {
    config: PathBuf,
    host: String,
    process: Child,
}

/// Lines read, and what it took.
pub struct Counted {
    pub lines: u64,
    pub took: Duration,
    pub cpu: Duration,
}

impl OpenSsh {
    /// Writes its configuration into a folder.
    pub fn new(place: Place, folder: &Path) -> Self {
        let common = format!(
            "  Port {}\n  User {}\n  IdentityFile {}\n  IdentitiesOnly yes\n  IdentityAgent none\n  UserKnownHostsFile {}\n  StrictHostKeyChecking yes\n  BatchMode yes\n  Ciphers aes256-gcm@openssh.com\n",
            place.port,
            place.user,
            shown(&place.key),
            shown(&place.known_hosts),
        );
        let hosts = format!(
            "Host {}\n  ProxyJump {}\nHost *\n{common}",
            place.nodes.join(" "),
            place.jump
        );
        let socket = shown(&folder.join("control-%h"));
        let write = |name: &str, text: String| {
            let path = folder.join(name);
            std::fs::write(&path, text).expect("a file");
            path
        };
        let (plain, times) = (folder.join("ssh_config"), folder.join("times"));
        let proxy = format!(
            "sh -c 'trap \"\" HUP; ssh -F {} -W [%h]:%p {}; times >{}.new; mv {}.new {}'",
            shown(&plain),
            place.jump,
            shown(&times),
            shown(&times),
            shown(&times)
        );
        Self {
            timed: write(
                "ssh_config_timed",
                format!(
                    "Host {}\n  ProxyCommand {proxy}\nHost *\n{common}",
                    place.nodes.join(" ")
                ),
            ),
            times,
            config: write("ssh_config", hosts.clone()),
            shared: write("ssh_config_shared", format!("{hosts}  ControlPath {socket}\n")),
            place,
        }
    }

    pub fn jump(&self) -> String {
        self.place.jump.clone()
    }

    pub fn node(&self, n: usize) -> String {
        self.place.nodes[n].clone()
    }

    /// Connects to the first node through the jump host and runs `true`.
    pub async fn connect_and_run(&self) -> Duration {
        run(&self.config, &self.node(0), &["true"]).await
    }

    /// The same, through a jump host that is up.
    pub async fn run_through(&self, master: &Master) -> Duration {
        run(&master.config, &self.node(0), &["true"]).await
    }

    /// Runs `true` on a host that is up.
    pub async fn run_on(&self, master: &Master) -> Duration {
        run(&master.config, &master.host, &["true"]).await
    }

    pub async fn master(&self, host: &str) -> Master {
        let process = ssh(&self.shared, host, &["-M", "-N"], &[]).spawn().expect("ssh");
        let end = Instant::now() + PATIENCE;
        while !check(&self.shared, host).await {
            assert!(Instant::now() < end, "no master to {host}");
        }
        Master {
            config: self.shared.clone(),
            host: host.to_owned(),
            process,
        }
    }

    /// Connects, runs something long and has `wc` count.
    pub async fn count_lines(&self, words: &[String]) -> Counted {
        let before = cpu(false);
        let start = Instant::now();
        let line = format!(
            "exec ssh -F '{}' {} {} | wc -l",
            self.timed.display(),
            self.node(0),
            words.join(" ")
        );
        let output = Command::new("/bin/sh")
            .args(["-c", &line])
            .stdin(Stdio::null())
            .output()
            .await
            .expect("sh");
        let took = start.elapsed();
        let text = String::from_utf8_lossy(&output.stdout);
        Counted {
            lines: text.trim().parse().expect("a number"),
            took,
            cpu: cpu(false) - before + self.proxy_cpu(),
        }
    }

    /// What the `ssh` through the jump host wrote down: the second line of `times` is user and system time of the children.
    fn proxy_cpu(&self) -> Duration {
        let end = Instant::now() + PATIENCE;
        let text = loop {
            if let Ok(text) = std::fs::read_to_string(&self.times) {
                break text;
            }
            assert!(Instant::now() < end, "no times of the proxy");
            std::thread::sleep(Duration::from_millis(10));
        };
        std::fs::remove_file(&self.times).expect("a file");
        let line = text.lines().nth(1).expect("the children's line");
        line.split_whitespace().map(minutes_and_seconds).sum()
    }

    /// KiB of one of so many idle connections through the jump host.
    pub async fn memory_of_idle(&self, nodes: usize) -> f64 {
        /// Handshakes at a time: below MaxStartups.
        const AT_A_TIME: usize = 8;
        let mut processes = Vec::new();
        for n in 0..nodes {
            // It stays until its input ends.
            let mut command = ssh(&self.config, &self.node(n), &[], &["echo up; exec cat"]);
            let mut process = command
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("ssh");
            let out = process.stdout.take().expect("a pipe");
            processes.push((process, Some(out)));
            if processes.len() % AT_A_TIME == 0 {
                all_up(&mut processes).await;
            }
        }
        all_up(&mut processes).await;
        let sum: f64 = processes_with("ssh", &self.config).into_iter().filter_map(pss).sum();
        for (process, _) in &mut processes {
            drop(process.stdin.take());
            let _ = process.wait().await;
        }
        sum / nodes as f64
    }
}

async fn all_up(processes: &mut [(Child, Option<tokio::process::ChildStdout>)]) {
    use tokio::io::AsyncReadExt;
    for (_, out) in processes {
        if let Some(mut out) = out.take() {
            let mut said = [0; 3];
            out.read_exact(&mut said).await.expect("it says that it is up");
            assert_eq!(&said, b"up\n");
        }
    }
}

impl Master {
    pub async fn end(mut self) {
        let mut exit = ssh(&self.config, &self.host, &["-O", "exit"], &[]);
        let _ = exit.stderr(Stdio::null()).status().await;
        let _ = self.process.wait().await;
    }
}

fn ssh(config: &std::path::Path, host: &str, options: &[&str], words: &[&str]) -> Command {
    let mut command = Command::new("ssh");
    command.arg("-F").arg(config).args(options).arg(host).args(words);
    command.stdin(Stdio::null()).kill_on_drop(true);
    command
}

async fn run(config: &std::path::Path, host: &str, words: &[&str]) -> Duration {
    let start = Instant::now();
    let status = ssh(config, host, &[], words).status().await.expect("ssh");
    let took = start.elapsed();
    assert!(status.success(), "ssh {host}: {status}");
    took
}

async fn check(config: &std::path::Path, host: &str) -> bool {
    let mut command = ssh(config, host, &["-O", "check"], &[]);
    command.stderr(Stdio::null()).status().await.is_ok_and(|s| s.success())
}

/// `0m0.120s`.
fn minutes_and_seconds(text: &str) -> Duration {
    let (minutes, seconds) = text.trim_end_matches('s').split_once('m').expect("minutes");
    let (minutes, seconds): (f64, f64) = (minutes.parse().expect("a number"), seconds.parse().expect("a number"));
    Duration::from_secs_f64(minutes * 60.0 + seconds)
}
