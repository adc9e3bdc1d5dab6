//! The rules of `patch.json`.

use std::collections::HashSet;

use super::member_rules::{PackMemberFinder, PackMemberRule, SCHEMA, required, text, type_name, version};
use crate::artifact::SupportedMajors;
use crate::json::reader::excerpt;
use crate::json::{Number, Value, ecmascript};
use crate::validation::{RuleInfo, utf16_order};

/// Maximum total size of the content in a patch in bytes: 50 MiB.
const MAX_TOTAL_BYTES: f64 = 52_428_800.0;

/// The supported major versions of patches.
const VERSIONS: SupportedMajors = SupportedMajors::new(&["1"]);

/// Rules that are checked first. If SCHEMA is broken, no others are checked.
pub(super) static SHAPE: [PackMemberRule; 2] = [
    PackMemberRule {
        info: RuleInfo::error(
            "PS1",
            "patch.json: patch_schema_version is a non-empty string.",
            "The version says which rules a patch claims to follow. If it has a major version, that must be 1: \
             in another version, the same members may have another meaning.",
        ),
        check: |patch, found| version(patch, "patch_schema_version", VERSIONS, found),
    },
    PackMemberRule { info: SCHEMA, check: shape },
];

/// Rules for patches that satisfy the rule SCHEMA.
pub(super) static CONTENT: [PackMemberRule; 8] = [
    PackMemberRule {
        info: RuleInfo::error(
            "PS2",
            "patch.json: op is create, modify or delete.",
            "Only these three operations are defined: a tool that applies patches could not know what another one means.",
        ),
        check: |patch, found| {
            each(patch, |index, operation| {
                if !matches!(text(operation, "op"), Some("create" | "modify" | "delete")) {
                    let op = text(operation, "op")
                        .map_or_else(|| type_name(operation.get("op")).to_owned(), excerpt);
                    found.add(format!("operations[{index}].op is {op}, not create, modify or delete"));
                }
            });
        },
    },
    PackMemberRule {
        info: RuleInfo::error(
            "PS3",
            "patch.json: paths are relative.",
            "A path must begin neither with a slash nor with a drive letter and a colon.",
        ),
        check: |patch, found| {
            each(patch, |index, operation| {
                let path = path_of(operation);
                if is_absolute(path) {
                    found.add(format!("operations[{index}].path {} is absolute", excerpt(path)));
                }
            });
        },
    },
    PackMemberRule {
        info: RuleInfo::error(
            "PS4",
            "patch.json: paths are normalized and do not escape.",
            "Up to three violations for one path: it contains .. or a backslash; it has a \
             control character other than tab and line feed, or leading or trailing white space; \
             it begins with ./, contains //, ends with a slash, is a single dot or is empty.",
        ),
        check: |patch, found| each(patch, |index, operation| plain_path(index, path_of(operation), found)),
    },
    PackMemberRule {
        info: RuleInfo::error(
            "PS5",
            "patch.json: no two operations have the same path.",
            "The effect of a patch must not depend on the order in which it is applied.",
        ),
        check: |patch, found| {
            let mut seen = HashSet::new();
            each(patch, |index, operation| {
                let path = path_of(operation);
                if !seen.insert(path) {
                    found.add(format!("operations[{index}].path {} already has an operation", excerpt(path)));
                }
            });
        },
    },
    PackMemberRule {
        info: RuleInfo::error(
            "PS6",
            "patch.json: create and modify have content, delete has none; content has no NUL.",
            "Content is text. A patch with unpaired surrogates, which are not text, cannot be read at all.",
        ),
        check: |patch, found| each(patch, |index, operation| content(index, operation, found)),
    },
    PackMemberRule {
        info: RuleInfo::error(
            "PS7",
            "patch.json: total_bytes is the sum of the contents' UTF-8 bytes, at most 52,428,800.",
            "A patch whose contents have another size was truncated or edited after it was made.",
        ),
        check: total_bytes,
    },
    PackMemberRule {
        info: RuleInfo::error(
            "PS8",
            "patch.json: operations are sorted by order, then by path.",
            "Operations are applied in this order. An absent or null order counts as 0.",
        ),
        check: order,
    },
    PackMemberRule {
        info: RuleInfo::error(
            "PS9",
            "patch.json: no operation creates a symbolic link.",
            "A link can lead outside the directory that the patch is for. Reported in addition to PS2.",
        ),
        check: |patch, found| {
            each(patch, |index, operation| {
                if text(operation, "op") == Some("symlink") {
                    found.add(format!("operations[{index}] creates a symbolic link"));
                }
            });
        },
    },
];

