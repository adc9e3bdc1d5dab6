//! The conversation of an agent with models, decoded from the bodies of requests and responses in the APIs of their
//! providers.

#![cfg_attr(not(feature = "gateway"), allow(dead_code, reason = "a gateway uses what imports do not"))]

pub(crate) mod assembled;
pub(crate) mod comparison;
pub(crate) mod events;
pub(crate) mod facts;
mod histories;
pub mod message;
pub(crate) mod providers;
pub mod reader;
mod references;
pub(crate) mod response;
