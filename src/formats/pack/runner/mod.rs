//! The rules of `runner.json`.

mod timing;

use super::member_rules::{
    PackMemberFinder, PackMemberRule, SCHEMA, boolean, filled, number, object, one_of, text, type_name,
};
use super::members::canonical_hash;
use super::patch::is_absolute;
use crate::json::Value;
use crate::json::reader::excerpt;
use crate::validation::{RuleInfo, utf16_order};

/// The objects of a runner record.
const OBJECTS: [&str; 7] = ["platform", "sandbox", "limits", "commands", "context", "timing", "exit"];

/// Variables that may contain secrets or change what is executed.
const FORBIDDEN_PREFIXES: [&str; 6] = ["SSH_", "NPM_", "GIT_", "AWS_", "OPENAI_", "ANTHROPIC_"];

/// All rules except the last.
pub(super) static RULES: [PackMemberRule; 11] = [
    PackMemberRule {
        info: RuleInfo::error(
            "RN1",
            "runner.json: runner_schema_version is 1.0.0.",
            "Records of other versions follow other rules, which this program does not support.",
        ),
        check: |runner, found| {
            if text(runner, "runner_schema_version") != Some("1.0.0") {
                let is = text(runner, "runner_schema_version")
                    .map_or_else(|| type_name(runner.get("runner_schema_version")).to_owned(), excerpt);
                found.add(format!("unknown runner_schema_version {is}; known: \"1.0.0\""));
            }
        },
    },
    PackMemberRule {
        info: RuleInfo::error(
            "RN2",
            "runner.json: runner_id is like runner_20260101_120000_ab12, runner_version is not empty.",
            "They distinguish the records of different runners, and are hashed.",
        ),
        check: ids,
    },
    PackMemberRule {
        info: RuleInfo::error(
            "RN3",
            "runner.json: the platform is known.",
            "os is linux, darwin or win32; arch is x64, arm64 or ia32; node_version begins with v; npm_version is a \
             string.",
        ),
        check: platform,
    },
    PackMemberRule {
        info: RuleInfo::error(
            "RN4",
            "runner.json: the sandbox is described consistently.",
            "backend is process, container, vm or none; isolation_level is strict, standard or none, and none only \
             without a backend; network_blocked and filesystem_readonly are booleans.",
        ),
        check: sandbox,
    },
    PackMemberRule {
        info: RuleInfo::error(
            "RN5",
            "runner.json: limits are within their bounds.",
            "timeout_ms is 1,000 to 600,000, max_output_files 1 to 10,000, max_total_output_bytes 1,024 to \
             1,073,741,824. max_memory_bytes and max_cpu_seconds may be absent, and are greater than 0 otherwise.",
        ),
        check: limits,
    },
    PackMemberRule {
        info: RuleInfo::error(
            "RN6",
            "runner.json: lists of commands are sorted and do not overlap; a shell is named.",
            "A command that is both allowed and blocked would leave it unclear what the runner did.",
        ),
        check: commands,
    },
    PackMemberRule {
        info: RuleInfo::error(
            "RN7",
            "runner.json: write roots are sorted, relative and do not escape.",
            "The runner could write below them, so none may be absolute or contain ...",
        ),
        check: write_roots,
    },
    PackMemberRule {
        info: RuleInfo::error(
            "RN8",
            "runner.json: the context is neutral.",
            "working_dir is a single dot; env_allowlist is sorted and has no variable that begins with SSH_, NPM_, GIT_, \
             AWS_, OPENAI_ or ANTHROPIC_; locale and timezone are strings.",
        ),
        check: context,
    },
    PackMemberRule {
        info: RuleInfo::error(
            "RN9",
            "runner.json: times are well-formed and consistent.",
            "Times are like 2026-01-01T12:00:00.000Z; milliseconds are optional. The end is not before the \
             start, duration_ms is their difference within one millisecond, and phases begin in order.",
        ),
        check: timing::check,
    },
    PackMemberRule {
        info: RuleInfo::error(
            "RN10",
            "runner.json: the exit is described.",
            "code is an integer from 0 to 255; signal, if present, is \
             in capitals; oom_killed and timeout_killed are booleans.",
        ),
        check: exit,
    },
    PackMemberRule { info: SCHEMA, check: shape },
];

