//! `runvault index`

pub(crate) mod build;
mod drop;
pub(crate) mod rebuild;
mod status;

super::verbs! {
    /// Build, check or rebuild indexes
    ///
    /// The search index is optional: "search" needs it, and keeps it up to date. The other indexes always exist and are
    /// rebuilt only if "fsck" finds them damaged.
    Build(build), Status(status), Rebuild(rebuild), Drop(drop)
}
