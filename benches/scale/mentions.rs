//! Look-ups by the digest of a prompt, and sizes, in a vault with a million mentions and more.
//!
//! Everything is added by the library, as documents.

use std::time::{Duration, Instant};

use postgres::Client;
use runvault::Vault;
use runvault::digest::Digest;
use runvault::storage::interface::{Condition, Filter, Order, Page};
use runvault::vault::find::{ArtifactFilter, FindRequest};

use crate::Bench;
use crate::corpus::many::{self, MENTIONS, SHARED, prompt};
use crate::schema::Schema;
use crate::table::{Table, Target};

const LOOKUPS: usize = 2_000;
const PAGE: usize = 100;

/// How much longer a look-up may take than the prepared statement, and the size of a mention in the index.
const MOST_TIMES: f64 = 1.5;
const MOST_BYTES: f64 = 100.0;

/// Returns the artifacts that mention a digest, without anything that the library adds.
const PLAIN: &str = "SELECT a.core, a.kind, a.added_at, a.seen_at, a.id, a.arrival, l.digests, l.entries
   FROM mention_key k JOIN mention_list l ON l.capture = k.capture AND l.group_id = k.group_id
   JOIN capture c ON c.id = k.capture JOIN artifact a ON a.id = c.artifact
  WHERE k.key = $1 AND k.group_id = $2 AND position($3 IN l.digests) > 0
  ORDER BY a.arrival DESC, a.core LIMIT $4";

pub fn run(bench: &Bench) {
    let schema = Schema::new(bench, "scale_mentions");
    let vault = schema.create();
    let mut filled = 0;
    for mentions in &bench.mentions {
        let sessions = mentions / MENTIONS;
        let begun = Instant::now();
        many::fill(&vault, (filled..sessions).map(many::session));
        let rate = (sessions - filled) as f64 / begun.elapsed().as_secs_f64();
        filled = sessions;
        schema.client().batch_execute("VACUUM ANALYZE").expect("vacuumed");
        let mut table = Table::new(format!("mentions: {mentions}, in {sessions} sessions"));
        table.plain("adding them, one process", &format!("{rate:.0}/s"));
        look_ups(&mut table, &schema, &vault, sessions);
        sizes(&mut table, &schema, sessions);
        println!("{table}");
    }
}

fn look_ups(table: &mut Table, schema: &Schema<'_>, vault: &Vault, sessions: usize) {
    for (what, index) in [("one session", 0), ("ten sessions", SHARED)] {
        // Spread over all of them.
        let digests: Vec<Digest> = (0..LOOKUPS)
            .map(|number| Digest::from_content(prompt(number * 7_919 % sessions, index).as_bytes()))
            .collect();
        let plain = plain(&mut schema.client(), &digests);
        table.plain(&format!("a prompt of {what}: prepared statement"), &micros(plain));
        let snapshot = vault.snapshot().expect("a snapshot");
        let within = p50(&digests, |digest| {
            let page = Page { limit: PAGE, after: None };
            let found = snapshot.find(&filter(digest), Order::default(), &page).expect("found");
            assert!(!found.items.is_empty());
        });
        drop(snapshot);
        let ratio = |time: Duration| time.as_secs_f64() / plain.as_secs_f64();
        table.ratio("find of a snapshot", &micros(within), ratio(within), Target::AtMost(MOST_TIMES));
        let whole = p50(&digests, |digest| {
            let conditions = vec![Condition::Mention { group: Some("prompt".to_owned()), digest }];
            let filter = ArtifactFilter { conditions, ..ArtifactFilter::default() };
            let request = FindRequest { filter, limit: Some(PAGE as u64), ..FindRequest::default() };
            assert!(!vault.run(&request).expect("found").hits.is_empty());
        });
        table.ratio("the operation find, with its transaction", &micros(whole), ratio(whole), Target::None);
    }
}

fn filter(digest: Digest) -> Filter {
    let conditions = vec![Condition::Mention { group: Some("prompt".to_owned()), digest }];
    Filter { conditions, ..Filter::default() }
}

fn plain(client: &mut Client, digests: &[Digest]) -> Duration {
    let sql = "SELECT min(group_id) FROM role WHERE role_group = 'prompt'";
    let group: i32 = client.query_one(sql, &[]).expect("a group").get(0);
    let statement = client.prepare(PLAIN).expect("prepared");
    p50(digests, |digest| {
        let bytes = digest.as_bytes();
        let key = i64::from_be_bytes(bytes[..8].try_into().expect("eight bytes"));
        let rows = client
            .query(&statement, &[&key, &group, &&bytes[..], &i64::try_from(PAGE).expect("a page")])
            .expect("rows");
        assert!(!rows.is_empty());
    })
}

/// Returns the median of the times, without those of the first ones.
fn p50(digests: &[Digest], mut look_up: impl FnMut(Digest)) -> Duration {
    let mut times: Vec<Duration> = digests
        .iter()
        .map(|digest| {
            let begun = Instant::now();
            look_up(*digest);
            begun.elapsed()
        })
        .skip(digests.len() / 10)
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}

fn micros(time: Duration) -> String {
    format!("{:.0} µs", time.as_secs_f64() * 1e6)
}

fn sizes(table: &mut Table, schema: &Schema<'_>, sessions: usize) {
    let mentions = (sessions * MENTIONS) as f64;
    let per_mention = |name: &str| schema.size_of(name) as f64 / mentions;
    let index = per_mention("mention_key");
    let is_met = if index <= MOST_BYTES { "yes" } else { "**no**" };
    table.plain(
        &format!("the index of mentions, each; at most {MOST_BYTES:.0}: {is_met}"),
        &format!("{index:.1} bytes"),
    );
    table.plain("the lists of mentions, each", &format!("{:.1} bytes", per_mention("mention_list")));
    table
        .plain("blobs, by capture", &format!("{:.0} bytes", schema.size_of("blob") as f64 / sessions as f64));
    table.plain("everything, by capture", &format!("{:.0} bytes", schema.size() as f64 / sessions as f64));
}
