//! The shape of the program: who may import whom, which library belongs where, and that pure rooms stay pure.
//!
//! The rules are data in `rooms/table.rs`; the checker reads Rust as tokens, and is itself tried on a bad tree below.

#[path = "rooms/arms.rs"]
mod arms;
#[path = "rooms/check.rs"]
mod check;
#[path = "rooms/counts.rs"]
mod counts;
#[path = "rooms/file.rs"]
mod file;
#[path = "rooms/lexer.rs"]
mod lexer;
#[path = "rooms/paths.rs"]
mod paths;
#[path = "rooms/table.rs"]
mod table;

use std::path::Path;

use file::File;

#[test]
fn every_room_keeps_to_the_table() {
    let files = source_files().unwrap();
    assert!(files.iter().any(|f| f.name == "src/lib.rs"), "no source was read");
    let found = check::check(&files);
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn every_role_of_the_theme_is_drawn() {
    let files = source_files().unwrap();
    let view: Vec<&File> = files.iter().filter(|f| f.room() == "view").collect();
    let drawn = |role: &str| {
        let uses = |f: &File| f.tokens.windows(2).any(|pair| pair[0].is(".") && pair[1].is_word(role));
        view.iter().any(|f| uses(f))
    };
    let unused: Vec<_> = bringup::config::theme::ROLES
        .iter()
        .filter(|role| !drawn(role))
        .collect();
    assert!(
        view.is_empty() || unused.is_empty(),
        "no pane draws these roles: {unused:?}"
    );
}

#[test]
fn nothing_is_counted_in_a_text_without_the_helper_that_knows_the_plural() {
    let mut found = Vec::new();
    for file in source_files().unwrap().iter().filter(|f| f.room() != "sim") {
        let lines = if file.name.contains("test") {
            Vec::new()
        } else {
            counts::bare(&file.text)
        };
        found.extend(lines.iter().map(|line| format!("{}:{line}", file.name)));
    }
    assert!(
        found.is_empty(),
        "a count before a noun; write it with `domain::count`:\n{}",
        found.join("\n")
    );
}

#[test]
fn an_exception_names_a_file_that_needs_it() {
    let files = source_files().unwrap();
    for (name, why) in table::LONG_FILES {
        let long = files
            .iter()
            .any(|f| f.name == *name && f.production_lines() > table::MAX_LINES);
        assert!(long, "{name} is excepted ({why}) and needs no exception");
        assert!(!why.is_empty(), "{name} is excepted without a reason");
    }
}

#[test]
fn the_table_names_rooms_it_knows_and_has_no_cycle() {
    for (place, room) in table::ROOMS.iter().enumerate() {
        for name in room.imports {
            assert!(table::room(name).is_some(), "{} imports the unknown {name}", room.name);
            let pure_from_shell = room.pure && table::room(name).is_some_and(|r| !r.pure);
            assert!(!pure_from_shell, "pure {} imports the shell {name}", room.name);
            let before = table::ROOMS.iter().position(|r| r.name == *name);
            let in_order = before < Some(place) || room.name == "main";
            assert!(in_order, "{} stands before {name}, which it imports", room.name);
        }
    }
}

/// Every Rust file under src.
fn source_files() -> std::io::Result<Vec<File>> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![package.join("src")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let name = path
                    .strip_prefix(package)
                    .unwrap_or(&path)
                    .to_string_lossy()
                    .replace('\\', "/");
                files.push(File::new(&name, &std::fs::read_to_string(&path)?));
            }
        }
    }
    Ok(files)
}

mod bad_tree {
    //! The checker on text that breaks the rules, and on text that only looks as if it did.

    use super::check::check;
    use super::file::File;
    use super::table::MAX_LINES;

    /// Breaches of one file, given without its first line `//! x`.
    fn breaches(name: &str, body: &str) -> Vec<String> {
        check(&[File::new(name, &format!("//! x\n{body}"))])
    }

