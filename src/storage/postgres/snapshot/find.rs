//! Pages of artifacts that match a filter.

use postgres::Row;

use crate::artifact::relation;
use crate::digest::Digest;
use crate::storage::TimeBasis;
use crate::storage::interface::{
    ArtifactRecord, Condition, Cursor, Filter, Hit, HitPage, Order, Page, TimePeriod,
};
use crate::storage::postgres::columns::{
    ceil_millis, count, from_millis, limit as limit_of, text_key, value,
};
use crate::storage::postgres::error::{PostgresError, PostgresResult};
use crate::storage::postgres::parameter::Parameter;
use crate::storage::postgres::snapshot::mentioned::only_mention;
use crate::storage::postgres::snapshot::mentions::list_has;
use crate::storage::postgres::text::to_stored;
use crate::storage::postgres::view::{ARTIFACT, PostgresSnapshot};

impl PostgresSnapshot<'_> {
    pub(super) fn count(&self, filter: &Filter) -> PostgresResult<u64> {
        let mut selection = StatementParameters::default();
        let sql = format!("SELECT count(*) FROM artifact a WHERE {}", selection.matching(filter));
        let row = self.session.rows_planned_for(&sql, &selection.parameters())?.into_iter().next();
        count(&row.ok_or_else(|| PostgresError::damaged("a count has no row"))?, 0)
    }

    pub(super) fn find(&self, filter: &Filter, order: Order, page: &Page) -> PostgresResult<HitPage<Hit>> {
        if page.limit == 0 {
            return Ok(HitPage { items: Vec::new(), next: None });
        }
        if let Some(mention) = only_mention(filter, order)
            && let Some(found) = self.page_mentioning(mention, order, page)?
        {
            return Ok(found);
        }
        let mut selection = StatementParameters::default();
        let sorting = SortExpression::new(order, &mut selection);
        let mut condition = selection.matching(filter);
        if let Some(after) = &page.after {
            let after = sorting.after(after, order, &mut selection);
            condition = format!("{condition} AND {after}");
        }
        let limit = selection.bind(limit_of(page.limit.saturating_add(1)));
        let sql = format!(
            "SELECT {ARTIFACT}, {} AS sort_value, k.name AS kind_name
               FROM artifact a JOIN kind k ON k.id = a.kind WHERE {condition} ORDER BY {} LIMIT {limit}",
            sorting.value(),
            sorting.order_by()
        );
        let mut rows = self.session.rows_planned_for(&sql, &selection.parameters())?;
        let is_more = rows.len() > page.limit;
        rows.truncate(page.limit);
        let artifacts: Vec<ArtifactRecord> =
            rows.iter().map(|row| self.artifact_record(row, 0)).collect::<PostgresResult<_>>()?;
        let next = match rows.last().zip(artifacts.last()).filter(|_| is_more) {
            Some((row, artifact)) => Some(cursor(row, 6, artifact, order)?),
            None => None,
        };
        let matches = self.matches(&artifacts, filter)?;
        let items = artifacts.into_iter().zip(matches).map(|(artifact, matches)| Hit { artifact, matches });
        Ok(HitPage { items: items.collect(), next })
    }
}

/// The parameters of a statement while its text is written.
#[derive(Default)]
pub(super) struct StatementParameters {
    values: Vec<Box<dyn Parameter>>,
}

impl StatementParameters {
    /// Adds a parameter, and returns how the statement names it.
    pub(super) fn bind(&mut self, value: impl Parameter + 'static) -> String {
        self.values.push(Box::new(value));
        format!("${}", self.values.len())
    }

    fn bind_text(&mut self, text: &str) -> String {
        self.bind(to_stored(text).into_owned())
    }

    /// Returns the parameters in their order.
    pub(super) fn parameters(&self) -> Vec<&dyn Parameter> {
        self.values.iter().map(|value| &**value).collect()
    }

