//! The rules as data: who may import whom, which library belongs where, what a pure room may not touch.

/// A room and what it may import.
pub struct Room {
    pub name: &'static str,
    /// Takes text or values and gives values: no IO, no clock, no spawn, no environment, no panic.
    pub pure: bool,
    pub imports: &'static [&'static str],
}

const fn pure(name: &'static str, imports: &'static [&'static str]) -> Room {
    Room {
        name,
        pure: true,
        imports,
    }
}

const fn shell(name: &'static str, imports: &'static [&'static str]) -> Room {
    Room {
        name,
        pure: false,
        imports,
    }
}

/// The import table. A room that is not there yet is no error.
pub const ROOMS: &[Room] = &[
    pure("domain", &[]),
    pure("log", &["domain"]),
    pure("config", &["domain"]),
    pure("measure", &["domain"]),
    pure("probe", &["domain", "log"]),
    // Whether a line of a log fails, and what to do about a command that failed, are rules: the grammar and the planner ask for them.
    pure("diagnose", &["domain", "log", "config"]),
    pure("engine", &["domain", "log", "config", "probe", "diagnose"]),
    pure("plan", &["domain", "config", "probe", "engine", "diagnose"]),
    pure("input", &["domain", "config"]),
    pure(
        "model",
        &["domain", "log", "config", "engine", "diagnose", "plan", "measure"],
    ),
    pure("report", &["domain", "config", "diagnose", "plan", "model", "measure"]),
    pure(
        "view",
        &[
            "domain", "log", "config", "diagnose", "model", "plan", "measure", "input",
        ],
    ),
    shell("ssh", &["domain"]),
    shell("record", &["domain", "log", "config", "measure"]),
    // Private folders are files of the program: one room makes them, and tidies up after those that were killed.
    shell("api", &["domain", "ssh", "probe", "engine", "record"]),
    // A line is matched where it is read: a log may bring far more of them than the queue could.
    shell(
        "node",
        &["domain", "log", "config", "probe", "diagnose", "engine", "plan", "ssh"],
    ),
    shell("bench", &["domain", "config", "measure", "api"]),
    shell("sim", &["domain", "probe", "engine", "record"]),
    // Who starts a console gives it the rules, the user's own among them; they go to the core's evidence and to the reader of each node.
    shell(
        "drive",
        &[
            "domain", "log", "config", "probe", "engine", "diagnose", "plan", "model", "measure", "report", "ssh",
            "api", "node", "bench", "record",
        ],
    ),
    shell("app", &["domain", "log", "config", "model", "input", "view", "drive"]),
    shell(
        "cli",
        &[
            "domain", "log", "config", "probe", "engine", "diagnose", "plan", "model", "measure", "report", "input",
            "view", "ssh", "api", "node", "bench", "record", "sim", "drive", "app",
        ],
    ),
    // The two files at the top: main hands its arguments to cli, lib names the rooms.
    shell("main", &["cli"]),
    shell("lib", &[]),
];

/// The room of this name.
pub fn room(name: &str) -> Option<&'static Room> {
    ROOMS.iter().find(|r| r.name == name)
}

/// Libraries and the only rooms that may use them.
pub const FENCES: &[(&str, &[&str])] = &[
    ("russh", &["ssh", "sim"]),
    ("reqwest", &["api"]),
    ("crossterm", &["app"]),
    ("ratatui", &["view", "app"]),
    ("color_eyre", &["app", "cli", "main"]),
];

/// Crates that touch the world: shells only.
pub const WORLD_CRATES: &[&str] = &[
    "tokio",
    "tokio_util",
    "hyper",
    "hyper_util",
    "http_body_util",
    "tempfile",
    "signal_hook",
    "tracing_appender",
    "tracing_subscriber",
    "etcetera",
];

/// What of the standard library a pure room may not touch.
pub const WORLD: &[&str] = &[
    "std::time::Instant",
    "std::time::SystemTime",
    "std::fs",
    "std::env",
    "std::thread",
    "std::process",
    "std::os",
    "std::io::stdin",
    "std::io::stdout",
    "std::io::stderr",
    "std::net::TcpStream",
    "std::net::TcpListener",
    "std::net::UdpSocket",
    "std::net::ToSocketAddrs",
];

/// Most production lines of a file.
pub const MAX_LINES: usize = 600;

/// Longer files, by name, with the reason.
pub const LONG_FILES: &[(&str, &str)] = &[];
