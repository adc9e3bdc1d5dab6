//! Statistics.

use chrono::NaiveDate;
use postgres::Row;

use super::conditions::StatementParameters;
use super::times::column;
use crate::storage::TimeBasis;
use crate::storage::interface::{
    ArtifactSize, ArtifactTime, BlobCounts, Day, EngineStatistics, Extremes, Filter, KindTotals, Statistics,
};
use crate::storage::postgres::columns::{count, from_millis, limit as limit_of, text, time, value};
use crate::storage::postgres::error::{PostgresError, PostgresResult};
use crate::storage::postgres::view::{ARTIFACT, PostgresSnapshot};

/// The length of a day in milliseconds.
const DAY: i64 = 86_400_000;

impl PostgresSnapshot<'_> {
    fn only_row(&self, sql: &str) -> PostgresResult<Row> {
        self.session.row(sql, &[])?.ok_or_else(|| PostgresError::damaged("a count has no row"))
    }

    pub(super) fn statistics(&self, by: TimeBasis) -> PostgresResult<Statistics> {
        let counts = self.only_row(&format!(
            "SELECT (SELECT count(*) FROM link), (SELECT count(*) FROM tag), (SELECT count(*) FROM pin),
                    (SELECT count(*) FROM note), (SELECT count(*) FROM journal),
                    (SELECT count(*) FROM artifact a WHERE {} IS NULL), (SELECT count(*) FROM label)",
            column(by)
        ))?;
        Ok(Statistics {
            kinds: self.kind_statistics()?,
            blobs: self.blob_counts()?,
            manual_links: count(&counts, 0)?,
            tags: count(&counts, 1)?,
            pins: count(&counts, 2)?,
            notes: count(&counts, 3)?,
            journal_entries: count(&counts, 4)?,
            extremes: self.extremes(by)?,
            by,
            undated: count(&counts, 5)?,
            labels: count(&counts, 6)?,
            days: self.days(by)?,
        })
    }

    fn kind_statistics(&self) -> PostgresResult<Vec<KindTotals>> {
        let sql = "SELECT k.name, count(DISTINCT a.id), count(*), sum(c.size)::bigint
                     FROM artifact a JOIN kind k ON k.id = a.kind JOIN capture c ON c.artifact = a.id
                    GROUP BY k.name ORDER BY k.name";
        let stats = |row: &Row| {
            Ok(KindTotals {
                kind: text(row, 0)?,
                artifacts: count(row, 1)?,
                captures: count(row, 2)?,
                bytes: count(row, 3)?,
            })
        };
        self.session.rows(sql, &[])?.iter().map(stats).collect()
    }

    fn blob_counts(&self) -> PostgresResult<BlobCounts> {
        let row = self.only_row(
            "SELECT count(*), coalesce(sum(size), 0)::bigint, count(*) FILTER (WHERE captures > 1) FROM
               (SELECT b.size, count(DISTINCT m.capture) AS captures FROM blob b
                  JOIN (SELECT blob, capture FROM member UNION ALL SELECT digest, id FROM capture) m ON m.blob = b.digest
                 GROUP BY b.digest, b.size) x",
        )?;
        Ok(BlobCounts { blobs: count(&row, 0)?, bytes: count(&row, 1)?, shared: count(&row, 2)? })
    }

    fn extremes(&self, by: TimeBasis) -> PostgresResult<Extremes> {
        let sql = format!(
            "SELECT {ARTIFACT}, s.size, s.captures FROM
               (SELECT artifact, sum(size)::bigint AS size, count(*) AS captures FROM capture GROUP BY artifact
                 ORDER BY size DESC, artifact LIMIT $1) s
               JOIN artifact a ON a.id = s.artifact ORDER BY s.size DESC, a.id"
        );
        let rows = self.session.rows(&sql, &[&limit_of(Extremes::LARGEST)])?;
        let sized = |row: &Row| {
            Ok(ArtifactSize {
                artifact: self.artifact_record(row, 0)?,
                bytes: count(row, 6)?,
                captures: count(row, 7)?,
            })
        };
        let largest = rows.iter().map(sized).collect::<PostgresResult<_>>()?;
        Ok(Extremes { largest, oldest: self.first_by(by, "ASC")?, newest: self.first_by(by, "DESC")? })
    }

    /// Returns the first artifact in the order of a time.
    fn first_by(&self, by: TimeBasis, direction: &str) -> PostgresResult<Option<ArtifactTime>> {
        let order = match by {
            TimeBasis::LastSeen => format!("a.arrival {direction}"),
            TimeBasis::FirstSeen => format!("a.added_at {direction}, a.id {direction}"),
            TimeBasis::Created | TimeBasis::Finished => format!("at {direction}, a.arrival {direction}"),
        };
        let at = column(by);
        let sql = format!(
            "SELECT {ARTIFACT}, {at} AS at FROM artifact a WHERE {at} IS NOT NULL ORDER BY {order} LIMIT 1"
        );
        let row = self.session.row(&sql, &[])?;
        row.map(|row| Ok(ArtifactTime { artifact: self.artifact_record(&row, 0)?, at: time(&row, 6)? }))
            .transpose()
    }

    fn days(&self, by: TimeBasis) -> PostgresResult<Vec<Day>> {
        let of_capture = match by {
            TimeBasis::FirstSeen => "c.added_at",
            TimeBasis::LastSeen => "c.seen_at",
            TimeBasis::Created | TimeBasis::Finished => column(by),
        };
        let sql = format!(
            "SELECT day * {DAY}, sum(artifacts)::bigint, sum(captures)::bigint, sum(bytes)::bigint FROM
               (SELECT floor({at} / {DAY}.0)::bigint AS day, 1 AS artifacts, 0 AS captures, 0::bigint AS bytes
                  FROM artifact a WHERE {at} IS NOT NULL
                UNION ALL
                SELECT floor({of_capture} / {DAY}.0)::bigint, 0, 1, c.size
                  FROM capture c JOIN artifact a ON a.id = c.artifact WHERE {of_capture} IS NOT NULL) x
              GROUP BY day ORDER BY day",
            at = column(by)
        );
        let day = |row: &Row| {
            let date: NaiveDate = from_millis(value(row, 0)?)?.date_naive();
            Ok(Day { date, artifacts: count(row, 1)?, captures: count(row, 2)?, bytes: count(row, 3)? })
        };
        self.session.rows(&sql, &[])?.iter().map(day).collect()
    }

    /// Returns the number of artifacts that match on each day that has any.
    pub(super) fn count_by_day(
        &self,
        filter: &Filter,
        by: TimeBasis,
    ) -> PostgresResult<Vec<(NaiveDate, u64)>> {
        let mut selection = StatementParameters::default();
        let (at, matching) = (column(by), selection.matching(filter));
        let sql = format!(
            "SELECT floor({at} / {DAY}.0)::bigint * {DAY}, count(*) FROM artifact a
              WHERE {at} IS NOT NULL AND {matching} GROUP BY 1 ORDER BY 1"
        );
        let rows = self.session.rows_planned_for(&sql, &selection.parameters())?;
        rows.iter().map(|row| Ok((from_millis(value(row, 0)?)?.date_naive(), count(row, 1)?))).collect()
    }

    /// Returns the size of the tables, and of the bytes wherever they are.
    pub(super) fn engine_statistics(&self) -> PostgresResult<Option<EngineStatistics>> {
        let row = self.only_row(
            "SELECT (SELECT coalesce(sum(coalesce(length, octet_length(bytes))), 0)::bigint FROM blob),
                    (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
                      WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'),
                    (SELECT count(*) FROM mention_key)",
        )?;
        Ok(Some(EngineStatistics {
            stored_bytes: count(&row, 0)?,
            file_bytes: count(&row, 1)?,
            mentions: count(&row, 2)?,
            ..EngineStatistics::default()
        }))
    }
}
