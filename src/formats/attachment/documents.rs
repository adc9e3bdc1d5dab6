//! Documents that are identified by the hash of a canonical form: `docs/formats.md`, "Documents with hashes of their own".
//!
//! Artifacts refer to them by that hash, which is not that of their bytes unless they are written in this form. So the
//! form is stored as an attachment of its own, whose SHA-256 is the hash. A type is a row of [`TYPES`].

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::artifact::{Recognition, document};
use crate::digest::Digest;
use crate::formats::runner::RUNNER_CORE;
use crate::json::canonical::replaykit::strip_white_space;
use crate::json::canonical::{c14n_v1, rfc8785};
use crate::json::reader::{self, Limits, MemberNames};
use crate::json::{Object, Value};
use crate::validation::{Findings, Remedy, Report, RuleInfo, Violation};
use crate::yaml::{self, YamlSchema};

/// A type of documents.
struct DocumentType {
    /// The noun for one of them.
    noun: &'static str,
    /// The members of the root by which it is recognized: all of them.
    names: &'static [&'static str],
    /// How certain it is then.
    recognition: Recognition,
    /// The member with the version of the format, and the only known version.
    version: Option<(&'static str, &'static str)>,
    /// What hashes of it are computed from. The first is that of the document.
    forms: &'static [HashedForm],
    /// The pointers of hashes of other documents that are written without a prefix.
    references: &'static [&'static str],
    /// The pointers of hashes of the names of the files of packs, which are not those of their contents.
    file_names: &'static [&'static str],
    /// The member with the id of the run whose files it lists.
    run: Option<&'static str>,
}

/// What a hash is computed from.
struct HashedForm {
    /// The pointer of the value. The document need not have it, except for its first form.
    at: &'static str,
    members: HashedMembers,
    profile: FormProfile,
    /// The pointers at which the document states the hash, if it does.
    stated: &'static [&'static str],
}

/// The members of an object that are hashed.
#[derive(Clone, Copy)]
enum HashedMembers {
    All,
    /// These, of which those that the second list names can be missing.
    Only(&'static [&'static str], &'static [&'static str]),
}

/// How a value is written.
#[derive(Clone, Copy)]
enum FormProfile {
    /// RFC 8785 and a line feed: `canonicalHash` of context-engine-kernel.
    Kernel,
    /// json-c14n-v1: `hash_json` of deterministic-multi-step-engine.
    Engine,
    /// json-c14n-v1, with strings without white space around them and with line feeds only: `normalize_body` of
    /// `TraceMind`.
    TraceMind,
}

const fn whole(profile: FormProfile) -> HashedForm {
    HashedForm { at: "", members: HashedMembers::All, profile, stated: &[] }
}

const KERNEL: DocumentType = DocumentType {
    noun: "",
    names: &[],
    recognition: Recognition::Surely,
    version: None,
    forms: &[whole(FormProfile::Kernel)],
    references: &[],
    file_names: &[],
    run: None,
};

/// A file of a pack that is given by itself. In a directory without the others, it is what remains of a pack.
const PACK_FILE: DocumentType = DocumentType { recognition: Recognition::Perhaps, ..KERNEL };

const ENGINE: DocumentType = DocumentType { forms: &[whole(FormProfile::Engine)], ..KERNEL };

/// The member with the version of a list of files, and the version.
const RUN_FILES: (&str, &str) = ("run_files_schema_version", "1.0.0");

