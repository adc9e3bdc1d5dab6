//! `runvault pin`

mod add;
mod list;
mod remove;

super::verbs! {
    /// Protect artifacts from removal
    ///
    /// Neither rm (even with --force) nor forget removes a pinned artifact.
    Add(add), Remove(remove), List(list)
}
