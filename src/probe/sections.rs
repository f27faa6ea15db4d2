//! Output in sections: `@@ NAME`, the section's lines, `@= EXIT CODE`.

/// What stands before a section's name.
const NAME: &str = "@@ ";

/// What stands before the exit code that ends a section.
const CODE: &str = "@= ";

/// One section.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Section<'a> {
    /// Its lines, without empty ones.
    pub lines: Vec<&'a str>,
    /// Exit code of its tool; `None` when the output ends before it.
    pub code: Option<u32>,
}

impl Section<'_> {
    /// Whether its tool ended with code 0.
    pub fn ok(&self) -> bool {
        self.code == Some(0)
    }

    /// Its lines as one text.
    pub fn text(&self) -> String {
        self.lines.join("\n")
    }
}

/// All sections of an output.
#[derive(Debug, Default)]
pub struct Sections<'a>(Vec<(&'a str, Section<'a>)>);

impl<'a> Sections<'a> {
    /// Splits an output. What stands before the first section is noise and dropped; so is a last line without an end, as it may be cut.
    pub fn read(text: &'a str) -> Self {
        let text = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let mut all: Vec<(&str, Section)> = Vec::new();
        for line in text.lines().map(|l| l.trim_end_matches('\r')) {
            if let Some(name) = line.strip_prefix(NAME) {
                all.push((name.trim(), Section::default()));
            } else if let Some((_, section)) = all.last_mut() {
                if let Some(code) = line.strip_prefix(CODE) {
                    section.code = code.trim().parse().ok();
                } else if !line.trim().is_empty() {
                    section.lines.push(line);
                }
            }
        }
        Self(all)
    }

    /// Whether a section of that name was begun.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Every section of that name.
    pub fn all(&self, name: &'a str) -> impl Iterator<Item = &Section<'a>> {
        self.0
            .iter()
            .filter(move |(n, _)| *n == name)
            .map(|(_, section)| section)
    }

    /// The section of that name, if it was begun.
    pub fn get(&self, name: &str) -> Option<&Section<'a>> {
        self.0.iter().find(|(n, _)| *n == name).map(|(_, section)| section)
    }
}
