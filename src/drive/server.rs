//! Questions to the model server and to Ray's dashboard, one of a kind at a time.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch;

use crate::api::{ByteStream, Client, Connect, ConnectError};
use crate::domain::command::{Command, Exit};
use crate::domain::count::things;
use crate::domain::event::{CommandDone, CommandStart, EventKind, Purpose};
use crate::domain::serving::{ServerFacts, ServerProbe};
use crate::domain::{NodeId, Source};
use crate::node::Feed;
use crate::ssh::{Session, TunnelError};

/// Opens streams on the head, over whatever connection it has at the moment.
pub(super) struct OverHead {
    session: watch::Receiver<Option<Session>>,
}

impl OverHead {
    pub(super) fn new(session: watch::Receiver<Option<Session>>) -> Self {
        Self { session }
    }
}

impl Connect for OverHead {
    fn open<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, Result<Box<dyn ByteStream>, ConnectError>> {
        let session = self.session.borrow().clone();
        Box::pin(async move {
            let gone = || ConnectError::Unreachable("there is no connection to the head".to_owned());
            match session.ok_or_else(gone)?.tunnel(host, port).await {
                Ok(stream) => Ok(Box::new(stream) as Box<dyn ByteStream>),
                Err(TunnelError::Refused(_)) => Err(ConnectError::Refused),
                Err(other) => Err(ConnectError::Unreachable(other.to_string())),
            }
        })
    }
}

/// Asks the server.
pub(super) struct ServerAsker {
    client: Client,
    feed: Feed,
    head: NodeId,
    model: String,
    port: u16,
    under_way: Arc<Mutex<HashSet<ServerProbe>>>,
}

impl ServerAsker {
    pub(super) fn new(client: Client, feed: Feed, head: NodeId, model: String, port: u16) -> Self {
        Self {
            client,
            feed,
            head,
            model,
            port,
            under_way: Arc::default(),
        }
    }

    /// Asks once; a question of this kind that is under way makes it a no-op.
    pub(super) fn ask(&self, probe: ServerProbe) {
        let fresh = self
            .under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(probe);
        if !fresh {
            return;
        }
        let (client, feed, under_way) = (self.client.clone(), self.feed.clone(), self.under_way.clone());
        let (head, model) = (self.head, self.model.clone());
        let shown = token_line(self.port, &model);
        tokio::spawn(async move {
            let asked = feed.now();
            let costs = probe == ServerProbe::Token;
            let run = feed.next_run();
            if costs {
                let start = CommandStart {
                    run,
                    node: head,
                    purpose: Purpose::Server,
                    command: shown,
                };
                feed.send(Source::Node(head), EventKind::CommandStarted(start)).await;
            }
            let facts = client.ask(probe, &model).await;
            if costs {
                let (exit, said) = match &facts {
                    ServerFacts::Token(Err(why)) => (Exit::Code(1), why.why().to_owned()),
                    ServerFacts::Token(Ok(proof)) => (
                        Exit::Code(0),
                        format!("{} from {}", things(proof.tokens, "token"), proof.model),
                    ),
                    ServerFacts::Health(_) | ServerFacts::Models(_) | ServerFacts::Metrics(_) | ServerFacts::Ray(_) => {
                        (Exit::Code(0), String::new())
                    }
                };
                let took_ms = feed.now().stamp.0.saturating_sub(asked.stamp.0);
                let done = CommandDone {
                    run,
                    exit,
                    stdout: vec![said],
                    stderr: Vec::new(),
                    took_ms,
                };
                feed.send(Source::Node(head), EventKind::CommandDone(done)).await;
            }
            under_way.lock().unwrap_or_else(PoisonError::into_inner).remove(&probe);
            feed.send_at(Source::Server, asked, EventKind::Server(facts)).await;
        });
    }
}

/// What asking for one token comes to, as a line that a person could type on the head.
fn token_line(port: u16, model: &str) -> Command {
    let body = format!("{{\"model\":\"{model}\",\"prompt\":\"…\",\"max_tokens\":1}}");
    Command::argv(
        [
            "curl".to_owned(),
            "-s".to_owned(),
            format!("http://127.0.0.1:{port}/v1/completions"),
            "-d".to_owned(),
            body,
        ],
        Duration::from_secs(60),
    )
}
