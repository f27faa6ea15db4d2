//! The program that tells Ray's membership, run for real by the shells of this machine, with stand-ins for Docker and for Ray.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::Read as _;
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdout, Command as Process, Stdio};
use std::time::{Duration, Instant};

use bringup::domain::ray::{RayFacts, RayVia};
use bringup::probe::ray::{self, Reader};

use crate::scripts::{shells, tool};

/// Longest wait for what must come.
const PATIENCE: Duration = Duration::from_secs(40);

/// Docker's client: its end ends the input of what it has put into the container, and nothing else of it.
const DOCKER: &str = r#"[ "$1 $2 $3" = "exec -i vllm-qwen35" ] || exit 9
shift 3
cat | setsid "$@"
"#;

/// A client that ends with the program.
const AT_ONCE: &str = r#"shift 3
exec "$@"
"#;

/// Ray as far as the program knows it.
const PACKAGE: [(&str, &str); 3] = [
    ("__init__.py", "__version__ = '2.60.0'\n"),
    (
        "_raylet.py",
        "class GcsClientOptions:
    @staticmethod
    def create(address, cluster, allow_cluster_id_nil, fetch_cluster_id_if_nil):
        return address
",
    ),
    (
        "_private/state.py",
        "class State:
    def _initialize_global_state(self, options):
        self.address = options

    def node_table(self):
        print('a line of somebody else')
        return [
            {'NodeID': 'bb', 'Alive': False, 'NodeManagerAddress': '10.0.0.2', 'Resources': {}, 'DeathReasonMessage': 'killed'},
            {'NodeID': 'aa', 'Alive': True, 'NodeManagerAddress': '10.0.0.1', 'Resources': {'GPU': 1.0, 'node:__internal_head__': 1.0}},
        ]

    def placement_group_table(self):
        return {
            '39': {'placement_group_id': '39', 'state': 'PENDING', 'bundles': {0: {'GPU': 1.0}, 1: {'GPU': 1.0}}, 'stats': {}},
            '40': {'placement_group_id': '40', 'state': 'CREATED', 'bundles': {}},
        }

state = State()
",
    ),
];

fn package(folder: &Path) {
    fs::create_dir_all(folder.join("ray/_private")).unwrap();
    fs::write(folder.join("ray/_private/__init__.py"), "").unwrap();
    for (name, text) in PACKAGE {
        fs::write(folder.join("ray").join(name), text).unwrap();
    }
}

fn start(shell: &[&str], port: u16, tools: &Path) -> Child {
    let command = ray::command("docker", "vllm-qwen35", port, Duration::from_secs(10));
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
    Process::new(shell[0])
        .args(&shell[1..])
        .args(["-c", &command.render()])
        .env("PATH", path)
        .env("PYTHONPATH", tools)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap()
}

/// Reads until so many records have come.
fn records(out: &mut ChildStdout, enough: usize) -> Vec<RayFacts> {
    let (mut reader, begun) = (Reader::default(), Instant::now());
    let (mut found, mut bytes) = (Vec::new(), [0; 4096]);
    while found.len() < enough {
        assert!(begun.elapsed() < PATIENCE, "{} records came", found.len());
        let n = out.read(&mut bytes).unwrap();
        assert!(n > 0, "it ended");
        found.extend(reader.feed(&bytes[..n]));
    }
    found
}

#[test]
fn records_come_for_as_long_as_the_client_is_there_and_nothing_is_left_after_it() {
    let folder = tempfile::tempdir().unwrap();
    tool(folder.path(), "docker", DOCKER);
    package(folder.path());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    for shell in shells() {
        let mut child = start(&shell, port, folder.path());
        let mut out = child.stdout.take().unwrap();
        let found = records(&mut out, 2);
        let ray = &found[1];
        assert_eq!(
            (ray.via, ray.version.as_deref()),
            (RayVia::Container, Some("2.60.0")),
            "{shell:?}"
        );
        assert_eq!(ray.alive_at("10.0.0.1").map(|n| (n.head, n.gpus)), Some((true, 1.0)));
        assert_eq!(ray.dead_at("10.0.0.2")[0].message.as_deref(), Some("killed"));
        let waits: Vec<String> = ray.pending.iter().map(|g| g.wants()).collect();
        assert_eq!((waits, &ray.pending_unknown), (vec!["2 x GPU 1".to_owned()], &None));
        // As the wrapper does at the end of the channel. The program in the container is in no group of ours.
        let group = format!("-{}", child.id());
        let killed = Process::new("kill")
            .args(["-s", "KILL", "--", &group])
            .status()
            .unwrap();
        assert!(killed.success());
        child.wait().unwrap();
        let mut rest = Vec::new();
        out.read_to_end(&mut rest).unwrap();
    }
}

#[test]
fn a_ray_that_does_not_listen_is_told_at_once() {
    let folder = tempfile::tempdir().unwrap();
    tool(folder.path(), "docker", AT_ONCE);
    package(folder.path());
    // Nobody listens where somebody just did.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for shell in shells() {
        let begun = Instant::now();
        let done = start(&shell, port, folder.path()).wait_with_output().unwrap();
        assert_eq!(done.status.code(), Some(1), "{shell:?}");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(said.contains(&format!("nothing listens at 127.0.0.1:{port}")), "{said}");
        assert!(begun.elapsed() < PATIENCE);
    }
}
