//! The whole job in the lab: real sshd, Docker engines and Ray (`tests/lab/README.md`), looked at from outside and not through the console.
//!
//! Runs with `BRINGUP_LAB=1`, as root on Debian; else it says that it was left out. One lab serves all jobs, one after the other, and is taken down
//! at the end, also when a job fails; `BRINGUP_LAB_JOB=script` runs only the jobs whose names hold that word. Each job ends with nothing of the console's left on the hosts.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so")]
#![expect(clippy::print_stdout, reason = "a test of minutes says where it is")]

#[path = "lab/job/console.rs"]
mod console;
#[path = "lab/job/hosts.rs"]
mod hosts;
#[path = "lab/job/links.rs"]
mod links;
#[path = "lab/job/logins.rs"]
mod logins;
#[path = "lab/job/members.rs"]
mod members;
#[path = "lab/job/one_node.rs"]
mod one_node;
#[path = "lab/job/operator.rs"]
mod operator;
#[path = "lab/job/outside.rs"]
mod outside;
#[path = "lab/job/relay.rs"]
mod relay;
#[path = "lab/job/resume.rs"]
mod resume;
#[path = "lab/job/script.rs"]
mod script;
#[path = "lab/job/sources.rs"]
mod sources;
#[path = "lab/job/vllm_ray.rs"]
mod vllm_ray;
#[path = "lab/job/way_in.rs"]
mod way_in;

use hosts::Lab;

/// One thing that is done in the lab and leaves it as it was.
type Job = fn(&Lab);

#[test]
fn the_lab() {
    if std::env::var("BRINGUP_LAB").as_deref() != Ok("1") {
        println!("left out: the lab runs with BRINGUP_LAB=1, as root on Debian");
        return;
    }
    let lab = Lab::up();
    let jobs: [(&str, Job); 16] = [
        ("an unknown host key is named with its cure", logins::unknown_host_key),
        ("a refused key is named with its hop and its cure", logins::refused_key),
        ("hosts that can't be logged in to", way_in::refused),
        ("hosts that refuse something after the login", way_in::half_open),
        ("logs: no line lost, none twice", resume::no_line_lost),
        ("logs: missing lines are told", resume::missing_lines_are_told),
        (
            "membership: a wrong address, a host without power",
            members::told_as_it_is,
        ),
        ("logs: the newest container of a pattern, and its end", sources::pattern),
        ("logs: a silent driver's worker shows its own", sources::silent_driver),
        ("links: silence and a reset are shown", links::shown),
        (
            "vllm-ray: killed in mid-load, adopted, measured, stopped, served again",
            vllm_ray::whole_job,
        ),
        (
            "login = jump: the whole job on a head that opens to the jump host alone",
            relay::whole_job,
        ),
        ("script: the whole job", script::whole_job),
        ("script: Ray on the head's external address", script::own_address),
        ("script: the worker on its second interface", script::second_interface),
        (
            "one node: killed while it follows a log; a server that dies at its first token",
            one_node::dies_at_its_first_token,
        ),
    ];
    let before = outside::processes(&lab);
    let asked = std::env::var("BRINGUP_LAB_JOB").unwrap_or_default();
    let wanted: Vec<_> = jobs.into_iter().filter(|(name, _)| name.contains(&asked)).collect();
    assert!(!wanted.is_empty(), "no job is named {asked:?}");
    for (name, job) in wanted {
        lab.say(name);
        job(&lab);
        outside::nothing_left(&lab, &before);
    }
    lab.say("done");
}
