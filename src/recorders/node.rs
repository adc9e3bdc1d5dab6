//! A value with its location, for strict reading.

use chrono::{DateTime, Utc};

use super::error::{Fault, RecorderResult, SHAPE};
use crate::json::{Object, Value};

/// A value with its location.
#[derive(Clone, Debug)]
pub(super) struct LocatedValue<'v> {
    pub(super) value: &'v Value<'v>,
    pub(super) location: String,
}

impl<'v> LocatedValue<'v> {
    pub(super) fn new(value: &'v Value<'v>, location: impl Into<String>) -> Self {
        Self { value, location: location.into() }
    }

    pub(super) fn fault(&self, message: impl Into<String>) -> Fault {
        let location = if self.location.is_empty() { "the document" } else { &self.location };
        Fault::new(SHAPE, location, message)
    }

    fn is_not(&self, expected: &str) -> Fault {
        self.fault(format!("must be {expected}, is {}", self.value.type_name()))
    }

    fn at(&self, name: &str) -> String {
        if self.location.is_empty() { name.to_owned() } else { format!("{}.{name}", self.location) }
    }

    /// Returns a member that may be missing or null.
    pub(super) fn member(&self, name: &str) -> Option<Self> {
        let value = self.value.get(name).filter(|value| !value.is_null())?;
        Some(Self { value, location: self.at(name) })
    }

    /// Returns a member that must be there.
    pub(super) fn required(&self, name: &str) -> RecorderResult<Self> {
        self.object()?;
        self.member(name).ok_or_else(|| self.fault(format!("the required member {name} is missing")))
    }

    pub(super) fn object(&self) -> RecorderResult<&'v Object<'v>> {
        self.value.as_object().ok_or_else(|| self.is_not("an object"))
    }

    /// Returns the members of an object that are not null.
    pub(super) fn members(&self) -> RecorderResult<impl Iterator<Item = (&'v str, Self)> + use<'v, '_>> {
        let members = self.object()?.iter().filter(|(_, value)| !value.is_null());
        Ok(members.map(|(name, value)| (name, Self { value, location: self.at(name) })))
    }

    pub(super) fn elements(&self) -> RecorderResult<impl Iterator<Item = Self> + use<'v, '_>> {
        let elements = self.value.as_array().ok_or_else(|| self.is_not("an array"))?;
        let elements = elements.iter().enumerate();
        Ok(elements.map(|(index, value)| Self { value, location: format!("{}[{index}]", self.location) }))
    }

    pub(super) fn text(&self) -> RecorderResult<&'v str> {
        self.value.as_str().ok_or_else(|| self.is_not("a string"))
    }

    /// Returns a whole number, which may be in a string.
    pub(super) fn integer(&self) -> RecorderResult<u64> {
        let literal = match self.value {
            Value::Number(number) => number.literal(),
            Value::String(text) => text,
            _ => return Err(self.is_not("a whole number")),
        };
        literal.parse().map_err(|_| self.is_not("a whole number"))
    }

    /// Returns a time in the form of RFC 3339; `None` if it has another form.
    pub(super) fn time(&self) -> Option<DateTime<Utc>> {
        DateTime::parse_from_rfc3339(self.value.as_str()?).ok().map(|time| time.to_utc())
    }

    pub(super) fn status(&self) -> RecorderResult<u16> {
        let number = self.integer()?;
        let status = u16::try_from(number).ok().filter(|status| (100..1000).contains(status));
        status.ok_or_else(|| self.fault(format!("{number} is not a status of HTTP")))
    }

    /// Returns the names of the members other than `known`.
    pub(super) fn others(&self, known: &[&str]) -> Vec<&'v str> {
        let members = self.value.as_object().into_iter().flat_map(Object::iter);
        let others = members.filter(|(name, value)| !known.contains(name) && !value.is_null());
        others.map(|(name, _)| name).collect()
    }
}