    #[test]
    fn each_breach_is_reported_with_file_and_line() {
        let cases: &[(&str, &str, &[&str])] = &[
            (
                "src/plan/a.rs",
                "use crate::view::draw;",
                &["src/plan/a.rs:2: `plan` may not import `view`"],
            ),
            (
                "src/plan/a.rs",
                "use crate::{domain::x, view::y};",
                &["src/plan/a.rs:2: `plan` may not import `view`"],
            ),
            (
                "src/plan/a.rs",
                "use crate::{\n  domain::{a, b},\n  view::{\n    c,\n    d},\n};",
                &["src/plan/a.rs:4: `plan` may not import `view`"],
            ),
            (
                "src/plan/a.rs",
                "use crate::{domain::{a::{b}}, ssh};",
                &["src/plan/a.rs:2: `plan` may not import `ssh`"],
            ),
            (
                "src/plan/a.rs",
                "pub(crate) use crate::view as domain;",
                &["src/plan/a.rs:2: `plan` may not import `view`"],
            ),
            (
                "src/plan/a.rs",
                "fn f() {\n  let x: crate::view::X = g();\n}",
                &["src/plan/a.rs:3: `plan` may not import `view`"],
            ),
            (
                "src/plan/a.rs",
                "fn f() { g::<crate::view::X>() }",
                &["src/plan/a.rs:2: `plan` may not import `view`"],
            ),
            (
                "src/plan/a.rs",
                "fn f() { format!(\"{}\", crate::view::x()) }",
                &["src/plan/a.rs:2: `plan` may not import `view`"],
            ),
            (
                "src/plan/a.rs",
                "use super::super::view::x;",
                &["src/plan/a.rs:2: `plan` may not import `view`"],
            ),
            (
                "src/plan/mod.rs",
                "use super::{view::x, domain::y};",
                &["src/plan/mod.rs:2: `plan` may not import `view`"],
            ),
            (
                "src/plan/mod.rs",
                "mod tests { use super::super::view; }",
                &["src/plan/mod.rs:2: `plan` may not import `view`"],
            ),
            (
                "src/plan/mod.rs",
                "#[cfg(test)]\nmod tests { use crate::view::x; }",
                &["src/plan/mod.rs:3: `plan` may not import `view`"],
            ),
            (
                "src/plan/a.rs",
                "use bringup::view::x;",
                &["src/plan/a.rs:2: `plan` may not import `view`"],
            ),
            (
                "src/main.rs",
                "fn main() {\n  bringup::view::draw()\n}",
                &["src/main.rs:3: `main` may not import `view`"],
            ),
            (
                "src/plan/a.rs",
                "use crate as c;",
                &["src/plan/a.rs:2: `use crate` hides which room it means"],
            ),
            (
                "src/plan/a.rs",
                "use crate::*;",
                &["src/plan/a.rs:2: `use crate::*` hides which room it means"],
            ),
            (
                "src/plan/a.rs",
                "use crate::{self as c};",
                &["src/plan/a.rs:2: `use crate::self` hides which room it means"],
            ),
            (
                "src/plan/a.rs",
                "extern crate bringup as c;",
                &["src/plan/a.rs:2: `extern crate`; write the path where it is used"],
            ),
            (
                "src/node/a.rs",
                "use russh::client;",
                &["src/node/a.rs:2: `russh` belongs in ssh, sim only"],
            ),
            (
                "src/node/a.rs",
                "use {std::fmt, reqwest as http};",
                &["src/node/a.rs:2: `reqwest` belongs in api only"],
            ),
            (
                "src/view/a.rs",
                "use ratatui::crossterm::event;",
                &["src/view/a.rs:2: `crossterm` belongs in app only"],
            ),
            (
                "src/drive/a.rs",
                "type T = ::ratatui::Frame;",
                &["src/drive/a.rs:2: `ratatui` belongs in view, app only"],
            ),
            (
                "src/ssh/a.rs",
                "fn f() -> color_eyre::Result<()> { g() }",
                &["src/ssh/a.rs:2: `color_eyre` belongs in app, cli, main only"],
            ),
            (
                "src/plan/a.rs",
                "#[tokio::test]\nasync fn f() {}",
                &["src/plan/a.rs:2: a pure room may not use `tokio`"],
            ),
            (
                "src/plan/a.rs",
                "use std::time::{Duration, Instant};",
                &["src/plan/a.rs:2: a pure room may not touch `std::time::Instant`"],
            ),
            (
                "src/plan/a.rs",
                "fn f() { std::time::SystemTime::UNIX_EPOCH; }",
                &["src/plan/a.rs:2: a pure room may not touch `std::time::SystemTime`"],
            ),
            (
                "src/plan/a.rs",
                "use std::{fmt, env};",
                &["src/plan/a.rs:2: a pure room may not touch `std::env`"],
            ),
            (
                "src/plan/a.rs",
                "fn f() {\n\n  std::fs::read(x) }",
                &["src/plan/a.rs:4: a pure room may not touch `std::fs`"],
            ),
            (
                "src/plan/a.rs",
                "fn f() { std::thread::spawn(g) }",
                &["src/plan/a.rs:2: a pure room may not touch `std::thread`"],
            ),
            (
                "src/plan/a.rs",
                "fn f() { std::process::exit(1) }",
                &["src/plan/a.rs:2: a pure room may not touch `std::process`"],
            ),
            (
                "src/plan/a.rs",
                "fn f() { jiff::Timestamp::now() }",
                &["src/plan/a.rs:2: a pure room may not read a clock: `jiff::Timestamp::now`"],
            ),
            (
                "src/plan/a.rs",
                "#[allow(dead_code)]\nfn f() {}",
                &["src/plan/a.rs:2: `allow`; write `#[expect(lint, reason = \"…\")]`"],
            ),
            (
                "src/ssh/a.rs",
                "#![cfg_attr(x, allow(y))]",
                &["src/ssh/a.rs:2: `allow`; write `#[expect(lint, reason = \"…\")]`"],
            ),
            (
                "src/attic/a.rs",
                "",
                &["src/attic/a.rs:1: `attic` is not a room of the table in tests/rooms/table.rs"],
            ),
        ];
        for (name, body, expected) in cases {
            assert_eq!(breaches(name, body), *expected, "{name}: {body}");
        }
    }

