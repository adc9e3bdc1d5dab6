//! The migration of run packs of version 0.9 to version 1.0, as `ReplayKit` documents it: `docs/formats.md`, "Run packs of
//! version 0.9". The result has the checksum that its own migration computes.

use std::borrow::Cow;

use super::envelope::{self, at, digest_of_members};
use super::rules::{self, RECOMPUTED};
use crate::artifact::document;
use crate::digest::Digest;
use crate::json::canonical::replaykit::{NonCanonicalValue, VolatilePolicy, strip_white_space};
use crate::json::members::{integer, object, text};
use crate::json::reader::{self, Limits};
use crate::json::{Object, Value, compact};
use crate::validation::{Findings, Report};

/// The version of the format that is migrated.
const SOURCE_VERSION: &str = "0.9";

/// The version that it is migrated to.
const TARGET_VERSION: &str = "1.0";

/// Names in environments that the program does not store, in lower case.
const SENSITIVE: [&str; 7] = ["cwd", "pwd", "home", "user", "username", "host", "hostname"];

type MemberList<'v> = Vec<(Cow<'v, str>, Value<'v>)>;

/// Returns the run pack that a document of version 0.9 becomes; `None` if it is of another version.
pub(super) fn migrate(bytes: &[u8], limits: &Limits) -> Option<Result<Vec<u8>, Report>> {
    memchr::memmem::find(bytes, b"0.9")?;
    let mut findings = Findings::default();
    let root = reader::read(bytes, limits).map_err(|error| document::report(&error, &mut findings)).ok()?;
    let version = root.get("version").and_then(Value::as_str).map(strip_white_space);
    if version != Some(SOURCE_VERSION) {
        return None;
    }
    verify(&root, &mut findings);
    let original = Digest::from_content(bytes);
    let migrated = if findings.has_errors() { None } else { migrated(&root, original, &mut findings) };
    Some(match migrated {
        Some(migrated) if !findings.has_errors() => Ok(compact::text(&migrated).into_bytes()),
        _ => Err(findings.into_report()),
    })
}

/// Checks what the migration relies on: the checksum, and where the run is.
fn verify(root: &Value<'_>, findings: &mut Findings) {
    let [shape, _, checksum, ..] = &rules::RULES;
    let (shape, checksum) = (shape.info, checksum.info);
    let run = at(root, &["payload", "run"]);
    for name in ["id", "timestamp"] {
        if run.and_then(|run| run.get(name)).and_then(Value::as_str).is_none() {
            findings.for_rule(shape).add(format!("/payload/run/{name}"), "must be a string");
        }
    }
    if run.and_then(|run| run.get("steps")).and_then(Value::as_array).is_none() {
        findings.for_rule(shape).add("/payload/run/steps", "must be an array");
    }
    if at(root, &["metadata"]).and_then(Value::as_object).is_none() {
        findings.for_rule(shape).add("/metadata", "must be an object");
    }
    let stated = root.get("checksum").and_then(Value::as_str).and_then(Digest::parse_prefixed);
    match envelope::core_digest(root) {
        Some(Ok(actual)) if stated == Some(actual) => {}
        Some(Ok(actual)) => {
            let message = format!("is not the checksum of this content, which is {actual}");
            findings.for_rule(checksum).add("/checksum", message);
        }
        Some(Err(defects)) => uncanonical(&defects, "", findings),
        None => findings.for_rule(shape).add("", "must have version, metadata and payload"),
    }
}

fn uncanonical(defects: &[NonCanonicalValue], prefix: &str, findings: &mut Findings) {
    for NonCanonicalValue { pointer, defect } in defects {
        document::report_uncanonical(&format!("{prefix}{pointer}"), defect, findings);
    }
}

