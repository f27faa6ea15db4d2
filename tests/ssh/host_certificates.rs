//! Host certificates, shown by a real sshd. Left out where there is none.

use std::path::Path;

use bringup::domain::link::LinkErrorKind;
use russh::keys::key::safe_rng;
use russh::keys::ssh_key::certificate::{Builder, CertType};
use russh::keys::{Algorithm, PrivateKey, load_secret_key};

use crate::hops::say;
use crate::person::{Home, Person, here};
use crate::server::key;
use crate::sshd::{Sshd, restrict};

/// From 2020 to 2100: a certificate that is valid while this is tested.
const VALID: (u64, u64) = (1_577_836_800, 4_102_444_800);

/// Signs the host key of a home and names the certificate in sshd's configuration.
fn certify(home: &Home, authority: &PrivateKey, name: &str, (after, before): (u64, u64)) -> String {
    let host = load_secret_key(home.path("host"), None).unwrap();
    let mut builder = Builder::new_with_random_nonce(&mut safe_rng(), host.public_key(), after, before).unwrap();
    builder.cert_type(CertType::Host).unwrap();
    builder.key_id("spark").unwrap();
    builder.valid_principal(name).unwrap();
    let file = home.path("host-cert.pub");
    std::fs::write(&file, builder.sign(authority).unwrap().to_openssh().unwrap()).unwrap();
    format!("HostCertificate {}", file.display())
}

/// Writes known_hosts lines; `CA` and `HOST` stand for the keys.
fn on_file(sshd: &Sshd, authority: &PrivateKey, lines: &str) {
    let host = load_secret_key(sshd.home.path("host"), None).unwrap();
    let text = |k: &PrivateKey| k.public_key().to_openssh().unwrap();
    let lines = lines.replace("CA", &text(authority)).replace("HOST", &text(&host));
    std::fs::write(
        sshd.home.path("known_hosts"),
        lines.replace("PORT", &sshd.port.to_string()),
    )
    .unwrap();
}

#[tokio::test]
async fn a_host_that_an_authority_vouches_for_is_known() {
    for algorithm in [
        Algorithm::Ed25519,
        Algorithm::Ecdsa {
            curve: russh::keys::EcdsaCurve::NistP384,
        },
    ] {
        let authority = key(algorithm);
        let Some(sshd) = Sshd::start_with(|home| certify(home, &authority, "127.0.0.1", VALID)).await else {
            return;
        };
        let person = Person::trusting();
        for lines in [
            "@cert-authority 127.0.0.* CA\n",
            "@cert-authority [127.0.0.1]:PORT CA\n",
            "# nothing\n@cert-authority * CA\n[127.0.0.1]:PORT HOST\n",
        ] {
            on_file(&sshd, &authority, lines);
            let session = sshd.home.connect(&sshd.target, &person).await.unwrap();
            assert_eq!(say(&session, "hello").await, "hello\n");
        }
        assert!(person.asks().is_empty());
        // Without a line about it the key counts alone.
        on_file(&sshd, &authority, "@cert-authority *.lab CA\n");
        sshd.home.connect(&sshd.target, &person).await.unwrap();
        assert_eq!(person.asks().len(), 1);
    }
}

#[tokio::test]
async fn a_bad_certificate_is_refused_with_its_reason() {
    let authority = key(Algorithm::Ed25519);
    let cases = [
        (
            "node.lab",
            VALID,
            "@cert-authority * CA\n",
            "it is for node.lab, not for 127.0.0.1",
        ),
        (
            "127.0.0.1",
            (VALID.0, VALID.0 + 1),
            "@cert-authority * CA\n",
            "it has expired",
        ),
        (
            "127.0.0.1",
            (VALID.1 - 1, VALID.1),
            "@cert-authority * CA\n",
            "it is not valid yet",
        ),
        (
            "127.0.0.1",
            VALID,
            "@cert-authority * CA\n@revoked * CA\n",
            "the key that signed the host's certificate is marked as revoked",
        ),
        (
            "127.0.0.1",
            VALID,
            "@cert-authority * CA\n@revoked * HOST\n",
            "the host key is marked as revoked",
        ),
    ];
    for (name, valid, lines, why) in cases {
        let Some(sshd) = Sshd::start_with(|home| certify(home, &authority, name, valid)).await else {
            return;
        };
        on_file(&sshd, &authority, lines);
        let person = Person::trusting();
        let error = sshd.home.connect(&sshd.target, &person).await.err().unwrap();
        assert_eq!(error.kind, LinkErrorKind::HostKeyChanged, "{}", error.text);
        assert!(error.text.contains(why), "{why} is not in {}", error.text);
        assert!(person.asks().is_empty());
        if !lines.contains("@revoked") {
            // As with OpenSSH the key itself may be on file.
            on_file(&sshd, &authority, &format!("{lines}[127.0.0.1]:PORT HOST\n"));
            sshd.home.connect(&sshd.target, &person).await.unwrap();
        }
    }
}

#[tokio::test]
async fn the_cure_of_an_unknown_key_works_when_pasted() {
    let (Some(mut sshd), true) = (Sshd::start("").await, here("/usr/bin/ssh")) else {
        return;
    };
    restrict(&sshd.home.path("id"));
    sshd.home.settings.interactive = false;
    std::fs::create_dir(sshd.home.path("a b")).unwrap();
    sshd.home.settings.known_hosts = vec![sshd.home.path("a b/known hosts")];
    let error = sshd
        .home
        .connect(&sshd.target, &Person::trusting())
        .await
        .err()
        .unwrap();
    let command = error.fix.as_deref().unwrap().split_once('\n').unwrap().1.to_owned();
    let run = |command: &str| {
        let output = std::process::Command::new("/bin/sh")
            .args(["-c", command])
            .output()
            .unwrap();
        (
            output.status.success(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    // A person says yes; here an option does.
    let yes = command.replace("ssh -i", "ssh -o StrictHostKeyChecking=accept-new -o BatchMode=yes -i");
    let (done, said) = run(&yes);
    assert!(done, "{yes}: {said}");
    assert!(Path::new(&sshd.home.path("a b/known hosts")).exists());
    sshd.home.connect(&sshd.target, &Person::trusting()).await.unwrap();
}
