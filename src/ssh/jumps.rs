//! The hosts that ssh_config's ProxyJump puts before an alias.

use super::alias::local;
use super::settings::{Settings, Target};
use super::ssh_config::read;
use super::tokens::Tokens;
use crate::domain::address;
use crate::domain::link::LinkError;

/// Most hosts before an alias.
const MAX_JUMPS: usize = 8;

/// The hosts that ssh_config has an alias go through, the first dialled first; none where it says nothing of the kind. As in OpenSSH the first of a list
/// may have a ProxyJump of its own, and the others go through the one before them.
///
/// # Errors
/// When ssh_config can't be read, a name in it is none, or the hosts go round in a circle.
pub async fn proxy_jumps(target: &Target, settings: &Settings) -> Result<Vec<Target>, LinkError> {
    let mut chain: Vec<Target> = Vec::new();
    let mut first = target.clone();
    while first.alias && !first.direct {
        let said = read(&first, settings).await.map_err(|why| local(target, &why))?;
        let Some(jump) = said.jump else { break };
        let port = first.port.or(said.port).unwrap_or(super::alias::PORT);
        let user = first.user.clone().or(said.user).unwrap_or_default();
        let tokens = Tokens {
            name: &first.host,
            host: said.host.as_deref().unwrap_or(&first.host),
            port,
            user: &user,
            known_as: &first.host,
            home: None,
        };
        let before =
            hosts(&jump, &tokens).map_err(|why| local(target, &format!("ProxyJump of {}: {why}", first.host)))?;
        let circle = before
            .iter()
            .find(|b| same(b, target) || same(b, &first) || chain.iter().any(|c| same(c, b)));
        if let Some(again) = circle {
            return Err(local(
                target,
                &format!(
                    "the ProxyJump lines of ssh_config go round in a circle: {} stands before itself",
                    again.host
                ),
            ));
        }
        let Some(next) = before.first().cloned() else { break };
        chain.splice(0..0, before);
        if chain.len() > MAX_JUMPS {
            return Err(local(
                target,
                &format!("ssh_config puts more than {MAX_JUMPS} hosts before it"),
            ));
        }
        first = next;
    }
    Ok(chain)
}

/// Whether two targets are one place.
fn same(a: &Target, b: &Target) -> bool {
    (&a.host, a.port, &a.user) == (&b.host, b.port, &b.user)
}

/// The hosts of one ProxyJump.
pub(super) fn hosts(list: &str, tokens: &Tokens<'_>) -> Result<Vec<Target>, String> {
    let mut hosts = Vec::new();
    for text in tokens.percent(list)?.split(',') {
        let address = address::parse(text.trim()).map_err(|bad| bad.what)?;
        hosts.push(Target {
            name: text.trim().to_owned(),
            host: address.host,
            port: address.port,
            user: address.user,
            keys: Vec::new(),
            alias: true,
            direct: false,
        });
    }
    Ok(hosts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_hosts_is_read_as_ssh_reads_it() {
        let tokens = Tokens {
            name: "spark",
            host: "spark.lab",
            port: 22,
            user: "aurora",
            known_as: "spark",
            home: None,
        };
        let read = |list: &str| {
            let hosts = hosts(list, &tokens)?;
            Ok::<_, String>(hosts.into_iter().map(|t| (t.host, t.port, t.user)).collect::<Vec<_>>())
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            read("ops@a:2200,b,[fe80::1]:22,%n-gate"),
            Ok(vec![
                ("a".into(), Some(2200), some("ops")),
                ("b".into(), None, None),
                ("fe80::1".into(), Some(22), None),
                ("spark-gate".into(), None, None),
            ])
        );
        assert_eq!(read("a,"), Err("`` is no host name and no address".into()));
    }
}
