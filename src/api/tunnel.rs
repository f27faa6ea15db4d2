//! A private Unix socket in front of a port of the head: each connection to it is joined to a stream that [`Connect`] opens.
//!
//! No TCP port is opened, and the directory (mode 0700) keeps other users of the machine away.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use crate::record::Folder;

use super::connect::{Connect, ConnectError};

/// Connections of one tunnel at a time; more wait in the socket's backlog. It leaves room for probes beside the largest throughput test.
pub const CONNECTIONS: usize = 320;

/// Longest wait for the head to open a stream.
const OPEN_LIMIT: Duration = Duration::from_secs(10);

/// Pause after the local socket could not accept (no file descriptors left).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Longest socket path that every supported system takes, in bytes (macOS takes 104 with the final NUL).
const SOCKET_PATH: usize = 100;

/// Room that a socket's own name needs in its directory's path, in bytes.
const SOCKET_NAME: usize = 16;

/// The directory for the sockets of one client, mode 0700, removed when dropped.
///
/// # Errors
/// When no directory can be made.
pub fn private_directory() -> io::Result<Folder> {
    let directory = Folder::make(&std::env::temp_dir(), "")?;
    if directory.path().as_os_str().len() + SOCKET_NAME <= SOCKET_PATH {
        return Ok(directory);
    }
    Folder::make(Path::new("/tmp"), "")
}

/// A tunnel to one port. Dropping it ends its connections.
pub struct Tunnel {
    path: PathBuf,
    failures: Arc<Failures>,
    _task: AbortOnDropHandle<()>,
}

impl Tunnel {
    /// Listens in `directory` for `host:port`. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// When the socket cannot be made.
    pub fn open(directory: &Path, connector: Arc<dyn Connect>, host: &str, port: u16) -> io::Result<Self> {
        Self::open_with(directory, connector, host, port, CONNECTIONS)
    }

    fn open_with(
        directory: &Path,
        connector: Arc<dyn Connect>,
        host: &str,
        port: u16,
        connections: usize,
    ) -> io::Result<Self> {
        let path = directory.join(format!("{port}.sock"));
        let listener = UnixListener::bind(&path)?;
        let failures = Arc::new(Failures::default());
        let far = Far {
            connector,
            host: host.to_owned(),
            port,
            failures: Arc::clone(&failures),
        };
        let task = AbortOnDropHandle::new(tokio::spawn(accept(listener, Arc::new(far), connections)));
        Ok(Self {
            path,
            failures,
            _task: task,
        })
    }

    /// The socket's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A mark of now, for [`Tunnel::failure_since`].
    #[must_use]
    pub fn mark(&self) -> u64 {
        self.failures.lock(|f| f.count)
    }

    /// The newest failure to open a stream since the mark was taken. The HTTP client sees only that its connection closed; this says why. A failure is
    /// written before its connection is closed.
    #[must_use]
    pub fn failure_since(&self, mark: u64) -> Option<ConnectError> {
        self.failures.lock(|f| f.newest.clone().filter(|_| f.count > mark))
    }
}

#[derive(Default)]
struct Failures(Mutex<FailureLog>);

#[derive(Default)]
struct FailureLog {
    count: u64,
    newest: Option<ConnectError>,
}

impl Failures {
    fn add(&self, error: ConnectError) {
        self.lock(|f| {
            f.count += 1;
            f.newest = Some(error);
        });
    }

