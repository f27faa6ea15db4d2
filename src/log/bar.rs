//! Lines that are the next state of an earlier one: progress bars as tqdm prints them and the access lines of polls; and the `(Name key=value)` prefixes that Ray and vLLM put before a line.

/// What is asked of a model server again and again, by this console and by other monitors.
const POLLED: [&str; 3] = ["/health", "/metrics", "/v1/models"];

/// What a progress bar is of, so that its next state can take the place of this one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Bar {
    /// Owner prefix and description, without the parts that change from step to step.
    pub key: String,
    /// Whole percent done.
    pub percent: u16,
}

impl Bar {
    /// Reads the bar in a line's text: `DESCRIPTION:  55% Completed | 90/163 [00:22<00:13,  5.23it/s]` or ` 46%|████▌     | 16/35 […]`.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let (prefix, rest) = text.split_at(prefix_len(text));
        let (before, after) = rest.split_once('%')?;
        let after = after.strip_prefix(" Completed").unwrap_or(after);
        if !after.trim_start().starts_with('|') {
            return None;
        }
        let description = before.trim_end_matches(|c: char| c.is_ascii_digit());
        let percent = before.get(description.len()..)?.parse().ok()?;
        let mut key = prefix.trim_end().to_owned();
        key.push_str(stable(description).trim_end_matches([':', ' ']));
        Some(Self { key, percent })
    }

    /// Reads an access line of a server that is looked at again and again and says that it is well:
    /// `INFO:     127.0.0.1:44396 - "GET /health HTTP/1.1" 200 OK`, as uvicorn prints it. This console's own questions would otherwise push
    /// everything else out of sight. An answer other than 200 is news and stays a line of its own.
    #[must_use]
    pub fn poll(text: &str) -> Option<Self> {
        let (_, request) = text.split_once("\"GET ")?;
        let (path, answer) = request.split_once(" HTTP/")?;
        let well = answer
            .split_once('"')
            .is_some_and(|(_, status)| status.trim() == "200 OK");
        (well && POLLED.contains(&path)).then(|| Self {
            key: format!("GET {path}"),
            percent: 0,
        })
    }

    /// Reads a line of NCCL's own news, of which a start prints hundreds: `spark:2528:2529 [0] NCCL INFO Channel 07/16 : 0 1`. Its numbers are no progress.
    /// A warning of NCCL's stays a line of its own.
    #[must_use]
    pub fn nccl(text: &str) -> Option<Self> {
        let (before, _) = text.split_once(" NCCL INFO ")?;
        let (prefix, rest) = before.split_at(prefix_len(before));
        // The host and the process; the threads of one process take turns.
        let mut parts = rest.split(':');
        let (host, pid) = (parts.next()?, parts.next()?);
        Some(Self {
            key: format!("{}{host}:{pid} NCCL INFO", prefix.trim_end()),
            percent: 0,
        })
    }

    /// Whether the lines whose place this one takes are others of its kind, and not earlier states of it: they are counted.
    #[must_use]
    pub fn folds(&self) -> bool {
        self.key.starts_with("GET ") || self.key.ends_with(" NCCL INFO")
    }

    /// What it costs in memory beside itself.
    pub fn size(&self) -> usize {
        self.key.len()
    }

    /// Whether `self` is a later state of the bar `earlier`.
    #[must_use]
    pub fn follows(&self, earlier: &Self) -> bool {
        self.key == earlier.key && self.percent >= earlier.percent
    }
}

/// Bytes of `text` up to the end of its progress bar, where a record is glued to that: `… 0/23 [00:00<?, ?it/s][2025-03-03 18:46:44 TP3] Capture …`. Ray's note
/// of how often it stands there belongs to the bar.
#[must_use]
pub fn glued(text: &str) -> Option<usize> {
    let numbers = text.rfind('|')?;
    let open = numbers + text.get(numbers..)?.find('[')?;
    let end = open + text.get(open..)?.find(']')? + 1;
    let rest = text.get(end..)?.trim_start();
    (!rest.is_empty() && !rest.starts_with("[repeated ")).then_some(end)
}

/// A description without its `(name=value …)` groups: SGLang counts in them (`Capturing batches (bs=16 avail_mem=13.56 GB)`).
fn stable(description: &str) -> String {
    let mut kept = String::new();
    let mut rest = description;
    while let Some((before, group, after)) = next_group(rest) {
        kept.push_str(before);
        if !group.contains('=') {
            kept.push_str(group);
        }
        rest = after;
    }
    kept.push_str(rest);
    kept
}

/// Splits at the first `( … )`: what is before, the group with its parentheses, what is after.
fn next_group(text: &str) -> Option<(&str, &str, &str)> {
    let open = text.find('(')?;
    let close = open + text.get(open..)?.find(')')? + 1;
    Some((text.get(..open)?, text.get(open..close)?, text.get(close..)?))
}

