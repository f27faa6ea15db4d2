//! Where a log is read from: what Ray's workers write themselves while the driver says nothing, and containers whose names nobody knew beforehand.

use std::time::Duration;

use super::hosts::{Lab, wait_for};
use super::operator::Operator;
use super::resume::{BACK, TWO, both_up};

/// Longest wait for what the driver's silence brings: a minute of it, and the start of a server on a busy machine.
const SILENCE: Duration = Duration::from_secs(240);

/// Longest wait for a line.
const READ: Duration = Duration::from_secs(60);

/// Waits for a line of a node's log that holds a text, and gives the lines from it on.
fn from_line(operator: &Operator, node: u16, text: &str, limit: Duration) -> Vec<String> {
    wait_for(limit, text, || {
        let mut lines = operator.lines(node);
        match lines.iter().position(|l| l.contains(text)) {
            Some(at) => Ok(lines.split_off(at)),
            None => Err(format!("{:?}", lines.iter().rev().take(5).collect::<Vec<_>>())),
        }
    })
}

/// A load that stalls: the driver prints nothing more, and the worker's pane shows what the worker's own node has. It ends with the server.
pub fn silent_driver(lab: &Lab) {
    let script = "VLLM_STANDIN_FAULT=load-stall VLLM_STANDIN_LOAD_S=10 /home/spark/spark-vllm.sh";
    lab.on("spark1", &format!("{script} head"));
    lab.on("spark2", &format!("{script} worker"));
    wait_for(READ, "two nodes in Ray", || {
        let said = lab.try_on("spark1", "docker exec vllm-qwen35 ray status")?;
        if said.contains("0.0/2.0 GPU") {
            Ok(())
        } else {
            Err(said)
        }
    });
    let config = TWO.replace("[logs]\nworker = \"file:/home/spark/run.log\"\n", "");
    let operator = Operator::start(lab, "silent-driver", &config);
    both_up(&operator);
    lab.on("spark1", &format!("{script} serve"));
    let shown = from_line(&operator, 1, "from here Ray's own logs", SILENCE);
    lab.say("  the driver is silent, and the worker shows Ray's own logs");
    let own = from_line(&operator, 1, "pid=", READ);
    assert!(
        own.first().is_some_and(|l| l[2..].starts_with('(')),
        "{shown:?}, {own:?}"
    );

    lab.on("spark1", "pkill -f '[v]llm serve'");
    from_line(&operator, 1, "end of Ray's own logs", READ);
    operator.stop();
    for host in ["spark1", "spark2"] {
        lab.on(host, "/home/spark/spark-vllm.sh stop");
    }
}

/// The newest of those that fit a pattern is followed; one that is removed with its end leaves its last lines and how it ended.
pub fn pattern(lab: &Lab) {
    let config = TWO.replace(
        "worker = \"file:/home/spark/run.log\"",
        "head = \"container:node-*\"\nworker = \"command:echo one; echo two >&2; exec sleep 1000\"",
    );
    let operator = Operator::start(lab, "pattern", &config);
    both_up(&operator);
    let run = |name: &str, body: &str| {
        lab.on(
            "spark1",
            &format!("docker run -d --rm --name {name} lab/busybox:1 sh -c '{body}'"),
        );
    };
    run("node-17", "echo first; sleep 1000");
    from_line(&operator, 0, "first", READ);
    run("node-4711", "echo second; sleep 12; echo last; exit 3");
    let lines = from_line(&operator, 0, "from here docker logs node-4711, the newest of 2", READ);
    assert!(!lines.iter().any(|l| l.ends_with("first")), "{lines:?}");
    let lines = from_line(&operator, 0, "node-4711 ended with exit code 3", READ);
    lab.say("  the newest was followed, and how it ended is told though it is gone");
    let before = operator.lines(0);
    assert!(before.iter().any(|l| l.ends_with("last")), "{before:?}");
    assert!(!lines.iter().any(|l| l.ends_with("last")), "{lines:?}");
    from_line(&operator, 0, "from here docker logs node-17", BACK);
    let own = operator.lines(1);
    assert_eq!(own.iter().filter(|l| l.ends_with("one")).count(), 1, "{own:?}");
    assert_eq!(own.iter().filter(|l| l.ends_with("two")).count(), 1, "{own:?}");
    operator.stop();
    lab.on("spark1", "docker rm -f node-17");
}