fn migrated<'v>(root: &'v Value<'v>, original: Digest, findings: &mut Findings) -> Option<Value<'v>> {
    let run = at(root, &["payload", "run"])?;
    let steps = run.get("steps").and_then(Value::as_array)?;
    let mut preserved = 0;
    let mut migrated_steps = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let (step, is_preserved) = migrated_step(step, index, findings)?;
        preserved += u64::from(is_preserved);
        migrated_steps.push(step);
    }
    let recomputed = steps.len() as u64 - preserved;
    let new = object([
        ("id", run.get("id")?.clone()),
        ("timestamp", run.get("timestamp")?.clone()),
        ("environment_fingerprint", environment(run.get("env_fingerprint"))),
        ("runtime_versions", run.get("runtime").cloned().unwrap_or_else(|| object([]))),
        ("steps", Value::Array(migrated_steps)),
    ]);
    let metadata = [
        ("migration_source_version", text(SOURCE_VERSION)),
        ("migration_target_version", text(TARGET_VERSION)),
        ("migration_status", text("migrated")),
        ("migration_preserved_step_hashes", integer(preserved)),
        (RECOMPUTED, integer(recomputed)),
    ];
    let stated = root.get("metadata").and_then(Value::as_object).into_iter().flat_map(Object::iter);
    let is_replaced = |name: &str| {
        ["run_id", "created_at"].contains(&name) || metadata.iter().any(|(known, _)| *known == name)
    };
    let mut members: MemberList<'v> = vec![
        (Cow::Borrowed("run_id"), run.get("id")?.clone()),
        (Cow::Borrowed("created_at"), run.get("timestamp")?.clone()),
    ];
    let kept = stated.filter(|(name, _)| !is_replaced(name));
    members.extend(kept.map(|(name, value)| (Cow::Borrowed(name), value.clone())));
    members.extend(metadata.map(|(name, value)| (Cow::Borrowed(name), value)));
    let metadata = Value::Object(Object::from_members(members));
    let core = object([
        ("version", text(TARGET_VERSION)),
        ("metadata", metadata),
        ("payload", object([("run", new)])),
    ]);
    let checksum = match envelope::core_digest(&core)? {
        Ok(checksum) => checksum,
        Err(defects) => {
            uncanonical(&defects, "", findings);
            return None;
        }
    };
    let Value::Object(core) = core else { return None };
    let mut members = core.into_members();
    // It is not part of what the checksum covers.
    let originals = Value::Array(vec![text(original.to_string())]);
    let import = [("format", text("replaykit-0.9")), ("originals", originals), ("profile", integer(1))];
    members.push((Cow::Borrowed("checksum"), text(checksum.to_string())));
    members.push((Cow::Borrowed("import"), object(import)));
    Some(Value::Object(Object::from_members(members)))
}

/// Returns the environment without what the program does not store.
fn environment<'v>(stated: Option<&'v Value<'v>>) -> Value<'v> {
    let members = stated.and_then(Value::as_object).into_iter().flat_map(Object::iter);
    let is_kept = |name: &str| !SENSITIVE.contains(&strip_white_space(name).to_lowercase().as_str());
    let kept = members.filter(|(name, _)| is_kept(name));
    Value::Object(Object::from_members(
        kept.map(|(name, value)| (Cow::Borrowed(name), value.clone())).collect(),
    ))
}

