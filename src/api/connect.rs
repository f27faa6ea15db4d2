//! Who opens byte streams to the head's ports: `drive` through SSH, tests in memory.

use futures_util::future::BoxFuture;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};

/// A stream of bytes both ways.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// Opens byte streams to ports as the head sees them.
pub trait Connect: Send + Sync {
    /// Opens a stream to `host:port`. Dropping the stream closes it on both sides.
    fn open<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, Result<Box<dyn ByteStream>, ConnectError>>;
}

/// Why there is no stream.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConnectError {
    /// The head could be asked, and its port refuses: nothing listens there.
    #[error("connection refused")]
    Refused,
    /// The head could not be asked, and why.
    #[error("{0}")]
    Unreachable(String),
}
