//! From what the config says of a host, and ssh_config of an alias, to what is dialled.

use std::path::PathBuf;
use std::time::Duration;

use super::errors::link_error;
use super::jumps::proxy_jumps;
use super::settings::{Settings, Target, agent_socket};
use super::ssh_config::{Said, read};
use super::tokens::{Tokens, tilde};
use crate::domain::link::{HostKeys, LinkError, LinkErrorKind};

/// SSH's port.
pub(super) const PORT: u16 = 22;

/// Key files that are tried where none is named, in ~/.ssh.
const USUAL_KEYS: [&str; 3] = ["id_ed25519", "id_ecdsa", "id_rsa"];

/// Key files that `ssh -G` lists where the operator's ssh_config names none, beside [`USUAL_KEYS`].
const LISTED_KEYS: [&str; 4] = ["id_ecdsa_sk", "id_ed25519_sk", "id_xmss", "id_dsa"];

/// known_hosts files where nothing names one: OpenSSH's own. The first is the operator's.
const KNOWN_HOSTS: [&str; 2] = ["~/.ssh/known_hosts", "/etc/ssh/ssh_known_hosts"];

/// A host, ready to be dialled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Host {
    pub(super) name: String,
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) user: String,
    pub(super) keys: Vec<PathBuf>,
    /// Whether somebody named these keys; otherwise they are the usual ones, and missing files are no news.
    pub(super) named: bool,
    /// User certificates that were named apart from the keys (`CertificateFile`), in order; those beside the keys are found there.
    pub(super) certificates: Vec<PathBuf>,
    /// Whether no other key of the agent may be tried.
    pub(super) only_named: bool,
    /// Socket of the agent whose keys are tried.
    pub(super) agent: Option<PathBuf>,
    /// Name and port under which known_hosts files hold its key.
    pub(super) known_as: (String, u16),
    /// The files in which its key is looked for.
    pub(super) known_hosts: Vec<PathBuf>,
    /// The file that an accepted key is written to.
    pub(super) accepted: Option<PathBuf>,
    /// What becomes of an unknown key.
    pub(super) host_keys: HostKeys,
    /// Whether ssh_config would have taken even a changed key, which is not done here.
    pub(super) lax: bool,
    /// File with keys that must not be accepted.
    pub(super) revoked: Option<PathBuf>,
    /// A time limit of its own for connecting; it counts where it is the shorter one.
    pub(super) connect_limit: Option<Duration>,
    /// A time of its own after which a silent peer is given up; it counts where it is the shorter one.
    pub(super) give_up: Option<Duration>,
    /// The command whose input and output lead to it.
    pub(super) command: Option<String>,
    /// What an `ssh` command line must say to come to the same.
    pub(super) line: Line,
}

/// What an `ssh` command line must say of a host, as its defaults and files don't.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Line {
    /// `-F`.
    pub(super) config: Option<PathBuf>,
    /// The alias, which brings its own settings.
    pub(super) alias: Option<String>,
    /// User that overrides the alias's.
    pub(super) user: Option<String>,
    /// Port that overrides the alias's.
    pub(super) port: Option<u16>,
    /// `-i`.
    pub(super) keys: Vec<PathBuf>,
    /// `-o UserKnownHostsFile`.
    pub(super) known_hosts: Vec<PathBuf>,
    /// Whether the alias's own ProxyJump and ProxyCommand are left out.
    pub(super) direct: bool,
}

