//! SQL indexes whose pages cannot be read follow from the rows of their tables.

use super::{bytes_of, examples, findings, of_bytes, small_pages, sql};
use crate::sandbox::Sandbox;

/// The names and root pages of all indexes, and the size of a page.
fn indexes(sandbox: &Sandbox) -> (Vec<(String, usize)>, usize) {
    let connection = sql(sandbox);
    let roots = "SELECT name, rootpage FROM sqlite_schema WHERE type = 'index' ORDER BY name";
    let mut roots = connection.prepare(roots).unwrap();
    let roots = roots.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let size = connection.query_row("PRAGMA page_size", [], |row| row.get(0)).unwrap();
    (roots.collect::<Result<_, _>>().unwrap(), size)
}

fn answers(sandbox: &Sandbox) -> String {
    let find = sandbox.run(["find", "--sort", "core", "--json"]).expect(0).stdout;
    find + &sandbox.run(["links", "3941d389b337", "--json"]).expect(0).stdout
}

/// Damages the root page of each index in turn, and expects that the check ends, that the repair leaves nothing to find, and
/// that the answers are those from before.
fn expect_repaired(bytes: &[u8], damage: impl Fn(&mut [u8])) {
    let original = of_bytes(bytes);
    let (before, (indexes, size)) = (answers(&original), indexes(&original));
    assert!(indexes.iter().any(|(name, _)| name.starts_with("sqlite_autoindex_")) && indexes.len() > 20);
    for (name, root) in indexes {
        let mut bytes = bytes.to_vec();
        damage(&mut bytes[(root - 1) * size..root * size]);
        let sandbox = of_bytes(&bytes);
        let found = findings(&sandbox, &[]);
        assert!(found.contains("file-damaged | "), "{name}\n{found}");
        let repaired = findings(&sandbox, &["--repair"]);
        assert!(repaired.lines().all(|line| line.starts_with("repaired: ")), "{name}\n{repaired}");
        assert_eq!(findings(&sandbox, &[]), "", "{name}\n{repaired}");
        assert_eq!(answers(&sandbox), before, "{name}");
    }
}

#[test]
fn an_index_whose_root_page_is_zeroed_is_created_again() {
    expect_repaired(&bytes_of(&examples()), |page| page.fill(0));
}

#[test]
fn an_index_whose_root_page_is_of_another_type_is_created_again() {
    expect_repaired(&small_pages(&examples()), |page| page[0] ^= 4);
}

/// The search index follows from the stored bytes, whatever of it cannot be read.
#[test]
fn a_search_index_with_a_damaged_root_page_is_built_again() {
    let original = examples();
    original.run(["index", "build"]).expect(0);
    let search = |sandbox: &Sandbox| sandbox.run(["search", "ticket", "--json"]).expect(0).stdout;
    let (bytes, before) = (bytes_of(&original), search(&original));
    let connection = sql(&original);
    let size: usize = connection.query_row("PRAGMA page_size", [], |row| row.get(0)).unwrap();
    let roots = "SELECT name, rootpage FROM sqlite_schema WHERE name GLOB 'search_*' AND rootpage > 0";
    let mut roots = connection.prepare(roots).unwrap();
    let roots = roots.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let roots: Vec<(String, usize)> = roots.collect::<Result<_, _>>().unwrap();
    assert_eq!(roots.len(), 6);
    for (name, root) in roots {
        for damage in [|page: &mut [u8]| page.fill(0), |page: &mut [u8]| page[0] ^= 1] {
            let mut bytes = bytes.clone();
            damage(&mut bytes[(root - 1) * size..root * size]);
            let sandbox = of_bytes(&bytes);
            assert_ne!(findings(&sandbox, &[]), "", "{name}");
            let repaired = findings(&sandbox, &["--repair"]);
            assert!(repaired.lines().all(|line| line.starts_with("repaired: ")), "{name}\n{repaired}");
            assert_eq!(findings(&sandbox, &[]), "", "{name}\n{repaired}");
            assert_eq!(search(&sandbox), before, "{name}");
        }
    }
}
