//! Who does what the journal records.

use std::fmt;

/// Who acts on a vault: a person, a program, a build. It is what they call themselves; nothing proves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor(String);

/// Why a text names no actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the name of an actor has 1 to {} bytes", Actor::MAX_BYTES)]
pub struct ActorError;

impl Actor {
    /// Longer names would make every entry of the journal long.
    pub const MAX_BYTES: usize = 256;

    /// The actor that is called `name`.
    ///
    /// # Errors
    /// If there is no name, or it is longer than [`Actor::MAX_BYTES`].
    pub fn new(name: impl Into<String>) -> Result<Self, ActorError> {
        let name = name.into();
        if name.is_empty() || name.len() > Self::MAX_BYTES { Err(ActorError) } else { Ok(Self(name)) }
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