impl Host {
    /// `host:port`, with brackets where the host has colons.
    pub(super) fn address(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// `user@host`, as ssh takes it.
    pub(super) fn login(&self) -> String {
        format!("{}@{}", self.user, self.host)
    }
}

/// Resolves a target; asks `ssh -G` when it is an alias.
pub(super) async fn resolve(target: &Target, has_via: bool, settings: &Settings) -> Result<Host, LinkError> {
    let said = if target.alias {
        read(target, settings).await.map_err(|why| local(target, &why))?
    } else {
        Said::default()
    };
    let own_way = has_via || target.direct;
    if let Some(jump) = said.jump.as_ref().filter(|_| !own_way) {
        // The hops are made at the start; what is wrong with them is told here.
        proxy_jumps(target, settings).await?;
        return Err(local(
            target,
            &format!(
                "ssh_config reaches {} through `ProxyJump {jump}`, which bringup did not have at its start: the file was changed since, `ssh -G` failed then, or \
                 there were too many jump hosts; try another start, or name the jump host in the configuration",
                target.host
            ),
        ));
    }
    if let Some(why) = said.refused {
        return Err(local(target, why));
    }
    build(target, said, own_way, settings).map_err(|why| local(target, &why))
}

fn build(target: &Target, said: Said, own_way: bool, settings: &Settings) -> Result<Host, String> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let user = target.user.clone().or(said.user).or_else(local_user);
    let user = user.ok_or("no user is set, and $USER is empty")?;
    let host = said.host.unwrap_or_else(|| target.host.clone());
    let port = target.port.or(said.port).unwrap_or(PORT);
    let known_as = said
        .known_as
        .map_or_else(|| (host.clone(), port), |alias| (alias, PORT));
    let tokens = Tokens {
        name: &target.host,
        host: &host,
        port,
        user: &user,
        known_as: &known_as.0,
        home: home.as_deref(),
    };
    let all = |texts: &[String]| texts.iter().map(|t| tokens.path(t)).collect::<Result<Vec<_>, _>>();
    let own_keys = target
        .keys
        .iter()
        .map(|k| tilde(k, home.as_deref()))
        .collect::<Vec<_>>();
    let named = !own_keys.is_empty() || !are_usual(&said.keys);
    let keys = if !own_keys.is_empty() {
        own_keys.clone()
    } else if said.keys.is_empty() {
        let usual = USUAL_KEYS
            .iter()
            .map(|k| tilde(&format!("~/.ssh/{k}"), home.as_deref()));
        usual.collect()
    } else {
        all(&said.keys)?
    };
    let [first, rest] = KNOWN_HOSTS.map(|f| vec![f.to_owned()]);
    let user_files = if settings.known_hosts.is_empty() {
        all(&said.user_files.unwrap_or(first))?
    } else {
        settings.known_hosts.clone()
    };
    // The machine's own files always count: what they revoke stays revoked, whichever file new keys go to.
    let global_files = all(&said.global_files.unwrap_or(rest))?;
    let command = match said.command.filter(|_| !own_way) {
        Some(command) => Some(tokens.command(&command)?),
        None => None,
    };
    let agent = match said.agent.filter(|_| !settings.no_agent) {
        None => settings.agent.clone(),
        Some(agent) => agent_of(&agent, &tokens)?,
    };
    let revoked = said.revoked.map(|file| tokens.path(&file)).transpose()?;
    let certificates = all(&said.certificates)?;
    let line = Line {
        config: settings.ssh_config.clone(),
        alias: target.alias.then(|| target.host.clone()),
        user: target.user.clone(),
        port: target.port,
        keys: own_keys,
        known_hosts: settings.known_hosts.clone(),
        direct: target.alias && target.direct,
    };
    Ok(Host {
        name: target.name.clone(),
        accepted: user_files.first().cloned(),
        known_hosts: user_files.into_iter().chain(global_files).collect(),
        host_keys: settings.host_keys.or(said.host_keys).unwrap_or(HostKeys::Ask),
        lax: said.lax,
        keys,
        named,
        certificates,
        only_named: said.only_named,
        connect_limit: said.connect_timeout,
        give_up: match (said.alive_interval, said.alive_count) {
            (Some(interval), Some(count)) => Some(interval.saturating_mul(count.max(1))),
            _ => None,
        },
        agent,
        revoked,
        command,
        line,
        known_as,
        host,
        port,
        user,
    })
}

