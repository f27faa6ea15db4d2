//! The console's own scripts, by id: what they print on a node of the world.
//!
//! The formats are those that the readers in [`crate::probe`] expect; a test reads every answer back with them.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::json;

use crate::domain::cadence;
use crate::domain::container::label;
use crate::domain::event::Subject;
use crate::domain::logs::Wanted;
use crate::engine::{script, stop, vllm_ray};
use crate::probe;

use super::answer::{Answer, Readings};
use super::clock::Moment;
use super::docker;
use super::world::gauges::App;
use super::world::host::{Container, EXTERNAL_INTERFACE, FABRIC_INTERFACE, Host, Ray};
use super::world::load::VLLM_VERSION;
use super::world::ray::{CPUS, RAY_VERSION};
use super::world::script::pid;
use super::world::{PYTHON_VERSION, World};

/// Seconds that the versions probe takes: it runs the image.
const VERSIONS: f64 = 1.5;

/// Seconds that Ray takes to answer a program in its container.
const ASK_RAY: f64 = 0.6;

/// Seconds that a stopped server takes to end.
const STOP_SERVE: f64 = 2.0;

/// User id of Docker's own processes, which an ordinary login may not look into.
const ROOT: u32 = 0;

/// Answers a script; `None` when there is none of that id.
pub fn answer(world: &mut World, node: usize, id: &str, args: &[String], now: Moment) -> Option<Answer> {
    let arg = |n: usize| args.get(n).map_or("", String::as_str);
    let answer = match id {
        probe::node::ID => {
            let asked = Asked {
                name: arg(2),
                meant: (arg(MEANT), arg(MEANT + 1)),
            };
            Answer::now(sections(world, node, asked, now)?, "", 0)
        }
        probe::node::STREAM_ID => Answer::Readings(Readings {
            node,
            mark: arg(0).to_owned(),
            name: arg(2).to_owned(),
            meant: (arg(MEANT).to_owned(), arg(MEANT + 1).to_owned()),
        }),
        probe::versions::ID => versions(world, node, arg(1)),
        probe::ray::ID => inside(world, node, arg(1), now, |c| Answer::Members {
            container: c.id.clone(),
            port: arg(2).to_owned(),
        }),
        probe::ray_status::ID => inside(world, node, arg(1), now, |_| ray_status(world, now)),
        probe::inside::ID => inside(world, node, arg(1), now, |_| {
            Answer::now(
                format!("{}\n", json!({"python": PYTHON_VERSION, "ray": RAY_VERSION})),
                "",
                0,
            )
        }),
        probe::serve::ID => inside(world, node, arg(1), now, |c| serving(world, c, now)),
        // No demo node has a verb of the script engine, nor the user's script.
        probe::verb::ID => Answer::now("@@ none\n", "", 0),
        script::VERB => Answer::now("", format!("there is no {} (in /home/aurora)\n", arg(2)), 127),
        script::VERB_CLEAN => Answer::now("", "", 0),
        probe::logs::FILE_ID => no_file(arg(0)),
        probe::logs::CONTAINER_FILE_ID => match world.hosts.get(node).and_then(|h| h.find(arg(1))) {
            Some(c) if c.runs(now) => no_file(arg(2)),
            Some(_) | None => inside(world, node, arg(1), now, |_| Answer::now("", "", 0)),
        },
        probe::logs::OLDER_ID => older(world, node, arg(1), arg(2), now),
        probe::logs::COMMAND_ID => {
            let program = arg(0).split_whitespace().next().unwrap_or_default();
            Answer::now("", format!("/bin/sh: 1: {program}: not found\n"), 127)
        }
        probe::ray_logs::ID => inside(world, node, arg(1), now, |c| super::ray_logs::files(world, c, now)),
        stop::STOP_SERVE => stop_serve(world, node, arg(1), arg(2) == "any", now),
        vllm_ray::KEEP_PER_NODE_ID => inside(world, node, arg(1), now, |_| Answer::now("", "", 0)),
        _ => return None,
    };
    Some(answer)
}