/// Applies all rules of patches.
pub(super) fn check(patch: &Value<'_>, found: &mut PackMemberFinder<'_, '_>) {
    if found.has_shape(patch, "a patch", &SHAPE) {
        found.apply(&CONTENT, patch);
    }
}

fn shape(patch: &Value<'_>, found: &mut PackMemberFinder<'_, '_>) {
    let names =
        ["patch_schema_version", "source_proposal_id", "source_proposal_hash", "operations", "total_bytes"];
    required(patch, &names, found);
    if let Some(operations) = patch.get("operations").filter(|operations| operations.as_array().is_none()) {
        found.schema(format!("operations must be an array, is {}", operations.type_name()));
    }
    each(patch, |index, operation| {
        if operation.get("path").and_then(Value::as_str).is_none() {
            let is = type_name(operation.get("path"));
            found.schema(format!("operations[{index}].path must be a string, is {is}"));
        }
        if let Some(content) = operation.get("content").filter(|content| content.as_str().is_none()) {
            found.schema(format!("operations[{index}].content must be a string, is {}", content.type_name()));
        }
    });
}

fn operations<'v>(patch: &'v Value<'v>) -> &'v [Value<'v>] {
    patch.get("operations").and_then(Value::as_array).unwrap_or_default()
}

fn each<'v>(patch: &'v Value<'v>, mut visit: impl FnMut(usize, &'v Value<'v>)) {
    for (index, operation) in operations(patch).iter().enumerate() {
        visit(index, operation);
    }
}

fn path_of<'v>(operation: &'v Value<'v>) -> &'v str {
    text(operation, "path").unwrap_or_default()
}

/// Returns whether a path begins at a root: with a slash, or with a drive letter and a colon.
pub(super) fn is_absolute(path: &str) -> bool {
    path.starts_with('/') || matches!(path.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic())
}

fn plain_path(index: usize, path: &str, found: &mut PackMemberFinder<'_, '_>) {
    let shown = excerpt(path);
    if path.contains("..") || path.contains('\\') {
        found.add(format!("operations[{index}].path {shown} contains \"..\" or a backslash"));
    }
    let is_control = |character: char| character < ' ' && !matches!(character, '\t' | '\n');
    if path.contains(is_control) || ecmascript::trim(path) != path {
        found.add(format!(
            "operations[{index}].path {shown} has a control character, or leading or trailing white space"
        ));
    }
    let odd = path.starts_with("./") || path.contains("//") || path.ends_with('/');
    if odd || path == "." || path.is_empty() {
        found.add(format!("operations[{index}].path {shown} is not normalized"));
    }
}

fn content(index: usize, operation: &Value<'_>, found: &mut PackMemberFinder<'_, '_>) {
    let content = text(operation, "content");
    if content.is_some_and(|content| content.contains('\0')) {
        found.add(format!("operations[{index}].content has a NUL character"));
    }
    match (text(operation, "op"), content) {
        (Some("delete"), Some(_)) => found.add(format!("operations[{index}] is a delete with content")),
        (Some(op @ ("create" | "modify")), None) => {
            found.add(format!("operations[{index}] is a {op} without content"));
        }
        _ => {}
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "sizes are compared as the format's numbers; they are far below 2^53"
)]
fn total_bytes(patch: &Value<'_>, found: &mut PackMemberFinder<'_, '_>) {
    let Some(declared) = patch.get("total_bytes").and_then(Value::as_number).map(Number::as_f64) else {
        found.add(format!("total_bytes must be a number, is {}", type_name(patch.get("total_bytes"))));
        return;
    };
    if declared > MAX_TOTAL_BYTES {
        found.add(format!("total_bytes is more than {MAX_TOTAL_BYTES}"));
    }
    let sum: usize =
        operations(patch).iter().filter_map(|operation| text(operation, "content")).map(str::len).sum();
    #[expect(clippy::float_cmp, reason = "both are whole numbers, or one is wrong")]
    if declared != sum as f64 {
        found.add(format!("total_bytes is not {sum}, the size of all contents"));
    }
}

fn order(patch: &Value<'_>, found: &mut PackMemberFinder<'_, '_>) {
    let zero = Value::Number(Number::from_literal("0"));
    let operations = operations(patch);
    for (index, (one, next)) in operations.iter().zip(operations.iter().skip(1)).enumerate() {
        let of = |operation| Value::get(operation, "order").filter(|order| !order.is_null()).unwrap_or(&zero);
        let (first, second) = (of(one), of(next));
        let ties = ecmascript::is_same(Some(first), Some(second));
        let path_is_smaller = utf16_order(path_of(next), path_of(one)).is_lt();
        if ecmascript::is_greater(Some(first), Some(second)) || ties && path_is_smaller {
            let index = index + 1;
            found.add(format!("operations[{index}] must come before the preceding one"));
        }
    }
}
