//! Remedies for findings of `fsck`.

const FROM: &str = "`fsck --repair --from` another vault or a directory with the same bytes restores them; \
    without one, restore the vault from a backup.";

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
        "missing-row",
        "`fsck --repair` restores it if the chain of the journal is intact, with `--from` if its bytes are missing too.",
    ),
    (
        "surplus-row",
        "`fsck --repair` removes rows that belong to nothing, and what is derived from bytes that no longer have it. It keeps \
         artifacts, tags, notes, pins, labels and links that the journal does not record, because the end of the journal may have been lost: \
         compare the vault with a backup, and the journal's head with one that was saved elsewhere; then remove them, or set them \
         again, so that the journal records them. If the bytes of a removed artifact are in another one, `rm` that too, or undo the \
         removal with `add --allow-removed`.",
    ),
    (
        "different-row",
        "`fsck --repair` writes what follows from the journal, if its chain is intact, and from the stored bytes.",
    ),
    ("missing-bytes", FROM),
    ("damaged-bytes", FROM),
    (
        "not-admitted",
        "No action is needed. `runvault rules ID` explains the rule; `verify` reports the same for the original file. An artifact \
         of an unknown kind is checked by the version of runvault that added it.",
    ),
    (
        "wrong-signature",
        "`index rebuild` with the same keys records it as wrong; `find --signature wrong` lists such captures. Find out who signed it, \
         and `rm` it if it should not be there.",
    ),
    (
        "index-differs",
        "`fsck --repair` or `index rebuild` rebuilds the index of mentions from the stored bytes, and `index build` the search index.",
    ),
    ("broken-chain", "Compare the vault with a backup. A broken chain cannot be repaired, only explained."),
    ("unknown-entry", "Check the vault with the newest version of runvault that wrote to it."),
];

/// Returns what to do about the finding with this id. It names commands in Markdown.
pub(crate) fn for_finding(id: &str) -> &'static str {
    REMEDIES.iter().find(|(known, _)| *known == id).map_or("", |(_, remedy)| remedy)
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