/// Place among the arguments of the node probe of what an ended container is known by whose log is wanted: after four words and the paces.
const MEANT: usize = 14;

/// Which containers are asked about beside those that run.
#[derive(Clone, Copy)]
struct Asked<'a> {
    name: &'a str,
    meant: (&'a str, &'a str),
}

impl Asked<'_> {
    fn is(self, container: &Container, now: Moment) -> bool {
        let (pattern, mark) = self.meant;
        let labels = || container.labels.iter();
        let marked = || {
            labels().any(|(key, value)| {
                [Some(value.as_str()), None]
                    .into_iter()
                    .any(|value| probe::node::label_mark(key, value) == mark)
            })
        };
        let ours = container.labels.contains_key(label::CLUSTER);
        container.runs(now)
            || container.name == self.name
            || ours
            || Wanted::named(pattern).names(&container.name)
            || marked()
    }
}

/// The sections of the node probe.
fn sections(world: &World, node: usize, asked: Asked<'_>, now: Moment) -> Option<String> {
    let kinds = [
        Subject::Memory,
        Subject::Fabric,
        Subject::Sockets,
        Subject::Containers,
        Subject::Gpus,
    ];
    let mut out = String::new();
    for kind in kinds {
        for (_, text) in parts(world, node, asked, kind, now)? {
            out.push_str(&text);
        }
    }
    Some(out)
}

/// The records of a stream that are due when so much time has passed since its begin.
pub fn records(world: &World, readings: &Readings, passed: Duration, now: Moment) -> Option<String> {
    let kinds = [
        Subject::Memory,
        Subject::Gpus,
        Subject::Containers,
        Subject::Sockets,
        Subject::Fabric,
        Subject::Disk,
    ];
    let asked = Asked {
        name: &readings.name,
        meant: (&readings.meant.0, &readings.meant.1),
    };
    let mut out = String::new();
    for kind in kinds {
        let every = cadence::every(kind)?;
        let step = cadence::MEMORY_EVERY.as_secs();
        let before = passed.as_secs().checked_sub(step).map(|s| s / every.as_secs().max(1));
        if before == Some(passed.as_secs() / every.as_secs().max(1)) {
            continue;
        }
        for (name, text) in parts(world, readings.node, asked, kind, now)? {
            for line in text.lines() {
                let _ = writeln!(out, "{} {name} {line}", readings.mark);
            }
            let at = now.as_millis() / 10;
            let (mark, lines) = (&readings.mark, text.lines().count());
            let bytes: usize = text.lines().map(str::len).sum();
            let _ = writeln!(out, "{mark} {name}= {lines} {bytes} {at} {at} {}", every.as_secs());
        }
    }
    Some(out)
}

/// The records about a subject, each with its sections.
fn parts(
    world: &World,
    node: usize,
    asked: Asked<'_>,
    what: Subject,
    now: Moment,
) -> Option<Vec<(&'static str, String)>> {
    let host = world.hosts.get(node)?;
    let apps = world.apps(node, now);
    Some(match what {
        Subject::Memory => vec![("memory", memory(world, node, now)?)],
        Subject::Fabric => vec![("fabric", section("interfaces", &interfaces(host)))],
        Subject::Sockets => vec![(
            "sockets",
            section("sockets", &sockets(world, node, now)) + &section("owners", ""),
        )],
        Subject::Containers => {
            let shown = host.containers.iter().filter(|c| asked.is(c, now));
            let list: String = shown.map(|c| format!("{}\n", inspected(world, c, now))).collect();
            let clock = section("clock", &format!("{}\n", world.calendar.date(now)));
            vec![("containers", clock + &section("containers", &list))]
        }
        Subject::Gpus => {
            let gpu = world.gpu(node, now)?;
            let device = format!(
                "1, 0, {BUS}, [N/A], NVIDIA GB10, {}, [N/A], [N/A], {:.2}, {}\n",
                gpu.utilization, gpu.watts, gpu.degrees
            );
            let groups: String = apps
                .iter()
                .map(|a| format!("{} 0::/system.slice/docker-{}.scope\n", a.pid, a.container))
                .collect();
            let processes = section("apps", &processes(&apps)) + &section("cgroups", &groups);
            let attached = section("attached", "000f:01:00.0\n");
            vec![("gpus", section("gpus", &device) + &attached), ("apps", processes)]
        }
        Subject::Disk => {
            let (size, free) = (3_843_506_176_u64, 2_411_724_800_u64);
            let used = size.saturating_sub(free);
            let disk = format!(
                "Filesystem     1024-blocks       Used  Available Capacity Mounted on\n/dev/nvme0n1p2  {size} {used} {free}      37% /\n"
            );
            let cache = world.model_cache_kib(node, now);
            let cache = format!("{cache}\t/home/aurora/.cache/huggingface\n");
            vec![("disk", section("disk", &disk) + &section("cache", &cache))]
        }
        Subject::Image
        | Subject::Versions
        | Subject::Inside
        | Subject::Ray
        | Subject::RayStatus
        | Subject::Serve
        | Subject::Verb => return None,
    })
}

