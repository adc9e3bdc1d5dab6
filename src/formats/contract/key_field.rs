use crate::json::Value;

/// Maximum number of comparisons for one contract. Dots can be interpreted in enough ways that a malicious contract of
/// a few megabytes could occupy the reader for hours; what exceeds the limit is not checked.
const MAX_COMPARISONS: usize = 100_000_000;

/// Whether a schema has a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    Yes,
    No,
    /// The schema does not list the relevant properties.
    Unknown,
}

/// Lookup of the key fields of one contract.
pub(super) struct KeyFields {
    comparisons_left: usize,
}

impl Default for KeyFields {
    fn default() -> Self {
        Self { comparisons_left: MAX_COMPARISONS }
    }
}

impl KeyFields {
    /// Returns whether `schema` has the property `field`. At each dot, `field` may also be split into a property and a
    /// field of its schema.
    pub(super) fn look_up(&mut self, field: &str, schema: &Value<'_>) -> Presence {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            return Presence::Unknown;
        };
        let mut presence = Presence::No;
        let whole = (field.len(), "");
        for (end, _) in field.match_indices('.').chain([whole]) {
            let cost = properties.iter().len() + end;
            match self.comparisons_left.checked_sub(cost) {
                Some(left) => self.comparisons_left = left,
                None => return Presence::Unknown,
            }
            let (outer, rest) = field.split_at_checked(end).unwrap_or_default();
            let found = match (properties.get(outer), rest.strip_prefix('.')) {
                (None, _) => Presence::No,
                (Some(_), None) => Presence::Yes,
                (Some(schema), Some(inner)) => self.look_up(inner, schema),
            };
            match found {
                Presence::Yes => return Presence::Yes,
                Presence::Unknown => presence = Presence::Unknown,
                Presence::No => {}
            }
        }
        presence
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::reader::{self, Limits};

    #[test]
    fn dots_lead_inwards_in_every_way_they_can_be_read() {
        let schema =
            br#"{"properties": {"id": {}, "a.b": {"properties": {"c.d": true}}, "open": {"type": "object"},
            "spec": {"properties": {"name": {"type": "string"}, "": false}}, "x": {"properties": []}}}"#;
        let schema = reader::read(schema, &Limits::default()).unwrap();
        for (field, presence) in [
            ("id", Presence::Yes),
            ("a.b", Presence::Yes),
            ("a.b.c.d", Presence::Yes),
            ("spec.name", Presence::Yes),
            ("spec.", Presence::Yes),
            ("open.anything.at.all", Presence::Unknown),
            ("spec.name.deeper", Presence::Unknown),
            ("x.y", Presence::Unknown),
            ("id.x", Presence::Unknown),
            ("ID", Presence::No),
            ("a", Presence::No),
            ("a.b.c", Presence::No),
            ("spec.other", Presence::No),
            (".id", Presence::No),
            ("", Presence::No),
        ] {
            assert_eq!(KeyFields::default().look_up(field, &schema), presence, "{field}");
        }
        let says_nothing = reader::read(b"{\"type\": \"object\"}", &Limits::default()).unwrap();
        assert_eq!(KeyFields::default().look_up("id", &says_nothing), Presence::Unknown);
    }

    #[test]
    fn the_work_is_bounded() {
        let schema = reader::read(b"{\"properties\": {\"a\": {}}}", &Limits::default()).unwrap();
        let field = ".".repeat(1 << 20);
        assert_eq!(KeyFields::default().look_up(&field, &schema), Presence::Unknown);
    }
}
