//! `[engine]` and `[container]`: how the model server is started and in what.

use super::read::{At, Reader, Section};
use super::types::{Container, Engine, Script, VllmRay};
use super::words::{self, Wrong};

/// Words of `engine.kind`.
const KINDS: [&str; 2] = ["vllm-ray", "script"];

/// Ray's port.
const RAY_PORT: u16 = 6379;

/// Port of Ray's dashboard.
const DASHBOARD_PORT: u16 = 8265;

/// Shared memory of the container: NCCL and vLLM's workers need far more than Docker's 64 MB.
const SHM_SIZE: &str = "16g";

/// Arguments that bringup gives to `docker run` itself or must not see, and what to do instead.
const DOCKER_ARGS: &[(&str, &str)] = &[
    ("--name", "write it as [container] name"),
    ("--entrypoint", "leave it out: bringup starts `ray` itself"),
    ("--rm", "leave it out: a container that is gone takes its log with it"),
    (
        "--restart",
        "leave it out: a restart behind the console's back hides the failure",
    ),
    ("-d", "leave it out: bringup gives it"),
    ("--detach", "leave it out: bringup gives it"),
    ("-it", "leave it out: there is no terminal"),
    ("--shm-size", "write it as [engine.vllm-ray] shm_size"),
];

/// Arguments that bringup gives to `ray start` itself.
const RAY_ARGS: &[(&str, &str)] = &[
    ("--head", "leave it out: the node's role decides"),
    ("--address", "leave it out: it is the head's fabric address"),
    ("--port", "write it as [engine.vllm-ray] ray_port"),
    ("--dashboard-port", "write it as [engine.vllm-ray] dashboard_port"),
    ("--node-ip-address", "write it as the node's fabric_address"),
    ("--block", "leave it out: bringup gives it"),
];

/// Arguments that bringup gives to `vllm serve` itself.
const VLLM_ARGS: &[(&str, &str)] = &[
    ("--tensor-parallel-size", "write it as [serve] tensor_parallel_size"),
    ("-tp", "write it as [serve] tensor_parallel_size"),
    ("--port", "write it as [serve] port"),
    (
        "--host",
        "leave it out: the server listens at every address, and bringup asks it at 127.0.0.1 of the head",
    ),
    ("--served-model-name", "write it as [serve] served_name"),
    ("--distributed-executor-backend", "leave it out: it is ray"),
    ("--api-key", "name where it is as [secrets] api_key_env or api_key_file"),
];

/// Variables that the environment must not set, and what to do instead.
const VARIABLES: &[(&str, &str)] = &[
    (
        "HF_TOKEN",
        "name where it is on your own machine as [secrets] hf_token_env or hf_token_file",
    ),
    (
        "HUGGING_FACE_HUB_TOKEN",
        "name where it is on your own machine as [secrets] hf_token_env or hf_token_file",
    ),
    (
        "VLLM_API_KEY",
        "name where it is on your own machine as [secrets] api_key_env or api_key_file",
    ),
    ("VLLM_HOST_IP", "leave it out: it is each node's fabric_address"),
    ("BRINGUP_SERVE", "leave it out: it is bringup's own mark"),
];

/// Reads `[engine]` with both its kinds, so that switching from one to the other is one word.
pub(super) fn engine(r: &mut Reader<'_>, mut s: Section<'_>) -> Option<Engine> {
    let kind = s.text_by(r, "kind", kind_word);
    let kind = s.require(r, "kind", kind, "kind = \"vllm-ray\" or kind = \"script\"");
    let ray_section = s.section(r, "vllm-ray");
    let ray = vllm_ray(r, ray_section);
    let script_section = s.section(r, "script");
    let wanted = kind.as_ref().is_some_and(|k| k.value == "script");
    let script = script(r, script_section, wanted);
    s.finish(r);
    match kind?.value.as_str() {
        "script" => script.map(Engine::Script),
        _ => Some(Engine::VllmRay(ray)),
    }
}

fn kind_word(text: &str) -> Result<(), Wrong> {
    if KINDS.contains(&text) {
        return Ok(());
    }
    Err(Wrong {
        what: format!("`{text}` is no engine"),
        fix: format!("write one of: {}", KINDS.join(", ")),
    })
}

fn vllm_ray(r: &mut Reader<'_>, mut s: Section<'_>) -> VllmRay {
    let ports = ports(r, &mut s);
    let shm_size = s.text_by(r, "shm_size", words::size);
    let engine = VllmRay {
        ray_port: ports.0,
        dashboard_port: ports.1,
        shm_size: shm_size.map_or_else(|| SHM_SIZE.to_owned(), |t| t.value),
        docker_run_args: arguments(r, &mut s, "docker_run_args", DOCKER_ARGS),
        ray_start_args: arguments(r, &mut s, "ray_start_args", RAY_ARGS),
        ray_head_args: arguments(r, &mut s, "ray_head_args", RAY_ARGS),
        vllm_serve_args: arguments(r, &mut s, "vllm_serve_args", VLLM_ARGS),
    };
    s.finish(r);
    engine
}

