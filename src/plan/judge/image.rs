//! Conditions on the image: present, the same on every node, with what the engine needs in it.

use crate::domain::NodeId;
use crate::domain::image::{ImageFacts, VersionFacts};
use crate::domain::problem::Verdict;

use super::{Answer, Ctx, fails};

/// Characters of a layer's digest in a message.
const DIGEST: usize = 12;

impl<'a> Ctx<'a> {
    fn image(&self, node: NodeId) -> Result<&'a ImageFacts, String> {
        let what = format!("image of {}", self.name(node));
        self.fresh(&self.node(node)?.image, &what)
    }

    pub(super) fn image_present(&self, node: NodeId) -> Answer {
        Ok(match self.image(node)? {
            ImageFacts::Present { .. } => Verdict::Holds,
            ImageFacts::Missing => fails("the image is not there", self.config.container.image.clone()),
        })
    }

    /// Layers, not ids: equal content has another id on another host, and equal layers on every host.
    pub(super) fn images_equal(&self) -> Answer {
        let mut all = Vec::new();
        for node in self.config.node_ids() {
            match self.image(node)? {
                ImageFacts::Present { layers, .. } => all.push((self.name(node), layers)),
                ImageFacts::Missing => {
                    let seen = format!("{} has no such image", self.name(node));
                    return Ok(fails(seen, "the same layers on every node"));
                }
            }
        }
        let first = all.first().map(|(_, layers)| *layers);
        if all.iter().all(|(_, layers)| Some(*layers) == first) {
            return Ok(Verdict::Holds);
        }
        let seen: Vec<String> = all
            .iter()
            .map(|(name, l)| format!("{name}: {}", layers_text(l)))
            .collect();
        Ok(fails(seen.join("; "), "the same layers on every node"))
    }

    /// Versions do not change while the image does not, so an old answer about the present image counts.
    fn versions(&self, node: NodeId) -> Result<&'a VersionFacts, String> {
        let what = format!("versions in the image of {}", self.name(node));
        let id = match self.image(node)? {
            ImageFacts::Present { id, .. } => id,
            ImageFacts::Missing => return Err(format!("{what}: there is no image")),
        };
        let reading = &self.node(node)?.versions;
        match reading.value() {
            Some(facts) if facts.image_id == *id => Ok(facts),
            Some(_) => Err(format!("{what}: the image is another one now")),
            None => Err(format!("{what}: {}", reading.reason().unwrap_or("not asked yet"))),
        }
    }

    pub(super) fn versions_equal(&self) -> Answer {
        let mut all = Vec::new();
        for node in self.config.node_ids() {
            let facts = self.versions(node)?;
            for (module, version) in [("ray", &facts.ray), ("vllm", &facts.vllm)] {
                if version.is_none() {
                    let mut seen = format!("no {module} in the image on {}", self.name(node));
                    if let Some(why) = facts.missing.first() {
                        seen = format!("{seen} ({why})");
                    }
                    return Ok(fails(seen, "an image that holds ray and vllm"));
                }
            }
            all.push((self.name(node), facts));
        }
        let key = |f: &'a VersionFacts| (&f.ray, &f.vllm, &f.python);
        let first = all.first().map(|(_, f)| key(f));
        if all.iter().all(|(_, f)| Some(key(f)) == first) {
            return Ok(Verdict::Holds);
        }
        let seen: Vec<String> = all
            .iter()
            .map(|(name, f)| format!("{name}: {}", versions_text(f)))
            .collect();
        Ok(fails(seen.join("; "), "equal versions on every node"))
    }
}

fn layers_text(layers: &[String]) -> String {
    let last = layers.last().map_or("", |l| l.strip_prefix("sha256:").unwrap_or(l));
    let last: String = last.chars().take(DIGEST).collect();
    format!("{} layers, the last {last}", layers.len())
}

fn versions_text(facts: &VersionFacts) -> String {
    let word = |v: &Option<String>| v.clone().unwrap_or_else(|| "?".to_owned());
    format!(
        "ray {}, vllm {}, python {}",
        word(&facts.ray),
        word(&facts.vllm),
        word(&facts.python)
    )
}
