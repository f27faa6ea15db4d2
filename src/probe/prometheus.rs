//! The Prometheus text format, read line by line: a line that can't be read is counted and skipped.
//!
//! Format: prometheus.io/docs/instrumenting/exposition_formats, and what OpenMetrics adds to it (`# EOF`, exemplars). Names may hold colons, as vLLM's
//! do.

/// Most samples read of one scrape.
const MAX_SAMPLES: usize = 100_000;

/// One sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Metric name.
    pub name: String,
    /// Labels in the text's order, unescaped.
    pub labels: Vec<(String, String)>,
    /// Value; may be NaN or infinite.
    pub value: f64,
}

impl Sample {
    /// Value of a label.
    #[must_use]
    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }
}

/// Reads a scrape: its samples, and how many lines could not be read.
#[must_use]
pub fn parse(text: &str) -> (Vec<Sample>, usize) {
    let mut samples = Vec::new();
    let mut bad = 0;
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match sample(line) {
            Some(sample) if samples.len() < MAX_SAMPLES => samples.push(sample),
            Some(_) | None => bad += 1,
        }
    }
    (samples, bad)
}

fn sample(line: &str) -> Option<Sample> {
    let (name, rest) = name(line, true)?;
    let rest = rest.trim_start();
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (Vec::new(), rest),
    };
    // A timestamp and an exemplar may follow the value.
    let mut words = rest.split_whitespace();
    let value = words.next()?.parse().ok()?;
    let sound = match words.next() {
        None | Some("#") => true,
        Some(time) => time.parse::<f64>().is_ok(),
    };
    sound.then(|| Sample {
        name: name.to_owned(),
        labels,
        value,
    })
}

/// A name at the start of the text, and what comes after it. Only a metric's name may hold colons.
fn name(text: &str, colons: bool) -> Option<(&str, &str)> {
    let of_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || (colons && c == ':');
    let end = text.find(|c| !of_name(c)).unwrap_or(text.len());
    let name = text.get(..end)?;
    let starts_well = name.starts_with(|c: char| !c.is_ascii_digit());
    starts_well.then_some((name, text.get(end..)?))
}

/// `a="b",c="d"}`: the labels and what comes after the brace. A comma before the brace is legal.
fn labels(text: &str) -> Option<(Vec<(String, String)>, &str)> {
    let mut labels = Vec::new();
    let mut rest = text.trim_start();
    loop {
        if let Some(after) = rest.strip_prefix('}') {
            return Some((labels, after));
        }
        let (label, after) = name(rest, false)?;
        let after = after.trim_start().strip_prefix('=')?.trim_start().strip_prefix('"')?;
        let (value, after) = quoted(after)?;
        labels.push((label.to_owned(), value));
        rest = after.trim_start();
        match rest.strip_prefix(',') {
            Some(after) => rest = after.trim_start(),
            None if rest.starts_with('}') => {}
            None => return None,
        }
    }
}

/// A label's value up to its closing quote, and what comes after it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, text.get(at + 1..)?)),
            '\\' => match chars.next()?.1 {
                'n' => value.push('\n'),
                c @ ('"' | '\\') => value.push(c),
                // Not a known escape: kept as it is written.
                c => value.extend(['\\', c]),
            },
            c => value.push(c),
        }
    }
    None
}
