//! The `docker` commands that a plan or a person types, against the world.
//!
//! Messages and exit codes are the daemon's and the client's own (field notes on docker errors).

mod logs;
#[cfg(test)]
mod tests;

use std::time::Duration;

use super::answer::{Answer, Write};
use super::clock::Moment;
use super::world::host::{self, End, Host};
use super::world::{IMAGE, Run, World, flag};

/// Flags of `docker run` and `docker exec` that take no value.
const SWITCHES: [&str; 12] = [
    "-d",
    "--detach",
    "--rm",
    "--privileged",
    "--init",
    "-i",
    "--interactive",
    "-t",
    "--tty",
    "-it",
    "--no-healthcheck",
    "--read-only",
];

/// Seconds that `docker run -d` takes.
const RUN: f64 = 0.5;

/// Seconds that a container takes to end when it is asked.
const STOP: f64 = 1.6;

/// Seconds that a pull takes.
const PULL: f64 = 8.0;

/// A secret that the command's environment holds.
pub type Secret<'a> = Option<(&'a str, &'a str)>;

/// `docker` with these words on a node.
pub fn answer(world: &mut World, node: usize, words: &[String], secret: Secret<'_>, now: Moment) -> Answer {
    let (verb, rest) = match words.split_first() {
        Some((verb, rest)) => (verb.as_str(), rest),
        None => return Answer::now("", "Usage:  docker [OPTIONS] COMMAND\n", 0),
    };
    match verb {
        "run" => run(world, node, rest, secret, now),
        "exec" => exec(world, node, rest, secret, now),
        "stop" | "kill" => stop(world, node, verb, rest, now),
        "rm" => remove(world, node, rest, now),
        "pull" => pull(world, node, rest, now),
        "logs" => logs::logs(world, node, rest, now),
        "image" => image(world, node, rest),
        "events" => super::ray_logs::events(world, node, rest, now),
        "ps" => ps(world, node, rest, now),
        "version" | "--version" => Answer::now("Docker version 28.5.1, build e180ab8\n", "", 0),
        _ => Answer::unknown(&format!("docker {verb}")),
    }
}

/// Words of a command split into flags with their values and what follows them.
struct Parsed {
    flags: Vec<(String, String)>,
    rest: Vec<String>,
}

impl Parsed {
    /// Reads flags up to the first word that is none; `switches` take no value.
    fn read(words: &[String], switches: &[&str]) -> Self {
        let mut flags = Vec::new();
        let mut words = words.iter().peekable();
        while let Some(word) = words.next_if(|w| w.starts_with('-')) {
            if let Some((name, value)) = word.split_once('=') {
                flags.push((name.to_owned(), value.to_owned()));
            } else if switches.contains(&word.as_str()) {
                flags.push((word.clone(), String::new()));
            } else {
                flags.push((word.clone(), words.next().cloned().unwrap_or_default()));
            }
        }
        Self {
            flags,
            rest: words.cloned().collect(),
        }
    }

    fn all<'a>(&'a self, names: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
        self.flags
            .iter()
            .filter(|(n, _)| names.contains(&n.as_str()))
            .map(|(_, v)| v.as_str())
    }

    fn has(&self, names: &[&str]) -> bool {
        self.all(names).next().is_some()
    }

    fn env(&self, secret: Secret<'_>) -> Vec<(String, String)> {
        let pairs = self
            .all(&["-e", "--env"])
            .filter_map(|e| match (e.split_once('='), secret) {
                (Some((k, v)), _) => Some((k.to_owned(), v.to_owned())),
                (None, Some((name, value))) if name == e => Some((name.to_owned(), value.to_owned())),
                (None, _) => None,
            });
        pairs.collect()
    }
}

fn daemon(text: &str, code: u32) -> Answer {
    Answer::now("", format!("Error response from daemon: {text}\n"), code)
}

fn absent(name: &str) -> Answer {
    daemon(&format!("No such container: {name}"), 1)
}

/// A reference with its tag.
pub fn reference(image: &str) -> String {
    let tagged = image.rsplit_once('/').map_or(image, |(_, name)| name).contains(':');
    if tagged || image.contains('@') {
        image.to_owned()
    } else {
        format!("{image}:latest")
    }
}

