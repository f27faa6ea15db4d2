//! From a target to an authenticated connection: name, TCP or a channel of the hop before, handshake, login.

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use russh::cipher;
use russh::client::{self, Handle};
use russh::keys::Algorithm;
use tokio::io::BufReader;
use tokio::net::lookup_host;
use tokio::sync::oneshot;

use super::alias::{Host, resolve};
use super::auth::{MAX_TRIES, Refusal, log_in};
use super::authority;
use super::errors::{fragment, io_fragment, link_error, transient};
use super::fix;
use super::hop::HopHandle;
use super::host_key::{Client, Ending, Judge, Shared};
use super::known_hosts::Known;
use super::link::{KEEPALIVE, Link, LoggedIn};
use super::paced::Paced;
use super::proxy::{self, Words};
use super::settings::{Asker, Places, Reporter, Settings, Target};
use super::tcp;
use super::wire::{Bytestream, Pulse, Wire};
use crate::domain::Source;
use crate::domain::link::{LinkError, LinkErrorKind, LinkState};
use crate::domain::time::human;

/// Handshakes that are tried when the server hangs up in the middle of one; a login is never tried twice.
const HANDSHAKE_TRIES: u32 = 3;

/// Longest pause before the next of them; the real one is a random part of it.
const HANDSHAKE_PAUSE: Duration = Duration::from_millis(1500);

/// Longest wait for the reason of a connection that ended during the login.
const REASON_LIMIT: Duration = Duration::from_secs(1);

/// Addresses of one name that are tried.
const ADDRESSES: usize = 16;

/// Bytes read from a connection at a time: a busy log comes in packets of a line each, and the library asks for each of them twice.
const READ_BUFFER: usize = 128 << 10;

/// A byte stream of the operating system's, read in large pieces.
fn buffered(stream: impl Bytestream + 'static) -> Box<dyn Bytestream> {
    Box::new(BufReader::with_capacity(READ_BUFFER, stream))
}

/// Everything that one dial needs to know.
struct Dial<'a> {
    host: Host,
    jumps: Vec<Host>,
    label: String,
    via: Option<&'a HopHandle>,
    /// The hop among whose handshakes this one counts beside those through `via`.
    among: Option<&'a HopHandle>,
    settings: &'a Settings,
    reporter: Arc<dyn Reporter>,
    source: Source,
}

/// Why one try failed.
struct Failed {
    error: LinkError,
    /// Whether another handshake may go well.
    again: bool,
}

impl From<LinkError> for Failed {
    fn from(error: LinkError) -> Self {
        Self { error, again: false }
    }
}

/// What [`dial`] gives: the connection, and the resolved hosts down to it.
pub(super) struct Dialled {
    pub(super) link: Arc<Link>,
    pub(super) path: Vec<Host>,
}

/// Connects and logs in. Reports what it is doing, but not its failure: only the caller knows whether it will be tried again.
pub(super) async fn dial(
    target: &Target,
    via: Option<&HopHandle>,
    settings: &Settings,
    reporter: Arc<dyn Reporter>,
    source: Source,
) -> Result<Dialled, LinkError> {
    dial_among(None, target, via, settings, reporter, source).await
}

/// As [`dial`], for a further connection to a hop: it counts among the handshakes of `among` too.
pub(super) async fn dial_among(
    among: Option<&HopHandle>,
    target: &Target,
    via: Option<&HopHandle>,
    settings: &Settings,
    reporter: Arc<dyn Reporter>,
    source: Source,
) -> Result<Dialled, LinkError> {
    let host = resolve(target, via.is_some(), settings).await?;
    let jumps = match via {
        // Waits for the hop before.
        Some(hop) => hop.up().await?,
        None => Vec::new(),
    };
    let label = label(&host, via);
    let dial = Dial {
        host,
        jumps,
        label,
        via,
        among,
        settings,
        reporter,
        source,
    };
    let mut tried = 0;
    let link = loop {
        tried += 1;
        match dial.once().await {
            Ok(link) => break link,
            Err(failed) if failed.again && tried < HANDSHAKE_TRIES => {
                tokio::time::sleep(jittered(HANDSHAKE_PAUSE)).await
            }
            Err(failed) => return Err(failed.error),
        }
    };
    let mut path = dial.jumps;
    path.push(dial.host);
    Ok(Dialled { link, path })
}