/// The types, those with more members first.
static TYPES: &[DocumentType] = &[
    DocumentType {
        noun: "repository state",
        names: &["repo_state_schema_version"],
        version: Some(("repo_state_schema_version", "1.0.0")),
        forms: &[HashedForm {
            members: HashedMembers::Only(
                &[
                    "repo_state_schema_version",
                    "repo_commit",
                    "repo_dirty",
                    "dirty_paths",
                    "node_version",
                    "npm_version",
                    "os_platform",
                    "os_arch",
                    "package_lock_sha256",
                    "contracts",
                ],
                &[],
            ),
            ..whole(FormProfile::Kernel)
        }],
        ..KERNEL
    },
    DocumentType {
        noun: "workspace snapshot",
        names: &["workspace_schema_version"],
        version: Some(("workspace_schema_version", "1.0.0")),
        forms: &[HashedForm {
            members: HashedMembers::Only(
                &["workspace_schema_version", "tool_id", "args", "refs", "env", "safety", "warnings"],
                &["warnings"],
            ),
            ..whole(FormProfile::Kernel)
        }],
        file_names: &["/refs/pack/pack_hash"],
        ..KERNEL
    },
    DocumentType {
        noun: "git apply result",
        names: &["git_apply_schema_version", "changed_files"],
        version: Some(("git_apply_schema_version", "1.0.0")),
        references: &["/apply_result_hash", "/pack_source/bundle_hash"],
        ..KERNEL
    },
    DocumentType {
        noun: "apply result",
        names: &["apply_schema_version", "operation_results"],
        version: Some(("apply_schema_version", "1.0.0")),
        references: &["/patch_source/proposal_hash"],
        ..KERNEL
    },
    DocumentType {
        noun: "policy",
        names: &["name", "allow_network", "timeout_ms", "max_output_files", "allowed_commands"],
        ..KERNEL
    },
    DocumentType {
        noun: "execution evidence",
        names: &["proposal_id", "proposal_hash", "action_results", "test_results", "status"],
        references: &["/proposal_hash"],
        ..PACK_FILE
    },
    DocumentType {
        noun: "bundle",
        names: &["schema_version", "kernel_version", "root_node", "terminal_nodes"],
        ..PACK_FILE
    },
    DocumentType {
        noun: "patch set",
        names: &["patch_schema_version", "source_proposal_hash", "operations"],
        references: &["/source_proposal_hash"],
        ..PACK_FILE
    },
    DocumentType {
        noun: "run record",
        names: &["run_schema_version", "kernel_result_kind"],
        references: &["/intent/sha256", "/bundle/sha256"],
        ..PACK_FILE
    },
    DocumentType {
        noun: "runner record",
        names: &["runner_schema_version"],
        version: Some(("runner_schema_version", "1.0.0")),
        forms: &[HashedForm {
            members: HashedMembers::Only(&RUNNER_CORE, &["warnings"]),
            ..whole(FormProfile::Kernel)
        }],
        ..PACK_FILE
    },
    DocumentType {
        noun: "list of files",
        names: &[RUN_FILES.0, "run_id", "files"],
        version: Some(RUN_FILES),
        run: Some("run_id"),
        ..KERNEL
    },
    DocumentType {
        noun: "step result",
        names: &["step", "status", "input_hash", "output_hash", "started_at", "finished_at"],
        forms: &[
            whole(FormProfile::Engine),
            HashedForm { at: "/output", stated: &["/output_hash"], ..whole(FormProfile::Engine) },
        ],
        references: &["/input_hash"],
        ..ENGINE
    },
    DocumentType {
        noun: "reasoning state",
        names: &["problem", "step_index", "status"],
        forms: &[whole(FormProfile::Engine), HashedForm { at: "/problem", ..whole(FormProfile::Engine) }],
        ..ENGINE
    },
    DocumentType {
        noun: "problem specification",
        names: &["version", "id", "created_at", "inputs"],
        // Other documents can have these members, too.
        recognition: Recognition::Perhaps,
        ..ENGINE
    },
    DocumentType {
        noun: "TraceMind artifact",
        names: &["envelope", "body"],
        forms: &[
            HashedForm {
                at: "/body",
                stated: &["/envelope/body_hash", "/envelope/meta/hashes/body_hash"],
                ..whole(FormProfile::TraceMind)
            },
            HashedForm {
                at: "/body",
                members: HashedMembers::Only(&["environment", "constraints"], &[]),
                stated: &["/body/data_hash"],
                ..whole(FormProfile::TraceMind)
            },
            HashedForm {
                at: "/body",
                members: HashedMembers::Only(&["artifact_refs", "policy_decisions", "status"], &[]),
                stated: &["/body/execution_hash"],
                ..whole(FormProfile::TraceMind)
            },
        ],
        references: &[
            "/envelope/meta/derived_from/intent_body_hash",
            "/body/artifacts/ObserveAgent/data_hash",
        ],
        ..KERNEL
    },
];

