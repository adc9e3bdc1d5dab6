//! `runvault tag`

mod list;
mod remove;
mod set;

super::verbs! {
    /// Set, remove or list tags
    ///
    /// A tag is a unique name for one artifact; @NAME can be used in place of its hash.
    Set(set), Remove(remove), List(list)
}
