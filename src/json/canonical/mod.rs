//! The canonical profiles.

pub mod c14n_v1;
pub mod replaykit;
pub mod rfc8785;
