//! Names of artifacts, and references by name.

use std::collections::{BTreeMap, BTreeSet};

use crate::digest::CoreHash;
use crate::storage::interface::{LabelKey, LabelValue, NameUse, Names};
use crate::storage::memory::state::{MemoryCapture, MemoryState};

impl MemoryState {
    pub(super) fn names_of(&self, core: CoreHash) -> Names {
        let Some(artifact) = self.artifact(core) else { return Names::default() };
        let own: Vec<String> = artifact.identified_by().into_iter().map(str::to_owned).collect();
        let original = own.iter().filter(|name| artifact.is_original(name)).cloned().collect();
        Names { own, original, mentioned: artifact.refers_to() }
    }

    pub(super) fn named(&self, name: &str) -> NameUse {
        let mut named = NameUse::default();
        for artifact in self.by_addition() {
            if artifact.has_name(name) {
                named.identified.push(artifact.core);
            }
            if artifact.is_original(name) {
                named.originals.push(artifact.core);
            }
            let mentions = artifact.refers_to().into_iter().filter(|mention| mention.handle == name);
            named.referring.extend(mentions.map(|mention| (mention.relation, artifact.core)));
        }
        // Sorting is stable: equal relations stay in the order of addition.
        named.referring.sort_by(|(one, _), (other, _)| one.cmp(other));
        named
    }

    pub(super) fn shared_names(&self, group: &str) -> Vec<String> {
        let kinds = self.kinds_with_group(group);
        let mut originals: BTreeMap<String, u64> = BTreeMap::new();
        for artifact in self.all().filter(|artifact| kinds.contains(artifact.kind.name())) {
            for name in self.names_of(artifact.core).original {
                *originals.entry(name).or_default() += 1;
            }
        }
        originals.into_iter().filter(|(_, count)| *count > 1).map(|(name, _)| name).collect()
    }

    pub(super) fn has_namesake(&self, core: CoreHash) -> bool {
        let Some(artifact) = self.artifact(core) else { return false };
        let others = self.all().filter(|other| other.core != core);
        let mut others = others.filter(|other| other.kind.name() == artifact.kind.name());
        others.any(|other| {
            artifact.identified_by().into_iter().any(|name| other.has_name(name))
                || artifact.refers_to().iter().any(|mention| other.refers_to_name(&mention.handle))
        })
    }
}

impl MemoryState {
    pub(super) fn label_keys(&self) -> Vec<LabelKey> {
        let mut keys: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for ((_, key), (value, _)) in &self.labels {
            keys.entry(key).or_default().push(value);
        }
        let counted = |(key, values): (&str, Vec<&str>)| LabelKey {
            key: key.to_owned(),
            artifacts: values.len() as u64,
            values: values.into_iter().collect::<BTreeSet<_>>().len() as u64,
        };
        keys.into_iter().map(counted).collect()
    }

    pub(super) fn label_values(&self, key: &str, text: &str, limit: usize) -> Vec<LabelValue> {
        let mut values: BTreeMap<&str, Vec<CoreHash>> = BTreeMap::new();
        for ((core, known), (value, _)) in &self.labels {
            if known == key && value.starts_with(text) {
                values.entry(value).or_default().push(*core);
            }
        }
        values.into_iter().take(limit).map(|(value, cores)| self.label_value(value, &cores)).collect()
    }

    fn label_value(&self, value: &str, cores: &[CoreHash]) -> LabelValue {
        let captures: Vec<&MemoryCapture> =
            cores.iter().filter_map(|core| self.artifact(*core)).flat_map(|known| &known.captures).collect();
        LabelValue {
            value: value.to_owned(),
            artifacts: cores.len() as u64,
            captures: captures.len() as u64,
            bytes: captures.into_iter().map(MemoryCapture::size).sum(),
        }
    }
}
