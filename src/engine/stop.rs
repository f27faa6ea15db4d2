//! Stopping: a server inside its container, a container with all that is in it.

use crate::config::Config;
use crate::domain::command::Command;
use crate::domain::serving::SERVE_MARK;

use super::{GRACE, docker};

/// Which processes of the head's container are the model server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// Those that carry our mark.
    Marked,
    /// Those that carry our mark or have the command line of a vLLM server: the user's script knows no mark.
    Any,
}

impl Which {
    fn word(self) -> &'static str {
        match self {
            Self::Marked => "marked",
            Self::Any => "any",
        }
    }
}

/// Id of the script that ends the model server. Arguments: docker's words in one, the container, `marked` or `any`, seconds to wait before the kill.
pub const STOP_SERVE: &str = "engine.stop-serve";

/// The inner script runs in the container, where only a POSIX shell with `tr` and `grep` is taken for granted. It looks at /proc, as there may be no
/// `ps`. Ray's own workers and their children are left to Ray: they end with the server that owns them, and newer vLLM hands them the mark with the rest
/// of the environment. A process is the server if its parent is none; its descendants are killed with it if it does not go by itself.
const STOP_SERVE_BODY: &str = r#"docker=$1
container=$2
which=$3
wait=$4
exec $docker exec -i "$container" /bin/sh -s -- "$which" "$wait" <<'INSIDE'
which=$1
wait=$2
words() { { tr '\000' ' ' <"/proc/$1/cmdline"; } 2>/dev/null; }
parent() { sed -n 's/^PPid:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null; }
alive() { [ -n "$(words "$1")" ]; }
serves() {
  case $(words "$1") in
    ray::*|'') return 1 ;;
    *vllm\ serve\ *|*vllm.entrypoints.openai.api_server*) [ "$which" = any ] && return 0 ;;
  esac
  case $(words "$(parent "$1")") in ray::*) return 1 ;; esac
  { tr '\000' '\n' <"/proc/$1/environ"; } 2>/dev/null | grep -q '^@MARK@='
}
found=' '
for d in /proc/[0-9]*; do
  p=${d#/proc/}
  [ "$p" = 1 ] || [ "$p" = "$$" ] && continue
  if serves "$p"; then found="$found$p "; fi
done
tops=
for p in $found; do
  case $found in *" $(parent "$p") "*) ;; *) tops="$tops $p" ;; esac
done
if [ -z "$tops" ]; then echo 'no model server runs'; exit 0; fi
tree=" $tops "
grown=yes
while [ -n "$grown" ]; do
  grown=
  for d in /proc/[0-9]*; do
    p=${d#/proc/}
    case $tree in *" $p "*) continue ;; esac
    q=$(parent "$p")
    [ -n "$q" ] || continue
    case $tree in *" $q "*) tree="$tree$p "; grown=yes ;; esac
  done
done
echo "ending:$tops"
kill -TERM $tops 2>/dev/null
n=0
while [ "$n" -lt "$wait" ]; do
  left=
  for p in $tree; do if alive "$p"; then left="$left $p"; fi; done
  [ -z "$left" ] && { echo 'ended'; exit 0; }
  n=$((n + 1))
  sleep 1
done
echo "killing:$left"
kill -KILL $left 2>/dev/null
sleep 1
for p in $left; do if alive "$p"; then echo "still there: $p $(words "$p")" >&2; exit 1; fi; done
exit 0
INSIDE
"#;

/// Ends the model server in the head's container: asks, waits, kills.
pub(super) fn serve(config: &Config, which: Which) -> Command {
    let args = vec![
        config.container.docker.clone(),
        config.container.name.clone(),
        which.word().to_owned(),
        GRACE.as_secs().to_string(),
    ];
    let body = STOP_SERVE_BODY.replace("@MARK@", SERVE_MARK);
    Command::script(STOP_SERVE, body, args, config.limits.stop)
}

/// Stops a container, within a bound, and removes it.
pub(super) fn container(config: &Config, name: &str) -> [Command; 2] {
    let grace = GRACE.as_secs().to_string();
    [
        docker(config, &["stop", "-t", &grace, name], config.limits.stop),
        docker(config, &["rm", name], config.limits.stop),
    ]
}
