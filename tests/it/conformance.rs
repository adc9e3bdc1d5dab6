//! The corpus: verdicts, core hashes and violations as the formats' original implementations have them.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use runvault::artifact::{AdmitOptions, Admitted, KeyRing, MemberBytes, SigningKey};
use runvault::digest::Digest;
use runvault::formats;
use runvault::intake::{self, DocumentVerdict as SourceVerdict, ExamineOptions, InputItem};
use runvault::validation::{Report, Severity};
use serde::Deserialize;
use tempfile::TempDir;

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Accept,
    Reject,
}

#[derive(Deserialize)]
struct Finding {
    rule_id: String,
    #[serde(default)]
    path: String,
    inner: Option<String>,
}

#[derive(Deserialize)]
struct Case {
    #[serde(rename = "case")]
    name: String,
    kind: String,
    verdict: Verdict,
    core_hash: Option<String>,
    #[serde(default)]
    violations: Vec<Finding>,
    class: Option<String>,
    #[serde(default)]
    also: Vec<String>,
    #[serde(default)]
    warnings: Vec<Finding>,
    #[serde(default)]
    optional_warnings: Vec<Finding>,
    signing_key: Option<String>,
    same_as: Option<String>,
    differs_from: Option<String>,
    #[serde(default)]
    members: BTreeMap<String, String>,
    #[serde(default)]
    upstream_throws: bool,
}

pub(crate) fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

fn cases() -> Vec<Case> {
    let text = std::fs::read_to_string(corpus().join("expected.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The rules that a class of the corpus stands for, by the table in `docs/formats.md`.
fn rules_of_class(kind: &str, class: &str) -> &'static [&'static str] {
    match (kind, class) {
        // Members of packs that cannot be read break the rule of the pack for that member.
        ("pack", "number" | "duplicate_key") => &["PK3", "PK9"],
        (_, "utf8") => &["DOC1"],
        (_, "parse") => &["DOC1", "DOC2"],
        (_, "line_format") => &["TR1", "DOC1"],
        (_, "duplicate_key") => &["DOC3"],
        (_, "number") => &["DOC6"],
        (_, "unicode") => &["DOC7"],
        ("trace", "schema") => &["TR2"],
        ("rpk", "schema") => &["RPK1"],
        (_, "schema") => &["SCHEMA"],
        (_, "version") => &["RPK2"],
        (_, "checksum") => &["RPK3"],
        (_, "step_hash") => &["RPK4"],
        (_, "signature") => &["RPK5"],
        (_, "timestamp") => &["RPK6"],
        (_, "index") => &["TR3"],
        (_, "record_hash") => &["TR4"],
        (_, "chain") => &["TR5"],
        (_, "state") => &["TR6"],
        (_, "step_result") => &["TR7"],
        (_, "control") => &["TR8"],
        _ => panic!("unknown class {class}"),
    }
}

fn admit(case: &Case) -> Result<Admitted, Report> {
    let mut signing_keys = KeyRing::default();
    if let Some(key) = &case.signing_key {
        signing_keys.add(None, SigningKey::new(key).unwrap()).unwrap();
    }
    let options = AdmitOptions { signing_keys, ..AdmitOptions::default() };
    let path = corpus().join(&case.name);
    if path.is_dir() {
        let (_copy, path) = pack(&case.name);
        return admit_directory(&path);
    }
    formats::named(&case.kind).unwrap().admit(std::fs::read(path).unwrap(), &options)
}

/// A directory of the corpus. Version control may have made a file of a link; then a copy has the link again.
pub(crate) fn pack(case: &str) -> (Option<TempDir>, PathBuf) {
    let stored = corpus().join(case);
    if case != "pack/symlink-member" || stored.join("meta.json").is_symlink() {
        return (None, stored);
    }
    let copy = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(&stored).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, copy.path().join(path.file_name().unwrap())).unwrap();
    }
    #[cfg(unix)]
    {
        std::fs::remove_file(copy.path().join("meta.json")).unwrap();
        std::os::unix::fs::symlink("run.json", copy.path().join("meta.json")).unwrap();
    }
    let path = copy.path().to_owned();
    (Some(copy), path)
}

pub(crate) fn admit_directory(path: &Path) -> Result<Admitted, Report> {
    let item = InputItem::Directory {
        path: path.to_owned().into(),
        kind: formats::named("pack").unwrap(),
        named: false,
    };
    match intake::examine(item, &ExamineOptions::default()).unwrap() {
        SourceVerdict::Admitted(admitted) => Ok(admitted),
        SourceVerdict::Rejected(rejection) => Err(rejection.report),
        SourceVerdict::NoArtifact => panic!("{} was passed over", path.display()),
    }
}

/// The digests of a pack's members, as the pack mentions them.
fn member_digests(admitted: &Admitted) -> BTreeMap<String, String> {
    let members = admitted.draft().mentions.iter().filter(|mention| mention.role.name == "member");
    members.map(|mention| (mention.place.to_string(), mention.digest.to_string())).collect()
}