/// The agent that ssh_config names: `none`, `SSH_AUTH_SOCK`, `$VARIABLE` or a path.
fn agent_of(text: &str, tokens: &Tokens<'_>) -> Result<Option<PathBuf>, String> {
    let variable = text.strip_prefix('$').filter(|name| !name.starts_with('{'));
    Ok(match (text, variable) {
        ("none", _) => None,
        ("SSH_AUTH_SOCK", _) => agent_socket(),
        (_, Some(name)) => std::env::var_os(name).filter(|s| !s.is_empty()).map(PathBuf::from),
        (path, None) => Some(tokens.path(path)?),
    })
}

pub(super) fn local(target: &Target, why: &str) -> LinkError {
    link_error(LinkErrorKind::Local, format!("{}: {why}", target.name))
}

/// The operator's name on this machine.
pub(super) fn local_user() -> Option<String> {
    ["USER", "LOGNAME"]
        .iter()
        .filter_map(|name| std::env::var(name).ok())
        .find(|user| !user.is_empty())
}

/// Whether these are the keys that `ssh -G` lists where nobody names one: all the usual ones, and no other. Of one that is named it lists that alone.
fn are_usual(keys: &[String]) -> bool {
    let names: Vec<Option<&str>> = keys.iter().map(|key| key.strip_prefix("~/.ssh/")).collect();
    let usual = |name: &Option<&str>| name.is_some_and(|n| USUAL_KEYS.contains(&n) || LISTED_KEYS.contains(&n));
    let all = USUAL_KEYS.iter().all(|key| names.contains(&Some(key)));
    names.is_empty() || (all && names.iter().all(usual))
}

