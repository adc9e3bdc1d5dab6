//! Statistics of a vault, counted by the database. Payloads are measured and not read.

use chrono::DateTime;
use rusqlite::{Connection, Row};

use super::Result;
use super::read::SqliteSnapshot;
use super::rows::Milliseconds;
use super::{mention_index, search};
use crate::artifact::FINISHED_AT;
use crate::storage::TimeBasis;
use crate::storage::interface::{
    ArtifactSize, ArtifactTime, BlobCounts, Day, EngineStatistics, Extremes, KindTotals, Statistics,
};

const DAY_MILLISECONDS: i64 = 24 * 60 * 60 * 1000;

impl SqliteSnapshot<'_> {
    /// Returns the statistics. `by` determines which artifacts are oldest and newest, and the day of each.
    pub(crate) fn statistics(&self, by: TimeBasis) -> Result<Statistics> {
        let kinds = "SELECT k.name, count(DISTINCT c.artifact), count(*), sum(c.size)
                       FROM capture c JOIN artifact a ON a.id = c.artifact JOIN kind k ON k.id = a.kind
                      GROUP BY k.id ORDER BY k.name";
        let kinds = self.rows(kinds, [], |row| {
            Ok(KindTotals {
                kind: row.get(0)?,
                artifacts: row.get(1)?,
                captures: row.get(2)?,
                bytes: row.get(3)?,
            })
        })?;
        let connection = self.connection();
        let counts = || {
            Ok(Statistics {
                kinds,
                blobs: blobs(connection)?,
                manual_links: number(connection, "SELECT count(*) FROM link")?,
                tags: number(connection, "SELECT count(*) FROM tag")?,
                pins: number(connection, "SELECT count(*) FROM pin")?,
                notes: number(connection, "SELECT count(*) FROM note")?,
                labels: number(connection, "SELECT count(*) FROM label")?,
                journal_entries: number(connection, "SELECT coalesce(max(seq), 0) FROM journal")?,
                extremes: Extremes::default(),
                by,
                undated: number(
                    connection,
                    &format!("SELECT count(*) FROM ({}) WHERE at IS NULL", dated(by)),
                )?,
                days: Vec::new(),
            })
        };
        let stats: Statistics = counts().map_err(|error| self.failed(error))?;
        Ok(Statistics { extremes: self.extremes(by)?, days: self.days(by)?, ..stats })
    }

    /// Returns the size of what is stored, and of the indexes.
    pub(crate) fn engine_statistics(&self) -> Result<EngineStatistics> {
        engine_statistics(self.connection()).map_err(|error| self.failed(error))
    }

    fn extremes(&self, by: TimeBasis) -> Result<Extremes> {
        let sql = "SELECT artifact, sum(size) AS bytes, count(*) FROM capture
                    GROUP BY artifact ORDER BY bytes DESC, artifact LIMIT ?1";
        let largest =
            self.rows(sql, [Extremes::LARGEST], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        let largest = largest.into_iter().map(|(id, bytes, captures)| {
            Ok(ArtifactSize { artifact: self.artifact_by_id(id)?.record(), bytes, captures })
        });
        let largest = largest.collect::<Result<_>>()?;
        Ok(Extremes { largest, oldest: self.extreme(by, "")?, newest: self.extreme(by, "DESC")? })
    }

    /// Returns the oldest artifact according to `by`, or the newest if `direction` is DESC.
    fn extreme(&self, by: TimeBasis, direction: &str) -> Result<Option<ArtifactTime>> {
        // In the order of `Chronology::newest_first`.
        let order = match by {
            TimeBasis::LastSeen => format!("entry {direction}"),
            TimeBasis::FirstSeen | TimeBasis::Created | TimeBasis::Finished => {
                format!("at {direction}, entry {direction}")
            }
        };
        let sql = format!("SELECT id, at FROM ({}) WHERE at NOT NULL ORDER BY {order} LIMIT 1", dated(by));
        let found = self.rows(&sql, [], |row| Ok((row.get(0)?, row.get::<_, Milliseconds>(1)?.0)))?.pop();
        found.map(|(id, at)| Ok(ArtifactTime { artifact: self.artifact_by_id(id)?.record(), at })).transpose()
    }

    fn days(&self, by: TimeBasis) -> Result<Vec<Day>> {
        let captures = match by {
            TimeBasis::FirstSeen => "SELECT added_at AS at, size FROM capture".to_owned(),
            TimeBasis::LastSeen => "SELECT seen_at AS at, size FROM capture".to_owned(),
            TimeBasis::Created | TimeBasis::Finished => {
                format!("SELECT d.at, c.size FROM capture c JOIN ({}) d ON d.id = c.artifact", dated(by))
            }
        };
        // Rounded down, also before 1970.
        let day = "(at - (at % ?1 + ?1) % ?1) / ?1";
        let sql = format!(
            "SELECT day, sum(artifacts), sum(captures), sum(bytes) FROM (
               SELECT {day} AS day, 0 AS artifacts, count(*) AS captures, sum(size) AS bytes
                 FROM ({captures}) WHERE at NOT NULL GROUP BY 1
               UNION ALL SELECT {day}, count(*), 0, 0 FROM ({}) WHERE at NOT NULL GROUP BY 1)
              GROUP BY day ORDER BY day",
            dated(by)
        );
        self.rows(&sql, [DAY_MILLISECONDS], read_day)
    }
}

