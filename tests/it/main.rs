//! Everything that needs more than one module, in one binary.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests fail by panicking")]
#![allow(
    clippy::format_push_string,
    clippy::items_after_statements,
    reason = "tests are read from top to bottom"
)]

mod agent_sessions;
mod api;
mod attachments;
mod attributes;
mod audit;
mod backup;
mod bad_input;
mod bundle;
mod captures;
mod changes;
mod columns;
mod completing;
mod concurrency;
mod config;
mod conformance;
#[cfg(unix)]
mod console;
mod copying;
mod crash;
mod creating;
mod damage;
mod diff;
mod engines;
mod examples;
mod faults;
#[cfg(unix)]
mod file_names;
mod forks;
mod fsck;
mod fuzzing;
#[cfg(feature = "gateway")]
mod gateway;
mod growing;
mod growth;
mod import;
mod intake;
mod interrupted;
mod journal;
mod labels;
mod language;
mod large;
mod latest;
mod layering;
mod limits;
mod links;
mod list;
mod man;
#[cfg(feature = "mcp")]
mod mcp;
mod memory;
mod model;
mod moving;
mod notes;
mod operations;
mod origin;
mod output;
mod packs;
#[cfg(feature = "postgres")]
mod postgres;
mod power_loss;
mod properties;
#[cfg(unix)]
mod reading;
mod readme;
mod real;
mod removal;
mod removed_artifacts;
mod replay;
mod resolving;
mod restoring;
mod round_trip;
mod run_stats;
mod sandbox;
/// The validator of audits, for the schemas that document the output of commands.
#[path = "../../src/vault/audit"]
#[expect(dead_code, reason = "audits use the rest")]
mod schemas {
    mod decimal;
    mod schema_check;
    mod schema_rules;
    mod schema_work;

    /// Returns the first violation of a schema by a value.
    pub(crate) fn violation(schema: &serde_json::Value, value: &serde_json::Value) -> Option<String> {
        let rules = schema_rules::SchemaRules::new(schema).unwrap();
        let violation = schema_check::first_violation(&rules, value, &|_| true)?;
        Some(format!("{}: {}", violation.at, violation.message))
    }
}
mod search;
mod secrets;
#[cfg(feature = "server")]
mod server;
mod signatures;
mod source_paths;
mod sql;
mod stated_values;
mod stats;
mod storage;
mod terminal;
mod times;
mod traces;
mod two_kinds;
#[cfg(all(unix, feature = "gateway"))]
mod typescript;
mod unresolved;
mod untrusted;
mod variations;
mod view;
#[cfg(unix)]
mod waiting;
mod watch;
mod write_ahead_log;
mod written;
