//! Hosts of the operator's ssh_config: real `ssh -G` on a file of the test's own, ProxyJump chains, ProxyCommand.

use std::sync::Arc;

use bringup::domain::link::{HostKeys, LinkErrorKind, LinkState};
use bringup::domain::{HopId, Source};
use bringup::drive::with_ssh_config;
use bringup::ssh::{HopHandle, Reporter, Session, Target, proxy_jumps};

use crate::hops::say;
use crate::person::{Home, NODE, Person, here, text};
use crate::server::Server;
use crate::sshd::Sshd;

const SSH: &str = "/usr/bin/ssh";
const BASH: &str = "/bin/bash";

/// A home whose ssh_config is this, with HOME for its folder; `None` where there is no ssh.
fn home(config: &str) -> Option<Home> {
    here(SSH).then(|| {
        let mut home = Home::new();
        write(&mut home, config);
        home
    })
}

fn write(home: &mut Home, config: &str) {
    let folder = home.folder.path().display().to_string();
    std::fs::write(home.path("config"), config.replace("HOME", &folder)).unwrap();
    home.settings.ssh_config = Some(home.path("config"));
    // What the file says counts.
    home.settings.known_hosts = Vec::new();
}

fn alias(name: &str) -> Target {
    Target {
        name: "spark-1".into(),
        host: name.into(),
        port: None,
        user: None,
        keys: Vec::new(),
        alias: true,
        direct: false,
    }
}

/// The hosts before an alias, as `user@host:port`.
async fn before(home: &Home, name: &str) -> Result<Vec<String>, String> {
    let hosts = proxy_jumps(&alias(name), &home.settings).await.map_err(|e| e.text)?;
    let word = |t: Target| {
        let user = t.user.map(|u| format!("{u}@")).unwrap_or_default();
        let port = t.port.map(|p| format!(":{p}")).unwrap_or_default();
        format!("{user}{}{port}", t.host)
    };
    Ok(hosts.into_iter().map(word).collect())
}

#[tokio::test]
async fn include_match_and_tokens_are_read_as_ssh_reads_them() {
    let Some(mut home) = home("") else { return };
    let server = Server::new(&[&home.key]);
    let port = server.listen().await;
    write(
        &mut home,
        &format!(
            "Include HOME/more\nHost spark\n  Port {port}\n  UserKnownHostsFile \"HOME/known %n\"\n  GlobalKnownHostsFile none\n  StrictHostKeyChecking accept-new\n\
             Match originalhost spark user aurora\n  IdentityFile HOME/id_%h\n"
        ),
    );
    std::fs::write(
        home.path("more"),
        "Host *\n  HostName 127.0.0.1\n  User aurora\n  IdentitiesOnly yes\n",
    )
    .unwrap();
    home.write_key("id_127.0.0.1", &home.key);
    let person = Person::trusting();
    let session = home.connect(&alias("spark"), &person).await.unwrap();
    assert_eq!(say(&session, "hello").await, "hello\n");
    assert!(person.asks().is_empty());
    let known = std::fs::read_to_string(home.path("known spark")).unwrap();
    assert!(
        known.starts_with(&format!("[127.0.0.1]:{port} ssh-ed25519 ")),
        "{known}"
    );

    // The user that bringup's config names is the one that Match sees.
    let other = Target {
        user: Some("root".into()),
        ..alias("spark")
    };
    let error = home.connect(&other, &person).await.err().unwrap();
    assert!(!error.text.contains("id_127.0.0.1"), "{}", error.text);
}

#[tokio::test]
async fn a_policy_of_ours_wins_and_no_is_taken_for_accept_new() {
    let Some(mut home) = home("") else { return };
    let server = Server::new(&[&home.key]);
    let port = server.listen().await;
    write(
        &mut home,
        &format!(
            "Host spark\n  HostName 127.0.0.1\n  Port {port}\n  User aurora\n  IdentityFile HOME/id\n  UserKnownHostsFile HOME/known\n  HostKeyAlias sparks\n\
             \x20 StrictHostKeyChecking no\n"
        ),
    );
    home.settings.host_keys = Some(HostKeys::Strict);
    let person = Person::trusting();
    let error = home.connect(&alias("spark"), &person).await.err().unwrap();
    assert_eq!(error.kind, LinkErrorKind::HostKeyUnknown);
    home.settings.host_keys = None;
    home.connect(&alias("spark"), &person).await.unwrap();
    let known = std::fs::read_to_string(home.path("known")).unwrap();
    assert!(known.starts_with("sparks ssh-ed25519 "), "{known}");
    let other = crate::server::key(russh::keys::Algorithm::Ed25519);
    std::fs::write(
        home.path("known"),
        format!("sparks {}", other.public_key().to_openssh().unwrap()),
    )
    .unwrap();
    let error = home.connect(&alias("spark"), &person).await.err().unwrap();
    assert_eq!(error.kind, LinkErrorKind::HostKeyChanged);
    assert!(error.text.contains("StrictHostKeyChecking no"), "{}", error.text);
    assert!(person.asks().is_empty());
}

