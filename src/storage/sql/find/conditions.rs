//! Filters as conditions of a statement.

use super::super::ceil_millis;
use super::super::dialect::{NumberedAttributes, ReadFirst, SignedCaptures};
use super::super::{Dialect, SqlSession, StatementParameters, text_key};
use super::order::{creation, number_of};
use super::{FindSnapshot, ResolvedCondition, ResolvedQuery};
use crate::artifact::{FINISHED_AT, SignatureName};
use crate::digest::{CoreHash, Digest};
use crate::storage::interface::{Condition, Filter, TimePeriod};
use crate::storage::{Result, TimeBasis};

/// The rows `x` of the artifacts that have something. The column `x.artifact` has the number of the artifact.
pub(in crate::storage) struct ConditionRows {
    /// The tables.
    pub(in crate::storage) tables: String,
    /// The condition on their rows.
    pub(in crate::storage) condition: String,
}

/// A range of numbers of an attribute, both ends included.
#[derive(Clone, Copy)]
pub(super) struct NumberRange<'n> {
    pub(super) name: &'n str,
    pub(super) low: i64,
    pub(super) high: i64,
}

impl ConditionRows {
    pub(in crate::storage) fn new(tables: impl Into<String>, condition: impl Into<String>) -> Self {
        Self { tables: tables.into(), condition: condition.into() }
    }

    /// Returns the query of the numbers of the artifacts.
    pub(in crate::storage) fn query(&self) -> String {
        format!("SELECT x.artifact FROM {} WHERE {}", self.tables, self.condition)
    }

    /// Returns the condition that the artifact `a` has a row, which is examined for each artifact.
    pub(super) fn has_artifact(&self, dialect: Dialect) -> String {
        let Self { tables, condition } = self;
        format!(
            "EXISTS (SELECT 1 FROM {tables} WHERE x.artifact = a.id AND {condition} {})",
            dialect.kept_apart()
        )
    }
}

impl<S: FindSnapshot> ResolvedQuery<'_, S> {
    /// Returns the rows of the artifacts that match a condition by themselves, or that may match one on mentions. The tables
    /// are read in the order that `first` says.
    pub(super) fn rows(
        &self,
        of: &ResolvedCondition<'_>,
        first: ReadFirst,
        parameters: &mut StatementParameters,
    ) -> Result<ConditionRows> {
        let dialect = S::Session::DIALECT;
        let mentions = |parameters: &mut StatementParameters| match &of.mention {
            Some(mention) => self.snapshot.mention_rows(mention, parameters),
            None => Ok(ConditionRows::new("capture x", "false")),
        };
        Ok(match of.condition {
            Condition::Mention { .. } => mentions(parameters)?,
            Condition::About { digest } => {
                let mentions = mentions(parameters)?.query();
                let list = parameters.bind(&[CoreHash(*digest)][..]);
                let (own, captures) = (dialect.artifacts(&list), dialect.captures_with_hashes(&list));
                let own = format!("SELECT a.id FROM {own} UNION SELECT c.artifact FROM {captures}");
                ConditionRows::new(format!("({mentions} UNION {own}) x"), "true")
            }
            Condition::Attribute { name, value } => {
                let key = parameters.bind(text_key(value));
                let (name, value) = (parameters.bind(name), parameters.bind(value));
                ConditionRows::new("attribute x", dialect.has_value(&name, &value, &key, first))
            }
            Condition::AttributeLike { name, pattern } => {
                let (name, pattern) = (parameters.bind(name), parameters.bind(dialect.pattern(pattern)));
                ConditionRows::new("attribute x", dialect.has_value_like(&name, &pattern, first))
            }
            Condition::Range { name, least, most } => {
                let (low, high) = (least.unwrap_or(i64::MIN), most.unwrap_or(i64::MAX));
                numbers_within(dialect, NumberRange { name, low, high }, first, parameters)
            }
            Condition::Signature { state, key_id } => {
                signatures(dialect, *state, key_id.as_deref(), first, parameters)
            }
            annotation => annotations(dialect, annotation, parameters),
        })
    }
}

/// Returns the attributes `x` with a name whose numbers are in a range.
pub(super) fn numbers_within(
    dialect: Dialect,
    NumberRange { name, low, high }: NumberRange<'_>,
    first: ReadFirst,
    parameters: &mut StatementParameters,
) -> ConditionRows {
    let NumberedAttributes { tables, name: its_name, number, .. } = dialect.numbers(first);
    let (name, low, high) = (parameters.bind(name), parameters.bind(low), parameters.bind(high));
    ConditionRows::new(tables, format!("{its_name} = {name} AND {number} BETWEEN {low} AND {high}"))
}

