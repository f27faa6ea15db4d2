//! Interfaces and their addresses: `ip -o addr`, and on a node without `ip` the kernel's own tables.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::domain::event::{Facts, Subject};
use crate::domain::fabric::{FabricFacts, Interface, RdmaPort};
use crate::domain::problem::Problem;
use crate::domain::units::Bytes;

use super::super::sections::{Section, Sections};
use super::super::{absent, short};
use super::{Part, known};

/// Reads `@@ interfaces`, else `@@ local`, `@@ routes` and `@@ inet6`.
pub fn parse(sections: &Sections) -> Option<Part> {
    let section = sections.get("interfaces")?;
    let last = sections.get("local").map_or(Some(section), |_| sections.get("inet6"));
    if last.is_none_or(|s| s.code.is_none()) {
        return None;
    }
    let mut facts = FabricFacts::default();
    for line in &section.lines {
        if let Some(name) = line.strip_prefix("name ") {
            entry(&mut facts, name);
        } else if let Some(link) = line.strip_prefix("link ") {
            state(&mut facts, link);
        } else if *line == "infiniband" {
            facts.infiniband = true;
        } else if let Some((name, address)) = ip_line(line) {
            add(&mut facts, name, address);
        }
    }
    if let Some(local) = sections.get("local") {
        let routes: Vec<Route> = lines(sections.get("routes")).filter_map(route).collect();
        for address in local_addresses(local) {
            if let Some(name) = interface_of(address, &routes) {
                add(&mut facts, name, &address.to_string());
            }
        }
        for (name, address) in lines(sections.get("inet6")).filter_map(inet6) {
            add(&mut facts, name, &address.to_string());
        }
    }
    facts.rdma = lines(sections.get("rdma").filter(|s| s.code.is_some()))
        .filter_map(rdma)
        .collect();
    if facts.interfaces.iter().all(|i| i.addresses.is_empty()) {
        let why = match section
            .lines
            .iter()
            .find(|l| l.contains("rror") || l.contains("denied"))
        {
            Some(line) => format!("no interface could be read: {}", short(line)),
            None => "no interface could be read".to_owned(),
        };
        return Some(absent(Subject::Fabric, Problem::warning(why)));
    }
    Some(known(Facts::Fabric(facts)))
}

fn lines<'s>(section: Option<&'s Section<'s>>) -> impl Iterator<Item = &'s str> {
    section.into_iter().flat_map(|s| s.lines.iter().copied())
}

fn entry<'f>(facts: &'f mut FabricFacts, name: &str) -> Option<&'f mut Interface> {
    let name = short(name);
    if !facts.interfaces.iter().any(|i| i.name == name) {
        facts.interfaces.push(Interface {
            name: name.clone(),
            ..Interface::default()
        });
    }
    facts.interfaces.iter_mut().find(|i| i.name == name)
}

/// `NAME STATE SPEED MTU`, with a dash for what can't be read; a port without a link has the speed -1.
fn state(facts: &mut FabricFacts, link: &str) {
    let mut words = link.split_whitespace();
    let Some(interface) = words.next().and_then(|name| entry(facts, name)) else {
        return;
    };
    interface.state = words.next().and_then(told);
    interface.speed = words.next().and_then(|speed| speed.parse().ok());
    interface.mtu = words.next().and_then(|mtu| mtu.parse().ok());
}

/// A word of the kernel, unless it has none.
fn told(word: &str) -> Option<String> {
    (word != "-" && !word.is_empty()).then(|| short(word))
}

/// `DEVICE|PORT|STATE|RATE|LAYER|INTERFACE|SENT|RECEIVED|DOWNS`, the two amounts in words of four bytes (the kernel's sysfs-class-infiniband).
fn rdma(line: &str) -> Option<RdmaPort> {
    let mut fields = line.split('|');
    let device = short(fields.next()?);
    let port = fields.next()?.parse().ok()?;
    // `4: ACTIVE`
    let state = fields.next().map(|s| s.split_once(": ").map_or(s, |(_, word)| word));
    let (rate, layer, interface) = (fields.next(), fields.next(), fields.next());
    let mut number = || fields.next()?.parse::<u64>().ok();
    let (sent, received, downs) = (number(), number(), number());
    let bytes = |words: Option<u64>| words.map(|n| Bytes(n.saturating_mul(4)));
    Some(RdmaPort {
        device,
        port,
        state: state.and_then(told),
        rate: rate.and_then(told),
        layer: layer.and_then(told),
        interface: interface.and_then(told),
        sent: bytes(sent),
        received: bytes(received),
        downs,
    })
}

fn add(facts: &mut FabricFacts, name: &str, address: &str) {
    if let Some(interface) = entry(facts, name)
        && !interface.addresses.iter().any(|a| a == address)
    {
        interface.addresses.push(short(address));
    }
}

/// `4: eth0    inet 192.0.2.2/24 brd …`, as iproute2 and busybox print it.
fn ip_line(line: &str) -> Option<(&str, &str)> {
    let mut words = line.split_whitespace();
    let name = words.nth(1)?.trim_end_matches(':');
    // A virtual interface names its other end: `eth0@if5`.
    let name = name.split_once('@').map_or(name, |(name, _)| name);
    let family = words.next()?;
    let address = words.next()?;
    let address = address.split_once('/').map_or(address, |(address, _)| address);
    matches!(family, "inet" | "inet6").then_some((name, address))
}

/// The `/32 host LOCAL` entries of /proc/net/fib_trie: this host's own IPv4 addresses.
fn local_addresses(section: &Section) -> Vec<Ipv4Addr> {
    let mut found = Vec::new();
    let mut last: Option<Ipv4Addr> = None;
    for line in &section.lines {
        let line = line.trim();
        if let Some(address) = line.strip_prefix("|-- ") {
            last = address.trim().parse().ok();
        } else if line == "/32 host LOCAL"
            && let Some(address) = last.filter(|a| !found.contains(a))
        {
            found.push(address);
        }
    }
    found
}

/// A line of /proc/net/route.
struct Route<'a> {
    interface: &'a str,
    destination: u32,
    mask: u32,
}

fn route(line: &str) -> Option<Route<'_>> {
    let mut words = line.split_whitespace();
    let interface = words.next()?;
    let hex = |word: &str| u32::from_str_radix(word, 16).ok().map(u32::swap_bytes);
    let destination = hex(words.next()?)?;
    let mask = hex(words.nth(5)?)?;
    // The default route names no subnet of this host.
    (mask != 0).then_some(Route {
        interface,
        destination,
        mask,
    })
}

/// The interface whose subnet holds the address, the narrowest one first.
fn interface_of<'a>(address: Ipv4Addr, routes: &[Route<'a>]) -> Option<&'a str> {
    if address.is_loopback() {
        return Some("lo");
    }
    let held = routes.iter().filter(|r| u32::from(address) & r.mask == r.destination);
    held.max_by_key(|r| r.mask).map(|r| r.interface)
}

/// A line of /proc/net/if_inet6.
fn inet6(line: &str) -> Option<(&str, Ipv6Addr)> {
    let mut words = line.split_whitespace();
    let address = u128::from_str_radix(words.next()?, 16).ok()?;
    Some((words.nth(4)?, Ipv6Addr::from(address)))
}
