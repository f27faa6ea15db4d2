//! Answers of tools that were seen and that are no answer to what the console asks: what is not understood is unknown, and never a GPU or a number.

use bringup::domain::command::Exit;
use bringup::domain::event::{Facts, ProbeId, Subject};
use bringup::domain::gpu::GpuFacts;
use bringup::domain::load::{LineFact, Stage};
use bringup::domain::units::{Bytes, Percent};
use bringup::engine::grammar;
use bringup::log::{Decoder, LineEdit, Stream};
use bringup::probe;

use crate::cases::output;

/// What a node's GPU tool said, as the console reads it.
fn gpus(said: &str, code: u32) -> Result<GpuFacts, String> {
    let text = format!("@@ clock\n1795972680\n@= 0\n@@ gpus\n{said}\n@= {code}\n");
    let (facts, _) = probe::parse(ProbeId::Node, &output(text.into_bytes(), Vec::new(), Exit::Code(0)));
    let found = facts.into_iter().find_map(|fact| match fact {
        Facts::Gpus(gpus) => Some(Ok(gpus)),
        Facts::Absent {
            what: Subject::Gpus,
            why,
        } => Some(Err(why)),
        _ => None,
    });
    found.unwrap()
}

#[test]
fn what_is_no_answer_to_the_query_is_no_gpu() {
    let tables = [
        // The table of an idle GB10 and of an H200 under load.
        "| NVIDIA-SMI 580.126.09             Driver Version: 580.126.09     CUDA Version: 13.0     |\n|   0  NVIDIA GB10                    On  |   0000000F:01:00.0 Off |                  N/A |\n| N/A   36C    P8              3W /  N/A  | Not Supported          |      0%      Default |",
        "|   0  NVIDIA H200                    On  |   00000000:00:06.0 Off |                    0 |\n| N/A   52C    P0            636W /  700W |   21581MiB / 143771MiB |     95%      Default |",
        // `nvidia-smi topo -m`.
        "\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t0-15\t0\t\tN/A\n\nLegend:\n\n  X    = Self",
        // Answers to other questions: with a header, with units, of other columns.
        "index, uuid, name, memory.total [MiB], memory.used [MiB]",
        "GPU-97375b11-607d-9439-011a-e6bfddf698a1, 518, python3, 21572 MiB",
        "device,GPU use (%),VRAM Total Memory (B),VRAM Total Used Memory (B),Card Series\ncard0,0,21458059264,27856896,Radeon RX 7900 XT",
    ];
    for table in tables {
        let why = gpus(table, 0).expect_err(table);
        assert_eq!(why, "nvidia-smi printed nothing that reads as a GPU", "{table}");
    }
}

#[test]
fn each_field_of_a_gpu_is_read_by_itself() {
    let one = |line: &str| {
        let all = gpus(line, 0).expect(line).gpus;
        assert_eq!(all.len(), 1, "{line}");
        all.into_iter().next().unwrap()
    };
    // A GB10: no memory of its own, an eight-digit domain, no power limit.
    let gb10 = one("1, 0, 0000000F:01:00.0, [N/A], NVIDIA GB10, 0, [N/A], [N/A], 3.40, 36");
    assert_eq!((gb10.name.as_str(), gb10.unified), ("NVIDIA GB10", true));
    assert_eq!((gb10.memory_used, gb10.memory_total), (None, None));
    assert_eq!(
        (gb10.utilization, gb10.power.map(|w| w.0)),
        (Some(Percent(0.0)), Some(3.4))
    );
    for word in ["Not Supported", "[Not Supported]", "N/A", "[N/A]"] {
        let gpu = one(&format!(
            "1, 0, 0000000F:01:00.0, [N/A], NVIDIA GB10, {word}, {word}, {word}, {word}, {word}"
        ));
        assert_eq!(
            (gpu.utilization, gpu.power, gpu.temperature),
            (None, None, None),
            "{word}"
        );
        assert!(gpu.unified, "{word}");
    }
    // An H200 under load (580.159).
    let h200 = one("1, 0, 00000000:00:06.0, Disabled, NVIDIA H200, 95, 21581, 143771, 636.34, 52");
    assert_eq!(h200.memory_used, Some(Bytes::from_mib(21_581)));
    assert_eq!(h200.memory_total, Some(Bytes::from_mib(143_771)));
    assert_eq!((h200.utilization, h200.unified), (Some(Percent(95.0)), false));
    // More in use than there is.
    for used in ["200000", "18446744073709551615"] {
        let gpu = one(&format!(
            "1, 0, 00000000:00:06.0, Disabled, NVIDIA H200, 95, {used}, 143771, 636.34, 52"
        ));
        assert_eq!(
            (gpu.memory_used, gpu.memory_total),
            (None, Some(Bytes::from_mib(143_771))),
            "{used}"
        );
    }
    // One that tells no memory beside one that has its own uses none of the host's.
    let two = "2, 0, 00000000:00:06.0, Disabled, NVIDIA H200, 95, 21581, 143771, 636.34, 52\n2, 1, 00000000:00:07.0, Disabled, NVIDIA H200, 95, [N/A], [N/A], 636.34, 52";
    let unified: Vec<bool> = gpus(two, 0).unwrap().gpus.iter().map(|gpu| gpu.unified).collect();
    assert_eq!(unified, [false, false]);
}

