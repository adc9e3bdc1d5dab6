//! Names of artifacts, and references by name.

use std::collections::BTreeMap;

use super::{MemorySnapshot, each};
use crate::digest::CoreHash;
use crate::storage::Result;
use crate::storage::interface::{
    NameQueries, NameUse, Names, UnresolvedReference, UnresolvedTarget, page_of_unresolved, sort_unresolved,
};
use crate::storage::memory::state::MemoryState;

impl NameQueries for MemorySnapshot {
    fn names(&self, of: &[CoreHash]) -> Result<Vec<Names>> {
        Ok(each(of, |core| self.0.names_of(core)))
    }

    fn named(&self, names: &[String]) -> Result<Vec<NameUse>> {
        Ok(names.iter().map(|name| self.0.named(name)).collect())
    }

    fn shared_names(&self, group: &str) -> Result<Vec<String>> {
        let kinds = self.0.kinds_with_group(group);
        let mut originals: BTreeMap<String, u64> = BTreeMap::new();
        for artifact in self.0.all().filter(|artifact| kinds.contains(artifact.kind.name())) {
            for name in self.0.names_of(artifact.core).original {
                *originals.entry(name).or_default() += 1;
            }
        }
        Ok(originals.into_iter().filter(|(_, count)| *count > 1).map(|(name, _)| name).collect())
    }

    fn has_namesake(&self, of: &[CoreHash]) -> Result<Vec<bool>> {
        Ok(each(of, |core| {
            let Some(artifact) = self.0.artifact(core) else { return false };
            let others = self.0.all().filter(|other| other.core != core);
            let mut others = others.filter(|other| other.kind.name() == artifact.kind.name());
            others.any(|other| {
                artifact.identified_by().into_iter().any(|name| other.has_name(name))
                    || artifact.refers_to().iter().any(|mention| other.refers_to_name(&mention.handle))
            })
        }))
    }

    fn missing_names(&self, after: Option<&str>, limit: usize) -> Result<Vec<UnresolvedReference>> {
        let mut missing = Vec::new();
        for artifact in self.0.all() {
            let is_named =
                |name: &str| self.0.all().any(|other| other.core != artifact.core && other.has_name(name));
            let names = artifact.refers_to().into_iter();
            let names = names.filter(|name| name.dangles && !is_named(&name.handle));
            missing.extend(
                names.map(|name| UnresolvedReference::to_name(name.handle, artifact.core, name.relation)),
            );
        }
        sort_unresolved(&mut missing);
        let after = after.map(|name| UnresolvedTarget::Name(name.to_owned()));
        Ok(page_of_unresolved(missing, after.as_ref(), limit))
    }
}

impl MemoryState {
    fn names_of(&self, core: CoreHash) -> Names {
        let Some(artifact) = self.artifact(core) else { return Names::default() };
        let own: Vec<String> = artifact.identified_by().into_iter().map(str::to_owned).collect();
        let original = own.iter().filter(|name| artifact.is_original(name)).cloned().collect();
        Names { own, original, mentioned: artifact.refers_to() }
    }

    fn named(&self, name: &str) -> NameUse {
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
}
