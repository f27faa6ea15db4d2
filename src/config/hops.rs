//! `[ssh]`: how to log in, the jump hosts, and the ways between them.

use crate::domain::HopId;

use super::problem::nearest;
use super::read::{At, Item, Reader, Section};
use super::types::{Hop, Login, Ssh};
use super::words;

/// Most jump hosts.
const MAX_HOPS: usize = 16;

/// SSH's port.
const SSH_PORT: u16 = 22;

/// The word for "through no jump host".
const DIRECT: &str = "direct";

/// known_hosts files where `[ssh]` names none: OpenSSH's own.
const KNOWN_HOSTS: [&str; 2] = ["~/.ssh/known_hosts", "/etc/ssh/ssh_known_hosts"];

/// What `[ssh]` says for every host that does not say it itself.
pub(super) struct Defaults {
    port: u16,
    user: Option<String>,
    keys: Vec<String>,
}

/// Reads `[ssh]`.
pub(super) fn ssh(r: &mut Reader<'_>, mut s: Section<'_>) -> (Ssh, Defaults) {
    let defaults = Defaults {
        user: s.text_by(r, "user", words::user).map(|u| u.value),
        port: s.port(r, "port").unwrap_or(SSH_PORT),
        keys: s.plain_texts(r, "keys"),
    };
    let mut known_hosts = s.plain_texts(r, "known_hosts");
    if known_hosts.is_empty() {
        if s.has("known_hosts") {
            let fix = format!("name at least one file, such as {:?}", KNOWN_HOSTS[0]);
            r.problem(
                s.at_key("known_hosts"),
                "ssh.known_hosts",
                "`known_hosts` names no file",
                fix,
            );
        }
        known_hosts = KNOWN_HOSTS.map(str::to_owned).to_vec();
    }
    let agent = s.flag(r, "agent").unwrap_or(true);
    let jump = hops(r, &mut s, &defaults);
    s.finish(r);
    let ssh = Ssh {
        jump,
        known_hosts,
        agent,
    };
    (ssh, defaults)
}

/// How to log in to one host: `alias`, or the host under `host_key` with port; user and keys with either.
pub(super) fn login(
    r: &mut Reader<'_>,
    s: &mut Section<'_>,
    defaults: &Defaults,
    host_key: &'static str,
) -> Option<Login> {
    let host = s.text_by(r, host_key, words::host);
    let alias = s.text_by(r, "alias", words::word);
    let port = s.port(r, "port");
    let user = s.text_by(r, "user", words::user).map(|u| u.value);
    let keys = s.plain_texts(r, "keys");
    if s.has("alias") {
        for key in [host_key, "port"] {
            if s.has(key) {
                let message = format!("`alias` and `{key}` are both there, and ssh_config decides for an alias");
                r.problem(
                    s.at_key(key),
                    &s.key(key),
                    message,
                    format!("leave out `{key}` or `alias`"),
                );
            }
        }
        return alias.map(|a| alias_login(a.value, user, keys));
    }
    let example = format!("{host_key} = \"10.1.230.180\", or alias = \"NAME\" for a host of your ssh_config");
    let host = s.require(r, host_key, host, &example)?;
    Some(Login {
        host: host.value,
        port: port.unwrap_or(defaults.port),
        user: user.or_else(|| defaults.user.clone()),
        keys: if s.has("keys") { keys } else { defaults.keys.clone() },
        alias: false,
    })
}

/// For an alias ssh_config decides: the defaults of `[ssh]` stay out.
fn alias_login(host: String, user: Option<String>, keys: Vec<String>) -> Login {
    Login {
        host,
        port: SSH_PORT,
        user,
        keys,
        alias: true,
    }
}

