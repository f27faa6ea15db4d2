//! The stream of a node's readings: what it says, however it is cut, mixed or delayed.

use std::time::Duration;

use bringup::domain::Stamp;
use bringup::domain::event::{Facts, Subject};
use bringup::probe::node::stream::{MAX_LINE, Reader, Reading};
use proptest::collection::vec;
use proptest::prelude::*;

const MARK: &str = "5f3a";
const LIMIT: Duration = Duration::from_secs(10);

/// A whole stream: one record of each kind, as the script writes them on a Spark whose clock shows 1000 s.
const STREAM: &str = include_str!("../fixtures/stream/spark");

/// The lines of the records of one kind.
fn records(kind: &str) -> String {
    let ours = |l: &&str| l.starts_with(&format!("{MARK} {kind} ")) || l.starts_with(&format!("{MARK} {kind}= "));
    STREAM.lines().filter(ours).map(|l| format!("{l}\n")).collect()
}

fn reader() -> Reader {
    Reader::new(MARK, LIMIT, Stamp(0))
}

fn facts(readings: &[Reading]) -> Vec<&Facts> {
    readings.iter().flat_map(|r| &r.facts).collect()
}

fn subjects(readings: &[Reading]) -> Vec<Subject> {
    readings.iter().map(|r| r.what).collect()
}

