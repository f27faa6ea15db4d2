//! The answers of the demo's Docker, as the client gives them.

use super::*;
use crate::sim::clock::{Calendar, Pace};

fn words(text: &str) -> Vec<String> {
    shlex::split(text).unwrap()
}

fn ask(world: &mut World, node: usize, text: &str, at: u64) -> (String, String, u32) {
    match answer(world, node, &words(text), None, Duration::from_secs(at)) {
        Answer::Once { writes, code, .. } => {
            let of = |err| {
                writes
                    .iter()
                    .filter(|w| w.err == err)
                    .map(|w| w.text.as_str())
                    .collect::<String>()
            };
            (of(false), of(true), code)
        }
        other @ (Answer::Log(_) | Answer::Readings(_) | Answer::Members { .. } | Answer::Silence { .. }) => {
            (format!("{other:?}"), String::new(), 0)
        }
    }
}

fn world() -> World {
    World::new(2, Pace::new(1.0), Calendar::at(Duration::from_secs(1_795_978_690)))
}

const HEAD: &str = "run -d --name v --label io.bringup.role=head --network host --gpus all --shm-size 16g --ulimit memlock=-1 --cap-add IPC_LOCK --device /dev/infiniband -e VLLM_HOST_IP=192.168.200.12 -v /a:/b --entrypoint ray hellohal2064/vllm-qwen3.5-gb10 start --block --head --port 6379 --node-ip-address 192.168.200.12";

#[test]
fn a_container_is_run_stopped_and_removed() {
    let mut w = world();
    let (id, err, code) = ask(&mut w, 0, HEAD, 1);
    assert_eq!((id.trim().len(), err.as_str(), code), (64, "", 0));
    let c = w.hosts[0].find("v").unwrap();
    assert_eq!(c.labels.get("io.bringup.role").map(String::as_str), Some("head"));
    assert_eq!(c.env("VLLM_HOST_IP"), Some("192.168.200.12"));
    assert!(c.devices.contains("/dev/infiniband") && c.gpus == 1);
    assert_eq!(ask(&mut w, 0, HEAD, 2).2, 125);
    assert_eq!(ask(&mut w, 0, "rm v", 3).2, 1, "a running container is not removed");
    assert_eq!(ask(&mut w, 0, "stop -t 10 v", 4), ("v\n".into(), String::new(), 0));
    assert_eq!(ask(&mut w, 0, "rm v", 8).2, 0);
    let events = crate::probe::ends::command("docker", id.trim(), Duration::ZERO).line();
    let events = ask(&mut w, 0, events.trim_start_matches("docker "), 9);
    assert!(
        events.0.ends_with("000000000 die 0\n"),
        "its end is remembered: {events:?}"
    );
    // As the rule for a container that was stopped asks for it, whether it is still there or not.
    let asked = "events --since 24h --until 0s --filter container=v";
    let (out, err, code) = ask(&mut w, 0, asked, 9);
    let die = format!("container die {} (exitCode=0, name=v)\n", id.trim());
    assert!(out.ends_with(&die) && out.lines().count() == 1, "{out}");
    assert_eq!((err.as_str(), code), ("", 0));
    assert_eq!(
        ask(&mut w, 0, "stop v", 9).1,
        "Error response from daemon: No such container: v\n"
    );
}

#[test]
fn a_server_is_started_by_exec_in_a_container_that_runs() {
    let mut w = world();
    let serve = "exec -d -e BRINGUP_SERVE=h -e RAY_ADDRESS=192.168.200.12:6379 v /bin/sh -c 'exec vllm serve m --port 8000 -tp 1 >>/proc/1/fd/1 2>&1'";
    assert_eq!(
        ask(&mut w, 0, serve, 0).1,
        "Error response from daemon: No such container: v\n"
    );
    ask(&mut w, 0, HEAD, 1);
    assert_eq!(ask(&mut w, 0, serve, 5).2, 0);
    let s = &w.servers[0];
    assert_eq!(
        (s.mark.as_deref(), s.spec.model.as_str(), s.spec.port),
        (Some("h"), "m", 8000)
    );
    assert!(s.marks.is_some());
}

#[test]
fn a_secret_reaches_the_environment_by_name_only() {
    let mut w = world();
    ask(&mut w, 0, HEAD, 1);
    let exec = words("exec -d -e VLLM_API_KEY v vllm serve m");
    answer(&mut w, 0, &exec, Some(("VLLM_API_KEY", "s3")), Duration::from_secs(5));
    assert_eq!(w.servers[0].spec.api_key.as_deref(), Some("s3"));
}

#[test]
fn a_missing_image_is_pulled_and_an_unknown_one_is_refused() {
    let mut w = world();
    w.hosts[1].images.clear();
    let (out, _, code) = ask(&mut w, 1, "pull hellohal2064/vllm-qwen3.5-gb10", 0);
    assert!(code == 0 && out.contains("Pull complete") && out.contains("Status: Downloaded newer image"));
    assert_eq!(w.hosts[1].images[IMAGE].layers, w.hosts[0].images[IMAGE].layers);
    assert!(
        ask(&mut w, 1, "pull hellohal2064/vllm-qwen3.5-gb10", 9)
            .0
            .contains("up to date")
    );
    assert!(
        ask(&mut w, 1, "pull nobody/nothing", 9)
            .1
            .contains("pull access denied for nobody/nothing")
    );
}

#[test]
fn what_is_not_known_answers_127() {
    let mut w = world();
    for text in ["swarm init", "ps --format x", "run alpine true", "run --rm alpine true"] {
        let code = ask(&mut w, 0, text, 0).2;
        assert!(code == 127 || code == 125, "{text}: {code}");
    }
    assert_eq!(ask(&mut w, 0, "swarm init", 0).1, "sh: 1: docker swarm: not found\n");
}

#[test]
fn a_log_is_read_from_a_date_on() {
    let mut w = world();
    ask(&mut w, 0, HEAD, 1);
    let at = Duration::from_secs(9);
    let from = |w: &mut World, text: &str| match answer(w, 0, &words(text), None, at) {
        Answer::Log(t) => t.from,
        other @ (Answer::Once { .. } | Answer::Readings(_) | Answer::Members { .. } | Answer::Silence { .. }) => {
            panic!("{other:?}")
        }
    };
    assert_eq!(from(&mut w, "logs -f -t v"), 0);
    let all = w.hosts[0].find("v").unwrap().log.end(at);
    assert_eq!(from(&mut w, "logs --tail 3 v"), all - 3);
    assert_eq!(from(&mut w, "logs --since 2026-11-29T18:58:12.5Z v"), 2);
    assert_eq!(ask(&mut w, 0, "logs --since yesterday v", 9).2, 1);
}
