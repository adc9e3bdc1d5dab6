//! `runvault link`

mod add;
mod remove;

use crate::cli::commands::links as list;

super::verbs! {
    /// Add, remove or list links between artifacts
    ///
    /// Most links are derived from what artifacts state; the others are added manually. "runvault links" is the same
    /// as "runvault link list".
    Add(add), Remove(remove), List(list)
}