fn found(report: &Report, severity: Severity) -> Vec<(String, String)> {
    let of_severity = report.violations().iter().filter(|violation| violation.severity == severity);
    of_severity.map(|violation| (violation.rule_id.to_string(), violation.path.clone())).collect()
}

fn check_rejected(case: &Case, report: &Report) {
    let errors = found(report, Severity::Error);
    assert!(!errors.is_empty(), "{}", case.name);
    let expected: Vec<_> = case.violations.iter().map(|v| (v.rule_id.clone(), v.path.clone())).collect();
    if expected == [("PARSE".to_owned(), String::new())] {
        assert!(errors.iter().all(|(rule, _)| rule.starts_with("DOC")), "{}: {errors:?}", case.name);
    } else if !expected.is_empty() {
        assert_eq!(errors, expected, "{}: {report:?}", case.name);
        for (violation, expected) in report.violations().iter().zip(&case.violations) {
            let inner = expected.inner.as_ref().map_or(String::new(), |inner| format!("{inner}: "));
            assert!(violation.message.starts_with(&inner), "{}: {violation:?}", case.name);
        }
    } else {
        // The class names one broken rule; nothing may be reported beyond it and those listed in `also`. A document
        // of the wrong shape breaks others as well, such as the hashes of what is missing.
        let classes = case.class.iter().chain(&case.also);
        let allowed: Vec<&str> =
            classes.flat_map(|class| rules_of_class(&case.kind, class)).copied().collect();
        let named = rules_of_class(&case.kind, case.class.as_deref().unwrap());
        assert!(errors.iter().any(|(rule, _)| named.contains(&rule.as_str())), "{}: {report:?}", case.name);
        let wrong_shape = case.class.as_deref() == Some("schema");
        let expected = |rule: &str| wrong_shape || allowed.contains(&rule);
        assert!(errors.iter().all(|(rule, _)| expected(rule)), "{}: {report:?}", case.name);
    }
    if case.upstream_throws {
        assert_eq!(errors, [("SCHEMA".to_owned(), "$.interactions[0]".to_owned())], "{}", case.name);
    }
}

#[test]
fn verdicts_hashes_and_violations() {
    let mut cores: HashMap<String, String> = HashMap::new();
    let cases: Vec<Case> = cases().into_iter().filter(|case| formats::named(&case.kind).is_some()).collect();
    assert!(cases.len() > 250, "the corpus is not there");
    assert_eq!(cases.iter().filter(|case| case.kind == "pack").count(), 41);
    for case in &cases {
        match (&case.verdict, admit(case)) {
            (Verdict::Accept, Ok(admitted)) => {
                assert_eq!(Some(admitted.core().to_string()), case.core_hash, "{}", case.name);
                let warnings = found(admitted.report(), Severity::Warning);
                for expected in &case.warnings {
                    let expected = (expected.rule_id.clone(), expected.path.clone());
                    assert!(warnings.contains(&expected), "{}: {warnings:?}", case.name);
                }
                // Warnings that are ours and that the corpus does not know. MI1: the original verifier accepts every major
                // version.
                let ours = ["TR9", "PK13", "IC2", "IC6", "IC7", "IC8", "MI1"];
                let optional = |(rule, path): &&(String, String)| {
                    let is_expected = |it: &Finding| it.rule_id == *rule && it.path == *path;
                    ours.contains(&rule.as_str()) || case.optional_warnings.iter().any(is_expected)
                };
                let others = warnings.len() - warnings.iter().filter(optional).count();
                assert_eq!(others, case.warnings.len(), "{}: {warnings:?}", case.name);
                let mut core = Vec::new();
                let members = admitted.members().iter();
                let members: Vec<MemberBytes<'_>> = members
                    .map(|member| MemberBytes { name: member.name(), bytes: member.bytes() })
                    .collect();
                admitted.kind().write_core(&members, &mut core).unwrap();
                assert_eq!(Digest::from_content(&core), admitted.core().0, "{}", case.name);
                assert_eq!(member_digests(&admitted), case.members, "{}", case.name);
                cores.insert(case.name.clone(), admitted.core().to_string());
            }
            (Verdict::Reject, Err(report)) => check_rejected(case, &report),
            (Verdict::Accept, Err(report)) => panic!("{} was refused: {report:?}", case.name),
            (Verdict::Reject, Ok(_)) => panic!("{} was accepted", case.name),
        }
    }
    for case in &cases {
        if let Some(other) = &case.same_as {
            assert_eq!(cores.get(&case.name), cores.get(other), "{} and {other}", case.name);
        }
        if let Some(other) = &case.differs_from {
            assert_ne!(cores.get(&case.name), cores.get(other), "{} and {other}", case.name);
        }
    }
}
