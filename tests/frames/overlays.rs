//! What stands over the panes.

use std::time::Duration;

use bringup::domain::command::Exit;
use bringup::domain::container::{ContainerFacts, Labels};
use bringup::domain::intent::{Action, Mode};
use bringup::domain::question::{Ask, Question};
use bringup::domain::serving::{ServeFacts, ServeProcess};
use bringup::domain::sockets::{Listener, SocketFacts};
use bringup::domain::{HopId, NodeId, QuestionId, Source};
use bringup::model::State;
use bringup::view::Glyphs;

use crate::build::*;
use crate::colours::assert_role;
use crate::runs::*;
use crate::shot::{look, shot, shot_beside, shot_typed};

fn snapshot(name: &str, mut state: State) {
    let logs = logs(&mut state);
    for (width, height) in [(80, 24), (120, 40)] {
        let name = format!("over_{name}_{width}x{height}");
        insta::assert_snapshot!(name, shot(&state, &logs, (width, height)).text());
    }
}

fn in_mode(mut state: State, mode: Mode) -> State {
    state.screen.mode = mode;
    state
}

#[test]
fn help() {
    snapshot("help", in_mode(idle(example()), Mode::Help));
}

#[test]
fn stop_menu() {
    snapshot("stop", in_mode(ready(example()), Mode::StopMenu));
}

