//! nvidia-smi: devices, and the processes that hold them.

use std::ops::RangeInclusive;

use crate::domain::count::things;
use crate::domain::event::{Facts, Subject};
use crate::domain::gpu::{Gpu, GpuFacts, GpuProcess, GpuTool};
use crate::domain::problem::Problem;
use crate::domain::units::{Bytes, Celsius, Percent, Watts};

use super::super::sections::{Section, Sections};
use super::super::{absent, short};
use super::{Groups, Part, amd};

/// What nvidia-smi prints when it finds none.
const NO_DEVICE: &str = "No devices were found";

/// Words of nvidia-smi for memory that a GPU has none of: on unified memory it is the host's.
const NONE_OF_ITS_OWN: [&str; 4] = ["[N/A]", "N/A", "[Not Supported]", "Not Supported"];

/// A chip without memory of its own. Some drivers report the host's as if it were the GPU's.
const UNIFIED_CHIP: &str = "GB10";

/// Words that stand in a field of a GPU that is broken.
const BROKEN: [&str; 4] = ["ERR!", "[Unknown Error]", "[GPU is lost]", "[GPU requires reset]"];

/// Why the processes are not known where the tool for the GPUs is AMD's, or nvidia-smi's answer ended before them.
pub(super) const UNASKED: &str = "no tool was asked for processes";

/// Processes on the GPUs, or why they are not known.
pub(super) type Processes = Result<Vec<GpuProcess>, String>;

/// The devices, or why there are none; with what else is wrong.
pub(super) type Devices = (Result<Listed, Problem>, Vec<Problem>);

/// Devices, and who lists them.
#[derive(Debug, Clone)]
pub(super) struct Listed {
    pub gpus: Vec<Gpu>,
    pub tool: GpuTool,
}

/// Reads `@@ gpus` and `@@ apps`, or what AMD's tools say in their place.
pub fn parse(sections: &Sections) -> Option<Part> {
    let processes = processes(sections).unwrap_or_else(|| Err(UNASKED.to_owned()));
    devices(sections).map(|(gpus, problems)| match gpus {
        Ok(listed) => (vec![Facts::Gpus(facts(listed, processes))], problems),
        Err(problem) => absent(Subject::Gpus, problem),
    })
}

/// Devices and what holds them as one.
pub(super) fn facts(listed: Listed, processes: Processes) -> GpuFacts {
    let (processes, processes_unknown) = match processes {
        Ok(processes) => (processes, None),
        Err(why) => (Vec::new(), Some(why)),
    };
    GpuFacts {
        gpus: listed.gpus,
        processes,
        processes_unknown,
        tool: listed.tool,
    }
}

/// Reads the devices alone. `None` when they were not asked for.
pub(super) fn devices(sections: &Sections) -> Option<Devices> {
    if let Some(amd) = amd::devices(sections) {
        return Some((amd, Vec::new()));
    }
    let section = sections.get("gpus")?;
    let mut gpus: Vec<Gpu> = section.lines.iter().filter_map(|line| gpu(line)).collect();
    let trouble = trouble(section);
    let complete = section.code.is_some() && (!gpus.is_empty() || section.lines.iter().any(|l| l.contains(NO_DEVICE)));
    if !complete {
        let problem = trouble.unwrap_or_else(|| Problem::warning("nvidia-smi printed nothing that reads as a GPU"));
        return Some((Err(problem), Vec::new()));
    }
    let mut problems: Vec<Problem> = trouble.into_iter().collect();
    for line in &section.lines {
        if let Some(broken) = BROKEN.iter().find(|word| line.contains(*word)) {
            problems.push(Problem::warning(format!(
                "nvidia-smi says {broken} for a GPU: {}",
                short(line)
            )));
        }
    }
    if problems.is_empty() {
        problems.extend(missing(sections.get("attached"), section));
    }
    slices(sections.get("slices"), &mut gpus);
    // Beside GPUs with memory of their own, one that tells none has some that nobody tells.
    if gpus.iter().any(|gpu| gpu.memory_total.is_some()) {
        for gpu in gpus.iter_mut().filter(|gpu| !unified_chip(&gpu.name)) {
            gpu.unified = false;
        }
    }
    let tool = GpuTool::NvidiaSmi;
    Some((Ok(Listed { gpus, tool }), problems))
}

