//! The throughput test's result: the file and what `bench --json` prints are the same object.

use serde_json::Value;

use crate::domain::Wall;
use crate::measure::result::{self, Context};
use crate::model::State;

/// The result of the latest test; `None` before it is over.
#[must_use]
pub fn bench(state: &State, ended: Wall) -> Option<Value> {
    let bench = state.bench.as_ref()?;
    let report = bench.report.as_ref()?;
    let context = Context {
        version: env!("CARGO_PKG_VERSION"),
        cluster: &state.config.cluster,
        engine: state.config.engine.word(),
        model: state.config.serve.name(),
        profile: &bench.profile,
        prompt: bench.prompt,
        tally: bench.tally,
        ended,
    };
    Some(result::json(report, &context))
}
