//! Passwords and the server's questions on a real sshd with PAM. PAM's own file for sshd is another one in a mount namespace of the test's, so that the
//! machine's stays as it is; that takes root.

use std::sync::Arc;

use bringup::domain::question::Ask;
use bringup::ssh::Reply;
use secrecy::SecretString;

use crate::logins::works;
use crate::person::{Person, here};
use crate::sshd::Sshd;

const PAM: &str = "/etc/pam.d/sshd";

/// An sshd whose PAM takes one password, with these lines of configuration more. `None` where that can't be had.
async fn sshd(more: &'static str) -> Option<Sshd> {
    if !here("/usr/bin/unshare") || !here(PAM) || !may_unshare() {
        eprintln!("left out: no mount namespace for a PAM file");
        return None;
    }
    // The last word is the path of sshd's own configuration, and PAM's is beside it.
    let mount = format!("for last; do :; done; mount --bind \"${{last%/*}}/pam\" {PAM} && exec \"$@\"");
    let through = ["unshare", "-m", "sh", "-c", &mount, "sh"];
    let sshd = Sshd::start_as(&through, |home| {
        let script = home.path("check");
        std::fs::write(&script, "#!/bin/sh\n[ \"$(tr -d '\\000')\" = right ]\n").unwrap();
        std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        let rules = format!(
            "auth required pam_exec.so expose_authtok quiet {}\nauth required pam_permit.so\naccount required pam_permit.so\nsession required pam_permit.so\n",
            script.display()
        );
        std::fs::write(home.path("pam"), rules).unwrap();
        format!("UsePAM yes\n{more}")
    });
    sshd.await
}

fn may_unshare() -> bool {
    let mut try_it = std::process::Command::new("unshare");
    try_it.args(["-m", "true"]).stderr(std::process::Stdio::null());
    try_it.status().is_ok_and(|s| s.success())
}

/// Answers what logins ask with these, one after the other.
fn answers(texts: &'static [&'static str]) -> Arc<Person> {
    let given = std::sync::atomic::AtomicUsize::new(0);
    Person::new(move |ask, _| {
        Some(match ask {
            Ask::HostKey { .. } => Reply::Yes,
            Ask::Passphrase { .. } => Reply::No,
            Ask::Login { .. } => {
                let at = given.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                texts
                    .get(at)
                    .map_or(Reply::No, |t| Reply::Secret(SecretString::from(*t)))
            }
        })
    })
}

fn prompts(person: &Person) -> Vec<(String, bool)> {
    let login = |ask| match ask {
        Ask::Login { prompt, again, .. } => Some((prompt, again)),
        Ask::HostKey { .. } | Ask::Passphrase { .. } => None,
    };
    person.asks().into_iter().filter_map(login).collect()
}

#[tokio::test]
async fn a_key_and_then_pams_question() {
    let Some(sshd) =
        sshd("AuthenticationMethods publickey,keyboard-interactive\nKbdInteractiveAuthentication yes").await
    else {
        return;
    };
    let person = answers(&["wrong", "right"]);
    works(&sshd.home.connect(&sshd.target, &person).await.unwrap()).await;
    let text = prompts(&person).first().unwrap().0.clone();
    assert!(text.contains("Password:"), "{text}");
    assert_eq!(prompts(&person), [(text.clone(), false), (text, true)]);
    // What PAM calls a password is kept for the next connection.
    works(&sshd.home.connect(&sshd.target, &person).await.unwrap()).await;
    assert_eq!(prompts(&person).len(), 2);
}

#[tokio::test]
async fn a_password_where_no_key_is_taken() {
    let Some(mut sshd) =
        sshd("AuthorizedKeysFile none\nKbdInteractiveAuthentication no\nPasswordAuthentication yes").await
    else {
        return;
    };
    sshd.target.keys = vec![sshd.home.path("no-such-key").display().to_string()];
    let person = answers(&["wrong", "right"]);
    works(&sshd.home.connect(&sshd.target, &person).await.unwrap()).await;
    let said: Vec<bool> = prompts(&person).into_iter().map(|p| p.1).collect();
    assert_eq!(said, [false, true]);
    works(&sshd.home.connect(&sshd.target, &person).await.unwrap()).await;
    assert_eq!(prompts(&person).len(), 2);
}

#[tokio::test]
async fn a_server_that_has_had_enough_is_told() {
    let Some(sshd) = sshd("AuthorizedKeysFile none\nPasswordAuthentication yes\nMaxAuthTries 3").await else {
        return;
    };
    let person = answers(&["a", "b", "c", "d", "e", "f"]);
    let error = sshd.home.connect(&sshd.target, &person).await.err().unwrap();
    let kind = error.kind;
    assert_eq!(kind, bringup::domain::link::LinkErrorKind::Refused, "{}", error.text);
    for part in [
        "it refused keys: tried ",
        "it refused keyboard-interactive",
        "Too many authentication failures",
    ] {
        assert!(error.text.contains(part), "{part} is not in {}", error.text);
    }
}
