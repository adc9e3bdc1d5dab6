//! The rules of a JSON Schema of the drafts 4 to 2020-12, made of it once and without recursion.
//!
//! [`SchemaWork`](super::schema_work::SchemaWork) computes how long a check takes, and refuses the keywords that are not
//! here, and references that lead out of the schema or in a circle.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;

use regex::{Regex, RegexBuilder};
use serde_json::{Map, Number, Value as Json};

use super::schema_work::{SchemaCheckError, referred, shortened};

/// Maximum memory of a compiled pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 256 << 10;

/// The addresses of the drafts.
const DRAFTS: [(&str, SchemaDraft); 5] = [
    ("http://json-schema.org/draft-04/schema", SchemaDraft::Four),
    ("http://json-schema.org/draft-06/schema", SchemaDraft::Six),
    ("http://json-schema.org/draft-07/schema", SchemaDraft::Seven),
    ("https://json-schema.org/draft/2019-09/schema", SchemaDraft::Of2019),
    ("https://json-schema.org/draft/2020-12/schema", SchemaDraft::Of2020),
];

/// The types of values.
const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// A draft of JSON Schema.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum SchemaDraft {
    Four,
    Six,
    Seven,
    Of2019,
    Of2020,
}

/// The number of a subschema.
pub(super) type SchemaPart = usize;

/// What a subschema demands.
pub(super) enum SchemaRule {
    Never,
    Types {
        names: BTreeSet<String>,
        permits_zero_fraction: bool,
    },
    Enum(Vec<Json>),
    Const(Json),
    All(Vec<SchemaPart>),
    Any(Vec<SchemaPart>),
    One(Vec<SchemaPart>),
    /// With the text of the subschema.
    Not(SchemaPart, String),
    If {
        condition: SchemaPart,
        then: Option<SchemaPart>,
        otherwise: Option<SchemaPart>,
    },
    Bound(NumberBound, Number),
    MultipleOf(Number),
    Count(CountedUnit, NumberBound, u64),
    /// With the pattern as it is written.
    Pattern(Regex, String),
    UniqueItems,
    Items {
        first: Vec<SchemaPart>,
        others: Option<SchemaPart>,
    },
    Contains {
        part: SchemaPart,
        least: u64,
        most: u64,
    },
    Required(Vec<String>),
    /// What objects that have a member need, by its name.
    Dependent(Vec<(String, SchemaRule)>),
    Members(MemberRules),
    Names(SchemaPart),
}

/// What a subschema demands of members.
pub(super) struct MemberRules {
    pub(super) named: BTreeMap<String, SchemaPart>,
    pub(super) patterns: Vec<(Regex, SchemaPart)>,
    /// For members that have none of the names and match none of the patterns.
    pub(super) others: Option<SchemaPart>,
}

/// A bound of a number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberBound {
    Least,
    Most,
    Above,
    Below,
}

/// What is counted of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CountedUnit {
    Characters,
    Items,
    Properties,
}

/// The rules of a schema by subschema. The first is the schema itself.
pub(super) struct SchemaRules(Vec<Vec<SchemaRule>>);

impl SchemaRules {
    /// Makes the rules of a schema.
    ///
    /// # Errors
    /// Returns `NotASchema` if a keyword has an invalid value, or the schema is of an unknown draft.
    pub(super) fn new(schema: &Json) -> Result<Self, SchemaCheckError> {
        let draft = match schema.get("$schema") {
            None => SchemaDraft::Of2020,
            Some(name) => {
                let name = name.as_str().unwrap_or_default();
                let known = DRAFTS.iter().find(|(known, _)| *known == name.trim_end_matches('#'));
                known.ok_or_else(|| invalid("$schema", "names no known draft"))?.1
            }
        };
        let mut builder =
            SchemaRulesBuilder { root: schema, draft, numbers: HashMap::new(), pending: Vec::new() };
        builder.part(schema);
        let mut rules = Vec::new();
        while let Some(schema) = builder.pending.get(rules.len()).copied() {
            rules.push(builder.rules(schema)?);
        }
        Ok(Self(rules))
    }

    pub(super) fn of(&self, part: SchemaPart) -> &[SchemaRule] {
        self.0.get(part).map_or(&[], Vec::as_slice)
    }

    /// Returns whether no value satisfies the subschema because it is `false`.
    pub(super) fn is_never(&self, part: SchemaPart) -> bool {
        matches!(self.of(part), [SchemaRule::Never])
    }
}

fn invalid(keyword: &str, reason: &str) -> SchemaCheckError {
    SchemaCheckError::NotASchema(shortened(&format!("{keyword} {reason}")))
}

