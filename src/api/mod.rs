//! HTTP to the model server and to Ray's dashboard, through an SSH tunnel.
//!
//! Owns the requests, the reading of their answers and the private sockets that join an HTTP client to a tunnel. Never opens a TCP port or connects to
//! one, never decides when to ask, never holds state of the cluster.
//!
//! Invariants: every answer is bounded in bytes and every wait in time; an error object is a failure, whatever the HTTP status beside it; a port that
//! refuses is told apart from a tunnel that is down; the API key goes to the model server only, and into no text.

pub mod answers;
#[cfg(test)]
mod captured;
pub mod chunk;
pub mod client;
pub mod connect;
pub mod error;
mod peer;
pub mod stream;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
pub mod tunnel;

pub use chunk::{Chunk, Usage};
pub use client::{Client, CompletionRequest, Endpoint, Place, TOKEN_LIMIT};
pub use connect::{ByteStream, Connect, ConnectError};
pub use error::ApiError;
pub use stream::Completion;