#[test]
fn a_driver_that_does_not_answer_is_told_in_one_line() {
    let cases = [
        (
            "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 570.124",
            18,
            "the NVIDIA driver was replaced while the old one is loaded: driver/library version mismatch",
        ),
        (
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.",
            9,
            "the NVIDIA driver is not loaded",
        ),
        (
            "Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost. Reboot the system to recover this GPU",
            15,
            "a GPU has fallen off the bus: nvidia-smi says it is lost",
        ),
    ];
    for (said, code, want) in cases {
        assert_eq!(gpus(said, code), Err(want.to_owned()));
    }
    for said in [
        "Failed to initialize NVML: Function Not Found",
        "Unable to determine the device handle for GPU 0000:0B:00.0: Unknown Error",
    ] {
        let why = gpus(said, 15).expect_err(said);
        assert!(why.contains(said), "{why}");
    }
}

/// The plain text of the lines of a log.
fn plain(bytes: &[u8]) -> Vec<String> {
    let mut lines = Vec::new();
    Decoder::new().feed(Stream::Out, bytes, &mut |edit| {
        if let LineEdit::Push(line) = edit {
            lines.push(line.plain());
        }
    });
    lines
}

#[test]
fn a_log_whose_fields_are_coloured_one_by_one_reads_as_one_without_colours() {
    // vLLM in Docker, 2026: the prefix, the level, the time and the place have a colour each.
    let coloured = b"\x1b[0;36m(APIServer pid=1)\x1b[0;0m \x1b[32mINFO\x1b[0m \x1b[90m07-24 13:15:43\x1b[0m \x1b[90m[loader.py:10]\x1b[0m Starting to load model org/model...\n";
    let lines = plain(coloured);
    assert_eq!(
        lines,
        ["(APIServer pid=1) INFO 07-24 13:15:43 [loader.py:10] Starting to load model org/model..."]
    );
    // The weights may have to be fetched first.
    let stage = LineFact::Stage(Stage::Download);
    assert!(
        grammar::read(&lines[0]).contains(&stage),
        "{:?}",
        grammar::read(&lines[0])
    );
}