/// Returns the query for the row id of every artifact, its time in milliseconds since 1970, NULL if it has none, and
/// the position that decides between equal times.
fn dated(by: TimeBasis) -> String {
    match by {
        TimeBasis::FirstSeen => "SELECT id, added_at AS at, id AS entry FROM artifact".to_owned(),
        TimeBasis::LastSeen => "SELECT id, seen_at AS at, arrival AS entry FROM artifact".to_owned(),
        TimeBasis::Created => "SELECT id, created_at AS at, arrival AS entry FROM artifact".to_owned(),
        TimeBasis::Finished => format!(
            "SELECT a.id AS id, t.at AS at, a.arrival AS entry FROM artifact a LEFT JOIN (
               SELECT l.artifact AS artifact, max(v.number) AS at
                 FROM attribute_value v JOIN attribute l ON l.value = v.id
                WHERE v.name = '{FINISHED_AT}' GROUP BY l.artifact) t ON t.artifact = a.id"
        ),
    }
}

fn read_day(row: &Row<'_>) -> rusqlite::Result<Day> {
    let day: i64 = row.get(0)?;
    let begins = day.checked_mul(DAY_MILLISECONDS).and_then(DateTime::from_timestamp_millis);
    let begins = begins.ok_or(rusqlite::Error::IntegralValueOutOfRange(0, day))?;
    Ok(Day { date: begins.date_naive(), artifacts: row.get(1)?, captures: row.get(2)?, bytes: row.get(3)? })
}

fn blobs(connection: &Connection) -> rusqlite::Result<BlobCounts> {
    let number = |sql| number(connection, sql);
    Ok(BlobCounts {
        blobs: number("SELECT count(*) FROM blob")?,
        bytes: number("SELECT coalesce(sum(size), 0) FROM blob")?,
        shared: number(
            "SELECT count(*) FROM (
               SELECT 1 FROM (SELECT blob, id AS capture FROM capture
                              UNION SELECT blob, capture FROM member)
                GROUP BY blob HAVING count(*) > 1)",
        )?,
    })
}

fn engine_statistics(connection: &Connection) -> rusqlite::Result<EngineStatistics> {
    let number = |sql| number(connection, sql);
    let page = number("SELECT page_size FROM pragma_page_size")?;
    Ok(EngineStatistics {
        // The length is stored before the value, so long values are not read for this.
        stored_bytes: number(
            "SELECT coalesce(sum(length(bytes) + coalesce(length(digests), 0)), 0) FROM payload",
        )?,
        differences: number("SELECT count(*) FROM payload WHERE base NOT NULL")?,
        dictionaries: number("SELECT count(*) FROM dictionary")?,
        dictionary_bytes: number("SELECT coalesce(sum(length(bytes)), 0) FROM dictionary")?,
        search_bytes: search::size(connection)?,
        file_bytes: page * number("SELECT page_count FROM pragma_page_count")?,
        free_bytes: page * number("SELECT freelist_count FROM pragma_freelist_count")?,
        mentions: mention_index::count(connection)?,
    })
}

fn number(connection: &Connection, sql: &str) -> rusqlite::Result<u64> {
    connection.query_row(sql, [], |row| row.get(0))
}