#[tokio::test]
async fn proxy_jumps_form_chains() {
    let Some(home) = home(
        "Host spark\n  HostName %h.lab\n  ProxyJump ops@inner:2200,[fe80::1]:22\nHost inner\n  ProxyJump outer\n\
         Host named\n  HostName real\n  ProxyJump gate-%h\nHost uri\n  ProxyJump ssh://u@gate:33\nHost off\n  ProxyJump none\n\
         Host ring1\n  ProxyJump ring2\nHost ring2\n  ProxyJump ring3\nHost ring3\n  ProxyJump ring2\nHost loop\n  ProxyJump loop\n\
         Host command\n  ProxyCommand nc %h %p\n",
    ) else {
        return;
    };
    let all = |words: &[&str]| Ok(words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>());
    assert_eq!(
        before(&home, "spark").await,
        all(&["outer", "ops@inner:2200", "fe80::1:22"])
    );
    assert_eq!(before(&home, "named").await, all(&["gate-real"]));
    assert_eq!(before(&home, "uri").await, all(&["u@gate:33"]));
    for name in ["off", "command", "nowhere"] {
        assert_eq!(before(&home, name).await, all(&[]), "{name}");
    }
    let circle = before(&home, "ring1").await.unwrap_err();
    assert!(circle.contains("go round in a circle"), "{circle}");
    let own = before(&home, "loop").await.unwrap_err();
    assert!(own.contains("jumphost loop via loop"), "{own}");
    // What is wrong is told again by whoever dials it.
    let error = home.connect(&alias("ring1"), &Person::trusting()).await.err().unwrap();
    assert_eq!((error.kind, error.text), (LinkErrorKind::Local, circle));
}

#[tokio::test]
async fn proxy_jumps_become_hops_that_are_dialled_once() {
    let Some(home) =
        home("Host n1 n2\n  ProxyJump ops@gate,inner\nHost n3\n  ProxyJump ops@gate\nHost b\n  ProxyJump a\n")
    else {
        return;
    };
    let node = |name: &str, role: &str, more: &str, last: u8| {
        format!(
            "[[node]]\nname = \"{name}\"\nrole = \"{role}\"\nalias = \"{name}\"\nfabric_address = \"10.0.0.{last}\"\n{more}\n"
        )
    };
    let config = |ssh: &str, nodes: &str| {
        let text = format!(
            "[cluster]\nname = \"one\"\n[ssh]\nssh_config = \"{}\"\n{ssh}\n{nodes}[engine]\nkind = \"vllm-ray\"\n[container]\nimage = \"i\"\nname = \"vllm\"\n\
             [serve]\nmodel = \"m\"\n",
            home.path("config").display()
        );
        bringup::config::parse(&text, "config.toml").unwrap()
    };
    let told = |config: &bringup::config::Config| {
        let hops: Vec<_> = config
            .ssh
            .jump
            .iter()
            .map(|h| (h.name.clone(), h.via.map(|v| v.0)))
            .collect();
        (
            hops,
            config.nodes.iter().map(|n| n.via.map(|v| v.0)).collect::<Vec<_>>(),
        )
    };
    let nodes = [
        node("n1", "head", "", 1),
        node("n2", "worker", "", 2),
        node("n3", "worker", "", 3),
        node("n4", "worker", "", 4),
    ];
    let made = with_ssh_config(config("", &nodes.concat()), home.folder.path()).await;
    let hop = |name: &str, via| (name.to_owned(), via);
    assert_eq!(
        told(&made),
        (
            vec![hop("gate", None), hop("inner", Some(0))],
            vec![Some(1), Some(1), Some(0), None]
        )
    );
    // A way of ours wins, for nodes and between hops; only the first hop has one of ssh_config's.
    let nodes = [node("n1", "head", "", 1), node("n2", "worker", "via = \"direct\"", 2)];
    let made = with_ssh_config(config("jump = [\"b\", \"n3\"]", &nodes.concat()), home.folder.path()).await;
    assert_eq!(
        told(&made),
        (
            vec![hop("b", Some(2)), hop("n3", Some(0)), hop("a", None)],
            vec![Some(1), None]
        )
    );
}