struct SchemaRulesBuilder<'j> {
    root: &'j Json,
    draft: SchemaDraft,
    /// Numbers by memory address, because references lead to subschemas repeatedly.
    numbers: HashMap<*const Json, SchemaPart>,
    pending: Vec<&'j Json>,
}

type Built<T> = Result<T, SchemaCheckError>;

impl<'j> SchemaRulesBuilder<'j> {
    fn part(&mut self, schema: &'j Json) -> SchemaPart {
        let pending = &mut self.pending;
        *self.numbers.entry(std::ptr::from_ref(schema)).or_insert_with(|| {
            pending.push(schema);
            pending.len() - 1
        })
    }

    fn rules(&mut self, schema: &'j Json) -> Built<Vec<SchemaRule>> {
        let keywords = match schema {
            Json::Bool(true) => return Ok(Vec::new()),
            Json::Bool(false) => return Ok(vec![SchemaRule::Never]),
            Json::Object(keywords) => keywords,
            _ => return Err(invalid(&schema.to_string(), "is neither an object nor a boolean")),
        };
        let mut rules = Vec::new();
        for (name, value) in keywords {
            // In older drafts, a reference replaces everything beside it.
            let is_replaced =
                self.draft < SchemaDraft::Of2019 && keywords.contains_key("$ref") && name != "$ref";
            if is_replaced {
                continue;
            }
            let rule = match self.rule_of_all(keywords, name, value)? {
                None => self.rule_of_container(keywords, name, value)?,
                rule => rule,
            };
            rules.extend(rule);
        }
        Ok(rules)
    }

    /// Returns the rule of a keyword for all values.
    fn rule_of_all(
        &mut self,
        keywords: &'j Map<String, Json>,
        name: &str,
        value: &'j Json,
    ) -> Built<Option<SchemaRule>> {
        let since = |draft| self.draft >= draft;
        Ok(Some(match name {
            "$ref" => {
                let reference = value.as_str().ok_or_else(|| invalid(name, "is not a string"))?;
                SchemaRule::All(vec![self.part(referred(reference, self.root)?)])
            }
            "type" => SchemaRule::Types {
                names: types(value).ok_or_else(|| invalid(name, "is neither a type nor a list of types"))?,
                permits_zero_fraction: since(SchemaDraft::Six),
            },
            "enum" => {
                SchemaRule::Enum(value.as_array().ok_or_else(|| invalid(name, "is not a list"))?.clone())
            }
            "const" if since(SchemaDraft::Six) => SchemaRule::Const(value.clone()),
            "allOf" => SchemaRule::All(self.parts(name, value)?),
            "anyOf" => SchemaRule::Any(self.parts(name, value)?),
            "oneOf" => SchemaRule::One(self.parts(name, value)?),
            "not" => SchemaRule::Not(self.part(value), shortened(&value.to_string())),
            "if" if since(SchemaDraft::Seven) => SchemaRule::If {
                condition: self.part(value),
                then: keywords.get("then").map(|then| self.part(then)),
                otherwise: keywords.get("else").map(|otherwise| self.part(otherwise)),
            },
            _ => return Ok(None),
        }))
    }

    /// Returns the rule of a keyword for arrays or objects.
    fn rule_of_container(
        &mut self,
        keywords: &'j Map<String, Json>,
        name: &str,
        value: &'j Json,
    ) -> Built<Option<SchemaRule>> {
        let since = |draft| self.draft >= draft;
        Ok(Some(match name {
            "uniqueItems" if *value == Json::Bool(true) => SchemaRule::UniqueItems,
            "uniqueItems" if !value.is_boolean() => return Err(invalid(name, "is not a boolean")),
            "required" => SchemaRule::Required(strings(name, value)?),
            "propertyNames" if since(SchemaDraft::Six) => SchemaRule::Names(self.part(value)),
            "contains" if since(SchemaDraft::Six) => self.contains(keywords, value)?,
            // With other values, it is a part of the rule of `items`.
            "additionalItems" if !since(SchemaDraft::Of2020) && *value == Json::Bool(false) => {
                let Some(Json::Array(first)) = keywords.get("items") else { return Ok(None) };
                SchemaRule::Count(CountedUnit::Items, NumberBound::Most, first.len() as u64)
            }
            "items" | "prefixItems" => return self.items(keywords, name),
            "additionalProperties" | "patternProperties" | "properties" => {
                return self.members(keywords, name);
            }
            "dependencies" => self.dependent(name, value)?,
            "dependentRequired" | "dependentSchemas" if since(SchemaDraft::Of2019) => {
                self.dependent(name, value)?
            }
            // Subschemas that nothing refers to must be valid, too.
            "$defs" | "definitions" => {
                for schema in object(name, value)?.values() {
                    self.part(schema);
                }
                return Ok(None);
            }
            _ => return self.rule_of_scalar(keywords, name, value),
        }))
    }