const SHAPE: RuleInfo = RuleInfo::error(
    "AT1",
    "A document of a known type has the members that its hash is computed from.",
    "A document without one of them, or of a version that is not known, has no hash by which others refer to it. Require \
     the kind attachment to keep the file as it is, unverified.",
);
const STATED: RuleInfo = RuleInfo::error(
    "AT2",
    "A hash that a document states of its own content is the hash of that content.",
    "The content was changed after it was hashed, or was hashed in another way; nothing says which of the two is right. \
     Restore the document, or require the kind attachment to keep the file as it is, unverified.",
);

/// The rules of documents that are recognized. None applies to bytes that are an attachment on request.
pub(super) const RULES: [RuleInfo; 2] = [SHAPE, STATED];

/// The most bytes of a document. Larger ones are any bytes.
const MAX_BYTES: usize = 16 << 20;

/// A verified document.
pub(super) struct HashedDocument<'d> {
    /// The noun for it.
    pub(super) noun: &'static str,
    pub(super) root: Value<'d>,
    /// The canonical forms that it has hashes of, with the pointers of what they are forms of.
    pub(super) forms: Vec<(&'static str, Vec<u8>)>,
    /// The hashes of other documents that are written without a prefix, with their pointers.
    pub(super) references: Vec<(&'static str, Digest)>,
    /// The hashes of names of files, with their pointers.
    pub(super) file_names: Vec<(&'static str, Digest)>,
    /// The id of the run whose files it lists.
    pub(super) run: Option<String>,
}

/// Returns a list of the files that a program keeps of a run in addition to its record, with their digests: a document
/// that links the files to the run.
///
/// # Errors
/// Returns an error if there is no canonical form, which texts always have.
pub(crate) fn list_of_files(
    program: &str,
    run: &str,
    files: &BTreeMap<String, Digest>,
) -> Result<Vec<u8>, String> {
    let text = |text: &str| Value::String(Cow::Owned(text.to_owned()));
    let object = |members| Value::Object(Object::from_members(members));
    let files = files.iter().map(|(path, digest)| (Cow::Owned(path.clone()), text(&digest.to_string())));
    FormProfile::Kernel.bytes(&object(vec![
        (Cow::Borrowed(RUN_FILES.0), text(RUN_FILES.1)),
        (Cow::Borrowed("program"), text(program)),
        (Cow::Borrowed("run_id"), text(run)),
        (Cow::Borrowed("files"), object(files.collect())),
    ]))
}

/// Returns how certainly a document is of a type; `names` are those of its root object.
pub(super) fn recognize(text: &str, names: &mut MemberNames<'_>) -> Option<Recognition> {
    find(text, names).map(|found| found.recognition)
}

fn find(text: &str, names: &mut MemberNames<'_>) -> Option<&'static DocumentType> {
    if text.len() > MAX_BYTES {
        return None;
    }
    let is_json = is_json(text);
    TYPES.iter().find(|candidate| match (is_json, candidate.profile()) {
        (true, _) => candidate.names.iter().all(|name| names.has(name)),
        // Only TraceMind writes YAML.
        (false, FormProfile::TraceMind) => is_mapping_of(text, candidate.names),
        (false, _) => false,
    })
}

/// Returns whether a text in YAML begins with one of these members of the root, and has all of them.
fn is_mapping_of(text: &str, names: &[&str]) -> bool {
    let is_member =
        |line: &str, name: &str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(':'));
    let is_content = |line: &&str| !line.trim().is_empty() && !line.starts_with(['#', '-', '%']);
    let first = text.lines().find(is_content).unwrap_or_default();
    names.iter().any(|name| is_member(first, name))
        && names.iter().all(|name| text.lines().any(|line| is_member(line, name)))
}

/// Returns the document that bytes are, or the rules that they break; `None` if they are of no known type.
pub(super) fn read<'d>(bytes: &'d [u8], limits: &Limits) -> Option<Result<HashedDocument<'d>, Report>> {
    if bytes.len() > MAX_BYTES {
        return None;
    }
    let text = reader::lossy(bytes);
    let found = find(&text, &mut MemberNames::new(&text))?;
    let root = if is_json(&text) {
        reader::read(bytes, limits)
    } else {
        reader::utf8(bytes, limits).and_then(|text| yaml::read(text, YamlSchema::Written, limits))
    };
    Some(root.map_err(|error| document::violation(&error).into()).and_then(|root| found.verify(root)))
}

