//! Commands: what comes back, within which limits, and what is left when something goes wrong.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bringup::domain::command::{Command, Exit, Limit};
use bringup::domain::secret::{SecretEnv, SecretFrom};
use bringup::ssh::Session;
use secrecy::SecretString;
use tokio::sync::watch;

use crate::person::connected;
use crate::processes::{PATIENCE, end_all, gone, left, running, until};
use crate::server::Server;

const T: Duration = Duration::from_secs(50);

fn script(body: &'static str) -> Command {
    Command::script("test", body, Vec::new(), T)
}

async fn said(session: &Session, body: &'static str) -> (String, String, Exit) {
    let output = session.exec(&script(body), None).await;
    (
        output.text().into_owned(),
        output.error_text().into_owned(),
        output.exit,
    )
}

#[tokio::test]
async fn outputs_and_exit_codes_come_back() {
    let (_home, _server, _person, session) = connected().await;
    assert_eq!(
        said(&session, "echo out; echo err >&2; cat; exit 3").await,
        ("out\n".into(), "err\n".into(), Exit::Code(3))
    );
    assert_eq!(
        said(&session, "exit 255").await,
        (String::new(), String::new(), Exit::Code(255))
    );
    let output = session
        .exec(&Command::argv(["printf", "%s|", "a b", "it's", "$HOME"], T), None)
        .await;
    assert_eq!((output.text().as_ref(), output.dropped), ("a b|it's|$HOME|", 0));
    assert!(!output.took.is_zero());
}

