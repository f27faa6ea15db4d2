//! Lines that were seen: one a rule at least. They stand under the headings of `assets/rules.toml`.

mod addresses;
mod between;
mod docker;
mod failing;
mod host;
mod image;
mod memory;
mod ray;

use crate::diagnose::Place;

/// Place, line, rule, clause on spark-1.
pub(super) type Seen = (Place, &'static str, &'static str, &'static str);

/// All of them.
pub(super) fn seen() -> Vec<Seen> {
    [
        addresses::LINES,
        ray::LINES,
        memory::LINES,
        host::LINES,
        image::LINES,
        docker::LINES,
        between::LINES,
        failing::LINES,
    ]
    .concat()
}
