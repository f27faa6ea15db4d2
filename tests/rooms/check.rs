//! The checks themselves: files and the table in, breaches with file and line out.

use std::collections::BTreeSet;

use crate::arms;
use crate::file::File;
use crate::paths::Path;
use crate::table::{FENCES, LONG_FILES, MAX_LINES, ROOMS, Room, WORLD, WORLD_CRATES, room};

/// Reports every breach as `file:line: what`, sorted.
pub fn check(files: &[File]) -> Vec<String> {
    let enums: BTreeSet<String> = files.iter().flat_map(|f| arms::enums(&f.tokens)).collect();
    let mut found = Breaches::default();
    for file in files {
        let Some(rules) = room(file.room()) else {
            found.add(
                file,
                1,
                &format!("`{}` is not a room of the table in tests/rooms/table.rs", file.room()),
            );
            continue;
        };
        let test_file = is_test_file(file, files);
        check_shape(file, test_file, &mut found);
        for path in &file.paths {
            check_import(file, rules, path, files, &mut found);
            check_fences(file, path, &mut found);
            if rules.pure && !test_file && !file.in_test(path.at) {
                check_world(file, path, &mut found);
            }
        }
        if rules.pure {
            for at in arms::catch_alls(&file.tokens, &enums) {
                if !test_file && !file.in_test(at) {
                    let what = "a catch-all arm in a match on an enum of ours; name the variants";
                    found.add(file, file.tokens[at].line, what);
                }
            }
        }
    }
    found.list.sort();
    found.list.dedup();
    found
        .list
        .into_iter()
        .map(|(name, line, what)| format!("{name}:{line}: {what}"))
        .collect()
}

#[derive(Default)]
struct Breaches {
    list: Vec<(String, usize, String)>,
}

impl Breaches {
    fn add(&mut self, file: &File, line: usize, what: &str) {
        self.list.push((file.name.clone(), line, what.to_owned()));
    }
}

/// Whether another file declares this one, or a folder above it, as `#[cfg(test)] mod NAME;`.
fn is_test_file(file: &File, files: &[File]) -> bool {
    files.iter().any(|other| {
        let parent = other.module();
        other.test_files().iter().any(|name| {
            let mut tests = parent.clone();
            tests.push(name.clone());
            file.room() == other.room() && file.module().starts_with(&tests)
        })
    })
}

fn check_shape(file: &File, test_file: bool, found: &mut Breaches) {
    if !file.text.starts_with("//!") {
        found.add(file, 1, "the file does not open with `//!`");
    }
    let lines = file.production_lines();
    let excepted = LONG_FILES.iter().any(|(name, _why)| *name == file.name);
    if lines > MAX_LINES && !test_file && !excepted {
        found.add(
            file,
            MAX_LINES,
            &format!("{lines} production lines; {MAX_LINES} is the most"),
        );
    }
    for pair in file.tokens.windows(2) {
        if pair[0].is_word("extern") && pair[1].is_word("crate") {
            found.add(file, pair[0].line, "`extern crate`; write the path where it is used");
        }
    }
    for (at, token) in file.tokens.iter().enumerate() {
        let inner = usize::from(file.tokens.get(at + 1).is_some_and(|t| t.is("!")));
        let open = at + 1 + inner;
        if !token.is("#") || !file.tokens.get(open).is_some_and(|t| t.is("[")) {
            continue;
        }
        let group = &file.tokens[open..crate::file::after_group(&file.tokens, open)];
        if let Some(allow) = group
            .windows(2)
            .find(|pair| pair[0].is_word("allow") && pair[1].is("("))
        {
            found.add(file, allow[0].line, "`allow`; write `#[expect(lint, reason = \"…\")]`");
        }
    }
}

fn check_import(file: &File, rules: &Room, path: &Path, files: &[File], found: &mut Breaches) {
    let Some((target, at)) = file.resolve(path) else {
        return;
    };
    let line = path.line(at);
    let Some(name) = target.first() else {
        if path.imported {
            found.add(file, line, &format!("`use {}` hides which room it means", path.text()));
        }
        return;
    };
    if name == "*" || name == "self" {
        found.add(file, line, &format!("`use {}` hides which room it means", path.text()));
        return;
    }
    // A macro or an item of lib.rs itself is no room.
    if ROOMS.iter().all(|r| r.name != name) || name == rules.name {
        return;
    }
    let allowed = rules.imports.contains(&name.as_str());
    if !allowed {
        found.add(file, line, &format!("`{}` may not import `{name}`", rules.name));
        return;
    }
    let inside = target.get(1).map(String::as_str).unwrap_or_default();
    let hidden = |f: &File| f.name == format!("src/app/{inside}.rs") || f.name == format!("src/app/{inside}/mod.rs");
    if name == "app" && files.iter().any(hidden) {
        found.add(
            file,
            line,
            "nobody may import the insides of `app`; only what its mod.rs gives",
        );
    }
}

fn check_fences(file: &File, path: &Path, found: &mut Breaches) {
    for (library, rooms) in FENCES {
        // ratatui hands crossterm on under its own name.
        let named = path.get(0) == Some(library) || path.starts_with(&["ratatui", library]);
        // A lone word is a crate only in a `use`; elsewhere it is a name of a variable.
        let counts = path.imported || path.segments.len() > 1;
        if named && counts && !rooms.contains(&file.room()) {
            found.add(
                file,
                path.line(0),
                &format!("`{library}` belongs in {} only", rooms.join(", ")),
            );
        }
    }
}

fn check_world(file: &File, path: &Path, found: &mut Breaches) {
    let line = path.line(0);
    let first = path.get(0).unwrap_or_default();
    if (path.imported || path.segments.len() > 1) && WORLD_CRATES.contains(&first) {
        found.add(file, line, &format!("a pure room may not use `{first}`"));
    }
    for banned in WORLD {
        let words: Vec<&str> = banned.split("::").collect();
        let inside = path.starts_with(&words) || (words.len() > 2 && path.starts_with(&words[1..]));
        // `use std::time;` or `use std::time::*;` would bring it in under a name that is not looked for.
        let star = path.segments.last().is_some_and(|(s, _)| s == "*" || s == "self");
        let stem = path.segments.len() - usize::from(star);
        let around = path.imported && stem < words.len() && path.starts_with(&words[..stem]);
        let hides = around && (star || stem == 1 || words[..stem] == ["std", "time"]);
        if inside || hides {
            found.add(file, line, &format!("a pure room may not touch `{banned}`"));
        }
    }
    let last = path.segments.last().map(|(s, _)| s.as_str());
    let next = path.at + path.segments.len() * 2 - 1;
    let called = !path.imported && file.tokens.get(next).is_some_and(|t| t.is("("));
    if last == Some("now") && path.segments.len() > 1 && called {
        found.add(
            file,
            line,
            &format!("a pure room may not read a clock: `{}`", path.text()),
        );
    }
}
