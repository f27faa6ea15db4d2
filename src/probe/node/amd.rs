//! AMD's GPUs, where there is no nvidia-smi: `rocm-smi --json`, else `amd-smi metric --json`.
//!
//! Both are libraries' front ends in Python whose keys changed over the years, so a value is found by what its key says and not by its exact words.

use serde_json::Value;

use crate::domain::gpu::{Gpu, GpuTool};
use crate::domain::problem::Problem;
use crate::domain::units::{Bytes, Celsius, Percent, Watts};

use super::super::sections::{Section, Sections};
use super::super::short;
use super::gpus::Listed;

/// Reads `@@ rocm` or `@@ amd`; `None` where neither is there.
pub fn devices(sections: &Sections) -> Option<Result<Listed, Problem>> {
    let by = |tool| move |gpus| Listed { gpus, tool };
    let rocm = sections.get("rocm").map(|s| read(s, "rocm-smi", from_rocm));
    let rocm = rocm.map(|found| found.map(by(GpuTool::RocmSmi)));
    let amd = || sections.get("amd").map(|s| read(s, "amd-smi", from_amd));
    rocm.or_else(|| amd().map(|found| found.map(by(GpuTool::AmdSmi))))
}

fn read(section: &Section, tool: &str, devices: fn(&Value) -> Vec<Gpu>) -> Result<Vec<Gpu>, Problem> {
    let gpus = json(section).map(|json| devices(&json)).unwrap_or_default();
    if !gpus.is_empty() {
        return Ok(gpus);
    }
    let said = section
        .lines
        .iter()
        .rfind(|l| !l.trim_start().starts_with(['{', '[', '}', ']']));
    Err(match (said, section.code) {
        (Some(line), _) => Problem::error(format!("{tool}: {}", short(line.trim()))),
        (None, Some(0)) => Problem::warning(format!("{tool} finds no GPU")),
        (None, Some(code)) if super::ended(code) => Problem::error(format!("{tool} does not answer")),
        (None, Some(code)) => Problem::error(format!("{tool} ended with code {code}")),
        (None, None) => Problem::error(format!("{tool} did not answer in time")),
    })
}

/// The JSON of a section: warnings stand before it.
fn json(section: &Section) -> Option<Value> {
    section.code?;
    let start = section
        .lines
        .iter()
        .position(|l| l.trim_start().starts_with(['{', '[']))?;
    let text = section.lines.get(start..)?.join("\n");
    // Only the first value: some print more behind it.
    serde_json::Deserializer::from_str(&text).into_iter().next()?.ok()
}

/// `{"card0": {"GPU use (%)": "0", …}, …}`: every number is a text, memory is in bytes.
fn from_rocm(json: &Value) -> Vec<Gpu> {
    let Value::Object(cards) = json else { return Vec::new() };
    let mut gpus: Vec<Gpu> = cards
        .iter()
        .filter_map(|(card, fields)| {
            let index = card.strip_prefix("card")?.parse().ok()?;
            let Value::Object(fields) = fields else { return None };
            let find = |all: &[&str]| {
                let has = |key: &str| {
                    let key = key.to_ascii_lowercase();
                    all.iter().all(|words| key.contains(words))
                };
                fields
                    .iter()
                    .find(|(key, value)| has(key) && number(value).is_some())
                    .map(|(_, value)| value)
            };
            let text = |name: &str| {
                let found = fields.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
                found
                    .and_then(|(_, v)| v.as_str())
                    .filter(|v| !v.is_empty() && *v != "N/A")
                    .map(short)
            };
            let degrees = find(&["temperature", "edge"]).or_else(|| find(&["temperature", "junction"]));
            Some(Gpu {
                index,
                name: text("Card Series")
                    .or_else(|| text("Device Name"))
                    .or_else(|| text("Card Model"))
                    .unwrap_or_else(|| "AMD GPU".to_owned()),
                utilization: find(&["gpu use"]).and_then(number).map(Percent),
                memory_used: find(&["vram total used memory (b)"]).and_then(whole).map(Bytes),
                memory_total: find(&["vram total memory (b)"]).and_then(whole).map(Bytes),
                unified: false,
                // The highest power allowed is one of package's too.
                power: find(&["average", "package power"])
                    .or_else(|| find(&["current", "package power"]))
                    .and_then(number)
                    .map(Watts),
                temperature: degrees.and_then(number).map(Celsius),
                slices: Vec::new(),
            })
        })
        .collect();
    gpus.sort_by_key(|g| g.index);
    gpus
}

/// A list, or an object with one, of `{"gpu": 0, "usage": {"gfx_activity": {"value": 0, "unit": "%"}}, …}`.
fn from_amd(json: &Value) -> Vec<Gpu> {
    let list = json.as_array().or_else(|| json.get("gpu_data")?.as_array());
    list.into_iter()
        .flatten()
        .filter_map(|gpu| {
            let value = |path: &str| gpu.pointer(path).and_then(number);
            let memory = |name: &str| {
                let field = gpu.pointer(&format!("/mem_usage/{name}"))?;
                let unit = field.get("unit").and_then(Value::as_str).unwrap_or("MB");
                let amount = whole(field)?;
                // Its MB are mebibytes.
                Some(Bytes(match unit {
                    "GB" => amount << 30,
                    "KB" => amount << 10,
                    "B" => amount,
                    _ => amount << 20,
                }))
            };
            Some(Gpu {
                index: u32::try_from(gpu.get("gpu")?.as_u64()?).ok()?,
                name: "AMD GPU".to_owned(),
                utilization: value("/usage/gfx_activity").map(Percent),
                memory_used: memory("used_vram"),
                memory_total: memory("total_vram"),
                unified: false,
                power: value("/power/socket_power").map(Watts),
                temperature: value("/temperature/edge")
                    .or_else(|| value("/temperature/hotspot"))
                    .map(Celsius),
                slices: Vec::new(),
            })
        })
        .collect()
}

/// A number, a text with one, or an object with one under `value`.
fn number(value: &Value) -> Option<f32> {
    text(value)?.parse().ok().filter(|n: &f32| n.is_finite())
}

/// The same for what has no fraction.
fn whole(value: &Value) -> Option<u64> {
    let amount = text(value)?.parse().ok()?;
    // A shift by its unit must not lose its head.
    (amount < 1 << 50).then_some(amount)
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::Number(n) => Some(n.to_string()),
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Object(fields) => match fields.get("value")? {
            Value::Number(n) => Some(n.to_string()),
            Value::String(text) => Some(text.trim().to_owned()),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        },
        Value::Null | Value::Bool(_) | Value::Array(_) => None,
    }
}
