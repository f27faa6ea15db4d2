//! One command on a node, told before and after.

use secrecy::SecretString;

use crate::domain::command::{Command, Exit, Output};
use crate::domain::event::{CommandDone, CommandStart, EventKind, Purpose};
use crate::domain::time::millis;
use crate::domain::{NodeId, RunId, Source};
use crate::log::{Masker, plain};
use crate::ssh::Session;

use super::feed::Feed;

/// Lines of output told with a command's end, from each stream.
const TOLD_LINES: usize = 20;

/// Characters kept of each such line.
const TOLD_CHARS: usize = 500;

/// Runs a command, with the secret that it wants or why there is none, and tells its start and its end.
#[expect(
    clippy::too_many_arguments,
    reason = "each is another room's, and there are three callers"
)]
pub(super) async fn run(
    session: Option<Session>,
    feed: &Feed,
    masker: &Masker,
    node: NodeId,
    id: RunId,
    purpose: Purpose,
    command: Command,
    secret: Result<Option<SecretString>, String>,
) -> Output {
    let source = Source::Node(node);
    feed.send(
        source,
        EventKind::CommandStarted(CommandStart {
            run: id,
            node,
            purpose,
            command: command.clone(),
        }),
    )
    .await;
    let output = match (session, secret) {
        (None, _) => not_started("there is no connection to the node"),
        (_, Err(why)) => not_started(&why),
        (Some(session), Ok(secret)) => session.exec(&command, secret).await,
    };
    tracing::info!(
        node = node.0,
        exit = output.exit.word(),
        ms = millis(output.took),
        command = masker.text(&command.line()).as_ref(),
        "command"
    );
    let done = CommandDone {
        run: id,
        exit: output.exit.clone(),
        stdout: told(&output.text(), masker),
        stderr: told(&output.error_text(), masker),
        took_ms: millis(output.took),
    };
    feed.send(source, EventKind::CommandDone(done)).await;
    output
}

fn not_started(why: &str) -> Output {
    Output {
        stdout: Vec::new(),
        stderr: Vec::new(),
        dropped: 0,
        exit: Exit::NotStarted(why.to_owned()),
        took: std::time::Duration::ZERO,
    }
}

/// The last lines of an output, without escape sequences and control characters, masked and cut.
pub(super) fn told(text: &str, masker: &Masker) -> Vec<String> {
    let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
    let skip = lines.len().saturating_sub(TOLD_LINES);
    // A secret that is cut is no longer found.
    let cut = |l: &str| -> String { l.chars().take(TOLD_CHARS).collect() };
    lines.iter().skip(skip).map(|l| cut(&masker.text(&plain(l)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_at_the_end_of_what_is_kept_of_a_line_is_masked() {
        let masker = Masker::new(["correct-horse-battery".to_owned()]);
        let text = format!("{} correct-horse-battery staple\n", "x".repeat(TOLD_CHARS - 10));
        let told = told(&text, &masker);
        assert_eq!(told, [format!("{} *** stapl", "x".repeat(TOLD_CHARS - 10))]);
    }
}
