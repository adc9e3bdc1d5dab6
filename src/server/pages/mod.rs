//! The pages: each a file, with the answer of an operation in and HTML out.

pub(super) mod annotate;
pub(super) mod artifact;
pub(super) mod artifacts;
pub(super) mod audits;
mod compared_messages;
mod compared_runs;
mod conversation;
pub(super) mod diff;
pub(super) mod download;
mod filters;
pub(super) mod graph;
pub(super) mod journal;
mod json_tree;
mod message;
mod parts;
pub(super) mod prompt;
pub(super) mod recordings;
pub(super) mod runs;
pub(super) mod search;
mod selection;
pub(super) mod stats;
mod timeline;
mod transcript;
