//! What a `vllm serve` command line asks for, and what that costs.

/// Weights of the story's model that each of two ranks holds, in GiB.
const WEIGHTS_GIB: f64 = 117.9;

/// Share of unified memory that the engine takes when `--gpu-memory-utilization` is not given; vLLM's default does not fit beside the host's own use.
pub const DEFAULT_UTILIZATION: f64 = 0.8;

/// Memory of a node in GiB.
pub const TOTAL_GIB: f64 = 121.69;

/// KiB of KV cache that one token takes on one rank.
const KV_KIB_PER_TOKEN: f64 = 24.0;

/// GiB that a rank holds besides weights and KV cache once everything is up.
const OTHER_GIB: f64 = 3.4;

/// What a `vllm serve` command line asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// Model path or hub name.
    pub model: String,
    /// Name under which it is served.
    pub served: String,
    /// HTTP port.
    pub port: u16,
    /// Tensor parallel size.
    pub tp: u32,
    /// `--max-model-len`.
    pub max_len: u64,
    /// `--max-num-seqs`.
    pub max_seqs: u32,
    /// `--gpu-memory-utilization`.
    pub utilization: f64,
    /// API key that requests must carry, when one is set.
    pub api_key: Option<String>,
    /// Paths that are left out of the access log.
    pub quiet_paths: Vec<String>,
    /// Arguments as given, for the `non-default args` line.
    pub args: Vec<String>,
}

impl Spec {
    /// Reads the words after `vllm serve`.
    pub fn parse(words: &[String]) -> Self {
        let value = |names: &[&str]| {
            words.iter().enumerate().find_map(|(i, w)| {
                let (name, inline) = w
                    .split_once('=')
                    .map_or((w.as_str(), None), |(n, v)| (n, Some(v.to_owned())));
                names
                    .contains(&name)
                    .then(|| inline.or_else(|| words.get(i + 1).cloned()))
                    .flatten()
            })
        };
        let model = value(&["--model"])
            .or_else(|| words.first().filter(|w| !w.starts_with('-')).cloned())
            .unwrap_or_else(|| "Qwen/Qwen3-0.6B".to_owned());
        let number = |names: &[&str]| value(names).and_then(|v| v.parse::<u64>().ok());
        Self {
            served: value(&["--served-model-name"]).unwrap_or_else(|| model.clone()),
            model,
            port: number(&["--port"]).and_then(|p| u16::try_from(p).ok()).unwrap_or(8000),
            tp: number(&["--tensor-parallel-size", "-tp"])
                .and_then(|p| u32::try_from(p).ok())
                .unwrap_or(1)
                .max(1),
            max_len: number(&["--max-model-len"]).unwrap_or(32_768).max(1),
            max_seqs: number(&["--max-num-seqs"])
                .and_then(|p| u32::try_from(p).ok())
                .unwrap_or(256)
                .max(1),
            utilization: value(&["--gpu-memory-utilization"])
                .and_then(|v| v.parse::<f64>().ok())
                .unwrap_or(DEFAULT_UTILIZATION)
                .clamp(0.1, 0.95),
            api_key: value(&["--api-key"]),
            quiet_paths: value(&["--disable-access-log-for-endpoints"])
                .map(|v| v.split(',').map(str::to_owned).collect())
                .unwrap_or_default(),
            args: words.to_vec(),
        }
    }

    /// GiB of weights on one rank.
    pub fn weights_gib(&self) -> f64 {
        (WEIGHTS_GIB / f64::from(self.tp)).min(TOTAL_GIB * self.utilization * 0.7)
    }

    /// GiB left for the KV cache on one rank.
    pub fn kv_gib(&self) -> f64 {
        (TOTAL_GIB * self.utilization - self.weights_gib() - OTHER_GIB).max(1.0)
    }

    /// Tokens that the KV cache holds.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a positive count of some hundred thousand"
    )]
    pub fn kv_tokens(&self) -> u64 {
        (self.kv_gib() * 1024.0 * 1024.0 / KV_KIB_PER_TOKEN) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_command_line_is_read_in_either_form() {
        let a = Spec::parse(&words(
            "org/model --port 8001 -tp 2 --max-model-len=4096 --served-model-name m",
        ));
        assert_eq!(
            (a.model.as_str(), a.served.as_str(), a.port, a.tp, a.max_len),
            ("org/model", "m", 8001, 2, 4096)
        );
        let b = Spec::parse(&words("--model org/model --tensor-parallel-size=2"));
        assert_eq!(
            (b.model.as_str(), b.served.as_str(), b.port, b.tp),
            ("org/model", "org/model", 8000, 2)
        );
    }
}
