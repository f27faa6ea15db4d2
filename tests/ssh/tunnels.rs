//! Tunnels to a port behind a node.

use std::time::Duration;

use bringup::domain::command::{Command, Exit};
use bringup::ssh::TunnelError;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::person::connected;
use crate::processes::PATIENCE;

/// A server that sends back what it gets, and closes when it gets no more.
async fn echo() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut read, mut write) = stream.split();
                let _ = tokio::io::copy(&mut read, &mut write).await;
            });
        }
    });
    port
}

#[tokio::test]
async fn bytes_go_both_ways_and_the_end_is_seen() {
    let (_home, _server, _person, session) = connected().await;
    let mut tunnel = session.tunnel("127.0.0.1", echo().await).await.unwrap();
    let data: Vec<u8> = (0..3_000_000u32).map(|n| n.to_le_bytes()[0]).collect();
    let (mut read, mut write) = tokio::io::split(&mut tunnel);
    let send = async {
        write.write_all(&data).await.unwrap();
        write.shutdown().await.unwrap();
    };
    let mut back = Vec::new();
    let receive = read.read_to_end(&mut back);
    let ((), n) = tokio::time::timeout(PATIENCE, async { tokio::join!(send, receive) })
        .await
        .unwrap();
    assert_eq!(n.unwrap(), data.len());
    assert!(back == data);
}

#[tokio::test]
async fn a_port_where_nothing_listens_refuses_and_the_connection_stays() {
    let (_home, _server, _person, session) = connected().await;
    // Bound and not listening any more.
    let port = TcpListener::bind(("127.0.0.1", 0))
        .await
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    assert!(matches!(
        session.tunnel("127.0.0.1", port).await.err(),
        Some(TunnelError::Refused(_))
    ));
    let output = session
        .exec(&Command::argv(["true"], Duration::from_secs(50)), None)
        .await;
    assert_eq!(output.exit, Exit::Code(0));
}

#[tokio::test]
async fn a_server_that_opens_no_channel_does_not_make_the_port_refuse() {
    let (_home, server, _person, session) = connected().await;
    server.refuse_tunnels.store(true, std::sync::atomic::Ordering::Relaxed);
    let error = session.tunnel("127.0.0.1", echo().await).await.err();
    assert!(matches!(error, Some(TunnelError::NoChannel(_))), "{error:?}");
}

#[tokio::test]
async fn a_lost_connection_ends_its_tunnels_and_opens_no_more() {
    let (_home, server, _person, session) = connected().await;
    let port = echo().await;
    let mut tunnel = session.tunnel("127.0.0.1", port).await.unwrap();
    tunnel.write_all(b"x").await.unwrap();
    let mut byte = [0];
    tunnel.read_exact(&mut byte).await.unwrap();
    server.drop_connections();
    let end = tokio::time::timeout(PATIENCE, tunnel.read(&mut byte)).await.unwrap();
    assert!(matches!(end, Ok(0) | Err(_)));
    session.closed().await;
    assert!(matches!(
        session.tunnel("127.0.0.1", port).await.err(),
        Some(TunnelError::Lost(_))
    ));
}

#[tokio::test]
async fn a_reader_that_falls_behind_loses_its_tunnel_and_stalls_no_other() {
    let (_home, _server, _person, session) = connected().await;
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let pour = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let zeros = vec![0; 1 << 16];
        while stream.write_all(&zeros).await.is_ok() {}
    });
    let mut tunnel = session.tunnel("127.0.0.1", port).await.unwrap();
    // Over when the far side is hung up on.
    tokio::time::timeout(PATIENCE, pour).await.unwrap().unwrap();
    let output = session
        .exec(&Command::argv(["echo", "on"], Duration::from_secs(50)), None)
        .await;
    assert_eq!(output.text(), "on\n");
    let end = tokio::time::timeout(PATIENCE, tunnel.read_to_end(&mut Vec::new()))
        .await
        .unwrap();
    assert!(end.is_err());
}
