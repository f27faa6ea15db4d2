//! The table of bindings.

use crate::domain::intent::{Action, Intent, Mode, Scroll};
use crate::domain::question::Answer;

use super::chord::{Chord, Key};

/// One line of the help: chords that belong together and what each means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// The keys as the help and the last line show them.
    pub keys: &'static str,
    /// A word for the last line; empty where the line has no room for it.
    pub hint: &'static str,
    /// What it does, for the help.
    pub help: &'static str,
    /// Where the help lists it.
    pub group: Group,
    /// Where it counts.
    pub modes: &'static [Mode],
    /// Each chord and what it means.
    pub chords: &'static [(Chord, Press)],
}

/// What pressing a chord means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Press {
    /// An intent.
    Intent(Intent),
    /// An answer to the question in front.
    Answer(Answer),
}

/// Groups of the help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Act on the cluster.
    Cluster,
    /// A plan that waits.
    Plan,
    /// Which stop.
    Stop,
    /// A question.
    Question,
    /// Look around.
    View,
}

impl Group {
    /// All groups, in the help's order.
    pub const ALL: [Self; 5] = [Self::Cluster, Self::Plan, Self::Stop, Self::View, Self::Question];

    /// Its title in the help.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Cluster => "Act on the cluster: each shows its plan first",
            Self::Plan => "A plan",
            Self::Stop => "Stop",
            Self::Question => "A host key that is not known",
            Self::View => "Look around",
        }
    }
}

/// Where nothing hides the panes, or only the steps of a run do.
const ACT: &[Mode] = &[Mode::Panes, Mode::Run];
/// Where text can be longer than its place.
const SCROLL: &[Mode] = &[
    Mode::Panes,
    Mode::Plan,
    Mode::Test,
    Mode::StopMenu,
    Mode::Run,
    Mode::Commands,
    Mode::Help,
];
/// Where one may look at something else and lose nothing.
const LOOK: &[Mode] = &[Mode::Panes, Mode::Run, Mode::Commands, Mode::Help];
/// What stands over the panes and can be closed.
const OVER: &[Mode] = &[
    Mode::Plan,
    Mode::Test,
    Mode::Run,
    Mode::StopMenu,
    Mode::Commands,
    Mode::Help,
    Mode::Question,
];
/// Where a letter is not an answer.
const LETTERS: &[Mode] = &[
    Mode::Panes,
    Mode::Plan,
    Mode::Test,
    Mode::Run,
    Mode::StopMenu,
    Mode::Commands,
    Mode::Help,
];
/// Everywhere.
const ALL: &[Mode] = &[
    Mode::Panes,
    Mode::Plan,
    Mode::Test,
    Mode::Run,
    Mode::StopMenu,
    Mode::Commands,
    Mode::Help,
    Mode::Question,
];

const fn press(c: char, intent: Intent) -> (Chord, Press) {
    (Chord::char(c), Press::Intent(intent))
}

const fn key(key: Key, intent: Intent) -> (Chord, Press) {
    (Chord::key(key), Press::Intent(intent))
}

const fn scroll(by: Scroll) -> Intent {
    Intent::Scroll(by)
}

