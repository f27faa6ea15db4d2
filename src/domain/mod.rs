//! The words that all rooms share.
//!
//! Owns ids, units, time as a value, readings with an age, commands as data, the fact types (one file a subject), events, effects, intents and the
//! records of a throughput test. Never does IO, never reads a clock, imports no other room.
//!
//! Invariants: an unknown value is [`reading::Reading::Absent`] and never zero; a command becomes shell text only in [`command::Command::render`];
//! a secret is named here, never held.

pub mod address;
pub mod bench;
pub mod cadence;
pub mod clock;
pub mod command;
pub mod container;
pub mod count;
pub mod disk;
pub mod effect;
pub mod event;
pub mod fabric;
pub mod gpu;
pub mod histogram;
pub mod ids;
pub mod image;
pub mod intent;
pub mod link;
pub mod load;
pub mod logs;
pub mod memory;
pub mod observed;
pub mod problem;
pub mod question;
pub mod ray;
pub mod reading;
pub mod secret;
pub mod serving;
pub mod sign;
pub mod sockets;
pub mod ssh_line;
pub mod step;
pub mod time;
pub mod units;
pub mod wrap;

pub use ids::{HopId, NodeId, QuestionId, Role, RunId, Source, StepId};
pub use reading::{Reading, Reason};
pub use time::{Now, Stamp, Wall, When};
