//! Followed logs while the way to them breaks and the logs are rotated: no line is lost and none comes twice, or the console says that some are missing.

use std::collections::BTreeMap;
use std::time::Duration;

use super::hosts::{self, Lab, bounded, wait_for};
use super::operator::{Operator, now_ms};

/// Both nodes behind the bastion: the head's log is its container's, the worker's a file.
pub const TWO: &str = r#"
[cluster]
name = "lab"

[ssh]
user = "spark"
keys = ["@KEYS@/op"]
known_hosts = ["@KEYS@/known_hosts"]
agent = false

[[ssh.jump]]
name = "gate"
host = "10.1.230.5"

[[node]]
name = "spark-1"
role = "head"
address = "192.168.200.12"
fabric_address = "192.168.200.12"

[[node]]
name = "spark-2"
role = "worker"
address = "192.168.200.13"
fabric_address = "192.168.200.13"

[engine]
kind = "vllm-ray"

[container]
image = "lab/busybox:1"
name = "vllm-qwen35"

[serve]
model = "qwen35"

[logs]
worker = "file:/home/spark/run.log"
"#;

/// Prints numbered lines on both outputs, on after a restart; ends between two numbers.
const CONTAINER: &str = r#"n=$(cat /n 2>/dev/null || echo 0)
trap end=1 TERM
while [ -z "$end" ]; do n=$((n+1)); echo "out $n"; echo "err $n" >&2; sleep 0.02; done
echo $n >/n"#;

/// Writes numbered lines into a file that it holds open until it is told to open it anew, as a program does whose log is rotated.
const FILE: &str = r#"cd /home/spark || exit
exec 3>>run.log
echo $$ >writer.pid
n=0
while [ ! -e end ]; do
  n=$((n+1)); echo "out $n" >&3
  [ ! -e anew ] || { rm anew; exec 3>>run.log; }
  sleep 0.02
done
echo $n >last"#;

/// Longest way back after a fault is over: the longest pause between two tries, and handshakes on a busy machine.
pub const BACK: Duration = Duration::from_secs(90);

/// Longest wait for a line that was written.
const READ: Duration = Duration::from_secs(60);

/// Breaks or mends something.
pub fn fault(words: &[&str]) {
    let out = bounded(
        &mut hosts::script(&[&["fault"], words].concat()),
        Duration::from_secs(60),
    );
    assert!(
        out.status.success(),
        "{words:?}: {}",
        String::from_utf8_lossy(&out.stderr)
    );
}

/// Waits until both nodes were up after a moment, and are.
pub fn both_up(operator: &Operator) {
    for node in ["node 0", "node 1"] {
        wait_for(BACK, "a node is up", || match operator.now(node).as_str() {
            "up" => Ok(()),
            other => Err(format!("{node}: {other}")),
        });
    }
}

/// A line of ours, with its number.
fn number(line: &str) -> Option<(&str, u64)> {
    let (kind, n) = line[2..].split_once(' ')?;
    let own = (line.starts_with('1') && kind == "out") || (line.starts_with('2') && kind == "err");
    Some((kind, n.parse().ok()?)).filter(|_| own)
}

/// What the console says in the log where the container ended.
const ENDED: &str = "… vllm-qwen35 ended with exit code";

/// What is wrong with numbered lines, and what other lines stand among them.
fn judge(lines: &[String]) -> (Vec<String>, Vec<&str>) {
    let (mut last, mut wrong, mut other) = (BTreeMap::new(), Vec::new(), Vec::new());
    for line in lines {
        let Some((kind, n)) = number(line) else {
            // A last one may come just after what is waited for, or not yet.
            if !line.contains(ENDED) {
                other.push(line.as_str());
            }
            continue;
        };
        let before = last.insert(kind, n).unwrap_or(0);
        if n != before + 1 {
            wrong.push(format!("{kind} {n} after {before}"));
        }
    }
    (wrong, other)
}

/// Waits until the console has this line of a node.
fn read_to(operator: &Operator, node: u16, line: &str) -> Vec<String> {
    wait_for(READ, line, || {
        let lines = operator.lines(node);
        if lines.iter().any(|l| l == line) {
            Ok(lines)
        } else {
            Err(format!("{:?}", lines.last()))
        }
    })
}

/// Starts the numbered container, whose log is cut into files of such a size.
pub fn start_container(lab: &Lab, size: &str, files: &str) {
    let body = CONTAINER.replace('\'', "'\\''");
    lab.on(
        "spark1",
        &format!(
            "docker run -d --name vllm-qwen35 --log-opt max-size={size} --log-opt max-file={files} lab/busybox:1 sh -c '{body}'"
        ),
    );
}

/// Stops it, and gives its last number.
pub fn stop_container(lab: &Lab) -> String {
    lab.on(
        "spark1",
        "docker stop vllm-qwen35 && docker cp vllm-qwen35:/n - | tar -xO",
    )
    .lines()
    .last()
    .unwrap()
    .to_owned()
}

