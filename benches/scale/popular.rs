//! The newest artifacts with a digest that a million artifacts mention.
//!
//! The rows are written directly, because only the catalog is read; those of one session, which the library added, are the
//! model of all others.

use std::time::Instant;

use runvault::digest::Digest;
use runvault::storage::interface::{Condition, Filter, Order, Page};

use crate::Bench;
use crate::corpus::many::{self, SHARED, prompt};
use crate::measure::Times;
use crate::schema::Schema;
use crate::table::{Table, Target};

const ARTIFACTS: i64 = 1_250_000;
const PAGE: usize = 100;
const RUNS: usize = 25;

/// The most that the page may take, in milliseconds.
const MOST: f64 = 5.0;

/// Four of five artifacts mention the first digest of the list of the first one, and each a digest of its own.
const FILL: &str = "
  INSERT INTO artifact (id, core, kind, added_at, seen_at, arrival, created_at)
  SELECT i, sha256(('a' || i)::bytea), a.kind, a.added_at + i, a.seen_at + i, a.arrival + (i << 20), a.created_at
    FROM artifact a, generate_series(2, $ARTIFACTS) AS i WHERE a.id = 1;
  INSERT INTO capture (id, artifact, digest, size, added_at, seen_at, warnings, signature, key_id, seal, source_path)
  SELECT i, i, c.digest, c.size, c.added_at + i, c.seen_at + i, c.warnings, c.signature, c.key_id, c.seal,
         c.source_path
    FROM capture c, generate_series(2, $ARTIFACTS) AS i WHERE c.id = 1;
  INSERT INTO mention_list (capture, group_id, digests, entries, firsts)
  SELECT i, l.group_id, n.digests, '\\x010000', NULL
    FROM generate_series(2, $ARTIFACTS) AS i
    JOIN (SELECT capture, min(group_id) AS group_id FROM mention_list WHERE capture = 1 AND position($DIGEST IN digests) > 0
           GROUP BY 1) l ON true,
         LATERAL (SELECT CASE WHEN i % 5 = 0 THEN sha256(('m' || i)::bytea) ELSE $DIGEST END AS digests) n;
  INSERT INTO mention_key (key, capture, group_id)
  SELECT ('x' || encode(substr(l.digests, 1, 8), 'hex'))::bit(64)::bigint, l.capture, l.group_id
    FROM mention_list l WHERE l.capture > 1;
  ANALYZE";

pub fn run(bench: &Bench) {
    let schema = Schema::new(bench, "scale_popular");
    let vault = schema.create();
    many::fill(&vault, [many::session(0)]);
    let digest = Digest::from_content(prompt(0, SHARED).as_bytes());
    let literal = format!("'\\x{}'::bytea", digest.hex());
    let fill = FILL.replace("$ARTIFACTS", &ARTIFACTS.to_string()).replace("$DIGEST", &literal);
    schema.client().batch_execute(&fill).expect("filled");
    let mut table =
        Table::new(format!("popular: {ARTIFACTS} artifacts, a million of which mention one digest"));
    let snapshot = vault.snapshot().expect("a snapshot");
    let conditions = vec![Condition::Mention { group: Some("prompt".to_owned()), digest }];
    let filter = Filter { conditions, ..Filter::default() };
    let mut after = None;
    for what in ["the newest 100", "the next 100"] {
        let page = Page { limit: PAGE, after };
        let mut times = Times::new();
        let mut next = None;
        for _ in 0..RUNS {
            let begun = Instant::now();
            let found = snapshot.find(&filter, Order::default(), &page).expect("found");
            times.push(begun.elapsed());
            assert_eq!(found.items.len(), PAGE);
            next = found.next;
        }
        let milliseconds = times.median() * 1e3;
        table.ratio(
            &format!("{what}, to {MOST} ms"),
            &times.text(),
            milliseconds / MOST,
            Target::AtMost(1.0),
        );
        after = next;
    }
    println!("{table}");
}
