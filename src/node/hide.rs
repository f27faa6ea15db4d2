//! The configured secrets' values out of what probes found: the readers of their output know only what looks like a secret.

use crate::domain::event::Facts;
use crate::domain::observed::VerbFacts;
use crate::domain::problem::Problem;
use crate::log::Masker;

fn hide(masker: &Masker, text: &mut String) {
    let masked = masker.text(text);
    if masked != *text {
        *text = masked.into_owned();
    }
}

/// Takes secrets out of the text in facts that others wrote.
pub(super) fn facts(masker: &Masker, mut facts: Facts) -> Facts {
    match &mut facts {
        Facts::Verb(VerbFacts::Running { tail, .. } | VerbFacts::Ended { tail, .. }) => {
            tail.iter_mut().for_each(|line| hide(masker, line));
        }
        Facts::Serve(serve) => serve.processes.iter_mut().for_each(|p| hide(masker, &mut p.command)),
        Facts::Absent { why, .. } => hide(masker, why),
        Facts::Verb(VerbFacts::None)
        | Facts::Memory(_)
        | Facts::Gpus(_)
        | Facts::Containers(_)
        | Facts::Sockets(_)
        | Facts::Fabric(_)
        | Facts::Disk(_)
        | Facts::Image(_)
        | Facts::Versions(_)
        | Facts::Inside(_)
        | Facts::Ray(_)
        | Facts::RayStatus(_) => {}
    }
    facts
}

/// Takes secrets out of problems.
pub(super) fn problems(masker: &Masker, mut problems: Vec<Problem>) -> Vec<Problem> {
    for problem in &mut problems {
        hide(masker, &mut problem.text);
        if let Some(fix) = &mut problem.fix {
            hide(masker, fix);
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::event::Subject;
    use crate::domain::serving::{ServeFacts, ServeProcess};

    #[test]
    fn a_configured_secret_is_in_nothing_that_a_probe_found() {
        let masker = Masker::new(["correct-horse-battery".to_owned()]);
        let said = || "with correct-horse-battery in it".to_owned();
        let running = VerbFacts::Running {
            verb: "head".into(),
            tail: vec![said()],
        };
        let ended = VerbFacts::Ended {
            verb: "head".into(),
            code: 1,
            tail: vec![said(), "nothing".into()],
        };
        let process = ServeProcess {
            pid: 7,
            mark: None,
            command: said(),
            up_seconds: None,
        };
        let serve = ServeFacts {
            processes: vec![process],
        };
        let absent = Facts::Absent {
            what: Subject::Verb,
            why: said(),
        };
        for found in [Facts::Verb(running), Facts::Verb(ended), Facts::Serve(serve), absent] {
            let shown = format!("{:?}", facts(&masker, found));
            assert!(shown.contains("with *** in it") && !shown.contains("horse"), "{shown}");
        }
        let shown = problems(&masker, vec![Problem::error(said()).with_fix(said())]);
        assert_eq!(shown, [Problem::error("with *** in it").with_fix("with *** in it")]);
    }
}