/// Returns a step of version 1.0, and whether its hash is the one that was stated.
fn migrated_step<'v>(
    step: &'v Value<'v>,
    index: usize,
    findings: &mut Findings,
) -> Option<(Value<'v>, bool)> {
    let [shape, ..] = &rules::RULES;
    if step.as_object().is_none() {
        let message = format!("a step must be an object, not {}", step.type_name());
        findings.for_rule(shape.info).add(format!("/payload/run/steps/{index}"), message);
        return None;
    }
    let either = |name: &str, before: &str| step.get(name).or_else(|| step.get(before)).cloned();
    let new = [
        ("type", step.get("type").cloned()),
        ("input", either("input", "request")),
        ("output", either("output", "response")),
        ("metadata", Some(step.get("metadata").cloned().unwrap_or_else(|| object([])))),
        ("id", step.get("id").cloned()),
        ("timestamp", None),
    ];
    let mut members: MemberList<'v> =
        new.map(|(name, value)| (Cow::Borrowed(name), value.unwrap_or(Value::Null))).into();
    let hashed = Value::Object(Object::from_members(members.clone()));
    let names = ["type", "input", "output", "metadata"];
    let hash = match digest_of_members(&hashed, &names, VolatilePolicy::Omit)? {
        Ok(hash) => hash,
        Err(defects) => {
            uncanonical(&defects, &format!("/payload/run/steps/{index}"), findings);
            return None;
        }
    };
    let stated = either("step_hash", "hash");
    let stated =
        stated.as_ref().and_then(Value::as_str).map(strip_white_space).and_then(Digest::parse_prefixed);
    members.push((Cow::Borrowed("hash"), text(hash.to_string())));
    Some((Value::Object(Object::from_members(members)), stated == Some(hash)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::{AdmitOptions, Kind};
    use crate::formats::rpk::Rpk;

    const LEGACY: &str = r#"{"version": "0.9", "checksum":
        "sha256:bdaefd7ed43fdad56bae50202b6ea9f1bd808541f489cd06f23fadf4976c56e5",
        "metadata": {"run_id": "run-old", "created_at": "2026-02-22T19:00:00Z", "owner": "me"},
        "payload": {"run": {"id": "run-old", "timestamp": "2026-02-22T19:00:00Z",
            "env_fingerprint": {"os": "linux", "USER ": "x"}, "runtime": {"python": "3.11.9"}, "steps": [
                {"id": "step-1", "type": "model.request", "request": {"prompt": "Zw\u00f6lf?", "path": "a\\b"},
                 "metadata": {"duration_ms": 3},
                 "step_hash": "sha256:0e93e0a914f483669572762fcb775da2ab8afd511c2f2b70c25cd0d82afaadda"},
                {"id": "step-2", "type": "model.response", "response": {"content": "12\r\n"},
                 "metadata": {"model": "m"},
                 "step_hash": "sha256:0dbe62836b07e2e963bbdcba07a4c1d9203a731dfa44926de47eb37157761189"}]}}}"#;

    fn migrated(text: &str) -> Result<Vec<u8>, Report> {
        migrate(text.as_bytes(), &Limits::default()).unwrap()
    }

    /// The checksums were computed by the program that migrates run packs itself.
    #[test]
    fn the_checksum_is_that_of_the_programs_migration() {
        let changed = LEGACY
            .replace("0dbe62836b07e2e963bbdcba07a4c1d9203a731dfa44926de47eb37157761189", &"0".repeat(64))
            .replace(
                "bdaefd7ed43fdad56bae50202b6ea9f1bd808541f489cd06f23fadf4976c56e5",
                "2b4f5d3cd9ec59f1c42b8450a455433533be9b8aadccbae00be6ece44897e009",
            );
        for (text, checksum, warnings) in [
            (LEGACY, "c4f7cf663969f22b9ea01f8afa3bf257e2fc9178c228928d09f8652d6d6b0614", 0),
            (&changed, "24dcb4c9b8a4092abbf5acfc37a2f6b3bb7470a4baafb3f2cdbfb8fa2e323bbe", 1),
        ] {
            let admitted = Kind::new(&Rpk).admit(migrated(text).unwrap(), &AdmitOptions::default()).unwrap();
            assert_eq!(admitted.core().0.hex(), checksum);
            assert_eq!(admitted.report().violations().len(), warnings, "{:?}", admitted.report());
        }
    }

    #[test]
    fn what_the_migration_cannot_rely_on_is_rejected() {
        for (from, to, rule, path) in [
            ("\"me\"", "\"you\"", "RPK3", "/checksum"),
            ("\"steps\"", "\"step\"", "RPK1", "/payload/run/steps"),
            ("\"id\": \"run-old\"", "\"id\": 1", "RPK1", "/payload/run/id"),
        ] {
            let report = migrated(&LEGACY.replacen(from, to, 1)).unwrap_err();
            let found = report.violations().iter().any(|it| it.rule_id == rule && it.path == path);
            assert!(found, "{:?}", report.violations());
        }
        let current = LEGACY.replace("\"0.9\"", "\"1.0\"");
        assert!(migrate(current.as_bytes(), &Limits::default()).is_none());
    }
}
