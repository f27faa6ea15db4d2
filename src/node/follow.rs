//! The node's log: what is followed, on what it goes on, and how it ends.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;

use crate::config::types::{Config, LogPlace};
use crate::diagnose::{Matcher, Rules};
use crate::domain::command::{Command, Exit};
use crate::domain::container::{Container, ContainerFacts, ContainerState};
use crate::domain::event::{CommandDone, CommandStart, EventKind, Purpose};
use crate::domain::logs::{LogChoice, LogFlow, LogSource};
use crate::domain::{NodeId, Role, Source, Stamp};
use crate::log::Ring;
use crate::probe::logs::{Follower, Place};
use crate::probe::ray_logs;
use crate::ssh::{self, Session};

use super::log_end::{Known, Life, Told, tell_end};
use super::log_reader::Reader;
use super::task::NodeSetup;

/// A log that its reader and the screen share; the lock is held for one push or one copy.
pub type SharedLog = Arc<Mutex<Ring>>;

/// How often what waits is offered again.
const OFFER_EVERY: Duration = Duration::from_millis(50);

/// What comes this soon after a log begins to be followed was there before.
const BACKLOG: Duration = Duration::from_secs(1);

/// A log that was not held for so long is no longer behind: where lines still come faster than they are read, it is held again sooner.
const CAUGHT_UP: Duration = Duration::from_secs(3);

/// Waits before a log that ended is followed again, when nothing else says that it goes on: the first, and the longest for one that ends at once again
/// and again.
const AGAIN_AFTER: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(30));

/// A log that was followed for so long was well: the next wait is the first again.
const WELL: Duration = Duration::from_secs(60);

/// What the node probe last saw of the containers whose log is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Watched {
    /// Whether they were seen.
    seen: bool,
    /// The one whose log counts; `None` where there is none.
    chosen: Option<Chosen>,
    /// How many of them run.
    running: usize,
    /// Where Ray's own files are: the configured container, or the chosen one where that is not there.
    ray: Option<String>,
}

/// A container as the follower needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Chosen {
    life: Life,
    runs: bool,
}

impl Chosen {
    fn of(container: &Container) -> Self {
        let started = container.started().map(|at| at.as_nanosecond());
        Self {
            life: Life {
                id: container.id.clone(),
                name: container.name.clone(),
                started: started.and_then(|at| u64::try_from(at).ok()),
                exit: match container.state {
                    ContainerState::Exited { code, oom } => Some((code, oom)),
                    ContainerState::Created
                    | ContainerState::Running
                    | ContainerState::Paused
                    | ContainerState::Restarting
                    | ContainerState::Other(_) => None,
                },
            },
            runs: container.state == ContainerState::Running,
        }
    }
}

impl Watched {
    pub(super) fn of(facts: &ContainerFacts, config: &Config, id: NodeId) -> Self {
        let wanted = config.node(id).and_then(|n| config.logs.of(n.role).wanted());
        let chosen = wanted.and_then(|w| w.chosen(facts)).map(Chosen::of);
        let runs = |name: &&str| facts.named(name).is_some_and(|c| c.state == ContainerState::Running);
        let ray = [config.container.name.as_str()]
            .into_iter()
            .find(runs)
            .map(str::to_owned);
        Self {
            seen: true,
            running: wanted.map_or(0, |w| w.running(facts)),
            ray: ray.or_else(|| chosen.as_ref().filter(|c| c.runs).map(|c| c.life.name.clone())),
            chosen,
        }
    }
}

/// A log, how far it was read and what its lines were a sign of so far: a new connection goes on with it.
pub(super) struct NodeLog {
    pub(super) follower: Follower,
    pub(super) matcher: Matcher,
    /// Why it could not be followed, where that is the last thing that stands in it.
    refused: Option<String>,
    /// The container whose log was read last.
    pub(super) container: Option<Life>,
    /// The ends that stand in the log.
    pub(super) told: Told,
    /// Times that a command of the user's own was run.
    times: u64,
    /// How it keeps up, as was told last.
    pub(super) flow: LogFlow,
}

/// A log that was not read yet.
pub(super) fn unread(config: &Config, role: Role, rules: Rules) -> NodeLog {
    let matcher = Matcher::new(config, role).by(rules);
    NodeLog::new(Follower::new(place(config, role, "")), matcher)
}

impl NodeLog {
    pub(super) fn new(follower: Follower, matcher: Matcher) -> Self {
        Self {
            follower,
            matcher,
            refused: None,
            container: None,
            told: Told::default(),
            times: 0,
            flow: LogFlow::default(),
        }
    }
}

