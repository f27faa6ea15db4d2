//! A container's log of two million lines, read by either side from a node of the lab: Docker's engine sets the time, so only the client's CPU is held
//! against a bound. Run it as the lab's operator: `lab.sh up bare`, then `lab.sh op cargo bench --bench ssh -- docker`.

use std::path::PathBuf;
use std::process::Command;

use super::bulk;
use super::measure::Row;
use super::openssh::OpenSsh;
use super::ours::Ours;
use super::servers::{BULK_LINES, Place};

/// The container that has printed them.
const NAME: &str = "bringup-bench";

/// Where the lab's hosts are, as its operator sees them.
fn place() -> Place {
    let lab =
        std::env::var_os("BRINGUP_LAB_DIR").map_or_else(|| std::env::temp_dir().join("bringup-lab"), PathBuf::from);
    Place {
        jump: "10.1.230.180".to_owned(),
        nodes: vec!["192.168.200.13".to_owned()],
        port: 22,
        user: "spark".to_owned(),
        key: lab.join("keys/op"),
        known_hosts: lab.join("keys/known_hosts"),
    }
}

pub async fn row() -> Vec<Row> {
    let folder = tempfile::tempdir().expect("a folder");
    let theirs = OpenSsh::new(place(), folder.path());
    let ours = Ours::new(place());
    let config = folder.path().join("ssh_config");
    // Lines as long as those of the file.
    let print = format!(r#"BEGIN {{ for (n = 0; n < {BULK_LINES}; n++) printf "%10d %082d\n", n, 0 }}"#);
    let remove = format!("docker rm -f {NAME} >/dev/null 2>&1");
    on_node(
        &config,
        &format!("{remove}; docker run --name {NAME} lab/busybox:1 awk '{print}' >/dev/null"),
    );
    let mut rows = bulk(
        &ours,
        &theirs,
        &["docker".to_owned(), "logs".to_owned(), NAME.to_owned()],
        "of docker logs",
    )
    .await;
    on_node(&config, &remove);
    // Its time is Docker's.
    rows.truncate(1);
    rows
}

fn on_node(config: &std::path::Path, line: &str) {
    let status = Command::new("ssh")
        .arg("-F")
        .arg(config)
        .args([&place().nodes[0], line])
        .status();
    assert!(status.expect("ssh").success(), "{line}");
}
