//! The user's own script, run by verbs over SSH.
//!
//! A verb is started detached: it outlives the connection, so that leaving the console never ends it, and it ends at its limit even when no console is
//! there any more. What is known of it lies in `$HOME/.cache/bringup/CLUSTER/verb/` on the node: `verb` (its name), `pid` (of the process that watches
//! it, which leads its process group), `out` (its output) and `code` (its exit code, once it has ended). `probe::verb` reads them; the folder goes when
//! the verb has ended and been read.

use std::time::Duration;

use crate::config::Config;
use crate::config::types::Script;
use crate::domain::command::Command;
use crate::domain::time::millis;
use crate::domain::{NodeId, Role};

use super::stop;

/// Id of the script that starts a verb. Arguments: cluster, verb, the user's script, directory (empty for the login's home), limit in seconds,
/// `refuse` or `replace`.
pub const VERB: &str = "engine.verb";

/// Id of the script that tidies up after a verb. Arguments: cluster, `ended` or `end`.
pub const VERB_CLEAN: &str = "engine.verb-clean";

/// Bytes of output kept on the node; a verb that writes more starts its file anew.
const OUTPUT_BYTES: u64 = 16 << 20;

/// What the start of a verb may take beyond a short command: it may have to end an earlier one, and it waits until the new one is there.
const START: Duration = Duration::from_secs(20);

/// Exit code of a verb that ran into its limit, as `timeout` gives it.
pub const LIMIT_CODE: i32 = 124;

/// What to do with an earlier verb that still runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Earlier {
    /// Start nothing and say so.
    Refuse,
    /// End it first.
    Replace,
}

impl Earlier {
    fn word(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::Replace => "replace",
        }
    }
}

/// Shell functions that both scripts share.
const SHARED: &str = r#"base=$HOME/.cache/bringup/$1/verb
# Another process may have got the number after a restart of the node, and must not be ended: the verb's own one names its folder.
running() {
  [ -s "$base/pid" ] && [ ! -f "$base/code" ] && tr '\000' '\n' 2>/dev/null <"/proc/$(cat "$base/pid")/cmdline" | grep -qxF -e "$base"
}
end() {
  leader=$(cat "$base/pid")
  kill -TERM "-$leader" 2>/dev/null
  n=0
  while [ "$n" -lt 5 ] && kill -0 "-$leader" 2>/dev/null; do n=$((n + 1)); sleep 1; done
  kill -KILL "-$leader" 2>/dev/null
  return 0
}
"#;

const VERB_BODY: &str = r#"verb=$2
path=$3
directory=$4
limit=$5
case $path in '~/'*) path=$HOME/${path#??} ;; */*) ;; *) path=./$path ;; esac
case $directory in '') directory=$HOME ;; '~') directory=$HOME ;; '~/'*) directory=$HOME/${directory#??} ;; esac
cd "$directory" || exit 1
if [ ! -x "$path" ]; then
  if [ -e "$path" ]; then echo "$path is not executable (in $directory)" >&2; exit 126; fi
  echo "there is no $path (in $directory)" >&2
  exit 127
fi
if running; then
  if [ "$6" = refuse ]; then
    echo "the verb $(cat "$base/verb") still runs (process $(cat "$base/pid"))" >&2
    exit 75
  fi
  end
fi
rm -rf "$base"
mkdir -p "$base" || exit 1
printf '%s\n' "$verb" >"$base/verb"
setsid /bin/sh -c '
base=$1
limit=$2
shift 2
echo "$$" >"$base/pid"
( "$@"; echo "$?" >"$base/code.new"; mv "$base/code.new" "$base/code" ) </dev/null >>"$base/out" 2>&1 &
n=0
while [ ! -f "$base/code" ] && [ "$n" -lt "$limit" ]; do
  sleep 1
  n=$((n + 1))
  if [ "$(wc -c <"$base/out")" -gt @BYTES@ ]; then : >"$base/out"; fi
done
if [ -f "$base/code" ]; then exit 0; fi
trap "" TERM
echo "ended by bringup after $limit s, the limit of one verb" >>"$base/out"
kill -TERM 0
sleep 5
if [ ! -f "$base/code" ]; then echo @CODE@ >"$base/code"; fi
kill -KILL 0
' bringup-verb "$base" "$limit" "$path" "$verb" </dev/null >/dev/null 2>&1 &
n=0
while [ ! -s "$base/pid" ] && [ "$n" -lt 10 ]; do n=$((n + 1)); sleep 1; done
if [ ! -s "$base/pid" ]; then echo "the verb $verb did not start" >&2; exit 1; fi
echo "started $path $verb (process $(cat "$base/pid"))"
"#;

const VERB_CLEAN_BODY: &str = r#"[ -d "$base" ] || exit 0
if running; then
  if [ "$2" = ended ]; then echo "the verb $(cat "$base/verb") still runs (process $(cat "$base/pid"))"; exit 0; fi
  end
fi
tail -n 40 "$base/out" 2>/dev/null
rm -rf "$base"
rmdir "$HOME/.cache/bringup/$1" "$HOME/.cache/bringup" 2>/dev/null
exit 0
"#;

/// Starts a verb, detached.
pub(super) fn verb(config: &Config, script: &Script, verb: &str, earlier: Earlier) -> Command {
    let args = vec![
        config.cluster.clone(),
        verb.to_owned(),
        script.path.clone(),
        script.directory.clone().unwrap_or_default(),
        millis(config.limits.verb).div_ceil(1000).to_string(),
        earlier.word().to_owned(),
    ];
    let body = VERB_BODY
        .replace("@BYTES@", &OUTPUT_BYTES.to_string())
        .replace("@CODE@", &LIMIT_CODE.to_string());
    let limit = config.limits.command.saturating_add(START);
    Command::script(VERB, format!("{SHARED}{body}"), args, limit)
}

/// The verb that starts a node, by its role.
pub(super) fn start_node(config: &Config, script: &Script, node: NodeId) -> Command {
    let role = config.node(node).map_or(Role::Worker, |n| n.role);
    let name = match role {
        Role::Head => &script.head,
        Role::Worker => &script.worker,
    };
    verb(config, script, name, Earlier::Refuse)
}

/// Removes what an ended verb left on the node and prints the end of its output. A verb that still runs is left alone.
#[must_use]
pub fn clean(config: &Config) -> Command {
    tidy(config, "ended")
}

/// As [`clean`], but ends a verb that still runs.
fn end(config: &Config) -> Command {
    tidy(config, "end")
}

fn tidy(config: &Config, how: &str) -> Command {
    let args = vec![config.cluster.clone(), how.to_owned()];
    let limit = config.limits.command.saturating_add(START);
    Command::script(VERB_CLEAN, format!("{SHARED}{VERB_CLEAN_BODY}"), args, limit)
}

/// The script's own verb that stops a node; where it has none, its container is stopped and removed by name.
pub(super) fn stop_node(config: &Config, script: &Script, names: &[&str]) -> Vec<Command> {
    match &script.stop {
        Some(name) => vec![verb(config, script, name, Earlier::Replace)],
        None => {
            let mut commands = vec![end(config)];
            commands.extend(names.iter().flat_map(|n| stop::container(config, n)));
            commands
        }
    }
}