/// Where the log of a role is; `container` is the name of the chosen container.
fn place(config: &Config, role: Role, container: &str) -> Place {
    let docker = config.container.docker.clone();
    let name = container.to_owned();
    match config.logs.of(role) {
        LogPlace::Container(_) => Place::Container { docker, name },
        LogPlace::File(path) => Place::File { path: path.clone() },
        LogPlace::ContainerFile(_, path) => Place::ContainerFile {
            docker,
            name,
            path: path.clone(),
        },
        LogPlace::Command(line) => Place::Command { line: line.clone() },
    }
}

/// What is followed now.
enum Target {
    /// The configured log, with the container that it is of.
    Own(Option<Chosen>),
    /// Ray's files in this container.
    Ray(String),
}

/// How a followed command ended.
enum Ended {
    /// By itself.
    Itself(Exit),
    /// Something else is to be followed.
    Left,
    /// Too much came at once: it is read on from its last line.
    Overrun,
}

/// Follows the log for as long as the connection lives; gives why it ended.
pub(super) async fn follow(
    setup: &NodeSetup,
    session: Session,
    mut watched: watch::Receiver<Watched>,
    mut choice: watch::Receiver<LogChoice>,
    log: &mut NodeLog,
) -> String {
    let Some(role) = setup.config.node(setup.id).map(|n| n.role) else {
        return "no such node".to_owned();
    };
    let mut pause = AGAIN_AFTER.0;
    loop {
        let Ok(target) = next(setup, &session, &mut watched, &mut choice, log).await else {
            return "the actor ended".to_owned();
        };
        let before = watched.borrow_and_update().clone();
        let began = setup.feed.now().stamp;
        let done = match &target {
            Target::Own(chosen) => {
                prepare(setup, role, log, chosen.as_ref(), &before).await;
                let command = log.follower.command(setup.config.limits.command);
                let left = left_own(chosen.as_ref(), watched.clone(), choice.clone());
                once(setup, &session, log, command, None, left).await
            }
            Target::Ray(container) => {
                let source = LogSource::Ray {
                    container: container.clone(),
                };
                say(
                    setup,
                    log,
                    "… from here Ray's own logs of this node, out of its container",
                )
                .await;
                tell_source(setup, source).await;
                let docker = &setup.config.container.docker;
                let command = ray_logs::command(docker, container, setup.config.limits.command);
                let left = left_ray(container, watched.clone(), choice.clone());
                once(setup, &session, log, command, Some(()), left).await
            }
        };
        if setup.feed.now().stamp.since(began) >= WELL {
            pause = AGAIN_AFTER.0;
        }
        let changed = async {
            tokio::select! {
                one = watched.changed() => one.is_ok(),
                two = choice.changed() => two.is_ok(),
            }
        };
        let exit = match done {
            Err(why) => return why,
            Ok(Ended::Left) => {
                match target {
                    Target::Ray(_) => say(setup, log, "… end of Ray's own logs").await,
                    // It may have ended as another one came to be the newest.
                    Target::Own(_) => tell_end(setup, &session, log, Known::Left).await,
                }
                continue;
            }
            Ok(Ended::Overrun) => {
                let _changed = tokio::time::timeout(pause, changed).await;
                pause = pause.saturating_mul(2).min(AGAIN_AFTER.1);
                continue;
            }
            Ok(Ended::Itself(exit)) => exit,
        };
        // It ended on the node: the container stopped, the file is gone, the command is over.
        let over = match &target {
            Target::Own(Some(chosen)) => {
                let known = if chosen.runs { Known::Perhaps } else { Known::Ended };
                tell_end(setup, &session, log, known).await;
                told_all(&before, &exit)
            }
            Target::Own(None) => {
                command_over(setup, role, log, &exit, pause).await;
                false
            }
            Target::Ray(_) => false,
        };
        if over {
            if !changed.await {
                return "the actor ended".to_owned();
            }
        } else {
            let _changed = tokio::time::timeout(pause, changed).await;
            pause = pause.saturating_mul(2).min(AGAIN_AFTER.1);
        }
    }
}

/// Whether there is nothing more to read before the container changes: it had stopped before its log was read, and that was read to its end.
fn told_all(before: &Watched, exit: &Exit) -> bool {
    exit.ok() && before.chosen.as_ref().is_some_and(|c| !c.runs)
}