#[tokio::test]
async fn a_chain_of_real_servers_is_gone_through() {
    let (Some(outer), Some(inner)) = (Sshd::start("").await, Sshd::start("").await) else {
        return;
    };
    let Some(mut home) = home("") else { return };
    let host = |name: &str, sshd: &Sshd, more: &str| {
        format!(
            "Host {name}\n{more}  HostName 127.0.0.1\n  Port {}\n  User {}\n  IdentityFile {}\n",
            sshd.port,
            sshd.target.user.as_deref().unwrap(),
            sshd.home.path("id").display()
        )
    };
    write(
        &mut home,
        &format!(
            "{}{}{}Host *\n  UserKnownHostsFile HOME/known\n  StrictHostKeyChecking accept-new\n",
            host("outer", &outer, ""),
            host("inner", &inner, "  ProxyJump outer\n"),
            host("spark", &inner, "  ProxyJump inner\n")
        ),
    );
    let person = Person::trusting();
    let mut via: Option<HopHandle> = None;
    for (place, hop) in proxy_jumps(&alias("spark"), &home.settings)
        .await
        .unwrap()
        .into_iter()
        .enumerate()
    {
        let source = Source::Hop(HopId(place.try_into().unwrap()));
        let reporter = Arc::clone(&person) as Arc<dyn Reporter>;
        via = Some(HopHandle::start(
            hop,
            via.take(),
            home.settings.clone(),
            reporter,
            source,
        ));
    }
    let reporter = Arc::clone(&person) as Arc<dyn Reporter>;
    let session = Session::connect(&alias("spark"), via, &home.settings, reporter, NODE)
        .await
        .unwrap();
    assert_eq!(say(&session, "hello").await, "hello\n");
    for hop in [HopId(0), HopId(1)] {
        assert_eq!(person.links(Source::Hop(hop)).last(), Some(&LinkState::Up), "{hop:?}");
    }
}

/// A ProxyCommand without `nc`.
const THROUGH_BASH: &str = "bash -c 'exec 3<>/dev/tcp/%h/%p; cat <&3 & cat >&3'";

#[tokio::test]
async fn a_proxy_command_is_the_wire() {
    let Some(mut home) = home("").filter(|_| here(BASH)) else {
        return;
    };
    let server = Server::new(&[&home.key]);
    let port = server.listen().await;
    write(
        &mut home,
        &format!(
            "Host spark\n  HostName 127.0.0.1\n  Port {port}\n  User aurora\n  IdentityFile HOME/id\n  UserKnownHostsFile HOME/known\n  ProxyCommand {THROUGH_BASH}\n\
             Host dead\n  ProxyCommand sh -c 'echo trying >&2; echo \"no way to %n\" >&2; exit 4'\nHost fd\n  ProxyCommand x\n  ProxyUseFdpass yes\n"
        ),
    );
    let person = Person::trusting();
    let session = home.connect(&alias("spark"), &person).await.unwrap();
    assert_eq!(say(&session, "hello").await, "hello\n");
    session.close().await;

    let error = home.connect(&alias("dead"), &person).await.err().unwrap();
    assert_eq!(error.kind, LinkErrorKind::Unreachable);
    assert!(
        error
            .text
            .ends_with("the ProxyCommand ended (exit status: 4): no way to dead"),
        "{}",
        text(&error)
    );
    let error = home.connect(&alias("fd"), &person).await.err().unwrap();
    assert!(
        error.kind == LinkErrorKind::Local && error.text.contains("ProxyUseFdpass"),
        "{}",
        error.text
    );
    let direct = Target {
        direct: true,
        host: "spark".into(),
        ..alias("spark")
    };
    let session = home.connect(&direct, &person).await.unwrap();
    assert_eq!(say(&session, "direct").await, "direct\n");
}

#[tokio::test]
async fn ssh_itself_can_be_the_proxy_command() {
    let (Some(gate), true) = (Sshd::start("").await, here(SSH)) else {
        return;
    };
    let Some(mut home) = home("") else { return };
    let gate_key = gate.home.path("host");
    let public = russh::keys::load_secret_key(&gate_key, None)
        .unwrap()
        .public_key()
        .to_openssh()
        .unwrap();
    std::fs::write(home.path("known"), format!("[127.0.0.1]:{} {public}\n", gate.port)).unwrap();
    crate::sshd::restrict(&gate.home.path("id"));
    write(
        &mut home,
        &format!(
            "Host *\n  User {user}\n  IdentityFile {key}\n  IdentitiesOnly yes\n  UserKnownHostsFile HOME/known\n\
             Host spark\n  HostName 127.0.0.1\n  Port {port}\n  ProxyCommand ssh -F HOME/config -p {port} -W %h:%p 127.0.0.1\n",
            user = gate.target.user.as_deref().unwrap(),
            key = gate.home.path("id").display(),
            port = gate.port
        ),
    );
    let session = home.connect(&alias("spark"), &Person::trusting()).await.unwrap();
    assert_eq!(say(&session, "hello").await, "hello\n");
}
