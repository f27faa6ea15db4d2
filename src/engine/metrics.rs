//! What an engine's counters are called.
