//! The ways that ssh_config has to hosts for which bringup's config names no jump host: its ProxyJump lines become hops of ours, so that each is dialled
//! once for all nodes behind it, and its state is on the screen.

use std::path::Path;

use futures_util::StreamExt;

use crate::config::Config;
use crate::config::types::{Hop, Login};
use crate::domain::HopId;
use crate::ssh::{Target, proxy_jumps};

use super::setup::{settings, target};

/// Most jump hosts of a console, those of ssh_config included.
const MAX_HOPS: usize = 64;

/// How many aliases are looked up at a time.
const AT_ONCE: usize = 8;

/// The configuration with the hops that ssh_config names. Where that can't be read a host stays as it is: dialling it tells why.
pub async fn with_ssh_config(mut config: Config, home: &Path) -> Config {
    let settings = &settings(&config, Vec::new(), home, false);
    let open = |login: &Login, via: Option<HopId>| login.alias && !login.direct && via.is_none();
    let of_hops = config.ssh.jump.iter().map(|h| (&h.name, &h.login, h.via));
    let of_nodes = config.nodes.iter().map(|n| (&n.name, &n.login, n.via));
    // One after the other, the hops first, as they are entered below.
    let asked: Vec<Option<Target>> = of_hops
        .chain(of_nodes)
        .map(|(name, login, via)| open(login, via).then(|| target(name, login, home)))
        .collect();
    let chains = futures_util::stream::iter(asked).map(|asked| async move {
        match asked {
            Some(target) => proxy_jumps(&target, settings).await.unwrap_or_default(),
            None => Vec::new(),
        }
    });
    let chains: Vec<Vec<Target>> = chains.buffered(AT_ONCE).collect().await;
    let hops = config.ssh.jump.len();
    for (place, chain) in chains.into_iter().enumerate().filter(|(_, chain)| !chain.is_empty()) {
        let Some(last) = enter(&mut config.ssh.jump, &chain) else {
            continue;
        };
        let slot = match place.checked_sub(hops) {
            None => config.ssh.jump.get_mut(place).map(|hop| &mut hop.via),
            Some(node) => config.nodes.get_mut(node).map(|node| &mut node.via),
        };
        if let Some(via) = slot {
            *via = Some(last);
        }
    }
    config
}

/// Puts a chain of hosts among the hops, where they are not there yet, and gives the last of it; `None` when there are too many.
fn enter(hops: &mut Vec<Hop>, chain: &[Target]) -> Option<HopId> {
    let mut via = None;
    for host in chain {
        let same = |h: &Hop| {
            let login = &h.login;
            login.alias
                && login.keys.is_empty()
                && (&login.host, login.port, &login.user, h.via) == (&host.host, host.port, &host.user, via)
        };
        let place = match hops.iter().position(same) {
            Some(place) => place,
            None if hops.len() < MAX_HOPS => {
                hops.push(Hop {
                    name: free_name(hops, host),
                    login: Login {
                        host: host.host.clone(),
                        port: host.port,
                        user: host.user.clone(),
                        keys: Vec::new(),
                        alias: true,
                        direct: false,
                    },
                    via,
                });
                hops.len() - 1
            }
            None => return None,
        };
        via = u16::try_from(place).ok().map(HopId);
    }
    via
}

/// The host's name, or what ssh_config says in full, or that with a number.
fn free_name(hops: &[Hop], host: &Target) -> String {
    let taken = |name: &str| hops.iter().any(|h| h.name == name);
    let numbered = (2..=MAX_HOPS).map(|n| format!("{} ({n})", host.name));
    let mut names = [host.host.clone(), host.name.clone()].into_iter().chain(numbered);
    names.find(|name| !taken(name)).unwrap_or_else(|| host.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> Target {
        let address = crate::domain::address::parse(text).unwrap();
        Target {
            name: text.to_owned(),
            host: address.host,
            port: address.port,
            user: address.user,
            keys: Vec::new(),
            alias: true,
            direct: false,
        }
    }

    #[test]
    fn a_hop_that_several_hosts_go_through_is_there_once() {
        let mut hops = Vec::new();
        assert_eq!(enter(&mut hops, &[host("ops@a"), host("b")]), Some(HopId(1)));
        assert_eq!(enter(&mut hops, &[host("ops@a")]), Some(HopId(0)));
        assert_eq!(enter(&mut hops, &[host("ops@a"), host("b")]), Some(HopId(1)));
        // Another user, and another way to the same host, are other connections.
        assert_eq!(enter(&mut hops, &[host("a"), host("b")]), Some(HopId(3)));
        let told: Vec<_> = hops.iter().map(|h| (h.name.as_str(), h.via.map(|v| v.0))).collect();
        assert_eq!(told, [("a", None), ("b", Some(0)), ("a (2)", None), ("b (2)", Some(2))]);
    }

    #[test]
    fn there_is_an_end_to_hops() {
        let mut hops = Vec::new();
        for n in 0..MAX_HOPS {
            assert!(enter(&mut hops, &[host(&format!("h{n}"))]).is_some());
        }
        assert_eq!(enter(&mut hops, &[host("one-more")]), None);
        assert_eq!(enter(&mut hops, &[host("h3")]), Some(HopId(3)));
        assert_eq!(hops.len(), MAX_HOPS);
    }
}