/// GPUs that the kernel's driver has and nvidia-smi does not list: it leaves out what has fallen off the bus or could not be started.
fn missing(attached: Option<&Section>, listed: &Section) -> Option<Problem> {
    let attached: Vec<Place> = attached?.lines.iter().filter_map(|l| place(l.trim())).collect();
    let field = |line: &&str| line.split(',').nth(2).and_then(|bus| place(bus.trim()));
    let listed: Vec<Place> = listed.lines.iter().filter_map(field).collect();
    let missing: Vec<String> = attached
        .iter()
        .filter(|at| !listed.contains(at))
        .map(|(domain, rest)| format!("{domain:04x}:{rest}"))
        .collect();
    if missing.is_empty() {
        return None;
    }
    let (all, most) = (attached.len(), missing.len().min(MISSING));
    let more = if missing.len() > most { " and more" } else { "" };
    let is = if missing.len() == 1 { "is" } else { "are" };
    let problem = Problem::error(format!(
        "nvidia-smi lists {} of the {} that the driver has: {}{more} {is} missing",
        all.saturating_sub(missing.len()),
        things(all, "GPU"),
        missing.get(..most).unwrap_or_default().join(", ")
    ));
    Some(problem.with_fix(XID))
}

/// What to do where the driver has lost a GPU, or hangs.
const XID: &str = "look for `NVRM: Xid` in the node's `sudo dmesg`; mostly a reboot of the node brings the GPU back";

/// That nvidia-smi hangs: it waits for the driver.
pub(super) fn silent() -> Problem {
    Problem::error("nvidia-smi does not answer").with_fix(XID)
}

/// Most missing GPUs that are named.
const MISSING: usize = 4;

/// A place on the PCI bus: its domain, and bus, device and function.
type Place = (u32, String);

/// `0000:06:00.0` as the kernel writes it, `00000000:06:00.0` as nvidia-smi does.
fn place(text: &str) -> Option<Place> {
    let (domain, rest) = text.split_once(':')?;
    Some((u32::from_str_radix(domain, 16).ok()?, short(&rest.to_ascii_lowercase())))
}

