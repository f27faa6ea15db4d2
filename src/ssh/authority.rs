//! Host certificates: whether one that an `@cert-authority` line lets an authority sign is good for a host.

use russh::Preferred;
use russh::keys::ssh_key::certificate::CertType;
use russh::keys::{Algorithm, Certificate};

/// The kinds of certificates that are asked for, the library's order.
pub(super) fn algorithms() -> Vec<Algorithm> {
    // SHA-1 signatures prove nothing any more.
    let good = |a: &&Algorithm| !matches!(a, Algorithm::Rsa { hash: None } | Algorithm::Dsa);
    Preferred::DEFAULT.key.iter().filter(good).cloned().collect()
}

/// Checks what OpenSSH checks beside the authority itself: `name` is the one under which the host's key would be on file, `now` in seconds since 1970.
///
/// # Errors
/// Why it is not good; a fragment.
pub(super) fn check(certificate: &Certificate, name: &str, now: u64) -> Result<(), String> {
    if certificate.cert_type() != CertType::Host {
        return Err("it is a user's certificate, not a host's".to_owned());
    }
    if matches!(
        certificate.signature().algorithm(),
        Algorithm::Rsa { hash: None } | Algorithm::Dsa
    ) {
        return Err("its signature is of a kind that is no longer safe".to_owned());
    }
    if certificate.verify_signature().is_err() {
        return Err("its signature is wrong".to_owned());
    }
    if now < certificate.valid_after() {
        return Err("it is not valid yet (is this machine's clock right?)".to_owned());
    }
    if now >= certificate.valid_before() {
        return Err("it has expired".to_owned());
    }
    let names = certificate.valid_principals();
    // As in OpenSSH one without names is good for each host that the authority's line names.
    if !names.is_empty() && !names.iter().any(|n| n.eq_ignore_ascii_case(name)) {
        return Err(format!(
            "it is for {}, not for {name}",
            super::errors::printable(&names.join(", "))
        ));
    }
    if let Some((option, _)) = certificate.critical_options().iter().next() {
        return Err(format!(
            "it has the critical option {}, which nobody knows",
            super::errors::printable(option)
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use russh::keys::PrivateKey;
    use russh::keys::key::safe_rng;
    use russh::keys::ssh_key::certificate::Builder;

    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn key() -> PrivateKey {
        PrivateKey::random(&mut safe_rng(), Algorithm::Ed25519).unwrap()
    }

    /// A certificate for node.lab, valid around [`NOW`], with some changes.
    fn certificate(kind: CertType, change: impl FnOnce(&mut Builder)) -> Certificate {
        let host = key();
        let mut builder =
            Builder::new_with_random_nonce(&mut safe_rng(), host.public_key(), NOW - 10, NOW + 10).unwrap();
        builder.cert_type(kind).unwrap();
        change(&mut builder);
        builder.sign(&key()).unwrap()
    }

    fn named(builder: &mut Builder) {
        builder.valid_principal("gate.lab").unwrap();
        builder.valid_principal("node.lab").unwrap();
    }

    #[test]
    fn a_good_certificate_is_good_for_its_names_alone() {
        let good = certificate(CertType::Host, named);
        assert_eq!(check(&good, "node.lab", NOW), Ok(()));
        assert_eq!(check(&good, "NODE.lab", NOW), Ok(()));
        let why = check(&good, "lab", NOW).unwrap_err();
        assert_eq!(why, "it is for gate.lab, node.lab, not for lab");
        let for_all = certificate(CertType::Host, |b| {
            b.all_principals_valid().unwrap();
        });
        assert_eq!(check(&for_all, "anything", NOW), Ok(()));
    }

    #[test]
    fn a_bad_certificate_says_why() {
        let good = certificate(CertType::Host, named);
        let user = certificate(CertType::User, named);
        let critical = certificate(CertType::Host, |b| {
            named(b);
            b.critical_option("force-command", "x").unwrap();
        });
        let mut bytes = good.to_bytes().unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        let forged = Certificate::from_bytes(&bytes).unwrap();
        let cases = [
            (&good, NOW - 11, "it is not valid yet (is this machine's clock right?)"),
            (&good, NOW + 10, "it has expired"),
            (&user, NOW, "it is a user's certificate, not a host's"),
            (
                &critical,
                NOW,
                "it has the critical option force-command, which nobody knows",
            ),
            (&forged, NOW, "its signature is wrong"),
        ];
        for (certificate, now, expected) in cases {
            assert_eq!(check(certificate, "node.lab", now), Err(expected.to_owned()));
        }
    }

    #[test]
    fn nothing_with_sha1_is_asked_for() {
        let names: Vec<String> = algorithms().iter().map(Algorithm::to_certificate_type).collect();
        assert!(
            names.contains(&"ssh-ed25519-cert-v01@openssh.com".to_owned()),
            "{names:?}"
        );
        assert!(!names.contains(&"ssh-rsa-cert-v01@openssh.com".to_owned()), "{names:?}");
    }
}
