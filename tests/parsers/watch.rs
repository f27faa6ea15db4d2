//! The node's script as a stream, run for real by the shells of this machine, with stand-ins for the tools.
#![cfg(target_os = "linux")]

use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command as Process, Stdio};
use std::time::{Duration, Instant};

use bringup::domain::Stamp;
use bringup::domain::event::{Facts, Subject};
use bringup::domain::units::Bytes;
use bringup::probe::node;
use bringup::probe::node::stream::{Reader, Reading};

use crate::scripts::{ask, each_shell, tool};

const MARK: &str = "5f3a";

/// Longest wait for what must come.
const PATIENCE: Duration = Duration::from_secs(40);

/// A Spark's nvidia-smi, which goes on.
const NVIDIA: &str = r#"case $* in
*--query-gpu*) what=gpus ;;
*PIDS*) what=apps ;;
*) exit 9 ;;
esac
case $* in *"-l 2"*) ;; *) exit 9 ;; esac
while :; do
  if [ "$what" = gpus ]; then
    echo '2, 0, 00000000:06:00.0, Disabled, NVIDIA H200, 95, 21581, 143771, 636.34, 52'
    echo '2, 1, 00000000:07:00.0, Disabled, NVIDIA H200, 0, 0, 143771, 120.02, 36'
  else
    printf '\n==============NVSMI LOG==============\n\nTimestamp : now\nDriver Version : 580\nCUDA Version : 13\n\nAttached GPUs : 2\n'
    printf 'GPU 00000000:06:00.0\n    Processes\n        Process ID : 1\n            Type : C\n            Name : a: b\n            Used GPU Memory : 21572 MiB\n\n'
    printf 'GPU 00000000:07:00.0\n    Processes : None\n\n'
  fi
  sleep 2
done
"#;

/// A running script, ended with all that it started.
struct Running {
    child: Child,
    reader: Reader,
    begun: Instant,
}

impl Running {
    fn start(shell: &[&str], docker: &str, limit: Duration, tools: &Path) -> Self {
        let command = node::watch(ask(docker, &[]), MARK, limit);
        let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
        let child = Process::new(shell[0])
            .args(&shell[1..])
            .args(["-c", &command.render()])
            .env("PATH", path)
            .env("HOME", tools)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        Self {
            child,
            reader: Reader::new(MARK, limit, Stamp(0)),
            begun: Instant::now(),
        }
    }

    /// Reads until `enough` says so.
    fn until(&mut self, mut enough: impl FnMut(&Reading) -> bool) {
        let mut out = self.child.stdout.take().unwrap();
        let mut bytes = [0; 4096];
        loop {
            assert!(self.begun.elapsed() < PATIENCE, "it did not say what was waited for");
            let n = out.read(&mut bytes).unwrap();
            assert!(n > 0, "it ended");
            let now = Stamp(u64::try_from(self.begun.elapsed().as_millis()).unwrap());
            let found = self.reader.feed(&bytes[..n], now);
            if found.iter().any(&mut enough) {
                self.child.stdout = Some(out);
                return;
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let group = format!("-{}", self.child.id());
        let _ = Process::new("kill")
            .args(["-s", "KILL", "--", &group])
            .stderr(Stdio::null())
            .status();
        let _ = self.child.wait();
    }
}

/// A node of two GPUs one of which has fallen off the bus: it is counted, and no tool lists it.
const ONE_GONE: &str = r#"case $* in
*--query-gpu*) what=gpus ;;
*) what=apps ;;
esac
while :; do
  if [ "$what" = gpus ]; then
    echo '2, 1, 00000000:07:00.0, Disabled, NVIDIA H200, 98, 31812, 143771, 636.34, 52'
  else
    printf '\n==============NVSMI LOG==============\n\nTimestamp : now\nDriver Version : 580\nCUDA Version : 13\n\nAttached GPUs : 2\n'
    printf 'GPU 00000000:07:00.0\n    Processes\n        Process ID : 1\n            Type : C\n            Name : a\n            Used GPU Memory : 31812 MiB\n\n'
  fi
  sleep 1
done
"#;

