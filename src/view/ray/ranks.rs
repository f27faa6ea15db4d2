//! The ranks of a server that uses no Ray.

use std::time::Duration;

use crate::model::ray::members::silent;
use crate::model::ray::ranks::{Rank, Ranks};
use crate::view::Scene;
use crate::view::node::container;
use crate::view::standing::Mark;
use crate::view::widgets::row::Row;
use crate::view::words::things;

use super::{Line, not_answering, note};

pub(super) fn title(scene: &Scene<'_>, found: &Ranks<'_>, row: &mut Row<'_>) {
    let look = scene.look;
    let up = found.ranks.iter().filter(|r| r.runs()).count();
    let style = if up == found.ranks.len() {
        look.good()
    } else {
        look.warn()
    };
    row.put(1, "not used", look.dim());
    row.put(1, format!("{up}/{} running", things(found.ranks.len(), "rank")), style);
}

pub(super) fn rows<'a>(scene: &Scene<'a>, found: &Ranks<'a>) -> Vec<Line<'a>> {
    let mut rows = vec![(true, note(found.why.clone(), scene.look.dim()))];
    rows.extend(found.ranks.iter().map(|rank| one(scene, rank)));
    rows
}

fn one<'a>(scene: &Scene<'a>, rank: &Rank<'a>) -> Line<'a> {
    let look = scene.look;
    let mut row = Row::new();
    let silent = silent(scene.state, rank.id);
    let mark = match (silent, rank.runs()) {
        (Some(_), _) => Mark::Unknown,
        (None, true) => Mark::Yes,
        (None, false) => Mark::Bad,
    };
    let name = scene.state.config.node_name(rank.id);
    row.put(
        0,
        format!("{} {name}  {}", mark.glyph(), rank.words()),
        mark.style(look),
    );
    if let Some(silent) = silent {
        row.put(0, not_answering(scene, silent), look.bad());
    }
    match rank.container {
        Some(c) => row.put(2, c.name.as_str(), look.text()),
        None => row.put(1, "no container seen", look.warn()),
    };
    if let Some(up) = rank.up_seconds.filter(|_| rank.runs()) {
        let age = container::age(scene, rank.id);
        let text = container::runs(Some(Duration::from_secs(up)), age, container::RAN);
        row.put(1, text, age.tone(look, look.text()));
    } else if rank.container.is_some() {
        row.put(1, "does not run", look.bad());
    }
    match rank.processes {
        Some(n) => row.put(3, format!("{} on a GPU", things(n, "process")), look.dim()),
        None => row.put(4, "its processes are not known", look.dim()),
    };
    (mark == Mark::Yes, row)
}
