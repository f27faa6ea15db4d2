//! What holds for any bytes.

use bringup::domain::command::Exit;
use bringup::domain::event::{Facts, ProbeId, Subject};
use bringup::domain::gpu::{Gpu, GpuProcess};
use bringup::log::{Decoder, Line, LineEdit, Masker, Stream};
use bringup::probe::{self, dashboard, prometheus, ray_status};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::cases::{PROBES, cases, output};

/// Everything a stream comes to when its bytes come in these pieces: the lines, and the last live line.
fn decode<'b>(pieces: impl IntoIterator<Item = &'b [u8]>) -> (Vec<Line>, Option<Line>) {
    let mut decoder = Decoder::new();
    let (mut lines, mut live) = (Vec::new(), None);
    let mut take = |edit: LineEdit| match edit {
        LineEdit::Push(line) => {
            lines.push(line);
            live = None;
        }
        LineEdit::Live(_, line) => live = line,
    };
    for piece in pieces {
        decoder.feed(Stream::Out, piece, &mut take);
    }
    (lines, live)
}

/// Splits `bytes` at these places, each taken modulo the length.
fn pieces<'b>(bytes: &'b [u8], places: &[usize]) -> Vec<&'b [u8]> {
    let mut at: Vec<usize> = places.iter().map(|p| p % (bytes.len() + 1)).collect();
    at.sort_unstable();
    let mut from = 0;
    let mut found = Vec::new();
    for place in at {
        found.push(bytes.get(from..place).unwrap_or_default());
        from = place;
    }
    found.push(bytes.get(from..).unwrap_or_default());
    found
}

/// Bytes like those of logs: text, bars, escapes, control characters, broken UTF-8.
fn log_bytes() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        vec(any::<u8>(), 0..6),
        "[ -~]{0,12}".prop_map(String::into_bytes),
        "[▌█é\u{301}\u{202e}\u{200b}\t]{0,3}".prop_map(|s| s.into_bytes()),
        "\\x1b\\[[0-9;:?]{0,8}[mKGABCDHJ]".prop_map(String::into_bytes),
        "\\x1b[\\]P_^X][a-z0-9;]{0,5}(\\x07|\\x1b\\\\)?".prop_map(String::into_bytes),
        Just(b"\r".to_vec()),
        Just(b"\n".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"(Worker_TP0 pid=54) ".to_vec()),
        Just(b"2026-11-29T17:04:55.516948455Z ".to_vec()),
        "Loading shards: {1,3}[0-9]{1,3}% Completed \\| [0-9]/9 ".prop_map(String::into_bytes),
    ];
    vec(part, 0..40).prop_map(|parts| parts.concat())
}

