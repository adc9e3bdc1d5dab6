//! Resolution of prefixes.

use super::TestVault;
use super::kinds::{TestDocument, core, note, sheet};
use crate::digest::{CoreHash, DigestPrefix};
use crate::storage::interface::{CaptureTarget, Resolution};

fn resolve(vault: &TestVault, prefix: &str, limit: usize) -> Resolution {
    let prefix: DigestPrefix = prefix.parse().unwrap();
    vault.snapshot().resolve(&prefix, limit).unwrap()
}

pub(super) fn prefixes_resolve_to_artifacts_captures_and_tombstones(vault: &TestVault) {
    let document = TestDocument::new("a");
    let capture = document.admit(note()).capture();
    let (one, other) = (vault.add_note(&document), vault.add(document.admit(sheet())));
    for digits in [6, 20, 64] {
        let found = resolve(vault, &one.0.hex()[..digits], 10);
        assert_eq!((found.artifacts, found.captures.len(), found.tombstones.len()), (vec![one], 0, 0));
        // Both artifacts have these bytes.
        let found = resolve(vault, &capture.0.hex()[..digits], 10);
        let mut expected =
            vec![CaptureTarget { capture, artifact: one }, CaptureTarget { capture, artifact: other }];
        expected.sort_unstable();
        assert_eq!((found.captures, found.artifacts.len(), found.tombstones.len()), (expected, 0, 0));
    }
    vault.remove(one);
    let found = resolve(vault, &one.0.hex()[..12], 10);
    assert!(found.artifacts.is_empty());
    assert_eq!((found.tombstones[0].core, found.tombstones[0].digest), (one, one.0));
    // The capture was removed with one artifact, and is stored with the other.
    let found = resolve(vault, &capture.0.hex()[..12], 10);
    assert_eq!((found.captures.len(), found.tombstones.len()), (1, 0));
    vault.remove(other);
    let found = resolve(vault, &capture.0.hex()[..12], 10);
    assert!(found.captures.is_empty());
    let removed: Vec<CoreHash> = found.tombstones.iter().map(|tombstone| tombstone.core).collect();
    assert_eq!(removed, [other], "the latest removal counts");
    assert_eq!(resolve(vault, &super::unknown().0.hex(), 10), Resolution::default());
}

pub(super) fn resolution_is_limited(vault: &TestVault) {
    // Prefixes have at least six digits, which hashes of tests do not share: the limit is one of several captures.
    let document = TestDocument::new("a");
    let capture = document.admit(note()).capture();
    vault.add_all(vec![document.admit(note()), document.admit(sheet())]);
    let mut cores: Vec<CoreHash> = vec![core(note(), "a"), core(sheet(), "a")];
    cores.sort_unstable();
    let found = resolve(vault, &capture.0.hex(), 1);
    assert_eq!(found.captures, [CaptureTarget { capture, artifact: cores[0] }]);
    assert!(resolve(vault, &capture.0.hex(), 0).captures.is_empty());
    assert!(resolve(vault, &cores[0].0.hex(), 0).artifacts.is_empty());
}