/// Every break of the way that there is, a restart of the container, and rotations all the while.
pub fn no_line_lost(lab: &Lab) {
    start_container(lab, "20k", "50");
    let body = FILE.replace('\'', "'\\''");
    lab.on(
        "spark2",
        &format!("setsid sh -c '{body}' </dev/null >/dev/null 2>&1 & sleep 1; test -s /home/spark/writer.pid"),
    );
    let operator = Operator::start(lab, "no-line-lost", TWO);
    both_up(&operator);
    read_to(&operator, 0, "1 out 100");
    read_to(&operator, 1, "1 out 100");

    let rotate = |to: &str, pause: &str| {
        let file = "/home/spark/run.log";
        lab.on(
            "spark2",
            &format!("mv {file} {file}.{to}; sleep {pause}; : >/home/spark/anew"),
        );
    };
    rotate("1", "1");
    for _ in 0..2 {
        for host in ["spark1", "spark2"] {
            let since = now_ms();
            fault(&["sshd-drop", host]);
            let node = if host == "spark1" { "node 0" } else { "node 1" };
            operator.wait(node, "down", since, BACK);
        }
        both_up(&operator);
    }
    fault(&["sshd-drop", "jump"]);
    rotate("2", "0");
    both_up(&operator);
    lab.say("  connections dropped");

    let since = now_ms();
    for end in ["spark1:enp1s0f1np1", "spark2:enp1s0f1np1"] {
        fault(&["link-down", end]);
    }
    operator.wait("node 0", "down", since, BACK);
    rotate("3", "1");
    operator.wait("node 1", "down", since, BACK);
    for end in ["spark1:enp1s0f1np1", "spark2:enp1s0f1np1"] {
        fault(&["link-up", end]);
    }
    both_up(&operator);
    lab.say("  cables pulled for longer than the give-up, the file rotated meanwhile");

    lab.on("spark1", "docker restart vllm-qwen35");
    std::thread::sleep(Duration::from_secs(5));
    lab.say("  container restarted");

    let last = stop_container(lab);
    let of_container = read_to(&operator, 0, &format!("1 out {last}"));
    lab.on("spark2", "touch /home/spark/end");
    let last_of_file = wait_for(READ, "the file's last line", || {
        lab.try_on("spark2", "cat /home/spark/last")
    });
    let of_file = read_to(&operator, 1, &format!("1 out {}", last_of_file.trim()));
    operator.stop();
    lab.on("spark1", "docker rm vllm-qwen35");
    lab.on(
        "spark2",
        "cd /home/spark; rm -f run.log run.log.? last end anew writer.pid",
    );
    for (name, lines) in [("container", &of_container), ("file", &of_file)] {
        let (wrong, other) = judge(lines);
        lab.say(&format!(
            "  {name}: {} lines, others: {other:?}, wrong: {wrong:?}",
            lines.len()
        ));
    }
    assert!(of_container.iter().any(|l| l.contains(ENDED)), "the restart is told");
    for lines in [of_container, of_file] {
        let (wrong, other) = judge(&lines);
        assert_eq!(wrong, [""; 0]);
        assert_eq!(other, [""; 0]);
    }
}

/// What Docker threw away while nobody listened is gone, and the console says so where it is missing.
pub fn missing_lines_are_told(lab: &Lab) {
    start_container(lab, "10k", "2");
    let operator = Operator::start(lab, "missing-lines", TWO);
    wait_for(BACK, "the head is up", || match operator.now("node 0").as_str() {
        "up" => Ok(()),
        other => Err(other.to_owned()),
    });
    read_to(&operator, 0, "1 out 200");
    let since = now_ms();
    fault(&["sshd-drop", "spark1"]);
    fault(&["reject", "spark1", "22"]);
    operator.wait("node 0", "down", since, BACK);
    std::thread::sleep(Duration::from_secs(10));
    fault(&["clear"]);
    wait_for(BACK, "the head is up again", || match operator.now("node 0").as_str() {
        "up" => Ok(()),
        other => Err(other.to_owned()),
    });
    let last = stop_container(lab);
    let lines = read_to(&operator, 0, &format!("1 out {last}"));
    operator.stop();
    lab.on("spark1", "docker rm vllm-qwen35");
    let (wrong, other) = judge(&lines);
    lab.say(&format!("  {} lines, others: {other:?}, wrong: {wrong:?}", lines.len()));
    let gaps: Vec<usize> = (1..lines.len())
        .filter(|n| number(&lines[*n]).is_none() && lines[*n].contains("are missing here"))
        .collect();
    assert!(!gaps.is_empty() && !wrong.is_empty(), "{other:?}, {wrong:?}");
    // Each output has its own gap, and what is before and after it is whole and comes once.
    assert_eq!(wrong.len(), 2, "{wrong:?}");
    assert_eq!(other.len(), gaps.len(), "{other:?}");
}
