//! Plays a log into a console's state.

use std::sync::Arc;

use bringup::config::{self, EXAMPLE};
use bringup::domain::clock::Written;
use bringup::domain::container::{Container, ContainerFacts, ContainerState};
use bringup::domain::event::{Event, EventKind, Facts};
use bringup::domain::link::LinkState;
use bringup::domain::load::Stage;
use bringup::domain::serving::{Health, ServeFacts, ServeProcess, ServerFacts, TokenProof};
use bringup::domain::{NodeId, Now, Source, Stamp, Wall, When};
use bringup::engine::grammar::{self, Context};
use bringup::log::{Decoder, LineEdit, Stream};
use bringup::model::load::Load;
use bringup::model::state::ServingState;
use bringup::model::{Options, State, update};

pub const HEAD: NodeId = NodeId(0);
pub const WORKER: NodeId = NodeId(1);

/// Longest part of a line in a table, in characters.
const SHOWN: usize = 110;

/// What becomes of the server when its log ends.
pub enum Fate {
    /// It goes on.
    Stays,
    /// Its process is gone.
    Ends,
}

/// What the console says after a line.
#[derive(Debug, Clone, PartialEq)]
struct Place {
    stage: Option<Stage>,
    bar: Option<(u32, u64, u64)>,
    server: ServingState,
}

/// A state that a log is played into, a line a second.
pub struct Player {
    state: State,
    node: NodeId,
    decoder: Decoder,
    context: Context,
    lines: u64,
    places: Vec<(String, Place)>,
}

impl Player {
    /// A cluster of two nodes whose head's server starts now, and the node whose log is played.
    pub fn new(node: NodeId) -> Self {
        let config = config::parse(EXAMPLE, "config.example.toml").unwrap();
        let name = config.container.name.clone();
        let state = State::new(Arc::new(config), Options::default(), Now::default());
        let mut player = Self {
            state,
            node,
            decoder: Decoder::new(),
            context: Context::default(),
            lines: 0,
            places: Vec::new(),
        };
        for id in [HEAD, WORKER] {
            player.tell(Source::Node(id), EventKind::Link(LinkState::Up));
        }
        let container = Container {
            id: "c".repeat(64),
            name,
            image: "image".into(),
            state: ContainerState::Running,
            up_seconds: Some(60),
            restarts: 0,
            started_at: None,
            ours: None,
            labels: std::collections::BTreeMap::new(),
            pid: None,
        };
        let containers = Facts::Containers(ContainerFacts {
            containers: vec![container],
        });
        player.tell(Source::Node(HEAD), EventKind::Facts(containers));
        player.processes(1);
        player.tell(Source::Server, EventKind::Server(ServerFacts::Health(Health::Refused)));
        player
    }

