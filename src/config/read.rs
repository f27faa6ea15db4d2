//! Reads a TOML text key by key and collects everything that is wrong with it, each with its place.
//!
//! A key that nobody asked for is unknown: the list of known keys is what the code asks, so it cannot drift. A wrong value is reported once and
//! then counts as absent, so that one run shows all problems. A name that is misspelt is reported once too: the file is then read again with it taken for
//! the one that is meant, so that nothing under it counts as missing.

mod values;

use std::collections::{BTreeMap, BTreeSet};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::meant::{hint, meant};
use super::problem::{ConfigProblem, nearest, place};

/// Longest text that is read, in bytes.
const MAX_TEXT: usize = 1 << 20;

/// Most problems that are reported.
const MAX_PROBLEMS: usize = 200;

/// A value and the byte offset at which it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct At<T> {
    pub value: T,
    pub at: usize,
}

/// Names that are misspelt, by the table in which they stand: what is written, and what is meant.
pub(super) type Misspelt = BTreeMap<String, Vec<(String, &'static str)>>;

/// Collects problems and the keys that were asked for.
pub(super) struct Reader<'t> {
    file: &'t str,
    text: &'t str,
    /// Each with whether it only says that a whole table is not there: such a problem has no place in the file.
    problems: Vec<(bool, ConfigProblem)>,
    keys: BTreeSet<String>,
    /// Names that are taken for others.
    taken: Misspelt,
    /// Those that were found.
    found: Misspelt,
}

/// One table of the file, present or not.
pub(super) struct Section<'t> {
    path: String,
    at: usize,
    table: Option<&'t DeTable<'t>>,
    asked: Vec<&'static str>,
    /// Names in it that are taken for others.
    taken: Vec<(String, &'static str)>,
}

/// A member of a list that may be text or a table.
pub(super) enum Item<'t> {
    Text(At<String>),
    Table(Section<'t>),
}

impl<'t> Reader<'t> {
    pub fn new(file: &'t str, text: &'t str) -> Self {
        Self {
            file,
            text,
            problems: Vec::new(),
            keys: BTreeSet::new(),
            taken: Misspelt::new(),
            found: Misspelt::new(),
        }
    }

    /// The same text from the start, with the names that were found misspelt taken for what they mean; `None` where there are no new ones.
    pub fn again(&self) -> Option<Self> {
        let mut again = Self::new(self.file, self.text);
        again.taken.clone_from(&self.found);
        (self.found != self.taken).then_some(again)
    }

    /// The text as a table; what is no TOML becomes problems.
    pub fn document(&mut self) -> Spanned<DeTable<'t>> {
        if self.text.len() > MAX_TEXT {
            let message = format!("the file is longer than {MAX_TEXT} bytes");
            self.problem(0, "", message, "this is no configuration of bringup");
            return Spanned::new(0..0, DeTable::new());
        }
        let (table, errors) = DeTable::parse_recoverable(self.text);
        for error in errors {
            let at = error.span().map_or(0, |s| s.start);
            self.problem(at, "", error.message().to_owned(), "write it as TOML 1.0 wants it");
        }
        table
    }

    /// Reports a problem.
    pub fn problem(&mut self, at: usize, key: &str, message: impl Into<String>, fix: impl Into<String>) {
        self.report(false, at, key, message, fix);
    }

    /// Reports that a table is not there at all: what stands in the file comes before it.
    pub fn nowhere(&mut self, at: usize, key: &str, message: impl Into<String>, fix: impl Into<String>) {
        self.report(true, at, key, message, fix);
    }

    fn report(&mut self, nowhere: bool, at: usize, key: &str, message: impl Into<String>, fix: impl Into<String>) {
        if self.problems.len() >= MAX_PROBLEMS {
            return;
        }
        let (line, column) = place(self.text, at);
        let problem = ConfigProblem {
            file: self.file.to_owned(),
            line,
            column,
            key: key.to_owned(),
            message: message.into(),
            fix: fix.into(),
        };
        self.problems.push((nowhere, problem));
    }

    /// The line on which a byte offset stands, to name another place in a message.
    pub fn line(&self, at: usize) -> usize {
        place(self.text, at).0
    }

    /// The place of a byte offset as problems write it, for what is found wrong later.
    pub fn place(&self, at: usize) -> String {
        let (line, column) = place(self.text, at);
        format!("{}:{line}:{column}", self.file)
    }

    /// Whether nothing was found so far.
    pub fn clean(&self) -> bool {
        self.problems.is_empty()
    }

    /// Everything found, in the order of the file; last what is nowhere in it.
    pub fn into_problems(mut self) -> Vec<ConfigProblem> {
        self.problems.sort_by_key(|(nowhere, p)| (*nowhere, p.line, p.column));
        self.problems.dedup();
        self.problems.into_iter().map(|(_, p)| p).collect()
    }

    /// Every key that was asked for, such as `serve.port`.
    pub fn into_keys(self) -> BTreeSet<String> {
        self.keys
    }
}

