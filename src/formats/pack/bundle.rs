//! The rules of `bundle.json`.

use super::member_rules::{PackMemberFinder, PackMemberRule, SCHEMA, required, type_name, version};
use super::members;
use crate::artifact::SupportedMajors;
use crate::json::reader::excerpt;
use crate::json::{Value, ecmascript};
use crate::validation::RuleInfo;

/// The supported major versions of bundles.
const VERSIONS: SupportedMajors = SupportedMajors::new(&["0"]);

/// Rules that are checked first. If SCHEMA is broken, no others are checked.
pub(super) static SHAPE: [PackMemberRule; 2] = [
    PackMemberRule {
        info: RuleInfo::error(
            "BS1",
            "bundle.json: schema_version is a non-empty string.",
            "The version says which rules a bundle claims to follow. If it has a major version, that must be 0: \
             in another version, the same members may have another meaning.",
        ),
        check: |bundle, found| version(bundle, "schema_version", VERSIONS, found),
    },
    PackMemberRule { info: SCHEMA, check: shape },
];

/// Rules for bundles that satisfy the rule SCHEMA.
pub(super) static CONTENT: [PackMemberRule; 6] = [
    PackMemberRule {
        info: RuleInfo::error(
            "BS3",
            "bundle.json: outputs are sorted by path.",
            "The hash covers the order, so the same outputs must always be listed in the same \
             order. Strings are compared by UTF-16 code units; equal neighbors are allowed.",
        ),
        check: |bundle, found| sorted(bundle, "outputs", "path", found),
    },
    PackMemberRule {
        info: RuleInfo::error(
            "BS4",
            "bundle.json: lists of constraints are sorted.",
            "This applies to root_node.constraints, to constraints of every \
             terminal node and to source_constraints of every output.",
        ),
        check: constraints,
    },
    PackMemberRule {
        info: RuleInfo::error(
            "BS5",
            "bundle.json: unresolved questions are sorted by priority, highest first, then by id.",
            "This applies to the bundle's own list and to that of every terminal node.",
        ),
        check: questions,
    },
    PackMemberRule {
        info: RuleInfo::error(
            "BS6",
            "bundle.json: terminal nodes are sorted by id.",
            "The hash covers the order, so the same nodes must always be listed in the same order.",
        ),
        check: |bundle, found| sorted(bundle, "terminal_nodes", "id", found),
    },
    PackMemberRule {
        info: RuleInfo::error(
            "BS7",
            "bundle.json: output paths are relative and do not escape.",
            "A path must not begin with a slash and must contain neither .. nor \
             a backslash: programs that write the outputs to disk rely on it.",
        ),
        check: paths,
    },
    PackMemberRule {
        info: RuleInfo::error(
            "BS8",
            "bundle.json has a canonical form.",
            "A number that overflows to infinity cannot be written canonically, so the bundle would have no hash.",
        ),
        check: |bundle, found| {
            if members::canonical_hash(bundle).is_err() {
                found.add("a number overflows to infinity; the bundle has no canonical form");
            }
        },
    },
];

/// Applies all rules of bundles.
pub(super) fn check(bundle: &Value<'_>, found: &mut PackMemberFinder<'_, '_>) {
    if found.has_shape(bundle, "a bundle", &SHAPE) {
        found.apply(&CONTENT, bundle);
    }
}

fn shape(bundle: &Value<'_>, found: &mut PackMemberFinder<'_, '_>) {
    let names = [
        "id",
        "schema_version",
        "kernel_version",
        "status",
        "root_node",
        "terminal_nodes",
        "outputs",
        "unresolved_questions",
        "stats",
    ];
    required(bundle, &names, found);
    for name in ["outputs", "terminal_nodes"] {
        for (index, _) in list(bundle, name).iter().enumerate().filter(|(_, element)| element.is_null()) {
            found.schema(format!("{name}[{index}] must be an object, is null"));
        }
    }
    for (index, output) in list(bundle, "outputs").iter().enumerate().filter(|(_, output)| !output.is_null())
    {
        if output.get("path").and_then(Value::as_str).is_none() {
            let is = type_name(output.get("path"));
            found.schema(format!("outputs[{index}].path must be a string, is {is}"));
        }
    }
    for (place, questions) in question_lists(bundle) {
        // A single-element list is never compared with anything.
        if questions.len() > 1 && questions.iter().any(Value::is_null) {
            found.schema(format!("{place} must contain only objects, but contains null"));
        }
    }
}

