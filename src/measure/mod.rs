//! The arithmetic of a throughput test, and of a server's own counters over a window.
//!
//! Owns the definitions of TTFT, TPOT, ITL and E2EL, the rates, the figures while a test runs and the result as JSON. Never sends a request, reads a
//! clock or writes a file: records and durations come in, numbers go out.
//!
//! Invariants: what is not known is `None` and never zero; a failed request counts as a failure and gives no time and no token; percentiles never
//! fall as the quantile rises.

pub mod live;
pub mod quantile;
pub mod report;
pub mod result;
pub mod spread;
pub mod window;

pub use live::Live;
pub use quantile::Quantile;
pub use report::Report;
pub use spread::Spread;
pub use window::{Figures, Rates, Window};
