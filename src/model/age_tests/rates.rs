//! Rates of a load that follows another, told by who saw both and by who came between them.

use super::*;

/// Tells of memory in use on the head, in GiB.
fn used(console: &mut Console, second: u64, gib: u64) {
    let memory = MemoryFacts {
        total: Bytes(120 << 30),
        available: Bytes((120 - gib) << 30),
        ..MemoryFacts::default()
    };
    console.tell(second, Source::Node(HEAD), EventKind::Facts(Facts::Memory(memory)));
}

#[test]
fn a_load_is_told_the_same_by_who_saw_the_end_of_the_one_before() {
    for comes in [650, 705] {
        let mut console = Console::comes(comes, 0);
        // The old server's memory goes back shortly before the new one begins.
        for second in (comes + 2..=702).step_by(2) {
            used(&mut console, second, if second < 700 { 107 } else { 7 });
        }
        console.line(707, 706, LineFact::NewStart);
        for second in (708..=714).step_by(2) {
            used(&mut console, second, 7 + (second - 708));
        }
        let judged = judge(&console.state, None, console.state.now.stamp).unwrap();
        let head = console.state.config.node_name(HEAD).to_owned();
        let rate = judged.evidence.iter().find(|told| told.contains("memory on"));
        assert_eq!(
            rate,
            Some(&format!("host memory on {head} grows 60.0 GiB/min")),
            "{comes}"
        );
    }
}

#[test]
fn what_a_stall_rests_on_never_says_that_it_grows() {
    // Up by 170 MiB in each ten seconds with a dip between, and then still: too little to be a movement in the first look, too much to be none.
    let mut console = Console::comes(700, 0);
    dead(&mut console, 700);
    let mib = |second: u64| {
        let turn = (second - 700) / 2;
        let up = turn.min(5) * 34;
        up - if turn % 2 == 1 { 20 } else { 0 }
    };
    for second in (702..=800).step_by(2) {
        for id in [HEAD, NodeId(1)] {
            let available = Bytes((60 << 30) - (mib(second) << 20));
            let total = Bytes(120 << 30);
            let memory = MemoryFacts {
                total,
                available,
                ..MemoryFacts::default()
            };
            console.tell(second, Source::Node(id), EventKind::Facts(Facts::Memory(memory)));
        }
        console.tell(
            second,
            Source::Server,
            EventKind::Server(ServerFacts::Health(Health::Refused)),
        );
        let judged = judge(&console.state, None, console.state.now.stamp).unwrap();
        if let Verdict::Stalled { .. } = judged.verdict {
            assert!(
                !judged.evidence.iter().any(|told| told.contains("grows")),
                "{second}: {judged:?}"
            );
        }
        if second == 710 {
            assert_eq!(judged.verdict, Verdict::Early { since: at(700) });
        }
    }
    let stalled = Verdict::Stalled {
        since: When::at(at(100)),
    };
    assert_eq!(console.verdict(), stalled);
}
