//! Prompts of natural text whose size can be set to the token, each with a start of its own.

/// Most digits of the number that a prompt starts with. Standing alone, every digit costs the same number of tokens in the tokenizers that models use,
/// so prompts of one recipe have one size.
const DIGITS: u32 = 12;

/// One more than the largest number of [`DIGITS`] digits.
const NUMBERS: u64 = 10u64.pow(DIGITS);

/// Steps from one prompt's number to the next. It shares no factor with [`NUMBERS`], so numbers of one test never repeat, and it is near the golden
/// section, so their first digits differ.
const STRIDE: u64 = 618_033_988_749;

/// A word that is one token almost everywhere, to fill the last gap.
const FILLER: &str = " and";

/// Tokens a word costs before anything was measured.
const TOKENS_PER_WORD: f64 = 1.3;

/// Largest gap that is closed with fillers, in tokens.
const FILL: i64 = 12;

/// Difference in words from which on the cost of a word is taken from two counts.
const APART: u64 = 8;

/// The text, repeated as often as needed. Random words would mislead speculative decoding.
const TEXT: &str = "A harbour town wakes slowly in winter. The first boats leave before the light comes, and their lamps move over the black water \
    like a string of small stars. On the quay a man counts crates, writes a number into a notebook and blows on his fingers. The bakery opens next; its \
    window turns yellow, and the smell of bread reaches the ferry where the early workers stand close together and talk about the price of coal. A teacher \
    walks along the sea wall with a bag full of papers. She has read forty essays about the history of the lighthouse and has learned something new from \
    three of them. When the bell of the old church rings seven times, the shutters of the market go up one after the other. There are apples from the hills, \
    cheese in round wooden boxes, and fish that were swimming an hour ago. Children choose the longest way to school because it passes the engine shed, \
    where the mechanic lets them watch how a pump is taken apart, cleaned and put together again. By noon the fog has lifted. From the tower one can see \
    the whole bay, the islands in the north and the white line of the railway that brings the mail twice a day. ";

/// How to make prompts of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Recipe {
    digits: u32,
    words: u64,
    fillers: u64,
}

impl Recipe {
    /// About `tokens` tokens.
    pub(super) fn about(tokens: u64) -> Self {
        // A short prompt has no room for all digits.
        let digits = u32::try_from(tokens / 4).unwrap_or(DIGITS).clamp(1, DIGITS);
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a first guess"
        )]
        let words = (tokens as f64 / TOKENS_PER_WORD) as u64;
        Self {
            digits,
            words: words.saturating_sub(u64::from(digits)),
            fillers: 0,
        }
    }

    /// The prompt with this number, counted from the test's own random `start`.
    pub(super) fn prompt(&self, start: u64, number: u64) -> String {
        let unique = (u128::from(start) + u128::from(number) * u128::from(STRIDE)) % u128::from(NUMBERS);
        let padded = format!("{unique:0width$}", width = DIGITS as usize);
        let mut prompt = String::new();
        for digit in padded.chars().take(self.digits as usize) {
            prompt.push(digit);
            prompt.push(' ');
        }
        let words = TEXT.split_whitespace().cycle();
        for word in words.take(usize::try_from(self.words).unwrap_or(usize::MAX)) {
            prompt.push_str(word);
            prompt.push(' ');
        }
        prompt.pop();
        for _ in 0..self.fillers {
            prompt.push_str(FILLER);
        }
        prompt
    }
}

/// Comes nearer to a size, count by count.
#[derive(Debug, Clone)]
pub(super) struct Fit {
    want: u64,
    most_words: u64,
    recipe: Recipe,
    tokens_per_word: f64,
    last: Option<(Recipe, u64)>,
    best: Option<(Recipe, u64)>,
}

impl Fit {
    pub(super) fn to(want: u64) -> Self {
        Self {
            want,
            // A word is at least a quarter of a token, whatever a wrong count says.
            most_words: want.saturating_mul(4),
            recipe: Recipe::about(want),
            tokens_per_word: TOKENS_PER_WORD,
            last: None,
            best: None,
        }
    }

    /// What to count next.
    pub(super) fn recipe(&self) -> Recipe {
        self.recipe
    }

    /// The recipe that came nearest so far, and its count.
    pub(super) fn best(&self) -> Option<(Recipe, u64)> {
        self.best
    }

