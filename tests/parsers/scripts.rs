//! Scripts that are run for real, by the shells of this machine, with stand-ins for the tools: a script and its reader must not drift apart.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command as Process, Stdio};
use std::time::Duration;

use bringup::domain::command::{Command, Exit, Output};
use bringup::domain::container::ContainerState;
use bringup::domain::event::{Facts, ProbeId};
use bringup::domain::observed::VerbFacts;
use bringup::domain::units::Bytes;
use bringup::probe::{node, parse, verb};

use crate::cases::output;

const LIMIT: Duration = Duration::from_secs(20);

/// Every POSIX shell that is here.
pub fn shells() -> Vec<Vec<&'static str>> {
    let all = [
        vec!["/bin/sh"],
        vec!["dash"],
        vec!["bash", "--posix"],
        vec!["busybox", "sh"],
    ];
    let here = |shell: &Vec<&str>| {
        let tried = Process::new(shell[0]).args(&shell[1..]).args(["-c", "exit 7"]).output();
        tried.is_ok_and(|o| o.status.code() == Some(7))
    };
    all.into_iter().filter(here).collect()
}

/// Runs a command's rendered text.
/// Runs a test under every shell at once: most of their time they wait.
pub fn each_shell(test: impl Fn(usize, &[&str]) + Sync) {
    let (shells, test) = (shells(), &test);
    std::thread::scope(|scope| {
        for (n, shell) in shells.iter().enumerate() {
            scope.spawn(move || test(n, shell));
        }
    });
}

fn run(shell: &[&str], command: &Command, home: &Path, tools: &Path) -> Output {
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
    let mut child = Process::new(shell[0])
        .args(&shell[1..])
        .args(["-c", &command.render()])
        .env("PATH", path)
        .env("HOME", home)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take();
    let done = child.wait_with_output().unwrap();
    let code = u32::try_from(done.status.code().unwrap()).unwrap();
    output(done.stdout, done.stderr, Exit::Code(code))
}

/// Puts a stand-in for a tool into a folder.
pub fn tool(folder: &Path, name: &str, script: &str) {
    let path = folder.join(name);
    let mut file = fs::File::create(&path).unwrap();
    file.write_all(format!("#!/bin/sh\n{script}").as_bytes()).unwrap();
    drop(file);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// What a node is asked in these tests.
pub fn ask<'a>(docker: &'a str, ports: &'a [u16]) -> node::Ask<'a> {
    node::Ask {
        docker,
        container: "vllm-qwen35",
        log: None,
        cache: None,
        ports,
    }
}

#[test]
fn the_node_script_says_what_its_reader_understands() {
    let folder = tempfile::tempdir().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (ours, other) = ("a".repeat(64), "b".repeat(64));
    tool(
        folder.path(),
        "docker",
        &format!(
            r#"case $1 in
ps)
  echo 'WARNING: something about a config file' >&2
  printf '%s\n' '{ours}|vllm-qwen35|Up 3 hours|sparks' '{other}|other|Exited (0) 2 days ago|'
  ;;
inspect)
  for id in "$@"; do :; done
  [ "$#" = 6 ] || exit 9
  echo '{{"id":"'"$id"'","name":"/vllm-qwen35","image":"img","status":"running","code":0,"oom":false,"pid":400,"started":"2020-01-01T00:00:00Z","restarts":2,"labels":{{"io.bringup.cluster":"sparks","io.bringup.role":"head"}}}}'
  ;;
esac
"#
        ),
    );
    let own = std::process::id();
    tool(
        folder.path(),
        "nvidia-smi",
        &format!(
            r#"case $1 in
--query-gpu=*) echo '1, 0, 0000000F:01:00.0, [N/A], NVIDIA GB10, 96, [N/A], [N/A], 45.10, 61' ;;
*)
  printf 'Attached GPUs : 1\nGPU 0000000F:01:00.0\n    Processes\n        Process ID : {own}\n            Type : C\n'
  printf '            Name : /usr/local/bin/python\n            Used GPU Memory : 19135 MiB\n\n'
  ;;