#[test]
fn the_processes_of_the_gpus_that_are_left_are_told_where_one_is_gone() {
    each_shell(|_, shell| {
        let folder = tempfile::tempdir().unwrap();
        tool(folder.path(), "nvidia-smi", ONE_GONE);
        let mut running = Running::start(shell, "docker", Duration::from_secs(10), folder.path());
        running.until(|reading| {
            reading.facts.iter().any(|fact| match fact {
                Facts::Gpus(g) if g.processes_unknown.is_none() => {
                    assert_eq!((g.gpus.len(), g.held()), (1, Some(Bytes::from_mib(31_812))), "{g:?}");
                    true
                }
                _ => false,
            })
        });
    });
}

#[test]
fn the_stream_tells_of_every_subject_in_whole_records() {
    let id = "a".repeat(64);
    let docker = format!(
        r#"case $1 in
ps) echo '{id}|vllm-qwen35|Up 3 hours|sparks' ;;
inspect)
  echo asked >>"$HOME/inspected"
  echo '{{"id":"{id}","name":"/vllm-qwen35","image":"img","status":"running","code":0,"oom":false,"pid":400,"started":"2020-01-01T00:00:00Z","restarts":2,"labels":{{}}}}'
  ;;
esac
"#
    );
    each_shell(|n, shell| {
        let folder = tempfile::tempdir().unwrap();
        tool(folder.path(), "docker", &docker);
        tool(folder.path(), "nvidia-smi", NVIDIA);
        let mut running = Running::start(shell, "docker", Duration::from_secs(10), folder.path());
        let mut seen: Vec<Subject> = Vec::new();
        let mut listed = 0;
        running.until(|reading| {
            assert_eq!(reading.problems, [], "{shell:?}");
            for fact in &reading.facts {
                match fact {
                    Facts::Memory(m) => assert!(m.total.0 > 0 && m.held.is_some() && m.load.is_some(), "{m:?}"),
                    Facts::Gpus(g) => {
                        assert_eq!((g.gpus.len(), g.held()), (2, Some(Bytes::from_mib(21_572))), "{g:?}");
                        assert_eq!(g.processes[0].name, "a: b");
                    }
                    Facts::Containers(c) => {
                        assert_eq!(c.containers[0].restarts, 2);
                        listed += 1;
                    }
                    Facts::Fabric(f) => assert!(f.with_address("127.0.0.1").is_some(), "{f:?}"),
                    Facts::Disk(d) => assert!(d.disks[0].total.0 > 0 && d.cache_unknown.is_some(), "{d:?}"),
                    Facts::Sockets(_) => {}
                    other => panic!("{other:?}"),
                }
            }
            if !seen.contains(&reading.what) {
                seen.push(reading.what);
            }
            // The second list comes a while later: once is enough.
            seen.len() == 6 && (listed == 2 || n > 0)
        });
        assert_eq!(running.reader.torn(), 0, "{shell:?}");
        // The kernel knows no such container, so Docker is asked again at once; what it says of the container is asked once.
        let inspected = std::fs::read_to_string(folder.path().join("inspected")).unwrap();
        assert_eq!(inspected, "asked\n", "{shell:?}");
    });
}

#[test]
fn a_gpu_that_is_lost_takes_no_other_with_it() {
    // Three are attached, the middle one is lost: fewer lines a look than there are GPUs, and in another run one that is no reading.
    let lost = [
        "",
        "    echo 'Unable to determine the device handle for GPU1: 0000:07:00.0: Unknown Error'\n",
    ];
    for line in lost {
        let nvidia = format!(
            r#"case $* in *--query-gpu*) ;; *) exec sleep 1000 ;; esac
while :; do
    echo '3, 0, 00000000:06:00.0, Disabled, NVIDIA H200, 95, 21581, 143771, 636.34, 52'
{line}    echo '3, 2, 00000000:08:00.0, Disabled, NVIDIA H200, 7, 9, 143771, 120.02, 36'
    sleep 1
done
"#
        );
        each_shell(|_, shell| {
            let folder = tempfile::tempdir().unwrap();
            tool(folder.path(), "nvidia-smi", &nvidia);
            let mut running = Running::start(shell, "docker", Duration::from_secs(10), folder.path());
            let mut looks = 0;
            running.until(|reading| {
                for fact in &reading.facts {
                    if let Facts::Gpus(g) = fact {
                        let seen: Vec<u32> = g.gpus.iter().map(|g| g.index).collect();
                        assert_eq!(seen, [0, 2], "{shell:?} {line}");
                        looks += 1;
                    }
                }
                looks == 3
            });
        });
    }
}

