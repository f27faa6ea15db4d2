//! Plans that start: image, head, workers, membership, server.

use crate::config::types::Engine;
use crate::domain::NodeId;
use crate::domain::container::{Container, ContainerState};
use crate::domain::count::things;
use crate::engine;
use crate::probe::serve::UNSEEN;

use super::super::condition::Condition;
use super::super::judge::{ours, state_text};
use super::super::types::{PlannedCommand, StepKind};
use super::{Maker, ended, on};

/// What becomes of things that the user's script starts.
const SCRIPTED: &str = "what the script starts carries no mark of bringup: it is shown as not started by it";

impl Maker<'_> {
    pub(super) fn head(&mut self) {
        self.reach_all();
        let head = self.config.head();
        self.images(&[head]);
        self.start_head();
    }

    pub(super) fn workers(&mut self) {
        let workers: Vec<NodeId> = self.config.workers().collect();
        if workers.is_empty() {
            self.note("the config has no workers: nothing to join");
            return;
        }
        self.reach_all();
        self.refuse_unless(&Condition::RayMember(self.config.head()));
        self.images(&workers);
        self.join_workers(&workers);
        self.membership();
    }

    pub(super) fn serve(&mut self) {
        self.reach_all();
        self.refuse_unless(&Condition::RayComplete);
        self.serve_step();
    }

    pub(super) fn up(&mut self) {
        self.reach_all();
        let all: Vec<NodeId> = self.config.node_ids().collect();
        let workers: Vec<NodeId> = self.config.workers().collect();
        self.images(&all);
        self.start_head();
        self.join_workers(&workers);
        self.membership();
        self.serve_step();
        if workers.is_empty() {
            self.note("the config has no workers: the head serves alone");
        }
    }

    fn reach_all(&mut self) {
        for node in self.config.node_ids() {
            self.reach(node);
        }
    }

    /// Pulls the image where it is missing, then compares it on all nodes. Left out when nothing is to be started: what runs, runs.
    fn images(&mut self, to_start: &[NodeId]) {
        if to_start.iter().all(|n| self.started(*n)) {
            return;
        }
        let image = self.config.container.image.clone();
        if image.is_empty() {
            self.note("the config names no image: what the script uses is not compared");
            return;
        }
        let all: Vec<NodeId> = self.config.node_ids().collect();
        let mut pulled = false;
        for node in &all {
            if self.holds(&Condition::ImagePresent(*node)) {
                continue;
            }
            pulled = true;
            // Where nobody has looked yet the step will, and is skipped when it is there.
            let unsure = if self.fails(&Condition::ImagePresent(*node)) {
                ""
            } else {
                ", if it is not there"
            };
            let title = format!("pull {image} on {}{unsure}", self.name(*node));
            let command = engine::pull(self.config);
            let mut step = self.step(StepKind::Pull, Some(*node), title, self.config.limits.pull);
            step.before = vec![Condition::NodeReachable(*node)];
            step.commands = vec![on(*node, command)];
            step.after = vec![Condition::ImagePresent(*node)];
            self.add(step);
        }
        if !pulled {
            self.refuse_unless(&Condition::ImagesEqual);
            self.refuse_unless(&Condition::VersionsEqual);
        }
        let title = match all.len() {
            1 => "look into the image".to_owned(),
            n => format!("compare the image on {}", things(n, "node")),
        };
        let mut step = self.step(StepKind::Image, None, title, self.config.limits.head);
        step.before = all.iter().map(|n| Condition::ImagePresent(*n)).collect();
        if all.len() > 1 {
            step.before.push(Condition::ImagesEqual);
        }
        step.before.push(Condition::VersionsEqual);
        self.add(step);
    }

    fn start_head(&mut self) {
        let head = self.config.head();
        let port = self.config.engine.ray_port();
        let title = format!("start the head on {}", self.name(head));
        let mut before = vec![Condition::FabricAddressPresent(head), Condition::PortFree(head, port)];
        if self.has_dashboard() {
            before.push(Condition::PortFree(head, self.config.engine.dashboard_port()));
        }
        before.extend(self.room_for(head));
        let after = vec![
            Condition::ContainerRuns(head),
            Condition::RayListens(head),
            Condition::RayMember(head),
        ];
        self.start(head, StepKind::Head, title, before, after);
    }

    /// Whether Ray's dashboard will listen on its port. What a script does is the script's affair.
    fn has_dashboard(&self) -> bool {
        let Engine::VllmRay(ray) = &self.config.engine else {
            return false;
        };
        let args: Vec<String> = ray
            .ray_head_args
            .iter()
            .map(|a| a.replace('_', "-").to_lowercase())
            .collect();
        let off = |at: usize, flag: &String| match flag.strip_prefix("--include-dashboard") {
            Some("") => args.get(at + 1).is_some_and(|value| value == "false"),
            Some(value) => value == "=false",
            None => false,
        };
        !args.iter().enumerate().any(|(at, flag)| off(at, flag))
    }

    fn join_workers(&mut self, workers: &[NodeId]) {
        let head = self.config.head();
        // One after the other: Ray has a race when several join at once.
        for worker in workers {
            let title = format!("join {} to {}", self.name(*worker), self.name(head));
            let mut before = vec![Condition::RayMember(head), Condition::FabricAddressPresent(*worker)];
            before.extend(self.room_for(*worker));
            let after = vec![Condition::ContainerRuns(*worker), Condition::RayMember(*worker)];
            self.start(*worker, StepKind::Join, title, before, after);
        }
    }

    /// What must be free on a node. A script may well remove a leftover of its own by name.
    fn room_for(&self, node: NodeId) -> Vec<Condition> {
        let name = self.config.container.name.clone();
        let free = Condition::NameFree(node, name);
        let mut all = vec![Condition::GpuFree(node)];
        if !self.scripted() {
            all.insert(0, free);
        }
        all
    }

    fn start(&mut self, node: NodeId, kind: StepKind, title: String, before: Vec<Condition>, after: Vec<Condition>) {
        self.known_container(node);
        if self.fails(&Condition::StartUnderWay(node)) {
            // The name is told by `known_container` with more to say; a membership may come true by an earlier step.
            for condition in before
                .iter()
                .filter(|c| !matches!(c, Condition::NameFree(..) | Condition::RayMember(_)))
            {
                self.refuse_unless(condition);
            }
        }
        let infiniband = self.infiniband(node);
        let start = engine::Start {
            generation: self.now.wall,
            infiniband,
        };
        let command = engine::start_node(self.config, node, start);
        let limit = if node == self.config.head() {
            self.config.limits.head
        } else {
            self.config.limits.join
        };
        // A verb has a limit of its own, which may be longer.
        let limit = if self.scripted() {
            self.note(SCRIPTED);
            limit.max(self.config.limits.verb)
        } else {
            limit
        };
        let image = (!self.config.container.image.is_empty()).then_some(Condition::ImagePresent(node));
        let clean = self.scripted().then(|| on(node, engine::script::clean(self.config)));
        let evidence = on(node, engine::last_lines(self.config));
        let mut step = self.step(kind, Some(node), title, limit);
        step.before = vec![Condition::NodeReachable(node)];
        step.before.extend(image);
        step.before.extend(before);
        step.under_way = vec![Condition::StartUnderWay(node)];
        step.commands = vec![on(node, command)];
        step.after = after;
        step.broken_by = vec![Condition::StartLost(node), Condition::WrongAddress(node)];
        step.finally = clean.into_iter().collect();
        step.evidence = vec![evidence];
        self.add(step);
    }

    /// Deals with a container that has the configured name already.
    fn known_container(&mut self, node: NodeId) {
        let Some(container) = self.container(node) else { return };
        let name = &container.name;
        let place = self.name(node);
        let state = state_text(container);
        let docker = &self.config.container.docker;
        if self.scripted() {
            if ended(container) {
                self.note(format!("{name} on {place} {state}; the script must cope with it"));
            }
            return;
        }
        if !ours(self.config, container) {
            self.refuse(
                format!("the container {name} on {place} is not ours: it was made from {} and {state}", container.image),
                Some(format!(
                    "see what it is with `{docker} logs {name}`; remove it there with `{docker} rm -f {name}`, or set another container name"
                )),
            );
            return;
        }
        match container.state {
            ContainerState::Running if self.orphaned(node, container) => self.stop_orphan(node, name),
            ContainerState::Running => self.same_configuration(node, container),
            ContainerState::Paused | ContainerState::Restarting => self.refuse(
                format!("our container {name} on {place} {state}"),
                Some("X stops and removes it".to_owned()),
            ),
            ContainerState::Created | ContainerState::Exited { .. } | ContainerState::Other(_) => {
                let command = engine::remove(self.config, name);
                let gone = Condition::NameFree(node, name.clone());
                let title = format!("remove our container {name} on {place}, which {state}");
                let mut step = self.step(StepKind::StopNode, Some(node), title, self.config.limits.stop);
                step.before = vec![Condition::NodeReachable(node)];
                step.commands = vec![on(node, command)];
                step.after = vec![gone];
                self.add(step);
            }
        }
    }

    /// Whether the Ray in a worker's container belongs to a head that is gone: no head runs, or the one that does was made later and does not have it. Such
    /// a Ray does not join another head; it ends a while after its own.
    fn orphaned(&self, node: NodeId, container: &Container) -> bool {
        let head = self.config.head();
        // Nothing is said of a head whose containers nobody has read.
        let known = self.observed.node(head).is_some_and(|n| n.containers.value().is_some());
        if node == head || !known {
            return false;
        }
        match self.container(head) {
            None => true,
            Some(now) if ended(now) => true,
            Some(now) => {
                let made = |c: &Container| c.ours.as_ref().and_then(|l| l.generation.parse::<u64>().ok());
                let later = matches!((made(container), made(now)), (Some(own), Some(head)) if own < head);
                later && self.fails(&Condition::RayMember(node))
            }
        }
    }

    fn stop_orphan(&mut self, node: NodeId, name: &str) {
        let title = format!(
            "stop and remove our container {name} on {}, whose head is gone",
            self.name(node)
        );
        let commands = engine::stop_node(self.config, &[name]);
        let mut step = self.step(StepKind::StopNode, Some(node), title, self.config.limits.stop);
        step.before = vec![Condition::NodeReachable(node)];
        step.commands = commands.into_iter().map(|c| on(node, c)).collect();
        step.after = vec![Condition::NameFree(node, name.to_owned())];
        self.add(step);
    }

    /// Says so when what runs was made from another configuration.
    fn same_configuration(&mut self, node: NodeId, container: &Container) {
        let hash = self.config.container_hash(node);
        if container.ours.as_ref().is_some_and(|l| l.hash != hash) {
            self.note(format!(
                "{} on {} runs from another configuration than the present one; X and then U make it anew",
                container.name,
                self.name(node)
            ));
        }
    }

    /// Whether the container gets /dev/infiniband. Without that knowledge a plan would leave a choice open.
    fn infiniband(&mut self, node: NodeId) -> bool {
        let hcas = self.config.node(node).is_some_and(|n| !n.hcas.is_empty());
        if !hcas || self.scripted() {
            return false;
        }
        let name = self.name(node);
        let fabric = self.observed.node(node).map(|n| &n.fabric);
        match fabric.and_then(|f| f.value()) {
            Some(facts) => {
                if !facts.infiniband {
                    self.note(format!(
                        "{name} has hcas in the config and no /dev/infiniband: NCCL will use TCP there"
                    ));
                }
                facts.infiniband
            }
            None => {
                let why = fabric.and_then(|f| f.reason()).unwrap_or("not asked yet");
                self.refuse(
                    format!("whether {name} has /dev/infiniband is not known: {why}"),
                    Some("wait for its first answer".to_owned()),
                );
                false
            }
        }
    }

    fn membership(&mut self) {
        let nodes: Vec<NodeId> = self.config.node_ids().collect();
        let settle = self.config.limits.settle;
        let limit = self.config.limits.join.saturating_add(settle);
        let title = match nodes.len() {
            1 => "see that the node stays in Ray".to_owned(),
            n => format!("see that {} stay in Ray", things(n, "node")),
        };
        let mut step = self.step(StepKind::Membership, None, title, limit);
        step.after = vec![Condition::RayComplete];
        step.settle = settle;
        step.broken_by = nodes
            .iter()
            .flat_map(|n| [Condition::StartLost(*n), Condition::WrongAddress(*n)])
            .collect();
        step.evidence = self.last_lines();
        self.add(step);
    }

    fn serve_step(&mut self) {
        let head = self.config.head();
        let port = Condition::PortFree(head, self.config.serve.port);
        if self.fails(&Condition::ServeUnderWay) {
            self.refuse_unless(&port);
        }
        if self.unseen() && self.started(head) {
            self.refuse(
                format!(
                    "whether a model server runs on {} already can't be seen: {UNSEEN}",
                    self.name(head)
                ),
                Some("use an image that has one of them, or look by hand and serve there".to_owned()),
            );
        }
        self.known_server(head);
        self.carry_note();
        let commands = engine::serve(self.config).into_iter().map(|c| on(head, c)).collect();
        let clean = self.scripted().then(|| on(head, engine::script::clean(self.config)));
        let title = format!("serve {} on {}", self.config.serve.name(), self.name(head));
        let nodes: Vec<NodeId> = self.config.node_ids().collect();
        let (limit, stall) = (self.config.limits.serve, self.config.limits.stall);
        let evidence = self.last_lines();
        let mut step = self.step(StepKind::Serve, Some(head), title, limit);
        step.before = vec![Condition::NodeReachable(head), Condition::RayComplete, port];
        step.under_way = vec![Condition::ServeUnderWay];
        step.commands = commands;
        step.after = vec![Condition::Healthy, Condition::ModelListed, Condition::TokenSeen];
        step.broken_by = vec![Condition::ServeLost, Condition::WrongModel];
        step.broken_by.extend(nodes.iter().map(|n| Condition::StartLost(*n)));
        step.stall = Some(stall);
        step.finally = clean.into_iter().collect();
        step.evidence = evidence;
        self.add(step);
    }

    /// The end of every container's log.
    fn last_lines(&self) -> Vec<PlannedCommand> {
        let nodes = self.config.node_ids();
        nodes.map(|n| on(n, engine::last_lines(self.config))).collect()
    }

    /// Says so when a server runs that would be adopted and was not started from this configuration.
    fn known_server(&mut self, head: NodeId) {
        if self.scripted() {
            self.note(SCRIPTED);
            return;
        }
        let facts = self.observed.node(head).and_then(|n| n.serve.value());
        let Some(process) = facts.and_then(|f| f.processes.first()) else {
            return;
        };
        match &process.mark {
            None => self.note(format!(
                "the server that runs was not started by bringup (process {}); it is watched, not started again",
                process.pid
            )),
            Some(mark) if *mark != self.config.serve_hash() => {
                self.note("the server that runs was started from another configuration; X and then S start it anew");
            }
            Some(_) => {}
        }
    }

    /// How the plan deals with vLLM's habit of giving the head's environment to the workers.
    fn carry_note(&mut self) {
        match self.config.engine {
            Engine::VllmRay(_) if self.config.nodes.len() > 1 => {}
            Engine::VllmRay(_) | Engine::Script(_) => return,
        }
        let differing = engine::vllm_ray::not_carried(self.config);
        let habit =
            "vLLM's Ray executor copies the head's NCCL_ variables (newer versions: all of them) to the workers";
        if differing.is_empty() {
            self.note(format!(
                "{habit}; this does no harm here: interface and HCAs have the same names on every node"
            ));
        } else {
            self.note(format!(
                "{habit}; {} differ between the nodes, so serve first writes their names to {} in the head's container, and each worker keeps its own",
                differing.join(", "),
                engine::vllm_ray::NOT_CARRIED_FILE
            ));
        }
    }
}
