//! How Docker says no.

use crate::domain::problem::Problem;

use super::short;

/// Why Docker itself did not answer, when its words or the exit code say so. `None` when it answered and the answer is about something else.
#[must_use]
pub fn refusal(text: &str, code: Option<u32>) -> Option<Problem> {
    let has = |words: &str| text.contains(words);
    // Docker before 29 says "the Docker daemon socket", later ones "the docker API".
    if has("permission denied while trying to connect to the") {
        return Some(
            Problem::error("the login may not use Docker: permission denied on its socket").with_fix(
                "add the user to group docker on the node (sudo usermod -aG docker USER), then log in again: groups are fixed at login, so bringup must be started anew",
            ),
        );
    }
    if has("Cannot connect to the Docker daemon") || has("failed to connect to the docker API") {
        return Some(Problem::error("the Docker daemon does not answer").with_fix("sudo systemctl start docker"));
    }
    if has("sudo:") && (has("a password is required") || has("a terminal is required")) {
        return Some(
            Problem::error("sudo wants a password for docker")
                .with_fix("add the user to group docker on the node, or let sudo run docker without a password (visudo there: USER ALL=(root) NOPASSWD: SETENV: /usr/bin/docker)"),
        );
    }
    let missing = code == Some(127) && !has("OCI runtime") || has("sudo: ") && has(": command not found");
    missing.then(|| {
        Problem::error("no docker program on the node")
            .with_fix("install Docker there, or set container.docker to its path")
    })
}

/// Whether Docker says that an image or a container is not there.
#[must_use]
pub fn no_such(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["no such image", "no such container", "no such object"]
        .iter()
        .any(|words| text.contains(words))
}

/// Whether a container that was to be entered is not there or does not run.
#[must_use]
pub fn not_running(text: &str) -> bool {
    no_such(text) || text.contains("is not running") || text.contains("is restarting")
}

/// Docker's refusal, else its own words.
#[must_use]
pub fn problem(text: &str, code: Option<u32>) -> Problem {
    refusal(text, code).unwrap_or_else(|| {
        let line = text.lines().map(str::trim).rfind(|l| !l.is_empty()).map(short);
        match (line, code) {
            (Some(line), _) => Problem::error(format!("docker: {line}")),
            (None, Some(code)) => Problem::error(format!("docker ended with code {code}")),
            (None, None) => Problem::error("docker did not answer in time"),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_every_wording_are_known() {
        let cases = [
            (
                "permission denied while trying to connect to the docker API at unix:///var/run/docker.sock",
                Some(1),
                "the login may not use Docker: permission denied on its socket",
            ),
            (
                "Got permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock: Get \"http://%2Fvar%2F\": dial unix /var/run/docker.sock: connect: permission denied",
                Some(1),
                "the login may not use Docker: permission denied on its socket",
            ),
            (
                "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
                Some(1),
                "the Docker daemon does not answer",
            ),
            (
                "failed to connect to the docker API at unix:///var/run/docker.sock; check if the path is correct and if the daemon is running: dial unix /var/run/docker.sock: connect: no such file or directory",
                Some(1),
                "the Docker daemon does not answer",
            ),
            (
                "zsh:1: command not found: docker",
                Some(127),
                "no docker program on the node",
            ),
            ("sh: 1: docker: not found", Some(127), "no docker program on the node"),
            (
                "sudo: a terminal is required to read the password; either use the -S option",
                Some(1),
                "sudo wants a password for docker",
            ),
            (
                "Error response from daemon: boom",
                Some(1),
                "docker: Error response from daemon: boom",
            ),
            (
                "sudo: a password is required",
                Some(1),
                "sudo wants a password for docker",
            ),
            (
                "sudo: docker: command not found",
                Some(1),
                "no docker program on the node",
            ),
            ("", Some(3), "docker ended with code 3"),
            ("", None, "docker did not answer in time"),
        ];
        for (text, code, expected) in cases {
            assert_eq!(problem(text, code).text, expected, "{text}");
        }
    }

    #[test]
    fn a_program_missing_in_a_container_is_not_docker_missing() {
        let text = "OCI runtime exec failed: exec failed: unable to start container process: exec: \"python3\": executable file not found in $PATH: unknown";
        assert_eq!(refusal(text, Some(127)), None);
    }
}
