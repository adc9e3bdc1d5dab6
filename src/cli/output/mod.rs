//! Text, tables, JSON, progress and exit statuses: everything that is printed.

pub(crate) mod columns;
pub(crate) mod disk;
pub(crate) mod entries;
pub(crate) mod exit;
pub(crate) mod fit;
pub(crate) mod hits;
pub(crate) mod json;
pub(crate) mod links;
pub(crate) mod matches;
pub(crate) mod progress;
pub(crate) mod report;
pub(crate) mod run_stats;
pub(crate) mod stdout;
pub(crate) mod table;
pub(crate) mod terminal;
pub(crate) mod time;
