//! Why a step failed: the cause and what to do about it first, then what that rests on. Nothing is said twice.

use ratatui::style::Style;

use crate::domain::step::Failure;
use crate::plan::Step;
use crate::view::Scene;
use crate::view::cause;

use super::super::{Line, broken};
use super::{Details, INDENT, short};

pub(super) fn details(scene: &Scene<'_>, step: &Step, failure: &Failure, width: u16) -> Details {
    let look = scene.look;
    let known = scene.state.step_cause(step.id);
    let mut said = Said::default();
    let mut first = Vec::new();
    if let Some(known) = &known {
        let headline = cause::headline(scene.state, known, scene.now);
        first.extend(broken(&format!("cause    {headline}"), INDENT, width, look.bad()));
        said.add(&headline);
        if let Some(note) = &known.note {
            first.extend(broken(&format!("         {note}"), INDENT, width, look.warn()));
        }
    } else {
        // Without a known cause, what was seen is the nearest to one.
        first.extend(short(&failure.what, INDENT, width, look.bad()));
        first.extend(said.named("seen", &failure.seen, width, look.text()));
        said.add(&failure.what);
    }
    let fix = known.as_ref().and_then(|c| c.fix.as_ref()).or(failure.fix.as_ref());
    for text in fix.into_iter().flat_map(|f| f.lines()) {
        first.extend(broken(&format!("fix: {text}"), INDENT, width, look.good()));
    }
    if let Some(text) = known.as_ref().and_then(|c| cause::command(scene.state, c)) {
        first.extend(broken(&text, INDENT, width, look.good()));
    }
    let mut rest = Vec::new();
    if let Some(known) = &known {
        if said.add(&failure.what) {
            rest.extend(short(&failure.what, INDENT, width, look.bad()));
        }
        rest.extend(said.named("seen", &failure.seen, width, look.text()));
        for text in cause::evidence(scene.state, known) {
            // The node's name stands before the line.
            let line = text.split_once(": ").map_or(text.as_str(), |(_, line)| line);
            if said.add(line) {
                rest.extend(short(&format!("| {text}"), INDENT, width, look.text()));
            }
        }
        if let Some(text) = cause::echoes(known) {
            rest.extend(short(&text, INDENT, width, look.dim()));
        }
    }
    rest.extend(said.named("expected", &failure.expected, width, look.text()));
    for text in &failure.lines {
        if said.add(text) {
            rest.extend(short(&format!("| {text}"), INDENT, width, look.text()));
        }
    }
    Details { first, rest }
}

/// What has been said of a failure.
#[derive(Default)]
struct Said(Vec<String>);

impl Said {
    /// Whether a text is news; from here on it is said.
    fn add(&mut self, text: &str) -> bool {
        let text = text.trim();
        let news = !text.is_empty() && !self.0.iter().any(|said| said.contains(text));
        if news {
            self.0.push(text.to_owned());
        }
        news
    }

    /// A text under its name; nothing where it has been said.
    fn named(&mut self, name: &str, text: &str, width: u16, style: Style) -> Vec<Line> {
        if self.add(text) {
            short(&format!("{name:<9}{text}"), INDENT, width, style)
        } else {
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Said;

    #[test]
    fn what_has_been_said_is_no_news() {
        let mut said = Said::default();
        let news: Vec<bool> = [
            "exit code 125: docker: no such image",
            "docker: no such image",
            " ",
            "pull it",
            "pull it ",
        ]
        .map(|text| said.add(text))
        .to_vec();
        assert_eq!(news, [true, false, false, true, false]);
    }
}
