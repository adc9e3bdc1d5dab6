//! Text, tables, JSON, progress and exit statuses: everything that is printed.

pub(crate) mod answers;
pub(crate) mod columns;
pub(crate) mod disk;
pub(crate) mod escape;
pub(crate) mod exit;
pub(crate) mod fields;
pub(crate) mod fit;
pub(crate) mod fork_notes;
pub(crate) mod graph;
pub(crate) mod hits;
pub(crate) mod json;
pub(crate) mod list;
pub(crate) mod pager;
pub(crate) mod paragraphs;
pub(crate) mod progress;
pub(crate) mod report;
pub(crate) mod signature;
pub(crate) mod stdout;
pub(crate) mod stop;
pub(crate) mod table;
pub(crate) mod template;
pub(crate) mod time;
pub(crate) mod verbosity;
