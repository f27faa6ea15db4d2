//! `[ssh]`: how to log in, the jump hosts, and the ways between them.

use crate::domain::HopId;
use crate::domain::address::{self, Address};
use crate::domain::link::HostKeys;

use super::problem::nearest;
use super::read::{At, Item, Reader, Section};
use super::types::{Hop, Login, SSH_PORT, Ssh};
use super::words;

/// Most jump hosts.
const MAX_HOPS: usize = 16;

/// The word for "through no jump host".
const DIRECT: &str = "direct";

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
    let ssh_config = s.text(r, "ssh_config").map(|t| t.value);
    let known_hosts = s.plain_texts(r, "known_hosts");
    if known_hosts.is_empty() && s.has("known_hosts") {
        let fix = "name at least one file, such as \"~/.ssh/known_hosts\"";
        r.problem(
            s.at_key("known_hosts"),
            "ssh.known_hosts",
            "`known_hosts` names no file",
            fix,
        );
    }
    let host_keys = s.text_by(r, "host_keys", |t| host_keys_word(t).map(|_| ()));
    let host_keys = host_keys.and_then(|t| host_keys_word(&t.value).ok());
    let agent = s.flag(r, "agent").unwrap_or(true);
    let jump = hops(r, &mut s, &defaults);
    s.finish(r);
    let ssh = Ssh {
        jump,
        ssh_config,
        known_hosts,
        host_keys,
        agent,
    };
    (ssh, defaults)
}

fn host_keys_word(text: &str) -> Result<HostKeys, words::Wrong> {
    let found = HostKeys::ALL.into_iter().find(|p| p.word() == text);
    found.ok_or_else(|| words::Wrong {
        what: format!("`{text}` is no way to treat an unknown host key"),
        fix: format!("write one of: {}", HostKeys::ALL.map(HostKeys::word).join(", ")),
    })
}

fn host_word(text: &str) -> Result<Address, words::Wrong> {
    address::parse(text).map_err(|bad| words::Wrong {
        what: bad.what,
        fix: bad.fix.to_owned(),
    })
}

/// How to log in to one host: `alias`, or the host under `host_key`; port, user and keys with either.
pub(super) fn login(
    r: &mut Reader<'_>,
    s: &mut Section<'_>,
    defaults: &Defaults,
    host_key: &'static str,
) -> Option<Login> {
    let host = s.text_by(r, host_key, |t| host_word(t).map(|_| ()));
    let alias = s.text_by(r, "alias", words::word);
    let port = s.port(r, "port");
    let user = s.text_by(r, "user", words::user).map(|u| u.value);
    let keys = s.plain_texts(r, "keys");
    if s.has("alias") {
        if s.has(host_key) {
            let message = format!("`alias` and `{host_key}` are both there, and ssh_config decides for an alias");
            let fix = format!("leave out `{host_key}` or `alias`");
            r.problem(s.at_key(host_key), &s.key(host_key), message, fix);
        }
        return alias.map(|a| Login {
            host: a.value,
            port,
            user,
            keys,
            alias: true,
            direct: false,
        });
    }
    let example = format!("{host_key} = \"HOST\", or alias = \"NAME\" for a host of your ssh_config");
    let host = s.require(r, host_key, host, &example)?;
    let written = host_word(&host.value).ok()?;
    let twice = [
        ("user", written.user.is_some() && s.has("user")),
        ("port", written.port.is_some() && s.has("port")),
    ];
    for (key, _) in twice.iter().filter(|(_, twice)| *twice) {
        let message = format!("`{host_key}` and `{key}` both say the {key}");
        r.problem(s.at_key(key), &s.key(key), message, "say it in one of them");
    }
    Some(Login {
        host: written.host,
        port: written.port.or(port).or(Some(defaults.port)),
        user: written.user.or(user).or_else(|| defaults.user.clone()),
        keys: if s.has("keys") { keys } else { defaults.keys.clone() },
        alias: false,
        direct: false,
    })
}

/// A jump host in one line: an alias, perhaps with a user and a port. ssh_config decides about the rest, and the defaults of `[ssh]` stay out.
fn jump_line(r: &mut Reader<'_>, line: &At<String>) -> Option<Login> {
    let address = if line.value.contains(['@', ':', '[']) {
        host_word(&line.value)
    } else {
        words::word(&line.value).map(|()| Address {
            user: None,
            host: line.value.clone(),
            port: None,
        })
    };
    match address {
        Ok(Address { user, host, port }) => Some(Login {
            host,
            port,
            user,
            keys: Vec::new(),
            alias: true,
            direct: false,
        }),
        Err(wrong) => {
            r.problem(line.at, "ssh.jump", format!("jump: {}", wrong.what), wrong.fix);
            None
        }
    }
}

/// Whether a `via` says that nothing is before a host.
pub(super) fn is_direct(via: Option<&At<String>>) -> bool {
    via.is_some_and(|via| via.value == DIRECT)
}

/// The jump hosts, each through the one before it unless it says otherwise.
fn hops(r: &mut Reader<'_>, s: &mut Section<'_>, defaults: &Defaults) -> Vec<Hop> {
    let mut drafts = Vec::new();
    for item in s.items(r, "jump", true).unwrap_or_default() {
        let (name, login, via, at) = match item {
            Item::Text(line) => {
                let login = jump_line(r, &line);
                let at = line.at;
                (line, login, None, at)
            }
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
        let direct = is_direct(via.as_ref());
        let via = way(r, "ssh.jump.via", via.as_ref(), before, &names);
        before = hop_id(place);
        if let Some(login) = login {
            let hop = Hop {
                name: name.value,
                login: Login { direct, ..login },
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
