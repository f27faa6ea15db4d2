//! Where to log in, as `ssh` and its `-J` take it: `[user@]host[:port]`.

use std::net::{Ipv4Addr, Ipv6Addr};

/// A host with what was written around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// User, where one was written.
    pub user: Option<String>,
    /// Host name or address, without brackets.
    pub host: String,
    /// Port, where one was written.
    pub port: Option<u16>,
}

/// What is wrong with a text, and what to write instead; both fragments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadAddress {
    /// What is wrong.
    pub what: String,
    /// What to write.
    pub fix: &'static str,
}

/// What to write instead of anything that is no address.
const FORMS: &str = "write a name or an address, such as 10.1.230.180, aurora@10.1.230.180:22 or [fd00::12]:22";

/// Reads `host`, `user@host`, `host:port`, `[host]:port`, a bare IPv6 address, and each as an `ssh://` URI.
///
/// # Errors
/// What is wrong with the text.
pub fn parse(text: &str) -> Result<Address, BadAddress> {
    let bad = |what: String| BadAddress { what, fix: FORMS };
    let rest = match text.strip_prefix("ssh://") {
        Some(uri) => uri.strip_suffix('/').unwrap_or(uri),
        None => text,
    };
    let (user, rest) = match rest.rsplit_once('@') {
        Some((user, rest)) => (Some(user), rest),
        None => (None, rest),
    };
    if let Some(user) = user.filter(|u| !is_user(u)) {
        return Err(bad(format!("`{user}` in `{text}` cannot be a user")));
    }
    let (host, port) = if is_ipv6(rest) {
        (rest, None)
    } else if let Some(inside) = rest.strip_prefix('[') {
        let (host, after) = inside
            .split_once(']')
            .ok_or_else(|| bad(format!("`{text}` has no closing bracket")))?;
        let port = match after.strip_prefix(':') {
            Some(port) => Some(port),
            None if after.is_empty() => None,
            None => return Err(bad(format!("`{after}` stands after the bracket of `{text}`"))),
        };
        (host, port)
    } else {
        match rest.split_once(':') {
            Some((_, port)) if port.contains(':') => {
                return Err(bad(format!("`{text}` has colons and is no IPv6 address")));
            }
            Some((host, port)) => (host, Some(port)),
            None => (rest, None),
        }
    };
    let port = match port {
        None => None,
        Some(port) => Some(read_port(port).ok_or_else(|| bad(format!("`{port}` in `{text}` is no port")))?),
    };
    if is_four_numbers(host) && host.parse::<Ipv4Addr>().is_err() {
        return Err(bad(format!("`{host}` is four numbers and no IPv4 address")));
    }
    if !is_ipv6(host) && !is_name(host) {
        return Err(bad(format!("`{text}` is no host name and no address")));
    }
    Ok(Address {
        user: user.map(str::to_owned),
        host: host.to_owned(),
        port,
    })
}

/// Whether a text is an IPv6 address, with or without a zone such as `%eth0`.
fn is_ipv6(text: &str) -> bool {
    let (address, zone) = text.split_once('%').unwrap_or((text, "any"));
    address.parse::<Ipv6Addr>().is_ok()
        && !zone.is_empty()
        && zone.chars().all(|c| c.is_alphanumeric() || "_.-".contains(c))
}

/// Whether a text can be a host name or an IPv4 address: also one that `ssh` could not take for an option.
fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.starts_with('-') && text.chars().all(|c| c.is_alphanumeric() || "_.-".contains(c))
}

/// Whether a text is written as an IPv4 address is. No host is named so, and a resolver would be asked for it in vain.
fn is_four_numbers(text: &str) -> bool {
    let number = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit());
    text.split('.').count() == 4 && text.split('.').all(number)
}

fn is_user(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('-')
        && !text.contains(|c: char| c.is_whitespace() || c.is_control() || "@:/".contains(c))
}

fn read_port(text: &str) -> Option<u16> {
    let digits = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    text.parse().ok().filter(|port| digits && *port > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_read_as_ssh_reads_them() {
        let cases = [
            ("10.1.230.180", None, "10.1.230.180", None),
            ("spark-1.local", None, "spark-1.local", None),
            ("bücher.example", None, "bücher.example", None),
            ("1.2.3.com", None, "1.2.3.com", None),
            ("10.1.230.180.nip", None, "10.1.230.180.nip", None),
            ("255.255.255.254", None, "255.255.255.254", None),
            ("spark.300", None, "spark.300", None),
            ("host_1", None, "host_1", None),
            ("aurora@spark", Some("aurora"), "spark", None),
            ("a@b@spark", None, "", None),
            ("spark:2200", None, "spark", Some(2200)),
            ("aurora@spark:22", Some("aurora"), "spark", Some(22)),
            ("fd00::12", None, "fd00::12", None),
            ("fe80::1%eth0", None, "fe80::1%eth0", None),
            ("aurora@fd00::12", Some("aurora"), "fd00::12", None),
            ("[fd00::12]", None, "fd00::12", None),
            ("[fd00::12]:2200", None, "fd00::12", Some(2200)),
            ("aurora@[fd00::12]:2200", Some("aurora"), "fd00::12", Some(2200)),
            ("[spark]:2200", None, "spark", Some(2200)),
            ("ssh://spark", None, "spark", None),
            ("ssh://aurora@spark:2200", Some("aurora"), "spark", Some(2200)),
            ("ssh://aurora@[fd00::12]:2200/", Some("aurora"), "fd00::12", Some(2200)),
        ];
        for (text, user, host, port) in cases {
            let expected = (!host.is_empty()).then(|| Address {
                user: user.map(str::to_owned),
                host: host.to_owned(),
                port,
            });
            assert_eq!(parse(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_what_to_write() {
        let cases = [
            ("", "`` is no host name and no address"),
            (
                "192.168.200.300",
                "`192.168.200.300` is four numbers and no IPv4 address",
            ),
            (
                "aurora@10.1.2.999:22",
                "`10.1.2.999` is four numbers and no IPv4 address",
            ),
            ("a b", "`a b` is no host name and no address"),
            ("-oProxyCommand=x", "`-oProxyCommand=x` is no host name and no address"),
            ("[-x]:22", "`[-x]:22` is no host name and no address"),
            ("@spark", "`` in `@spark` cannot be a user"),
            ("-l@spark", "`-l` in `-l@spark` cannot be a user"),
            ("spark:", "`` in `spark:` is no port"),
            ("spark:0", "`0` in `spark:0` is no port"),
            ("spark:+22", "`+22` in `spark:+22` is no port"),
            ("spark:65536", "`65536` in `spark:65536` is no port"),
            ("fd00::12::1", "`fd00::12::1` has colons and is no IPv6 address"),
            ("10.0.0.1:22:22", "`10.0.0.1:22:22` has colons and is no IPv6 address"),
            ("[fd00::12", "`[fd00::12` has no closing bracket"),
            ("[fd00::12]22", "`22` stands after the bracket of `[fd00::12]22`"),
            ("http://spark", "`//spark` in `http://spark` is no port"),
        ];
        for (text, expected) in cases {
            let wrong = parse(text).unwrap_err();
            assert_eq!(wrong.what, expected, "{text}");
            assert_eq!(wrong.fix, FORMS);
        }
    }
}
