//! Statistics of a vault, counted by the database.

use chrono::DateTime;

use super::value::ARTIFACT;
use super::{DamagedValue, SqlResult, SqlRow, SqlSession, read_rows};
use crate::artifact::FINISHED_AT;
use crate::storage::TimeBasis;
use crate::storage::interface::{
    ArtifactSize, ArtifactTime, BlobCounts, Day, Extremes, KindTotals, Statistics,
};

/// The length of a day in milliseconds.
const DAY: i64 = 86_400_000;

/// Returns the query for the number of every artifact, its time in milliseconds since 1970, NULL if it has none, and the
/// position that decides between equal times.
fn dated(by: TimeBasis) -> String {
    match by {
        TimeBasis::FirstSeen => "SELECT id, added_at AS at, id AS entry FROM artifact".to_owned(),
        TimeBasis::LastSeen => "SELECT id, seen_at AS at, arrival AS entry FROM artifact".to_owned(),
        TimeBasis::Created => "SELECT id, created_at AS at, arrival AS entry FROM artifact".to_owned(),
        TimeBasis::Finished => format!(
            "SELECT d.id AS id, t.at AS at, d.arrival AS entry FROM artifact d LEFT JOIN
               (SELECT artifact, max(number) AS at FROM attributes WHERE name = '{FINISHED_AT}' GROUP BY artifact) t
               ON t.artifact = d.id"
        ),
    }
}

/// Returns the statistics. `by` determines which artifacts are oldest and newest, and the day of each.
pub(super) fn statistics<S: SqlSession>(session: &S, by: TimeBasis) -> SqlResult<Statistics, S> {
    let tables =
        ["link", "tag", "pin", "note", "label"].map(|table| format!("(SELECT count(*) FROM {table})"));
    let counts = only(
        session,
        &format!(
            "SELECT {}, (SELECT coalesce(max(seq), 0) FROM journal), (SELECT count(*) FROM ({}) d WHERE d.at IS NULL)",
            tables.join(", "),
            dated(by)
        ),
    )?;
    let largest = read_rows(
        session,
        &format!(
            "SELECT {ARTIFACT}, s.size, s.captures FROM
               (SELECT artifact, CAST(sum(size) AS bigint) AS size, count(*) AS captures FROM capture GROUP BY artifact
                 ORDER BY size DESC, artifact LIMIT ?1) s
               JOIN artifact a ON a.id = s.artifact JOIN kind k ON k.id = a.kind ORDER BY s.size DESC, a.id"
        ),
        &[Extremes::LARGEST.into()],
        |row| {
            let artifact = row.artifact()?;
            Ok(ArtifactSize { artifact, bytes: row.count(6)?, captures: row.count(7)? })
        },
    )?;
    let (oldest, newest) = (first_by(session, by, "ASC")?, first_by(session, by, "DESC")?);
    Ok(Statistics {
        kinds: kinds(session)?,
        blobs: blobs(session)?,
        manual_links: counts.count(0)?,
        tags: counts.count(1)?,
        pins: counts.count(2)?,
        notes: counts.count(3)?,
        labels: counts.count(4)?,
        journal_entries: counts.count(5)?,
        undated: counts.count(6)?,
        extremes: Extremes { largest, oldest, newest },
        by,
        days: days(session, by)?,
    })
}

/// Returns the only row of a query.
fn only<S: SqlSession>(session: &S, sql: &str) -> SqlResult<SqlRow, S> {
    let missing = DamagedValue::new(0, "a count has no row");
    Ok(session.rows(sql, &[])?.pop().ok_or(missing)?)
}