impl<'t> Section<'t> {
    /// The whole document.
    pub fn root(document: &'t Spanned<DeTable<'t>>) -> Self {
        Self {
            path: String::new(),
            at: 0,
            table: Some(document.get_ref()),
            asked: Vec::new(),
            taken: Vec::new(),
        }
    }

    /// With the names in it that are taken for others.
    pub fn taking(mut self, r: &Reader<'_>) -> Self {
        self.taken = r.taken.get(&self.path).cloned().unwrap_or_default();
        self
    }

    /// The full name of a key of this section.
    pub fn key(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    /// Where the section stands.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Whether the file holds the key, right or wrong.
    pub fn has(&self, key: &str) -> bool {
        self.value(key).is_some()
    }

    /// Where the key's value stands, or the section where there is none.
    pub fn at_key(&self, key: &str) -> usize {
        self.value(key).map_or(self.at, |v| v.span().start)
    }

    /// The key's value; one that is written under another name where there is none.
    fn value(&self, key: &str) -> Option<&'t Spanned<DeValue<'t>>> {
        self.table?.get(key).or_else(|| self.meant(key).next())
    }

    /// What stands under other names that are taken for the key.
    fn meant(&self, key: &str) -> impl Iterator<Item = &'t Spanned<DeValue<'t>>> {
        let names = self.taken.iter().filter(move |(_, known)| *known == key);
        names.filter_map(|(written, _)| self.table?.get(written.as_str()))
    }

    /// Whether the key itself is written, and not another name that is taken for it.
    fn written(&self, key: &str) -> bool {
        self.table.is_some_and(|t| t.contains_key(key))
    }

    fn ask(&mut self, r: &mut Reader<'_>, key: &'static str) -> Option<&'t Spanned<DeValue<'t>>> {
        self.asked.push(key);
        r.keys.insert(self.key(key));
        self.value(key)
    }

    /// A value of one kind: `read` gives `None` for another kind.
    fn typed<T>(
        &mut self,
        r: &mut Reader<'_>,
        key: &'static str,
        wanted: &str,
        read: impl Fn(&'t DeValue<'t>) -> Option<T>,
    ) -> Option<At<T>> {
        let value = self.ask(r, key)?;
        let at = value.span().start;
        let got = read(value.get_ref());
        // Of another name it is known already that it is wrong.
        if got.is_none() && self.written(key) {
            let message = format!("`{key}` is {}", kind_of(value.get_ref()));
            r.problem(at, &self.key(key), message, format!("write {wanted}"));
        }
        got.map(|value| At { value, at })
    }

    /// Reports the key as missing when the file does not hold it. A wrong value has been reported already.
    pub fn require<T>(&self, r: &mut Reader<'_>, key: &str, got: Option<T>, line: &str) -> Option<T> {
        if got.is_none() && !self.has(key) {
            let section = if self.path.is_empty() {
                "at the top"
            } else {
                &format!("in {}", self.header())
            };
            let nowhere = self.table.is_none();
            let message = format!("`{key}` is missing {section}");
            r.report(nowhere, self.at, &self.key(key), message, format!("write {line}"));
        }
        got
    }

    /// The section's header as one writes it.
    pub fn header(&self) -> String {
        match self.path.as_str() {
            "node" | "ssh.jump" => format!("[[{}]]", self.path),
            path => format!("[{path}]"),
        }
    }

    /// A table inside this one; an absent one reads as empty.
    pub fn section(&mut self, r: &mut Reader<'_>, key: &'static str) -> Section<'t> {
        let path = self.key(key);
        let wanted = format!("a table: [{path}]");
        let found = self.typed(r, key, &wanted, DeValue::as_table);
        Section {
            path,
            at: found.as_ref().map_or(self.at, |f| f.at),
            table: found.map(|f| f.value),
            asked: Vec::new(),
            taken: Vec::new(),
        }
        .taking(r)
    }