    fn lock<T>(&self, look: impl FnOnce(&mut FailureLog) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The port behind a tunnel.
struct Far {
    connector: Arc<dyn Connect>,
    host: String,
    port: u16,
    failures: Arc<Failures>,
}

async fn accept(listener: UnixListener, far: Arc<Far>, connections: usize) {
    let slots = Arc::new(Semaphore::new(connections));
    // Dropped with this task, which ends every connection.
    let mut joined = JoinSet::new();
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else {
            return;
        };
        while joined.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((near, _)) => {
                let far = Arc::clone(&far);
                joined.spawn(async move {
                    join(near, &far).await;
                    drop(slot);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "private socket cannot accept");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn join(near: UnixStream, far: &Far) {
    let opening = far.connector.open(&far.host, far.port);
    let opened = tokio::time::timeout(OPEN_LIMIT, opening).await.unwrap_or_else(|_| {
        let why = format!("no connection within {} s", OPEN_LIMIT.as_secs());
        Err(ConnectError::Unreachable(why))
    });
    match opened {
        Ok(stream) => {
            let (mut far_read, mut far_write) = tokio::io::split(stream);
            let (mut near_read, mut near_write) = near.into_split();
            // The HTTP client never closes one half alone: when either side ends, so does the other. Waiting for both would keep a stream to a
            // server that hangs after its client has gone.
            let ended = tokio::select! {
                _ = tokio::io::copy(&mut near_read, &mut far_write) => Ok(0),
                ended = tokio::io::copy(&mut far_read, &mut near_write) => ended,
            };
            // Some streams learn only after they were opened that nobody listens.
            if ended.is_err_and(|e| e.kind() == io::ErrorKind::ConnectionRefused) {
                far.failures.add(ConnectError::Refused);
            }
        }
        Err(error) => far.failures.add(error),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::FutureExt;
    use futures_util::future::BoxFuture;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::sync::mpsc;

    use super::*;
    use crate::api::connect::ByteStream;

    /// Hands the far end of each opened stream to the test.
    struct Ends(mpsc::UnboundedSender<tokio::io::DuplexStream>, AtomicUsize);

    impl Connect for Ends {
        fn open<'a>(&'a self, _: &'a str, _: u16) -> BoxFuture<'a, Result<Box<dyn ByteStream>, ConnectError>> {
            let (near, far) = tokio::io::duplex(4096);
            self.1.fetch_add(1, Ordering::SeqCst);
            let sent = self.0.send(far);
            async move {
                sent.map_err(|_| ConnectError::Refused)?;
                Ok(Box::new(near) as Box<dyn ByteStream>)
            }
            .boxed()
        }
    }

    fn ends() -> (Arc<Ends>, mpsc::UnboundedReceiver<tokio::io::DuplexStream>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Arc::new(Ends(sender, AtomicUsize::new(0))), receiver)
    }

    #[test]
    #[cfg(unix)]
    fn the_directory_is_private_and_goes_away() {
        use std::os::unix::fs::PermissionsExt;
        let directory = private_directory().unwrap();
        let path = directory.path().to_owned();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(path.as_os_str().len() + SOCKET_NAME <= SOCKET_PATH);
        drop(directory);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn bytes_go_both_ways_and_an_end_ends_both() {
        let (connector, mut far_ends) = ends();
        let directory = private_directory().unwrap();
        let tunnel = Tunnel::open(directory.path(), connector, "127.0.0.1", 8000).unwrap();
        let mut near = UnixStream::connect(tunnel.path()).await.unwrap();
        let mut far = far_ends.recv().await.unwrap();
        near.write_all(b"question").await.unwrap();
        let mut bytes = [0; 8];
        far.read_exact(&mut bytes).await.unwrap();
        assert_eq!(&bytes, b"question");
        far.write_all(b"answer").await.unwrap();
        drop(far);
        let mut all = Vec::new();
        near.read_to_end(&mut all).await.unwrap();
        assert_eq!(all, b"answer");
        // The other way: the client goes while the server stays silent.
        let near = UnixStream::connect(tunnel.path()).await.unwrap();
        let mut far = far_ends.recv().await.unwrap();
        drop(near);
        assert_eq!(far.read(&mut bytes).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn no_more_connections_than_allowed_are_opened() {
        let (connector, mut far_ends) = ends();
        let directory = private_directory().unwrap();
        let tunnel = Tunnel::open_with(directory.path(), Arc::clone(&connector) as _, "h", 1, 2).unwrap();
        let mut near = Vec::new();
        for _ in 0..3 {
            near.push(UnixStream::connect(tunnel.path()).await.unwrap());
        }
        let first = far_ends.recv().await.unwrap();
        let _second = far_ends.recv().await.unwrap();
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(connector.1.load(Ordering::SeqCst), 2);
        drop(first);
        far_ends.recv().await.unwrap();
        assert_eq!(connector.1.load(Ordering::SeqCst), 3);
    }

    #[tokio::test]
    async fn a_failure_is_known_before_the_connection_closes() {
        let (connector, far_ends) = ends();
        drop(far_ends);
        let directory = private_directory().unwrap();
        let tunnel = Tunnel::open(directory.path(), connector, "h", 1).unwrap();
        let mark = tunnel.mark();
        assert_eq!(tunnel.failure_since(mark), None);
        let mut near = UnixStream::connect(tunnel.path()).await.unwrap();
        assert_eq!(near.read(&mut [0]).await.unwrap(), 0);
        assert_eq!(tunnel.failure_since(mark), Some(ConnectError::Refused));
        assert_eq!(tunnel.failure_since(tunnel.mark()), None);
    }
}
