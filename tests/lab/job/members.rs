//! Ray's membership as it is, from the head's container: a wrong address is named, and a host without power does not answer while Ray still says alive.

use std::time::Duration;

use super::console::Console;
use super::hosts::Lab;
use super::operator::{Operator, now_ms};
use super::outside;
use super::resume::{both_up, fault};

const TEMPLATE: &str = include_str!("../vllm-ray.toml");

/// Longest start of Ray and its first answer to the console, on a machine that is busy with two of them.
const JOINED: Duration = Duration::from_secs(120);

/// A host that says nothing is told within this; a machine that is busy is late.
const SHOWN: Duration = Duration::from_secs(6);
const LATE: Duration = Duration::from_secs(10);

/// Ray calls a host dead that fell silent after about a minute.
const DEAD: Duration = Duration::from_secs(180);

/// Starts Ray in a container, as any launcher does.
fn start(lab: &Lab, node: &str, arguments: &str) {
    let run = format!(
        "docker run -d --name {} --network host --shm-size 2g --entrypoint ray lab/vllm-ray:1 start --block --num-gpus 1 {arguments}",
        outside::NAME
    );
    lab.on(node, &run);
}

fn remove(lab: &Lab, node: &str) {
    lab.on(node, &format!("docker rm -f {}", outside::NAME));
}

/// A worker at a wrong address; one at the right one, whose host loses its power; a console that is killed.
pub fn told_as_it_is(lab: &Lab) {
    start(
        lab,
        "spark1",
        "--head --port 6379 --node-ip-address 192.168.200.12 --include-dashboard=false",
    );
    let worker = "--address=192.168.200.12:6379 --node-ip-address";
    let operator = Operator::start(lab, "members", TEMPLATE);
    both_up(&operator);
    operator.wait("ray 0", "alive", 0, JOINED);
    assert_eq!(operator.now("ray from"), "Python in the container");
    start(lab, "spark2", &format!("{worker} 192.168.201.13"));
    operator.wait("ray 1", "wrong-address 192.168.201.13", 0, JOINED);
    let console = Console::new(lab, "members-status", TEMPLATE, &[]);
    let ray = console.status(4)["ray"].clone();
    assert_eq!(ray["expected"][1]["registered_as"], "192.168.201.13", "{ray}");
    assert_eq!(ray["expected"][1]["address"], "192.168.200.13", "{ray}");
    lab.say("  a wrong address is named");

    remove(lab, "spark2");
    let since = now_ms();
    start(lab, "spark2", &format!("{worker} 192.168.200.13"));
    operator.wait("ray 1", "alive", since, JOINED);
    let since = now_ms();
    fault(&["power-off", "spark2"]);
    let told = operator.wait("ray 1", "alive, not answering", since, SHOWN + LATE);
    lab.say(&format!(
        "  a host without power: not answering after {} ms, while Ray says alive",
        told.at - since
    ));
    let dead = operator.wait("ray 1", "dead, not answering", since, DEAD);
    lab.say(&format!("  Ray says dead after {} ms", dead.at - since));
    fault(&["power-on", "spark2"]);
    both_up(&operator);
    // Its container has ended with its power, and Ray has its own word for that.
    let told = operator.now("ray 1");
    assert!(told.starts_with("dead"), "{told}");

    // Dropped, it is killed: what it had put into the head's container must end by itself.
    drop(operator);
    outside::console_gone(lab, &["spark1", "spark2"]);
    lab.say("  nothing is left in the container of a console that was killed");
    for node in ["spark1", "spark2"] {
        remove(lab, node);
    }
}
