//! Commands that go on.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bringup::domain::command::{Command, Exit};
use bringup::ssh::{Chunk, Chunks, Follow, HOLD_AT, MOST, SILENT_AFTER, Stream, pipe};

use crate::person::connected;
use crate::processes::{PATIENCE, gone, running, stopped, until};

const T: Duration = Duration::from_secs(50);

/// A script that is followed.
pub fn script(body: &'static str) -> Command {
    Command::script("test", body, Vec::new(), T).follow()
}

/// Whether a stream ended because its server allows so many session channels at a time.
pub fn yielded(ended: &Exit, allowed: &str) -> bool {
    let why = format!("allows {allowed} at a time");
    matches!(ended, Exit::NotStarted(said) if said.contains(&why) && said.contains("MaxSessions"))
}

/// Ends a stream that has not yielded.
pub async fn stayed(stream: Follow) {
    let exit = stream.stop().await;
    assert_eq!(exit, Exit::Code(143), "it ran until it was told to end");
}

async fn next(chunks: &mut Chunks) -> Chunk {
    tokio::time::timeout(PATIENCE, chunks.recv()).await.unwrap().unwrap()
}

/// Reads on until one output has said this.
async fn hear(chunks: &mut Chunks, stream: Stream, text: &str) {
    let mut said = Vec::new();
    while !String::from_utf8_lossy(&said).contains(text) {
        let chunk = next(chunks).await;
        assert_eq!(chunk.dropped, 0);
        if chunk.stream == stream {
            said.extend_from_slice(&chunk.bytes);
        }
    }
}

#[tokio::test]
async fn both_outputs_come_as_they_are_said_and_stop_ends_it_on_the_node() {
    let (_home, server, _person, session) = connected().await;
    let (inlet, mut chunks) = pipe();
    let follow = session
        .follow(&script("echo one; echo two >&2; sleep 1000 & sleep 1001"), inlet)
        .await
        .unwrap();
    hear(&mut chunks, Stream::Out, "one\n").await;
    let (inlet, mut more) = pipe();
    let second = session
        .follow(&script("echo three >&2; sleep 1002"), inlet)
        .await
        .unwrap();
    hear(&mut more, Stream::Err, "three\n").await;
    assert_eq!(follow.stop().await, Exit::Code(143));
    drop(second);
    gone(&server.mark).await;
    assert_eq!(more.recv().await, None);
}

#[tokio::test]
async fn its_own_end_is_told() {
    let (_home, _server, _person, session) = connected().await;
    let (inlet, mut chunks) = pipe();
    let mut follow = session.follow(&script("echo one; exit 4"), inlet).await.unwrap();
    hear(&mut chunks, Stream::Out, "one\n").await;
    assert_eq!(
        tokio::time::timeout(PATIENCE, follow.wait()).await.unwrap(),
        Exit::Code(4)
    );
    assert_eq!(chunks.recv().await, None);
}

#[tokio::test]
async fn one_that_cannot_start_says_so() {
    let (_home, server, _person, session) = connected().await;
    *server.login.lock().unwrap() = "exit 9".into();
    let (inlet, _chunks) = pipe();
    let exit = session.follow(&script("echo one"), inlet).await.err().unwrap();
    assert_eq!(
        exit,
        Exit::NotStarted("spark-1: the login shell ran no command (exit 9)".into())
    );
    *server.login.lock().unwrap() = "sleep 3".into();
    let (inlet, _chunks) = pipe();
    let mut slow = script("echo one");
    slow.limit.time = Duration::from_secs(1);
    let expected = Exit::NotStarted("spark-1: the login shell did not run it in time".into());
    assert_eq!(session.follow(&slow, inlet).await.err(), Some(expected));
}