fn script(r: &mut Reader<'_>, mut s: Section<'_>, wanted: bool) -> Option<Script> {
    let path = s.text(r, "path");
    let path = if wanted {
        s.require(r, "path", path, "path = \"./SCRIPT.sh\"")
    } else {
        path
    };
    let directory = s.text(r, "directory").map(|t| t.value);
    let mut verb = |r: &mut Reader<'_>, key| s.text_by(r, key, words::word).map(|t| t.value);
    let head = verb(r, "head").unwrap_or_else(|| "head".to_owned());
    let worker = verb(r, "worker").unwrap_or_else(|| "worker".to_owned());
    let serve = verb(r, "serve").unwrap_or_else(|| "serve".to_owned());
    let stop = verb(r, "stop");
    let ports = ports(r, &mut s);
    s.finish(r);
    Some(Script {
        path: path?.value,
        directory,
        head,
        worker,
        serve,
        stop,
        ray_port: ports.0,
        dashboard_port: ports.1,
    })
}

/// Ray's port and its dashboard's.
fn ports(r: &mut Reader<'_>, s: &mut Section<'_>) -> (u16, u16) {
    let ray = s.port(r, "ray_port").unwrap_or(RAY_PORT);
    let dashboard = s.port(r, "dashboard_port").unwrap_or(DASHBOARD_PORT);
    if ray == dashboard {
        let message = format!("ray_port and dashboard_port are both {ray}");
        r.problem(
            s.at_key("dashboard_port"),
            &s.key("dashboard_port"),
            message,
            "give each its own port",
        );
    }
    (ray, dashboard)
}

/// More arguments for a program, without those that bringup gives itself.
fn arguments(r: &mut Reader<'_>, s: &mut Section<'_>, key: &'static str, own: &[(&str, &str)]) -> Vec<String> {
    let given = s.texts(r, key).unwrap_or_default();
    for argument in &given {
        let name = argument.value.split('=').next().unwrap_or_default();
        // These programs take `--served_model_name` for `--served-model-name`.
        let flag = name.replace('_', "-");
        if let Some((_, fix)) = own.iter().find(|(own, _)| *own == flag) {
            r.problem(argument.at, &s.key(key), format!("`{key}` may not hold `{name}`"), *fix);
        }
        if argument.value.starts_with("-") && argument.value.contains(' ') && !argument.value.contains('=') {
            let fix = "write each argument as a text of its own: [\"--flag\", \"value\"]";
            r.problem(
                argument.at,
                &s.key(key),
                format!("`{key}` holds two arguments in one text"),
                fix,
            );
        }
    }
    given.into_iter().map(|a| a.value).collect()
}

/// Reads `[container]`.
pub(super) fn container(r: &mut Reader<'_>, mut s: Section<'_>) -> Option<Container> {
    let image = s.text_by(r, "image", words::word);
    let image = s.require(
        r,
        "image",
        image,
        "image = \"ORG/IMAGE:TAG\", one that holds vLLM and Ray",
    );
    let name = s.text_by(r, "name", words::container_name);
    let name = s.require(r, "name", name, "name = \"vllm\"");
    let docker = s.text_by(r, "docker", words::program);
    let volumes = s.texts(r, "volumes").unwrap_or_default();
    for volume in &volumes {
        if let Err(wrong) = words::volume(&volume.value) {
            r.problem(
                volume.at,
                "container.volumes",
                format!("volumes: {}", wrong.what),
                wrong.fix,
            );
        }
    }
    let mut variables = s.section(r, "environment");
    let environment = environment(r, &mut variables);
    s.finish(r);
    Some(Container {
        image: image?.value,
        name: name?.value,
        docker: docker.map_or_else(|| "docker".to_owned(), |d| d.value),
        environment,
        volumes: volumes.into_iter().map(|v| v.value).collect(),
    })
}

fn environment(r: &mut Reader<'_>, s: &mut Section<'_>) -> Vec<(String, String)> {
    let pairs = s.pairs(r);
    for (name, value) in &pairs {
        if let Some((at, wrong)) = variable_problem(name, value) {
            r.problem(at, &s.key(&name.value), wrong.what, wrong.fix);
        }
    }
    pairs
        .into_iter()
        .map(|(name, value)| (name.value, value.value))
        .collect()
}

/// What is wrong with a variable of the container, and where.
fn variable_problem(name: &At<String>, value: &At<String>) -> Option<(usize, Wrong)> {
    let wrong = |what: String, fix: &str| Wrong {
        what,
        fix: fix.to_owned(),
    };
    let variable = &name.value;
    if let Some((_, fix)) = VARIABLES.iter().find(|(own, _)| own == variable) {
        return Some((name.at, wrong(format!("the environment may not set `{variable}`"), fix)));
    }
    if words::looks_secret(&value.value) {
        let what = format!("`{variable}` holds what looks like a secret");
        return Some((value.at, wrong(what, words::SECRET_FIX)));
    }
    if value.value.chars().any(char::is_control) {
        let what = format!("`{variable}` holds a control character");
        return Some((value.at, wrong(what, "write it on one line, without escapes")));
    }
    if words::variable(variable).is_err() || variable.is_empty() {
        let what = format!("`{variable}` cannot be the name of a variable");
        return Some((name.at, wrong(what, "use letters, digits and `_`, a letter first")));
    }
    None
}
