//! nvidia-smi: devices and compute processes.

use crate::domain::event::{Facts, Subject};
use crate::domain::gpu::{Gpu, GpuFacts, GpuProcess};
use crate::domain::problem::Problem;
use crate::domain::units::{Bytes, Celsius, Percent, Watts};

use super::super::sections::{Section, Sections};
use super::super::{absent, short};
use super::{Groups, Part};

/// What nvidia-smi prints when it finds none.
const NO_DEVICE: &str = "No devices were found";

/// Reads `@@ gpus` and `@@ apps`.
pub fn parse(sections: &Sections, groups: &Groups) -> Option<Part> {
    let section = sections.get("gpus")?;
    let gpus: Vec<Gpu> = section.lines.iter().filter_map(|line| gpu(line)).collect();
    let trouble = trouble(section);
    let mut problems: Vec<Problem> = trouble.iter().cloned().collect();
    let complete = section.code.is_some() && (!gpus.is_empty() || section.lines.iter().any(|l| l.contains(NO_DEVICE)));
    if !complete {
        let problem = trouble.unwrap_or_else(|| Problem::warning("nvidia-smi printed nothing that reads as a GPU"));
        return Some(absent(Subject::Gpus, problem));
    }
    for line in &section.lines {
        if let Some(broken) = ["ERR!", "[Unknown Error]"].iter().find(|word| line.contains(*word)) {
            problems.push(Problem::warning(format!(
                "nvidia-smi says {broken} for a GPU: {}",
                short(line)
            )));
        }
    }
    let (processes, processes_unknown) = processes(sections.get("apps"), groups);
    let facts = Facts::Gpus(GpuFacts {
        gpus,
        processes,
        processes_unknown,
    });
    Some((vec![facts], problems))
}

/// Why nvidia-smi did not do all it was asked.
fn trouble(section: &Section) -> Option<Problem> {
    let text = section.text();
    let has = |words: &str| text.contains(words);
    if section.code == Some(127) {
        return Some(Problem::warning("nvidia-smi is not installed"));
    }
    if has("Driver/library version mismatch") {
        return Some(
            Problem::error(
                "the NVIDIA driver was replaced while the old one is loaded: driver/library version mismatch",
            )
            .with_fix("reboot the node, or unload and load the nvidia kernel modules"),
        );
    }
    if has("couldn't communicate with the NVIDIA driver") {
        return Some(
            Problem::error("the NVIDIA driver is not loaded").with_fix("sudo modprobe nvidia, or install the driver"),
        );
    }
    if has(NO_DEVICE) {
        return Some(Problem::warning("nvidia-smi finds no GPU"));
    }
    if section.ok() && !has("Unable to determine the device handle") {
        return None;
    }
    let line = section.lines.iter().find(|line| gpu(line).is_none());
    Some(match (line, section.code) {
        (Some(line), _) => Problem::error(format!("nvidia-smi: {}", short(line.trim()))),
        (None, Some(code)) => Problem::error(format!("nvidia-smi ended with code {code}")),
        (None, None) => Problem::error("nvidia-smi did not answer in time"),
    })
}

/// One line of `--query-gpu=index,name,utilization.gpu,memory.used,memory.total,power.draw,temperature.gpu`.
fn gpu(line: &str) -> Option<Gpu> {
    let (index, rest) = line.split_once(',')?;
    let index = index.trim().parse().ok()?;
    // A name may hold commas; the fields after it may not.
    let mut fields = rest.rsplitn(6, ',').map(str::trim);
    let temperature = number(fields.next()?);
    let power = number(fields.next()?);
    let memory_total = mib(fields.next()?);
    let memory_used = mib(fields.next()?);
    let utilization = number(fields.next()?);
    let name = short(fields.next()?);
    Some(Gpu {
        index,
        name,
        utilization: utilization.map(Percent),
        memory_used,
        memory_total,
        power: power.map(Watts),
        temperature: temperature.map(Celsius),
    })
}

/// Compute processes, or why they are not known.
fn processes(section: Option<&Section>, groups: &Groups) -> (Vec<GpuProcess>, Option<String>) {
    let Some(section) = section else {
        return (Vec::new(), Some("nvidia-smi was not asked for processes".to_owned()));
    };
    let mut processes = Vec::new();
    let mut other = None;
    let mut none = false;
    for line in &section.lines {
        match process(line, groups) {
            Some(p) => processes.push(p),
            None if line.contains("No running") || line.contains(NO_DEVICE) => none = true,
            None => other = Some(*line),
        }
    }
    let why = match (section.code, other) {
        (Some(0), None) => None,
        (Some(_), None) if none => None,
        // Where a GPU can't tell, it says so in place of the list.
        (_, Some(line)) => Some(format!("nvidia-smi: {}", short(line.trim()))),
        (Some(code), None) => Some(format!("nvidia-smi ended with code {code}")),
        (None, None) => Some("nvidia-smi did not answer in time".to_owned()),
    };
    (processes, why)
}

/// One line of `--query-compute-apps=gpu_uuid,pid,process_name,used_memory`.
fn process(line: &str, groups: &Groups) -> Option<GpuProcess> {
    let mut fields = line.splitn(3, ',').map(str::trim);
    let _gpu = fields.next()?;
    let pid = fields.next()?.parse().ok()?;
    let (name, memory) = fields.next()?.rsplit_once(',')?;
    Some(GpuProcess {
        pid,
        name: short(name.trim()),
        memory: mib(memory.trim()),
        container: groups.of(pid),
    })
}

/// A number, unless the tool has a word for "unknown" in its place: `[N/A]`, `N/A`, `[Not Supported]`, `[Insufficient Permissions]`, `ERR!` and more.
fn number(field: &str) -> Option<f32> {
    field
        .split_whitespace()
        .next()?
        .parse()
        .ok()
        .filter(|n: &f32| n.is_finite())
}

/// Mebibytes.
fn mib(field: &str) -> Option<Bytes> {
    field.split_whitespace().next()?.parse().ok().map(Bytes::from_mib)
}
