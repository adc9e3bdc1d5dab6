//! JSON and YAML of the same contract have the same core hash.

use std::fmt::Write;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

/// Strings that are difficult for a YAML reader.
fn text() -> impl Strategy<Value = String> {
    let tempting = vec![
        "",
        " ",
        "~",
        "null",
        "true",
        "yes",
        "0x1F",
        "0o7",
        "1_000",
        "-1",
        "1.5",
        ".inf",
        ".5",
        "<<",
        "=",
        "- a",
        "a: b",
        "a #b",
        "#",
        "&a",
        "*a",
        "!x",
        "|",
        ">",
        "%",
        "@",
        "`",
        "a\nb\n",
        "\n\na",
        "a\n\n",
        " a\nb",
        "a\n  b\n\nc",
        "a \n b",
        "\t",
        "---",
        "...",
        "\u{feff}",
        "\u{85}\u{2028}",
        "\u{7f}\u{0}\u{1b}",
        "😀é",
        "it's \"so\"",
        "\\n",
        "a\r\nb",
        "{a: [b]}",
    ];
    prop_oneof![
        prop::sample::select(tempting).prop_map(str::to_owned),
        "[a-z]{1,8}",
        any::<String>(),
        "[ -~\n]{0,30}"
    ]
}

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        (-9_007_199_254_740_991_i64..=9_007_199_254_740_991).prop_map(Value::from),
        (-20_i64..20).prop_map(Value::from),
        prop::num::f64::NORMAL.prop_map(Value::from),
        prop::sample::select(vec![0.5, -0.0, 1e21, 1e-7, 5e-324, 9_007_199_254_740_994.0])
            .prop_map(Value::from),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number(),
        text().prop_map(Value::from)
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((text(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn contracts() -> impl Strategy<Value = Value> {
    let io_ref = (text(), 0_usize..4, value(), any::<bool>(), 0_usize..3);
    let effect = (text(), any::<prop::sample::Index>(), text(), 0_usize..2);
    let parts = (prop::collection::vec(io_ref, 0..4), prop::collection::vec(effect, 0..3), value());
    parts.prop_map(|(refs, effects, other)| {
        let names: Vec<String> = refs.iter().enumerate().map(|(index, io_ref)| format!("{}{index}", io_ref.0)).collect();
        let io_refs = refs.into_iter().zip(&names).map(|((_, kind, schema, required, _), name)| {
            let kind = ["artifact", "resource", "service", "environment"][kind];
            let schema = match schema {
                Value::String(path) if !path.is_empty() => json!(path),
                other => json!({"x-data": other}),
            };
            json!({"ref": name, "kind": kind, "schema": schema, "required": required, "mode": "read"})
        });
        let io_refs: Vec<Value> = io_refs.collect();
        let effects = effects.into_iter().filter(|_| !names.is_empty());
        let effects: Vec<Value> = effects.map(|(name, target, path, sort)| {
            let sort = ["reentrant", "non-idempotent"][sort];
            let target = target.get(&names);
            json!({"name": format!("{name}."), "kind": "resource", "target": target, "idempotency": {"type": sort},
                "evidence": {"type": "hash", "path": path}})
        })
        .collect();
        json!({"io_refs": io_refs, "effects": effects, "other": other})
    })
}

/// A YAML writer; `choices` determines the style.
struct Emitter<'c> {
    out: String,
    choices: std::iter::Cycle<std::slice::Iter<'c, u8>>,
}

impl Emitter<'_> {
    fn choose(&mut self, below: u8) -> u8 {
        self.choices.next().unwrap() % below
    }

    fn indent(&mut self, columns: usize) {
        self.out.push('\n');
        if self.choose(8) == 0 {
            self.out.push_str("  # a comment\n\n");
        }
        self.out.push_str(&" ".repeat(columns));
    }

    /// Writes a value that begins on the current line, in a block indented by `columns`.
    fn node(&mut self, value: &Value, columns: usize) {
        match value {
            Value::Array(elements) if !elements.is_empty() && self.choose(4) > 0 => {
                for element in elements {
                    self.indent(columns + 2);
                    self.out.push('-');
                    self.node(element, columns + 2);
                }
            }
            Value::Object(members) if !members.is_empty() && self.choose(4) > 0 => {
                self.block(members, columns + 2);
            }
            Value::String(text) if self.choose(2) == 0 && fits_block_scalar(text) => {
                self.literal(text, columns + 2);
            }
            other => {
                self.out.push(' ');
                self.flow(other);
            }
        }
    }

    fn block(&mut self, members: &Map<String, Value>, columns: usize) {
        for (key, member) in members {
            self.indent(columns);
            // Only short keys can omit the question mark; with one at the root, a contract is not recognized.
            let explicit = columns > 0 && (key.len() > 100 || self.choose(8) == 0);
            if explicit {
                self.out.push_str("? ");
            }
            self.string(key);
            if explicit {
                self.indent(columns);
            }
            let colon = if self.choose(4) == 0 && !explicit { " :" } else { ":" };
            self.out.push_str(colon);
            self.node(member, columns);
        }
    }

    fn literal(&mut self, text: &str, columns: usize) {
        let content = text.trim_end_matches('\n');
        let chomping = match text.len() - content.len() {
            0 => "-",
            1 => "",
            _ => "+",
        };
        let _ = write!(self.out, " |2{chomping}");
        for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
            self.out.push('\n');
            if !line.is_empty() {
                self.out.push_str(&" ".repeat(columns));
                self.out.push_str(line);
            }
        }
    }

    fn flow(&mut self, value: &Value) {
        match value {
            Value::Null => {
                let spelling = ["null", "~", "NULL"][usize::from(self.choose(3))];
                self.out.push_str(spelling);
            }
            Value::Bool(truth) => {
                let spelling = if *truth { ["true", "True", "TRUE"] } else { ["false", "False", "FALSE"] };
                let spelling = spelling[usize::from(self.choose(3))];
                self.out.push_str(spelling);
            }
            Value::Number(number) => self.number(number),
            Value::String(text) => self.string(text),
            Value::Array(elements) => {
                self.out.push('[');
                for element in elements {
                    self.flow(element);
                    self.out.push_str(", ");
                }
                self.out.push(']');
            }
            Value::Object(members) => {
                self.out.push('{');
                for (key, member) in members {
                    self.string(key);
                    self.out.push_str(" : ");
                    self.flow(member);
                    self.out.push_str(", ");
                }
                self.out.push('}');
            }
        }
    }

    fn number(&mut self, number: &serde_json::Number) {
        let spelling = match (number.as_u64(), self.choose(5)) {
            (Some(integer), 0) => format!("0x{integer:X}"),
            (Some(integer), 1) => format!("0o{integer:o}"),
            (Some(integer), 2) => format!("+0{integer}"),
            (Some(integer), 3) => format!("!!int '{integer}'"),
            (None, 0) => format!("!!float {number}"),
            _ => number.to_string(),
        };
        self.out.push_str(&spelling);
    }

    fn string(&mut self, text: &str) {
        let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase());
        let plain = plain && !matches!(text, "null" | "true" | "false");
        let single = text.chars().all(|character| character >= ' ');
        match self.choose(3) {
            0 if plain => self.out.push_str(text),
            1 if single => {
                let _ = write!(self.out, "'{}'", text.replace('\'', "''"));
            }
            _ => {
                let _ = write!(self.out, "{}", Value::from(text));
            }
        }
    }
}