#[test]
fn a_run_under_way_can_be_stopped_from_the_stop_menu() {
    let line = "the run under way";
    let mut state = in_mode(known(), Mode::StopMenu);
    let logs = logs(&mut state);
    let idle = shot(&state, &logs, (80, 24)).text();
    assert!(!idle.contains(line) && !idle.contains("r the run"), "{idle}");
    assert!(idle.contains("The plan is shown first"), "{idle}");
    run_until(&mut state, Exit::Code(0), &[]);
    let text = shot(&state, &logs, (80, 24)).text();
    for part in [line, "r the run", "r acts at once"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

/// All words of a box that is drawn this wide, in order.
fn words(state: &State, width: u16) -> String {
    let text = shot(state, &Default::default(), (width, 120)).text();
    let text = text.replace(|c: char| ('─'..='╿').contains(&c), " ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn nothing_of_the_stop_menu_or_the_help_is_cut_on_a_narrow_screen() {
    let mut state = in_mode(known(), Mode::StopMenu);
    run_until(&mut state, Exit::Code(0), &[]);
    state.screen.mode = Mode::StopMenu;
    for part in [
        "everything: the server, and the containers on spark-1, spark-2",
        "r acts at once. s and a show their plan first; nothing of it runs before Enter.",
    ] {
        let all = words(&state, 46);
        assert!(all.contains(part), "{part}\n{all}");
    }
    state.screen.mode = Mode::Help;
    for (_, bindings) in bringup::input::help() {
        for binding in bindings {
            let all = words(&state, 60);
            let help = binding.help.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(all.contains(&help), "{help}\n{all}");
        }
    }
}

#[test]
fn what_the_terminal_says_is_seen_under_a_plan_too() {
    let state = in_mode(planned(known(), Action::Up), Mode::Plan);
    for size in [(80, 24), (120, 40)] {
        let drawn = shot_beside(&state, &Default::default(), size, false, Some("copied: #!/bin/sh"));
        assert!(drawn.text().contains("copied: #!/bin/sh"), "{}", drawn.text());
    }
}

#[test]
fn a_step_with_nothing_to_do_says_so_beside_its_title() {
    let mut state = in_mode(planned(known(), Action::Up), Mode::Plan);
    let plan = state.plan.as_mut().expect("a plan");
    let title = plan.steps[0].title.clone();
    plan.notes.push(format!("{title}: true already, will be skipped"));
    plan.notes.push("of the whole plan".into());
    let text = shot(&state, &Default::default(), (140, 120)).text();
    assert!(text.contains("! of the whole plan"), "{text}");
    assert_eq!(text.matches(&title).count(), 1, "{text}");
    let mut lines = text.lines().skip_while(|l| !l.contains(&title));
    let next = lines.nth(1).unwrap_or_default().trim_matches(['┃', ' ']);
    assert_eq!(next, "true already, will be skipped");
}

#[test]
fn a_step_that_will_be_skipped_lists_no_conditions_of_its_commands() {
    let mut state = in_mode(planned(known(), Action::Up), Mode::Plan);
    let shown = |state: &State| shot(state, &Default::default(), (140, 200)).text();
    let needs = "spark-1 can be reached";
    let before = shown(&state).matches(needs).count();
    let plan = state.plan.as_mut().expect("a plan");
    let title = plan
        .steps
        .iter()
        .find(|s| s.title.starts_with("start the head"))
        .expect("a head")
        .title
        .clone();
    plan.notes.push(format!("{title}: {}", bringup::plan::SKIPPED));
    let text = shown(&state);
    assert!(text.contains(bringup::plan::SKIPPED), "{text}");
    assert_eq!(text.matches(needs).count(), before - 1, "{text}");
}

#[test]
fn commands_that_ran() {
    let mut state = in_mode(ready(example()), Mode::Commands);
    commands(&mut state);
    snapshot("commands", state);
}

#[test]
fn a_host_key_is_shown_whole() {
    let mut state = in_mode(empty(example()), Mode::Question);
    let fingerprint = "SHA256:uNiVztksCsDhcc0u9e8BxrQXVUpKZIDTMczCvj3tD2s";
    state.questions.push_back(Question {
        id: QuestionId(1),
        from: Source::Hop(HopId(0)),
        ask: Ask::HostKey {
            host: "10.1.230.180:22".into(),
            algorithm: "ssh-ed25519".into(),
            fingerprint: fingerprint.into(),
            file: "~/.ssh/known_hosts".into(),
        },
    });
    let logs = logs(&mut state);
    for size in [(60, 20), (80, 24), (120, 40)] {
        assert!(shot(&state, &logs, size).text().contains(fingerprint), "{size:?}");
    }
    let keys = |text: String| text.lines().last().unwrap_or_default().trim().to_owned();
    let early = keys(shot_beside(&state, &logs, (80, 24), true, None).text());
    assert_eq!(
        early, "Ctrl-C quit",
        "a question that nobody can have read takes no answer"
    );
    assert!(keys(shot(&state, &logs, (80, 24)).text()).starts_with("y trust  n refuse"));
    snapshot("host_key", state);
}

#[test]
fn a_passphrase_is_dots() {
    let mut state = in_mode(empty(example()), Mode::Question);
    state.questions.push_back(Question {
        id: QuestionId(2),
        from: Source::Hop(HopId(0)),
        ask: Ask::Passphrase {
            key: "~/.ssh/id_ed25519".into(),
            again: true,
        },
    });
    let logs = logs(&mut state);
    let text = shot(&state, &logs, (80, 24)).text();
    assert!(text.contains("●●●●●●●▏") && !text.contains("●●●●●●●●"), "{text}");
    snapshot("passphrase", state);
}

fn login(echo: bool) -> Ask {
    Ask::Login {
        account: "gate (aurora@10.1.230.180:22)".into(),
        said: "Approve the request on your phone, or type the code it shows.".into(),
        prompt: "Verification code:".into(),
        echo,
        number: 2,
        of: 2,
        again: true,
    }
}

#[test]
fn what_a_login_asks_shows_its_text_and_hides_the_answer() {
    let mut state = in_mode(empty(example()), Mode::Question);
    state.questions.push_back(Question {
        id: QuestionId(3),
        from: Source::Hop(HopId(0)),
        ask: login(false),
    });
    let logs = logs(&mut state);
    let text = shot(&state, &logs, (80, 24)).text();
    assert!(
        text.contains("> ●●●●●●●▏") && text.contains("Verification code:"),
        "{text}"
    );
    snapshot("login", state);
}

#[test]
fn an_answer_that_may_be_seen_is_seen_and_its_end_when_it_is_long() {
    let mut state = in_mode(empty(example()), Mode::Question);
    state.questions.push_back(Question {
        id: QuestionId(3),
        from: Source::Hop(HopId(0)),
        ask: login(true),
    });
    let logs = logs(&mut state);
    let typed = |text: &str| {
        let look = look(Glyphs::Unicode);
        shot_typed(&state, &logs, &look, (80, 24), Some(text)).text()
    };
    assert!(typed("aurora").contains("> aurora▏"), "{}", typed("aurora"));
    let long = typed(&format!("{}the end", "x".repeat(500)));
    assert!(
        long.contains("xxxthe end▏") && !long.contains(&"x".repeat(40)),
        "{long}"
    );
}

#[test]
fn a_long_overlay_scrolls_and_says_so() {
    let mut state = in_mode(idle(example()), Mode::Help);
    let logs = logs(&mut state);
    let top = shot(&state, &logs, (80, 24)).regions.scrolled.expect("help scrolls");
    assert!(top.total > top.rows && top.top == 0, "{top:?}");
    state.screen.overlay_top = u16::MAX;
    let end = shot(&state, &logs, (80, 24)).regions.scrolled.expect("help scrolls");
    assert_eq!(end.top, end.last_top());
}

#[test]
fn a_plan_shows_its_exact_commands() {
    let state = in_mode(planned(known(), Action::Up), Mode::Plan);
    let all = shot(&state, &Default::default(), (140, 400)).text().replace('┃', " ");
    let all = all.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "docker run -d --name vllm-qwen35",
        "VLLM_HOST_IP=192.168.200.13",
        "on spark-2:",
        "vllm serve",
    ] {
        assert!(all.contains(part), "{part}\n{all}");
    }
    snapshot("plan", state);
}

#[test]
fn a_plan_that_cannot_run_says_why() {
    let mut state = known();
    state.observed.nodes[1].link = Default::default();
    snapshot("refused", in_mode(planned(state, Action::Workers), Mode::Plan));
}

#[test]
fn a_run_waits_for_what_it_says() {
    let mut state = in_mode(known(), Mode::Run);
    run_until(&mut state, Exit::Code(0), &[]);
    snapshot("run", state);
}

#[test]
fn steps_that_went_well_leave_a_low_screen_to_the_logs() {
    let mut state = in_mode(all_known(loading(example())), Mode::Run);
    let listener = Listener {
        address: "*".into(),
        port: 6379,
        pid: None,
        container: None,
    };
    state.observed.nodes[0].sockets = read(SocketFacts {
        listeners: vec![listener],
    });
    run_until(&mut state, Exit::Code(0), &[]);
    let logs = logs(&mut state);
    let low = shot(&state, &logs, (80, 24)).text();
    for (part, there) in [
        ("✓  1-3 done", true),
        ("▸  4 serve", true),
        ("(and for 2 more)", true),
        ("start the head", false),
    ] {
        assert_eq!(low.contains(part), there, "{part}\n{low}");
    }
    let tall = shot(&state, &logs, (80, 50)).text();
    for part in ["✓  1 start the head", "✓  2 join", "▸  4 serve"] {
        assert!(tall.contains(part), "{part}\n{tall}");
    }
}

#[test]
fn a_failed_step_shows_its_lines_and_looks_bad() {
    let mut state = in_mode(known(), Mode::Run);
    let line = "docker: Error response from daemon: could not select device driver \"\" with capabilities: [[gpu]].";
    run_until(&mut state, Exit::Code(125), &[line]);
    let logs = logs(&mut state);
    let drawn = shot(&state, &logs, (120, 40));
    assert_eq!(words(&state, 120).matches(line).count(), 1, "{}", drawn.text());
    assert_role(&drawn, "✗  2", "bad");
    snapshot("run_failed", state);
}

#[test]
fn a_failed_step_shows_the_first_cause_beside_it() {
    let mut state = in_mode(known(), Mode::Run);
    let said = "exit status 1: see the log";
    run_until(&mut state, Exit::Code(1), &[said]);
    let head = bringup::domain::NodeId(0);
    says(
        &mut state,
        head,
        12,
        "2026-11-29 17:19:11,161 INFO scripts.py:1101 -- Local node IP: 10.1.230.180",
    );
    says(
        &mut state,
        head,
        9,
        "(raylet) Raylet is terminated. Termination is unexpected.",
    );
    says(&mut state, head, 8, "RuntimeError: the engine is gone");
    let drawn = shot(&state, &Default::default(), (120, 50));
    let text = drawn
        .text()
        .replace('┃', " ")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    for part in [
        "cause Ray on spark-1 took the address 10.1.230.180, which is no node's fabric address (12 s ago)",
        "| spark-1: 2026-11-29 17:19:11,161 INFO scripts.py:1101 -- Local node IP: 10.1.230.180",
        "from it follows: Ray's process on spark-1 ended and was not told to; and 1 more",
        "seen exit code 1: exit status 1: see the log",
        "fix: Ray must be started with --node-ip-address 192.168.200.12 and VLLM_HOST_IP=192.168.200.12 on spark-1",
        "on spark-1: docker logs vllm-qwen35",
    ] {
        assert!(text.contains(part), "{part}\n{}", drawn.text());
    }
    assert_role(&drawn, "cause    Ray", "bad");
    // Where not all of it fits, the step that failed, the cause and the cure are what is seen first.
    let low = shot(&state, &Default::default(), (80, 24)).text();
    assert!(low.contains("j k scroll"), "{low}");
    for part in [
        "start the head on spark-1  failed",
        "cause    Ray on spark-1 took",
        "fix: Ray must be",
        "on spark-1: docker logs",
    ] {
        assert!(low.contains(part), "{part}\n{low}");
    }
}

#[test]
fn a_run_that_gave_up_says_when_and_since_when_what_it_waited_for_is_there() {
    let mut config = example();
    config.limits.stall = Duration::from_secs(5);
    let mut state = in_mode(all_known(loading(config)), Mode::Run);
    let listener = Listener {
        address: "*".into(),
        port: 6379,
        pid: None,
        container: None,
    };
    state.observed.nodes[0].sockets = read(SocketFacts {
        listeners: vec![listener],
    });
    let process = ServeProcess {
        pid: 7,
        mark: None,
        command: "vllm serve".into(),
        up_seconds: Some(60),
    };
    state.observed.nodes[0].serve = read(ServeFacts {
        processes: vec![process],
    });
    run_until(&mut state, Exit::Code(0), &[]);
    let words = |state: &State| {
        let text = shot(state, &Default::default(), (120, 50)).text().replace('┃', " ");
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let failed = words(&state);
    for part in [
        "failed",
        "(limits.stall)",
        "fix: no log names a failure",
        "U plans anew",
    ] {
        assert!(failed.contains(part), "{part}\n{failed}");
    }
    let since = ago(3).stamp;
    let server = ready(example()).observed.server;
    state.observed.server = server;
    let mut machine = state.run.take().expect("a run");
    machine.look_back(&state.observed, &state.config, since);
    state.run = Some(machine);
    let said = words(&state);
    for part in [
        "✗ 4 serve",
        "failed",
        "it was given up at 12:30:",
        "; the server is ready since 12:31:04",
        "what the run waited for has come true",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    assert!(!said.contains("fix:"), "nothing is left to mend\n{said}");
    state.screen.mode = Mode::Panes;
    let line = words(&state);
    assert!(line.contains("was given up at step 4 of 4"), "{line}");
}

#[test]
fn who_comes_to_a_cluster_at_which_another_bringup_is_at_work_is_not_told_to_start() {
    let mut state = known();
    let line = |state: &State| {
        let text = shot(state, &Default::default(), (140, 40)).text();
        text.lines().rev().nth(1).unwrap_or_default().trim().to_owned()
    };
    assert!(line(&state).starts_with("press U"), "{}", line(&state));
    let mut container = container(&state, NodeId(0), 9);
    let labels = container.ours.take().unwrap_or_default();
    container.ours = Some(Labels {
        cluster: state.config.cluster.clone(),
        ..labels
    });
    state.observed.nodes[0].containers = read(ContainerFacts {
        containers: vec![container],
    });
    let said = line(&state);
    let start =
        "another bringup may be at work: the container on spark-1 was started 10 s ago, and not from here: wait";
    assert!(said.starts_with(start), "{said}");
    let low = |state: &State| {
        let text = shot(state, &Default::default(), (80, 24)).text();
        text.lines().rev().nth(1).unwrap_or_default().trim().to_owned()
    };
    let at_work = "another bringup may be at work: the container on spark-1 was started 10 s ago";
    assert_eq!(low(&state), at_work);
    // Its start goes on while its server loads.
    let process = |mark: Option<&str>| ServeProcess {
        pid: 7,
        mark: mark.map(str::to_owned),
        command: "vllm serve".into(),
        up_seconds: Some(60),
    };
    let mut state = loading(example());
    let mut loads = |mark| {
        state.observed.nodes[0].serve = read(ServeFacts {
            processes: vec![process(mark)],
        });
        low(&state)
    };
    assert!(loads(None).starts_with("the model loads"), "{}", loads(None));
    let at_work = "another bringup may be at work: the server on spark-1 was started 1m01s ago";
    assert_eq!(loads(Some("2ef2b83c8233")), at_work);
}

#[test]
fn a_run_out_of_sight_is_told_above_the_keys() {
    let mut state = known();
    run_until(&mut state, Exit::Unknown("connection reset".into()), &[]);
    let text = shot(&state, &Default::default(), (120, 40)).text();
    assert!(text.contains("bring everything up lost track at step"), "{text}");
}

#[test]
fn a_throughput_test_says_what_it_sends() {
    let state = in_mode(ready(example()), Mode::Test);
    let all = shot(&state, &Default::default(), (140, 60)).text().replace('┃', " ");
    let all = all.split_whitespace().collect::<Vec<_>>().join(" ");
    let p = &state.config.bench;
    for part in [
        format!("{} requests, {} at a time", p.requests, p.concurrency),
        format!("made to {} tokens", p.prompt_tokens),
        "http://192.168.200.12:".to_owned(),
        "nothing is sent before Enter".to_owned(),
    ] {
        assert!(all.contains(&part), "{part}\n{all}");
    }
    snapshot("test", state);
    snapshot("test_refused", in_mode(known(), Mode::Test));
}