    #[test]
    fn a_hidden_clock_is_found_under_every_name_it_can_take() {
        for body in [
            "use std::time;",
            "use std::time::*;",
            "use std::time::{self, Duration};",
            "use std as s;",
        ] {
            let found = breaches("src/plan/a.rs", body);
            assert!(
                found.iter().any(|b| b.ends_with("`std::time::Instant`")),
                "{body}: {found:?}"
            );
        }
        assert_eq!(
            breaches("src/plan/a.rs", "use std::time::Duration as D;"),
            Vec::<String>::new()
        );
    }

    #[test]
    fn what_only_looks_like_a_breach_is_none() {
        let cases = [
            (
                "src/plan/a.rs",
                "use crate::{domain::{x, y as z}, config::Config, probe, engine::{self}};",
            ),
            (
                "src/plan/a.rs",
                "use super::types::Plan; use self::inner::view; use crate::plan::x;",
            ),
            (
                "src/plan/a.rs",
                "mod inner { use super::view; fn f() { super::super::types::x() } }",
            ),
            (
                "src/plan/a.rs",
                "// use crate::view::x;\n/* crate::view /* nested */ crate::view::y */",
            ),
            (
                "src/plan/a.rs",
                "const A: &str = \"crate::view::x // \\\" std::fs::read\";",
            ),
            (
                "src/plan/a.rs",
                "const A: &str = r#\"crate::view::x \" std::fs::read\"#;",
            ),
            (
                "src/plan/a.rs",
                "fn f<'a>(c: char, now: &'a Now) -> bool { c == '\"' || c == '\\'' || now.view.x() }",
            ),
            (
                "src/plan/a.rs",
                "fn f() -> impl Iterator<Item = u8> + use<> { let tokio = 1; g(tokio) }",
            ),
            (
                "src/plan/a.rs",
                "#[cfg(test)]\nmod tests { fn f() { std::fs::read(x); std::time::Instant::now(); } }",
            ),
            (
                "src/ssh/a.rs",
                "use {tokio::time::Instant, std::{env, fs}, russh::client}; use crate::domain::x;",
            ),
            ("src/lib.rs", "pub mod plan; pub mod view;"),
            (
                "src/main.rs",
                "fn main() -> std::process::ExitCode { bringup::cli::run(std::env::args_os()) }",
            ),
        ];
        for (name, body) in cases {
            assert_eq!(breaches(name, body), Vec::<String>::new(), "{name}: {body}");
        }
    }