impl Dial<'_> {
    async fn once(&self) -> Result<Arc<Link>, Failed> {
        // Given up with this try, or when a person is asked.
        let places = Arc::new(Places::default());
        for hop in [self.among, self.via].into_iter().flatten() {
            places.hold(hop.handshake_place().await);
        }
        self.reporter.link(self.source, LinkState::Connecting);
        let pulse = Pulse::new();
        // Whatever goes wrong from here on, russh's task must not outlive this call.
        let guard = pulse.token().drop_guard();
        let (stream, words) = self.stream(&pulse).await?;
        let asker = Asker::new(
            Arc::clone(&self.reporter),
            self.source,
            self.settings.interactive,
            // Ends with the wire, and also when the peer says goodbye.
            pulse.token().child_token(),
            &places,
        );
        let shared = Shared::default();
        let (gone, mut gone_receiver) = oneshot::channel();
        let client = Client {
            judge: self.judge(asker.clone()),
            shared: shared.clone(),
            gone: Some(gone),
        };
        let wire = Wire::new(stream, Arc::clone(&pulse));
        let limit = self.limit();
        let handshake = client::connect_stream(self.config(), wire, client);
        let mut handle = match asker.limited(limit, handshake).await {
            Some(Ok(handle)) => handle,
            Some(Err(error)) => return Err(self.handshake_failed(&error, &shared, words).await),
            None => return Err(self.unreachable(&self.no_handshake()).into()),
        };
        self.log_in(&mut handle, &asker, &shared, &mut gone_receiver).await?;
        guard.disarm();
        let done = LoggedIn {
            handle,
            pulse,
            shared,
            gone: gone_receiver,
            give_up: self.host.give_up,
        };
        Ok(Link::start(
            self.host.name.clone(),
            done,
            Arc::clone(&self.reporter),
            self.source,
        ))
    }

    /// Longest TCP connection, longest handshake and longest authentication, each.
    fn limit(&self) -> Duration {
        let own = self.host.connect_limit.unwrap_or(Duration::MAX);
        own.min(self.settings.connect_limit)
    }

    fn judge(&self, asker: Asker) -> Judge {
        Judge {
            host: self.host.clone(),
            jumps: self.jumps.clone(),
            label: self.label.clone(),
            keyring: self.settings.keyring.clone(),
            asker,
        }
    }

    /// The bytes that SSH runs on.
    async fn stream(&self, pulse: &Arc<Pulse>) -> Result<(Box<dyn Bytestream>, Option<Words>), LinkError> {
        if let Some(hop) = self.via {
            let tunnel = hop.open_for(&self.host.host, self.host.port, &self.label).await?;
            return Ok((Box::new(tunnel), None));
        }
        if let Some(command) = &self.host.command {
            let started = proxy::start(command, pulse);
            let (stream, words) =
                started.map_err(|why| link_error(LinkErrorKind::Local, format!("{}: {why}", self.label)))?;
            return Ok((buffered(stream), Some(words)));
        }
        let limit = self.limit();
        let addresses = self.addresses(limit).await?;
        match tcp::connect(addresses, limit).await {
            Some(Ok(stream)) => {
                // Without it small packets wait for one another. A socket that refuses works all the same.
                let _ = stream.set_nodelay(true);
                Ok((buffered(Paced::new(stream)), None))
            }
            Some(Err(e)) => Err(self.unreachable(&io_fragment(&e))),
            None => Err(self.unreachable(&format!("no TCP connection within {}", human(limit)))),
        }
    }

    /// What the host's name stands for.
    async fn addresses(&self, limit: Duration) -> Result<Vec<SocketAddr>, LinkError> {
        let host = self.host.host.as_str();
        let why = match tokio::time::timeout(limit, lookup_host((host, self.host.port))).await {
            Ok(Ok(found)) => {
                let found: Vec<SocketAddr> = found.take(ADDRESSES).collect();
                if !found.is_empty() {
                    return Ok(found);
                }
                "it has no address".to_owned()
            }
            Ok(Err(error)) => io_fragment(&error),
            Err(_) => format!("no answer within {}", human(limit)),
        };
        Err(self.unreachable(&format!("the name {host} could not be resolved: {why}")))
    }

    fn config(&self) -> Arc<client::Config> {
        let known = Known::read(&self.host.known_hosts, &self.host.known_as.0, self.host.known_as.1);
        let mut config = client::Config {
            nodelay: true,
            keepalive_interval: Some(KEEPALIVE),
            // The guard of the connection gives up, by its own clock.
            keepalive_max: 0,
            ..client::Config::default()
        };
        // Twice as fast as the library's first choice.
        config.preferred.cipher = vec![cipher::AES_256_GCM, cipher::CHACHA20_POLY1305, cipher::AES_256_CTR].into();
        config.preferred.key = key_order(&known.algorithms()).into();
        if known.has_authority() {
            config.preferred.host_key_certificates = authority::algorithms().into();
        }
        Arc::new(config)
    }

    async fn handshake_failed(&self, error: &russh::Error, shared: &Shared, words: Option<Words>) -> Failed {
        let refused = shared.refused.lock().unwrap_or_else(PoisonError::into_inner).take();
        let told = match words {
            // What it says of itself comes nearer to the cause than the end of its output.
            Some(words) if refused.is_none() => words.last().await,
            _ => None,
        };
        match refused {
            Some(error) => error.into(),
            None => match told {
                Some(why) => self.unreachable(&why).into(),
                None => Failed {
                    error: self.unreachable(&fragment(error)),
                    again: transient(error),
                },
            },
        }
    }

    fn no_handshake(&self) -> String {
        let limit = human(self.limit());
        format!(
            "connected, but no SSH handshake within {limit}: the host may be short of memory, or it is no SSH server"
        )
    }

    async fn log_in(
        &self,
        handle: &mut Handle<Client>,
        asker: &Asker,
        shared: &Shared,
        gone: &mut oneshot::Receiver<String>,
    ) -> Result<(), LinkError> {
        let settings = self.settings;
        let agent = self.host.agent.as_deref();
        let work = log_in(handle, &self.host, &self.label, agent, &settings.keyring, asker);
        match asker.limited(self.limit(), work).await {
            Some(Ok(())) => Ok(()),
            Some(Err(refusal)) if refusal.hung_up => {
                let why = tokio::time::timeout(REASON_LIMIT, gone).await.ok().and_then(Result::ok);
                let why = why.unwrap_or_else(|| "the connection ended".to_owned());
                let ending = *shared.ending.lock().unwrap_or_else(PoisonError::into_inner);
                Err(self.hung_up(refusal, &why, ending))
            }
            Some(Err(refusal)) => Err(self.refused(&refusal, None)),
            None => Err(self.unreachable(&format!("no answer to the login within {}", human(self.limit())))),
        }
    }

    /// The connection ended during the login. That is a refusal only where the server has said no to something and ended it itself.
    fn hung_up(&self, mut refusal: Refusal, why: &str, ending: Ending) -> LinkError {
        let (by_server, of_tries) = match ending {
            Ending::Lost => (false, false),
            Ending::Goodbye => (!refusal.while_asking, false),
            Ending::TooMany | Ending::NoMethod => (true, true),
        };
        if of_tries {
            refusal.tried.extend(refusal.unanswered.take());
        }
        if !by_server || !refusal.refused_anything() {
            let when = if refusal.while_asking && !of_tries {
                "while it waited for an answer, and hosts wait for two minutes only"
            } else {
                "during the login"
            };
            let before = if refusal.tried.is_empty() {
                String::new()
            } else {
                format!("; it had refused {} before", refusal.tried.join(", "))
            };
            return self.unreachable(&format!("the connection was lost {when}: {why}{before}"));
        }
        self.refused(&refusal, Some((why, ending)))
    }

    /// Nobody was let in: what was tried, and what to do. `ended`: why the connection ended before all keys were tried, and how.
    fn refused(&self, refusal: &Refusal, ended: Option<(&str, Ending)>) -> LinkError {
        let mut text = format!("{}: ", self.label);
        if !refusal.taken.is_empty() {
            text.push_str(&format!("it took {} and wants more; ", refusal.taken.join(", ")));
        }
        let no_keys = !refusal.methods.is_empty() && !refusal.methods.contains(&"publickey");
        if refusal.tried.is_empty() && (no_keys || !refusal.taken.is_empty()) {
            // What it wants instead is said below.
            text.push_str("it let nobody in");
        } else if refusal.tried.is_empty() {
            text.push_str("there was no key to offer");
            if !self.host.named {
                let looked: Vec<String> = self.host.keys.iter().map(|k| k.display().to_string()).collect();
                text.push_str(&format!("; looked for {}", looked.join(", ")));
            }
        } else {
            let which = if ended.is_some() { "keys" } else { "every key" };
            text.push_str(&format!("it refused {which}: tried {}", refusal.tried.join(", ")));
        }
        for (method, times) in &refusal.answers {
            let times = if *times == 1 {
                String::new()
            } else {
                format!(" {times} times")
            };
            text.push_str(&format!("; it refused {method}{times}"));
        }
        if !refusal.notes.is_empty() {
            text.push_str(&format!("; {}", refusal.notes.join("; ")));
        }
        if let Some((why, ending)) = ended {
            let tried = refusal.tries();
            text.push_str(&format!("; the connection ended after {tried} of them: {why}"));
            if ending == Ending::TooMany && tried < MAX_TRIES {
                text.push_str(&format!("; its limit is below {MAX_TRIES}"));
            }
        }
        if no_keys {
            text.push_str(&format!("; it takes only {}", refusal.methods.join(", ")));
        }
        if let Some(jump) = self.jumps.last() {
            text.push_str(&format!(
                ". If `ssh {}` and from there `ssh {}` works: that login uses a key of {}, not this one; `login = \"jump\"` in the configuration does the same",
                jump.login(),
                self.host.login(),
                jump.name
            ));
        }
        let kind = if refusal.refused_anything() {
            LinkErrorKind::Refused
        } else {
            LinkErrorKind::Local
        };
        let too_many = matches!(ended, Some((_, Ending::TooMany)));
        let name_it = "name the key that opens it in `keys` of that host (the .pub file of one that an agent holds): those are offered first".to_owned();
        let fix = Some(name_it).filter(|_| too_many).or_else(|| {
            refusal.key().map(|key| {
                format!(
                    "add the public key there:\n{}",
                    fix::add_key(&key, &self.jumps, &self.host)
                )
            })
        });
        LinkError { kind, text, fix }
    }

    fn unreachable(&self, why: &str) -> LinkError {
        link_error(LinkErrorKind::Unreachable, format!("{}: {why}", self.label))
    }
}

