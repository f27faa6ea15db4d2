//! What a person wants.

use serde::Serialize;

use super::ids::QuestionId;
use super::question::Answer;

/// An action on the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Start the head.
    Head,
    /// Join the workers.
    Workers,
    /// Serve the model.
    Serve,
    /// All of these in order.
    Up,
    /// Stop the model server only.
    StopServe,
    /// Stop everything of ours.
    StopAll,
}

/// A pane of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum Pane {
    /// A node's pane, by its place in the config.
    Node(u16),
    /// Ray's membership.
    Ray,
    /// The model server.
    Serving,
    /// The throughput test.
    Bench,
}

/// What stands over the panes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
pub enum Mode {
    /// Nothing.
    #[default]
    Panes,
    /// A plan that waits for Enter.
    Plan,
    /// A throughput test that waits for Enter.
    Test,
    /// The steps of a run.
    Run,
    /// Which stop is wanted.
    StopMenu,
    /// The commands that ran.
    Commands,
    /// The keys.
    Help,
    /// A question of an actor.
    Question,
}

/// How far to scroll.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum Scroll {
    /// Lines down; negative is up.
    Lines(i16),
    /// Pages down; negative is up.
    Pages(i16),
    /// To the first line.
    Top,
    /// To the last line, following again.
    End,
}

/// What a person wants, from a key or from a headless command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Intent {
    /// Show the plan of an action.
    Plan(Action),
    /// Ask which stop is wanted.
    StopMenu,
    /// Run the shown plan, or start the shown test.
    Confirm,
    /// Start no further step of the run that is under way.
    StopRun,
    /// Show what the throughput test would send, or cancel one that runs.
    Bench,
    /// Back: close what is open.
    Back,
    /// Focus the next pane.
    NextPane,
    /// Focus the pane before.
    PreviousPane,
    /// Focus the pane with this number, from 1.
    PaneNumber(u8),
    /// Scroll what is in front.
    Scroll(Scroll),
    /// Follow the focused log, or stop following.
    Follow,
    /// Show the other log of the focused worker: its own, or what Ray's workers on it write.
    OtherLog,
    /// Give the focused pane the whole screen, or take it back.
    Zoom,
    /// Show or hide the steps of the latest run.
    Steps,
    /// Show or hide the commands that ran.
    Commands,
    /// Show or hide the keys.
    Help,
    /// Copy what is in front: a plan as a script, the server's ssh line, a fix.
    Copy,
    /// Connect anew what is down.
    Reconnect,
    /// Answer a question.
    Answer(QuestionId, Answer),
    /// Leave; a second time: leave now.
    Quit,
}
