//! Failures as sentences that name the hop and the stage.

use std::io;

use russh::ChannelOpenFailure;

use crate::domain::link::{LinkError, LinkErrorKind};

/// Longest text kept of what a server says.
const MAX_SAID: usize = 300;

/// A server's own words without control characters and without excess: it may say them before anybody knows who it is.
pub(super) fn printable(text: &str) -> String {
    text.chars()
        .filter(|c| !is_invisible(*c))
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(MAX_SAID)
        .collect::<String>()
        .trim()
        .to_owned()
}

/// Whether a character has no shape of its own, or turns the text after it around.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// An error of this kind, with nothing to copy.
pub(super) fn link_error(kind: LinkErrorKind, text: String) -> LinkError {
    LinkError { kind, text, fix: None }
}

/// What went wrong below SSH or in its handshake, as a fragment.
pub(super) fn fragment(error: &russh::Error) -> String {
    match error {
        russh::Error::NoCommonAlgo { kind, theirs, .. } => {
            let offered: Vec<&str> = theirs
                .iter()
                .map(String::as_str)
                .filter(|name| !is_marker(name))
                .collect();
            format!(
                "no common {} algorithm; the server offers {}",
                algorithm_kind(kind),
                printable(&offered.join(", "))
            )
        }
        russh::Error::Version => "what answers there is not an SSH server".to_owned(),
        russh::Error::IO(e) => io_fragment(e),
        russh::Error::HUP | russh::Error::Disconnect | russh::Error::SendError | russh::Error::RecvError => {
            "the server closed the connection (too many logins at once, or it does not let this address in)".to_owned()
        }
        russh::Error::WrongServerSig => "the server could not prove that it holds its host key".to_owned(),
        other => printable(&other.to_string().to_lowercase()),
    }
}

/// Whether a name in a list of key exchanges is only a sign of what the peer understands (RFC 8308, and OpenSSH's PROTOCOL on strict key exchange).
fn is_marker(name: &str) -> bool {
    name.starts_with("ext-info-") || name.starts_with("kex-strict-")
}

fn algorithm_kind(kind: &russh::AlgorithmKind) -> String {
    match kind {
        russh::AlgorithmKind::Kex => "key exchange".to_owned(),
        russh::AlgorithmKind::Key => "host key".to_owned(),
        other => format!("{other:?}").to_lowercase(),
    }
}

/// An IO error, as a fragment.
pub(super) fn io_fragment(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused: nothing listens there".to_owned(),
        io::ErrorKind::ConnectionReset => "connection reset by the server".to_owned(),
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => "no route to it".to_owned(),
        io::ErrorKind::TimedOut => "it did not answer in time".to_owned(),
        io::ErrorKind::UnexpectedEof => "the server closed the connection".to_owned(),
        _ => printable(&error.to_string().to_lowercase()),
    }
}

/// Whether a handshake that failed so may go well a moment later: sshd drops connections while too many log in at once.
pub(super) fn transient(error: &russh::Error) -> bool {
    match error {
        russh::Error::HUP | russh::Error::Disconnect => true,
        russh::Error::IO(e) => matches!(
            e.kind(),
            io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe
        ),
        _ => false,
    }
}

/// Where to look when a server forwards nothing: its own words are seldom more than that opening failed.
pub(super) const FORWARDING: &str = "see AllowTcpForwarding and PermitOpen in its sshd_config";

/// Why a channel was refused, as a fragment.
pub(super) fn refusal(reason: &ChannelOpenFailure) -> &'static str {
    match reason {
        ChannelOpenFailure::AdministrativelyProhibited => "its policy forbids it",
        ChannelOpenFailure::ConnectFailed => "it could not connect",
        ChannelOpenFailure::ResourceShortage => "it is short of resources",
        _ => "it does not know this kind of channel",
    }
}

#[cfg(test)]
mod tests {
    use super::{fragment, printable};

    #[test]
    fn a_servers_words_lose_their_escapes_and_their_excess() {
        assert_eq!(printable("Too many\x1b[31m failures\n"), "Too many [31m failures");
        assert_eq!(printable("pass\u{202e}drow:\u{200b}"), "passdrow:");
        assert_eq!(printable(&"x".repeat(5000)).len(), 300);
    }

    #[test]
    fn names_that_a_server_offers_cannot_write_to_the_terminal() {
        let error = russh::Error::NoCommonAlgo {
            kind: russh::AlgorithmKind::Kex,
            ours: Vec::new(),
            theirs: vec![
                "kex-strict-s-v00@openssh.com".to_owned(),
                "\x1b]0;title\x07".to_owned(),
                "y".repeat(5000),
            ],
        };
        let text = fragment(&error);
        assert!(!text.contains(char::is_control) && text.len() < 400, "{text}");
        assert!(text.contains("]0;title , yyy"), "{text}");
    }
}
