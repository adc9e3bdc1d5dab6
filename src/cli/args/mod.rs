//! Arguments and settings that several commands share, their help and their completion.

pub(crate) mod attribute;
pub(crate) mod bounds;
pub(crate) mod choice;
pub(crate) mod completing;
pub(crate) mod environment;
#[cfg(feature = "gateway")]
pub(crate) mod gateway;
pub(crate) mod hash;
pub(crate) mod help;
pub(crate) mod inputs;
pub(crate) mod keys;
pub(crate) mod label;
pub(crate) mod matching;
#[cfg(feature = "gateway")]
pub(crate) mod mcp_servers;
pub(crate) mod settings;
pub(crate) mod vault;