    /// Takes the count of [`Fit::recipe`]. True when it is exactly what is wanted.
    pub(super) fn counted(&mut self, count: u64) -> bool {
        let nearer = |(_, best): (Recipe, u64)| count.abs_diff(self.want) < best.abs_diff(self.want);
        if self.best.is_none_or(nearer) {
            self.best = Some((self.recipe, count));
        }
        if count == self.want {
            return true;
        }
        self.learn(count);
        self.last = Some((self.recipe, count));
        let gap = signed(self.want) - signed(count);
        if (1..=FILL).contains(&gap) {
            self.recipe.fillers += gap.unsigned_abs();
        } else {
            #[expect(
                clippy::cast_precision_loss,
                clippy::cast_possible_truncation,
                reason = "bounded to the words allowed"
            )]
            let words = (gap as f64 / self.tokens_per_word).floor() as i64;
            let words = signed(self.recipe.words).saturating_add(words).max(0);
            self.recipe.words = words.unsigned_abs().min(self.most_words);
        }
        false
    }

    #[expect(clippy::cast_precision_loss, reason = "a ratio")]
    fn learn(&mut self, count: u64) {
        let Some((before, tokens)) = self.last else { return };
        if before.words.abs_diff(self.recipe.words) >= APART {
            let tokens = count.abs_diff(tokens) as f64;
            let words = before.words.abs_diff(self.recipe.words) as f64;
            self.tokens_per_word = (tokens / words).clamp(0.25, 16.0);
        }
    }
}

fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn words(text: &str) -> u64 {
        text.split_whitespace().count() as u64
    }

    /// As a byte-pair tokenizer does: long words cost more.
    fn pieces(text: &str) -> u64 {
        text.split_whitespace().map(|w| w.len().div_ceil(5) as u64).sum::<u64>() + 1
    }

    fn characters(text: &str) -> u64 {
        (text.len() as u64).div_ceil(4)
    }

    #[test]
    fn the_size_is_met_exactly_with_any_tokenizer() {
        for (name, count) in [
            ("words", words as fn(&str) -> u64),
            ("pieces", pieces),
            ("characters", characters),
        ] {
            for want in [5, 16, 100, 512, 2048, 32_768] {
                let mut fit = Fit::to(want);
                let tries = (0..16).position(|n| fit.counted(count(&fit.recipe().prompt(77, n))));
                assert!(tries.is_some(), "{name} {want}: {:?}", fit.best());
                let (recipe, _) = fit.best().unwrap();
                for number in 100..110 {
                    assert_eq!(count(&recipe.prompt(77, number)), want, "{name}");
                }
            }
        }
    }

    #[test]
    fn a_size_that_cannot_be_met_is_met_nearly() {
        // A chat template alone is larger; and a count that is always even.
        let mut fit = Fit::to(10);
        for n in 0..16 {
            assert!(!fit.counted(words(&fit.recipe().prompt(0, n)) + 40));
        }
        assert_eq!(fit.best().unwrap().1, 40 + 2);
        let mut fit = Fit::to(101);
        for n in 0..16 {
            assert!(!fit.counted(2 * words(&fit.recipe().prompt(0, n))));
        }
        assert_eq!(fit.best().unwrap().1.abs_diff(101), 1);
    }

    #[test]
    fn wrong_counts_do_not_make_a_prompt_without_bounds() {
        let mut fit = Fit::to(100);
        for n in 0..100 {
            let length = fit.recipe().prompt(0, n).len();
            assert!(length < 100 * 4 * 20, "{length}");
            fit.counted(0);
        }
    }

    #[test]
    fn no_prompt_starts_like_another() {
        let recipe = Recipe::about(64);
        let starts: HashSet<String> = (0..10_000)
            .map(|n| {
                recipe
                    .prompt(123_456_789, n)
                    .chars()
                    .take(2 * DIGITS as usize)
                    .collect()
            })
            .collect();
        assert_eq!(starts.len(), 10_000);
        // The first eight digits alone tell them apart too: they are within a cache's first block.
        let starts: HashSet<String> = (0..10_000)
            .map(|n| recipe.prompt(123_456_789, n).chars().take(16).collect())
            .collect();
        assert_eq!(starts.len(), 10_000);
        assert_ne!(recipe.prompt(1, 0), recipe.prompt(2, 0));
    }
}
