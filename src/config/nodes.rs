//! `[[node]]`: the nodes, the head first.

use std::net::IpAddr;

use crate::domain::count::things;
use crate::domain::{HopId, Role};

use super::hops::{Defaults, hop_id, is_direct, login, unique, way};
use super::read::{At, Item, Reader, Section};
use super::types::{Hop, Login, Node};
use super::words;

/// Most nodes of a cluster.
const MAX_NODES: usize = 1024;

/// Most GPUs of a node.
const MAX_GPUS: u32 = 64;

/// The word for a login with the jump host's key.
const JUMP: &str = "jump";

/// What `login` can be: with a key of the operator's, or of the jump host's.
const LOGINS: [&str; 2] = ["own", JUMP];

/// What stands for a missing fabric address: any address that could be named here may be another node's.
const FABRIC: &str = "fabric_address = \"IP\", the address at which the other nodes reach this one";

/// A node as far as it could be read.
struct Draft {
    name: Option<At<String>>,
    role: Option<At<Role>>,
    login: Option<Login>,
    via: Option<HopId>,
    relayed: bool,
    fabric: Option<At<IpAddr>>,
    interface: Option<String>,
    hcas: Vec<String>,
    gpus: u32,
    at: usize,
}

/// Reads `[[node]]`, the head first.
pub(super) fn nodes(r: &mut Reader<'_>, root: &mut Section<'_>, defaults: &Defaults, hops: &[Hop]) -> Vec<Node> {
    let names: Vec<At<String>> = hops
        .iter()
        .map(|h| At {
            value: h.name.clone(),
            at: 0,
        })
        .collect();
    let items = root.items(r, "node", false);
    if items.is_none() && root.has("node") {
        // Another kind of value: reported already, and whether there is a head is not known.
        return Vec::new();
    }
    let mut drafts = Vec::new();
    for item in items.unwrap_or_default() {
        match item {
            Item::Table(section) => drafts.push(draft(r, section, defaults, &names)),
            Item::Text(_) => {}
        }
    }
    if drafts.len() > MAX_NODES {
        let message = things(drafts.len(), "node");
        r.problem(
            root.at_key("node"),
            "node",
            message,
            format!("keep at most {MAX_NODES}"),
        );
        return Vec::new();
    }
    let named: Vec<At<String>> = drafts.iter().filter_map(|d| d.name.clone()).collect();
    unique(r, "node.name", "node name", &named);
    let fabric: Vec<At<IpAddr>> = drafts.iter().filter_map(|d| d.fabric.clone()).collect();
    unique(r, "node.fabric_address", "fabric address", &fabric);
    fabric_reach(r, &fabric);
    same_host(r, &drafts);
    one_head(r, root, &drafts);
    let mut nodes: Vec<Node> = drafts.into_iter().filter_map(node).collect();
    nodes.sort_by_key(|n| n.role != Role::Head);
    nodes
}

fn draft(r: &mut Reader<'_>, mut s: Section<'_>, defaults: &Defaults, hops: &[At<String>]) -> Draft {
    let name = s.text_by(r, "name", words::name);
    let name = s.require(r, "name", name, "name = \"NAME\", another for each node");
    let role = s.text_by(r, "role", |t| role_word(t).map(|_| ()));
    let role = s.require(r, "role", role, "role = \"head\" or role = \"worker\"");
    let login = login(r, &mut s, defaults, "address");
    let via = s.text(r, "via");
    let last = hops.len().checked_sub(1).and_then(hop_id);
    let via_hop = way(r, "node.via", via.as_ref(), last, hops);
    let relayed = relayed(r, &mut s, via_hop);
    let fabric = s.text_by(r, "fabric_address", |t| fabric_word(t).map(|_| ()));
    let fabric = s.require(r, "fabric_address", fabric, FABRIC);
    let hcas = s.texts(r, "hcas").unwrap_or_default();
    for hca in &hcas {
        if let Err(wrong) = words::device(&hca.value) {
            r.problem(hca.at, "node.hcas", format!("hcas: {}", wrong.what), wrong.fix);
        }
    }
    let found = Draft {
        role: role.and_then(|t| {
            Some(At {
                value: role_word(&t.value).ok()?,
                at: t.at,
            })
        }),
        login: login.map(|login| Login {
            direct: is_direct(via.as_ref()),
            ..login
        }),
        via: via_hop,
        relayed,
        fabric: fabric.and_then(|t| {
            Some(At {
                value: fabric_word(&t.value).ok()?,
                at: t.at,
            })
        }),
        interface: s.text_by(r, "fabric_interface", words::device).map(|t| t.value),
        hcas: hcas.into_iter().map(|h| h.value).collect(),
        gpus: s.number(r, "gpus", 1..=MAX_GPUS).map_or(1, |g| g.value),
        at: s.at(),
        name,
    };
    s.finish(r);
    found
}

