//! A plain SSH client, as small as it can be: host keys checked against the cluster's known_hosts, exec with the console's own framing, tunnels.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bringup::domain::command::Command;
use bringup::domain::wrap::{self, BOOTSTRAP};
use bringup::sim::Cluster;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper_util::rt::TokioIo;
use russh::client::{self, Handle, Msg};
use russh::keys::{PrivateKeyWithHashAlg, PublicKeyOrCertificate, known_hosts, load_secret_key};
use russh::{Channel, ChannelMsg};

/// Long enough for the busiest machine; nothing waits for it to pass.
pub const LONG: Duration = Duration::from_secs(120);

pub struct Check {
    host: String,
    port: u16,
    known_hosts: PathBuf,
}

impl client::Handler for Check {
    type Error = russh::Error;

    async fn check_server_key(&mut self, key: &PublicKeyOrCertificate) -> Result<bool, Self::Error> {
        let PublicKeyOrCertificate::PublicKey { key, .. } = key else {
            return Ok(false);
        };
        Ok(known_hosts::check_known_hosts_path(
            &self.host,
            self.port,
            key,
            &self.known_hosts,
        )?)
    }
}

pub struct Said {
    pub out: String,
    pub err: String,
    pub code: Option<u32>,
}

fn check(cluster: &Cluster, host: &str, port: u16) -> Check {
    Check {
        host: host.to_owned(),
        port,
        known_hosts: cluster.folder().join("known_hosts"),
    }
}

async fn log_in(mut handle: Handle<Check>, key: &Path) -> Handle<Check> {
    let key = Arc::new(load_secret_key(key, None).unwrap());
    let key = PrivateKeyWithHashAlg::new(key, None);
    assert!(handle.authenticate_publickey("aurora", key).await.unwrap().success());
    handle
}

fn config() -> Arc<client::Config> {
    Arc::new(client::Config {
        nodelay: true,
        ..client::Config::default()
    })
}

/// Connects to the jump host without logging in.
pub async fn dial_jump(cluster: &Cluster) -> Handle<Check> {
    let address = cluster.address();
    let check = check(cluster, "127.0.0.1", address.port());
    client::connect(config(), address, check).await.unwrap()
}

/// Logs in to the jump host.
pub async fn jump(cluster: &Cluster) -> Handle<Check> {
    log_in(dial_jump(cluster).await, &cluster.folder().join("id_ed25519")).await
}

/// Logs in to a node through the jump host.
pub async fn node(cluster: &Cluster, jump: &Handle<Check>, address: &str) -> Handle<Check> {
    let channel = jump
        .channel_open_direct_tcpip(address, 22, "127.0.0.1", 0)
        .await
        .unwrap();
    let handle = client::connect_stream(config(), channel.into_stream(), check(cluster, address, 22))
        .await
        .unwrap();
    log_in(handle, &cluster.folder().join("id_ed25519")).await
}

/// Starts a command on a node and leaves its channel open.
pub async fn start(node: &Handle<Check>, command: &Command) -> Channel<Msg> {
    let channel = node.channel_open_session().await.unwrap();
    channel.exec(true, BOOTSTRAP).await.unwrap();
    channel.data_bytes(wrap::frame(command, "00ff")).await.unwrap();
    channel
}

/// Reads a channel to its end; the nonce on both streams is taken off.
pub async fn finish(mut channel: Channel<Msg>) -> Said {
    let (mut out, mut err, mut code) = (Vec::new(), Vec::new(), None);
    while let Some(message) = tokio::time::timeout(LONG, channel.wait()).await.unwrap() {
        match message {
            ChannelMsg::Data { data } => out.extend_from_slice(&data),
            ChannelMsg::ExtendedData { data, ext: 1 } => err.extend_from_slice(&data),
            ChannelMsg::ExitStatus { exit_status } => code = Some(exit_status),
            _ => {}
        }
    }
    let text = |bytes: Vec<u8>| {
        let text = String::from_utf8(bytes).unwrap();
        text.strip_prefix("00ff\n").unwrap_or(&text).to_owned()
    };
    Said {
        out: text(out),
        err: text(err),
        code,
    }
}

/// Runs a command on a node.
pub async fn run(node: &Handle<Check>, command: &Command) -> Said {
    finish(start(node, command).await).await
}

/// Runs `docker` with these words on a node.
pub async fn docker(node: &Handle<Check>, words: &str) -> Said {
    let words = shlex::split(&format!("docker {words}")).unwrap();
    run(node, &Command::argv(words, LONG)).await
}

/// One HTTP request through a tunnel to a port of a node: status and body; `None` when the port refuses or the server goes before it
/// answers.
pub async fn http(node: &Handle<Check>, port: u16, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
    let channel = node
        .channel_open_direct_tcpip("127.0.0.1", u32::from(port), "127.0.0.1", 0)
        .await
        .ok()?;
    let (mut send, connection) = hyper::client::conn::http1::handshake(TokioIo::new(channel.into_stream()))
        .await
        .ok()?;
    let connection = tokio::spawn(connection);
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "127.0.0.1")
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body.to_owned())))
        .unwrap();
    let response = tokio::time::timeout(LONG, send.send_request(request))
        .await
        .unwrap()
        .ok()?;
    let status = response.status().as_u16();
    let body = tokio::time::timeout(LONG, response.into_body().collect())
        .await
        .unwrap()
        .unwrap()
        .to_bytes();
    drop(send);
    connection.abort();
    Some((status, String::from_utf8(body.to_vec()).unwrap()))
}

/// Asks until the answer is right.
pub async fn until<T, F: Future<Output = Option<T>>>(what: &str, mut ask: impl FnMut() -> F) -> T {
    let asking = async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(LONG, asking)
        .await
        .unwrap_or_else(|_| panic!("it never came to {what}"))
}