/// Checked if neither SCHEMA nor RN1 is broken.
pub(super) static CANONICAL: [PackMemberRule; 1] = [PackMemberRule {
    info: RuleInfo::error(
        "RN12",
        "runner.json has a canonical form.",
        "A number that overflows to infinity cannot be written canonically, even where it is not hashed.",
    ),
    check: |runner, found| {
        if canonical_hash(runner).is_err() {
            found.add("a number overflows to infinity; the record has no canonical form");
        }
    },
}];

/// Applies all rules of runner records.
pub(super) fn check(runner: &Value<'_>, found: &mut PackMemberFinder<'_, '_>) {
    if found.has_shape(runner, "a runner record", &RULES) && !found.breaks("RN1") {
        found.apply(&CANONICAL, runner);
    }
}

fn shape(runner: &Value<'_>, found: &mut PackMemberFinder<'_, '_>) {
    for name in OBJECTS.into_iter().filter(|name| object(runner, name).is_none()) {
        found.schema(format!("{name} must be an object, is {}", type_name(runner.get(name))));
    }
    match runner.get("warnings") {
        None => {}
        Some(Value::Array(warnings)) if is_sorted(warnings) => {}
        Some(Value::Array(_)) => found.schema("warnings are not sorted"),
        Some(other) => found.schema(format!("warnings must be an array, is {}", other.type_name())),
    }
}

fn ids(runner: &Value<'_>, found: &mut PackMemberFinder<'_, '_>) {
    if !text(runner, "runner_id").is_some_and(is_runner_id) {
        found.add("runner_id does not have the form \"runner_20260101_120000_ab12\"");
    }
    filled(runner, "", "runner_version", found);
}

fn is_runner_id(id: &str) -> bool {
    let digits = |part: &str, count: usize| timing::digits(part, count).is_some();
    let suffix =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9'));
    match id.split('_').collect::<Vec<_>>().as_slice() {
        ["runner", date, time, end] => digits(date, 8) && digits(time, 6) && suffix(end),
        _ => false,
    }
}

fn platform(runner: &Value<'_>, found: &mut PackMemberFinder<'_, '_>) {
    let Some(platform) = object(runner, "platform") else { return };
    one_of(platform, "platform", "os", &["linux", "darwin", "win32"], found);
    one_of(platform, "platform", "arch", &["x64", "arm64", "ia32"], found);
    if !text(platform, "node_version").is_some_and(|version| version.starts_with('v')) {
        found.add("platform.node_version does not begin with \"v\"");
    }
    if text(platform, "npm_version").is_none() {
        found.add(format!(
            "platform.npm_version must be a string, is {}",
            type_name(platform.get("npm_version"))
        ));
    }
}

fn sandbox(runner: &Value<'_>, found: &mut PackMemberFinder<'_, '_>) {
    let Some(sandbox) = object(runner, "sandbox") else { return };
    one_of(sandbox, "sandbox", "backend", &["process", "container", "vm", "none"], found);
    one_of(sandbox, "sandbox", "isolation_level", &["strict", "standard", "none"], found);
    if text(sandbox, "isolation_level") == Some("none") && text(sandbox, "backend") != Some("none") {
        found.add("sandbox.isolation_level is none, but there is a backend");
    }
    boolean(sandbox, "sandbox", "network_blocked", found);
    boolean(sandbox, "sandbox", "filesystem_readonly", found);
}

fn limits(runner: &Value<'_>, found: &mut PackMemberFinder<'_, '_>) {
    let Some(limits) = object(runner, "limits") else { return };
    for (name, least, most) in [
        ("timeout_ms", 1_000.0, 600_000.0),
        ("max_output_files", 1.0, 10_000.0),
        ("max_total_output_bytes", 1_024.0, 1_073_741_824.0),
    ] {
        if !number(limits, name).is_some_and(|value| (least..=most).contains(&value)) {
            found.add(format!("limits.{name} must be a number from {least} to {most}"));
        }
    }
    for name in ["max_memory_bytes", "max_cpu_seconds"] {
        if limits.get(name).is_some() && !number(limits, name).is_some_and(|value| value > 0.0) {
            found.add(format!("limits.{name} must be a number greater than 0"));
        }
    }
}