/// A section whose tool ended well.
fn section(name: &str, text: &str) -> String {
    format!("@@ {name}\n{text}@= 0\n")
}

/// The GPU's place on the bus, as a Spark has it.
const BUS: &str = "0000000F:01:00.0";

/// Processes as `nvidia-smi -q -d PIDS` prints them.
fn processes(apps: &[App]) -> String {
    let mut out = format!("Attached GPUs : 1\nGPU {BUS}\n");
    if apps.is_empty() {
        out.push_str("Processes : None\n");
    } else {
        out.push_str("Processes\n");
    }
    for app in apps {
        let _ = write!(
            out,
            "GPU instance ID : N/A\nCompute instance ID : N/A\nProcess ID : {}\nType : C\nName : {}\nUsed GPU Memory : {} MiB\n",
            app.pid, app.name, app.mib
        );
    }
    out
}

fn memory(world: &World, node: usize, now: Moment) -> Option<String> {
    let m = world.memory(node, now)?;
    let mut out = section(
        "memory",
        &format!(
            "MemTotal:       {} kB\nMemFree:        {} kB\nMemAvailable:   {} kB\nBuffers:          184320 kB\nCached:         {} kB\nSwapCached:            0 kB\nSwapTotal:      16777212 kB\nSwapFree:       16777212 kB\n",
            m.total, m.free, m.available, m.cached
        ),
    );
    out.push_str(&section("vmstat", &format!("pgpgin {}\n", m.read)));
    out.push_str(&section(
        "pressure",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=11870\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=9614\n",
    ));
    out.push_str(&section("load", "0.62 0.55 0.48 1/1211 114687\n"));
    Some(out)
}

fn interfaces(host: &Host) -> String {
    let names = ["lo", EXTERNAL_INTERFACE, FABRIC_INTERFACE, "docker0"];
    let mut out: String = names.iter().map(|n| format!("name {n}\n")).collect();
    out.push_str("infiniband\n");
    let (external, fabric) = (&host.external, &host.fabric);
    let lines = [
        "1: lo    inet 127.0.0.1/8 scope host lo\\       valid_lft forever preferred_lft forever".to_owned(),
        format!("2: {EXTERNAL_INTERFACE}    inet {external}/24 brd 10.1.230.255 scope global {EXTERNAL_INTERFACE}\\       valid_lft forever preferred_lft forever"),
        format!("4: {FABRIC_INTERFACE}    inet {fabric}/24 brd 192.168.200.255 scope global {FABRIC_INTERFACE}\\       valid_lft forever preferred_lft forever"),
        "7: docker0    inet 172.17.0.1/16 brd 172.17.255.255 scope global docker0\\       valid_lft forever preferred_lft forever".to_owned(),
    ];
    for line in lines {
        out.push_str(&line);
        out.push('\n');
    }
    out
}

