//! Arguments and settings that several commands share, their help and their completion.

pub(crate) mod attribute;
pub(crate) mod bounds;
mod ci;
pub(crate) mod completing;
pub(crate) mod default_vault;
#[cfg(feature = "gateway")]
pub(crate) mod gateway;
pub(crate) mod hash;
pub(crate) mod help;
pub(crate) mod host;
pub(crate) mod inputs;
pub(crate) mod keys;
pub(crate) mod label;
pub(crate) mod length;
pub(crate) mod matching;
pub(crate) mod output;
pub(crate) mod prompt;
pub(crate) mod settings;
pub(crate) mod variable;
pub(crate) mod vault;