    #[test]
    fn a_file_without_its_opening_line_is_found() {
        let found = check(&[File::new("src/plan/a.rs", "// x\nuse crate::domain::y;\n")]);
        assert_eq!(found, ["src/plan/a.rs:1: the file does not open with `//!`"]);
    }

    #[test]
    fn a_long_file_is_found_and_its_tests_do_not_count() {
        let lines = |n: usize| "const X: u8 = 1;\n".repeat(n);
        let long = breaches("src/ssh/a.rs", &lines(MAX_LINES));
        assert_eq!(long, ["src/ssh/a.rs:600: 601 production lines; 600 is the most"]);
        let tested = format!("{}#[cfg(test)]\nmod tests {{\n{}}}\n", lines(MAX_LINES - 1), lines(50));
        assert_eq!(breaches("src/ssh/a.rs", &tested), Vec::<String>::new());
    }

    #[test]
    fn a_test_file_is_one_that_its_parent_declares_so() {
        let clock = File::new("src/plan/tests.rs", "//! x\nfn f() { std::fs::read(x); }\n");
        let parent = |text| File::new("src/plan/mod.rs", text);
        assert_eq!(check(&[parent("//! x\nmod tests;\n"), clock]).len(), 1);
        let clock = File::new("src/plan/tests.rs", "//! x\nfn f() { std::fs::read(x); }\n");
        assert_eq!(
            check(&[parent("//! x\n#[cfg(test)]\nmod tests;\n"), clock]),
            Vec::<String>::new()
        );
    }

    #[test]
    fn the_insides_of_app_are_closed() {
        let app = || {
            [
                File::new("src/app/guard.rs", "//! x\n"),
                File::new("src/app/mod.rs", "//! x\n"),
            ]
        };
        let cli = |body: &str| {
            let mut files = Vec::from(app());
            files.push(File::new("src/cli/a.rs", &format!("//! x\n{body}")));
            check(&files)
        };
        assert_eq!(cli("use crate::app::run;"), Vec::<String>::new());
        let found = cli("use crate::app::guard::Guard;");
        assert_eq!(
            found,
            ["src/cli/a.rs:2: nobody may import the insides of `app`; only what its mod.rs gives"]
        );
    }

    #[test]
    fn a_catch_all_on_an_enum_of_ours_is_found() {
        let own = "enum Fruit { Apple(u8), Pear }\n";
        let bad = [
            "fn f(x: Fruit) { match x { Fruit::Apple(n) if n > 1 => 1,\n_ => 2 } }",
            "fn f(x: Fruit) { match x { Fruit::Pear => { 1 }\nother => g(other), } }",
            "impl Fruit { fn f(self) { match self.g(|| { 1 }) { Some(Self::Pear) => match y { 1 => 2, _ => 3 },\n_ => 4 } } }",
        ];
        for body in bad {
            let found = breaches("src/plan/a.rs", &format!("{own}{body}"));
            let what = "a catch-all arm in a match on an enum of ours; name the variants";
            assert_eq!(found, [format!("src/plan/a.rs:4: {what}")], "{body}");
        }
        let good = [
            "fn f(x: u8) { match x { 1 => Fruit::Pear, _ => Fruit::Apple(x) } }",
            "fn f(x: Fruit) { match x { Fruit::Pear => 1, Fruit::Apple(_) => 2 } }",
            "fn f(x: Option<u8>) { match x { Some(1) => Fruit::Pear, None | Some(_) => Fruit::Pear } }",
        ];
        for body in good {
            assert_eq!(
                breaches("src/plan/a.rs", &format!("{own}{body}")),
                Vec::<String>::new(),
                "{body}"
            );
        }
        let shell = format!("{own}fn f(x: Fruit) {{ match x {{ Fruit::Pear => 1, _ => 2 }} }}");
        assert_eq!(breaches("src/ssh/a.rs", &shell), Vec::<String>::new());
    }
}
