//! The stream of Ray's membership: a followed command for as long as somebody asks for it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use crate::domain::Source;
use crate::domain::command::{Exit, Output};
use crate::domain::count::things;
use crate::domain::event::{CommandDone, CommandStart, EventKind, Facts, ProbeId, Purpose};
use crate::probe::ray::{self, Reader};
use crate::ssh::{self, Session};

use super::ask;
use super::hide;
use super::jobs::Job;

/// The stream ends when nobody has asked for it for so long: three times the pace at which it is asked for.
const LEASE: Duration = Duration::from_secs(30);

/// Bytes kept of what the program says on stderr: why it ends stands at its end.
const SAID: usize = 8192;

/// Follows Ray until the program ends, the connection is gone, or nobody asks any more.
pub(super) async fn follow(job: &Job, session: &Session, asked: &Arc<Notify>) {
    let (feed, source) = (&job.feed, Source::Node(job.id));
    let command = ask::command(ProbeId::Ray, &job.config, job.id);
    let run = feed.next_run();
    let began = feed.now();
    let start = CommandStart {
        run,
        node: job.id,
        purpose: Purpose::Probe(ProbeId::Ray),
        command: command.clone(),
    };
    feed.send(source, EventKind::CommandStarted(start)).await;
    let (inlet, mut chunks) = ssh::pipe();
    let (mut said, mut records): (Vec<u8>, u64) = (Vec::new(), 0);
    let mut unwanted = false;
    let exit = match session.follow_last(&command, inlet).await {
        Err(exit) => exit,
        Ok(mut following) => {
            let mut reader = Reader::default();
            loop {
                // Who asks is heard between two records as well.
                let lease = tokio::time::timeout(LEASE, asked.notified());
                tokio::pin!(lease);
                let asked_again = loop {
                    tokio::select! {
                        asked = &mut lease => break Some(asked.is_ok()),
                        chunk = chunks.recv() => match chunk {
                            None => break None,
                            Some(chunk) if chunk.stream == ssh::Stream::Err => keep(&mut said, &chunk.bytes),
                            Some(chunk) => {
                                if chunk.dropped > 0 {
                                    reader.lost();
                                }
                                for found in reader.feed(&chunk.bytes) {
                                    records += 1;
                                    feed.send(source, EventKind::Facts(Facts::Ray(found))).await;
                                }
                            }
                        },
                    }
                };
                match asked_again {
                    Some(true) => {}
                    Some(false) => {
                        unwanted = true;
                        break following.stop().await;
                    }
                    None => break following.wait().await,
                }
            }
        }
    };
    let took = Duration::from_millis(feed.now().stamp.0.saturating_sub(began.stamp.0));
    let output = Output {
        stdout: Vec::new(),
        stderr: said,
        dropped: 0,
        exit,
        took,
    };
    let done = CommandDone {
        run,
        exit: output.exit.clone(),
        stdout: vec![things(records, "record")],
        stderr: super::exec::told(&output.error_text(), &job.masker),
        took_ms: crate::domain::time::millis(took),
    };
    feed.send(source, EventKind::CommandDone(done)).await;
    // One that has told what it was asked for and ended well is only begun again.
    if unwanted || (records > 0 && output.exit.ok()) {
        return;
    }
    for event in why(&output) {
        let event = match event {
            EventKind::Facts(facts) => EventKind::Facts(hide::facts(&job.masker, facts)),
            EventKind::ProbeFailed { probe, why } => EventKind::ProbeFailed {
                probe,
                why: job.masker.text(&why).into_owned(),
            },
            other => other,
        };
        feed.send(source, event).await;
    }
}

/// Why there are no more records: that there is no Ray to be asked, or that it could not be asked.
fn why(output: &Output) -> Vec<EventKind> {
    let probe = ProbeId::Ray;
    let failed = |why: &str| {
        let why = why.to_owned();
        vec![EventKind::ProbeFailed { probe, why }]
    };
    match &output.exit {
        Exit::NotStarted(why) | Exit::Unknown(why) => return failed(why),
        Exit::TimedOut => return failed("the node did not answer in time"),
        Exit::Code(_) | Exit::Signal(_) => {}
    }
    let (facts, problems) = ray::parse(output);
    match problems.first() {
        Some(problem) => failed(&problem.text),
        None => facts.into_iter().map(EventKind::Facts).collect(),
    }
}

/// Keeps the end of what was said.
fn keep(said: &mut Vec<u8>, bytes: &[u8]) {
    said.extend_from_slice(bytes);
    let excess = said.len().saturating_sub(SAID);
    said.drain(..excess);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(code: u32, stderr: &str) -> Output {
        Output {
            stdout: Vec::new(),
            stderr: stderr.as_bytes().to_vec(),
            dropped: 0,
            exit: Exit::Code(code),
            took: Duration::ZERO,
        }
    }

    #[test]
    fn a_ray_that_is_not_there_is_another_thing_than_one_that_could_not_be_asked() {
        let absent = why(&ended(1, "nothing listens at 127.0.0.1:6379\n"));
        assert!(
            matches!(absent.as_slice(), [EventKind::Facts(Facts::Absent { .. })]),
            "{absent:?}"
        );
        let failed = why(&ended(1, "ModuleNotFoundError: No module named 'ray'\n"));
        let text = "Ray is not in the container".to_owned();
        assert_eq!(
            failed,
            [EventKind::ProbeFailed {
                probe: ProbeId::Ray,
                why: text
            }]
        );
    }
}
