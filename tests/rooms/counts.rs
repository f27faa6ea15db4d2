//! Counts that stand before a noun in a text: `1 lines` is what comes of them. `domain::count` is the one place that knows the plural.
//!
//! Told from the line alone: a placeholder, a space, and one of the nouns that this program counts. A constant's name is no count, since its value is
//! known where the text is written.

/// What this program counts, as it stands after a number that is not one. A GPU is counted like all else.
const NOUNS: [&str; 19] = [
    "GPU",
    "GPUs",
    "bytes",
    "channels",
    "choices",
    "commands",
    "containers",
    "lines",
    "nodes",
    "others",
    "problems",
    "processes",
    "questions",
    "ranks",
    "records",
    "requests",
    "rules",
    "steps",
    "tokens",
];

/// Numbers of the lines of production code in which a placeholder stands before one of the nouns.
pub fn bare(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    for (i, line) in text.lines().enumerate() {
        if line.starts_with("#[cfg(test)]") {
            break;
        }
        if !line.trim_start().starts_with("//") && in_line(line) {
            found.push(i + 1);
        }
    }
    found
}

fn in_line(line: &str) -> bool {
    let ends = line.match_indices("} ").map(|(at, _)| at);
    ends.into_iter().any(|at| {
        let name = line[..at].rsplit('{').next().unwrap_or_default();
        let name = name.split(':').next().unwrap_or_default();
        let constant = !name.is_empty()
            && name
                .chars()
                .all(|c| c.is_ascii_uppercase() || c == '_' || c.is_ascii_digit());
        let after = &line[at + 2..];
        let word = after.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
        !constant && NOUNS.contains(&word)
    })
}

#[test]
fn a_count_before_a_noun_is_found_and_what_only_looks_so_is_not() {
    let text = "let a = format!(\"{n} lines\");\nlet b = format!(\"{MOST} bytes\");\n// {n} lines\nlet c = format!(\"{:.0} GPU\", n);\n\
                let d = format!(\"{name} runs\");\n#[cfg(test)]\nlet e = format!(\"{n} lines\");";
    assert_eq!(bare(text), [1, 4]);
}
