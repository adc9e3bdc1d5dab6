//! The root of a contract's document: its relevant members, and the part that is hashed.

use std::collections::HashMap;

use crate::json::Value;
use crate::json::canonical::rfc8785::CanonicalInput;

/// The relevant members of a root with a valid shape.
pub(super) struct ContractMembers<'v> {
    pub(super) core: ContractCore<'v>,
    pub(super) io_refs: &'v [Value<'v>],
    pub(super) effects: &'v [Value<'v>],
    /// The refs by name.
    pub(super) declared: HashMap<&'v str, &'v Value<'v>>,
    /// The number of effects with each name.
    pub(super) effect_names: HashMap<&'v str, usize>,
}

impl<'v> ContractMembers<'v> {
    pub(super) fn from_root(root: &'v Value<'v>) -> Option<Self> {
        let core = ContractCore::from_root(root)?;
        let (io_refs, effects) = (core.io_refs.as_array()?, core.effects.as_array()?);
        let named = |value: &'v Value<'v>, name: &str| value.get(name).and_then(Value::as_str);
        let declared = io_refs.iter().filter_map(|io_ref| Some((named(io_ref, "ref")?, io_ref)));
        let mut effect_names = HashMap::new();
        for name in effects.iter().filter_map(|effect| named(effect, "name")) {
            *effect_names.entry(name).or_default() += 1;
        }
        Some(Self { core, io_refs, effects, declared: declared.collect(), effect_names })
    }
}

/// The hashed part. The specification defines no hash; all its statements about a contract are in these two members.
#[derive(Clone, Copy)]
pub(super) struct ContractCore<'v> {
    effects: &'v Value<'v>,
    io_refs: &'v Value<'v>,
}

impl<'v> ContractCore<'v> {
    pub(super) fn from_root(root: &'v Value<'v>) -> Option<Self> {
        Some(Self { effects: root.get("effects")?, io_refs: root.get("io_refs")? })
    }
}

impl<'v> From<ContractCore<'v>> for CanonicalInput<'v> {
    fn from(core: ContractCore<'v>) -> Self {
        Self::Object(vec![("effects", Self::Value(core.effects)), ("io_refs", Self::Value(core.io_refs))])
    }
}
