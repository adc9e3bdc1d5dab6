//! Flipped bits: a check that finds nothing means that every answer is what it was.

use std::collections::BTreeMap;

use super::every_table::{ANSWERS, is_noticed, small};
use super::questions::answers;
use super::{of_bytes, small_pages};

/// Which bytes are flipped: the number of bytes of which one is. A prime, so that all parts of pages have their turn.
fn stride() -> usize {
    std::env::var("RUNVAULT_FLIP_STRIDE").map_or(599, |stride| stride.parse().unwrap())
}

/// The first byte that is flipped, so that long runs can be divided.
fn start() -> usize {
    std::env::var("RUNVAULT_FLIP_START").map_or(0, |start| start.parse().unwrap())
}

/// Which bit of the byte at `offset` is flipped.
fn bit(offset: usize) -> u8 {
    let mixed = (offset as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    1 << (mixed >> 61)
}

/// Whether the byte at `offset` is in the part of a b-tree page that has no cells yet, which is never read.
fn is_in_a_gap(bytes: &[u8], page: usize, offset: usize) -> bool {
    let start = offset / page * page;
    let header = start + if start == 0 { 100 } else { 0 };
    let two = |at: usize| usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]));
    let pointers = match bytes[header] {
        0x02 | 0x05 => header + 12,
        0x0a | 0x0d => header + 8,
        _ => return false,
    };
    (pointers + 2 * two(header + 3)..start + two(header + 5)).contains(&offset)
}

/// Every byte of a small vault, or one in [`stride`], with one bit flipped. Of those in the
/// empty parts of pages, the answers are compared for one in 16.
#[test]
fn a_vault_with_flipped_bytes_is_not_clean_unless_it_answers_as_before() {
    let bytes = small_pages(&small());
    let page = usize::from(u16::from_be_bytes([bytes[16], bytes[17]]));
    let (mut noticed, mut same, mut gap) = (0, 0, 0);
    let mut different: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for offset in (start()..bytes.len()).step_by(stride()) {
        if is_in_a_gap(&bytes, page, offset) {
            gap += 1;
            if gap % 16 != 0 {
                continue;
            }
        }
        let mut flipped = bytes.clone();
        flipped[offset] ^= bit(offset);
        let sandbox = of_bytes(&flipped);
        if is_noticed(&sandbox.vault()) {
            noticed += 1;
            continue;
        }
        let after = answers(&sandbox, true);
        let pairs = ANSWERS.iter().zip(&after);
        let changed: Vec<String> =
            pairs.filter(|(one, other)| one != other).map(|(one, _)| one.0.clone()).collect();
        if changed.is_empty() {
            same += 1;
        } else {
            // For who looks at a long run while it goes on.
            println!("{offset}: {changed:?}");
            different.insert(offset, changed);
        }
    }
    assert!(
        different.is_empty(),
        "{noticed} noticed, {same} with the same answers, {gap} in gaps, {} unnoticed: {different:#?}",
        different.len()
    );
    assert!(noticed > same, "{noticed} {same}");
    println!("{noticed} noticed, {same} with the same answers, {gap} in gaps");
}

/// An empty index whose only page says that it leads to other pages, of which there are none: SQLite's check takes it.
#[test]
fn a_page_that_leads_nowhere_is_a_finding() {
    for (name, others) in
        [("sqlite_autoindex_dictionary_1", 0x02), ("mention_segment", 0x05), ("payload_by_base", 0x02)]
    {
        let original = super::examples();
        if name == "payload_by_base" {
            super::sql(&original).execute_batch("DELETE FROM payload WHERE base IS NOT NULL").unwrap();
        }
        let mut bytes = small_pages(&original);
        let root: usize = super::sql(&original)
            .query_row("SELECT rootpage FROM sqlite_schema WHERE name = ?1", [name], |row| row.get(0))
            .unwrap();
        let at = (root - 1) * 512;
        assert!(matches!(bytes[at], 0x0a | 0x0d) && bytes[at + 3..at + 5] == [0, 0], "{name}");
        bytes[at] = others;
        let found = super::findings(&of_bytes(&bytes), &["--quick"]);
        assert!(found.contains("database disk image is malformed"), "{name}: {found}");
        let sandbox = of_bytes(&bytes);
        super::findings(&sandbox, &["--repair"]);
        let left = super::findings(&sandbox, &[]);
        // The bytes that were deleted are missing all the same.
        assert!(
            !left.contains("malformed") && (left.is_empty() || name == "payload_by_base"),
            "{name}: {left}"
        );
    }
}