fn harmless(c: char) -> bool {
    let direction =
        matches!(c, '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    !c.is_control() && !direction && !matches!(c, '\u{200B}'..='\u{200D}' | '\u{FEFF}' | '\u{2028}' | '\u{2029}')
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn how_a_log_is_cut_does_not_change_its_lines(bytes in log_bytes(), places in vec(any::<usize>(), 0..8)) {
        let whole = decode([bytes.as_slice()]);
        prop_assert_eq!(&whole, &decode(pieces(&bytes, &places)));
        prop_assert_eq!(&whole, &decode(bytes.chunks(1)));
    }

    #[test]
    fn nothing_harmful_survives_decoding(bytes in log_bytes()) {
        let (lines, live) = decode([bytes.as_slice()]);
        for line in lines.iter().chain(&live) {
            prop_assert!(line.plain().chars().all(harmless), "{:?}", line);
            prop_assert!(line.spans.iter().all(|s| !s.text.is_empty()), "{:?}", line);
        }
    }

    #[test]
    fn a_masker_changes_a_line_as_it_changes_its_text(bytes in log_bytes(), secret in "[a-z]{6,9}") {
        let masker = Masker::new([secret.clone()]);
        let mut bytes = bytes;
        bytes.extend(format!("\x1b[m x {secret} --api-key \x1b[1m{secret}\n").bytes());
        for line in decode([bytes.as_slice()]).0 {
            let text = masker.text(&line.plain()).into_owned();
            prop_assert!(!text.contains(&secret), "{}", text);
            prop_assert_eq!(masker.line(line).plain(), text);
        }
    }

    #[test]
    fn readers_take_any_bytes(bytes in vec(any::<u8>(), 0..400), text in "\\PC{0,200}") {
        for bytes in [bytes, text.into_bytes()] {
            read_all(&bytes);
        }
    }
}

/// Gives bytes to every reader.
fn read_all(bytes: &[u8]) {
    for (_, probe) in PROBES {
        for exit in [Exit::Code(0), Exit::Code(1), Exit::Code(127), Exit::TimedOut] {
            let (facts, _) = probe::parse(probe, &output(bytes.to_vec(), bytes.to_vec(), exit));
            assert!(!facts.is_empty(), "a reader says something about its subject");
        }
    }
    let _ = dashboard::parse(bytes);
    let _ = dashboard::groups(bytes);
    let _ = dashboard::version(bytes);
    let _ = dashboard::python(&String::from_utf8_lossy(bytes));
    let _ = prometheus::parse(&String::from_utf8_lossy(bytes));
}

#[test]
fn fixtures_cut_anywhere_are_read_without_a_panic() {
    for group in PROBES
        .map(|(group, _)| group)
        .into_iter()
        .chain(["dashboard", "groups", "prometheus", "log"])
    {
        for case in cases(group) {
            for name in ["stdout", "stderr", "input"] {
                let bytes = case.read(name).unwrap_or_default();
                // A decoder that is fed byte by byte stands at every cut, one after the other.
                if group == "log" {
                    drop(decode(bytes.chunks(1)));
                    continue;
                }
                for end in 0..bytes.len() {
                    let part = &bytes[..end];
                    match group {
                        "dashboard" => drop(dashboard::parse(part)),
                        "groups" => drop(dashboard::groups(part)),
                        "prometheus" => drop(prometheus::parse(&String::from_utf8_lossy(part))),
                        // `a_cut_answer_of_a_node_is_silent_or_right` reads those, and looks at what they come to.
                        "node" if name == "stdout" => break,
                        _ => {
                            let probe = PROBES.iter().find(|(g, _)| *g == group).unwrap().1;
                            let _ = probe::parse(probe, &output(part.to_vec(), Vec::new(), Exit::TimedOut));
                        }
                    }
                }
            }
        }
    }
}

/// A cut `ray status` is silent, or counts what the whole one counts.
#[test]
fn a_cut_ray_status_counts_all_or_nothing() {
    for case in cases("ray-status") {
        let text = case.text("stdout");
        let whole = ray_status::status(&text);
        for (end, _) in text.char_indices() {
            let Some(part) = ray_status::status(&text[..end]) else {
                continue;
            };
            let whole = whole.as_ref().unwrap();
            assert_eq!(
                (part.nodes, part.gpus, &part.devices, &part.failures),
                (whole.nodes, whole.gpus, &whole.devices, &whole.failures),
                "cut at {end}"
            );
        }
    }
}

/// A cut answer may say less than the whole one, and never something else.
#[test]
fn a_cut_answer_of_a_node_is_silent_or_right() {
    for case in cases("node") {
        let whole = case.output();
        let (facts, _) = probe::parse(ProbeId::Node, &whole);
        for end in 0..whole.stdout.len() {
            let cut = output(whole.stdout[..end].to_vec(), Vec::new(), Exit::TimedOut);
            let (parts, _) = probe::parse(ProbeId::Node, &cut);
            assert_eq!(parts.len(), facts.len());
            for (part, whole) in parts.iter().zip(&facts) {
                let silent = matches!(part, Facts::Absent { .. });
                assert!(silent || less_or_equal(part, whole), "cut at {end}: {part:?}");
            }
        }
    }
}

/// Whether `part` says nothing that `whole` does not say: memory may lack optional figures, GPUs their processes, sockets their owners.
fn less_or_equal(part: &Facts, whole: &Facts) -> bool {
    fn within<T: PartialEq>(part: &Option<T>, whole: &Option<T>) -> bool {
        part.is_none() || part == whole
    }
    match (part, whole) {
        (Facts::Memory(p), Facts::Memory(w)) => {
            (p.total, p.available) == (w.total, w.available)
                && within(&p.free, &w.free)
                && within(&p.cached, &w.cached)
                && within(&p.swap_used, &w.swap_used)
                && within(&p.held, &w.held)
                && within(&p.pressure, &w.pressure)
                && within(&p.load, &w.load)
        }
        (Facts::Gpus(p), Facts::Gpus(w)) => {
            let same = |(p, w): (&GpuProcess, &GpuProcess)| {
                (p.pid, &p.name, p.memory) == (w.pid, &w.name, w.memory) && within(&p.container, &w.container)
            };
            let complete = p.processes.len() == w.processes.len() || p.processes_unknown.is_some();
            let whole = |(p, w): (&Gpu, &Gpu)| {
                let unsplit = Gpu {
                    slices: Vec::new(),
                    ..w.clone()
                };
                *p == *w || *p == unsplit
            };
            p.gpus.len() == w.gpus.len()
                && p.gpus.iter().zip(&w.gpus).all(whole)
                && complete
                && p.processes.iter().zip(&w.processes).all(same)
        }
        (Facts::Sockets(p), Facts::Sockets(w)) => {
            p.listeners.len() == w.listeners.len()
                && p.listeners.iter().zip(&w.listeners).all(|(p, w)| {
                    (&p.address, p.port) == (&w.address, w.port)
                        && within(&p.pid, &w.pid)
                        && within(&p.container, &w.container)
                })
        }
        (Facts::Fabric(p), Facts::Fabric(w)) => {
            (&p.interfaces, p.infiniband) == (&w.interfaces, w.infiniband) && (p.rdma.is_empty() || p.rdma == w.rdma)
        }
        _ => part == whole,
    }
}

#[test]
fn a_node_that_says_nothing_is_unknown_in_every_subject() {
    let (facts, problems) = probe::parse(ProbeId::Node, &output(Vec::new(), Vec::new(), Exit::TimedOut));
    let expected = [
        Subject::Memory,
        Subject::Gpus,
        Subject::Containers,
        Subject::Sockets,
        Subject::Fabric,
    ]
    .map(|what| Facts::Absent {
        what,
        why: "no answer in time".to_owned(),
    });
    assert_eq!(facts, expected);
    assert_eq!(problems.len(), 1);
}