/// Returns the elements of the member `name`; none if it is not an array.
fn list<'v>(value: &'v Value<'v>, name: &str) -> &'v [Value<'v>] {
    value.get(name).and_then(Value::as_array).unwrap_or_default()
}

fn is_ascending<'v>(elements: &'v [Value<'v>], key: impl Fn(&'v Value<'v>) -> Option<&'v Value<'v>>) -> bool {
    elements.is_sorted_by(|one, next| !ecmascript::is_greater(key(one), key(next)))
}

fn sorted(bundle: &Value<'_>, list_name: &str, key: &str, found: &mut PackMemberFinder<'_, '_>) {
    if !is_ascending(list(bundle, list_name), |element| element.get(key)) {
        found.add(format!("{list_name} are not sorted by {key}"));
    }
}

fn constraints(bundle: &Value<'_>, found: &mut PackMemberFinder<'_, '_>) {
    let mut check = |place: String, constraints: &Value<'_>| {
        if !is_ascending(constraints.as_array().unwrap_or_default(), Some) {
            found.add(format!("{place} are not sorted"));
        }
    };
    if let Some(constraints) = bundle.get("root_node").and_then(|node| node.get("constraints")) {
        check("root_node.constraints".to_owned(), constraints);
    }
    for (list_name, name) in [("terminal_nodes", "constraints"), ("outputs", "source_constraints")] {
        for (index, element) in list(bundle, list_name).iter().enumerate() {
            if let Some(constraints) = element.get(name) {
                check(format!("{list_name}[{index}].{name}"), constraints);
            }
        }
    }
}

/// Returns the lists of unresolved questions, with their locations.
fn question_lists<'v>(bundle: &'v Value<'v>) -> Vec<(String, &'v [Value<'v>])> {
    let of_bundle = ("unresolved_questions".to_owned(), list(bundle, "unresolved_questions"));
    let of_nodes = list(bundle, "terminal_nodes").iter().enumerate().map(|(index, node)| {
        (format!("terminal_nodes[{index}].unresolved_questions"), list(node, "unresolved_questions"))
    });
    std::iter::once(of_bundle).chain(of_nodes).filter(|(_, questions)| !questions.is_empty()).collect()
}

fn questions(bundle: &Value<'_>, found: &mut PackMemberFinder<'_, '_>) {
    for (place, questions) in question_lists(bundle) {
        let in_order = questions.is_sorted_by(|one, next| {
            let (priority, next_priority) = (one.get("priority"), next.get("priority"));
            let ties = ecmascript::is_same(priority, next_priority);
            let is_wrong = ecmascript::is_greater(next_priority, priority)
                || ties && ecmascript::is_greater(one.get("id"), next.get("id"));
            !is_wrong
        });
        if !in_order {
            found.add(format!("{place} are not sorted by priority, highest first, then by id"));
        }
    }
}

fn paths(bundle: &Value<'_>, found: &mut PackMemberFinder<'_, '_>) {
    for (index, output) in list(bundle, "outputs").iter().enumerate() {
        let path = output.get("path").and_then(Value::as_str).unwrap_or_default();
        if path.starts_with('/') || path.contains("..") || path.contains('\\') {
            let path = excerpt(path);
            found.add(format!(
                "outputs[{index}].path {path} begins with a slash, or contains \"..\" or a backslash"
            ));
        }
    }
}
