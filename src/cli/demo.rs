//! `demo`: the embedded cluster, with the console on it or alone.

use std::path::Path;

use color_eyre::eyre::{Result, WrapErr};
use tokio::signal::unix::{SignalKind, signal};

use crate::config::{self, Config};
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
        None if demo.serve_only => stay(&cluster).await?,
        None => console(args, &cluster).await?,
    };
    cluster.shutdown().await;
    Ok(exit)
}

async fn console(args: &Args, cluster: &sim::Cluster) -> Result<Exit> {
    match read(cluster) {
        Ok(config) => start::console_on(args, config).await,
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
async fn stay(cluster: &sim::Cluster) -> Result<Exit> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    out::line(&cluster.config_path().display().to_string());
    if out::lost() {
        return Ok(Exit::Failed);
    }
    out::say("the demo cluster runs until Ctrl-C; in another terminal: bringup --config PATH status");
    tokio::select! {
        // Ctrl-C is how this command ends when all is well.
        _ = interrupt.recv() => Ok(Exit::Done),
        _ = terminate.recv() => Ok(Exit::Terminated),
        _ = hangup.recv() => Ok(Exit::Terminated),
    }
}