/// Waits until there is something to follow. Where there is none, says so, and how the container ended whose log was read last.
async fn next(
    setup: &NodeSetup,
    session: &Session,
    watched: &mut watch::Receiver<Watched>,
    choice: &mut watch::Receiver<LogChoice>,
    log: &mut NodeLog,
) -> Result<Target, watch::error::RecvError> {
    let node = setup.config.node(setup.id);
    let wanted = node.and_then(|n| setup.config.logs.of(n.role).wanted());
    let mut told = false;
    loop {
        let now = watched.borrow_and_update().clone();
        if let (LogChoice::Ray, Some(container)) = (*choice.borrow_and_update(), &now.ray) {
            return Ok(Target::Ray(container.clone()));
        }
        let Some(wanted) = wanted else {
            return Ok(Target::Own(None));
        };
        if now.chosen.is_some() {
            return Ok(Target::Own(now.chosen));
        }
        if now.seen && !told {
            told = true;
            tell_end(setup, session, log, Known::Ended).await;
            let wanted = wanted.words();
            tell_source(setup, LogSource::Nothing { wanted }).await;
        }
        tokio::select! {
            changed = watched.changed() => changed?,
            changed = choice.changed() => changed?,
        }
    }
}

/// Makes the follower that of the chosen container, and says in the log where another one's begins.
async fn prepare(setup: &NodeSetup, role: Role, log: &mut NodeLog, chosen: Option<&Chosen>, before: &Watched) {
    let place = place(&setup.config, role, chosen.map_or("", |c| c.life.name.as_str()));
    let what = setup.masker.text(&place.words()).into_owned();
    if let Some(chosen) = chosen {
        let same = log.container.as_ref().is_some_and(|life| life.name == chosen.life.name);
        if !same {
            log.follower = Follower::new(place);
            if log.container.is_some() {
                let text = match before.running {
                    0 | 1 => format!("… from here {what}"),
                    n => format!("… from here {what}, the newest of {n} that are meant"),
                };
                say(setup, log, &text).await;
            }
        }
        log.container = Some(chosen.life.clone());
    } else if let LogPlace::Command(_) = setup.config.logs.of(role) {
        if log.times > 0 {
            say(
                setup,
                log,
                "… the command is run again: lines may come twice, and count once",
            )
            .await;
        }
        log.times = log.times.saturating_add(1);
    }
    let of = chosen.map_or(1, |_| before.running.max(1));
    tell_source(setup, LogSource::Follows { what, of }).await;
}

/// Resolves when something else than this container's log is to be followed.
async fn left_own(
    chosen: Option<&Chosen>,
    mut watched: watch::Receiver<Watched>,
    mut choice: watch::Receiver<LogChoice>,
) {
    let other = |w: &Watched| matches!((&w.chosen, chosen), (Some(now), Some(was)) if now.life.name != was.life.name);
    loop {
        let ray = *choice.borrow_and_update() == LogChoice::Ray && watched.borrow().ray.is_some();
        if ray || other(&watched.borrow_and_update()) {
            return;
        }
        until_either(&mut watched, &mut choice).await;
    }
}

/// Resolves when Ray's files in this container are wanted no more.
async fn left_ray(container: &str, mut watched: watch::Receiver<Watched>, mut choice: watch::Receiver<LogChoice>) {
    loop {
        let own = *choice.borrow_and_update() == LogChoice::Own;
        if own || watched.borrow_and_update().ray.as_deref() != Some(container) {
            return;
        }
        until_either(&mut watched, &mut choice).await;
    }
}

async fn until_either(watched: &mut watch::Receiver<Watched>, choice: &mut watch::Receiver<LogChoice>) {
    let changed = tokio::select! {
        changed = watched.changed() => changed,
        changed = choice.changed() => changed,
    };
    if changed.is_err() {
        // The actor is ending and takes this along.
        std::future::pending::<()>().await;
    }
}