fn is_json(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '['])
}

impl DocumentType {
    fn profile(&self) -> FormProfile {
        self.forms.first().map_or(FormProfile::Kernel, |form| form.profile)
    }

    fn verify<'d>(&self, root: Value<'d>) -> Result<HashedDocument<'d>, Report> {
        let mut findings = Findings::default();
        if let Some((name, known)) = self.version
            && root.get(name).and_then(Value::as_str) != Some(known)
        {
            let message = format!("a {} has the version {known}; another is not known", self.noun);
            violate(&mut findings, SHAPE, &format!("/{name}"), message);
        }
        let mut forms = Vec::new();
        for (index, form) in self.forms.iter().enumerate() {
            match form.bytes(&root) {
                Ok(bytes) => {
                    form.compare(&root, &bytes, &mut findings);
                    forms.push((form.at, bytes));
                }
                // Documents of one type differ in what they have in addition.
                Err(_) if index > 0 => {}
                Err(reason) => violate(&mut findings, SHAPE, form.at, format!("a {} {reason}", self.noun)),
            }
        }
        if findings.has_errors() {
            return Err(findings.into_report());
        }
        let references = digests(&root, self.references, Digest::parse_hex);
        let file_names = digests(&root, self.file_names, Digest::parse_prefixed);
        let run = self.run.and_then(|name| root.get(name)?.as_non_empty_str()).map(str::to_owned);
        Ok(HashedDocument { noun: self.noun, root, forms, references, file_names, run })
    }
}