    /// A list of tables, such as `[[node]]`; with `texts` a member may be text too. `None` when there is no list.
    pub fn items(&mut self, r: &mut Reader<'_>, key: &'static str, texts: bool) -> Option<Vec<Item<'t>>> {
        let path = self.key(key);
        let texts_too = if texts {
            format!(" or a list of texts: {key} = [\"…\"]")
        } else {
            String::new()
        };
        let wanted = format!("a list of tables: [[{path}]]{texts_too}");
        let list = self.typed(r, key, &wanted, DeValue::as_array)?;
        // Members under another name stand beside those under the right one.
        let written = self.written(key);
        let more = self.meant(key).filter(|_| written);
        let more = more.filter_map(|v| v.get_ref().as_array()).flatten();
        let mut items = Vec::new();
        for value in list.value.iter().chain(more) {
            let at = value.span().start;
            match value.get_ref() {
                DeValue::Table(table) => items.push(Item::Table(
                    Section {
                        path: path.clone(),
                        at,
                        table: Some(table),
                        asked: Vec::new(),
                        taken: Vec::new(),
                    }
                    .taking(r),
                )),
                DeValue::String(text) if texts => {
                    let text = At {
                        value: text.clone().into_owned(),
                        at,
                    };
                    items.extend(self.good_text(r, key, text).map(Item::Text));
                }
                other => {
                    let message = format!("`{key}` holds {}", kind_of(other));
                    r.problem(at, &path, message, format!("write {wanted}"));
                }
            }
        }
        Some(items)
    }

    /// Every key with its text, in the order of the file. For tables whose keys are the operator's own.
    pub fn pairs(&mut self, r: &mut Reader<'_>) -> Vec<(At<String>, At<String>)> {
        let mut pairs = Vec::new();
        for (key, value) in self.table.into_iter().flatten() {
            let (name, at) = (key.get_ref().clone().into_owned(), value.span().start);
            let Some(text) = value.get_ref().as_str() else {
                let message = format!("`{name}` is {}", kind_of(value.get_ref()));
                r.problem(
                    at,
                    &self.key(&name),
                    message,
                    format!("write text in quotes: {name} = \"…\""),
                );
                continue;
            };
            let value = At {
                value: text.to_owned(),
                at,
            };
            pairs.push((
                At {
                    value: name,
                    at: key.span().start,
                },
                value,
            ));
        }
        pairs.sort_by_key(|(key, _)| key.at);
        pairs
    }

    /// Reports every key that nobody asked for.
    pub fn finish(self, r: &mut Reader<'_>) {
        for key in self.table.into_iter().flat_map(|t| t.keys()) {
            let name = key.get_ref().as_ref();
            if self.asked.contains(&name) {
                continue;
            }
            let near = nearest(name, &self.asked);
            let other = meant(&self.path, name).map(|meant| here(&self.path, meant, &self.asked));
            if let Some(known) = other.unwrap_or(near) {
                let names = r.found.entry(self.path.clone()).or_default();
                names.push((name.to_owned(), known));
            }
            let fix = match (meant(&self.path, name), near, hint(&self.path)) {
                (Some(meant), ..) => format!("did you mean {meant}?"),
                (None, Some(known), _) => format!("did you mean `{known}`?"),
                (None, None, Some(hint)) => format!("known here: {}; {hint}", self.asked.join(", ")),
                (None, None, None) => format!("known here: {}", self.asked.join(", ")),
            };
            let place = if self.path.is_empty() {
                "at the top".to_owned()
            } else {
                format!("in {}", self.header())
            };
            r.problem(
                key.span().start,
                &self.key(name),
                format!("unknown key `{name}` {place}"),
                fix,
            );
        }
    }
}

/// The known key of the same table that is meant, where it is one: `a table [[node]] for each` at the top, or `` `keys` `` in [ssh].
fn here(path: &str, meant: &str, known: &[&'static str]) -> Option<&'static str> {
    let name = match meant.strip_prefix("a table ") {
        Some(table) => {
            let end = table.find(']')?;
            let name = table.get(..end)?.trim_start_matches('[');
            let inside = name.strip_prefix(path).filter(|_| !path.is_empty());
            inside.map_or(name, |name| name.trim_start_matches('.'))
        }
        None => meant.strip_prefix('`')?.strip_suffix('`')?,
    };
    known.iter().copied().find(|k| *k == name)
}

/// What kind of value it is, in words.
fn kind_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
