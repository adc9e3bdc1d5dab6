//! Everything that needs more than one module, in one binary.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests fail by panicking")]
#![allow(
    clippy::format_push_string,
    clippy::items_after_statements,
    reason = "tests are read from top to bottom"
)]

mod backup;
mod bad_input;
mod bundle;
mod completing;
mod concurrency;
mod config;
mod conformance;
mod crash;
mod damage;
mod diff;
mod faults;
mod fsck;
mod fuzzing;
mod journal;
mod large;
mod layering;
mod limits;
mod man;
mod moving;
mod output;
mod packs;
mod properties;
mod readme;
mod real;
mod removal;
mod replay;
mod round_trip;
mod sandbox;
mod storage;
mod story;
mod untrusted;
mod upgrade;
mod watch;