/// Returns whether the strings among `elements` are sorted.
fn is_sorted(elements: &[Value<'_>]) -> bool {
    elements.iter().filter_map(Value::as_str).is_sorted_by(|one, next| utf16_order(one, next).is_le())
}

/// Returns the elements of a list that must be present and sorted; violations are reported.
fn sorted_list<'v>(
    object: &'v Value<'v>,
    place: &str,
    name: &str,
    found: &mut PackMemberFinder<'_, '_>,
) -> &'v [Value<'v>] {
    let Some(elements) = object.get(name).and_then(Value::as_array) else {
        found.schema(format!("{place}{name} must be an array, is {}", type_name(object.get(name))));
        return &[];
    };
    if !is_sorted(elements) {
        found.add(format!("{place}{name} is not sorted"));
    }
    elements
}

fn commands(runner: &Value<'_>, found: &mut PackMemberFinder<'_, '_>) {
    let Some(commands) = object(runner, "commands") else { return };
    let allowed = sorted_list(commands, "commands.", "allowlist", found);
    let blocked = sorted_list(commands, "commands.", "blocklist", found);
    let allowed: std::collections::HashSet<&str> = allowed.iter().filter_map(Value::as_str).collect();
    if let Some(both) = blocked.iter().filter_map(Value::as_str).find(|name| allowed.contains(name)) {
        found.add(format!("commands: {} is both allowed and blocked", excerpt(both)));
    }
    filled(commands, "commands.", "shell", found);
}

fn write_roots(runner: &Value<'_>, found: &mut PackMemberFinder<'_, '_>) {
    for (index, root) in sorted_list(runner, "", "write_roots", found).iter().enumerate() {
        let Some(path) = root.as_str() else {
            found.schema(format!("write_roots[{index}] must be a string, is {}", root.type_name()));
            continue;
        };
        if is_absolute(path) {
            found.add(format!("write_roots[{index}] {} is absolute", excerpt(path)));
        }
        if path.contains("..") {
            found.add(format!("write_roots[{index}] {} contains \"..\"", excerpt(path)));
        }
    }
}

fn context(runner: &Value<'_>, found: &mut PackMemberFinder<'_, '_>) {
    let Some(context) = object(runner, "context") else { return };
    if text(context, "working_dir") != Some(".") {
        found.add("context.working_dir is not \".\"");
    }
    for (index, name) in sorted_list(context, "context.", "env_allowlist", found).iter().enumerate() {
        let prefix = FORBIDDEN_PREFIXES
            .into_iter()
            .find(|prefix| name.as_str().is_some_and(|name| name.starts_with(prefix)));
        if let Some(prefix) = prefix {
            found.add(format!("context.env_allowlist[{index}] begins with {prefix}"));
        }
    }
    for name in ["locale", "timezone"] {
        if text(context, name).is_none() {
            found.add(format!("context.{name} must be a string, is {}", type_name(context.get(name))));
        }
    }
}

fn exit(runner: &Value<'_>, found: &mut PackMemberFinder<'_, '_>) {
    let Some(exit) = object(runner, "exit") else { return };
    let code = number(exit, "code");
    if !code.is_some_and(|code| (0.0..=255.0).contains(&code) && code.trunc().total_cmp(&code).is_eq()) {
        found.add("exit.code must be a whole number from 0 to 255");
    }
    let is_signal = |signal: &Value<'_>| signal.as_str().is_some_and(|name| name.to_uppercase() == name);
    if exit.get("signal").is_some_and(|signal| !is_signal(signal)) {
        found.add("exit.signal must be a string in capitals");
    }
    boolean(exit, "exit", "oom_killed", found);
    boolean(exit, "exit", "timeout_killed", found);
}
