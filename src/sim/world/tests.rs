//! Sequences of commands on the world and what is to be seen after each.

use super::*;

const MINUTE: Duration = Duration::from_secs(60);

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn world() -> World {
    World::new(2, Pace::new(1.0), Calendar::at(Duration::from_secs(1_795_978_690)))
}

fn ray(role: &str, address: &str) -> Run {
    Run {
        name: "vllm-qwen35".into(),
        image: IMAGE.into(),
        env: vec![
            ("NCCL_DEBUG".into(), "INFO".into()),
            ("NCCL_IB_HCA".into(), "rocep1s0f1".into()),
        ],
        devices: vec!["/dev/infiniband".into()],
        gpus: true,
        command: words(&format!("ray start --block {role} --node-ip-address {address}")),
        ..Run::default()
    }
}

fn at(seconds: u64) -> Moment {
    Duration::from_secs(seconds)
}

/// Head at 0 s, worker at 3 s.
fn cluster() -> World {
    let mut w = world();
    w.run(0, ray("--head --port 6379", "192.168.200.12"), at(0)).unwrap();
    w.run(1, ray("--address=192.168.200.12:6379", "192.168.200.13"), at(3))
        .unwrap();
    w
}

fn serve(w: &mut World, now: Moment) {
    let env = [("BRINGUP_SERVE".to_owned(), "abc".to_owned())];
    w.serve(
        0,
        "vllm-qwen35",
        &env,
        &words("org/model --port 8000 --tensor-parallel-size 2"),
        now,
    );
}

fn alive(w: &World, now: Moment) -> Vec<&str> {
    let listed = w.ray_nodes(now).into_iter();
    listed
        .filter(|m| m.dead.is_none_or(|(d, _)| d > now))
        .map(|m| m.address.as_str())
        .collect()
}

fn log(w: &World, node: usize, now: Moment) -> Vec<String> {
    let container = w.hosts[node].find("vllm-qwen35").unwrap();
    container
        .log
        .read(0, now, usize::MAX)
        .0
        .into_iter()
        .map(|e| e.text)
        .collect()
}

#[test]
fn a_head_listens_after_two_seconds_and_a_worker_joins_it() {
    let w = cluster();
    assert!(alive(&w, at(1)).is_empty());
    assert_eq!(alive(&w, at(2)), ["192.168.200.12"]);
    assert_eq!(alive(&w, at(6)), ["192.168.200.12", "192.168.200.13"]);
    assert!(log(&w, 1, at(6)).iter().any(|l| l.contains("Ray runtime started.")));
}

#[test]
fn a_worker_that_names_another_address_never_joins_and_ends() {
    let mut w = world();
    w.run(0, ray("--head", "192.168.200.12"), at(0)).unwrap();
    w.run(1, ray("--address=10.9.9.9:6379", "192.168.200.13"), at(3))
        .unwrap();
    assert_eq!(alive(&w, at(30)), ["192.168.200.12"]);
    let worker = w.hosts[1].find("vllm-qwen35").unwrap();
    assert!(worker.runs(at(62)) && !worker.runs(at(63)));
    assert!(
        log(&w, 1, at(9))
            .iter()
            .any(|l| l.contains("Failed to connect to GCS at address 10.9.9.9:6379"))
    );
}

#[test]
fn ray_that_is_not_told_its_address_takes_the_external_one() {
    let mut w = world();
    let mut run = ray("--head", "x");
    run.command = words("ray start --block --head");
    w.run(0, run, at(0)).unwrap();
    assert_eq!(alive(&w, at(5)), ["10.1.230.180"]);
}

#[test]
fn a_name_is_taken_until_the_container_is_removed() {
    let mut w = cluster();
    let again = w.run(0, ray("--head", "192.168.200.12"), at(9));
    assert!(
        again
            .unwrap_err()
            .starts_with("Conflict. The container name \"/vllm-qwen35\" is already in use")
    );
    w.end_container(0, "vllm-qwen35", End { at: at(10), code: 0 }, false);
    w.remove(0, "vllm-qwen35");
    assert!(w.run(0, ray("--head", "192.168.200.12"), at(11)).is_ok());
}

