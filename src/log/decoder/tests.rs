//! Bytes to lines, however they are cut.

use super::*;
use crate::log::line::{Color, Span, Style};

/// Everything that bytes on stderr come to, fed as one piece.
fn decode(bytes: &[u8]) -> (Vec<Line>, Option<Line>) {
    decode_in([bytes])
}

/// The same, fed in these pieces.
fn decode_in<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Line>, Option<Line>) {
    let mut decoder = Decoder::new();
    let (mut lines, mut live) = (Vec::new(), None);
    for piece in pieces {
        decoder.feed(Stream::Err, piece, &mut |edit| match edit {
            LineEdit::Push(line) => {
                // As a ring does.
                live = None;
                lines.push(line);
            }
            LineEdit::Live(_, line) => live = line,
        });
    }
    (lines, live)
}

fn texts(bytes: &[u8]) -> Vec<String> {
    decode(bytes).0.iter().map(Line::plain).collect()
}

#[test]
fn line_ends_of_every_kind_are_one_line_end() {
    assert_eq!(texts(b"a\r\nb\r\r\n\nc\n"), ["a", "b", "", "c"]);
}

#[test]
fn control_characters_and_escapes_do_not_survive() {
    let cases: [(&[u8], &str); 14] = [
        (b"a\0b\x07c\x7fd", "abcd"),
        (b"\x1b]0;title\x07x\x1b]52;c;aGk=\x1b\\y", "xy"),
        (b"\x1bPq#0\x1b\\z\x1b_apc\x1b\\\x1b^pm\x1b\\!", "z!"),
        (b"\x1b[2;Kyarn \x1b[?25linstall\x1b[1000h", "yarn install"),
        (b"a\tb\tc", "a       b       c"),
        ("a\u{85}b\u{9b}31mc".as_bytes(), "ab31mc"),
        (b"a\x9b31mb", "a31mb"),
        ("x\u{200b}y\u{feff}z\u{ad}".as_bytes(), "xyz"),
        ("admin\u{202e}gnp.exe".as_bytes(), "admin\u{fffd}gnp.exe"),
        (
            "e\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}".as_bytes(),
            "e\u{301}\u{301}\u{301}\u{301}",
        ),
        (b"\xff\xfeok\xe2\x96", "\u{fffd}\u{fffd}ok\u{fffd}"),
        (b"12345\x08\x08ab", "123ab"),
        (b"\x1b]unterminated", ""),
        (b"ab\x1b[31", "ab"),
    ];
    for (bytes, expected) in cases {
        let mut input = bytes.to_vec();
        input.extend(b"\nnext\n");
        assert_eq!(
            texts(&input),
            [expected, "next"],
            "{:?}",
            String::from_utf8_lossy(bytes)
        );
    }
}

#[test]
fn colours_become_spans() {
    let (lines, _) = decode(b"\x1b[0;36m(APIServer pid=1)\x1b[0;0m \x1b[1mINFO\x1b[0m x  \n");
    let span = |text: &str, style: Style| Span {
        text: text.into(),
        style,
    };
    let cyan = Style {
        fg: Some(Color::Cyan),
        ..Style::default()
    };
    let bold = Style {
        bold: true,
        ..Style::default()
    };
    let plain = Style::default();
    let expected = [
        span("(APIServer pid=1)", cyan),
        span(" ", plain),
        span("INFO", bold),
        span(" x", plain),
    ];
    assert_eq!(lines.first().unwrap().spans, expected);
}

#[test]
fn a_character_split_between_chunks_stays_whole() {
    let mut decoder = Decoder::new();
    let mut lines = Vec::new();
    // The second piece ends a character, holds another one, and begins a third.
    for piece in [&b"\xc3"[..], b"\xa9A\xe2", b"\x96", b"\x88\n"] {
        decoder.feed(Stream::Out, piece, &mut |edit| {
            if let LineEdit::Push(line) = edit {
                lines.push(line.plain());
            }
        });
    }
    assert_eq!(lines, ["éA█"]);
}

#[test]
fn a_bar_is_one_live_line() {
    let (lines, live) = decode("x:   0%|    | 0/4 [00:00<?]\rx:  25%|█   | 1/4 [00:01<00:03]".as_bytes());
    assert_eq!(lines, []);
    let live = live.unwrap();
    assert_eq!(live.plain(), "x:  25%|█   | 1/4 [00:01<00:03]");
    assert!(live.live);
    assert_eq!(live.bar.unwrap().percent, 25);
}

#[test]
fn a_shorter_text_over_a_longer_one_needs_an_erase() {
    assert_eq!(texts(b"abcdef\rxy\n"), ["xycdef"]);
    assert_eq!(texts(b"abcdef\rxy\x1b[K\n"), ["xy"]);
    assert_eq!(texts(b"abcdef\r\x1b[2Kxy\n"), ["xy"]);
    assert_eq!(texts(b"abc\x1b[1Gx\x1b[2Cy\n"), ["xbcy"]);
    assert_eq!(texts(b"abc\x1b[99999Gx\n").concat().len(), MAX_JUMP);
}

