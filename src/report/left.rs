//! What goes on when the console is gone.

use crate::domain::container::ContainerState;
use crate::model::State;

/// What runs on the nodes and goes on without the console, as far as it was seen.
#[must_use]
pub fn running(state: &State) -> Vec<String> {
    let config = &state.config;
    let name = &config.container.name;
    let mut all = Vec::new();
    for (id, seen) in config.node_ids().zip(&state.observed.nodes) {
        let node = config.node_name(id);
        if !seen.link.usable() {
            all.push(format!("not known what runs on {node}: it can't be reached"));
            continue;
        }
        match seen.containers.value() {
            Some(containers)
                if containers
                    .named(name)
                    .is_some_and(|c| c.state == ContainerState::Running) =>
            {
                all.push(format!("left running on {node}: container {name}"));
            }
            Some(_) => {}
            None => all.push(format!("not known what runs on {node}")),
        }
        match seen.serve.value() {
            Some(serve) if !serve.processes.is_empty() => {
                all.push(format!(
                    "left running on {node}: the model server, {}",
                    state.server.state.word()
                ));
            }
            None if id == config.head() => all.push(format!("not known whether the model server runs on {node}")),
            Some(_) | None => {}
        }
    }
    if all.is_empty() {
        all.push("nothing of the cluster was left running".to_owned());
    }
    all
}
