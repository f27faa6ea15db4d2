//! Counts with what is counted, as a person reads them: the one place that knows when a noun is plural.

/// `1 node`, `2 nodes`, `12 345 lines`. `one` is the noun for one of them; of several words the last is the noun.
#[must_use]
pub fn things(n: impl TryInto<u64>, one: &str) -> String {
    let n = n.try_into().unwrap_or(u64::MAX);
    format!("{} {}", grouped(n), noun(n == 1, one))
}

/// The same of what may come in parts: `1 GPU`, `0.5 GPUs`, `8 GPUs`.
#[must_use]
pub fn amount(n: f64, one: &str) -> String {
    format!("{n} {}", noun((n - 1.0).abs() < f64::EPSILON, one))
}

/// The noun alone, for `one` of them or for several: `node`, `nodes`.
#[must_use]
pub fn noun(one: bool, word: &str) -> String {
    if one {
        return word.to_owned();
    }
    if let Some(stem) = word.strip_suffix("fe") {
        return format!("{stem}ves");
    }
    let hisses = ["s", "x", "ch", "sh"].iter().any(|end| word.ends_with(end));
    format!("{word}{}", if hisses { "es" } else { "s" })
}

/// A whole number in groups of three: `0`, `812`, `12 345`.
#[must_use]
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(c);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_them_is_singular_and_none_or_more_are_plural() {
        let cases = [
            (0, "node", "0 nodes"),
            (1, "node", "1 node"),
            (2, "dead node", "2 dead nodes"),
            (1, "process", "1 process"),
            (3, "process", "3 processes"),
            (2, "earlier life", "2 earlier lives"),
            (1_234_567, "line", "1 234 567 lines"),
        ];
        for (n, one, text) in cases {
            assert_eq!(things(n, one), text);
        }
        assert_eq!(things(1_usize, "GPU"), "1 GPU");
        for (n, text) in [(1.0, "1 GPU"), (0.5, "0.5 GPUs"), (0.0, "0 GPUs"), (8.0, "8 GPUs")] {
            assert_eq!(amount(n, "GPU"), text);
        }
    }

    #[test]
    fn counts_are_grouped() {
        for (n, text) in [(0, "0"), (999, "999"), (1000, "1 000"), (1_234_567, "1 234 567")] {
            assert_eq!(grouped(n), text);
        }
    }
}