fn run(world: &mut World, node: usize, words: &[String], secret: Secret<'_>, now: Moment) -> Answer {
    let parsed = Parsed::read(words, &SWITCHES);
    let Some((image, args)) = parsed.rest.split_first() else {
        return Answer::now("", "docker: 'docker run' requires at least 1 argument\n", 125);
    };
    let reference = reference(image);
    if world.hosts.get(node).is_none_or(|h| !h.images.contains_key(&reference)) && !fetch(world, node, &reference) {
        let text = format!(
            "Unable to find image '{reference}' locally\ndocker: Error response from daemon: pull access denied for {image}, repository does not exist or may require 'docker login': denied: requested access to the resource is denied\n"
        );
        return Answer::now("", text, 125);
    }
    if !parsed.has(&["-d", "--detach"]) {
        // In the foreground the simulated nodes run nothing but what has an id of its own.
        return Answer::unknown("docker run");
    }
    let name = parsed.all(&["--name"]).next().unwrap_or("quirky_spark").to_owned();
    let mut command: Vec<String> = parsed
        .all(&["--entrypoint"])
        .next()
        .map(str::to_owned)
        .into_iter()
        .collect();
    command.extend(args.iter().cloned());
    let asked = Run {
        name,
        image: image.clone(),
        labels: parsed
            .all(&["--label", "-l"])
            .map(|l| {
                l.split_once('=')
                    .map_or((l.to_owned(), String::new()), |(k, v)| (k.to_owned(), v.to_owned()))
            })
            .collect(),
        env: parsed.env(secret),
        devices: parsed.all(&["--device"]).map(str::to_owned).collect(),
        gpus: parsed.has(&["--gpus"]),
        command,
    };
    let took = world.pace.secs(RUN);
    match world.run(node, asked, now) {
        Ok(id) => Answer::after(took, format!("{id}\n"), "", 0),
        Err(text) => Answer::after(took, "", format!("docker: Error response from daemon: {text}\n"), 125),
    }
}

fn exec(world: &mut World, node: usize, words: &[String], secret: Secret<'_>, now: Moment) -> Answer {
    let parsed = Parsed::read(words, &SWITCHES);
    let Some((name, command)) = parsed.rest.split_first() else {
        return Answer::now("", "docker: 'docker exec' requires at least 2 arguments\n", 1);
    };
    match world.hosts.get(node).and_then(|h| h.find(name)) {
        None => return absent(name),
        Some(c) if !c.runs(now) => return daemon(&format!("container {} is not running", c.id), 1),
        Some(_) => {}
    }
    let Some(serve) = serve_words(command).filter(|_| parsed.has(&["-d", "--detach"])) else {
        return Answer::unknown(&format!("docker exec {}", command.first().map_or("", String::as_str)));
    };
    world.serve(node, name, &parsed.env(secret), &serve, now);
    Answer::after(world.pace.secs(0.2), "", "", 0)
}

/// The words after `vllm serve`, given as they are or in a shell's `exec … >>…`.
fn serve_words(command: &[String]) -> Option<Vec<String>> {
    let words = match command {
        [shell, c, text] if shell.ends_with("sh") && c == "-c" => {
            let words = shlex::split(text)?;
            let own = words.into_iter().skip_while(|w| w == "exec");
            own.take_while(|w| !w.starts_with('>') && !w.starts_with("2>"))
                .collect()
        }
        _ => command.to_vec(),
    };
    match words.as_slice() {
        [vllm, serve, rest @ ..] if vllm.ends_with("vllm") && serve == "serve" => Some(rest.to_vec()),
        _ => None,
    }
}

fn stop(world: &mut World, node: usize, verb: &str, words: &[String], now: Moment) -> Answer {
    let parsed = Parsed::read(words, &[]);
    let Some(name) = parsed.rest.first() else {
        return Answer::now("", format!("docker: 'docker {verb}' requires at least 1 argument\n"), 1);
    };
    let Some(container) = world.hosts.get(node).and_then(|h| h.find(name)) else {
        return absent(name);
    };
    if !container.runs(now) {
        return match verb {
            "kill" => daemon(
                &format!(
                    "cannot kill container: {name}: container {} is not running",
                    container.id
                ),
                1,
            ),
            _ => Answer::now(format!("{name}\n"), "", 0),
        };
    }
    let (killed, seconds, code) = if verb == "kill" {
        (true, 0.2, 137)
    } else {
        (false, STOP, 0)
    };
    let took = world.pace.secs(seconds);
    let end = End {
        at: now.saturating_add(took),
        code,
    };
    world.end_container(node, name, end, killed);
    Answer::after(took, format!("{name}\n"), "", 0)
}

fn remove(world: &mut World, node: usize, words: &[String], now: Moment) -> Answer {
    let force = words.iter().any(|w| w == "-f" || w == "--force");
    let Some(name) = words.iter().find(|w| !w.starts_with('-')) else {
        return Answer::now("", "docker: 'docker rm' requires at least 1 argument\n", 1);
    };
    let Some(container) = world.hosts.get(node).and_then(|h| h.find(name)) else {
        return absent(name);
    };
    if container.runs(now) {
        if !force {
            let text = format!(
                "cannot remove container \"/{}\": container is running: stop the container before removing or force remove",
                container.name
            );
            return daemon(&text, 1);
        }
        world.end_container(node, name, End { at: now, code: 137 }, true);
    }
    world.remove(node, name);
    Answer::after(world.pace.secs(0.2), format!("{name}\n"), "", 0)
}