/// Follows until the command on the node ends, or until something else is to be followed. `ray`: what comes are pieces of Ray's files.
///
/// # Errors
/// Why the connection can carry no more.
async fn once(
    setup: &NodeSetup,
    session: &Session,
    log: &mut NodeLog,
    command: Command,
    ray: Option<()>,
    left: impl Future<Output = ()>,
) -> Result<Ended, String> {
    let (feed, node) = (&setup.feed, setup.id);
    let source = Source::Node(node);
    let run = feed.next_run();
    let started = feed.now();
    let start = CommandStart {
        run,
        node,
        purpose: Purpose::Log,
        command: command.clone(),
    };
    feed.send(source, EventKind::CommandStarted(start)).await;
    let (inlet, mut chunks) = ssh::pipe();
    let (mut leaving, mut overrun) = (false, false);
    let exit = match session.follow_last(&command, inlet).await {
        Err(exit) => {
            if let Exit::NotStarted(why) = &exit {
                not_followed(setup, log, why).await;
            }
            exit
        }
        Ok(mut following) => {
            log.refused = None;
            let mut reader = Reader::new(&setup.log, &setup.masker, log, ray.is_some());
            let mut behind = Behind::default();
            let backlog = tokio::time::sleep(BACKLOG);
            tokio::pin!(backlog);
            tokio::pin!(left);
            let mut offer = tokio::time::interval(OFFER_EVERY);
            loop {
                tokio::select! {
                    chunk = chunks.recv() => match chunk {
                        Some(chunk) if chunk.dropped > 0 && reader.comes_again() => {
                            overrun = true;
                            break;
                        }
                        Some(chunk) => reader.take(&chunk),
                        None => break,
                    },
                    _ = offer.tick() => {
                        reader.behind(behind.look(chunks.held(), feed.now().stamp));
                        reader.offer(feed, node);
                    }
                    () = &mut backlog, if reader.backlog => reader.backlog = false,
                    () = &mut left => {
                        leaving = true;
                        break;
                    }
                }
            }
            let lost = following.dropped();
            overrun |= !leaving && lost > 0 && reader.comes_again();
            let exit = if overrun {
                // What is still under way comes again.
                drop(chunks);
                following.stop().await
            } else if leaving {
                let exit = following.stop().await;
                while let Some(chunk) = chunks.try_recv() {
                    reader.take(&chunk);
                }
                exit
            } else {
                following.wait().await
            };
            if !overrun {
                reader.end(lost, !leaving && exit.ok());
                reader.behind(None);
            }
            reader.offer(feed, node);
            exit
        }
    };
    let took_ms = feed.now().stamp.0.saturating_sub(started.stamp.0);
    let done = CommandDone {
        run,
        exit: exit.clone(),
        stdout: Vec::new(),
        stderr: Vec::new(),
        took_ms,
    };
    feed.send(source, EventKind::CommandDone(done)).await;
    match exit {
        // Whether the connection is gone is seen when it is followed again.
        _ if overrun => Ok(Ended::Overrun),
        Exit::Unknown(why) => Err(why),
        Exit::Code(_) | Exit::Signal(_) | Exit::TimedOut | Exit::NotStarted(_) if leaving => Ok(Ended::Left),
        exit @ (Exit::Code(_) | Exit::Signal(_) | Exit::TimedOut | Exit::NotStarted(_)) => Ok(Ended::Itself(exit)),
    }
}

/// Since when a log's reader is behind: since the command was first held on its node, until it was not for a while.
#[derive(Default)]
struct Behind {
    since: Option<Stamp>,
    held: Stamp,
}

impl Behind {
    /// What is to be said of it now.
    fn look(&mut self, held: bool, now: Stamp) -> Option<Stamp> {
        if held {
            self.held = now;
            self.since.get_or_insert(now);
        } else if now.since(self.held) >= CAUGHT_UP {
            self.since = None;
        }
        self.since
    }
}

/// Writes a line of the console's own into the log.
pub(super) async fn say(setup: &NodeSetup, log: &mut NodeLog, text: &str) {
    let mut reader = Reader::new(&setup.log, &setup.masker, log, false);
    reader.say(text);
    reader.offer(&setup.feed, setup.id);
}

/// Writes into the log why it can't be followed, once for as long as it is so.
async fn not_followed(setup: &NodeSetup, log: &mut NodeLog, why: &str) {
    if log.refused.as_deref() == Some(why) {
        return;
    }
    log.refused = Some(why.to_owned());
    let text = format!("… the log can't be followed: {}", setup.masker.text(why));
    say(setup, log, &text).await;
}

async fn tell_source(setup: &NodeSetup, source: LogSource) {
    let kind = EventKind::LogSource(source);
    setup.feed.send(Source::Node(setup.id), kind).await;
}

/// Says in the log that a command of the user's own is over, and when it is run again.
async fn command_over(setup: &NodeSetup, role: Role, log: &mut NodeLog, exit: &Exit, pause: Duration) {
    if let LogPlace::Command(_) = setup.config.logs.of(role) {
        let again = crate::domain::time::human(pause);
        let text = format!("… the command ended ({}); it is run again in {again}", exit.word());
        say(setup, log, &text).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_stopped_containers_log_that_was_read_to_its_end_is_done_with() {
        let watched = |runs| Watched {
            seen: true,
            chosen: Some(Chosen {
                life: Life {
                    id: "c1".to_owned(),
                    name: "c".to_owned(),
                    started: Some(1),
                    exit: None,
                },
                runs,
            }),
            ..Watched::default()
        };
        assert!(told_all(&watched(false), &Exit::Code(0)));
        for exit in [
            Exit::Code(1),
            Exit::TimedOut,
            Exit::Signal("TERM".into()),
            Exit::NotStarted("no channel".into()),
        ] {
            assert!(!told_all(&watched(false), &exit), "{exit:?}");
        }
        assert!(!told_all(&watched(true), &Exit::Code(0)));
    }
}
