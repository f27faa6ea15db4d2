//! The list of commands that ran.

use crate::domain::NodeId;
use crate::domain::command::Exit;
use crate::domain::event::{CommandDone, CommandStart, Purpose};
use crate::domain::time::millis;

use super::state::{COMMANDS, CommandEntry, State, Watch};

/// Output lines kept of one command.
const OUTPUT: usize = 40;

/// A command starts. A probe that repeats on a node is one line with a count.
pub(super) fn started(state: &mut State, start: CommandStart) {
    let now = state.now;
    if start.purpose == Purpose::Watch
        && let Some(view) = state.nodes.get_mut(start.node.index())
    {
        view.watch = Watch::Runs(start.run);
    }
    if let Purpose::Probe(_) | Purpose::Watch | Purpose::Log = start.purpose {
        let same =
            |e: &CommandEntry| e.node == start.node && e.purpose == start.purpose && e.command.id == start.command.id;
        if let Some(entry) = state.commands.iter_mut().find(|e| same(e)) {
            entry.run = start.run;
            entry.command = start.command;
            entry.started = now;
            entry.times = entry.times.saturating_add(1);
            return;
        }
    }
    if state.commands.len() >= COMMANDS {
        // The oldest that has ended; if all still run, the oldest.
        let place = state.commands.iter().position(|e| e.ended.is_some()).unwrap_or(0);
        state.commands.remove(place);
    }
    state.commands.push_back(CommandEntry {
        run: start.run,
        node: start.node,
        purpose: start.purpose,
        command: start.command,
        started: now,
        ended: None,
        times: 1,
        output: Vec::new(),
    });
}

/// The connection to a node is gone, and with it what went on there.
pub(super) fn cut(state: &mut State, node: NodeId) {
    let now = state.now.stamp;
    for entry in state
        .commands
        .iter_mut()
        .filter(|e| e.node == node && e.ended.is_none())
    {
        match entry.purpose {
            Purpose::Watch | Purpose::Log => {
                let why = Exit::Unknown("the connection was lost".to_owned());
                entry.ended = Some((why, millis(now.since(entry.started.stamp))));
            }
            Purpose::Probe(_) | Purpose::Step | Purpose::Server => {}
        }
    }
}

/// A command ended.
pub(super) fn done(state: &mut State, done: &CommandDone) {
    let now = state.now.stamp;
    for view in state.nodes.iter_mut().filter(|v| v.watch == Watch::Runs(done.run)) {
        view.watch = Watch::Ended(now);
        view.paces.clear();
    }
    if let Some(entry) = state.commands.iter_mut().rev().find(|e| e.run == done.run) {
        entry.ended = Some((done.exit.clone(), done.took_ms));
        let skip = (done.stdout.len() + done.stderr.len()).saturating_sub(OUTPUT);
        entry.output = done.stdout.iter().chain(&done.stderr).skip(skip).cloned().collect();
    }
}
