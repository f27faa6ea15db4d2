//! An SSH server that asks at its login, and nothing beyond it.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use russh::keys::{Algorithm, PrivateKey};
use russh::server::{Auth, Config, Handler, Response};
use russh::{MethodKind, MethodSet};
use tokio::net::TcpListener;

/// What it asks, whether the answer may be seen, and what is right.
const QUESTIONS: [(&str, bool, &str); 2] = [("Your desk: ", true, "north 7"), ("Code: ", false, "314159")];

/// It listens until this goes.
pub struct Asking {
    /// Where it listens on loopback.
    pub port: u16,
    /// Its line for a known_hosts file.
    pub known: String,
    _runtime: tokio::runtime::Runtime,
}

impl Asking {
    pub fn start() -> io::Result<Self> {
        let key =
            PrivateKey::random(&mut russh::keys::key::safe_rng(), Algorithm::Ed25519).map_err(io::Error::other)?;
        let public = key.public_key().to_openssh().map_err(io::Error::other)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0)))?;
        let port = listener.local_addr()?.port();
        let config = Arc::new(Config {
            keys: vec![key],
            methods: MethodSet::from([MethodKind::KeyboardInteractive].as_slice()),
            auth_rejection_time: Duration::ZERO,
            auth_rejection_time_initial: Some(Duration::ZERO),
            ..Config::default()
        });
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let config = Arc::clone(&config);
                tokio::spawn(async move {
                    if let Ok(running) = russh::server::run_stream(config, stream, Gate).await {
                        let _ended = running.await;
                    }
                });
            }
        });
        Ok(Self {
            port,
            known: format!("[127.0.0.1]:{port} {public}\n"),
            _runtime: runtime,
        })
    }
}

struct Gate;

impl Handler for Gate {
    type Error = russh::Error;

    async fn auth_keyboard_interactive<'a>(
        &'a mut self,
        _user: &str,
        _submethods: &str,
        response: Option<Response<'a>>,
    ) -> Result<Auth, Self::Error> {
        let Some(response) = response else {
            let prompts = QUESTIONS.map(|(text, echo, _)| (Cow::Borrowed(text), echo));
            return Ok(Auth::Partial {
                name: "".into(),
                instructions: "The gate".into(),
                prompts: prompts.to_vec().into(),
            });
        };
        let given: Vec<_> = response.collect();
        if QUESTIONS
            .iter()
            .map(|q| q.2.as_bytes())
            .eq(given.iter().map(|g| g.as_ref()))
        {
            return Ok(Auth::Accept);
        }
        Ok(Auth::Reject {
            proceed_with_methods: Some(MethodSet::from([MethodKind::KeyboardInteractive].as_slice())),
            partial_success: false,
        })
    }
}
