//! Which probes a waiting step asks for, and how often.
//!
//! The console's own schedule goes on beside this; a step only asks for more where it waits.

use std::time::Duration;

use crate::domain::event::ProbeId;
use crate::domain::image::ImageFacts;
use crate::domain::serving::{ServerProbe, TOKEN_ASKED};
use crate::domain::{NodeId, Reading, Stamp};

use super::super::condition::Condition;
use super::super::judge::judge;
use super::super::types::StepKind;
use super::super::want::{Want, wants};
use super::{Do, Machine, Scene, TOKEN_LIMIT, TOKEN_TRIES};

/// How old Ray's membership from the dashboard may be before the head's container is asked, which costs a Python start.
const RAY_OLD: Duration = Duration::from_secs(3);

impl Machine {
    /// Asks what answers these conditions, each at its own pace.
    pub(super) fn ask(&mut self, conditions: &[Condition], scene: Scene<'_>, since: Stamp, out: &mut Vec<Do>) {
        let mut all: Vec<Want> = Vec::new();
        for want in conditions.iter().flat_map(|c| wants(c, scene.config)) {
            if !all.contains(&want) {
                all.push(want);
            }
        }
        let loading = self.step().is_some_and(|s| s.kind == StepKind::Serve);
        for want in all {
            if self.due(want, loading, scene.now) && self.sensible(want, scene, since) {
                self.asked.retain(|(w, _)| *w != want);
                self.asked.push((want, scene.now));
                if want == Want::Server(ServerProbe::Token) {
                    self.token.tries += 1;
                    self.token.last = Some(scene.now);
                }
                out.push(Do::Want(want));
            }
        }
    }

    fn due(&self, want: Want, loading: bool, now: Stamp) -> bool {
        let last = self.asked.iter().find(|(w, _)| *w == want).map(|(_, at)| *at);
        last.is_none_or(|at| now.since(at) >= pace(want, loading))
    }

    /// Whether the answer can be had now and is not there already.
    fn sensible(&self, want: Want, scene: Scene<'_>, since: Stamp) -> bool {
        let head = scene.config.head();
        let holds = |c: &Condition| judge(c, scene.observed, scene.config, since).holds();
        let usable = |n: NodeId| scene.observed.node(n).is_some_and(|n| n.link.usable());
        match want {
            Want::Node(n, ProbeId::Node | ProbeId::Image | ProbeId::Verb) => usable(n),
            Want::Node(n, ProbeId::Versions) => usable(n) && !versions_known(scene, n),
            Want::Node(n, ProbeId::Serve) => usable(n) && holds(&Condition::ContainerRuns(n)),
            Want::Node(n, ProbeId::Ray) => {
                let recent = scene.observed.ray.age(scene.now).is_some_and(|age| age <= RAY_OLD);
                let dashboard_asked = scene.now.since(since) >= RAY_OLD;
                usable(n) && !recent && dashboard_asked && holds(&Condition::ContainerRuns(n))
            }
            // What a step judges by is never asked of these.
            Want::Node(_, ProbeId::Inside | ProbeId::RayStatus) => false,
            Want::Server(ServerProbe::Health) => usable(head),
            Want::Server(ServerProbe::Ray) => usable(head) && holds(&Condition::ContainerRuns(head)),
            Want::Server(ServerProbe::Models | ServerProbe::Metrics) => holds(&Condition::Healthy),
            Want::Server(ServerProbe::Token) => self.token_wanted(scene, since),
        }
    }

    /// One token is asked for once the server is healthy, has named the model and was looked at for tokens that it has counted; again only after the answer
    /// was a failure.
    fn token_wanted(&self, scene: Scene<'_>, since: Stamp) -> bool {
        let holds = |c: &Condition| judge(c, scene.observed, scene.config, since).holds();
        let server = &scene.observed.server;
        let counted = match &server.metrics {
            Reading::Known { at, .. } => *at >= since,
            // The server exports none, or they can't be read. Shorter than the pace of the asking, or it would never be over.
            Reading::Absent(_) => self
                .asked
                .iter()
                .any(|(w, at)| *w == Want::Server(ServerProbe::Metrics) && scene.now.since(*at) >= METRICS_WAIT),
        };
        let ready = holds(&Condition::Healthy) && holds(&Condition::ModelListed) && counted;
        ready && (self.token.tries == 0 || (self.token.tries < TOKEN_TRIES && self.token_failed(scene)))
    }

    /// Whether the latest asking has come to nothing: whoever asks sets the reading to [`TOKEN_ASKED`], so another reason is an answer. One that took too
    /// long counts too.
    pub(super) fn token_failed(&self, scene: Scene<'_>) -> bool {
        let token = &scene.observed.server.token;
        self.token.last.is_some_and(|at| {
            let answered = token.reason().is_some_and(|why| why != TOKEN_ASKED);
            answered || (token.value().is_none() && scene.now.since(at) > TOKEN_LIMIT)
        })
    }
}

/// Wait for a scrape before the server's counters are no proof: half of the pace at which it is asked for.
const METRICS_WAIT: Duration = Duration::from_secs(1);

/// The least time between two askings. While a model loads for many minutes the nodes are left in peace.
fn pace(want: Want, loading: bool) -> Duration {
    let seconds = match want {
        Want::Node(_, ProbeId::Node | ProbeId::Verb) if loading => 5,
        Want::Node(_, ProbeId::Node | ProbeId::Verb) => 1,
        Want::Node(_, ProbeId::Image | ProbeId::Serve) => 2,
        Want::Node(_, ProbeId::Versions | ProbeId::Inside | ProbeId::RayStatus) => 30,
        Want::Node(_, ProbeId::Ray) => 5,
        Want::Server(ServerProbe::Health | ServerProbe::Ray) => 1,
        Want::Server(ServerProbe::Models | ServerProbe::Metrics) => 2,
        Want::Server(ServerProbe::Token) => 15,
    };
    Duration::from_secs(seconds)
}

/// Whether the versions of the present image are known.
fn versions_known(scene: Scene<'_>, node: NodeId) -> bool {
    let Some(seen) = scene.observed.node(node) else {
        return false;
    };
    let id = match seen.image.value() {
        Some(ImageFacts::Present { id, .. }) => id,
        Some(ImageFacts::Missing) | None => return false,
    };
    seen.versions.value().is_some_and(|v| v.image_id == *id)
}
