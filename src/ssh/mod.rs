//! SSH: the way in.
//!
//! Owns dialling, host keys, authentication, the chain of hops, commands with limits of time and bytes, streams that end with the console, and
//! tunnels. It moves bytes and reads none of them. It never decides what to run, never forwards an agent, never writes to the terminal.
//!
//! Invariants:
//! - One task per channel reads it without pause: a channel that nobody reads would stall every other one of its connection, and all nodes behind a jump
//!   host. A command whose reader falls behind is held on its node ([`pipe`]); what finds no room all the same is dropped with a count.
//! - Every wait has a bound. None of them runs while a person is asked something.
//! - An unknown host key is a question, a changed or revoked one refuses. No key is accepted silently.
//! - What runs on a node ends when its channel ends ([`crate::domain::wrap`]); a wrapper that waits for the next command does so too.
//! - A connection whose peer has said nothing for [`GIVE_UP_AFTER`] is cut; a refused channel never cuts one.

mod again;
mod agent;
mod alias;
mod auth;
mod authority;
mod candidates;
mod channel;
mod command;
mod dial;
mod door;
mod errors;
mod files;
mod fix;
mod hearing;
mod held;
mod hop;
mod host_key;
mod interactive;
mod jumps;
mod keyring;
mod keys;
mod known_hosts;
mod link;
mod offer;
mod paced;
mod pipe;
mod proxy;
mod relay;
mod session;
mod settings;
mod slots;
mod spare;
mod ssh_config;
mod ssh_file;
mod tcp;
#[doc(hidden)]
pub mod texts;
mod tokens;
mod tunnel;
mod wire;

pub use again::Pauses;
pub use hop::HopHandle;
pub use jumps::proxy_jumps;
pub use keyring::Keyring;
pub use link::{GIVE_UP_AFTER, SILENT_AFTER};
pub use pipe::{Chunks, HOLD_AT, Inlet, MOST, pipe};
pub use session::{Chunk, Follow, Session, Stream};
pub use settings::{Reply, Reporter, Settings, Target, agent_socket};
pub use tunnel::{Tunnel, TunnelError};
