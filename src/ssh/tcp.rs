//! A TCP connection to any of a name's addresses: the next one is tried beside a slow one, as a dead address must not use up the time of all.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::net::TcpStream;

/// Head start of an address before the next one is tried beside it (RFC 8305, Connection Attempt Delay).
const HEAD_START: Duration = Duration::from_millis(250);

/// Connects to whichever address answers first; the limit holds for all of them together. `None` when none did in time.
pub(super) async fn connect(addresses: Vec<SocketAddr>, limit: Duration) -> Option<io::Result<TcpStream>> {
    tokio::time::timeout(limit, race(addresses, TcpStream::connect))
        .await
        .ok()
}

/// The first success, or the last error.
async fn race<A, T, F: Future<Output = io::Result<T>>>(addresses: Vec<A>, start: impl Fn(A) -> F) -> io::Result<T> {
    let mut waiting = addresses.into_iter();
    let mut started = FuturesUnordered::new();
    let mut error = io::Error::from(io::ErrorKind::AddrNotAvailable);
    loop {
        started.extend(waiting.next().map(&start));
        let head_start = async {
            match waiting.len() {
                0 => std::future::pending().await,
                _ => tokio::time::sleep(HEAD_START).await,
            }
        };
        tokio::select! {
            done = started.next() => match done {
                Some(Ok(stream)) => return Ok(stream),
                Some(Err(why)) => error = why,
                None => return Err(error),
            },
            () = head_start => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an address does.
    #[derive(Clone, Copy)]
    enum Does {
        Nothing,
        Refuses,
        Answers(u8),
    }

    async fn start(does: Does) -> io::Result<u8> {
        match does {
            Does::Nothing => std::future::pending().await,
            Does::Refuses => Err(io::ErrorKind::ConnectionRefused.into()),
            Does::Answers(number) => Ok(number),
        }
    }

    #[tokio::test]
    async fn one_dead_address_uses_up_the_time_of_no_other() {
        use Does::{Answers, Nothing, Refuses};
        let cases = [
            (vec![Answers(1), Answers(2)], Ok(1)),
            (vec![Nothing, Answers(2)], Ok(2)),
            (vec![Refuses, Answers(2)], Ok(2)),
            (vec![Nothing, Refuses, Nothing, Answers(4)], Ok(4)),
            (vec![Refuses, Refuses], Err(io::ErrorKind::ConnectionRefused)),
            (Vec::new(), Err(io::ErrorKind::AddrNotAvailable)),
        ];
        for (addresses, expected) in cases {
            assert_eq!(race(addresses, start).await.map_err(|e| e.kind()), expected);
        }
    }
}
