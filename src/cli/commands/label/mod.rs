//! `runvault label`

mod list;
mod remove;
mod set;

super::verbs! {
    /// Set, remove or list labels
    ///
    /// A label is a KEY=VALUE that many artifacts can share, such as commit=4f2a91c. An artifact has one value of a key.
    /// "add --label" and "add --ci" set labels when artifacts are added; "find --label" finds artifacts by them.
    Set(set), Remove(remove), List(list)
}