esac
"#
        ),
    );
    // Docker may be several words.
    let both = shells()
        .into_iter()
        .flat_map(|shell| [(shell.clone(), "docker"), (shell, "env -u NOTHING docker")]);
    for (shell, docker) in both {
        let command = node::command(ask(docker, &[port]), LIMIT);
        let printed = run(&shell, &command, folder.path(), folder.path());
        let (facts, problems) = parse(ProbeId::Node, &printed);
        assert_eq!(problems, [], "{shell:?}");
        assert_eq!(facts.len(), 5, "{facts:#?}");
        for fact in facts {
            match fact {
                Facts::Memory(m) => {
                    assert!(m.total.0 > m.available.0 && m.available.0 > 0, "{m:?}");
                    // As this machine's own kernel tells it, in KiB.
                    let counted = fs::read_to_string("/proc/vmstat").unwrap_or_default();
                    let now = counted.lines().find_map(|l| l.strip_prefix("pgpgin "));
                    let now = now.map(|kib| Bytes::from_kib(kib.parse().unwrap()));
                    assert_eq!(m.read.is_some(), now.is_some());
                    assert!(m.read <= now, "{m:?} {now:?}");
                }
                Facts::Gpus(g) => {
                    assert_eq!(g.gpus.len(), 1);
                    assert!(g.gpus[0].unified);
                    assert_eq!(g.held(), Some(Bytes::from_mib(19135)));
                }
                Facts::Containers(c) => {
                    assert_eq!(c.containers.len(), 1);
                    let one = c.named("vllm-qwen35").unwrap();
                    assert_eq!(
                        (&one.id, &one.state, one.restarts),
                        (&ours, &ContainerState::Running, 2)
                    );
                    assert!(one.up_seconds.unwrap() > 5 * 365 * 86_400);
                    assert_eq!(one.ours.as_ref().unwrap().role, "head");
                }
                Facts::Sockets(s) => {
                    let found: Vec<_> = s.on_port(port).collect();
                    assert_eq!(found.len(), 1, "{s:?}");
                    assert_eq!((found[0].address.as_str(), found[0].pid), ("127.0.0.1", Some(own)));
                }
                Facts::Fabric(f) => assert_eq!(f.with_address("127.0.0.1").unwrap().name, "lo"),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn interfaces_are_read_where_there_is_no_ip_program() {
    let folder = tempfile::tempdir().unwrap();
    // Only what the script needs, without `ip`: the shell's own look-up must fail.
    for name in ["date", "cat", "sed", "id", "ls", "sleep"] {
        let real = ["/bin", "/usr/bin"]
            .map(|d| Path::new(d).join(name))
            .into_iter()
            .find(|p| p.exists())
            .unwrap();
        std::os::unix::fs::symlink(real, folder.path().join(name)).unwrap();
    }
    let command = node::command(ask("docker", &[]), LIMIT);
    let text = command.render().replace("PATH=$PATH:/usr/sbin:/sbin", "PATH=$ONLY");
    let done = Process::new("/bin/sh")
        .args(["-c", &text])
        .env("ONLY", folder.path())
        .output()
        .unwrap();
    let printed = String::from_utf8(done.stdout.clone()).unwrap();
    assert!(printed.contains("@@ local"), "{printed}");
    let (facts, _) = parse(ProbeId::Node, &output(done.stdout, done.stderr, Exit::Code(0)));
    let fabric = facts
        .iter()
        .find_map(|f| if let Facts::Fabric(f) = f { Some(f) } else { None })
        .unwrap();
    assert_eq!(fabric.with_address("127.0.0.1").unwrap().name, "lo");
}

#[test]
fn a_verb_is_seen_running_lost_and_ended() {
    for shell in shells() {
        let home = tempfile::tempdir().unwrap();
        let base = home.path().join(".cache/bringup/sparks/verb");
        let look = || {
            let printed = run(&shell, &verb::command("sparks", LIMIT), home.path(), home.path());
            match parse(ProbeId::Verb, &printed).0.pop() {
                Some(Facts::Verb(facts)) => facts,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(look(), VerbFacts::None);
        fs::create_dir_all(&base).unwrap();
        fs::write(base.join("verb"), "worker\n").unwrap();
        fs::write(base.join("out"), "one\n\x1b[31mtwo\x1b[0m\n").unwrap();
        let mut watcher = Process::new("/bin/sh")
            .args(["-c", "read -r wait", "watcher"])
            .arg(&base)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        fs::write(base.join("pid"), format!("{}\n", watcher.id())).unwrap();
        let (verb, tail) = ("worker".to_owned(), vec!["one".to_owned(), "two".to_owned()]);
        let running = VerbFacts::Running {
            verb: verb.clone(),
            tail: tail.clone(),
        };
        assert_eq!(look(), running);
        watcher.stdin.take();
        watcher.wait().unwrap();
        assert!(matches!(
            look(),
            VerbFacts::Ended {
                code: verb::LOST_CODE,
                ..
            }
        ));
        fs::write(base.join("pid"), format!("{}\n", std::process::id())).unwrap();
        assert!(
            matches!(
                look(),
                VerbFacts::Ended {
                    code: verb::LOST_CODE,
                    ..
                }
            ),
            "another process has the number now"
        );
        fs::write(base.join("code"), "3\n").unwrap();
        assert_eq!(look(), VerbFacts::Ended { verb, code: 3, tail });
    }
}

/// A container in which nothing is but what is put there: the processes are this machine's.
const BARE: &str = r#"shift
[ "$1" = -i ] && shift
shift
if [ "$1" = python3 ]; then
  echo 'OCI runtime exec failed: exec: "python3": executable file not found in $PATH: unknown' >&2
  exit 127
fi
exec "$@"
"#;

#[test]
fn a_container_without_python_is_read_by_its_shell() {
    let folder = tempfile::tempdir().unwrap();
    tool(folder.path(), "docker", BARE);
    // Two lines, so that the shell stays beside its `sleep`.
    let odd = "say \"a\\b\"";
    tool(folder.path(), "vllm", "sleep 30\nexit 0\n");
    let mut marked = Process::new("/bin/sh")
        .arg(folder.path().join("vllm"))
        .args(["serve", odd])
        .env("BRINGUP_SERVE", "abc123")
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let mut found = Vec::new();
    for shell in shells() {
        let command = bringup::probe::serve::command("docker", "vllm-qwen35", LIMIT);
        let output = run(&shell, &command, folder.path(), folder.path());
        let (facts, problems) = parse(ProbeId::Serve, &output);
        assert_eq!(problems, [], "{shell:?} {}", output.error_text());
        let Some(Facts::Serve(serve)) = facts.into_iter().next() else {
            panic!("{shell:?}: {}", output.text())
        };
        let own = serve.processes.into_iter().find(|p| p.pid == marked.id());
        found.push((shell, own));
    }
    marked.kill().unwrap();
    marked.wait().unwrap();
    assert!(!found.is_empty());
    for (shell, own) in found {
        let own = own.unwrap_or_else(|| panic!("{shell:?} has not found it"));
        assert_eq!(own.mark.as_deref(), Some("abc123"), "{shell:?}");
        assert!(
            own.command.ends_with(&format!("vllm serve {odd}")),
            "{shell:?} {}",
            own.command
        );
        assert!(own.up_seconds.is_some_and(|s| s < 60), "{shell:?} {:?}", own.up_seconds);
    }
}

#[test]
fn a_container_with_neither_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let gone = r#"shift
[ "$1" = -i ] && shift
shift
echo "OCI runtime exec failed: exec: \"$1\": stat $1: no such file or directory: unknown" >&2
exit 127
"#;
    tool(folder.path(), "docker", gone);
    let command = bringup::probe::serve::command("docker", "vllm-qwen35", LIMIT);
    let output = run(&["/bin/sh"], &command, folder.path(), folder.path());
    let (_, problems) = parse(ProbeId::Serve, &output);
    let texts: Vec<&str> = problems.iter().map(|p| p.text.as_str()).collect();
    assert_eq!(texts, [bringup::probe::serve::UNSEEN]);
}