/// Bytes of `text` taken by `(Name key=value, …) ` prefixes, with the spaces after them.
#[must_use]
pub fn prefix_len(text: &str) -> usize {
    let mut rest = text;
    while let Some(("", group, after)) = next_group(rest) {
        let named = group
            .get(1..)
            .is_some_and(|g| g.starts_with(|c: char| c.is_ascii_alphabetic()));
        let spaced = after.is_empty() || after.starts_with(' ');
        if !(named && spaced && (group.contains('=') || group == "(raylet)")) {
            break;
        }
        rest = after.trim_start_matches(' ');
    }
    text.len() - rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(key: &str, percent: u16) -> Option<Bar> {
        Some(Bar {
            key: key.into(),
            percent,
        })
    }

    #[test]
    fn bars_of_every_engine_are_read() {
        let cases = [
            (
                "Loading safetensors checkpoint shards:  55% Completed | 90/163 [00:22<00:13,  5.23it/s]",
                bar("Loading safetensors checkpoint shards", 55),
            ),
            (
                "(RayWorkerProc pid=490) Loading safetensors checkpoint shards:   7% Completed | 1/14 [00:00<00:01,  7.28it/s]",
                bar("(RayWorkerProc pid=490)Loading safetensors checkpoint shards", 7),
            ),
            (
                "Capturing CUDA graphs (decode, FULL):  46%|████▌     | 16/35 [00:02<00:02,  8.85it/s]",
                bar("Capturing CUDA graphs (decode, FULL)", 46),
            ),
            (
                "Capturing batches (bs=16 avail_mem=13.56 GB):  17%|█▋        | 1/6 [00:16<01:22, 16.57s/it]",
                bar("Capturing batches", 17),
            ),
            ("  0%|          | 0/23 [00:00<?, ?it/s]", bar("", 0)),
            ("GPU KV cache usage: 57.9%, Prefix cache hit rate: 40.5%", None),
            ("%|", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(Bar::read(text), expected, "{text}");
        }
    }

    #[test]
    fn polls_that_went_well_are_read_and_nothing_else() {
        let cases = [
            (
                "(APIServer pid=24) INFO:     127.0.0.1:44396 - \"GET /health HTTP/1.1\" 200 OK",
                bar("GET /health", 0),
            ),
            (
                "INFO:     127.0.0.1:1 - \"GET /v1/models HTTP/1.1\" 200 OK",
                bar("GET /v1/models", 0),
            ),
            (
                "INFO:     127.0.0.1:44396 - \"GET /health HTTP/1.1\" 503 Service Unavailable",
                None,
            ),
            (
                "INFO:     127.0.0.1:44396 - \"POST /v1/completions HTTP/1.1\" 200 OK",
                None,
            ),
            ("INFO:     127.0.0.1:44396 - \"GET /metrics2 HTTP/1.1\" 200 OK", None),
            ("GET \"GET ", None),
        ];
        for (text, expected) in cases {
            assert_eq!(Bar::poll(text), expected, "{text}");
        }
    }

    #[test]
    fn news_of_nccl_is_told_by_process_and_a_warning_is_not_news() {
        let of = |text: &str| Bar::nccl(text).map(|b| b.key);
        let cases = [
            (
                "(EngineCore_DP0 pid=2301) (RayWorkerWrapper pid=2528) spark:2528:2528 [0] NCCL INFO Channel 07/16 : 0 1",
                Some("(EngineCore_DP0 pid=2301) (RayWorkerWrapper pid=2528)spark:2528 NCCL INFO"),
            ),
            (
                "spark:2528:2999 [0] NCCL INFO NET/IB : Using [0]rocep1s0f1",
                Some("spark:2528 NCCL INFO"),
            ),
            ("spark:2528:2528 [0] NCCL WARN Call to ibv_create_qp failed", None),
            ("NCCL INFO ", None),
        ];
        for (text, key) in cases {
            assert_eq!(of(text).as_deref(), key, "{text}");
            assert!(Bar::read(text).is_none(), "07/16 is no progress");
        }
    }

    #[test]
    fn a_record_that_is_glued_to_a_bar_is_found_and_rays_note_is_none() {
        let bar = "  0%|          | 0/23 [00:00<?, ?it/s]";
        let record = "[2025-03-03 18:46:44 TP3] Capture cuda graph begin.";
        assert_eq!(glued(&format!("{bar}{record}")), Some(bar.len()));
        assert_eq!(glued(bar), None);
        assert_eq!(glued(&format!("{bar} [repeated 3x across cluster]")), None);
        assert_eq!(glued("no bar"), None);
    }

    #[test]
    fn prefixes_of_any_number_are_found() {
        let cases = [
            ("(APIServer pid=1) (EngineCore_DP0 pid=283) INFO x", 43),
            ("(RayWorkerProc pid=27, ip=192.168.10.220) (Worker_DP1_TP0 pid=2) x", 65),
            ("(raylet) x", 9),
            ("(note) x", 0),
            ("(a=b)x", 0),
            ("(", 0),
            ("x (Worker pid=1) y", 0),
        ];
        for (text, len) in cases {
            assert_eq!(prefix_len(text), len, "{text}");
        }
    }

    #[test]
    fn a_bar_that_begins_again_is_another_bar() {
        let (a, b) = (bar("x", 40), bar("x", 0));
        assert!(a.clone().unwrap().follows(&b.clone().unwrap()));
        assert!(!b.unwrap().follows(&a.unwrap()));
    }
}
