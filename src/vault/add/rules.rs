//! The rules of adding, which apply in addition to those of the kinds.

use crate::digest::CoreHash;
use crate::formats;
use crate::storage::{KindConflict, StorageError, Tombstone};
use crate::validation::{Findings, Report, RuleInfo, Severity, Violation};

/// The rule that a removed artifact is not added again.
pub const REMOVED: RuleInfo = RuleInfo {
    id: "REMOVED",
    severity: Severity::Error,
    summary: "An artifact that was removed from a vault is added again only on request.",
    why: "It was removed for a reason, and files, packs and bundles that still contain it must not undo that silently. \
          The rule also applies to a pack with a session, or any other file, that was removed. If it is \
          allowed, the artifact is stored again; the journal records that and by whom.",
};

/// The rule that a core hash identifies one artifact, of one kind.
pub const OTHER_KIND: RuleInfo = RuleInfo {
    id: "CONFLICT",
    severity: Severity::Error,
    summary: "The core hash of an artifact is not that of a stored artifact of another kind.",
    why: "The canonical bytes whose SHA-256 is the core hash of an artifact would, as a kind that takes any bytes, be an \
          artifact with the same hash. A hash must not identify two artifacts: of the two, the one that was stored first \
          remains until it is removed. The canonical bytes of a stored artifact can always be computed from it, so they \
          need not be stored again.",
};

/// The rule that the vault returns what is added to it.
pub const UNREADABLE: RuleInfo = RuleInfo {
    id: "UNREADABLE",
    severity: Severity::Error,
    summary: "The vault returns an artifact that is added with every byte.",
    why: "An artifact that is added again is not stored again, and the bytes that the vault has of it may have been damaged \
          since. They are read back and compared with what is added. If they differ, they are restored from it; if that \
          is not possible, the artifact is rejected and its file is kept, because it may be the only good copy.",
};

/// The rules of adding, which apply in addition to those of the kind.
pub const RULES: [RuleInfo; 3] = [REMOVED, OTHER_KIND, UNREADABLE];

/// Returns the report for an artifact that the vault has and does not return, because of this error.
pub(super) fn unreadable(error: &StorageError) -> Report {
    let message = format!(
        "it is in the vault, but the vault does not return it, and it could not be restored: {error}"
    );
    Violation::new(UNREADABLE, "", message).into()
}

/// Returns the report for an artifact `core` that is rejected because of these tombstones.
pub(super) fn removed(core: CoreHash, tombstones: &[Tombstone]) -> Report {
    let mut findings = Findings::default();
    let mut found = findings.for_rule(REMOVED);
    for tombstone in tombstones {
        let removal = tombstone.removal();
        if tombstone.core == core {
            found.add("", removal);
        } else {
            found.add(
                "",
                format!(
                    "contains {} {}, which was {removal}",
                    formats::bare_noun(&tombstone.kind),
                    tombstone.core
                ),
            );
        }
    }
    findings.into_report()
}

/// Returns the report for an artifact `core` that is rejected because of this conflict.
pub(super) fn conflicting(core: CoreHash, conflict: &KindConflict) -> Report {
    let noun = formats::noun(&conflict.kind);
    let message = if conflict.core == core {
        format!("the vault has an artifact with the same core hash that is {noun}")
    } else {
        format!("it contains {}, which is {noun} in the vault", conflict.core)
    };
    Violation::new(OTHER_KIND, "", message).into()
}
