//! Text of a rule with places for values.

use std::collections::BTreeMap;

use crate::config::Config;
use crate::domain::NodeId;
use crate::domain::command::quote;

/// A text with places: `{name}` is a value, `{{` and `}}` are braces, what stands in `[ ]` is left out when a value in it is not known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Template(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Value(String),
    Optional(Vec<Part>),
}

/// What stands for a value that is not known, outside brackets.
const UNKNOWN: &str = "?";

impl Template {
    /// Reads a text.
    ///
    /// # Errors
    /// What is wrong with it, as a fragment.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut inner: Option<Vec<Part>> = None;
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            let nested = inner.is_some();
            let into = inner.as_mut().unwrap_or(&mut parts);
            match c {
                '{' | '}' if chars.peek() == Some(&c) => {
                    chars.next();
                    push(into, c);
                }
                '{' => {
                    let mut name = String::new();
                    loop {
                        match chars.next() {
                            Some('}') => break,
                            Some(c) if c.is_ascii_lowercase() || c == '_' => name.push(c),
                            Some(_) | None => return Err(format!("{{{name} is not closed; write {{{{ for a brace")),
                        }
                    }
                    into.push(Part::Value(name));
                }
                '}' => return Err("} without {; write }} for a brace".to_owned()),
                '[' if !nested => inner = Some(Vec::new()),
                '[' => return Err("[ inside [ ]".to_owned()),
                ']' => match inner.take() {
                    Some(optional) => parts.push(Part::Optional(optional)),
                    None => return Err("] without [".to_owned()),
                },
                c => push(into, c),
            }
        }
        match inner {
            Some(_) => Err("[ is not closed".to_owned()),
            None => Ok(Self(parts)),
        }
    }

    /// Names of its values.
    pub fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        collect(&self.0, &mut names);
        names
    }

    /// Names of the values that it can't do without.
    pub fn needed(&self) -> Vec<&str> {
        let needed = self.0.iter().filter_map(|part| match part {
            Part::Value(name) => Some(name.as_str()),
            Part::Text(_) | Part::Optional(_) => None,
        });
        needed.collect()
    }

    /// The text with its values.
    pub fn fill(&self, values: &Values<'_>) -> String {
        let mut text = String::new();
        for part in &self.0 {
            part.write(&|name| values.get(name), &mut text);
        }
        text
    }

    /// The text as a line for a shell: what was read from a log is quoted.
    pub fn fill_quoted(&self, values: &Values<'_>) -> String {
        let mut text = String::new();
        for part in &self.0 {
            part.write(&|name| values.get_quoted(name), &mut text);
        }
        text
    }
}

fn push(parts: &mut Vec<Part>, c: char) {
    match parts.last_mut() {
        Some(Part::Text(text)) => text.push(c),
        Some(Part::Value(_) | Part::Optional(_)) | None => parts.push(Part::Text(c.to_string())),
    }
}

fn collect<'a>(parts: &'a [Part], names: &mut Vec<&'a str>) {
    for part in parts {
        match part {
            Part::Text(_) => {}
            Part::Value(name) => names.push(name),
            Part::Optional(inner) => collect(inner, names),
        }
    }
}

impl Part {
    fn write(&self, value: &dyn Fn(&str) -> Option<String>, text: &mut String) {
        match self {
            Self::Text(own) => text.push_str(own),
            Self::Value(name) => text.push_str(value(name).as_deref().unwrap_or(UNKNOWN)),
            Self::Optional(parts) => {
                let mut names = Vec::new();
                collect(parts, &mut names);
                if names.iter().all(|name| value(name).is_some()) {
                    parts.iter().for_each(|part| part.write(value, text));
                }
            }
        }
    }
}

/// Names that every rule may use beside what its signs capture.
pub const KNOWN: &[&str] = &[
    "node",
    "own_address",
    "head",
    "head_address",
    "peer",
    "container",
    "image",
    "docker",
    "model",
    "serve_port",
    "ray_port",
];

/// Values for a template.
pub struct Values<'a> {
    pub config: &'a Config,
    /// The node that it is about; `None` for the cluster.
    pub node: Option<NodeId>,
    /// What was captured.
    pub fields: &'a BTreeMap<String, String>,
}

impl Values<'_> {
    fn get(&self, name: &str) -> Option<String> {
        let config = self.config;
        let node = self.node.unwrap_or_else(|| config.head());
        let address = |id: NodeId| config.node(id).map(|n| n.fabric_address.clone());
        match name {
            "node" => Some(config.node_name(node).to_owned()),
            "own_address" => address(node),
            "head" => Some(config.node_name(config.head()).to_owned()),
            "head_address" => address(config.head()),
            "peer" => Some(match self.fields.get("address") {
                Some(address) => {
                    at(config, address).map_or_else(|| address.clone(), |id| config.node_name(id).to_owned())
                }
                None => config.node_name(node).to_owned(),
            }),
            "container" => Some(config.container.name.clone()),
            "image" => Some(config.container.image.clone()),
            "docker" => Some(config.container.docker.clone()),
            "model" => Some(config.serve.model.clone()),
            "serve_port" => Some(config.serve.port.to_string()),
            "ray_port" => Some(config.engine.ray_port().to_string()),
            other => self.fields.get(other).cloned(),
        }
    }

    fn get_quoted(&self, name: &str) -> Option<String> {
        let value = self.get(name)?;
        // The configuration lets Docker be several words, none of which a shell would read as anything else.
        Some(if name == "docker" { value } else { quote(&value) })
    }
}

/// The node with this fabric address.
pub fn at(config: &Config, address: &str) -> Option<NodeId> {
    config
        .node_ids()
        .find(|id| config.node(*id).is_some_and(|n| n.fabric_address == address))
}