#[test]
fn a_load_rises_in_memory_on_both_nodes_and_ends_in_a_server() {
    let mut w = cluster();
    let before = w.memory(1, at(9)).unwrap();
    serve(&mut w, at(10));
    assert!(!w.server_on(0, at(69)).unwrap().serves(at(69)));
    assert!(w.server_on(0, at(70)).unwrap().serves(at(70)));
    let half = w.memory(1, at(35)).unwrap();
    let full = w.memory(1, at(71)).unwrap();
    assert!(before.available > half.available && half.available > full.available);
    assert_eq!(w.apps(1, at(71)).len(), 1);
    let head = w.apps(0, at(71));
    assert_eq!(
        head.iter().map(|a| a.name).collect::<Vec<_>>(),
        ["ray::RayWorkerWrapper.execute_method", "VLLM::EngineCore"]
    );
    assert!(head.iter().map(|a| a.mib).sum::<u64>() > 90_000);
    assert!(log(&w, 0, at(71)).iter().any(|l| l.contains("via NET/IB/0")));
    assert!(
        !log(&w, 1, at(71))
            .iter()
            .any(|l| l.contains("vllm") || l.contains("EngineCore")),
        "a worker's log holds Ray's lines alone"
    );
}

#[test]
fn both_nodes_read_the_weights_from_disk_and_what_they_have_read_never_gets_less() {
    let mut w = cluster();
    let read = |w: &World, node, now| w.memory(node, now).unwrap().read;
    let before = [0, 1].map(|node| read(&w, node, at(10)));
    serve(&mut w, at(10));
    let mut last = before;
    for second in 10..200 {
        w.advance(at(second));
        let now = [0, 1].map(|node| read(&w, node, at(second)));
        assert!(now[0] >= last[0] && now[1] >= last[1], "second {second}");
        last = now;
    }
    let weights = w.servers[0].spec.weights_gib() * f64::from(w.servers[0].spec.tp) * 1024.0 * 1024.0;
    for node in [0, 1] {
        let read = (last[node] - before[node]) as f64;
        assert!((read - weights).abs() < 2.0, "{read} {weights}");
    }
    let id = w.hosts[0].find("vllm-qwen35").unwrap().id.clone();
    w.stop_servers(&id, true, at(200));
    w.advance(at(201));
    assert_eq!([0, 1].map(|node| read(&w, node, at(201))), last);
}

#[test]
fn stopping_the_server_leaves_ray_and_lets_go_of_the_memory() {
    let mut w = cluster();
    serve(&mut w, at(10));
    let id = w.hosts[0].find("vllm-qwen35").unwrap().id.clone();
    assert_eq!(w.stop_servers(&id, false, at(30)), 1);
    assert!(w.server_on(0, at(30)).is_none());
    assert_eq!(alive(&w, at(40)).len(), 2);
    assert!(w.apps(0, at(32)).is_empty() && w.apps(1, at(32)).is_empty());
    let lines = log(&w, 0, at(200));
    assert!(
        !lines.iter().any(|l| l.contains("startup complete")),
        "a stopped server writes no more"
    );
    assert_eq!(w.stop_servers(&id, false, at(41)), 0);
}

#[test]
fn a_second_server_waits_for_gpus_that_the_first_holds() {
    let mut w = cluster();
    serve(&mut w, at(10));
    serve(&mut w, at(20));
    assert!(w.servers[1].marks.is_none());
    assert!(
        log(&w, 0, at(60))
            .iter()
            .any(|l| l.contains("Waiting for creating a placement group of specs for 10 seconds"))
    );
}

#[test]
fn a_server_that_waits_loads_when_the_missing_worker_joins() {
    let mut w = world();
    w.run(0, ray("--head", "192.168.200.12"), at(0)).unwrap();
    serve(&mut w, at(2));
    assert!(log(&w, 0, at(20)).iter().any(|l| l.contains("specs for 10 seconds")));
    w.run(1, ray("--address=192.168.200.12:6379", "192.168.200.13"), at(30))
        .unwrap();
    let server = w.server_on(0, at(90)).unwrap();
    assert!(server.serves(at(90)) && server.ranks.len() == 2);
    let lines = log(&w, 0, at(200));
    assert!(!lines.iter().any(|l| l.contains("specs for 30 seconds")));
    assert_eq!(
        lines
            .iter()
            .filter(|l| l.contains("Application startup complete"))
            .count(),
        1
    );
}

