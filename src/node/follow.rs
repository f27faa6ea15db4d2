//! The node's log: what is followed, on what it goes on, and how it ends.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;

use crate::config::types::{Config, LogPlace};
use crate::diagnose::{Matcher, Rules};
use crate::domain::command::Exit;
use crate::domain::container::{Container, ContainerFacts, ContainerState};
use crate::domain::logs::{LogChoice, LogFlow, LogSource};
use crate::domain::{NodeId, Role};
use crate::log::Ring;
use crate::probe::logs::{Follower, Place};
use crate::probe::ray_logs;
use crate::ssh::Session;

use super::log_end::{Known, Life, Told, tell_end};
use super::log_run::{Ended, once};
use super::log_source::{command_over, ray_words, say, tell_absent, tell_source, why_not};
use super::task::NodeSetup;

/// A log that its reader and the screen share; the lock is held for one push or one copy.
pub type SharedLog = Arc<Mutex<Ring>>;

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
    pub(super) refused: Option<String>,
    /// The container whose log was read last.
    pub(super) container: Option<Life>,
    /// The ends that stand in the log.
    pub(super) told: Told,
    /// Times that a command of the user's own was run.
    times: u64,
    /// How it keeps up, and what was told of that last.
    pub(super) flow: LogFlow,
    pub(super) flow_told: LogFlow,
    /// What it is read from, as was told last of this connection.
    pub(super) source: Option<LogSource>,
    /// What Docker or the shell said last in place of it, where that is the last thing that stands in it.
    pub(super) words: Option<String>,
    /// Whether the log's first line is the first that was read of what is followed now.
    pub(super) first: bool,
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
            flow_told: LogFlow::default(),
            source: None,
            words: None,
            first: true,
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
    log.source = None;
    loop {
        let Ok(target) = next(setup, &session, &mut watched, &mut choice, log).await else {
            return "the actor ended".to_owned();
        };
        let before = watched.borrow_and_update().clone();
        let began = setup.feed.now().stamp;
        let done = match &target {
            Target::Own(chosen) => {
                let source = prepare(setup, role, log, chosen.as_ref(), &before).await;
                let command = log.follower.command(setup.config.limits.command);
                let left = left_own(chosen.as_ref(), watched.clone(), choice.clone());
                once(setup, &session, log, command, source, left).await
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
                let docker = &setup.config.container.docker;
                let command = ray_logs::command(docker, container, setup.config.limits.command);
                let left = left_ray(container, watched.clone(), choice.clone());
                once(setup, &session, log, command, source, left).await
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
        let (exit, heard) = match done {
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
            Ok(Ended::Itself(exit, heard)) => (exit, heard),
        };
        // It ended on the node: the container stopped, the file is gone, the command is over.
        let over = match &target {
            Target::Own(Some(chosen)) => {
                let known = if chosen.runs && !heard.gone {
                    Known::Perhaps
                } else {
                    Known::Ended
                };
                tell_end(setup, &session, log, known).await;
                told_all(&before, &exit)
            }
            Target::Own(None) => {
                command_over(setup, role, log, &exit, pause).await;
                false
            }
            Target::Ray(_) => false,
        };
        let printed = heard.began && matches!(target, Target::Own(_)) && log.follower.printed(&exit);
        if !exit.ok() && !heard.gone && !printed {
            let (what, own) = match &target {
                Target::Own(chosen) => {
                    let name = chosen.as_ref().map_or("", |c| c.life.name.as_str());
                    (
                        place(&setup.config, role, name).words(),
                        Some(setup.config.logs.of(role)),
                    )
                }
                Target::Ray(container) => (ray_words(container), None),
            };
            let said = heard.said.or(heard.absent.and_then(|none| none.said));
            let why = why_not(own, &exit);
            tell_absent(setup, log, &what, &why, said).await;
        }
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
            tell_source(setup, log, LogSource::Nothing { wanted }).await;
        }
        tokio::select! {
            changed = watched.changed() => changed?,
            changed = choice.changed() => changed?,
        }
    }
}

/// Makes the follower that of the chosen container, and says in the log where another one's begins. Gives what is to be followed.
async fn prepare(
    setup: &NodeSetup,
    role: Role,
    log: &mut NodeLog,
    chosen: Option<&Chosen>,
    before: &Watched,
) -> LogSource {
    let place = place(&setup.config, role, chosen.map_or("", |c| c.life.name.as_str()));
    let what = setup.masker.text(&place.words()).into_owned();
    if let Some(chosen) = chosen {
        let same = log.container.as_ref().is_some_and(|life| life.name == chosen.life.name);
        if !same {
            log.follower = Follower::new(place);
            log.first = log.container.is_none();
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
        // One that could not be run printed nothing that would come twice.
        let ran = !matches!(log.source, Some(LogSource::Absent { .. }));
        if log.times > 0 && ran {
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
    LogSource::Follows { what, of }
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
