//! Keys and values of labels, with their use.

use std::collections::{BTreeMap, BTreeSet};

use super::super::state::{MemoryCapture, MemoryState};
use crate::digest::CoreHash;
use crate::storage::interface::{LabelKey, LabelValue};

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
