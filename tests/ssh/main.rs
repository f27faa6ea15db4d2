//! The SSH room against a real shell, an in-process server and a real sshd.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(clippy::print_stderr, reason = "a test that is left out says so")]

mod certificates;
mod commands;
mod follows;
mod hardware_keys;
mod hops;
mod host_certificates;
mod host_keys;
mod interactive;
mod log_sources;
mod logins;
mod nodes;
mod pam;
mod person;
mod processes;
mod server;
mod ssh_config;
mod sshd;
mod tunnels;
mod wrapper;