fn kinds<S: SqlSession>(session: &S) -> SqlResult<Vec<KindTotals>, S> {
    let sql = "SELECT k.name, count(DISTINCT c.artifact), count(*), CAST(sum(c.size) AS bigint)
                 FROM capture c JOIN artifact a ON a.id = c.artifact JOIN kind k ON k.id = a.kind
                GROUP BY k.name ORDER BY k.name";
    read_rows(session, sql, &[], |row| {
        let (artifacts, captures, bytes) = (row.count(1)?, row.count(2)?, row.count(3)?);
        Ok(KindTotals { kind: row.text(0)?, artifacts, captures, bytes })
    })
}

fn blobs<S: SqlSession>(session: &S) -> SqlResult<BlobCounts, S> {
    let (is_kept, own) = (S::DIALECT.is_kept_blob(), S::DIALECT.blob_of_capture());
    let row = only(
        session,
        &format!(
            "SELECT (SELECT count(*) FROM blob WHERE {is_kept}),
                (SELECT CAST(coalesce(sum(size), 0) AS bigint) FROM blob WHERE {is_kept}),
                (SELECT count(*) FROM (SELECT m.blob FROM
                   (SELECT {own} AS blob, id AS capture FROM capture UNION SELECT blob, capture FROM member) m
                  GROUP BY m.blob HAVING count(*) > 1) s)"
        ),
    )?;
    Ok(BlobCounts { blobs: row.count(0)?, bytes: row.count(1)?, shared: row.count(2)? })
}

/// Returns the first artifact in the order of a time, as [`Order::Newest`](crate::storage::interface::Order) has it.
fn first_by<S: SqlSession>(
    session: &S,
    by: TimeBasis,
    direction: &str,
) -> SqlResult<Option<ArtifactTime>, S> {
    let order = match by {
        TimeBasis::LastSeen => format!("d.entry {direction}"),
        TimeBasis::FirstSeen | TimeBasis::Created | TimeBasis::Finished => {
            format!("d.at {direction}, d.entry {direction}")
        }
    };
    let sql = format!(
        "SELECT {ARTIFACT}, f.at FROM (SELECT d.id, d.at FROM ({}) d WHERE d.at IS NOT NULL ORDER BY {order} LIMIT 1) f
           JOIN artifact a ON a.id = f.id JOIN kind k ON k.id = a.kind",
        dated(by)
    );
    let first =
        read_rows(session, &sql, &[], |row| Ok(ArtifactTime { artifact: row.artifact()?, at: row.time(6)? }));
    Ok(first?.pop())
}

fn days<S: SqlSession>(session: &S, by: TimeBasis) -> SqlResult<Vec<Day>, S> {
    let captures = match by {
        TimeBasis::FirstSeen => "SELECT added_at AS at, size FROM capture".to_owned(),
        TimeBasis::LastSeen => "SELECT seen_at AS at, size FROM capture".to_owned(),
        TimeBasis::Created | TimeBasis::Finished => {
            format!("SELECT d.at, c.size FROM capture c JOIN ({}) d ON d.id = c.artifact", dated(by))
        }
    };
    // Rounded down, also before 1970.
    let day = format!("(at - (at % {DAY} + {DAY}) % {DAY}) / {DAY}");
    let sql = format!(
        "SELECT day, CAST(sum(artifacts) AS bigint), CAST(sum(captures) AS bigint), CAST(sum(bytes) AS bigint) FROM
           (SELECT {day} AS day, 0 AS artifacts, count(*) AS captures, sum(size) AS bytes
              FROM ({captures}) c WHERE at IS NOT NULL GROUP BY 1
            UNION ALL SELECT {day}, count(*), 0, 0 FROM ({}) d WHERE at IS NOT NULL GROUP BY 1) x
          GROUP BY day ORDER BY day",
        dated(by)
    );
    read_rows(session, &sql, &[], |row| {
        let begins = row.integer(0)?.checked_mul(DAY).and_then(DateTime::from_timestamp_millis);
        let date = begins.ok_or(DamagedValue::new(0, "a time is out of range"))?.date_naive();
        Ok(Day { date, artifacts: row.count(1)?, captures: row.count(2)?, bytes: row.count(3)? })
    })
}
