//! Listening sockets, from ss, else from /proc/net/tcp and tcp6.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::domain::event::{Facts, Subject};
use crate::domain::problem::Problem;
use crate::domain::sockets::{Listener, SocketFacts};

use super::super::absent;
use super::super::sections::Sections;
use super::{Groups, Part, known};

/// A socket as one of the two listings has it: where it listens, and its inode.
type Socket<'a> = (String, u16, &'a str);

/// Reads `@@ listening` (`ss -H -ltne`), else `@@ sockets` (`ADDRESS:PORT UID INODE` of state 0A), and `@@ owners` (`INODE PID`).
pub fn parse(sections: &Sections, groups: &Groups) -> Option<Part> {
    let (section, read): (_, fn(&str) -> Option<Socket<'_>>) = match sections.get("listening") {
        Some(section) => (section, listed),
        None => (sections.get("sockets")?, kernels),
    };
    if !section.ok() {
        return Some(absent(
            Subject::Sockets,
            Problem::warning("the node's listening sockets could not be read"),
        ));
    }
    let owners = sections.get("owners").map(|s| s.lines.as_slice()).unwrap_or_default();
    let owner = |inode: &str| {
        owners.iter().find_map(|line| {
            let (seen, pid) = line.split_once(' ')?;
            (seen == inode).then(|| pid.trim().parse().ok())?
        })
    };
    let mut listeners: Vec<Listener> = Vec::new();
    for (address, port, inode) in section.lines.iter().filter_map(|line| read(line)) {
        let pid: Option<u32> = Some(inode).filter(|inode| *inode != "0").and_then(owner);
        let listener = Listener {
            address,
            port,
            container: pid.and_then(|pid| groups.of(pid)),
            pid,
        };
        // The same address and port stands once for each socket that shares it (SO_REUSEPORT), and for `0.0.0.0` and `::`.
        match listeners
            .iter_mut()
            .find(|l| l.address == listener.address && l.port == listener.port)
        {
            Some(same) if same.pid.is_none() => *same = listener,
            Some(_) => {}
            None => listeners.push(listener),
        }
    }
    Some(known(Facts::Sockets(SocketFacts { listeners })))
}

/// A line of ss: state, two queues, where it listens, the peer's place, and words such as `uid:1000` and `ino:26120`.
fn listed(line: &str) -> Option<Socket<'_>> {
    let mut words = line.split_whitespace();
    let (address, port) = words.nth(3)?.rsplit_once(':')?;
    let port = port.parse().ok()?;
    // `127.0.0.53%lo`, `[fe80::1]%eth0`: an interface, which says nothing of who is reached.
    let bare = address.split('%').next()?.trim_start_matches('[').trim_end_matches(']');
    let address = match bare {
        "*" => "*".to_owned(),
        bare => named(bare.parse().ok()?),
    };
    let inode = words.find_map(|word| word.strip_prefix("ino:")).unwrap_or("0");
    Some((address, port, inode))
}

fn kernels(line: &str) -> Option<Socket<'_>> {
    let mut words = line.split_whitespace();
    let (address, port) = socket(words.next()?)?;
    Some((address, port, words.nth(1).unwrap_or("0")))
}

/// An address as a person writes it; `*` for every one.
fn named(address: IpAddr) -> String {
    let address = address.to_canonical();
    if address.is_unspecified() {
        "*".to_owned()
    } else {
        address.to_string()
    }
}

/// `0100007F:18EB` and its form of 32 digits: the address as words of the machine's byte order, which is little endian on every node that there is.
fn socket(text: &str) -> Option<(String, u16)> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |n: usize| {
        let digits = address.get(n * 8..n * 8 + 8)?;
        u32::from_str_radix(digits, 16).ok().map(u32::to_le_bytes)
    };
    let address = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?];
            let bytes: [u8; 16] = words.concat().try_into().ok()?;
            IpAddr::V6(Ipv6Addr::from(bytes))
        }
        _ => return None,
    };
    Some((named(address), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_decoded() {
        let cases = [
            ("00000000:07E8", Some(("*", 2024))),
            ("0100007F:18EB", Some(("127.0.0.1", 6379))),
            ("0CC8A8C0:18EB", Some(("192.168.200.12", 6379))),
            ("00000000000000000000000000000000:1F40", Some(("*", 8000))),
            ("00000000000000000000000001000000:1F40", Some(("::1", 8000))),
            ("0000000000000000FFFF00000CC8A8C0:1F40", Some(("192.168.200.12", 8000))),
            ("0000000000000000FFFF000000000000:1F40", Some(("*", 8000))),
            (
                "000080FE00000000FF00FC00010000FE:0016",
                Some(("fe80::fc:ff:fe00:1", 22)),
            ),
            ("0100007F", None),
            ("0100007F:", None),
            ("0100007é:18EB", None),
            ("010000:18EB", None),
        ];
        for (text, expected) in cases {
            assert_eq!(socket(text), expected.map(|(a, p)| (a.to_owned(), p)), "{text}");
        }
    }

    #[test]
    fn a_line_of_ss_is_read() {
        let cases = [
            (
                "LISTEN 0 128 0.0.0.0:22 0.0.0.0:* ino:1060 sk:1 cgroup:/x <->",
                Some(("*", 22, "1060")),
            ),
            (
                "LISTEN 0 4096 *:8000 *:* uid:1000 ino:77 sk:2 v6only:0 <->",
                Some(("*", 8000, "77")),
            ),
            (
                "LISTEN 0 4096 127.0.0.53%lo:53 0.0.0.0:* uid:101 ino:5 sk:3 <->",
                Some(("127.0.0.53", 53, "5")),
            ),
            (
                "LISTEN 0 128 [fe80::1]%eth0:22 [::]:* ino:8 sk:4 <->",
                Some(("fe80::1", 22, "8")),
            ),
            (
                "LISTEN 0 128 [::ffff:192.168.200.12]:6379 *:* ino:9 sk:5",
                Some(("192.168.200.12", 6379, "9")),
            ),
            ("LISTEN 0 128 [::]:22 [::]:*", Some(("*", 22, "0"))),
            ("Cannot open netlink socket: Operation not permitted", None),
            ("LISTEN 0 128", None),
        ];
        for (text, expected) in cases {
            assert_eq!(listed(text), expected.map(|(a, p, i)| (a.to_owned(), p, i)), "{text}");
        }
    }
}