/// Whether `login` says that the jump host's key logs in.
fn relayed(r: &mut Reader<'_>, s: &mut Section<'_>, via: Option<HopId>) -> bool {
    let login = s.text_by(r, "login", |t| {
        if LOGINS.contains(&t) {
            return Ok(());
        }
        Err(words::Wrong {
            what: format!("`{t}` is no way to log in"),
            fix: "write \"own\" or \"jump\"".to_owned(),
        })
    });
    let Some(login) = login.filter(|l| l.value == JUMP) else {
        return false;
    };
    if via.is_none() {
        let message = "`login = \"jump\"` uses the key of a jump host, and there is none before this node";
        r.problem(
            login.at,
            "node.login",
            message,
            "name one with `via`, or leave out `login`",
        );
    }
    if s.has("keys") {
        let message = "`login = \"jump\"` uses the key of the jump host, and `keys` names others";
        r.problem(s.at_key("keys"), "node.keys", message, "leave out `keys` or `login`");
    }
    true
}

fn role_word(text: &str) -> Result<Role, words::Wrong> {
    [Role::Head, Role::Worker]
        .into_iter()
        .find(|r| r.word() == text)
        .ok_or_else(|| words::Wrong {
            what: format!("`{text}` is no role"),
            fix: "write \"head\" or \"worker\"".to_owned(),
        })
}

fn fabric_word(text: &str) -> Result<IpAddr, words::Wrong> {
    let address = text.parse::<IpAddr>().ok();
    let usable = address.filter(|a| !a.is_unspecified() && !a.is_multicast());
    usable.ok_or_else(|| words::Wrong {
        what: format!("`{text}` is no address of a node"),
        fix: "write the IP address alone, without port or prefix length".to_owned(),
    })
}

/// A loopback address is reached by its own node alone.
fn fabric_reach(r: &mut Reader<'_>, fabric: &[At<IpAddr>]) {
    for address in fabric.iter().filter(|a| a.value.is_loopback() && fabric.len() > 1) {
        let message = format!("fabric_address: the other nodes cannot reach `{}`", address.value);
        r.problem(
            address.at,
            "node.fabric_address",
            message,
            "write the node's address on the fabric",
        );
    }
}

/// Two nodes that log in to the same place are one machine twice.
fn same_host(r: &mut Reader<'_>, drafts: &[Draft]) {
    let place = |d: &Draft| d.login.as_ref().map(|l| (l.host.clone(), l.port, l.alias, d.via));
    for (n, draft) in drafts.iter().enumerate() {
        let first = drafts
            .iter()
            .take(n)
            .find(|d| place(d).is_some() && place(d) == place(draft));
        if let (Some(first), Some(login)) = (first, &draft.login) {
            let message = format!(
                "two nodes log in to `{}`: line {} has it already",
                login.host,
                r.line(first.at)
            );
            r.problem(
                draft.at,
                "node.address",
                message,
                "give each node its own address, or its own way with `via`",
            );
        }
    }
}

fn one_head(r: &mut Reader<'_>, root: &Section<'_>, drafts: &[Draft]) {
    let is_head = |d: &&Draft| d.role.as_ref().is_some_and(|role| role.value == Role::Head);
    let mut heads = drafts.iter().filter(is_head);
    let first = heads.next();
    for head in heads {
        let (at, before) = (
            head.role.as_ref().map_or(head.at, |role| role.at),
            first.map_or(0, |f| f.at),
        );
        let message = format!("a second head: the node on line {} is the head already", r.line(before));
        r.problem(at, "node.role", message, "write role = \"worker\"");
    }
    if drafts.is_empty() {
        let fix = "write [[node]] with name, role = \"head\", address and fabric_address";
        r.nowhere(root.at_key("node"), "node", "there are no nodes", fix);
    } else if first.is_none() && drafts.iter().all(|d| d.role.is_some()) {
        let fix = "write role = \"head\" for the node that runs Ray's head and the model server";
        r.problem(root.at_key("node"), "node.role", "no node is the head", fix);
    }
}

fn node(draft: Draft) -> Option<Node> {
    Some(Node {
        name: draft.name?.value,
        role: draft.role?.value,
        login: draft.login?,
        via: draft.via,
        relayed: draft.relayed,
        // The canonical spelling: what Ray registers is compared with it as text.
        fabric_address: draft.fabric?.value.to_string(),
        fabric_interface: draft.interface,
        hcas: draft.hcas,
        gpus: draft.gpus,
    })
}
