//! The runner of a pack: the platform, the programs and how the run ended.

use crate::artifact::{AttributeInfo, Draft};
use crate::json::Value;

pub(super) const ARCH: AttributeInfo =
    AttributeInfo::text("arch", "the processor architecture of the runner");
pub(super) const EXIT_CODE: AttributeInfo = AttributeInfo::count("exit_code", "the exit code of the runner");

/// Adds the attributes of a valid `runner.json`.
pub(super) fn describe(runner: &Value<'_>, draft: &mut Draft) {
    let platform = |name: &str| runner.get("platform")?.get(name).and_then(Value::as_non_empty_str);
    for (info, name) in [(AttributeInfo::OS, "os"), (ARCH, "arch")] {
        if let Some(text) = platform(name) {
            draft.attribute(info.name, text);
        }
    }
    for (program, name) in [("node", "node_version"), ("npm", "npm_version")] {
        if let Some(version) = platform(name) {
            draft.attribute(AttributeInfo::RUNTIME.name, format!("{program} {version}"));
        }
    }
    let exit = |name: &str| runner.get("exit")?.get(name);
    let code = exit("code").and_then(crate::artifact::attribute::parse_count);
    draft.number(EXIT_CODE, code);
    let was_killed = exit("signal").is_some()
        || ["oom_killed", "timeout_killed"].into_iter().any(|name| exit(name) == Some(&Value::Bool(true)));
    draft.count(AttributeInfo::ERRORS, usize::from(was_killed || code.is_some_and(|code| code != 0)));
}