/// The jump hosts, each through the one before it unless it says otherwise.
fn hops(r: &mut Reader<'_>, s: &mut Section<'_>, defaults: &Defaults) -> Vec<Hop> {
    let mut drafts = Vec::new();
    for item in s.items(r, "jump", true).unwrap_or_default() {
        let (name, login, via, at) = match item {
            Item::Text(alias) => (
                alias.clone(),
                Some(alias_login(alias.value, None, Vec::new())),
                None,
                alias.at,
            ),
            Item::Table(mut t) => {
                let given = t.text_by(r, "name", words::name);
                let login = login(r, &mut t, defaults, "host");
                let via = t.text(r, "via");
                let at = t.at();
                t.finish(r);
                let host = login.as_ref().map_or_else(String::new, |l| l.host.clone());
                (given.unwrap_or(At { value: host, at }), login, via, at)
            }
        };
        drafts.push((name, login, via, at));
    }
    if drafts.len() > MAX_HOPS {
        let fix = format!("keep at most {MAX_HOPS}");
        r.problem(
            s.at_key("jump"),
            "ssh.jump",
            format!("{} jump hosts", drafts.len()),
            fix,
        );
        return Vec::new();
    }
    let names: Vec<At<String>> = drafts.iter().map(|d| d.0.clone()).collect();
    unique(r, "ssh.jump.name", "name", &names);
    for name in names.iter().filter(|n| n.value == DIRECT) {
        let message = "a jump host cannot be named `direct`";
        r.problem(
            name.at,
            "ssh.jump.name",
            message,
            "take another name: `via = \"direct\"` means through none",
        );
    }
    let mut hops = Vec::new();
    let mut before = None;
    for (place, (name, login, via, at)) in drafts.into_iter().enumerate() {
        let via = way(r, "ssh.jump.via", via.as_ref(), before, &names);
        before = hop_id(place);
        if let Some(login) = login {
            let hop = Hop {
                name: name.value,
                login,
                via,
            };
            hops.push((hop, at));
        }
    }
    // A hop that could not be read has shifted the ids; its problem is reported already.
    if hops.len() == names.len() {
        circles(r, &hops);
    }
    hops.into_iter().map(|(hop, _)| hop).collect()
}

pub(super) fn hop_id(place: usize) -> Option<HopId> {
    u16::try_from(place).ok().map(HopId)
}

/// The hop that `via` names; `default` where nothing is said.
pub(super) fn way(
    r: &mut Reader<'_>,
    key: &str,
    via: Option<&At<String>>,
    default: Option<HopId>,
    names: &[At<String>],
) -> Option<HopId> {
    let Some(via) = via else { return default };
    if via.value == DIRECT {
        return None;
    }
    let found = names.iter().position(|n| n.value == via.value).and_then(hop_id);
    if found.is_none() {
        let mut known: Vec<&str> = names.iter().map(|n| n.value.as_str()).collect();
        known.push(DIRECT);
        let fix = match nearest(&via.value, &known) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("write one of: {}", known.join(", ")),
        };
        r.problem(via.at, key, format!("no jump host is named `{}`", via.value), fix);
    }
    found
}

/// Reports every circle once.
fn circles(r: &mut Reader<'_>, hops: &[(Hop, usize)]) {
    let mut reported: Vec<usize> = Vec::new();
    for (start, (_, at)) in hops.iter().enumerate() {
        let mut path = vec![start];
        let mut next = hops.get(start).and_then(|(hop, _)| hop.via);
        while let Some(place) = next.map(HopId::index).filter(|p| !path.contains(p)) {
            path.push(place);
            next = hops.get(place).and_then(|(hop, _)| hop.via);
        }
        let round = next.is_some_and(|id| id.index() == start);
        if !round || path.iter().any(|p| reported.contains(p)) {
            continue;
        }
        let all = path.iter().chain([&start]).filter_map(|p| hops.get(*p));
        let names: Vec<&str> = all.map(|(hop, _)| hop.name.as_str()).collect();
        let message = format!("the jump hosts go round in a circle: {}", names.join(" via "));
        r.problem(
            *at,
            "ssh.jump.via",
            message,
            "write via = \"direct\" for the one that is dialled first",
        );
        reported.extend(path);
    }
}

/// Reports every value that stands twice.
pub(super) fn unique<T: PartialEq + std::fmt::Display>(r: &mut Reader<'_>, key: &str, what: &str, values: &[At<T>]) {
    for (place, value) in values.iter().enumerate() {
        let first = values.iter().take(place).find(|v| v.value == value.value);
        if let Some(first) = first {
            let message = format!(
                "the {what} `{}` is used twice: line {} has it already",
                value.value,
                r.line(first.at)
            );
            r.problem(value.at, key, message, format!("give each its own {what}"));
        }
    }
}