/// Columns that a cursor movement can make at most.
const MAX_JUMP: usize = 513;

#[test]
fn a_cursor_that_leaves_the_line_starts_it_anew() {
    assert_eq!(texts(b"one\x1b[1Atwo\n"), ["two"]);
    assert_eq!(texts(b"\x1b[3A\x1b[2K\rabc: Pulling\x1b[3B\n"), ["abc: Pulling"]);
}

#[test]
fn a_record_that_is_glued_to_a_bar_is_a_line_of_its_own() {
    let (lines, _) = decode(
        "\r  0%|          | 0/23 [00:00<?, ?it/s]\x1b[32m[2025-03-03 18:46:44 TP3] Capture cuda graph begin.\x1b[0m\n"
            .as_bytes(),
    );
    let seen: Vec<_> = lines.iter().map(|l| (l.plain(), l.bar.is_some())).collect();
    let expected = [
        ("  0%|          | 0/23 [00:00<?, ?it/s]", true),
        ("[2025-03-03 18:46:44 TP3] Capture cuda graph begin.", false),
    ];
    assert_eq!(seen, expected.map(|(text, bar)| (text.to_owned(), bar)));
    let (lines, _) = decode(b"x:  50%| | 2/4 [00:01<00:01] [repeated 3x across cluster]\n");
    assert_eq!(lines.len(), 1);
}

#[test]
fn colours_whose_escape_was_lost_are_no_text() {
    let bar = "Loading safetensors checkpoint shards:  55% Completed | 90/163 [00:22<00:13,  5.23it/s]";
    let input = format!(
        "[36m(RayWorkerWrapper pid=860)[0m \n{bar}\n[0;36m(APIServer pid=1) [0;0m [32mINFO [0m [90m07-24 13:15:43 [0m x\n"
    );
    let (lines, _) = decode(input.as_bytes());
    let seen: Vec<_> = lines.iter().map(Line::plain).collect();
    let owned = format!("(RayWorkerWrapper pid=860) {bar}");
    assert_eq!(seen, [owned.as_str(), "(APIServer pid=1)  INFO  07-24 13:15:43  x"]);
    // What only looks a little like it stays.
    assert_eq!(
        texts(b"[:black][silver:]dbug[-:][:-]\n[5m ago] x\n"),
        ["[:black][silver:]dbug[-:][:-]", "[5m ago] x"]
    );
}

#[test]
fn an_owner_prefix_stays_before_its_bar() {
    let bar = "Loading shards:   7% Completed | 1/14 [00:00<00:01,  7.28it/s]";
    let owned = format!("(RayWorkerProc pid=490) {bar}");
    for input in [
        format!("\x1b[36m(RayWorkerProc pid=490)\x1b[0m \r{bar}\n"),
        format!("\x1b[36m(RayWorkerProc pid=490)\x1b[0m \n{bar}\n"),
        format!("\x1b[36m(RayWorkerProc pid=490)\x1b[0m \n\r{bar}\n"),
    ] {
        let (lines, _) = decode(input.as_bytes());
        assert_eq!(lines.len(), 1, "{input:?}");
        let line = lines.first().unwrap();
        assert_eq!(line.plain(), owned);
        assert_eq!(line.bar.as_ref().unwrap().percent, 7);
    }
    assert_eq!(texts(b"(RayWorkerProc pid=490) \nplain\n"), ["plain"]);
}

#[test]
fn the_time_of_docker_is_taken_off() {
    let (lines, _) = decode(
        b"2026-11-29T17:04:55.516948455Z INFO a\n2026-11-29T17:04:56.000000001Z \n2026-11-29 17:04:55 b\n\
              2026-11-29T17:04:57.000000001Z \rx:  25%|  | 1/4 [\n",
    );
    let seen: Vec<_> = lines.iter().map(|l| (l.time.as_deref(), l.plain())).collect();
    assert_eq!(
        seen,
        [
            (Some("2026-11-29T17:04:55.516948455Z"), "INFO a".to_owned()),
            (Some("2026-11-29T17:04:56.000000001Z"), String::new()),
            (None, "2026-11-29 17:04:55 b".to_owned()),
            (Some("2026-11-29T17:04:57.000000001Z"), "x:  25%|  | 1/4 [".to_owned()),
        ]
    );
}

