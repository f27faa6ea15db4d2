//! `demo`: the embedded cluster, with the console on it or alone.

use std::path::Path;

use color_eyre::eyre::{Result, WrapErr};
use tokio::signal::unix::{SignalKind, signal};

use crate::config::{self, Config};
use crate::domain::command::quote_all;
use crate::sim;

use super::args::{Args, Demo};
use super::exit::Exit;
use super::{out, start};

/// `bringup demo`.
///
/// # Errors
/// When the cluster or the console can't be started.
pub(super) async fn demo(args: &Args, demo: &Demo) -> Result<Exit> {
    let options = sim::Options {
        nodes: usize::from(demo.nodes),
        speed: demo.speed,
        ..sim::Options::default()
    };
    let cluster = sim::Cluster::start(options)
        .await
        .wrap_err("the demo cluster could not be started")?;
    let exit = match &demo.pictures {
        Some(directory) => pictures(args, &cluster, directory).await?,
        None if demo.serve_only => stay(&cluster, demo.speed).await?,
        None => console(args, &cluster).await?,
    };
    cluster.shutdown().await;
    Ok(exit)
}

async fn console(args: &Args, cluster: &sim::Cluster) -> Result<Exit> {
    match read(cluster) {
        Ok(config) => start::console_on(args, config, out::Cluster::Ends).await,
        Err(exit) => Ok(exit),
    }
}

async fn pictures(args: &Args, cluster: &sim::Cluster, directory: &Path) -> Result<Exit> {
    match read(cluster) {
        Ok(config) => start::pictures_of(args, config, directory).await,
        Err(exit) => Ok(exit),
    }
}

fn read(cluster: &sim::Cluster) -> std::result::Result<Config, Exit> {
    let file = cluster.config_path().display().to_string();
    config::parse(cluster.config_text(), &file).map_err(|problems| {
        problems.iter().for_each(|p| out::say(&p.to_string()));
        Exit::Usage
    })
}

/// Prints the config's path and stays until a signal.
async fn stay(cluster: &sim::Cluster, speed: f64) -> Result<Exit> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    out::line(&cluster.config_path().display().to_string());
    if out::lost() {
        return Ok(Exit::Failed);
    }
    out::say("the demo cluster runs until Ctrl-C; in another terminal: bringup --config PATH status");
    if let Some(line) = read(cluster).ok().as_ref().and_then(kill) {
        out::say(&format!(
            "to see trouble, kill a container of it (docker stop works too): {line}"
        ));
    }
    pace(speed).iter().for_each(|text| out::say(text));
    tokio::select! {
        // Ctrl-C is how this command ends when all is well.
        _ = interrupt.recv() => Ok(Exit::Done),
        _ = terminate.recv() => Ok(Exit::Terminated),
        _ = hangup.recv() => Ok(Exit::Terminated),
    }
}

/// What is to be known of the rates of a cluster that does not go as fast as a real one: who looks at it counts by a real clock.
fn pace(speed: f64) -> Option<String> {
    let differs = (speed - 1.0).abs() > f64::EPSILON;
    differs.then(|| {
        format!("the cluster goes {speed} times as fast as it does by itself: so do all rates that are shown of it")
    })
}

/// The line that logs in to the last node with the demo's own key and kills its container, as an operator would by hand.
fn kill(config: &Config) -> Option<String> {
    let gate = &config.ssh.jump.first()?.login;
    let node = config.nodes.last()?;
    let (user, port) = (gate.user.as_deref()?, gate.port?);
    let key = gate.keys.first()?;
    let known = format!("UserKnownHostsFile={}", config.ssh.known_hosts.first()?);
    let ssh = ["ssh", "-F", "none", "-i", key, "-o", &known];
    let (port, outer) = (port.to_string(), format!("{user}@{}", gate.host));
    let way = [&ssh[..], &["-p", &port, "-W", "%h:%p", &outer]].concat();
    let way = format!("ProxyCommand={}", quote_all(&way));
    let inner = format!("{user}@{}", node.login.host);
    let line = [
        &ssh[..],
        &["-o", &way, &inner, "docker", "kill", &config.container.name],
    ]
    .concat();
    Some(quote_all(&line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_of_another_pace_are_said_to_be_so() {
        assert_eq!(pace(1.0), None);
        assert!(pace(8.0).unwrap().starts_with("the cluster goes 8 times as fast"));
        assert!(pace(0.5).unwrap().starts_with("the cluster goes 0.5 times as fast"));
    }

    #[test]
    fn the_line_that_makes_trouble_goes_through_the_gate_with_the_demos_key() {
        let text = "[cluster]\nname = \"demo\"\n[ssh]\nuser = \"aurora\"\nkeys = [\"/tmp/a b/key\"]\nknown_hosts = [\"/tmp/a b/known\"]\n\
                    [[ssh.jump]]\nhost = \"127.0.0.1\"\nport = 4022\n\
                    [[node]]\nname = \"a\"\nrole = \"head\"\naddress = \"10.0.0.1\"\nfabric_address = \"10.0.0.1\"\n\
                    [[node]]\nname = \"b\"\nrole = \"worker\"\naddress = \"10.0.0.2\"\nfabric_address = \"10.0.0.2\"\n\
                    [engine]\nkind = \"vllm-ray\"\n[container]\nimage = \"i\"\nname = \"vllm\"\n[serve]\nmodel = \"m\"\n";
        let config = config::parse(text, "demo").unwrap();
        let words = shlex::split(&kill(&config).unwrap()).unwrap();
        let same = [
            "ssh",
            "-F",
            "none",
            "-i",
            "/tmp/a b/key",
            "-o",
            "UserKnownHostsFile=/tmp/a b/known",
        ];
        assert_eq!(words[..7], same);
        assert_eq!(words[9..], ["aurora@10.0.0.2", "docker", "kill", "vllm"]);
        let way = shlex::split(words[8].strip_prefix("ProxyCommand=").unwrap()).unwrap();
        assert_eq!(way[..7], same);
        assert_eq!(way[7..], ["-p", "4022", "-W", "%h:%p", "aurora@127.0.0.1"]);
    }
}
