//! What is meant by keys that other tools have, or that stand in another table here.

/// Where options of `vllm serve` go.
const SERVE_ARGS: &str = "`vllm_serve_args` in [engine.vllm-ray]";

/// The table, what is written there, and what is meant.
const MEANT: [(&str, &[&str], &str); 26] = [
    ("", &["nodes", "hosts", "node_list"], "a table [[node]] for each"),
    ("", &["jump", "bastion", "proxy"], "a table [[ssh.jump]]"),
    ("", &["model", "port"], "that key in [serve]"),
    ("", &["image"], "`image` in [container]"),
    ("ssh", &["key", "identity", "identity_file", "identityfile"], "`keys`"),
    (
        "ssh",
        &["jump_host", "proxy_jump", "proxyjump", "bastion"],
        "a table [[ssh.jump]]",
    ),
    ("ssh.jump", &["address", "hostname", "ip"], "`host`"),
    ("node", &["host", "hostname", "ip", "ssh_host"], "`address`"),
    (
        "node",
        &["fabric", "fabric_ip", "ib_address", "rdma_address"],
        "`fabric_address`",
    ),
    (
        "node",
        &["interface", "iface", "nic", "fabric_nic"],
        "`fabric_interface`",
    ),
    ("node", &["hca", "rdma", "nccl_ib_hca"], "`hcas`"),
    ("node", &["gpu_count", "num_gpus"], "`gpus`"),
    ("engine", &["type", "engine"], "`kind`"),
    (
        "engine",
        &["args", "serve_args", "vllm_args", "vllm_serve_args"],
        SERVE_ARGS,
    ),
    (
        "engine.vllm-ray",
        &["args", "extra_args", "serve_args", "vllm_args"],
        "`vllm_serve_args`",
    ),
    ("engine.vllm-ray", &["docker_args", "run_args"], "`docker_run_args`"),
    (
        "engine.vllm-ray",
        &["tensor_parallel_size", "tp"],
        "`tensor_parallel_size` in [serve]",
    ),
    (
        "container",
        &["env", "environment_variables"],
        "a table [container.environment]",
    ),
    ("container", &["mounts", "mount", "binds"], "`volumes`"),
    (
        "container",
        &["args", "docker_args", "run_args", "docker_run_args"],
        "`docker_run_args` in [engine.vllm-ray]",
    ),
    ("container", &["shm_size"], "`shm_size` in [engine.vllm-ray]"),
    (
        "serve",
        &[
            "args",
            "extra_args",
            "serve_args",
            "vllm_args",
            "vllm_serve_args",
            "options",
            "flags",
        ],
        SERVE_ARGS,
    ),
    ("serve", &["tp", "tp_size", "tensor_parallel"], "`tensor_parallel_size`"),
    ("serve", &["name", "model_name", "served_model_name"], "`served_name`"),
    (
        "secrets",
        &["hf_token", "token", "huggingface_token"],
        "`hf_token_env` or `hf_token_file`",
    ),
    ("secrets", &["api_key", "key"], "`api_key_env` or `api_key_file`"),
];

/// What somebody means who writes this key into this table.
#[must_use]
pub(super) fn meant(table: &str, written: &str) -> Option<&'static str> {
    let written = written.to_lowercase().replace('-', "_");
    let found = MEANT
        .iter()
        .find(|(at, keys, _)| *at == table && keys.contains(&written.as_str()));
    found.map(|(_, _, meant)| *meant)
}

/// What else there is to say of an unknown key in this table.
#[must_use]
pub(super) fn hint(table: &str) -> Option<&'static str> {
    matches!(table, "serve" | "engine.vllm-ray")
        .then_some("options of `vllm serve` go into `vllm_serve_args` in [engine.vllm-ray]")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::config::{EXAMPLE, parse};

    use super::*;

    #[test]
    fn what_stands_in_another_table_or_has_another_name_is_found() {
        assert_eq!(meant("serve", "args"), Some(SERVE_ARGS));
        assert_eq!(meant("serve", "Extra-Args"), Some(SERVE_ARGS));
        assert_eq!(meant("node", "ip"), Some("`address`"));
        assert_eq!(meant("serve", "quantization"), None);
    }

    #[test]
    fn no_key_that_is_known_in_its_table_is_taken_for_another() {
        for (table, keys, _) in MEANT {
            let seen: BTreeSet<&&str> = keys.iter().collect();
            assert_eq!(seen.len(), keys.len(), "{table}");
            for key in keys {
                let header = match table {
                    "" => String::new(),
                    "node" | "ssh.jump" => format!("[[{table}]]\n"),
                    _ => format!("[{table}]\n"),
                };
                // In its own table, and nothing else: what is missing beside it is told too.
                let said = parse(&format!("{header}{key} = 1\n"), "x").unwrap_err();
                let unknown = said
                    .iter()
                    .any(|p| p.message.starts_with("unknown key") && p.fix.starts_with("did you mean"));
                assert!(unknown, "{table} {key}: {said:#?}");
            }
        }
        assert!(parse(EXAMPLE, "config.example.toml").is_ok());
    }
}