#[tokio::test]
async fn many_commands_share_one_connection() {
    let (_home, server, _person, session) = connected().await;
    let all = (0..30).map(|n| {
        let (session, command) = (session.clone(), Command::argv(["echo", &n.to_string()], T));
        async move { (n, session.exec(&command, None).await) }
    });
    for (n, output) in futures_util::future::join_all(all).await {
        assert_eq!(
            (output.text().as_ref(), &output.exit),
            (format!("{n}\n").as_str(), &Exit::Code(0))
        );
    }
    assert_eq!(server.connections.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn output_beyond_the_limit_is_counted_and_dropped() {
    let (_home, _server, _person, session) = connected().await;
    let mut command = script("head -c 300000 /dev/zero; head -c 5 /dev/zero >&2; exit 1");
    command.limit = Limit { time: T, bytes: 1000 };
    let output = session.exec(&command, None).await;
    assert_eq!(
        (output.stdout.len(), output.stderr.len(), output.dropped, output.exit),
        (1000, 5, 299_000, Exit::Code(1))
    );
}

#[tokio::test]
async fn a_command_over_its_time_is_ended_on_the_node() {
    let (_home, server, _person, session) = connected().await;
    let mut command = script("echo begun; sleep 1000 & sleep 1001");
    command.limit.time = Duration::from_secs(2);
    let output = session.exec(&command, None).await;
    assert_eq!((output.text().as_ref(), &output.exit), ("begun\n", &Exit::TimedOut));
    gone(&server.mark).await;
    assert_eq!(said(&session, "echo on").await.0, "on\n");
}

#[tokio::test]
async fn a_command_whose_caller_goes_away_is_ended_on_the_node() {
    let (_home, server, _person, session) = connected().await;
    let calling = tokio::spawn({
        let session = session.clone();
        async move { session.exec(&script("sleep 1002"), None).await }
    });
    running(&server.mark, "sleep 1002").await;
    calling.abort();
    gone(&server.mark).await;
}

#[tokio::test]
async fn a_connection_lost_in_mid_command_leaves_its_end_unknown() {
    let (_home, server, _person, session) = connected().await;
    let running_command = async { session.exec(&script("sleep 1003"), None).await };
    let drop = async {
        running(&server.mark, "sleep 1003").await;
        server.drop_connections();
    };
    let (output, ()) = tokio::join!(running_command, drop);
    assert!(
        matches!(&output.exit, Exit::Unknown(why) if why.starts_with("spark-1: ")),
        "{:?}",
        output.exit
    );
    tokio::time::timeout(PATIENCE, session.closed()).await.unwrap();
    let after = session.exec(&script("true"), None).await;
    assert!(
        matches!(&after.exit, Exit::NotStarted(why) if why.contains("the connection is gone")),
        "{:?}",
        after.exit
    );
    gone(&server.mark).await;
}

#[tokio::test]
async fn a_command_that_takes_long_hears_the_heartbeat() {
    let (_home, server, _person, session) = connected().await;
    let nap = Command::argv(["sleep", "1006"], T);
    let work = session.exec(&nap, None);
    let heard = until("two heartbeats", || server.heartbeats.load(Ordering::Relaxed) >= 2);
    tokio::select! { output = work => panic!("{output:?}"), () = heard => {} }
    gone(&server.mark).await;
}

#[tokio::test]
async fn what_a_login_shell_prints_is_left_out() {
    let (_home, server, _person, session) = connected().await;
    *server.login.lock().unwrap() = "echo welcome; printf 'no newline'; echo 'cannot set locale' >&2".into();
    assert_eq!(
        said(&session, "echo out; echo err >&2").await,
        ("out\n".into(), "err\n".into(), Exit::Code(0))
    );
}

#[tokio::test]
async fn a_login_shell_that_runs_nothing_is_told_with_its_own_words() {
    let (_home, server, _person, session) = connected().await;
    *server.login.lock().unwrap() = "echo 'This account is currently not available.'; exit 1".into();
    let (_, _, exit) = said(&session, "echo out").await;
    let expected = "spark-1: the login shell ran no command (exit 1): This account is currently not available.";
    assert_eq!(exit, Exit::NotStarted(expected.into()));
}

#[tokio::test]
async fn a_login_shell_that_never_stops_printing_is_given_up() {
    let (_home, server, _person, session) = connected().await;
    *server.login.lock().unwrap() = "yes".into();
    let (out, _, exit) = said(&session, "echo out").await;
    assert_eq!(
        (out.as_str(), exit),
        (
            "",
            Exit::NotStarted("spark-1: the login shell prints without end".into())
        )
    );
}

#[tokio::test]
async fn a_command_that_comes_up_too_late_does_not_run() {
    let (home, server, _person, session) = connected().await;
    let trace = home.path("trace");
    *server.login.lock().unwrap() = "sleep 3".into();
    let mut command = Command::argv(["touch".to_owned(), trace.display().to_string()], T);
    command.limit.time = Duration::from_secs(1);
    let output = session.exec(&command, None).await;
    assert_eq!(
        output.exit,
        Exit::NotStarted("spark-1: the login shell did not run it in time".into())
    );
    gone(&server.mark).await;
    assert!(!trace.exists());
}

#[tokio::test]
async fn a_refused_channel_leaves_the_connection_alive() {
    let (_home, server, _person, session) = connected().await;
    server.max_sessions.store(0, Ordering::Relaxed);
    let (_, _, exit) = said(&session, "echo out").await;
    assert!(
        matches!(&exit, Exit::NotStarted(why) if why.contains("MaxSessions")),
        "{exit:?}"
    );
    server.max_sessions.store(10, Ordering::Relaxed);
    assert_eq!(said(&session, "echo out").await.0, "out\n");
    assert_eq!(server.connections.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_channel_that_is_confirmed_when_nobody_waits_any_more_is_closed() {
    let (_home, server, _person, session) = connected().await;
    let none_open = || server.sessions.load(Ordering::Relaxed) == 0;
    until("the first command of the connection is over", none_open).await;
    let (go, late) = watch::channel(());
    *server.late.lock().unwrap() = Some(late);
    let mut command = Command::argv(["true"], Duration::from_millis(200));
    command.limit.time = Duration::from_millis(200);
    let exit = session.exec(&command, None).await.exit;
    assert!(matches!(exit, Exit::NotStarted(_)), "{exit:?}");
    assert!(!none_open(), "it is still being opened");
    *server.late.lock().unwrap() = None;
    go.send(()).unwrap();
    until("the late channel is closed", none_open).await;
    assert_eq!(said(&session, "echo out").await.0, "out\n");
}

#[tokio::test]
async fn a_refused_command_is_not_started() {
    let (_home, server, _person, session) = connected().await;
    server.refuse_exec.store(true, Ordering::Relaxed);
    assert_eq!(
        said(&session, "echo out").await.2,
        Exit::NotStarted("spark-1: it refuses to run commands".into())
    );
}

#[tokio::test]
async fn a_secret_reaches_the_environment_of_its_command_only() {
    let (_home, server, _person, session) = connected().await;
    let secret = SecretEnv {
        name: "HF_TOKEN".into(),
        from: SecretFrom::Variable("X".into()),
    };
    let command = script("printf '%s' \"$HF_TOKEN\"").with_secret(Some(secret));
    let output = session.exec(&command, Some(SecretString::from("hf_ s3cret"))).await;
    assert_eq!((output.text().as_ref(), &output.exit), ("hf_ s3cret", &Exit::Code(0)));
    let without = session.exec(&command, None).await;
    assert!(matches!(without.exit, Exit::NotStarted(_)), "{:?}", without.exit);
    session.close().await;
    gone(&server.mark).await;
}

/// Waits until the connection has an open channel for the next command, and no other.
async fn spare(server: &Server) {
    until("one channel waits for work", || {
        server.sessions.load(Ordering::Relaxed) == 1 && left(&server.mark).iter().any(|l| l.contains("sleep 90"))
    })
    .await;
}

#[tokio::test]
async fn the_next_command_finds_an_open_channel_which_ends_with_the_connection() {
    let (_home, server, _person, session) = connected().await;
    assert_eq!(said(&session, "echo one").await.0, "one\n");
    spare(&server).await;
    let opened = server.opened.load(Ordering::Relaxed);
    // Nothing more can be opened: it must be that one.
    server.max_sessions.store(0, Ordering::Relaxed);
    assert_eq!(
        said(&session, "echo two; exit 3").await,
        ("two\n".into(), String::new(), Exit::Code(3))
    );
    server.max_sessions.store(10, Ordering::Relaxed);
    assert_eq!(server.opened.load(Ordering::Relaxed), opened);
    assert_eq!(said(&session, "echo three").await.0, "three\n");
    spare(&server).await;
    session.close().await;
    gone(&server.mark).await;
}

#[tokio::test]
async fn an_open_channel_whose_wrapper_is_gone_costs_the_next_command_nothing() {
    let (_home, server, _person, session) = connected().await;
    assert_eq!(said(&session, "echo one").await.0, "one\n");
    spare(&server).await;
    let killed = end_all(&server.mark, "sh -c");
    assert!(killed > 0);
    assert_eq!(said(&session, "echo two").await.0, "two\n");
}

#[tokio::test]
async fn a_child_left_in_the_background_does_not_hold_the_answer() {
    let (_home, server, _person, session) = connected().await;
    assert_eq!(
        said(&session, "sleep 1004 & echo out").await,
        ("out\n".into(), String::new(), Exit::Code(0))
    );
    // Beside the wrapper that waits for the next command.
    let waits = |line: &String| line.contains("read -r w h") || line.contains("sleep 90");
    for line in left(&server.mark).iter().filter(|l| !waits(l)) {
        assert_eq!(line.trim(), "sleep 1004");
    }
    // It is the script's own doing; this test does not leave it.
    said(&session, "for p in /proc/[0-9]*; do [ \"$(tr '\\0' ' ' 2>/dev/null <$p/cmdline)\" = 'sleep 1004 ' ] && kill ${p#/proc/}; done").await;
}
