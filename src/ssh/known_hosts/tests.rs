//! Entries of known_hosts files as they are seen: patterns, hashes, revoked keys, authorities, and files that can't be read.

use super::*;

const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ";
const OTHER: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA6rWI3G1sz07DnfFlrouTcysQlj2P+jpNSOEWD9OJ3X";
/// `example.com`, hashed by ssh-keygen, with the key below.
const HASHED: &str = "|1|O33ESRMWPVkMYIwJ1Uw+n877jTo=|nuuC5vEqXlEZ/8BXQR7m619W6Ak=";
const ECDSA: &str = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBEmKSENjQEezOmxkZMy7opKgwFB9nkt5YRrYMjNuG5N87uRgg6CLrbo5wAdT/y6v0mKV0U2w0WZ2YB/++Tpockg=";

fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Known => "known",
        Verdict::Unknown => "unknown",
        Verdict::Changed(_) => "changed",
        Verdict::Revoked(_) => "revoked",
    }
}

#[test]
fn lines_are_read_as_openssh_reads_them() {
    let key: PublicKey = KEY.parse().unwrap();
    // Each case: the file with K and O for the keys, the host, the port, the verdict on K.
    let cases = [
        ("", "a", 22, "unknown"),
        ("a K", "a", 22, "known"),
        ("A K", "a", 22, "known"),
        ("a K", "A", 22, "known"),
        ("a\tK", "a", 22, "known"),
        ("  a   K comment", "a", 22, "known"),
        ("# a K", "a", 22, "unknown"),
        ("b,a K", "a", 22, "known"),
        ("b K", "a", 22, "unknown"),
        ("a O", "a", 22, "changed"),
        ("a O\na K", "a", 22, "known"),
        ("a E", "a", 22, "changed"),
        ("[a]:2222 K", "a", 2222, "known"),
        ("[a]:2222 O", "a", 2222, "changed"),
        ("[a]:2222 K", "a", 22, "unknown"),
        ("a K", "a", 2222, "known"),
        ("a O", "a", 2222, "unknown"),
        ("*.lab K", "n1.lab", 22, "known"),
        ("n?.lab O", "n1.lab", 22, "changed"),
        ("*.lab,!n1.lab O", "n1.lab", 22, "unknown"),
        ("[*.lab]:2222 K", "n1.lab", 2222, "known"),
        ("@revoked a K", "a", 22, "revoked"),
        ("a K\n@revoked * K", "a", 22, "revoked"),
        ("@revoked a O", "a", 22, "unknown"),
        ("@cert-authority * K", "a", 22, "unknown"),
        ("H K", "example.com", 22, "known"),
        ("H O", "example.com", 22, "changed"),
        ("H K", "example.org", 22, "unknown"),
        ("@revoked H K", "example.com", 22, "revoked"),
        ("nonsense\na K", "a", 22, "known"),
    ];
    for (text, host, port, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("known_hosts");
        let text = text.replace('E', ECDSA).replace("H ", &format!("{HASHED} "));
        let text = text
            .replace(" K", &format!(" {KEY}"))
            .replace("\tK", &format!("\t{KEY}"))
            .replace(" O", &format!(" {OTHER}"));
        std::fs::write(&file, &text).unwrap();
        let verdict = Known::read(&[file], host, port).judge(&key);
        assert_eq!(word(&verdict), expected, "{text} for {host}:{port}");
    }
}

#[test]
fn several_files_count_and_a_change_names_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    std::fs::write(&two, format!("# comment\n\na {OTHER}\n")).unwrap();
    let files = [one, two.clone()];
    let key: PublicKey = KEY.parse().unwrap();
    let Verdict::Changed(others) = Known::read(&files, "a", 22).judge(&key) else {
        panic!("not changed")
    };
    let described: Vec<String> = others.iter().map(OnFile::describe).collect();
    let other: PublicKey = OTHER.parse().unwrap();
    assert_eq!(
        described,
        [format!(
            "ssh-ed25519 {} ({}, line 3)",
            fingerprint(&other),
            two.display()
        )]
    );
    assert_eq!(Known::read(&files, "a", 22).algorithms(), [Algorithm::Ed25519]);
}

