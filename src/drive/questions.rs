//! Questions of the SSH actors: the waiting ends stay here, ids go into the queue.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tokio::sync::oneshot;

use crate::domain::event::EventKind;
use crate::domain::link::LinkState;
use crate::domain::question::{Answer, Ask, Question};
use crate::domain::{QuestionId, Source, Stamp};
use crate::node::Feed;
use crate::ssh::{Reply, Reporter};

/// The waiting ends of open questions.
pub(super) struct Questions {
    feed: Feed,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    next: u64,
    waiting: BTreeMap<QuestionId, oneshot::Sender<Reply>>,
}

impl Questions {
    pub(super) fn new(feed: Feed) -> Self {
        Self {
            feed,
            open: Mutex::default(),
        }
    }

    /// Hands a reply to the waiting end. A question that is gone is no error: its actor gave up.
    pub(super) fn reply(&self, id: QuestionId, reply: Reply) {
        let waiting = self
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .waiting
            .remove(&id);
        if let Some(waiting) = waiting {
            let _gone = waiting.send(reply);
        }
    }

    /// Hands on an answer of the queue. A secret one was handed over before it was queued.
    pub(super) fn answer(&self, id: QuestionId, answer: Answer) {
        match answer {
            Answer::Yes => self.reply(id, Reply::Yes),
            Answer::No => self.reply(id, Reply::No),
            Answer::Given => {}
        }
    }
}

impl Reporter for Questions {
    fn link(&self, source: Source, state: LinkState) {
        self.queue(source, EventKind::Link(state));
    }

    fn now(&self) -> Stamp {
        self.feed.now().stamp
    }

    fn ask(&self, source: Source, ask: Ask) -> oneshot::Receiver<Reply> {
        let (waiting, answer) = oneshot::channel();
        let id = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            let id = QuestionId(open.next);
            open.next += 1;
            open.waiting.insert(id, waiting);
            id
        };
        self.queue(source, EventKind::Question(Question { id, from: source, ask }));
        answer
    }
}

impl Questions {
    /// Queues a transition: it must arrive, so it waits for room beside the caller when there is none.
    fn queue(&self, source: Source, kind: EventKind) {
        if !self.feed.offer(source, kind.clone()) {
            let feed = self.feed.clone();
            tokio::spawn(async move { feed.send(source, kind).await });
        }
    }
}