#[test]
fn a_server_that_waits_gets_the_gpus_of_one_that_is_stopped() {
    let mut w = cluster();
    serve(&mut w, at(10));
    w.serve(
        0,
        "vllm-qwen35",
        &[],
        &words("m --tensor-parallel-size 2 --port 8001"),
        at(15),
    );
    let id = w.hosts[0].find("vllm-qwen35").unwrap().id.clone();
    assert_eq!(w.stop_servers(&id, false, at(40)), 1, "the second one has no mark");
    let left = w.server_on(0, at(101)).unwrap();
    assert!(left.spec.port == 8001 && left.serves(at(101)));
}

#[test]
fn a_server_without_enough_gpus_waits() {
    let mut w = world();
    w.run(0, ray("--head", "192.168.200.12"), at(0)).unwrap();
    serve(&mut w, at(5));
    assert!(!w.server_on(0, at(300)).unwrap().serves(at(300)));
}

#[test]
fn a_worker_that_goes_takes_the_server_with_it() {
    let mut w = cluster();
    serve(&mut w, at(10));
    w.end_container(1, "vllm-qwen35", End { at: at(100), code: 137 }, true);
    assert_eq!(alive(&w, at(105)).len(), 2, "Ray notices late");
    assert_eq!(alive(&w, at(114)), ["192.168.200.12"]);
    assert!(w.server_on(0, at(104)).is_none());
    assert!(
        log(&w, 0, at(104))
            .iter()
            .any(|l| l.contains("RayWorkerProc rank=[1] died unexpectedly"))
    );
}

#[test]
fn workers_end_a_while_after_their_head() {
    let mut w = cluster();
    w.end_container(0, "vllm-qwen35", End { at: at(50), code: 0 }, false);
    assert!(w.ray_nodes(at(51)).is_empty());
    let worker = w.hosts[1].find("vllm-qwen35").unwrap();
    assert!(worker.runs(at(100)) && !worker.runs(at(50) + MINUTE));
}

#[test]
fn pace_shortens_everything_alike() {
    let mut w = World::new(2, Pace::new(60.0), Calendar::at(Duration::ZERO));
    w.run(0, ray("--head", "192.168.200.12"), at(0)).unwrap();
    w.run(1, ray("--address=192.168.200.12:6379", "192.168.200.13"), at(1))
        .unwrap();
    serve(&mut w, at(2));
    assert!(w.server_on(0, at(3)).unwrap().serves(at(3)));
}

#[test]
fn a_gpu_at_work_is_hot_and_an_idle_one_is_not() {
    let mut w = cluster();
    serve(&mut w, at(10));
    w.servers[0].stats.running = 1;
    for s in 70..200 {
        w.advance(at(s));
    }
    let busy = w.gpu(0, at(200)).unwrap();
    assert!(
        busy.utilization > 90 && busy.watts > 40.0 && busy.degrees > 50,
        "{busy:?}"
    );
    w.servers[0].stats.running = 0;
    let idle = w.gpu(0, at(200)).unwrap();
    assert!(idle.utilization == 0 && idle.watts < 14.0, "{idle:?}");
}

#[test]
fn throughput_lines_come_every_ten_seconds_and_idle_is_told_once() {
    let mut w = cluster();
    serve(&mut w, at(10));
    w.servers[0].stats.first_token(100, at(1));
    for s in 70..130 {
        w.advance(at(s));
    }
    let lines: Vec<String> = log(&w, 0, at(130))
        .into_iter()
        .filter(|l| l.contains("Engine 000"))
        .collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(
        lines[0]
            .contains("Avg prompt throughput: 10.0 tokens/s, Avg generation throughput: 0.1 tokens/s, Running: 0 reqs")
    );
    assert!(lines[1].contains("Avg generation throughput: 0.0 tokens/s"));
}

#[test]
fn the_bar_of_the_graphs_returns_before_each_of_its_states() {
    let bar = super::script::graph_bar("decode, FULL", 35, 2.5);
    let states: Vec<&str> = bar.split('\r').collect();
    // Nothing stands between the owner's prefix and the first return: all states then stand behind the prefix.
    assert_eq!((states.len(), states[0]), (5, ""));
    assert!(
        states[1..]
            .iter()
            .all(|s| s.starts_with("Capturing CUDA graphs (decode, FULL):"))
    );
}