    /// Returns the condition that the artifact `a` matches a filter.
    pub(super) fn matching(&mut self, filter: &Filter) -> String {
        let mut all = vec!["true".to_owned()];
        if !filter.kinds.is_empty() {
            let kinds: Vec<String> = filter.kinds.iter().map(|kind| to_stored(kind).into_owned()).collect();
            let kinds = self.bind(kinds);
            all.push(format!("a.kind IN (SELECT id FROM kind WHERE name = ANY({kinds}))"));
        }
        all.extend(filter.period.map(|period| self.within(&period)));
        all.extend(filter.digits.as_ref().map(|digits| self.beginning_with(digits)));
        if let Some(among) = &filter.among {
            let cores = self.bind(among.clone());
            all.push(format!("a.core = ANY({cores})"));
        }
        for condition in &filter.conditions {
            let artifacts = self.with(condition);
            all.push(if filter.through_members {
                format!("a.id IN ({})", self.and_containers(&artifacts))
            } else {
                format!("a.id IN ({artifacts})")
            });
        }
        all.join(" AND ")
    }

    fn within(&mut self, period: &TimePeriod) -> String {
        let time = time_column(period.basis);
        let mut all = vec![format!("{time} IS NOT NULL")];
        if let Some(since) = period.since {
            all.push(format!("{time} >= {}", self.bind(ceil_millis(since))));
        }
        if let Some(until) = period.until {
            all.push(format!("{time} < {}", self.bind(ceil_millis(until))));
        }
        all.join(" AND ")
    }

    fn beginning_with(&mut self, digits: &str) -> String {
        match (padded(digits, '0'), padded(digits, 'f')) {
            (Some(low), Some(high)) => {
                let (low, high) = (self.bind(low), self.bind(high));
                format!("a.core BETWEEN {low} AND {high}")
            }
            _ => "false".to_owned(),
        }
    }

    /// Returns a query of the numbers of the artifacts that match a condition themselves.
    fn with(&mut self, condition: &Condition) -> String {
        match condition {
            Condition::Mention { group, digest } => {
                let key = self.bind(digest.key());
                let digest = self.bind(*digest);
                let of_group = group.as_ref().map(|group| {
                    let group = self.bind_text(group);
                    format!(
                        "AND k.group_id = (SELECT min(r.group_id) FROM role r WHERE r.role_group = {group})"
                    )
                });
                format!(
                    "SELECT c.artifact FROM mention_key k
                       JOIN mention_list l ON l.capture = k.capture AND l.group_id = k.group_id
                       JOIN capture c ON c.id = k.capture
                      WHERE k.key = {key} {} AND {}",
                    of_group.unwrap_or_default(),
                    list_has(&digest)
                )
            }
            Condition::About { digest } => {
                let mention = self.with(&Condition::Mention { group: None, digest: *digest });
                let own = self.bind(*digest);
                format!(
                    "{mention}
                     UNION SELECT id FROM artifact WHERE core = {own}
                     UNION SELECT artifact FROM capture WHERE digest = {own}"
                )
            }
            Condition::AttributeLike { name, pattern } => {
                let (name, pattern) = (self.bind_text(name), self.bind_text(&like(pattern)));
                format!("SELECT artifact FROM attribute WHERE name = {name} AND value LIKE {pattern}")
            }
            Condition::LabelLike { key, pattern } => {
                let (key, pattern) = (self.bind_text(key), self.bind_text(&like(pattern)));
                format!("SELECT artifact FROM label WHERE key = {key} AND value LIKE {pattern}")
            }
            Condition::Attribute { name, value } => {
                let name = self.bind_text(name);
                let key = self.bind(text_key(value));
                let value = self.bind_text(value);
                format!(
                    "SELECT artifact FROM attribute WHERE name = {name} AND key = {key} AND value = {value}"
                )
            }
            Condition::Range { name, least, most } => {
                let name = self.bind_text(name);
                let least = self.bind(least.unwrap_or(i64::MIN));
                let most = self.bind(most.unwrap_or(i64::MAX));
                format!(
                    "SELECT artifact FROM attribute WHERE name = {name} AND number BETWEEN {least} AND {most}"
                )
            }
            Condition::Signature { state, key_id } => {
                let state = self.bind(state.name());
                let by_key = key_id.as_ref().map(|key_id| format!("AND key_id = {}", self.bind_text(key_id)));
                format!(
                    "SELECT artifact FROM capture WHERE signature = {state} {}",
                    by_key.unwrap_or_default()
                )
            }
            Condition::Unsigned => "SELECT artifact FROM capture WHERE signature IS NULL".to_owned(),
            Condition::Note { text } => {
                let text = self.bind(text.to_lowercase().into_bytes());
                format!("SELECT artifact FROM note WHERE position({text} IN folded) > 0")
            }
            Condition::Tagged { name: None } => "SELECT artifact FROM tag".to_owned(),
            Condition::Tagged { name: Some(name) } => {
                format!("SELECT artifact FROM tag WHERE name = {}", self.bind_text(name))
            }
            Condition::Pinned => "SELECT artifact FROM pin".to_owned(),
            Condition::Label { key, value } => {
                let key = self.bind_text(key);
                let with_value = value.as_ref().map(|value| format!("AND value = {}", self.bind_text(value)));
                format!("SELECT artifact FROM label WHERE key = {key} {}", with_value.unwrap_or_default())
            }
        }
    }