/// Why nvidia-smi did not do all it was asked.
fn trouble(section: &Section) -> Option<Problem> {
    let text = section.text();
    let has = |words: &str| text.contains(words);
    if section.code == Some(127) {
        return Some(Problem::warning(
            "no GPU tool on the node: neither nvidia-smi nor rocm-smi nor amd-smi",
        ));
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
    if has("GPU is lost") {
        return Some(
            Problem::error("a GPU has fallen off the bus: nvidia-smi says it is lost").with_fix("reboot the node"),
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
        (None, Some(code)) if super::ended(code) => silent(),
        (None, Some(code)) => Problem::error(format!("nvidia-smi ended with code {code}")),
        (None, None) => Problem::error("nvidia-smi did not answer in time").with_fix(XID),
    })
}

/// One line of the script's `--query-gpu`: count, index, bus id, MIG mode, name, utilisation, memory used and total, power, temperature.
fn gpu(line: &str) -> Option<Gpu> {
    let mut fields = line.splitn(5, ',').map(str::trim);
    let _count: u32 = fields.next()?.parse().ok()?;
    let index = fields.next()?.parse().ok()?;
    let (_bus, _mig) = (fields.next()?, fields.next()?);
    // A name may hold commas; the fields after it may not.
    let mut fields = fields.next()?.rsplitn(6, ',').map(str::trim);
    let temperature = number(fields.next()?, CELSIUS);
    let power = number(fields.next()?, WATTS);
    let (total, used) = (fields.next()?, fields.next()?);
    let utilization = number(fields.next()?, PERCENT);
    let name = short(fields.next()?);
    let unified = NONE_OF_ITS_OWN.contains(&total) || unified_chip(&name);
    let total = mib(total);
    // More than there is, is a fault of the driver.
    let used = mib(used).filter(|used| total.is_none_or(|total| *used <= total));
    Some(Gpu {
        index,
        utilization: utilization.map(Percent),
        memory_used: used.filter(|_| !unified),
        memory_total: total.filter(|_| !unified),
        unified,
        power: power.map(Watts),
        temperature: temperature.map(Celsius),
        name,
        slices: Vec::new(),
    })
}

/// Whether a GPU of this name has no memory of its own.
fn unified_chip(name: &str) -> bool {
    name.split_whitespace().any(|word| word == UNIFIED_CHIP)
}

/// Adds the parts of the GPUs that are split, from `nvidia-smi -L`: under `GPU 0: …` a line `MIG 3g.71gb  Device  0: (UUID: …)` each.
fn slices(section: Option<&Section>, gpus: &mut [Gpu]) {
    let mut index: Option<u32> = None;
    for line in section.iter().filter(|s| s.code.is_some()).flat_map(|s| &s.lines) {
        let line = line.trim();
        if let Some((number, _)) = line.strip_prefix("GPU ").and_then(|l| l.split_once(':')) {
            index = number.parse().ok();
        } else if let Some(name) = line.strip_prefix("MIG ").and_then(|l| l.split_whitespace().next())
            && let Some(gpu) = gpus.iter_mut().find(|g| Some(g.index) == index)
        {
            gpu.slices.push(short(name));
        }
    }
}

/// Reads the processes of `nvidia-smi -q -d PIDS`; `None` when they were not asked for.
pub(super) fn processes(sections: &Sections) -> Option<Processes> {
    let section = sections.get("apps")?;
    Some(list(section, &Groups::read(sections)))
}

fn list(section: &Section, groups: &Groups) -> Processes {
    let mut found: Vec<GpuProcess> = Vec::new();
    let (mut told, mut other, mut unknown) = (false, None, None);
    for line in &section.lines {
        let (key, value) = line.split_once(':').unwrap_or((line, ""));
        let (key, value) = (key.trim(), value.trim());
        match key {
            // A list follows, or a word stands in its place.
            "Processes" => match value {
                "" | "None" => told = true,
                word => unknown = Some(format!("nvidia-smi says {} of its processes", short(word))),
            },
            "Process ID" => {
                told = true;
                match value.parse() {
                    Ok(pid) => found.push(GpuProcess {
                        pid,
                        name: String::new(),
                        memory: None,
                        container: groups.of(pid),
                        draws: false,
                    }),
                    Err(_) => unknown = Some(format!("nvidia-smi names no process: {}", short(value))),
                }
            }
            "Type" => last(&mut found, |p| p.draws = value == "G"),
            "Name" => last(&mut found, |p| p.name = short(value)),
            "Used GPU Memory" => last(&mut found, |p| p.memory = mib(value)),
            _ if line.contains(NO_DEVICE) => told = true,
            "GPU instance ID"
            | "Compute instance ID"
            | "Attached GPUs"
            | "Timestamp"
            | "Driver Version"
            | "CUDA Version" => {}
            _ if key.starts_with("GPU ") || line.contains("NVSMI LOG") => {}
            _ => other = Some(*line),
        }
    }
    match (unknown, section.code) {
        (Some(why), Some(_)) => Err(why),
        (None, Some(_)) if told => Ok(found),
        (_, Some(code)) => Err(match other {
            Some(line) => format!("nvidia-smi: {}", short(line.trim())),
            None if super::ended(code) => "nvidia-smi does not answer".to_owned(),
            None => format!("nvidia-smi ended with code {code}"),
        }),
        (_, None) => Err("nvidia-smi did not answer in time".to_owned()),
    }
}

fn last(found: &mut [GpuProcess], set: impl FnOnce(&mut GpuProcess)) {
    if let Some(process) = found.last_mut() {
        set(process);
    }
}

/// A number, unless the tool has a word for "unknown" in its place: `[N/A]`, `N/A`, `[Not Supported]`, `[Insufficient Permissions]`, `ERR!` and more.
/// What can be: a number beyond it is a fault of the driver, and no reading.
const PERCENT: RangeInclusive<f32> = 0.0..=100.0;
const WATTS: RangeInclusive<f32> = 0.0..=10_000.0;
const CELSIUS: RangeInclusive<f32> = -60.0..=200.0;

fn number(field: &str, possible: RangeInclusive<f32>) -> Option<f32> {
    field
        .split_whitespace()
        .next()?
        .parse()
        .ok()
        .filter(|n: &f32| possible.contains(n))
}

/// Mebibytes.
fn mib(field: &str) -> Option<Bytes> {
    field.split_whitespace().next()?.parse().ok().map(Bytes::from_mib)
}
