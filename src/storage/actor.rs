//! The name that the journal records for each change.

use std::fmt;

/// The author of a change to a vault: a person, a program or a CI job. The name is self-declared; nothing authenticates
/// it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor(String);

/// The error for an invalid actor name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the name of an actor must have 1 to {} bytes", Actor::MAX_BYTES)]
pub struct ActorError;

impl Actor {
    /// Maximum length in bytes. Longer names would make every journal entry long.
    pub const MAX_BYTES: usize = 256;

    /// Creates an actor with the name `name`.
    ///
    /// # Errors
    /// Returns an error if the name is empty or longer than [`Actor::MAX_BYTES`].
    pub fn new(name: impl Into<String>) -> Result<Self, ActorError> {
        let name = name.into();
        if name.is_empty() || name.len() > Self::MAX_BYTES { Err(ActorError) } else { Ok(Self(name)) }
    }

    /// Returns the name.
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