fn signatures(
    dialect: Dialect,
    state: SignatureName,
    key_id: Option<&str>,
    first: ReadFirst,
    parameters: &mut StatementParameters,
) -> ConditionRows {
    if state == SignatureName::Unsigned {
        return ConditionRows::new("capture x", dialect.is_unsigned());
    }
    let SignedCaptures { tables, state: its_state, key_id: its_key } = dialect.signatures(first);
    let of_key = key_id.map(|key_id| format!("AND {its_key} = {}", parameters.bind(key_id)));
    let state = parameters.bind(state.name());
    ConditionRows::new(tables, format!("{its_state} = {state} {}", of_key.unwrap_or_default()))
}

/// Returns the rows of the artifacts with a note, a tag, a pin or a label.
fn annotations(
    dialect: Dialect,
    condition: &Condition,
    parameters: &mut StatementParameters,
) -> ConditionRows {
    match condition {
        Condition::Note { text } => {
            let text = parameters.bind(text.to_lowercase().into_bytes());
            ConditionRows::new("note x", dialect.has_bytes("x.folded", &text))
        }
        Condition::Tagged { name: Some(name) } => {
            ConditionRows::new("tag x", format!("x.name = {}", parameters.bind(name)))
        }
        Condition::Tagged { name: None } => ConditionRows::new("tag x", "true"),
        Condition::Label { key, value } => {
            let of_value = value.as_ref().map(|value| format!("AND x.value = {}", parameters.bind(value)));
            let key = parameters.bind(key);
            ConditionRows::new("label x", format!("x.key = {key} {}", of_value.unwrap_or_default()))
        }
        Condition::LabelLike { key, pattern } => {
            let (key, pattern) = (parameters.bind(key), parameters.bind(dialect.pattern(pattern)));
            ConditionRows::new(
                "label x",
                format!("x.key = {key} AND {}", dialect.is_like("x.value", &pattern)),
            )
        }
        _ => ConditionRows::new("pin x", "true"),
    }
}

/// Returns the conditions on the kinds, the times and the hash of the artifact `a`. Those on `among` are left out.
pub(super) fn selecting(
    dialect: Dialect,
    filter: &Filter,
    parameters: &mut StatementParameters,
) -> Vec<String> {
    let mut all = vec!["true".to_owned()];
    if !filter.kinds.is_empty() {
        all.push(of_kinds(dialect, &filter.kinds, parameters));
    }
    if let Some(period) = &filter.period {
        all.push(within(dialect, period, parameters));
    }
    if let Some(digits) = &filter.digits {
        all.push(beginning_with(dialect, digits, parameters));
    }
    all
}

/// Returns the condition that the artifact `a` is of one of these kinds.
pub(super) fn of_kinds(dialect: Dialect, kinds: &[String], parameters: &mut StatementParameters) -> String {
    let is_in = dialect.is_in("k.name", &parameters.bind(kinds));
    format!("a.kind IN (SELECT k.id FROM kind k WHERE {is_in})")
}

fn within(dialect: Dialect, period: &TimePeriod, parameters: &mut StatementParameters) -> String {
    let time = time(dialect, period.basis, parameters);
    // Artifacts that do not state the time have the smallest number.
    let since = period.since.map_or(i64::MIN + 1, ceil_millis);
    let since = format!("{time} >= {}", parameters.bind(since));
    let until = period.until.map(|until| format!("{time} < {}", parameters.bind(ceil_millis(until))));
    [Some(since), until].into_iter().flatten().collect::<Vec<_>>().join(" AND ")
}

/// Returns the expression of a time of the artifact `a`, in milliseconds since 1970: the smallest number or NULL if it does
/// not state it.
pub(super) fn time(dialect: Dialect, basis: TimeBasis, parameters: &mut StatementParameters) -> String {
    match basis {
        TimeBasis::FirstSeen => "a.added_at".to_owned(),
        TimeBasis::LastSeen => "a.seen_at".to_owned(),
        TimeBasis::Created => creation(dialect),
        TimeBasis::Finished => number_of(dialect, &parameters.bind(FINISHED_AT)),
    }
}

/// Returns the condition that the core hash of the artifact `a` begins with these digits.
pub(super) fn beginning_with(dialect: Dialect, digits: &str, parameters: &mut StatementParameters) -> String {
    match (padded(digits, '0'), padded(digits, 'f')) {
        (Some(low), Some(high)) => {
            dialect.is_between("a.core", &parameters.bind(low), &parameters.bind(high))
        }
        _ => "false".to_owned(),
    }
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