/// Literal scalars have no escapes, and a text of only line feeds has no content that marks its end.
fn fits_block_scalar(text: &str) -> bool {
    let printable = |character: char| {
        matches!(character, '\n' | '\t' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..)
            && character != '\u{feff}'
    };
    text.chars().all(printable) && !text.trim_matches('\n').is_empty()
}

proptest! {
    #[test]
    fn both_notations_have_the_same_hash(
        contract in contracts(),
        choices in prop::collection::vec(any::<u8>(), 1..64),
    ) {
        let json = contract.to_string();
        let mut emitter = Emitter { out: "---".to_owned(), choices: choices.iter().cycle() };
        emitter.block(contract.as_object().unwrap(), 0);
        let yaml = emitter.out + "\n";
        let one = admit(json.clone()).map_err(|report| TestCaseError::fail(format!("{report:?} in {json}")))?;
        let other = admit(yaml.clone()).map_err(|report| TestCaseError::fail(format!("{report:?} in {yaml}")))?;
        prop_assert_eq!(one.core(), other.core(), "{}\n{}", json, yaml);
        prop_assert_eq!(&one.draft().mentions, &other.draft().mentions);
        prop_assert!(Contract.recognizes(&yaml, &mut MemberNames::new("")).is_some(), "{}", yaml);
        prop_assert!(Contract.recognizes(&json, &mut MemberNames::new(&json)).is_some(), "{}", json);
        // Line endings do not matter, except that they are not part of the text in literal scalars.
        let windows = yaml.replace('\n', "\r\n");
        prop_assert_eq!(admit(windows).unwrap().core(), one.core());
    }
}