#[cfg(test)]
impl Host {
    /// A host as the config alone names it.
    pub(super) fn plain(user: &str, host: &str, port: u16) -> Self {
        Self {
            name: host.into(),
            host: host.into(),
            port,
            user: user.into(),
            keys: Vec::new(),
            named: true,
            certificates: Vec::new(),
            only_named: false,
            agent: None,
            known_as: (host.into(), port),
            known_hosts: Vec::new(),
            accepted: None,
            host_keys: HostKeys::Ask,
            lax: false,
            revoked: None,
            connect_limit: None,
            give_up: None,
            command: None,
            line: Line::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssh::keyring::Keyring;

    fn target(host: &str) -> Target {
        Target {
            name: "node".into(),
            host: host.into(),
            port: None,
            user: Some("aurora".into()),
            keys: vec!["/k/one".into()],
            alias: false,
            direct: false,
        }
    }

    fn settings() -> Settings {
        Settings {
            ssh_config: None,
            known_hosts: Vec::new(),
            host_keys: None,
            agent: Some("/run/agent".into()),
            no_agent: false,
            connect_limit: Duration::from_secs(10),
            interactive: true,
            keyring: Keyring::default(),
        }
    }

    fn said() -> Said {
        Said {
            host: Some("spark.lab".into()),
            port: Some(2222),
            user: Some("root".into()),
            keys: vec!["/h/id_%h".into()],
            certificates: vec!["/h/%n-cert.pub".into()],
            only_named: true,
            known_as: Some("sparks".into()),
            user_files: Some(vec!["/h/known_%k".into()]),
            global_files: Some(vec!["/etc/known".into()]),
            host_keys: Some(HostKeys::Strict),
            agent: Some("/run/%r".into()),
            alive_interval: Some(Duration::from_secs(3)),
            alive_count: Some(2),
            connect_timeout: Some(Duration::from_secs(4)),
            command: Some("nc %h %p".into()),
            ..Said::default()
        }
    }

    #[test]
    fn an_alias_is_what_ssh_config_says() {
        let target = Target {
            user: None,
            keys: Vec::new(),
            alias: true,
            ..target("spark")
        };
        let host = build(&target, said(), false, &settings()).unwrap();
        let expected = Host {
            name: "node".into(),
            keys: vec!["/h/id_spark.lab".into()],
            certificates: vec!["/h/spark-cert.pub".into()],
            only_named: true,
            agent: Some("/run/root".into()),
            known_as: ("sparks".into(), 22),
            known_hosts: vec!["/h/known_sparks".into(), "/etc/known".into()],
            accepted: Some("/h/known_sparks".into()),
            host_keys: HostKeys::Strict,
            connect_limit: Some(Duration::from_secs(4)),
            give_up: Some(Duration::from_secs(6)),
            command: Some("nc spark.lab 2222".into()),
            line: Line {
                alias: Some("spark".into()),
                ..Line::default()
            },
            ..Host::plain("root", "spark.lab", 2222)
        };
        assert_eq!(host, expected);
    }

    #[test]
    fn what_the_config_says_wins_over_ssh_config() {
        let target = Target {
            port: Some(22),
            alias: true,
            direct: true,
            ..target("spark")
        };
        let settings = Settings {
            known_hosts: vec!["/c/known".into(), "/c/more".into()],
            host_keys: Some(HostKeys::Ask),
            no_agent: true,
            agent: None,
            ..settings()
        };
        let host = build(&target, said(), true, &settings).unwrap();
        assert_eq!((host.user.as_str(), host.port, host.command), ("aurora", 22, None));
        assert_eq!((host.keys, host.named), (vec![PathBuf::from("/k/one")], true));
        let files: Vec<PathBuf> = ["/c/known", "/c/more", "/etc/known"].map(PathBuf::from).to_vec();
        assert_eq!(host.known_hosts, files);
        assert_eq!(host.accepted, Some("/c/known".into()));
        assert_eq!((host.host_keys, host.agent), (HostKeys::Ask, None));
    }

    #[test]
    fn the_agent_is_the_one_that_ssh_config_names() {
        let mut cases = vec![
            ("none", None),
            ("SSH_AUTH_SOCK", agent_socket()),
            ("$BRINGUP_NO_SUCH", None),
            ("/run/a", Some(PathBuf::from("/run/a"))),
        ];
        let path = std::env::var("PATH").unwrap();
        cases.push(("$PATH", Some(PathBuf::from(path))));
        let target = Target {
            alias: true,
            ..target("spark")
        };
        for (text, expected) in cases {
            let said = Said {
                agent: Some(text.into()),
                ..Said::default()
            };
            let host = build(&target, said, false, &settings()).unwrap();
            assert_eq!(host.agent, expected, "{text}");
        }
    }

    #[test]
    fn keys_that_ssh_lists_by_itself_are_not_named() {
        let target = Target {
            keys: Vec::new(),
            alias: true,
            ..target("spark")
        };
        let keys = |keys: &[&str]| Said {
            keys: keys.iter().map(|k| (*k).to_owned()).collect(),
            ..Said::default()
        };
        // What `ssh -G` of several versions lists where nobody names a key, then what somebody has named.
        let usual = ["~/.ssh/id_rsa", "~/.ssh/id_ecdsa", "~/.ssh/id_ed25519"];
        let (sk, old) = (
            ["~/.ssh/id_ecdsa_sk", "~/.ssh/id_ed25519_sk"],
            ["~/.ssh/id_xmss", "~/.ssh/id_dsa"],
        );
        let cases = [
            (Vec::new(), false),
            ([&usual[..], &sk, &old].concat(), false),
            ([&usual[..], &sk].concat(), false),
            ([&usual[..], &old].concat(), false),
            (vec!["~/.ssh/id_rsa"], true),
            (vec!["~/.ssh/id_ed25519_sk"], true),
            (usual[..2].to_vec(), true),
            (vec!["~/.ssh/id_rsa", "~/.ssh/mine"], true),
            ([&usual[..], &["~/.ssh/mine"]].concat(), true),
            (vec!["/root/.ssh/id_rsa"], true),
        ];
        for (listed, named) in cases {
            let host = build(&target, keys(&listed), false, &settings()).unwrap();
            assert_eq!(host.named, named, "{listed:?}");
        }
    }

    #[tokio::test]
    async fn an_address_is_written_as_ssh_does() {
        let host = resolve(&target("fe80::1"), false, &settings()).await.unwrap();
        assert_eq!(
            (host.address().as_str(), host.login().as_str()),
            ("[fe80::1]:22", "aurora@fe80::1")
        );
        assert!(host.known_hosts.last().unwrap().ends_with("etc/ssh/ssh_known_hosts"));
    }
}
