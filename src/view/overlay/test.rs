//! A throughput test that waits for Enter: what it sends to the server, how much, and what becomes of the result.

use ratatui::layout::Rect;
use ratatui::text::Span;

use crate::domain::time::human;
use crate::model::server_url;
use crate::view::Scene;
use crate::view::canvas::Canvas;
use crate::view::regions::Regions;
use crate::view::widgets::row::Row;
use crate::view::words;

use super::{Line, boxed, broken, text_width};

/// Width of the words before what they say.
const LABEL: usize = 10;

pub(super) fn draw(scene: &Scene<'_>, canvas: &mut Canvas<'_>, area: Rect, regions: &mut Regions) {
    let look = scene.look;
    let refusal = scene.state.test_refusal();
    let mut title = Row::new();
    title.put(0, "plan: throughput test", look.focus());
    if refusal.is_some() {
        title.put(1, "refused", look.bad());
    } else {
        title.put(2, "nothing is sent before Enter", look.text()).right();
    }
    let mut lines = Vec::new();
    let width = text_width(area);
    if let Some(why) = refusal {
        lines.extend(broken(&format!("✗ {why}"), 0, width, look.bad()));
        lines.push(Line::new());
    }
    if let Some(running) = scene.state.observed.running_requests() {
        let text =
            format!("! requests running now: {running:.0}; the test slows them down, and they change its figures");
        lines.extend(broken(&text, 0, width, look.warn()));
        lines.push(Line::new());
    }
    for (label, text) in parts(scene) {
        labelled(scene, label, &text, width, &mut lines);
    }
    boxed(scene, canvas, area, title, &lines, regions);
}

fn parts(scene: &Scene<'_>) -> Vec<(&'static str, String)> {
    let config = &scene.state.config;
    let p = &config.bench;
    let head = config.node_name(config.head());
    let all = |each: u32| words::count(u64::from(p.requests) * u64::from(each));
    vec![
        ("to", format!("{}, model {}", server_url(config), config.serve.name())),
        (
            "",
            format!("through the SSH connection to {head}; no command runs on a node"),
        ),
        (
            "first",
            "one short request: /v1/completions, or chat where the server has only that".to_owned(),
        ),
        (
            "prompt",
            format!(
                "made to {} by the server's /tokenize; without it by the usage of a few requests",
                words::things(p.prompt_tokens, "token")
            ),
        ),
        (
            "warm-up",
            format!("{}, not counted", words::things(p.warmup, "request")),
        ),
        (
            "counted",
            format!(
                "{}, {} at a time, {} each",
                words::things(p.requests, "request"),
                p.concurrency,
                words::things(p.output_tokens, "output token")
            ),
        ),
        (
            "",
            format!(
                "in all about {} prompt and {} output tokens",
                all(p.prompt_tokens),
                all(p.output_tokens)
            ),
        ),
        ("limit", format!("{} for each request", human(p.request_limit))),
        (
            "after",
            "each answer is whole, and the server's own token count is put beside the test's".to_owned(),
        ),
        ("saved", "as a JSON file, whose name the pane shows".to_owned()),
    ]
}

fn labelled(scene: &Scene<'_>, label: &str, text: &str, width: u16, lines: &mut Vec<Line>) {
    let indent = u16::try_from(LABEL).unwrap_or(0);
    let mut pieces = broken(text, indent, width, scene.look.text());
    // The label takes the place of the first piece's indent.
    if let Some(first) = pieces.first_mut().and_then(|p| p.first_mut()) {
        *first = Span::styled(format!("{label:<LABEL$}"), scene.look.label());
    }
    lines.extend(pieces);
}