/// Every binding.
pub const BINDINGS: &[Binding] = &[
    Binding {
        keys: "H",
        hint: "head",
        help: "start the head",
        group: Group::Cluster,
        modes: ACT,
        chords: &[press('H', Intent::Plan(Action::Head))],
    },
    Binding {
        keys: "W",
        hint: "workers",
        help: "join the workers",
        group: Group::Cluster,
        modes: ACT,
        chords: &[press('W', Intent::Plan(Action::Workers))],
    },
    Binding {
        keys: "S",
        hint: "serve",
        help: "serve the model",
        group: Group::Cluster,
        modes: ACT,
        chords: &[press('S', Intent::Plan(Action::Serve))],
    },
    Binding {
        keys: "T",
        hint: "test",
        help: "run the throughput test, or cancel the one that runs",
        group: Group::Cluster,
        modes: ACT,
        chords: &[press('T', Intent::Bench)],
    },
    Binding {
        keys: "U",
        hint: "all",
        help: "all of it in order: head, workers, serve",
        group: Group::Cluster,
        modes: ACT,
        chords: &[press('U', Intent::Plan(Action::Up))],
    },
    Binding {
        keys: "X",
        hint: "stop",
        help: "stop: asks whether the model server only, or everything of bringup's",
        group: Group::Cluster,
        modes: ACT,
        chords: &[press('X', Intent::StopMenu)],
    },
    Binding {
        keys: "Enter",
        hint: "run",
        help: "run what is shown: a plan, or the throughput test",
        group: Group::Plan,
        modes: &[Mode::Plan, Mode::Test],
        chords: &[key(Key::Enter, Intent::Confirm)],
    },
    Binding {
        keys: "s",
        hint: "the server",
        help: "stop the model server only",
        group: Group::Stop,
        modes: &[Mode::StopMenu],
        chords: &[press('s', Intent::Plan(Action::StopServe))],
    },
    Binding {
        keys: "a",
        hint: "all",
        help: "stop everything that bringup started",
        group: Group::Stop,
        modes: &[Mode::StopMenu],
        chords: &[press('a', Intent::Plan(Action::StopAll))],
    },
    Binding {
        keys: "r",
        hint: "the run",
        help: "start no further step of the run that is under way",
        group: Group::Stop,
        modes: &[Mode::StopMenu],
        chords: &[press('r', Intent::StopRun)],
    },
    Binding {
        keys: "y",
        hint: "trust",
        help: "trust the key and write it to known_hosts",
        group: Group::Question,
        modes: &[Mode::Question],
        chords: &[(Chord::char('y'), Press::Answer(Answer::Yes))],
    },
    Binding {
        keys: "n",
        hint: "refuse",
        help: "refuse the key",
        group: Group::Question,
        modes: &[Mode::Question],
        chords: &[(Chord::char('n'), Press::Answer(Answer::No))],
    },
    Binding {
        keys: "Tab",
        hint: "pane",
        help: "next pane; Shift-Tab the one before",
        group: Group::View,
        modes: &[Mode::Panes],
        chords: &[key(Key::Tab, Intent::NextPane), key(Key::BackTab, Intent::PreviousPane)],
    },
    Binding {
        keys: "1..9",
        hint: "",
        help: "the pane with this number",
        group: Group::View,
        modes: &[Mode::Panes],
        chords: &[
            press('1', Intent::PaneNumber(1)),
            press('2', Intent::PaneNumber(2)),
            press('3', Intent::PaneNumber(3)),
            press('4', Intent::PaneNumber(4)),
            press('5', Intent::PaneNumber(5)),
            press('6', Intent::PaneNumber(6)),
            press('7', Intent::PaneNumber(7)),
            press('8', Intent::PaneNumber(8)),
            press('9', Intent::PaneNumber(9)),
        ],
    },
    Binding {
        keys: "j k",
        hint: "",
        help: "a line down, up; the arrows too",
        group: Group::View,
        modes: SCROLL,
        chords: &[
            press('j', scroll(Scroll::Lines(1))),
            press('k', scroll(Scroll::Lines(-1))),
            key(Key::Down, scroll(Scroll::Lines(1))),
            key(Key::Up, scroll(Scroll::Lines(-1))),
        ],
    },
    Binding {
        keys: "PgDn PgUp",
        hint: "",
        help: "a page down, up",
        group: Group::View,
        modes: SCROLL,
        chords: &[
            key(Key::PageDown, scroll(Scroll::Pages(1))),
            key(Key::PageUp, scroll(Scroll::Pages(-1))),
        ],
    },
    Binding {
        keys: "g G",
        hint: "",
        help: "the first, the last line; Home and End too",
        group: Group::View,
        modes: SCROLL,
        chords: &[
            press('g', scroll(Scroll::Top)),
            press('G', scroll(Scroll::End)),
            key(Key::Home, scroll(Scroll::Top)),
            key(Key::End, scroll(Scroll::End)),
        ],
    },
    Binding {
        keys: "f",
        hint: "follow",
        help: "follow the log of the focused pane, or stop following",
        group: Group::View,
        modes: &[Mode::Panes],
        chords: &[press('f', Intent::Follow)],
    },
    Binding {
        keys: "l",
        hint: "",
        help: "the other log of the focused worker: its own, or what Ray's workers on it write",
        group: Group::View,
        modes: &[Mode::Panes],
        chords: &[press('l', Intent::OtherLog)],
    },
    Binding {
        keys: "z",
        hint: "zoom",
        help: "give the focused pane the whole screen, or take it back",
        group: Group::View,
        modes: &[Mode::Panes],
        chords: &[press('z', Intent::Zoom)],
    },
    Binding {
        keys: "r",
        hint: "run",
        help: "the steps of the latest run",
        group: Group::View,
        modes: LOOK,
        chords: &[press('r', Intent::Steps)],
    },
    Binding {
        keys: "c",
        hint: "commands",
        help: "the commands that ran on the nodes",
        group: Group::View,
        modes: LOOK,
        chords: &[press('c', Intent::Commands)],
    },
    Binding {
        keys: "y",
        hint: "copy",
        help: "copy what is in front: a plan as a script, a fix, the ssh line to the server",
        group: Group::View,
        modes: &[Mode::Panes, Mode::Plan, Mode::Run],
        chords: &[press('y', Intent::Copy)],
    },
    Binding {
        keys: "n",
        hint: "",
        help: "connect anew what is down; a question that was dismissed is asked again",
        group: Group::View,
        modes: LOOK,
        chords: &[press('n', Intent::Reconnect)],
    },
    Binding {
        keys: "?",
        hint: "help",
        help: "these keys",
        group: Group::View,
        modes: LOOK,
        chords: &[press('?', Intent::Help)],
    },
    Binding {
        keys: "Esc",
        hint: "back",
        help: "back: close what is open; a question is answered with no",
        group: Group::View,
        modes: OVER,
        chords: &[key(Key::Esc, Intent::Back)],
    },
    Binding {
        keys: "Esc",
        hint: "",
        help: "leave the zoom",
        group: Group::View,
        modes: &[Mode::Panes],
        chords: &[key(Key::Esc, Intent::Back)],
    },
    Binding {
        keys: "q",
        hint: "quit",
        help: "quit; the cluster goes on. A command in flight is waited for; once more leaves at once",
        group: Group::View,
        modes: LETTERS,
        chords: &[press('q', Intent::Quit)],
    },
    Binding {
        keys: "Ctrl-C",
        hint: "",
        help: "quit, from anywhere",
        group: Group::View,
        modes: ALL,
        chords: &[(Chord::ctrl('c'), Press::Intent(Intent::Quit))],
    },
];
