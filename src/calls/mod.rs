//! Calls of models: what was asked and what came back, the prompt by which requests are compared, and the two documents
//! that a run of calls becomes, a session (`model_io`) and a run pack (`rpk`).
//!
//! `gateway` makes runs of the calls that it forwards, [`recorders`](crate::recorders) of the files of other programs.
//! `docs/gateway.md` specifies the documents.

#![cfg_attr(not(feature = "gateway"), allow(dead_code, reason = "a gateway uses what imports do not"))]

pub(crate) mod aws_events;
pub(crate) mod body;
pub(crate) mod directories;
pub(crate) mod matching;
pub(crate) mod normalize;
pub(crate) mod recorded_run;
mod redaction;
pub(crate) mod request_store;
pub(crate) mod run;
pub(crate) mod run_parts;
pub(crate) mod session;
pub(crate) mod spool_file;
pub(crate) mod target;

pub use crate::conversation::providers::{Endpoint, PROVIDERS, Provider, REPLAY_KEY, key_variables};
pub use matching::{InvalidRule, MatchingRules};