#[test]
fn every_subject_comes_out_of_a_whole_stream() {
    let mut reader = reader();
    let readings = reader.feed(STREAM.as_bytes(), Stamp(5000));
    let all = [
        Subject::Memory,
        Subject::Sockets,
        Subject::Gpus,
        Subject::Fabric,
        Subject::Containers,
        Subject::Disk,
    ];
    assert_eq!(subjects(&readings), all);
    assert_eq!(reader.torn(), 0);
    for reading in &readings {
        assert_eq!(reading.problems, [], "{:?}", reading.what);
        match &reading.facts[..] {
            [Facts::Memory(m)] => assert_eq!((m.load, m.pressure.map(|p| p.0)), (Some(3.12), Some(2.31))),
            // Devices and processes are one reading.
            [Facts::Gpus(g)] => assert_eq!((g.gpus.len(), g.held().map(|b| b.gib().round())), (1, Some(89.0))),
            [Facts::Containers(c)] => assert_eq!(c.containers[0].up_seconds, Some(785)),
            [Facts::Sockets(s)] => assert_eq!(s.on_port(8000).next().unwrap().pid, Some(114_600)),
            [Facts::Fabric(f)] => {
                assert_eq!(f.with_address("192.168.200.12").unwrap().speed, Some(200_000));
                assert_eq!(f.rdma[0].sent.unwrap().0, 500_000_000);
            }
            [Facts::Disk(d)] => {
                assert_eq!(d.disks.len(), 2);
                assert_eq!(d.cache.as_ref().unwrap().size.0, 131_482_624 << 10);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(
        readings[4].every,
        Duration::from_millis(20_240),
        "the pause and the look itself"
    );
}

#[test]
fn a_reading_is_as_old_as_the_look_whatever_the_way_took() {
    let record = |began: u64, ended: u64| {
        format!(
            "{MARK} load 1\n{MARK} disk @@ disk\n{MARK} disk /dev/sda 10 5 5 50% /\n{MARK} disk @= 0\n{MARK} disk= 3 32 {began} {ended} 60\n"
        )
    };
    let mut reader = reader();
    let mut at = |record: String, now| reader.feed(record.as_bytes(), Stamp(now))[0].at;
    // Seen after 20 ms, of which the look itself took 2 s.
    assert_eq!(at(record(100_000, 100_200), 52_020), Stamp(50_020));
    // Held up for 7 s on the way; in 15 s the clocks may have come 3 ms apart.
    assert_eq!(at(record(101_000, 101_000), 67_020), Stamp(60_023));
    // The fastest says best how the two clocks differ.
    assert_eq!(at(record(102_000, 102_000), 70_005), Stamp(70_005));
    // A clock that runs slow by less than one in five thousand ages nothing.
    let day = 86_400_000;
    assert_eq!(
        at(record(102_000 + day / 10, 102_000 + day / 10), 70_005 + day + 17_000),
        Stamp(70_005 + day + 17_000)
    );
}

#[test]
fn records_that_stand_between_each_other_are_told_apart() {
    let (memory, gpus) = (records("memory"), records("sockets"));
    let mut mixed = String::new();
    let (mut a, mut b) = (memory.lines(), gpus.lines());
    loop {
        match (a.next(), b.next()) {
            (None, None) => break,
            (x, y) => x.into_iter().chain(y).for_each(|line| {
                mixed.push_str("Broadcast message from root@spark-1: the system will reboot\n");
                mixed.push_str(line);
                mixed.push('\n');
            }),
        }
    }
    let mut reader = reader();
    let mut found = subjects(&reader.feed(mixed.as_bytes(), Stamp(5)));
    found.sort();
    assert_eq!((found, reader.torn()), (vec![Subject::Memory, Subject::Sockets], 0));
}

#[test]
fn a_torn_record_is_told_and_left_out_and_the_next_is_read() {
    let memory = records("memory");
    let cases: Vec<String> = vec![
        // A line is missing.
        memory.replacen(&format!("{MARK} memory MemFree:         1804168 kB\n"), "", 1),
        // Another record begins in the middle of a line.
        memory.replacen("MemFree:  ", &format!("MemFr{MARK} gpus x"), 1),
        // A line is far too long.
        memory.replacen("MemFree:  ", &"x".repeat(MAX_LINE * 2), 1),
        // The end is no end.
        memory.replacen("memory= ", "memory= x", 1),
        // It ended before it began.
        memory.replace("100000 100001", "100001 100000"),
    ];
    for torn in cases {
        let mut reader = reader();
        assert_eq!(
            facts(&reader.feed(torn.as_bytes(), Stamp(5))),
            Vec::<&Facts>::new(),
            "{torn}"
        );
        assert_eq!(reader.torn(), 1, "{torn}");
        assert_eq!(subjects(&reader.feed(memory.as_bytes(), Stamp(6))), [Subject::Memory]);
    }
    let mut reader = reader();
    let (head, rest) = memory.split_at(memory.len() / 2);
    reader.feed(head.as_bytes(), Stamp(5));
    reader.lost();
    assert_eq!(subjects(&reader.feed(rest.as_bytes(), Stamp(5))), []);
    assert_eq!(
        subjects(&reader.feed(memory.as_bytes(), Stamp(6))),
        [Subject::Memory],
        "it goes on after a loss"
    );
}

#[test]
fn a_tool_that_hangs_is_told_once_and_only_while_the_node_speaks() {
    let mut reader = reader();
    reader.feed(STREAM.as_bytes(), Stamp(1000));
    assert_eq!(subjects(&reader.silent(Stamp(1500))), []);
    assert_eq!(
        subjects(&reader.silent(Stamp(60_000))),
        [],
        "the node says nothing at all: that is the connection's"
    );
    let memory = records("memory");
    let mut told = Vec::new();
    for second in 1..80 {
        let now = Stamp(1000 + second * 1000);
        reader.feed(memory.as_bytes(), now);
        told.extend(reader.silent(now).into_iter().map(|r| (second, r)));
    }
    let said: Vec<_> = told
        .iter()
        .map(|(at, r)| (*at, r.what, r.problems[0].text.as_str()))
        .collect();
    assert_eq!(
        said,
        [
            (8, Subject::Gpus, "nvidia-smi does not answer"),
            (34, Subject::Sockets, "/proc does not answer"),
            (44, Subject::Fabric, "ip does not answer"),
            (64, Subject::Containers, "docker does not answer"),
        ]
    );
    let again = records("containers");
    assert_eq!(
        subjects(&reader.feed(again.as_bytes(), Stamp(90_000))),
        [Subject::Containers]
    );
}

#[test]
fn processes_of_an_old_list_are_not_known_any_more() {
    let mut reader = reader();
    reader.feed(STREAM.as_bytes(), Stamp(1000));
    let later = records("gpus").replace("100000 100001", "110000 110001");
    let readings = reader.feed(later.as_bytes(), Stamp(101_000));
    match facts(&readings)[..] {
        [Facts::Gpus(g)] => assert_eq!((g.gpus.len(), g.held()), (1, None)),
        ref other => panic!("{other:?}"),
    }
}

proptest! {
    /// However the bytes come, the same readings come out.
    #[test]
    fn a_stream_reads_the_same_however_it_is_cut(cuts in vec(0..STREAM.len(), 0..40)) {
        let whole = reader().feed(STREAM.as_bytes(), Stamp(5000));
        let mut cuts = cuts;
        cuts.extend([0, STREAM.len()]);
        cuts.sort_unstable();
        let mut reader = reader();
        let parts: Vec<Reading> = cuts.windows(2).flat_map(|w| reader.feed(&STREAM.as_bytes()[w[0]..w[1]], Stamp(5000))).collect();
        prop_assert_eq!(parts, whole);
    }

    /// A stream with a hole says less than the whole one, and never something else.
    #[test]
    fn a_stream_with_a_hole_is_silent_or_right(from in 0..STREAM.len(), length in 0..400usize, junk in "[^\n]{0,60}\n?") {
        let whole = reader().feed(STREAM.as_bytes(), Stamp(5000));
        let bytes = STREAM.as_bytes();
        let end = (from + length).min(bytes.len());
        prop_assume!(junk.len() != end - from);
        let holed = [&bytes[..from], junk.as_bytes(), &bytes[end..]].concat();
        for reading in reader().feed(&holed, Stamp(5000)) {
            let same = whole.iter().find(|w| w.what == reading.what).unwrap();
            let right = reading.facts == same.facts;
            // The list of processes has a record of its own.
            let silent = reading.facts.iter().all(|f| match f {
                Facts::Absent { .. } => true,
                Facts::Gpus(g) => g.processes_unknown.is_some(),
                _ => false,
            });
            prop_assert!(right || silent, "{reading:?}");
        }
    }

    #[test]
    fn a_reader_takes_any_bytes(bytes in vec(any::<u8>(), 0..600), now in any::<u64>()) {
        let mut reader = reader();
        reader.feed(&bytes, Stamp(now));
        reader.silent(Stamp(now));
        let marked = [MARK.as_bytes(), b" memory= ", &bytes, b"\n"].concat();
        reader.feed(&marked, Stamp(now));
    }
}