/// Returns the digests at these pointers that are written in one form.
fn digests(
    root: &Value<'_>,
    pointers: &[&'static str],
    parse: fn(&str) -> Option<Digest>,
) -> Vec<(&'static str, Digest)> {
    let at = |pointer: &&'static str| Some((*pointer, parse(root.at_pointer(pointer)?.as_str()?)?));
    pointers.iter().filter_map(at).collect()
}

fn violate(findings: &mut Findings, rule: RuleInfo, place: &str, message: String) {
    findings.add(Violation::new(rule, place, message).with_remedy(Remedy::RequireKind));
}

impl HashedForm {
    /// Returns the bytes that are hashed.
    ///
    /// # Errors
    /// Returns why there are none, as the end of a sentence.
    fn bytes(&self, root: &Value<'_>) -> Result<Vec<u8>, String> {
        let value = if self.at.is_empty() { Some(root) } else { root.at_pointer(self.at) };
        let value = value.ok_or_else(|| format!("must have the value {}", self.at))?;
        let object =
            value.as_object().ok_or_else(|| format!("must be an object, not {}", value.type_name()))?;
        let hashed = match self.members {
            HashedMembers::All => Cow::Borrowed(value),
            HashedMembers::Only(names, optional) => Cow::Owned(selected(object, names, optional)?),
        };
        self.profile.bytes(&hashed)
    }

    /// Compares the hash of the form with what the document states.
    fn compare(&self, root: &Value<'_>, form: &[u8], findings: &mut Findings) {
        let actual = Digest::from_content(form);
        for place in self.stated {
            let stated = root.at_pointer(place).and_then(Value::as_str).and_then(Digest::parse_either);
            if stated.is_some_and(|stated| stated != actual) {
                let what = if self.at.is_empty() { "the document" } else { self.at };
                let message =
                    format!("is not the hash of the canonical form of {what}, which is {}", actual.hex());
                violate(findings, STATED, place, message);
            }
        }
    }
}

/// Returns an object with some of the members of another one.
fn selected<'v>(object: &Object<'v>, names: &[&'static str], optional: &[&str]) -> Result<Value<'v>, String> {
    let mut members = Vec::new();
    for name in names {
        match object.get(name) {
            Some(value) => members.push((Cow::Borrowed(*name), value.clone())),
            None if optional.contains(name) => {}
            None => return Err(format!("must have the member {name}")),
        }
    }
    Ok(Value::Object(Object::from_members(members)))
}

impl FormProfile {
    fn bytes(self, value: &Value<'_>) -> Result<Vec<u8>, String> {
        let uncanonical = |error: &dyn std::fmt::Display| format!("must have a canonical form: {error}");
        match self {
            Self::Kernel => {
                let mut bytes = rfc8785::to_vec(value).map_err(|error| uncanonical(&error))?;
                bytes.push(b'\n');
                Ok(bytes)
            }
            Self::Engine => c14n_v1::to_vec(value).map_err(|error| uncanonical(&error)),
            Self::TraceMind => c14n_v1::to_vec(&normalized(value)).map_err(|error| uncanonical(&error)),
        }
    }
}

/// Returns a value in which strings have no white space around them and line feeds only. Names are unchanged.
fn normalized<'v>(value: &'v Value<'_>) -> Value<'v> {
    match value {
        Value::String(text) if text.contains('\r') => {
            let text = text.replace("\r\n", "\n").replace('\r', "\n");
            Value::String(Cow::Owned(strip_white_space(&text).to_owned()))
        }
        Value::String(text) => Value::String(Cow::Borrowed(strip_white_space(text))),
        Value::Array(elements) => Value::Array(elements.iter().map(normalized).collect()),
        Value::Object(object) => {
            let members = object.iter().map(|(name, value)| (Cow::Borrowed(name), normalized(value)));
            Value::Object(Object::from_members(members.collect()))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The digests of the forms of a document.
    fn digests_of(text: &str) -> Vec<String> {
        let read = read(text.as_bytes(), &Limits::default()).unwrap().unwrap();
        read.forms.iter().map(|(_, form)| Digest::from_content(form).hex()).collect()
    }

    const REPOSITORY: &str = r#"{
        "ephemeral": {"generated_at": "now"}, "repo_state_schema_version": "1.0.0",
        "repo_commit": "cccccccccccccccccccccccccccccccccccccccc", "repo_dirty": false, "dirty_paths": [],
        "node_version": "v24.11.1", "npm_version": "11.6.2", "os_platform": "linux", "os_arch": "x64",
        "package_lock_sha256": "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "contracts": {"apply_schema_version": "1.0.0"}
    }"#;

    const SNAPSHOT: &str = "
body:
  constraints: &id001
  - rule: r
  data_hash: 5901a2fbf211e5bfff80a2931ce549d2dadcf25e2451aeb51aa22e95edcf0a88
  environment:
    state:
      phase: \" mock \\r\\n\"
  snapshot_id: env-mock
envelope:
  artifact_type: environment_snapshot
  body_hash: d9a75a3330fe7a82a9256b076e6cb866ccc0cc21ac33f7865a81942fae9d7abd
  envelope_hash: ''
  meta:
    seen: *id001
";

    /// Computed by `json.dumps` and `hashlib` of Python, as the programs do it.
    #[test]
    fn hashes_are_those_of_the_programs() {
        let repository = "e1b74eef49cc29c0ce2635573a5a8f5f8acc6238195c7fb138fa88d5ed89dd8e";
        assert_eq!(digests_of(REPOSITORY), [repository]);
        let applied = r#"{"apply_schema_version":"1.0.0","outcome":"SUCCESS","dry_run":false,"target_root":"w",
            "patch_source":{"proposal_id":"p","proposal_hash":
            "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"},"operation_results":[],
            "summary":{"total_operations":0}}"#;
        let hash = "d8d6b705207d5935246a0a4e81e2a5451d09fac93189d73b75642d53e3521937";
        assert_eq!(digests_of(applied), [hash]);
        let state = r#"{"version":"1.0.0","step_index":0,"status":"pending","artifacts":{"x":1.50,"y":1e16},"problem":
            {"version":"1.0.0","id":"p-1","created_at":"2026-02-02T00:00:00Z","inputs":{"prompt":"Zw\u00f6lf?"}}}"#;
        let problem = "39cd9c85c3748f98d6b1acfcf1848ed12acd505175f7bf5289de7ac309b2361c";
        let whole = "8a4df4fa520cfdc56c07fdd6587bceb38e6285628e2fa8b9d03e4e466a4e8470";
        assert_eq!(digests_of(state), [whole, problem]);
        let data = "5901a2fbf211e5bfff80a2931ce549d2dadcf25e2451aeb51aa22e95edcf0a88";
        let body = "d9a75a3330fe7a82a9256b076e6cb866ccc0cc21ac33f7865a81942fae9d7abd";
        assert_eq!(digests_of(SNAPSHOT), [body, data]);
    }

    #[test]
    fn the_forms_of_a_form_are_its_own() {
        let (_, form) = read(REPOSITORY.as_bytes(), &Limits::default()).unwrap().unwrap().forms.remove(0);
        let again = read(&form, &Limits::default()).unwrap().unwrap().forms.remove(0);
        assert_eq!(again.1, form);
    }

    #[test]
    fn a_list_of_files_is_its_own_form_and_names_its_run() {
        let digest = Digest::from_content(b"x");
        let list = list_of_files("p", "run-1", &BTreeMap::from([("a/b".to_owned(), digest)])).unwrap();
        let found = read(&list, &Limits::default()).unwrap().unwrap();
        assert_eq!((found.run.as_deref(), &found.forms[0].1), (Some("run-1"), &list));
        let text = format!(
            "{{\"files\":{{\"a/b\":\"{digest}\"}},\"program\":\"p\",\"run_files_schema_version\":\"1.0.0\",\"run_id\":\"run-1\"}}\n"
        );
        assert_eq!(String::from_utf8(list).unwrap(), text);
    }

    #[test]
    fn hashes_that_do_not_fit_are_named() {
        for (text, rule, place) in [
            (SNAPSHOT.replace("rule: r", "rule: q"), "AT2", "/body/data_hash"),
            (SNAPSHOT.replace("snapshot_id: env", "snapshot_id: inv"), "AT2", "/envelope/body_hash"),
            (SNAPSHOT.replace("\nbody:", "\nbody: 1\nother:"), "AT1", "/body"),
            (REPOSITORY.replace("\"npm_version\"", "\"npm\""), "AT1", ""),
            (REPOSITORY.replace("\"1.0.0\",\n", "\"2.0.0\",\n"), "AT1", "/repo_state_schema_version"),
            (REPOSITORY.replace("false,", "false"), "DOC2", "line 3"),
        ] {
            let report = read(text.as_bytes(), &Limits::default()).unwrap().err().unwrap();
            let first = &report.violations()[0];
            assert!(first.rule_id == rule && first.path.starts_with(place), "{first}");
        }
    }

    #[test]
    fn other_documents_are_not_recognized() {
        for text in [
            "{}",
            "[1]",
            "envelope: 1\n",
            "",
            "{\"body\": {}, \"envelop\": {}}",
            "body of it\nenvelope\n",
            "# a test\ntext: |\nenvelope: 1\nbody: 2\n",
        ] {
            assert!(read(text.as_bytes(), &Limits::default()).is_none(), "{text}");
        }
    }
}
