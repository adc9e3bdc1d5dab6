//! Remedies for findings of `fsck`.

const BACKUP: &str = "Restore the vault from a backup, or add the artifacts to a new one.";
const FROM: &str = "`fsck --repair --from` another vault or a directory with the same bytes restores them; \
    without one, restore the vault from a backup.";
const REBUILD: &str = "`fsck --repair`, `index rebuild` or `index build` rebuilds it from the stored bytes.";
const REINDEX: &str = "`fsck --repair` or `index rebuild` rebuilds it from the stored bytes.";

/// The remedies by the ids of findings.
const REMEDIES: &[(&str, &str)] = &[
    (
        "insecure-permissions",
        "`fsck --repair` or `chmod go-w` removes the permission. Check the directory too.",
    ),
    (
        "file-damaged",
        "`fsck --repair` rebuilds SQL indexes. If the finding remains, a table is damaged: `copy` the vault to a new one. \
         If that fails, restore it from a backup.",
    ),
    (
        "page-shared",
        "Write nothing to this vault. Restore it from a backup, or `copy` it to a new vault. If that fails, `export` the \
         artifacts that can be read and `import` them into a new vault.",
    ),
    (
        "log-damaged",
        "Add again what was added last, from its files or from a backup; `log` shows what the vault has. Then delete the copy, or move it elsewhere.",
    ),
    (
        "schema-differs",
        "Restore the vault from a backup, or `export --all` the intact artifacts and `import` them into a new vault.",
    ),
    (
        "unreadable",
        "`fsck --repair` restores what the journal or stored bytes prove. If the finding remains, `copy` the vault to a \
         new one. If that fails, restore it from a backup.",
    ),
    (
        "reference-broken",
        "`fsck --repair` rebuilds index rows. If the finding remains, restore the vault from a backup.",
    ),
    ("row-number-invalid", "`fsck --repair` numbers such rows again."),
    ("duplicate-artifact", BACKUP),
    ("artifact-empty", FROM),
    ("duplicate-capture", BACKUP),
    ("duplicate-blob", BACKUP),
    (
        "blob-unreferenced",
        "`fsck --repair` adds them as an artifact again if the journal lists them as one, and otherwise drops them.",
    ),
    ("blob-missing", FROM),
    ("blob-damaged", FROM),
    ("base-wrong", FROM),
    ("payload-surplus", "`fsck --repair` removes them."),
    ("file-surplus", "`fsck --repair` removes them from the capture."),
    ("dictionary-damaged", FROM),
    ("size-wrong", "`fsck --repair` or `index rebuild` corrects it."),
    (
        "kind-unknown",
        "Use the version of runvault that added it. If the name of the kind was changed, `fsck --repair` finds the right one.",
    ),
    ("kind-wrong", REINDEX),
    ("kind-differs", REINDEX),
    ("capture-damaged", FROM),
    (
        "seal-broken",
        "`fsck --repair` restores the seal if its bytes give the artifact's core hash. Otherwise restore the vault from a \
         backup.",
    ),
    (
        "core-differs",
        "`fsck --repair` corrects it if the seal proves which artifact it is. Otherwise restore the vault from a backup.",
    ),
    (
        "not-admitted",
        "No action is needed. `runvault rules ID` explains the rule; `verify` reports the same for the original file.",
    ),
    ("warnings-differ", "`fsck --repair` or `index rebuild` corrects them."),
    (
        "signature-wrong",
        "`index rebuild` with the same keys records it as wrong; `find --signature wrong` lists such captures. Find out who signed it, \
         and `rm` it if it should not be there.",
    ),
    (
        "signature-differs",
        "`fsck --repair` restores what the journal records; `index rebuild` with the keys checks the signatures again.",
    ),
    ("index-missing", REINDEX),
    ("index-surplus", REINDEX),
    ("index-unreadable", REINDEX),
    ("embedded-missing", "`fsck --repair` adds it again."),
    (
        "removed-present",
        "Also remove the artifacts that contain its bytes with `rm`, or undo the removal with `add --allow-removed`.",
    ),
    ("mentions-missing", REINDEX),
    ("mention-index-unsorted", REINDEX),
    ("mentions-surplus", REINDEX),
    ("unresolved-missing", REINDEX),
    ("unresolved-surplus", REINDEX),
    ("search-damaged", REBUILD),
    ("search-differs", REBUILD),
    (
        "capture-unrecorded",
        "The vault alone cannot show which. Compare it with a backup, and the journal's head with one that was \
         saved elsewhere.",
    ),
    ("time-differs", "`fsck --repair` uses the journal's times if its chain is intact."),
    ("source-path-differs", "`fsck --repair` uses the journal's path if its chain is intact."),
    ("capture-lost", FROM),
    ("order-differs", "`fsck --repair` restores the journal's order if its chain is intact."),
    (
        "annotation-lost",
        "`fsck --repair` sets it again if the journal's chain is intact and the artifact exists.",
    ),
    (
        "annotation-unrecorded",
        "The vault alone cannot show which. If it should not exist, remove it. If it should, remove it and set it \
         again, so that the journal records it.",
    ),
    ("annotation-differs", "`fsck --repair` restores the journal's state if its chain is intact."),
    ("tombstone-differs", "`fsck --repair` restores those in the journal if its chain is intact."),
    ("entry-unknown", "Check the vault with the newest version of runvault that wrote to it."),
    ("entry-differs", "`log` without `--action` shows every entry, from its text."),
    ("journal-broken", "Compare the vault with a backup. A broken chain cannot be repaired, only explained."),
];

/// Returns what to do about the finding with this id. It names commands in Markdown.
pub(crate) fn for_finding(id: &str) -> &'static str {
    REMEDIES.iter().find(|(known, _)| *known == id).map_or(BACKUP, |(_, remedy)| remedy)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;
    use std::path::Path;

    use runvault::vault::fsck::finding::ALL;

    use super::*;

    #[test]
    fn every_finding_has_a_remedy() {
        let ids: Vec<&str> = REMEDIES.iter().map(|(id, _)| *id).collect();
        assert_eq!(ids, ALL.iter().map(|info| info.id).collect::<Vec<_>>());
    }

    #[test]
    fn the_documentation_has_every_finding() {
        const BEGIN: &str = "\n### `";
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/fsck.md");
        let actual = std::fs::read_to_string(&path).unwrap();
        let mut expected = String::new();
        for info in ALL {
            let (id, summary, meaning, remedy) = (info.id, info.summary, info.meaning, for_finding(info.id));
            write!(expected, "\n### `{id}`\n\n{summary}\n\n{meaning}\n\n*What to do:* {remedy}\n").unwrap();
        }
        if std::env::var_os("UPDATE_DOCS").is_some() {
            // The findings are the last section.
            let (before, _) = actual.split_once(BEGIN).unwrap();
            std::fs::write(&path, format!("{before}{expected}")).unwrap();
            return;
        }
        assert!(
            actual.contains(&expected),
            "UPDATE_DOCS=1 cargo test --bin runvault documentation writes it"
        );
    }
}