    /// Returns the rule of a keyword for numbers or strings, or for a count.
    fn rule_of_scalar(
        &self,
        keywords: &Map<String, Json>,
        name: &str,
        value: &Json,
    ) -> Built<Option<SchemaRule>> {
        let since = |draft| self.draft >= draft;
        Ok(Some(match name {
            "minimum" | "maximum" => self.bound(keywords, name, value)?,
            "exclusiveMinimum" if since(SchemaDraft::Six) => {
                SchemaRule::Bound(NumberBound::Above, number(name, value)?)
            }
            "exclusiveMaximum" if since(SchemaDraft::Six) => {
                SchemaRule::Bound(NumberBound::Below, number(name, value)?)
            }
            "multipleOf" if value.as_f64().is_some_and(|factor| factor <= 0.0) => {
                return Err(invalid(name, "is not positive"));
            }
            "multipleOf" => SchemaRule::MultipleOf(number(name, value)?),
            "minLength" | "maxLength" => limit(CountedUnit::Characters, name, value)?,
            "minItems" | "maxItems" => limit(CountedUnit::Items, name, value)?,
            "minProperties" | "maxProperties" => limit(CountedUnit::Properties, name, value)?,
            "pattern" => {
                let text = value.as_str().ok_or_else(|| invalid(name, "is not a string"))?;
                SchemaRule::Pattern(pattern(text)?, text.to_owned())
            }
            _ => return Ok(None),
        }))
    }

    /// Returns the rule of `minimum` or `maximum`, which exclude the number itself in draft 4 if another keyword says so.
    fn bound(&self, keywords: &Map<String, Json>, name: &str, value: &Json) -> Built<SchemaRule> {
        let excludes = |flag: &str| {
            self.draft == SchemaDraft::Four
                && keywords.get(flag).is_some_and(|flag| *flag == Json::Bool(true))
        };
        let bound = match name {
            "minimum" if excludes("exclusiveMinimum") => NumberBound::Above,
            "minimum" => NumberBound::Least,
            _ if excludes("exclusiveMaximum") => NumberBound::Below,
            _ => NumberBound::Most,
        };
        Ok(SchemaRule::Bound(bound, number(name, value)?))
    }

    fn contains(&mut self, keywords: &'j Map<String, Json>, value: &'j Json) -> Built<SchemaRule> {
        let named = |name| keywords.get(name).filter(|_| self.draft >= SchemaDraft::Of2019);
        let least = named("minContains").map_or(Ok(1), |least| count("minContains", least))?;
        let most = named("maxContains").map_or(Ok(u64::MAX), |most| count("maxContains", most))?;
        Ok(SchemaRule::Contains { part: self.part(value), least, most })
    }

    /// Returns the rule of the keywords for items, for the first of them.
    fn items(&mut self, keywords: &'j Map<String, Json>, name: &str) -> Built<Option<SchemaRule>> {
        let items = keywords.get("items");
        let (first, others) = match (items, keywords.get("prefixItems")) {
            (_, first) if self.draft >= SchemaDraft::Of2020 => (first, items),
            (Some(Json::Array(first)), _) => (
                items.filter(|_| !first.is_empty()),
                keywords.get("additionalItems").filter(|others| **others != Json::Bool(false)),
            ),
            _ => (None, items),
        };
        if name == "prefixItems" && (items.is_some() || self.draft < SchemaDraft::Of2020) {
            return Ok(None);
        }
        let first = first.map_or(Ok(Vec::new()), |first| self.parts(name, first))?;
        Ok(Some(SchemaRule::Items { first, others: others.map(|others| self.part(others)) }))
    }