#[tokio::test]
async fn one_that_is_not_read_is_held_on_its_node_stalls_no_other_and_goes_on() {
    const ALL: u64 = 100_000_000;
    let (_home, server, _person, session) = connected().await;
    let (inlet, mut chunks) = pipe();
    let mut follow = session
        .follow(&script("head -c 100000000 /dev/zero"), inlet)
        .await
        .unwrap();
    // Its reader stands still until here.
    until("it is held", || stopped(&server.mark, "head -c")).await;
    assert!(chunks.held());
    for _ in 0..3 {
        let output = session.exec(&Command::argv(["echo", "on"], T), None).await;
        assert_eq!((output.text().as_ref(), &output.exit), ("on\n", &Exit::Code(0)));
    }
    assert!(stopped(&server.mark, "head -c"));
    let mut came = 0;
    while let Some(chunk) = tokio::time::timeout(PATIENCE, chunks.recv()).await.unwrap() {
        assert!(chunks.waiting() <= MOST, "{}", chunks.waiting());
        came += chunk.bytes.len() as u64 + chunk.dropped;
    }
    assert_eq!(follow.wait().await, Exit::Code(0));
    // How soon the hold takes effect is this machine's affair: what is lost till then is counted.
    let last = follow.dropped();
    assert!(came <= ALL && ALL - came <= last, "{came} and {last}");
    assert!(came > HOLD_AT as u64);
}

#[tokio::test]
async fn one_that_is_held_ends_when_it_is_told_to() {
    let (_home, server, _person, session) = connected().await;
    let (inlet, chunks) = pipe();
    let follow = session.follow(&script("cat /dev/zero"), inlet).await.unwrap();
    until("it is held", || stopped(&server.mark, "cat /dev/zero")).await;
    assert_eq!(follow.stop().await, Exit::Code(143));
    gone(&server.mark).await;
    drop(chunks);
}

#[tokio::test]
async fn the_end_of_the_connection_ends_it_on_the_node() {
    let (_home, server, _person, session) = connected().await;
    let (inlet, mut chunks) = pipe();
    let mut follow = session.follow(&script("echo up; sleep 1004"), inlet).await.unwrap();
    hear(&mut chunks, Stream::Out, "up\n").await;
    running(&server.mark, "sleep 1004").await;
    session.close().await;
    assert_eq!(follow.wait().await, Exit::Unknown("spark-1: closed by bringup".into()));
    gone(&server.mark).await;
    drop((Arc::new(session), follow));
}

#[tokio::test]
async fn where_closed_channels_are_put_away_late_no_stream_yields_that_fits() {
    let (_home, server, _person, session) = connected().await;
    until("the first command of the connection is over", || {
        server.opened.load(Ordering::Relaxed) == 1 && server.sessions.load(Ordering::Relaxed) == 0
    })
    .await;
    server.max_sessions.store(2, Ordering::Relaxed);
    server.slow_to_put_away.store(true, Ordering::Relaxed);
    let (inlet, mut chunks) = pipe();
    let readings = session.follow(&script("echo up; sleep 1005"), inlet).await.unwrap();
    assert!(chunks.recv().await.is_some());
    let (inlet, _log) = pipe();
    let mut log = session
        .follow_last(&script("echo up; sleep 1006"), inlet)
        .await
        .unwrap();
    assert_eq!(
        session.exec(&Command::argv(["true"], T), None).await.exit,
        Exit::Code(0)
    );
    // Of these the first ends, the second is refused what was just closed, the third goes before it, and the second is refused once more.
    let lasts = Command::argv(["sleep", "0.3"], T);
    let all = (0..3).map(|_| session.exec(&lasts, None));
    for output in futures_util::future::join_all(all).await {
        assert_eq!(output.exit, Exit::Code(0));
    }
    let ended = log.wait().await;
    assert!(yielded(&ended, "2 session channels"), "{ended:?}");
    stayed(readings).await;
}

#[tokio::test]
async fn a_peer_that_says_nothing_is_not_told_as_a_login_shell_that_is_late() {
    let (_home, server, _person, session) = connected().await;
    assert!(session.exec(&Command::argv(["true"], T), None).await.exit.ok());
    server.hang();
    let limit = SILENT_AFTER + Duration::from_secs(2);
    let mut late = script("echo up; sleep 1007");
    late.limit.time = limit;
    let (inlet, _chunks) = pipe();
    let brief = Command::argv(["true"], limit);
    let (followed, asked) = tokio::join!(session.follow(&late, inlet), session.exec(&brief, None));
    // As long as it may come back what is to be followed is not given up.
    let gone = "spark-1: the connection is gone: the peer said nothing for 15 s";
    assert_eq!(followed.err().unwrap(), Exit::NotStarted(gone.into()));
    assert!(
        matches!(&asked.exit, Exit::NotStarted(why) if why.contains("answer")),
        "{:?}",
        asked.exit
    );
}
