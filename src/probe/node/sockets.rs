//! Listening sockets, from /proc/net/tcp and tcp6.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::domain::event::{Facts, Subject};
use crate::domain::problem::Problem;
use crate::domain::sockets::{Listener, SocketFacts};

use super::super::absent;
use super::super::sections::Sections;
use super::{Groups, Part, known};

/// Reads `@@ sockets` (`ADDRESS:PORT UID INODE` of state 0A) and `@@ owners` (`INODE PID`).
pub fn parse(sections: &Sections, groups: &Groups) -> Option<Part> {
    let section = sections.get("sockets")?;
    if !section.ok() {
        return Some(absent(
            Subject::Sockets,
            Problem::warning("/proc/net/tcp could not be read"),
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
    for line in &section.lines {
        let mut words = line.split_whitespace();
        let Some((address, port)) = words.next().and_then(socket) else {
            continue;
        };
        let pid: Option<u32> = words.nth(1).filter(|inode| *inode != "0").and_then(owner);
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
            Ipv6Addr::from(bytes).to_canonical()
        }
        _ => return None,
    };
    let text = if address.is_unspecified() {
        "*".to_owned()
    } else {
        address.to_string()
    };
    Some((text, port))
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
}