    /// Returns the rule of the keywords for members, for the first of them.
    fn members(&mut self, keywords: &'j Map<String, Json>, name: &str) -> Built<Option<SchemaRule>> {
        let [others, patterns, named] = ["additionalProperties", "patternProperties", "properties"];
        if [others, patterns, named].into_iter().find(|keyword| keywords.contains_key(*keyword)) != Some(name)
        {
            return Ok(None);
        }
        let members = |name| keywords.get(name).map_or(Ok(None), |value| object(name, value).map(Some));
        let with_pattern = |(text, schema): (&String, &'j Json)| Ok((pattern(text)?, self.part(schema)));
        let patterns = members(patterns)?.into_iter().flatten().map(with_pattern).collect::<Built<_>>()?;
        let named = members(named)?.into_iter().flatten();
        let named = named.map(|(name, schema)| (name.clone(), self.part(schema))).collect();
        let others = keywords.get(others).map(|others| self.part(others));
        Ok(Some(SchemaRule::Members(MemberRules { named, patterns, others })))
    }

    fn dependent(&mut self, name: &str, value: &'j Json) -> Built<SchemaRule> {
        let needed = |(member, needed): (&String, &'j Json)| {
            let rule = match needed {
                Json::Array(_) if name != "dependentSchemas" => SchemaRule::Required(strings(name, needed)?),
                _ if name == "dependentRequired" => {
                    return Err(invalid(name, "has another value than a list"));
                }
                schema => SchemaRule::All(vec![self.part(schema)]),
            };
            Ok((member.clone(), rule))
        };
        object(name, value)?.iter().map(needed).collect::<Built<_>>().map(SchemaRule::Dependent)
    }

    fn parts(&mut self, name: &str, value: &'j Json) -> Built<Vec<SchemaPart>> {
        let schemas = value.as_array().filter(|schemas| !schemas.is_empty());
        let schemas = schemas.ok_or_else(|| invalid(name, "is not a list of schemas"))?;
        Ok(schemas.iter().map(|schema| self.part(schema)).collect())
    }
}

fn object<'j>(name: &str, value: &'j Json) -> Built<&'j Map<String, Json>> {
    value.as_object().ok_or_else(|| invalid(name, "is not an object"))
}

fn types(value: &Json) -> Option<BTreeSet<String>> {
    let names = match value {
        Json::Array(names) if !names.is_empty() => names.as_slice(),
        name => std::slice::from_ref(name),
    };
    let known = |name: &Json| name.as_str().filter(|name| TYPES.contains(name)).map(str::to_owned);
    names.iter().map(known).collect::<Option<BTreeSet<_>>>()
}

fn number(name: &str, value: &Json) -> Built<Number> {
    value.as_number().cloned().ok_or_else(|| invalid(name, "is not a number"))
}

/// Returns the rule of a keyword that limits a count from below, if its name begins with `min`, or from above.
fn limit(counted: CountedUnit, name: &str, value: &Json) -> Built<SchemaRule> {
    let bound = if name.starts_with("min") { NumberBound::Least } else { NumberBound::Most };
    Ok(SchemaRule::Count(counted, bound, count(name, value)?))
}

fn count(name: &str, value: &Json) -> Built<u64> {
    // With a fraction of zero, it is an integer, too.
    let is_count = |number: &f64| number.fract() == 0.0 && *number >= 0.0;
    let whole = |number: f64| format!("{number:.0}").parse().unwrap_or(u64::MAX);
    let count = value.as_u64().or_else(|| value.as_f64().filter(is_count).map(whole));
    count.ok_or_else(|| invalid(name, "is not a count"))
}

fn strings(name: &str, value: &Json) -> Built<Vec<String>> {
    let texts = value.as_array().and_then(|values| {
        values.iter().map(|value| value.as_str().map(str::to_owned)).collect::<Option<_>>()
    });
    texts.ok_or_else(|| invalid(name, "is not a list of strings"))
}

/// Compiles a pattern, whose classes are those of ECMAScript.
fn pattern(text: &str) -> Built<Regex> {
    let mut builder = RegexBuilder::new(&ecmascript(text));
    let limited = builder.size_limit(MAX_PATTERN_BYTES).dfa_size_limit(MAX_PATTERN_BYTES);
    limited.build().map_err(|_| invalid(&format!("the pattern {text:?}"), "is not used"))
}

/// Returns a pattern with the classes and control characters of ECMAScript as the crate `regex` has them.
fn ecmascript(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            pattern.push(character);
            continue;
        }
        match characters.next() {
            Some('d') => pattern.push_str("[0-9]"),
            Some('D') => pattern.push_str("[^0-9]"),
            Some('w') => pattern.push_str("[A-Za-z0-9_]"),
            Some('W') => pattern.push_str("[^A-Za-z0-9_]"),
            Some('s') => pattern.push_str(r"[\s\x{FEFF}&&[^\x{85}]]"),
            Some('S') => pattern.push_str(r"[^[\s\x{FEFF}&&[^\x{85}]]]"),
            Some('c') => match characters.clone().next().filter(char::is_ascii_alphabetic) {
                Some(letter) => {
                    characters.next();
                    let _ = write!(pattern, "\\x{:02x}", u32::from(letter) % 32);
                }
                None => pattern.push_str("\\c"),
            },
            // A bell in the crate, and an error in ECMAScript.
            Some('a') => pattern.push_str("\\c"),
            other => {
                pattern.push('\\');
                pattern.extend(other);
            }
        }
    }
    pattern
}
