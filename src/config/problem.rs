//! What is wrong in a file, where, and what to write instead.

/// A problem with its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}; {fix}")]
pub struct ConfigProblem {
    /// The file, as the operator names it.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The key it is about, such as `serve.port`; empty when it is about the text itself.
    pub key: String,
    /// What is wrong; a fragment. Never holds a value that looks like a secret.
    pub message: String,
    /// What to write instead; a fragment.
    pub fix: String,
}

/// Line and column of a byte offset, both from 1; the column counts characters.
#[must_use]
pub(super) fn place(text: &str, at: usize) -> (usize, usize) {
    let before: Vec<char> = text
        .char_indices()
        .take_while(|(offset, _)| *offset < at)
        .map(|(_, c)| c)
        .collect();
    let line = before.iter().filter(|c| **c == '\n').count() + 1;
    let column = before.iter().rev().take_while(|c| **c != '\n').count() + 1;
    (line, column)
}

/// The known name nearest to what was written, when one is near enough to be meant.
#[must_use]
pub(super) fn nearest<'a>(written: &str, known: &[&'a str]) -> Option<&'a str> {
    let written = written.to_lowercase().replace('-', "_");
    let near = |name: &&'a str| (distance(&written, &name.replace('-', "_")), *name);
    let (distance, name) = known.iter().map(near).min_by_key(|(distance, _)| *distance)?;
    (distance <= (name.len() / 3).max(1)).then_some(name)
}

/// Edits between two words: insert, delete, replace, swap two neighbours.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    // rows[i][j]: edits from the first i letters of `a` to the first j of `b`.
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    let cell = |rows: &[Vec<usize>], i: usize, j: usize| rows.get(i).and_then(|row| row.get(j)).copied();
    for (i, from) in a.iter().enumerate() {
        rows.push(vec![i + 1]);
        for (j, to) in b.iter().enumerate() {
            let replaced = cell(&rows, i, j).map(|n| n + usize::from(from != to));
            let deleted = cell(&rows, i, j + 1).map(|n| n + 1);
            let inserted = cell(&rows, i + 1, j).map(|n| n + 1);
            let before = |word: &[char], n: usize| n.checked_sub(1).and_then(|n| word.get(n)).copied();
            let crossed = before(&a, i) == Some(*to) && before(&b, j) == Some(*from);
            let swapped = crossed.then(|| cell(&rows, i - 1, j - 1)).flatten().map(|n| n + 1);
            let least = [replaced, deleted, inserted, swapped].into_iter().flatten().min();
            rows.last_mut().into_iter().for_each(|row| row.extend(least));
        }
    }
    cell(&rows, a.len(), b.len()).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_counts_lines_and_characters() {
        let text = "a = 1\nü = 2\n";
        assert_eq!(place(text, 0), (1, 1));
        assert_eq!(place(text, 6), (2, 1));
        assert_eq!(place(text, 8), (2, 2));
        assert_eq!(place(text, 999), (3, 1));
    }

    #[test]
    fn the_nearest_key_is_one_that_could_be_meant() {
        let known = ["model", "served_name", "port", "tensor_parallel_size"];
        assert_eq!(nearest("modle", &known), Some("model"));
        assert_eq!(nearest("tensor-parallel-size", &known), Some("tensor_parallel_size"));
        assert_eq!(nearest("prot", &known), Some("port"));
        assert_eq!(nearest("host", &known), None);
        assert_eq!(nearest("Port", &known), Some("port"));
        assert_eq!(nearest("quantization", &known), None);
    }
}