    /// Takes bytes of the log.
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut edits = Vec::new();
        self.decoder.feed(Stream::Out, bytes, &mut |edit| edits.push(edit));
        edits.into_iter().for_each(|edit| self.edit(&edit));
    }

    /// The log is over.
    pub fn end(&mut self, fate: Fate) {
        let mut edits = Vec::new();
        self.decoder.finish(Stream::Out, &mut |edit| edits.push(edit));
        edits.iter().for_each(|edit| self.edit(edit));
        match fate {
            Fate::Stays => {}
            Fate::Ends => {
                self.processes(0);
                self.note("(the process is gone)".to_owned());
            }
        }
    }

    fn edit(&mut self, edit: &LineEdit) {
        let (line, ended) = match edit {
            LineEdit::Push(line) => (line, true),
            LineEdit::Live(_, Some(line)) => (line, false),
            LineEdit::Live(_, None) => return,
        };
        let text = line.plain();
        let facts = match ended {
            true => self.context.read(&text, false, None).facts,
            false => grammar::read(&text),
        };
        for fact in facts {
            self.tell(Source::Node(self.node), EventKind::Line(fact, Written::LIVE));
        }
        if !ended {
            return;
        }
        self.lines += 1;
        let (seq, dropped) = (self.lines, 0);
        self.tell(Source::Node(self.node), advanced(seq, dropped));
        self.outside(&text);
        self.note(text);
    }

    /// What the server's port answers by then, as its own log tells: it refuses until the start is complete, and a finished request is a token.
    fn outside(&mut self, text: &str) {
        let name = self.state.config.serve.name().to_owned();
        let mut answers = vec![ServerFacts::Health(Health::Refused)];
        if self.state.nodes[HEAD.index()]
            .load
            .stage
            .is_some_and(|(s, _)| s == Stage::Listening)
        {
            answers = vec![
                ServerFacts::Health(Health::Ok),
                ServerFacts::Models(Ok(vec![name.clone()])),
            ];
        }
        if text.contains("completions HTTP/1.1") && text.ends_with("200 OK") {
            answers.push(ServerFacts::Token(Ok(TokenProof {
                model: name,
                tokens: 1,
                took: std::time::Duration::from_millis(50),
            })));
        }
        for answer in answers {
            self.tell(Source::Server, EventKind::Server(answer));
        }
    }

    fn processes(&mut self, count: usize) {
        let process = ServeProcess {
            pid: 7,
            mark: None,
            command: "vllm serve".into(),
            up_seconds: Some(1),
        };
        let processes = vec![process; count];
        self.tell(
            Source::Node(HEAD),
            EventKind::Facts(Facts::Serve(ServeFacts { processes })),
        );
    }

    fn tell(&mut self, source: Source, kind: EventKind) {
        let at = Now {
            stamp: Stamp(self.lines * 1000),
            wall: Wall(self.lines * 1000),
        };
        update(&mut self.state, Event { source, at, kind });
    }

    fn note(&mut self, line: String) {
        let load = self.load();
        let place = Place {
            stage: load.stage.map(|(stage, _)| stage),
            bar: load.bar.map(|b| (b.round, b.done, b.total)),
            server: self.state.server.state.clone(),
        };
        if self.places.last().is_none_or(|(_, last)| *last != place) {
            self.places.push((line, place));
        }
    }

    /// What the played node's log has come to.
    pub fn load(&self) -> &Load {
        &self.state.nodes[self.node.index()].load
    }

    /// Where the server stands.
    pub fn server(&self) -> &ServingState {
        &self.state.server.state
    }

    /// The stages in the order in which they came.
    pub fn stages(&self) -> Vec<Stage> {
        let mut stages: Vec<Stage> = self.places.iter().filter_map(|(_, p)| p.stage).collect();
        stages.dedup();
        stages
    }

    /// The last that was told of a stage's bar.
    pub fn last_bar(&self, stage: Stage) -> Option<(u64, u64)> {
        let bars = self.places.iter().rev().filter(|(_, p)| p.stage == Some(stage));
        bars.filter_map(|(_, p)| p.bar)
            .map(|(_, done, total)| (done, total))
            .next()
    }

    /// Whether a stage, or a bar within one, was ever less than before.
    pub fn went_back(&self) -> bool {
        let progress = |p: &Place| (p.stage, p.bar.map(|(round, done, _)| (round, done)));
        let told: Vec<_> = self
            .places
            .iter()
            .filter(|(_, p)| p.stage.is_some())
            .map(|(_, p)| progress(p))
            .collect();
        told.windows(2)
            .any(|pair| pair[1].0 < pair[0].0 || (pair[1].0 == pair[0].0 && pair[1].1 < pair[0].1))
    }

    /// A line, and what the console says from it on.
    pub fn table(&self) -> String {
        let mut text = String::new();
        for (line, place) in &self.places {
            let line: String = line.trim().chars().take(SHOWN).collect();
            let stage = place.stage.map_or("-", Stage::word);
            let bar = place
                .bar
                .map_or(String::new(), |(_, done, total)| format!(" {done}/{total}"));
            text.push_str(&format!("{line}\n    {stage}{bar}, server {}\n", place.server.word()));
        }
        text
    }
}

fn advanced(seq: u64, dropped: u64) -> EventKind {
    EventKind::LogAdvanced {
        seq,
        dropped,
        newest: Some(Written::LIVE),
        spoke: Some(Written::LIVE),
    }
}

/// A log that ends in the middle of a line.
pub fn cut(bytes: &[u8]) {
    let mut decoder = Decoder::new();
    let mut load = Load::default();
    let mut take = |edit: LineEdit| {
        let (LineEdit::Push(line) | LineEdit::Live(_, Some(line))) = edit else {
            return;
        };
        for fact in grammar::read(&line.plain()) {
            load.line(fact, When::at(Stamp(1)));
        }
    };
    decoder.feed(Stream::Out, bytes, &mut take);
    decoder.finish(Stream::Out, &mut take);
}