#[test]
fn what_a_server_says_of_its_own_speed_is_neither_a_failure_nor_progress() {
    let lines = [
        "INFO 02-28 21:48:18 metrics.py:161] Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 44.9 tokens/s, Running: 2 reqs, Swapped: 0 reqs, Pending: 3 reqs, GPU KV cache usage: 82.1%, CPU KV cache usage: 0.0%",
        "INFO 05-25 06:50:29 [metrics.py:502] Prefix cache hit rate: GPU: 0.00%, CPU: 90.00%",
        "(APIServer pid=92107) INFO 05-08 16:21:55 [metrics.py:101] SpecDecoding metrics: Mean acceptance length: 2.20, Accepted throughput: 15.60 tokens/s, Accepted: 78 tokens, Drafted: 195 tokens, Avg Draft acceptance rate: 40.0%",
        "[2026-04-05 20:02:51] Decode batch, #running-req: 32, #token: 11179, token usage: 0.08, cuda graph: True, gen throughput (token/s): 1635.11, #queue-req: 0",
        "[2026-04-05 20:02:51] INFO:     127.0.0.1:40052 - \"POST /v1/chat/completions HTTP/1.1\" 200 OK",
        "[2026-03-17 17:35:07 DP9 TP9] Decode batch, #running-req: 12, #token: 768, token usage: 0.00, cuda graph: True, gen throughput (token/s): 3.83, #queue-req: 0",
    ];
    for line in lines {
        let facts = grammar::read_line(line);
        assert_eq!(facts, [], "{line}");
    }
}

#[test]
fn what_a_gb10_holds_for_its_gpu_and_what_the_host_uses_are_two_numbers() {
    // Two processes beside each other: 36 GiB and 1.65 GiB, of 46.57 GiB that the host uses.
    let process = |pid: u32, mib: u32| {
        format!(
            "        Process ID                        : {pid}\n            Type                          : C\n            Name                          : /usr/local/bin/python\n            Used GPU Memory               : {mib} MiB\n"
        )
    };
    let text = format!(
        "@@ clock\n1795972680\n@= 0\n@@ memory\nMemTotal:       127600748 kB\nMemFree:         1804168 kB\nMemAvailable:   78768504 kB\nCached:         70123456 kB\n@= 0\n@@ gpus\n1, 0, 0000000F:01:00.0, [N/A], NVIDIA GB10, 0, [N/A], [N/A], 3.40, 36\n@= 0\n@@ apps\n==============NVSMI LOG==============\nGPU 0000000F:01:00.0\n    Processes\n{}{}@= 0\n",
        process(114_687, 36_864),
        process(4711, 1690),
    );
    let (facts, _) = probe::parse(ProbeId::Node, &output(text.into_bytes(), Vec::new(), Exit::Code(0)));
    let memory = facts.iter().find_map(|fact| match fact {
        Facts::Memory(memory) => Some(memory),
        _ => None,
    });
    let gpus = facts.iter().find_map(|fact| match fact {
        Facts::Gpus(gpus) => Some(gpus),
        _ => None,
    });
    let (memory, gpus) = (memory.unwrap(), gpus.unwrap());
    let gib = |bytes: Bytes| (bytes.gib() * 100.0).round() / 100.0;
    assert_eq!(gib(memory.used()), 46.57);
    assert_eq!(gpus.held().map(gib), Some(37.65));
    assert!(gpus.all_unified());
    // Nearly nothing is free, and most of what is used is page cache: that is no shortage.
    assert_eq!((memory.free.map(gib), gib(memory.available)), (Some(1.72), 75.12));
}

#[test]
fn builds_whose_versions_are_no_numbers_are_taken_as_they_are() {
    for version in [
        "0.26.1rc1.dev247+ge92dc7a9c.d20260802",
        "0.1.dev16260+g388fd5153.d20260430",
    ] {
        let text = format!(
            "image sha256:42b6\n{{\"python\": \"3.12.3\", \"missing\": [], \"ray\": \"2.60.0\", \"vllm\": \"{version}\"}}\n"
        );
        let (facts, _) = probe::parse(ProbeId::Versions, &output(text.into_bytes(), Vec::new(), Exit::Code(0)));
        let seen = format!("{facts:?}");
        assert!(seen.contains(version), "{seen}");
        let banner = format!(
            "(APIServer pid=1868) INFO 04-27 14:16:41 [utils.py:302]  ▄▄ ▄█ █     █     █ ▀▄▀ █  version {version}"
        );
        let start = [LineFact::NewStart, LineFact::Stage(Stage::Starting)];
        assert_eq!(grammar::read_line(&banner), start, "{version}");
    }
}