#[test]
fn a_time_of_dockers_that_is_cut_anywhere_is_no_line_that_is_being_written() {
    let text = "2026-11-29T17:04:55.516948455Z INFO a";
    let time = text.find("INFO").unwrap();
    for end in 1..=text.len() {
        let (lines, live) = decode_in([&b"2026-11-29T17:04:55.000000001Z before\n"[..], &text.as_bytes()[..end]]);
        assert_eq!(lines.len(), 1);
        let live = live.map(|line| (line.time.clone(), line.plain()));
        let expected = (
            Some(text[..time - 1].to_owned()),
            text[time..end.max(time)].trim_end().to_owned(),
        );
        assert_eq!(live, (end > time).then_some(expected), "{end}");
    }
    // What only begins like one, and what stands alone on a line that has ended, are text.
    assert_eq!(decode(b"2026-11-2x").1.unwrap().plain(), "2026-11-2x");
    assert_eq!(decode(b"0%\r12").1.unwrap().plain(), "12");
    assert_eq!(texts(b"2026-11\n"), ["2026-11"]);
}

#[test]
fn a_long_line_is_cut_and_says_so() {
    let mut input = vec![b'a'; 200_000];
    input.extend(b"\nb\n");
    let (lines, _) = decode(&input);
    assert_eq!(lines.len(), 2);
    let (long, next) = (lines.first().unwrap(), lines.last().unwrap());
    assert!(long.cut);
    assert_eq!(long.plain().len(), super::super::row::MAX_CELLS);
    assert_eq!((next.plain().as_str(), next.cut), ("b", false));
}

#[test]
fn an_escape_sequence_that_never_ends_does_not_swallow_the_log() {
    for start in ["\x1b]0;", "\x1bP1;2|", "\x1b_"] {
        let mut input = start.as_bytes().to_vec();
        input.resize(MAX_RUN, b'x');
        input.extend(b"seen\n");
        assert_eq!(texts(&input), ["seen"], "{start:?}");
    }
}

#[test]
fn a_line_longer_than_a_run_is_the_same_in_any_pieces() {
    let input = "é█".repeat(MAX_RUN / 2);
    let whole = decode(input.as_bytes()).1;
    let mut decoder = Decoder::new();
    let mut live = None;
    for piece in input.as_bytes().chunks(7777) {
        decoder.feed(Stream::Err, piece, &mut |edit| {
            if let LineEdit::Live(_, line) = edit {
                live = line;
            }
        });
    }
    assert_eq!(live, whole);
}

/// What logs are made of, and what they are not.
const PIECES: [&str; 24] = [
    "\n",
    "\n",
    "\r\n",
    "\r",
    "2026-11-29T17:04:55.516948455Z ",
    "2026-11-29T17:04:55.516948455Z",
    "INFO 11-29 12:31:02 [weight_utils.py:304] words",
    "(RayWorkerProc pid=490) ",
    "(RayWorkerProc pid=490)",
    "[36m",
    "[0m",
    "   ",
    "x:  55% Completed | 90/163 [00:22<00:13,  5.23it/s]",
    "INFO:     127.0.0.1:1 - \"GET /health HTTP/1.1\" 200 OK",
    "spark:2528:2999 [0] NCCL INFO NET/IB",
    "é█",
    "\u{301}",
    "\u{202e}",
    "\x1b[31m",
    "\x1b[0m",
    "\x1b[5C",
    "\x1b[1A",
    "\t\x08\0",
    "\x1b]0;",
];

proptest::proptest! {
    /// Whole lines at once, of which most need no cells, and the same a byte at a time, where every line does.
    #[test]
    fn a_line_is_the_same_whether_it_comes_whole_or_byte_by_byte(
        pieces in proptest::collection::vec(proptest::sample::select(&PIECES[..]), 0..40),
    ) {
        let input = pieces.concat();
        proptest::prop_assert_eq!(decode(input.as_bytes()), decode_in(input.as_bytes().chunks(1)));
    }
}

#[test]
fn a_line_about_as_long_as_one_may_be_is_the_same_whole_or_in_parts() {
    use super::super::row::MAX_CELLS;
    for length in MAX_CELLS - 1..=MAX_CELLS + 1 {
        for time in ["", "2026-11-29T17:04:55.516948455Z "] {
            let input = format!("{time}{}\nnext\n", "a".repeat(length));
            let (lines, _) = decode(input.as_bytes());
            assert_eq!(lines.first().unwrap().cut, length > MAX_CELLS);
            assert_eq!(decode_in(input.as_bytes().chunks(MAX_CELLS / 2)).0, lines);
        }
    }
}

#[test]
fn the_last_line_needs_no_line_end() {
    let mut decoder = Decoder::new();
    let mut edits = Vec::new();
    decoder.feed(Stream::Out, b"bye", &mut |e| edits.push(e));
    decoder.finish(Stream::Out, &mut |e| edits.push(e));
    decoder.finish(Stream::Out, &mut |e| edits.push(e));
    let mut live = Line::of(Stream::Out, "bye");
    live.live = true;
    let expected = [
        LineEdit::Live(Stream::Out, Some(live)),
        LineEdit::Push(Line::of(Stream::Out, "bye")),
    ];
    assert_eq!(edits, expected);
}
