//! The values that the events of a sample refer to.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use crate::json::members::at;
use crate::json::reader::{Limit, Limits, excerpt};
use crate::json::{Object, Value};
use crate::recorders::reading::{Fault, LocatedValue, RecorderResult};

/// The prefixes of the strings that refer to long texts; the second is that of transcripts.
const ATTACHMENTS: [&str; 2] = ["attachment://", "tc://"];

/// How many times the limits of a file the references of all its events may add: each event of a conversation refers to
/// all messages before it.
const ALL_EVENTS: u64 = 64;

/// How many times the limits of a file its requests may have without what those before them have.
const KEPT: u64 = 2;

/// What references may still add to the values of a file: a small file can refer to the same values very often.
#[derive(Debug)]
pub(super) struct ReferenceBudget {
    /// For the event that is read.
    event: Remaining,
    /// For all events.
    all: Remaining,
    /// For what the requests of events have that those before them do not.
    kept: Remaining,
    limits: Limits,
}

/// A number of bytes, and of values.
#[derive(Clone, Copy, Debug, Default)]
struct Remaining {
    bytes: u64,
    values: u64,
}

impl Remaining {
    fn new(limits: &Limits, times: u64) -> Self {
        let values = (limits.values as u64).saturating_mul(times);
        Self { bytes: limits.bytes.saturating_mul(times), values }
    }

    /// Returns the number of bytes of the texts, names and numbers of a value, and of the values in it.
    fn from_value(value: &Value<'_>) -> Self {
        let (bytes, inside) = match value {
            Value::Null | Value::Bool(_) => (0, Self::default()),
            Value::Number(number) => (number.literal().len(), Self::default()),
            Value::String(text) => (text.len(), Self::default()),
            Value::Array(elements) => (0, Self::sum(elements.iter())),
            Value::Object(members) => {
                let names = members.iter().map(|(name, _)| name.len()).sum();
                (names, Self::sum(members.iter().map(|(_, value)| value)))
            }
        };
        Self { bytes: inside.bytes + bytes as u64, values: inside.values + 1 }
    }

    fn sum<'v>(values: impl Iterator<Item = &'v Value<'v>>) -> Self {
        values.map(Self::from_value).fold(Self::default(), |sum, one| Self {
            bytes: sum.bytes + one.bytes,
            values: sum.values + one.values,
        })
    }

    /// Takes a number of bytes and of values from what is left. Returns the limit that is exceeded.
    fn take(&mut self, size: Self) -> Result<(), Limit> {
        self.bytes = self.bytes.checked_sub(size.bytes).ok_or(Limit::Bytes)?;
        self.values = self.values.checked_sub(size.values).ok_or(Limit::Values)?;
        Ok(())
    }
}

impl ReferenceBudget {
    pub(super) fn new(limits: &Limits) -> Self {
        let [event, kept, all] = [1, KEPT, ALL_EVENTS].map(|times| Remaining::new(limits, times));
        Self { event, all, kept, limits: *limits }
    }

    /// Begins with another event.
    pub(super) fn next_event(&mut self) {
        self.event = Remaining::new(&self.limits, 1);
    }

    /// Takes a value that an event refers to from what is left.
    fn take(&mut self, value: &Value<'_>, location: &str) -> RecorderResult<()> {
        let size = Remaining::from_value(value);
        let taken = self.event.take(size);
        self.checked(taken, 1, location)?;
        let taken = self.all.take(size);
        self.checked(taken, ALL_EVENTS, location)
    }

    /// Takes what remains of the request of an event from what is left.
    pub(super) fn keep(&mut self, rest: &Value<'_>, location: &str) -> RecorderResult<()> {
        let taken = self.kept.take(Remaining::from_value(rest));
        self.checked(taken, KEPT, location)
    }

    fn checked(&self, taken: Result<(), Limit>, times: u64, location: &str) -> RecorderResult<()> {
        let Err(limit) = taken else { return Ok(()) };
        let Remaining { bytes, values } = Remaining::new(&self.limits, times);
        let message = match limit {
            Limit::Bytes => format!("its references expand to more than {bytes} bytes"),
            _ => format!("its references expand to more than {values} values"),
        };
        Err(Fault::beyond(limit, location, message))
    }
}

/// The values that the events of a sample refer to.
pub(super) struct SamplePools<'v> {
    attachments: HashMap<&'v str, &'v Value<'v>>,
    pub(super) messages: &'v [Value<'v>],
    pub(super) calls: &'v [Value<'v>],
    pub(super) budget: &'v mut ReferenceBudget,
    /// The attachments that events refer to and the sample does not have.
    pub(super) missing: BTreeSet<String>,
    location: &'v str,
}

impl<'v> SamplePools<'v> {
    pub(super) fn new(sample: &'v LocatedValue<'v>, budget: &'v mut ReferenceBudget) -> Self {
        let data = sample.value.get("events_data");
        let pool = |name| data.and_then(|data| data.get(name)).and_then(Value::as_array).unwrap_or_default();
        let attachments = [&["attachments"][..], &["transcript", "content"]];
        let attachments = attachments.into_iter().filter_map(|path| at(sample.value, path)?.as_object());
        Self {
            attachments: attachments.flat_map(Object::iter).collect(),
            messages: pool("messages"),
            calls: pool("calls"),
            budget,
            missing: BTreeSet::new(),
            location: &sample.location,
        }
    }

    /// Returns a value with the texts that it refers to.
    pub(super) fn resolved(&mut self, value: &Value<'_>) -> RecorderResult<Value<'static>> {
        Ok(match value {
            Value::String(said) => {
                let key = ATTACHMENTS.iter().find_map(|prefix| said.strip_prefix(prefix));
                let found = key.and_then(|key| self.attachments.get(key).copied());
                let found = found.filter(|found| found.as_str().is_some());
                if let Some(found) = found {
                    self.budget.take(found, self.location)?;
                } else {
                    self.missing.extend(key.map(excerpt));
                }
                found.unwrap_or(value).to_owned_value()
            }
            Value::Array(elements) => {
                Value::Array(elements.iter().map(|one| self.resolved(one)).collect::<RecorderResult<_>>()?)
            }
            Value::Object(members) => {
                let members = members
                    .iter()
                    .map(|(name, value)| Ok((Cow::Owned(name.to_owned()), self.resolved(value)?)));
                Value::Object(Object::from_members(members.collect::<RecorderResult<_>>()?))
            }
            other => other.to_owned_value(),
        })
    }

    /// Returns the elements of a pool that a list of ranges refers to.
    pub(super) fn referred(
        &mut self,
        pool: &[Value<'_>],
        ranges: &LocatedValue<'_>,
    ) -> RecorderResult<Vec<Value<'static>>> {
        let mut found = Vec::new();
        for range in ranges.elements()? {
            let mut ends = range.elements()?;
            let (Some(start), Some(end)) = (ends.next(), ends.next()) else {
                return Err(range.fault("a range has a start and an end"));
            };
            let index = |node: &LocatedValue<'_>| {
                Ok::<_, Fault>(usize::try_from(node.integer()?).unwrap_or(usize::MAX))
            };
            let Some(elements) = pool.get(index(&start)?..index(&end)?) else {
                return Err(range.fault("the range is not one of the messages that events_data has"));
            };
            for element in elements {
                self.budget.take(element, self.location)?;
                found.push(self.resolved(element)?);
            }
        }
        Ok(found)
    }
}
