//! `bench`: the throughput test without the screen.

use std::fmt::Write;
use std::time::Duration;

use color_eyre::eyre::Result;

use crate::domain::bench::Tally;
use crate::domain::count::things;
use crate::domain::intent::Intent;
use crate::domain::time::human;
use crate::measure::Report;
use crate::model::bench::BenchPhase;
use crate::report;

use super::args::Args;
use super::exit::Exit;
use super::headless::{Headless, Waited, reaching, server_answered, unreachable};
use super::{logfile, out, start};

/// Longest whole test: a bound on the wait, beyond the bound of each request.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// `bringup bench`.
///
/// # Errors
/// When the console can't be started.
pub(super) async fn bench(args: &Args, json: bool) -> Result<Exit> {
    let config = match start::load(args) {
        Ok(config) => config,
        Err(exit) => return Ok(exit),
    };
    let _log = logfile::start(&args.log_level);
    let mut headless = Headless::new(start::open(args, config, true).await?)?;
    let exit = test(&mut headless, json).await;
    Ok(headless.leave(exit).await)
}

async fn test(headless: &mut Headless, json: bool) -> Exit {
    let limit = reaching(&headless.console.state().config);
    let waited = headless
        .until(limit, |s| s.nodes_answered() && server_answered(s))
        .await;
    if let Waited::Signal(exit) = waited {
        return exit;
    }
    let state = headless.console.state();
    let lost = unreachable(state);
    if !lost.is_empty() {
        lost.iter().for_each(|line| out::say(line));
        return Exit::Unreachable;
    }
    if let Some(why) = state.test_refusal() {
        out::error(&why);
        return Exit::NotServing;
    }
    headless.console.intent(Intent::Bench);
    headless.console.intent(Intent::Confirm);
    let over = |s: &crate::model::State| {
        s.bench.as_ref().is_some_and(|b| match b.phase {
            BenchPhase::Running => false,
            BenchPhase::Done(_) => b.saved.is_some() || b.unsaved.is_some(),
            BenchPhase::Failed(_) | BenchPhase::Cancelled => true,
        })
    };
    match headless.until(LONGEST, over).await {
        Waited::Signal(exit) => {
            headless.console.intent(Intent::Bench);
            return exit;
        }
        Waited::Late => return Exit::Failed,
        Waited::True => {}
    }
    let Some(bench) = &headless.console.state().bench else {
        return Exit::Failed;
    };
    match &bench.phase {
        BenchPhase::Running | BenchPhase::Cancelled => Exit::Failed,
        BenchPhase::Failed(_) => {
            bench.trouble().iter().for_each(|why| out::error(why));
            Exit::Failed
        }
        BenchPhase::Done(_) => {
            let Some(figures) = &bench.report else {
                return Exit::Failed;
            };
            let now = headless.console.now().wall;
            match report::bench::bench(headless.console.state(), now) {
                Some(result) if json => {
                    out::json(&result);
                }
                Some(_) | None => {
                    out::line(text(figures, bench.tally).trim_end());
                    if let Some(path) = &bench.saved {
                        out::line(&format!("saved as {path}"));
                    }
                }
            }
            bench.unsaved.iter().for_each(|why| out::error(why));
            let trouble = bench.trouble();
            trouble.iter().for_each(|why| out::error(why));
            if trouble.is_none() { Exit::Done } else { Exit::Failed }
        }
    }
}

/// The figures in a few lines for a person.
fn text(report: &Report, tally: Option<Tally>) -> String {
    let mut text = String::new();
    let rate = |r: Option<f64>| r.map_or_else(|| "-".to_owned(), |v| format!("{v:.1}"));
    let ms = |d: Duration| format!("{:.1}", d.as_secs_f64() * 1000.0);
    let _ok = writeln!(
        text,
        "requests      {} ok, {} failed in {}",
        report.successes,
        report.failures,
        human(report.duration)
    );
    for (error, count) in &report.errors {
        let _ok = writeln!(text, "  {count} x {error}");
    }
    let _ok = writeln!(
        text,
        "output        {} tok/s, {}",
        rate(report.output_rate),
        things(report.output_tokens, "token")
    );
    if report.failures > 0 && report.successes > 0 {
        let good = things(report.successes, "request");
        let _ok = writeln!(
            text,
            "              this and the times below are of the {good} that succeeded"
        );
    }
    if report.counted_by_server == Some(false) {
        let _ok = writeln!(
            text,
            "              the server did not count all of them: some are chunks"
        );
    }
    if let Some(counted) = tally.and_then(|t| t.server_tokens) {
        let _ok = writeln!(
            text,
            "              the server itself counted {counted}, those of other clients among them"
        );
    }
    let rows = [
        ("TTFT", report.ttft),
        ("TPOT", report.tpot),
        ("ITL", report.itl),
        ("E2EL", report.e2el),
    ];
    for (name, spread) in rows {
        let Some(s) = spread else { continue };
        let (mean, median, p90, p99) = (ms(s.mean), ms(s.median), ms(s.p90), ms(s.p99));
        let _ok = writeln!(
            text,
            "{name:<5} ms      mean {mean}  p50 {median}  p90 {p90}  p99 {p99}"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use crate::domain::bench::RequestRecord;

    use super::*;

    #[test]
    fn failures_are_counted_with_their_errors_and_the_figures_are_named_as_those_of_the_rest() {
        let record = |error: Option<&str>| RequestRecord {
            index: 0,
            sent: Duration::ZERO,
            chunks: [100, 150].map(Duration::from_millis).to_vec(),
            output_tokens: 2,
            counted_by_server: true,
            prompt_tokens: Some(8),
            error: error.map(str::to_owned),
        };
        let shown = |records: &[RequestRecord]| text(&Report::of(records, Duration::from_secs(2)), None);
        let some = shown(&[
            record(None),
            record(Some("503: overloaded")),
            record(Some("503: overloaded")),
        ]);
        for part in [
            "1 ok, 2 failed",
            "  2 x 503: overloaded\n",
            "this and the times below are of the 1 request that succeeded\n",
        ] {
            assert!(some.contains(part), "{part}\n{some}");
        }
        for whole in [vec![record(None)], vec![record(Some("gone"))]] {
            assert!(!shown(&whole).contains("that succeeded"), "{}", shown(&whole));
        }
    }
}
