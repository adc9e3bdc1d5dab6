//! Pages.

use super::kinds::{TestDocument, note, sheet};
use super::{TestVault, second};
use crate::digest::CoreHash;
use crate::storage::TimeBasis::{Created, FirstSeen, LastSeen};
use crate::storage::interface::{Cursor, Filter, HitPage, Order, Page};

const ORDERS: [Order; 6] = [
    Order::Newest(FirstSeen),
    Order::Newest(LastSeen),
    Order::Newest(Created),
    Order::Largest("tokens"),
    Order::Core,
    Order::Kind,
];

/// Stores artifacts of two kinds, in several batches of the same time, some of which state when they were created.
fn fill(vault: &TestVault) {
    for batch in 0..4_i64 {
        let artifacts = (0..5).map(|number| {
            let document = TestDocument::new(&format!("n{batch}-{number}"));
            let document = match number {
                0 => document,
                1 | 2 => document.attribute("created_at", "2025-01-01T00:00:00.000Z"),
                _ => document.attribute("created_at", &format!("2025-01-0{}T00:00:00.000Z", batch + 1)),
            };
            // Texts would be in another order.
            let document = match number {
                0 | 4 => document,
                _ => document.attribute("tokens", &(7 + batch * number).to_string()),
            };
            document.admit(if number % 2 == 0 { note() } else { sheet() })
        });
        let artifacts = artifacts.collect();
        vault.put(artifacts, crate::storage::RemovedPolicy::Refuse, second(batch / 2)).unwrap();
    }
}

fn page(
    vault: &TestVault,
    order: Order,
    limit: usize,
    after: Option<Cursor>,
) -> (Vec<CoreHash>, Option<Cursor>) {
    let HitPage { items, next } =
        vault.snapshot().find(&Filter::default(), order, &Page { limit, after }).unwrap();
    assert!(items.len() <= limit);
    (items.into_iter().map(|hit| hit.artifact.core).collect(), next)
}

pub(super) fn pages_are_the_whole(vault: &TestVault) {
    fill(vault);
    for order in ORDERS {
        let whole = vault.found(&Filter::default(), order);
        assert_eq!(whole.len(), 20);
        for limit in [1, 3, 7, 20, 21] {
            let (mut found, mut next) = page(vault, order, limit, None);
            while let Some(after) = next {
                let (more, following) = page(vault, order, limit, Some(after));
                assert!(!more.is_empty());
                found.extend(more);
                next = following;
            }
            assert_eq!(found, whole, "{order:?} in pages of {limit}");
        }
    }
}

pub(super) fn pages_stay_complete_when_items_are_removed(vault: &TestVault) {
    fill(vault);
    for order in ORDERS {
        let whole = vault.found(&Filter::default(), order);
        let (first, next) = page(vault, order, 2, None);
        // The item after which the next page begins, and one of the next page.
        let removed = [whole[1], whole[3]];
        for core in removed {
            vault.remove(core);
        }
        let (rest, last) = page(vault, order, 100, next);
        assert_eq!(last, None);
        let rest = [first, rest].concat();
        let expected: Vec<CoreHash> = whole.iter().copied().filter(|core| *core != whole[3]).collect();
        assert_eq!(rest, expected, "{order:?}");
    }
}

pub(super) fn the_last_page_has_no_next(vault: &TestVault) {
    fill(vault);
    for order in ORDERS {
        let (first, next) = page(vault, order, 19, None);
        assert_eq!(first.len(), 19);
        let (last, none) = page(vault, order, 1, next);
        assert_eq!((last.len(), none), (1, None));
        assert_eq!(page(vault, order, 20, None).1, None);
    }
}

pub(super) fn a_limit_of_zero_returns_nothing(vault: &TestVault) {
    fill(vault);
    for order in ORDERS {
        assert_eq!(page(vault, order, 0, None), (Vec::new(), None));
    }
}