/// Listening sockets as the script prints them: `ADDRESS:PORT UID INODE`, the address as the kernel writes it.
fn sockets(world: &World, node: usize, now: Moment) -> String {
    const ANY: &str = "00000000000000000000000000000000";
    const LOOPBACK: &str = "0100007F";
    let mut ports = vec![("00000000", 22_u16)];
    for c in world.hosts.get(node).map_or(&[][..], |h| &h.containers) {
        if let Ray::Head { port, dashboard, up } = c.ray
            && c.runs(now)
            && up <= now
        {
            ports.extend([(ANY, port), (LOOPBACK, dashboard)]);
        }
    }
    if let Some(server) = world.server_on(node, now).filter(|s| s.serves(now)) {
        ports.push(("00000000", server.spec.port));
    }
    let lines = ports
        .iter()
        .map(|(address, port)| format!("{address}:{port:04X} {ROOT} {}\n", 20_000 + u32::from(*port)));
    lines.collect()
}

/// A container as the script's `docker inspect` template prints it.
fn inspected(world: &World, c: &Container, now: Moment) -> String {
    let runs = c.runs(now);
    let code = c.end.filter(|_| !runs).map_or(0, |e| e.code);
    json!({
        "id": c.id, "name": format!("/{}", c.name), "image": c.image, "status": if runs { "running" } else { "exited" }, "code": code, "oom": false,
        "pid": if runs { c.pid } else { 0 }, "started": world.calendar.docker(c.started), "restarts": 0, "labels": c.labels,
    })
    .to_string()
}

fn versions(world: &World, node: usize, image: &str) -> Answer {
    match world
        .hosts
        .get(node)
        .and_then(|h| h.images.get(&docker::reference(image)))
    {
        Some(found) => {
            let seen = json!({"python": PYTHON_VERSION, "missing": [], "ray": RAY_VERSION, "vllm": VLLM_VERSION});
            Answer::after(
                world.pace.secs(VERSIONS),
                format!("image {}\n{seen}\n", found.id),
                "",
                0,
            )
        }
        None => Answer::now("", format!("Error response from daemon: No such image: {image}\n"), 1),
    }
}

/// A file that is followed and never written.
fn no_file(path: &str) -> Answer {
    Answer::Silence {
        out: format!("@@ none missing ls: cannot access '{path}': No such file or directory\n"),
        err: String::new(),
    }
}

/// The time of the first line that Docker has of a container, where one was written by then.
fn older(world: &World, node: usize, until: &str, name: &str, now: Moment) -> Answer {
    let Some(container) = world.hosts.get(node).and_then(|h| h.find(name)) else {
        return Answer::now(
            format!("Error response from daemon: No such container: {name}\n"),
            "",
            0,
        );
    };
    let first = container
        .log
        .read(0, now, 1)
        .0
        .first()
        .map(|line| world.calendar.docker(line.at));
    Answer::now(first.filter(|first| first.as_str() <= until).unwrap_or_default(), "", 0)
}

/// What a program inside a container answers, if the container runs.
fn inside(world: &World, node: usize, name: &str, now: Moment, answer: impl Fn(&Container) -> Answer) -> Answer {
    match world.hosts.get(node).and_then(|h| h.find(name)) {
        None => Answer::now(
            "",
            format!("Error response from daemon: No such container: {name}\n"),
            1,
        ),
        Some(c) if !c.runs(now) => Answer::now(
            "",
            format!("Error response from daemon: container {} is not running\n", c.id),
            1,
        ),
        Some(c) => answer(c),
    }
}