/// `NAME (user@host:port via HOP)`.
fn label(host: &Host, via: Option<&HopHandle>) -> String {
    let via = via.map(|hop| format!(" via {}", hop.name())).unwrap_or_default();
    format!("{} ({}@{}{via})", host.name, host.user, host.address())
}

/// The library's order without what is no longer safe, the algorithms on file first. An RSA key on file may be proven with any of RSA's other signatures.
fn key_order(on_file: &[Algorithm]) -> Vec<Algorithm> {
    let rsa = |a: &Algorithm| matches!(a, Algorithm::Rsa { .. });
    let wanted = |a: &Algorithm| on_file.iter().any(|f| f == a || (rsa(f) && rsa(a)));
    let (mut first, rest): (Vec<Algorithm>, Vec<Algorithm>) = authority::algorithms().into_iter().partition(wanted);
    first.extend(rest);
    first
}

/// A random part of a duration, never less than half of it.
pub(super) fn jittered(longest: Duration) -> Duration {
    // The standard library's hasher is seeded by the system.
    let random = RandomState::new().hash_one(0);
    let half = longest / 2;
    half + half.mul_f64(f64::from(u32::try_from(random >> 32).unwrap_or(0)) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use russh::Preferred;
    use russh::keys::{EcdsaCurve, HashAlg};

    use super::*;

    #[test]
    fn algorithms_on_file_are_asked_for_first_and_none_is_lost() {
        let order = key_order(&[Algorithm::Rsa { hash: None }]);
        assert_eq!(order.len(), authority::algorithms().len());
        let sha1 = Algorithm::Rsa { hash: None };
        assert!(!order.contains(&sha1) && Preferred::DEFAULT.key.contains(&sha1));
        assert_eq!(
            order.first(),
            Some(&Algorithm::Rsa {
                hash: Some(HashAlg::Sha512)
            })
        );
        let nist = Algorithm::Ecdsa {
            curve: EcdsaCurve::NistP256,
        };
        assert_eq!(key_order(std::slice::from_ref(&nist)).first(), Some(&nist));
        assert_eq!(key_order(&[]), authority::algorithms());
    }

    #[test]
    fn jitter_stays_between_half_and_whole() {
        for _ in 0..100 {
            let pause = jittered(Duration::from_secs(10));
            assert!((5.0..=10.0).contains(&pause.as_secs_f64()), "{pause:?}");
        }
    }
}