    /// Returns a query of these artifacts and those that contain one of them.
    fn and_containers(&mut self, artifacts: &str) -> String {
        let relation = self.bind(relation::CONTAINS);
        format!(
            "WITH own AS MATERIALIZED ({artifacts})
             SELECT artifact FROM own
             UNION ALL
             SELECT e.artifact FROM own JOIN artifact m ON m.id = own.artifact
               JOIN edge e ON e.target = m.core AND e.artifact <> m.id JOIN role r ON r.id = e.role
              WHERE r.relation = {relation}"
        )
    }
}

/// Returns a pattern in which `*` stands for any text as one of LIKE.
fn like(pattern: &str) -> String {
    let mut like = String::with_capacity(pattern.len());
    for character in pattern.chars() {
        match character {
            '*' => like.push('%'),
            '%' | '_' | '\\' => like.extend(['\\', character]),
            _ => like.push(character),
        }
    }
    like
}

/// Returns the digest that begins with these digits and continues with `digit`, or `None` if none begins with them.
fn padded(digits: &str, digit: char) -> Option<Digest> {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if !digits.bytes().all(is_hex) || digits.len() > 64 {
        return None;
    }
    let whole: String = digits.chars().chain(std::iter::repeat(digit)).take(64).collect();
    Digest::parse_hex(&whole)
}

/// How an order is expressed: the values by which artifacts are sorted, all descending but the last.
pub(super) struct SortExpression {
    /// An expression whose largest values come first, of the time or number of the artifact `a`. `None` if the order has
    /// none. Artifacts without one have the smallest value, which no time has.
    value: Option<String>,
    /// The position of the artifact `a`.
    position: Option<&'static str>,
    /// Whether artifacts are sorted by kind before anything else.
    is_by_kind: bool,
}

/// The sort value of an artifact without the time or number.
const NONE: &str = "'-9223372036854775808'::bigint";

impl SortExpression {
    pub(super) fn new(order: Order, selection: &mut StatementParameters) -> Self {
        let sorted =
            |value: Option<String>, position| Self { value, position: Some(position), is_by_kind: false };
        match order {
            Order::Newest(TimeBasis::LastSeen) => sorted(None, "a.arrival"),
            Order::Newest(TimeBasis::FirstSeen) => sorted(Some("a.added_at".to_owned()), "a.id"),
            Order::Newest(basis @ (TimeBasis::Created | TimeBasis::Finished)) => {
                sorted(Some(format!("coalesce({}, {NONE})", time_column(basis))), "a.arrival")
            }
            Order::Largest(name) => {
                let name = selection.bind(name);
                let largest = format!(
                    "(SELECT max(t.number) FROM attribute t WHERE t.artifact = a.id AND t.name = {name})"
                );
                sorted(Some(format!("coalesce({largest}, {NONE})")), "a.arrival")
            }
            Order::Core => Self { value: None, position: None, is_by_kind: false },
            Order::Kind => Self { value: None, position: Some("a.arrival"), is_by_kind: true },
        }
    }