#[test]
fn an_appended_key_is_known_afterwards_and_tears_no_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("new/known_hosts");
    let (key, other): (PublicKey, PublicKey) = (KEY.parse().unwrap(), OTHER.parse().unwrap());
    append(&file, "a", 22, &key).unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.trim_end()).unwrap();
    append(&file, "B", 2222, &other).unwrap();
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        format!("a {KEY}\n[b]:2222 {OTHER}\n")
    );
    assert_eq!(
        word(&Known::read(std::slice::from_ref(&file), "b", 2222).judge(&other)),
        "known"
    );
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn keys_of_a_list_of_revoked_ones_are_revoked_for_every_host() {
    let folder = tempfile::tempdir().unwrap();
    let (file, list) = (folder.path().join("known_hosts"), folder.path().join("revoked"));
    std::fs::write(&file, format!("a {KEY}\n")).unwrap();
    std::fs::write(&list, format!("# old\n{KEY}\n")).unwrap();
    let key: PublicKey = KEY.parse().unwrap();
    let mut known = Known::read(&[file], "a", 22);
    assert_eq!(word(&known.judge(&key)), "known");
    known.deny(&list).unwrap();
    assert_eq!(word(&known.judge(&key)), "revoked");
    std::fs::write(&list, "SSHKRL\n\0\0\0\0\x01").unwrap();
    assert!(known.deny(&list).unwrap_err().contains("binary list"));
    assert!(
        known
            .deny(&folder.path().join("none"))
            .unwrap_err()
            .contains("can't be read")
    );
}

#[test]
fn an_authority_counts_for_the_hosts_of_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("known_hosts");
    std::fs::write(
        &file,
        format!("@cert-authority *.lab,!x.lab {KEY}\n@revoked * {OTHER}\n"),
    )
    .unwrap();
    let files = [file];
    let (key, other): (PublicKey, PublicKey) = (KEY.parse().unwrap(), OTHER.parse().unwrap());
    for (host, port, expected) in [
        ("n.lab", 22, true),
        ("N.lab", 2222, true),
        ("x.lab", 22, false),
        ("n", 22, false),
    ] {
        let known = Known::read(&files, host, port);
        assert_eq!(known.has_authority(), expected, "{host}");
        assert_eq!(known.authority(key.key_data()).is_some(), expected, "{host}");
        assert!(known.authority(other.key_data()).is_none() && known.revoked(other.key_data()).is_some());
    }
}

#[test]
fn a_list_of_revoked_keys_is_read_whole_or_refuses() {
    let key: PublicKey = KEY.parse().unwrap();
    // Each case: the file with <K> and <O> for the keys, and whether K is revoked; `None` where nothing may be trusted.
    let cases = [
        ("", Some(false)),
        ("# <K>", Some(false)),
        ("<K>", Some(true)),
        ("<K> of somebody", Some(true)),
        ("\t <K>\r\n", Some(true)),
        ("<K with spaces>", Some(true)),
        ("<K with a tab>", Some(true)),
        ("<O>\n\n<K>", Some(true)),
        ("<O>", Some(false)),
        ("<O>\nnonsense\n<K>", None),
        ("restrict <K>", None),
        ("ssh-ed25519", None),
    ];
    for (text, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("revoked");
        let text = text
            .replace("<K>", KEY)
            .replace("<O>", OTHER)
            .replace("<K with spaces>", &KEY.replace(' ', "   "))
            .replace("<K with a tab>", &KEY.replace(' ', "\t"));
        std::fs::write(&file, &text).unwrap();
        let mut known = Known::default();
        let revoked = known
            .deny(&file)
            .ok()
            .map(|()| matches!(known.judge(&key), Verdict::Revoked(_)));
        assert_eq!(revoked, expected, "{text}");
    }
}

#[test]
fn a_list_of_revoked_keys_that_is_too_long_or_missing_refuses() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("revoked");
    let mut known = Known::default();
    assert!(known.deny(&file).unwrap_err().contains("can't be read"));
    File::create(&file).unwrap().set_len(MAX_FILE).unwrap();
    let why = known.deny(&file).unwrap_err();
    assert!(why.contains("larger than 16 MiB"), "{why}");
}

#[test]
fn a_lock_that_somebody_keeps_holds_nobody_up() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("known_hosts");
    let keeper = File::create(&file).unwrap();
    keeper.lock().unwrap();
    append(&file, "a", 22, &KEY.parse().unwrap()).unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), format!("a {KEY}\n"));
}

#[test]
fn many_writers_leave_whole_lines() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("known_hosts");
    let key: PublicKey = KEY.parse().unwrap();
    // Without a newline at its end.
    std::fs::write(&file, format!("a {KEY}")).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let (file, key) = (&file, &key);
            scope.spawn(move || {
                for n in 0..20 {
                    append(file, &format!("h{writer}-{n}"), 22, key).unwrap();
                }
            });
        }
    });
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(text.lines().count(), 161);
    assert!(text.lines().all(|l| parse(l).is_some()));
}
