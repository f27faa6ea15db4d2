//! Real `sshd`s on loopback: a jump host, and nodes at addresses of their own that share its port.

use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::PATIENCE;

/// Nodes behind the jump host.
pub const NODES: usize = 64;

/// Lines of the file that is read through the nodes.
pub const BULK_LINES: u64 = 2_000_000;

/// One of them, its end included: 94 bytes, as in the logs of a container that prints numbered lines.
const BULK_LINE: usize = 94;

/// Where a client goes, and what it logs in with.
pub struct Place {
    pub jump: String,
    pub nodes: Vec<String>,
    pub port: u16,
    pub user: String,
    pub key: PathBuf,
    pub known_hosts: PathBuf,
}

/// The servers; they end with it.
pub struct Servers {
    pub folder: TempDir,
    pub port: u16,
    pub user: String,
    processes: Vec<Child>,
}

impl Servers {
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let port = free_port();
        let mut servers = Self {
            folder,
            port,
            user: text(Command::new("id").arg("-un")),
            processes: Vec::new(),
        };
        servers.keys();
        servers.bulk_file();
        std::fs::create_dir_all(servers.home()).expect("a home");
        std::fs::create_dir_all("/run/sshd").expect("sshd's empty folder: this wants root");
        for n in 0..=NODES {
            let address = if n == 0 { jump() } else { node(n - 1) };
            servers.sshd(address);
        }
        for n in 0..=NODES {
            let address = if n == 0 { jump() } else { node(n - 1) };
            listening(address, port);
        }
        servers
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The home of the login's shell: an empty one, so that nobody's start-up files are measured.
    fn home(&self) -> PathBuf {
        self.path("home")
    }

    fn bulk(&self) -> PathBuf {
        self.path("bulk")
    }

    /// Prints the long file.
    pub fn print_bulk(&self) -> Vec<String> {
        vec!["cat".to_owned(), shown(&self.bulk())]
    }

    /// Prints the same, a line at a time, as `docker logs` does.
    pub fn print_lines(&self) -> Vec<String> {
        let line = format!("bs={}", BULK_LINE);
        ["dd", &line, "status=none", &format!("if={}", shown(&self.bulk()))]
            .map(str::to_owned)
            .to_vec()
    }

    pub fn place(&self) -> Place {
        Place {
            jump: jump().to_string(),
            nodes: (0..NODES).map(|n| node(n).to_string()).collect(),
            port: self.port,
            user: self.user.clone(),
            key: self.path("id"),
            known_hosts: self.path("known_hosts"),
        }
    }

    fn keys(&self) {
        for name in ["host", "id"] {
            let mut keygen = Command::new("ssh-keygen");
            keygen
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(self.path(name));
            assert!(keygen.status().expect("ssh-keygen").success());
        }
        std::fs::copy(self.path("id.pub"), self.path("authorized")).expect("a key");
        let host = std::fs::read_to_string(self.path("host.pub")).expect("a key");
        let key: Vec<&str> = host.split_whitespace().take(2).collect();
        let known: String = (0..=NODES)
            .map(|n| if n == 0 { jump() } else { node(n - 1) })
            .map(|address| format!("[{address}]:{} {}\n", self.port, key.join(" ")))
            .collect();
        std::fs::write(self.path("known_hosts"), known).expect("a file");
        std::fs::set_permissions(self.path("id"), PermissionsExt::from_mode(0o600)).expect("a mode");
    }

    fn bulk_file(&self) {
        let mut text = String::new();
        for n in 0..BULK_LINES {
            let start = format!("{n:>10} ");
            text.push_str(&start);
            text.extend(std::iter::repeat_n('x', BULK_LINE - 1 - start.len()));
            text.push('\n');
        }
        std::fs::write(self.bulk(), text).expect("a file");
    }

    fn sshd(&mut self, address: Ipv4Addr) {
        let config = format!(
            "ListenAddress {address}\nPort {}\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPidFile none\nLogLevel ERROR\nPermitRootLogin yes\nSetEnv HOME={}\n",
            self.port,
            self.path("host").display(),
            self.path("authorized").display(),
            self.home().display()
        );
        let file = self.path(&format!("sshd-{address}"));
        std::fs::write(&file, config).expect("a file");
        let process = Command::new("/usr/sbin/sshd")
            .args(["-D", "-e", "-f"])
            .arg(file)
            .stdin(Stdio::null())
            // It tells of every look whether it listens.
            .stderr(Stdio::null())
            .spawn()
            .expect("sshd");
        self.processes.push(process);
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for process in &mut self.processes {
            // One that is gone already needs no end.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// The jump host's address.
pub fn jump() -> Ipv4Addr {
    Ipv4Addr::LOCALHOST
}

/// A node's address.
pub fn node(n: usize) -> Ipv4Addr {
    Ipv4Addr::new(127, 1, 0, u8::try_from(n + 1).expect("fewer than 255 nodes"))
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a port");
    listener.local_addr().expect("an address").port()
}

fn listening(address: Ipv4Addr, port: u16) {
    let end = Instant::now() + PATIENCE;
    while TcpStream::connect((IpAddr::V4(address), port)).is_err() {
        assert!(Instant::now() < end, "no sshd at {address}:{port}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn text(command: &mut Command) -> String {
    let output = command.output().expect("a program");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A path as an ssh_config takes it.
pub fn shown(path: &Path) -> String {
    path.display().to_string()
}