    /// Returns the expression whose largest values come first.
    pub(super) fn value(&self) -> &str {
        self.value.as_deref().unwrap_or("0::bigint")
    }

    /// Returns what the statement sorts by.
    pub(super) fn order_by(&self) -> String {
        let kind = self.is_by_kind.then(|| "kind_name".to_owned());
        let value = self.value.as_ref().map(|_| "sort_value DESC".to_owned());
        let position = self.position.map(|position| format!("{position} DESC"));
        kind.into_iter()
            .chain(value)
            .chain(position)
            .chain(["a.core".to_owned()])
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// Returns the condition that an artifact comes after the one that a cursor describes.
    pub(super) fn after(&self, cursor: &Cursor, order: Order, selection: &mut StatementParameters) -> String {
        let core = selection.bind(cursor.core);
        let Some(position) = self.position else { return format!("a.core > {core}") };
        let known = selection.bind(cursor.position.cast_signed());
        if self.is_by_kind {
            let kind = selection.bind(cursor.kind.clone().unwrap_or_default());
            return format!(
                "(k.name > {kind} OR k.name = {kind} AND ({position} < {known} OR {position} = {known} AND a.core > {core}))"
            );
        }
        let Some(value) = &self.value else {
            return format!("{position} <= {known} AND ({position} < {known} OR a.core > {core})");
        };
        let key = match order {
            Order::Largest(_) => cursor.number,
            _ => cursor.time.map(|time| time.timestamp_millis()),
        };
        let key = selection.bind(key.unwrap_or(i64::MIN));
        // The first part is a range of an index.
        format!(
            "({value}, {position}) <= ({key}, {known})
             AND (({value}, {position}) < ({key}, {known}) OR a.core > {core})"
        )
    }
}

/// Returns the value by which a row is sorted, in the column `index`, if the artifact has it.
fn optional_sort_value(row: &Row, index: usize) -> PostgresResult<Option<i64>> {
    let number: i64 = value(row, index)?;
    Ok(Some(number).filter(|number| *number != i64::MIN))
}

/// Returns the cursor that describes the artifact of a row, whose column `sort_value` is the one that it is sorted by.
pub(super) fn cursor(
    row: &Row,
    sort_value: usize,
    artifact: &ArtifactRecord,
    order: Order,
) -> PostgresResult<Cursor> {
    let core = artifact.core;
    let plain = Cursor { kind: None, time: None, number: None, position: artifact.arrival, core };
    Ok(match order {
        Order::Newest(TimeBasis::LastSeen) => Cursor { time: Some(artifact.seen_at), ..plain },
        Order::Newest(TimeBasis::FirstSeen) => {
            Cursor { time: Some(artifact.added_at), position: artifact.addition, ..plain }
        }
        Order::Newest(TimeBasis::Created | TimeBasis::Finished) => {
            Cursor { time: optional_sort_value(row, sort_value)?.map(from_millis).transpose()?, ..plain }
        }
        Order::Largest(_) => Cursor { number: optional_sort_value(row, sort_value)?, ..plain },
        Order::Core => Cursor { position: 0, ..plain },
        Order::Kind => Cursor { kind: Some(artifact.kind.clone()), ..plain },
    })
}

/// Returns the expression of a time of an artifact `a`, in milliseconds since 1970.
pub(super) fn time_column(by: TimeBasis) -> &'static str {
    match by {
        TimeBasis::FirstSeen => "a.added_at",
        TimeBasis::LastSeen => "a.seen_at",
        TimeBasis::Created => "a.created_at",
        TimeBasis::Finished => {
            "(SELECT max(t.number) FROM attribute t WHERE t.artifact = a.id AND t.name = 'finished_at')"
        }
    }
}
