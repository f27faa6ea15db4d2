//! Questions of the SSH actors: the waiting ends stay here, ids go into the queue.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

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
    behind: Behind,
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
            behind: Arc::default(),
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
    /// Queues a transition. It must arrive, and after those before it: where there is no room it waits beside the caller, and so does what comes behind it.
    fn queue(&self, source: Source, kind: EventKind) {
        let mut behind = self.behind.lock().unwrap_or_else(PoisonError::into_inner);
        match behind.as_mut() {
            Some(waiting) => waiting.push_back((source, kind)),
            None if self.feed.offer(source, kind.clone()) => {}
            None => {
                *behind = Some(VecDeque::from([(source, kind)]));
                tokio::spawn(follow_on(self.feed.clone(), Arc::clone(&self.behind)));
            }
        }
    }
}

/// Transitions that found no room, in their order; `None` where none waits. An actor waits for the answer to its question and for the end of its
/// connection, so that there are a few of each at most.
type Behind = Arc<Mutex<Option<VecDeque<(Source, EventKind)>>>>;

/// Sends what waits, until nothing does.
async fn follow_on(feed: Feed, behind: Behind) {
    loop {
        let next = {
            let mut behind = behind.lock().unwrap_or_else(PoisonError::into_inner);
            let next = behind.as_mut().and_then(VecDeque::pop_front);
            if next.is_none() {
                *behind = None;
            }
            next
        };
        match next {
            Some((source, kind)) => feed.send(source, kind).await,
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::NodeId;
    use crate::node::Clock;

    #[tokio::test]
    async fn transitions_keep_their_order_where_the_queue_is_full() {
        let (feed, mut events) = Feed::new(Clock::start());
        let questions = Questions::new(feed.clone());
        let source = Source::Node(NodeId(0));
        while feed.offer(source, EventKind::Tick) {}
        let since = feed.now().stamp;
        questions.link(source, LinkState::Connecting);
        questions.link(source, LinkState::Up);
        // Room for one: what comes now must not take it.
        events.recv().await.unwrap();
        questions.link(source, LinkState::Silent { since });
        questions.link(source, LinkState::Asking);
        let mut seen = Vec::new();
        while seen.len() < 4 {
            match events.recv().await.unwrap().kind {
                EventKind::Link(link) => seen.push(link),
                EventKind::Tick => {}
                other => panic!("{other:?}"),
            }
        }
        let expected = [
            LinkState::Connecting,
            LinkState::Up,
            LinkState::Silent { since },
            LinkState::Asking,
        ];
        assert_eq!(seen, expected);
        // Nothing waits any more: the next one goes the short way.
        questions.link(source, LinkState::Up);
        assert_eq!(events.recv().await.unwrap().kind, EventKind::Link(LinkState::Up));
    }
}