#[test]
fn a_tool_that_hangs_keeps_no_other_reading_back_and_is_ended() {
    each_shell(|_, shell| {
        let folder = tempfile::tempdir().unwrap();
        tool(folder.path(), "docker", "echo $$ >\"$HOME/hangs\"\nexec sleep 1000\n");
        tool(folder.path(), "nvidia-smi", "exec sleep 1000\n");
        let mut running = Running::start(shell, "docker", Duration::from_secs(1), folder.path());
        let mut told = None;
        let mut after = 0;
        running.until(|reading| {
            match (reading.what, &reading.facts[..]) {
                (Subject::Containers, [Facts::Absent { why, .. }]) => told = Some(why.clone()),
                (Subject::Memory, _) if told.is_some() => after += 1,
                _ => {}
            }
            after == 2
        });
        assert_eq!(told.as_deref(), Some("docker does not answer"), "{shell:?}");
        let hung = std::fs::read_to_string(folder.path().join("hangs")).unwrap();
        let still = std::fs::read_to_string(format!("/proc/{}/cmdline", hung.trim())).unwrap_or_default();
        assert!(
            !still.contains("1000"),
            "{shell:?}: the client that hung is still there"
        );
    });
}

/// Waits until nothing of the script's group is left.
fn nothing_left(shell: &[&str], script: &str) {
    let begun = Instant::now();
    while Process::new("pgrep")
        .args(["-g", script])
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|s| s.success())
    {
        assert!(begun.elapsed() < PATIENCE, "{shell:?}: something is left");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn what_the_script_started_ends_with_it() {
    let folder = tempfile::tempdir().unwrap();
    tool(folder.path(), "docker", "exit 1\n");
    tool(folder.path(), "nvidia-smi", NVIDIA);
    each_shell(|_, shell| {
        let mut running = Running::start(shell, "docker", Duration::from_secs(10), folder.path());
        running.until(|reading| reading.what == Subject::Gpus);
        let script = running.child.id().to_string();
        // The wrapper ends the group with this signal; the script's own shell alone must be enough where there is no setsid.
        let signal = ["-s", "TERM", script.as_str()];
        assert!(Process::new("kill").args(signal).status().unwrap().success());
        // Nobody reads any more: what goes on is told so by the next thing that it says.
        drop(running.child.stdout.take());
        running.child.wait().unwrap();
        nothing_left(shell, &script);
    });
}

#[test]
fn loops_that_have_nothing_to_say_end_with_a_script_whose_reader_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    tool(folder.path(), "docker", "exit 1\n");
    each_shell(|_, shell| {
        let mut running = Running::start(shell, "docker", Duration::from_secs(10), folder.path());
        running.until(|reading| reading.what == Subject::Memory);
        let script = running.child.id().to_string();
        drop(running.child.stdout.take());
        running.child.wait().unwrap();
        nothing_left(shell, &script);
    });
}

#[test]
fn no_loop_waits_long_before_it_looks_whether_its_script_is_there() {
    each_shell(|_, shell| {
        let folder = tempfile::tempdir().unwrap();
        tool(folder.path(), "docker", "exit 1\n");
        // A stand-in notes how long it is asked to sleep; busybox has a sleep of its own.
        if shell[0] == "busybox" {
            return;
        }
        tool(
            folder.path(),
            "sleep",
            "echo \"$1\" >>\"$HOME/sleeps\"\nPATH=${PATH#*:}\nexec sleep \"$1\"\n",
        );
        let mut running = Running::start(shell, "docker", Duration::from_secs(10), folder.path());
        // The disks are looked at once a minute.
        running.until(|reading| reading.what == Subject::Disk);
        let noted = || std::fs::read_to_string(folder.path().join("sleeps")).unwrap_or_default();
        let longest = || noted().lines().filter_map(|l| l.parse::<u64>().ok()).max();
        let mut looks = 0;
        running.until(|reading| {
            looks += u32::from(reading.what == Subject::Memory);
            looks >= 2 && longest() >= Some(20)
        });
        assert_eq!(longest(), Some(20), "{shell:?}: {:?}", noted());
    });
}
