//! Finds the way to ask, and makes the prompt to size with what the server can count.

use crate::api::{ApiError, Client, Endpoint, TOKEN_LIMIT};
use crate::domain::bench::PromptSizing;

use super::prompt::{Fit, Recipe};

/// Counts by /tokenize until the size must be met.
const TOKENIZE_TRIES: u64 = 16;

/// Requests whose usage is looked at until the size must be met; each costs the server a whole prompt.
const USAGE_TRIES: u64 = 5;

/// Prompt numbers that sizing may use; the test's own begin after them, so that no counted prompt was seen before.
pub(super) const NUMBERS_USED: u64 = 2 * TOKENIZE_TRIES;

/// The prompt, made to size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sized {
    pub(super) recipe: Recipe,
    pub(super) sizing: PromptSizing,
    /// As counted; with an estimate, as wanted.
    pub(super) tokens: u64,
    /// Output tokens that it cost.
    pub(super) spent: u64,
}

/// Which endpoint completes a text with this model, and the output tokens that it cost to know. One short request.
///
/// # Errors
/// When neither does, with what the first one said.
pub(super) async fn endpoint(client: &Client, model: &str) -> Result<(Endpoint, u64), ApiError> {
    let ask = async |endpoint| {
        let answer = client.complete(endpoint, model, "Hello", TOKEN_LIMIT).await?;
        Ok::<_, ApiError>((endpoint, answer.usage.completion_tokens.unwrap_or(0)))
    };
    match ask(Endpoint::Completions).await {
        Err(first) if first.not_offered() => match ask(Endpoint::Chat).await {
            Err(second) if second.not_offered() => Err(first),
            other => other,
        },
        other => other,
    }
}

/// Makes a prompt of `want` tokens.
pub(super) async fn size(client: &Client, endpoint: Endpoint, model: &str, want: u64, start: u64) -> Sized {
    if let Some(sized) = by_tokenize(client, endpoint, model, want, start).await {
        return sized;
    }
    if let Some(sized) = by_usage(client, endpoint, model, want, start).await {
        return sized;
    }
    Sized {
        recipe: Recipe::about(want),
        sizing: PromptSizing::Estimate,
        tokens: want,
        // Without usage nothing says what the tries cost.
        spent: 0,
    }
}

async fn by_tokenize(client: &Client, endpoint: Endpoint, model: &str, want: u64, start: u64) -> Option<Sized> {
    let mut fit = Fit::to(want);
    for number in 0..TOKENIZE_TRIES {
        let prompt = fit.recipe().prompt(start, number);
        // A count that fails once is worth nothing: the whole way is given up.
        if fit.counted(client.count_tokens(endpoint, model, &prompt).await.ok()??) {
            break;
        }
    }
    done(&fit, PromptSizing::Tokenize, 0)
}

async fn by_usage(client: &Client, endpoint: Endpoint, model: &str, want: u64, start: u64) -> Option<Sized> {
    let mut fit = Fit::to(want);
    let mut spent = 0;
    for number in 0..USAGE_TRIES {
        let prompt = fit.recipe().prompt(start, number);
        let answer = client.complete(endpoint, model, &prompt, TOKEN_LIMIT).await;
        // A prompt that the server refuses (longer than the model takes) leaves what was found before.
        let Ok(usage) = answer.map(|a| a.usage) else { break };
        spent += usage.completion_tokens.unwrap_or(0);
        let Some(count) = usage.prompt_tokens else { break };
        if fit.counted(count) {
            break;
        }
    }
    done(&fit, PromptSizing::Usage, spent)
}

fn done(fit: &Fit, sizing: PromptSizing, spent: u64) -> Option<Sized> {
    let (recipe, tokens) = fit.best()?;
    Some(Sized {
        recipe,
        sizing,
        tokens,
        spent,
    })
}
