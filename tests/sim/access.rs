//! The way in, what is refused, and the cluster's own files.

use bringup::domain::command::Command;

use crate::client::{self, LONG, docker, finish, jump, node, run, until};
use crate::{HEAD, cluster};

#[tokio::test(flavor = "multi_thread")]
async fn nodes_are_reached_through_the_jump_alone_and_nothing_else_is() {
    let cluster = cluster(60.0).await;
    let way_in = jump(&cluster).await;
    for (host, port) in [
        (HEAD, 8000),
        ("10.1.230.180", 22),
        ("127.0.0.1", 22),
        ("example.org", 80),
    ] {
        let tried = way_in.channel_open_direct_tcpip(host, port, "127.0.0.1", 0).await;
        assert!(tried.is_err(), "{host}:{port} is reached");
    }
    let head = node(&cluster, &way_in, HEAD).await;
    assert_eq!(docker(&head, "ps").await.code, Some(0));
    let stranger = client::dial_jump(&cluster).await;
    let mut stranger = stranger;
    let key =
        russh::keys::PrivateKey::random(&mut russh::keys::key::safe_rng(), russh::keys::Algorithm::Ed25519).unwrap();
    let key = russh::keys::PrivateKeyWithHashAlg::new(std::sync::Arc::new(key), None);
    assert!(!stranger.authenticate_publickey("aurora", key).await.unwrap().success());
    cluster.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_known_answers_127_and_runs_nothing() {
    let cluster = cluster(60.0).await;
    let way_in = jump(&cluster).await;
    let head = node(&cluster, &way_in, HEAD).await;
    let said = run(&head, &Command::argv(["rm", "-rf", "/nowhere"], LONG)).await;
    assert_eq!(
        (said.out.as_str(), said.err.as_str(), said.code),
        ("", "sh: 1: rm: not found\n", Some(127))
    );
    let said = run(&head, &Command::script("no.such", "echo hello", vec![], LONG)).await;
    assert_eq!(
        (said.err.as_str(), said.code),
        ("sh: 1: no.such: not found\n", Some(127))
    );
    for (handle, command, code) in [
        (&head, "hostname", 127),
        (&way_in, "true", 0),
        (&way_in, "docker ps", 127),
    ] {
        let channel = handle.channel_open_session().await.unwrap();
        channel.exec(true, command).await.unwrap();
        assert_eq!(finish(channel).await.code, Some(code), "{command}");
    }
    let refused = run(&way_in, &Command::argv(["docker", "ps"], LONG)).await;
    assert_eq!(refused.code, Some(127));
    cluster.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_has_ten_session_channels_and_gets_them_back() {
    let cluster = cluster(60.0).await;
    let way_in = jump(&cluster).await;
    let head = node(&cluster, &way_in, HEAD).await;
    let mut open = Vec::new();
    for _ in 0..10 {
        open.push(head.channel_open_session().await.unwrap());
    }
    assert!(head.channel_open_session().await.is_err());
    open.pop().unwrap().close().await.unwrap();
    until("a free channel", || async { head.channel_open_session().await.ok() }).await;
    cluster.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_private_folder_is_private_and_goes_with_the_cluster() {
    use std::os::unix::fs::PermissionsExt as _;
    let cluster = cluster(60.0).await;
    let folder = cluster.folder().to_owned();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    assert_eq!(mode(&folder.join("id_ed25519")), 0o600);
    let config = bringup::config::parse(cluster.config_text(), "config.toml").unwrap();
    assert_eq!(config.nodes.len(), 2);
    assert_eq!(
        std::fs::read_to_string(cluster.config_path()).unwrap(),
        cluster.config_text()
    );
    cluster.shutdown().await;
    assert!(!folder.exists());
}
