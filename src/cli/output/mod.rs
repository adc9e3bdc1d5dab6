//! Text, tables, JSON, progress and exit statuses: everything that is printed.

pub(crate) mod answers;
pub(crate) mod change;
pub(crate) mod columns;
pub(crate) mod disk;
pub(crate) mod exit;
pub(crate) mod exit_code;
pub(crate) mod fields;
pub(crate) mod fit;
pub(crate) mod fork_notes;
pub(crate) mod hits;
pub(crate) mod json;
pub(crate) mod links;
pub(crate) mod list;
pub(crate) mod matches;
pub(crate) mod pager;
pub(crate) mod passwords;
pub(crate) mod progress;
pub(crate) mod report;
pub(crate) mod signature;
pub(crate) mod stdout;
pub(crate) mod stop;
pub(crate) mod table;
pub(crate) mod template;
pub(crate) mod terminal;
pub(crate) mod time;