/// A record of Ray's membership, as the program in a container prints it; else why it ends, and with which code.
pub fn members(world: &World, container: &str, port: &str, now: Moment) -> Result<String, (String, u32)> {
    let own = world
        .hosts
        .iter()
        .flat_map(|h| &h.containers)
        .find(|c| c.id == container);
    let Some(own) = own.filter(|c| c.runs(now)) else {
        // What a docker client says of a program that was killed with its container.
        return Err((String::new(), 137));
    };
    let members = world.ray_nodes(now);
    if members.is_empty() {
        let own = &own.address;
        return Err((format!("nothing listens at 127.0.0.1:{port} nor at {own}:{port}\n"), 1));
    }
    let nodes: Vec<_> = members
        .into_iter()
        .map(|m| {
            let dead = m.dead.filter(|(at, _)| *at <= now);
            let mut resources = json!({"CPU": CPUS, format!("node:{}", m.address): 1.0});
            if m.gpus > 0 {
                resources["GPU"] = json!(f64::from(m.gpus));
            }
            if m.head {
                resources["node:__internal_head__"] = json!(1.0);
            }
            json!({
                "id": m.id, "address": m.address, "alive": dead.is_none(), "resources": resources, "message": dead.map(|(_, why)| why),
                "started": world.calendar.unix_seconds(m.from).saturating_mul(1000),
                "ended": dead.map_or(0, |(at, _)| world.calendar.unix_seconds(at).saturating_mul(1000)),
            })
        })
        .collect();
    let record =
        json!({"ray": RAY_VERSION, "python": PYTHON_VERSION, "nodes": nodes, "groups": world.waiting_groups(now)})
            .to_string();
    Ok(format!("@ray {} {record}\n", record.len()))
}

/// What `ray status` prints.
fn ray_status(world: &World, now: Moment) -> Answer {
    let members = world.ray_nodes(now);
    let alive: Vec<_> = members
        .iter()
        .filter(|m| m.dead.is_none_or(|(at, _)| at > now))
        .collect();
    if alive.is_empty() {
        return Answer::after(
            world.pace.secs(ASK_RAY),
            "",
            "ray.exceptions.RpcError: Timed out while waiting for GCS to become available.\n",
            1,
        );
    }
    let nodes: String = alive.iter().map(|m| format!(" 1 node_{}\n", m.id)).collect();
    let gpus: u32 = alive.iter().map(|m| m.gpus).sum();
    let text = format!(
        "======== Autoscaler status ========\nNode status\n---------------------------------------------------------------\nActive:\n{nodes}Pending:\n (no pending nodes)\nRecent failures:\n (no failures)\n\nResources\n---------------------------------------------------------------\nTotal Usage:\n 0.0/{gpus}.0 GPU\n\nFrom request_resources:\n (none)\nPending Demands:\n (no resource demands)\n"
    );
    Answer::after(world.pace.secs(ASK_RAY), text, "", 0)
}

/// Model-server processes of a container: the server and its engine.
fn serving(world: &World, container: &Container, now: Moment) -> Answer {
    let mut processes = Vec::new();
    for s in world
        .servers
        .iter()
        .filter(|s| s.container == container.id && s.runs(now))
    {
        let up = now.saturating_sub(s.started).as_secs();
        let own = pid::API + u32::try_from(s.number.saturating_sub(1)).unwrap_or(0) * 200;
        let command = format!("/usr/bin/python3 /usr/local/bin/vllm serve {}", s.spec.args.join(" "));
        processes.push(json!({"pid": own, "parent": 0, "mark": s.mark, "command": command, "up": up}));
        if s.mark.is_some() && up >= 5 {
            processes.push(
                json!({"pid": own + 44, "parent": own, "mark": s.mark, "command": "VLLM::EngineCore", "up": up - 5}),
            );
        }
    }
    Answer::now(format!("{}\n", json!({ "processes": processes })), "", 0)
}

fn stop_serve(world: &mut World, node: usize, name: &str, any: bool, now: Moment) -> Answer {
    let Some(id) = world
        .hosts
        .get(node)
        .and_then(|h| h.find(name))
        .filter(|c| c.runs(now))
        .map(|c| c.id.clone())
    else {
        return inside(world, node, name, now, |_| Answer::now("", "", 0));
    };
    let took = world.pace.secs(STOP_SERVE);
    match world.stop_servers(&id, any, now.saturating_add(took)) {
        0 => Answer::now("no model server runs\n", "", 0),
        n => {
            let pids: String = (0..n)
                .map(|i| format!(" {}", usize::try_from(pid::API).unwrap_or(0) + i * 200))
                .collect();
            Answer::after(took, format!("ending:{pids}\nended\n"), "", 0)
        }
    }
}