/// Puts an image on a node, when the registry has it.
fn fetch(world: &mut World, node: usize, reference: &str) -> bool {
    if reference != IMAGE {
        return false;
    }
    if let Some(host) = world.hosts.get_mut(node) {
        let image = host::image(&host.name, reference);
        host.images.insert(reference.to_owned(), image);
    }
    true
}

fn pull(world: &mut World, node: usize, words: &[String], _now: Moment) -> Answer {
    let Some(image) = words.iter().find(|w| !w.starts_with('-')) else {
        return Answer::now("", "docker: 'docker pull' requires 1 argument\n", 1);
    };
    let full = reference(image);
    let known = world.hosts.get(node).and_then(|h| h.images.get(&full)).is_some();
    if !known && !fetch(world, node, &full) {
        let text = format!(
            "pull access denied for {image}, repository does not exist or may require 'docker login': denied: requested access to the resource is denied"
        );
        return daemon(&text, 1);
    }
    let Some(got) = world.hosts.get(node).and_then(|h| h.images.get(&full)) else {
        return daemon("no such image", 1);
    };
    let (name, tag) = full.rsplit_once(':').unwrap_or((&full, "latest"));
    let after = |share: f64| world.pace.secs(PULL * share);
    let write = |share: f64, text: String| Write {
        after: after(share),
        err: false,
        text,
    };
    let digest = format!("Digest: sha256:{}\n", host::hex(&full, 64));
    if known {
        let text = format!("{tag}: Pulling from {name}\n{digest}Status: Image is up to date for {full}\n{full}\n");
        return Answer::after(world.pace.secs(0.8), text, "", 0);
    }
    let mut writes = vec![write(0.02, format!("{tag}: Pulling from {name}\n"))];
    let short: Vec<String> = got
        .layers
        .iter()
        .filter_map(|l| l.get(7..19).map(str::to_owned))
        .collect();
    for layer in &short {
        writes.push(write(0.04, format!("{layer}: Pulling fs layer\n")));
    }
    let mut share = 0.1;
    for layer in &short {
        writes.push(write(share, format!("{layer}: Pull complete\n")));
        share += 0.07;
    }
    writes.push(write(
        1.0,
        format!("{digest}Status: Downloaded newer image for {full}\n{full}\n"),
    ));
    Answer::Once {
        writes,
        after: after(1.0),
        code: 0,
    }
}

/// `docker image inspect` with the console's own format: the id and the layers.
fn image(world: &World, node: usize, words: &[String]) -> Answer {
    let format = flag(words, "--format").or_else(|| flag(words, "-f"));
    match (words.first().map(String::as_str), format, words.last()) {
        (Some("inspect"), Some(format), Some(image))
            if format.contains("{{.Id}}") && format.contains(".RootFS.Layers") =>
        {
            match world.hosts.get(node).and_then(|h| h.images.get(&reference(image))) {
                Some(found) => Answer::now(format!("{} {}\n", found.id, found.layers.join(" ")), "", 0),
                None => Answer::now("\n", format!("Error response from daemon: No such image: {image}\n"), 1),
            }
        }
        _ => Answer::unknown("docker image"),
    }
}

fn ps(world: &World, node: usize, words: &[String], now: Moment) -> Answer {
    if words
        .iter()
        .any(|w| !matches!(w.as_str(), "-a" | "--all" | "--no-trunc"))
    {
        return Answer::unknown("docker ps with a format");
    }
    let all = words.iter().any(|w| w == "-a" || w == "--all");
    let mut text = "CONTAINER ID   IMAGE   COMMAND   CREATED   STATUS   PORTS   NAMES\n".to_owned();
    for c in world.hosts.get(node).map_or(&[][..], |h: &Host| &h.containers) {
        if all || c.runs(now) {
            let short = c.id.get(..12).unwrap_or(&c.id);
            let command: String = c.command.join(" ").chars().take(18).collect();
            let up = age(now.saturating_sub(c.started));
            let status = match c.end {
                Some(e) if e.at <= now => format!("Exited ({}) {} ago", e.code, age(now.saturating_sub(e.at))),
                Some(_) | None => format!("Up {up}"),
            };
            text.push_str(&format!(
                "{short}   {}   \"{command}…\"   {up} ago   {status}      {}\n",
                c.image, c.name
            ));
        }
    }
    Answer::now(text, "", 0)
}

fn age(d: Duration) -> String {
    match d.as_secs() {
        s @ 0..120 => format!("{s} seconds"),
        s @ 120..7200 => format!("{} minutes", s / 60),
        s => format!("{} hours", s / 3600),
    }
}
