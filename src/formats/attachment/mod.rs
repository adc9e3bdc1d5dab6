//! `attachment`: any bytes, identified by their SHA-256, for what artifacts refer to and no format defines: schemas,
//! problem specifications, reasoning states, outputs of tools. `docs/formats.md`, "attachment".

mod documents;

use std::borrow::Cow;
use std::io::{self, Write};

use crate::artifact::{
    AdmitOptions, Artifact, ArtifactLocation, ArtifactView, AttributeInfo, BodyContent, BodyRole, Draft,
    KindInfo, MemberBytes, Mention, NameHandle, Part, PartKind, Passage, REFERENCE, REFERS_TO, Recognition,
    Relation, Role, StepClass, StepVisitor, TranscriptStep, differ, same_place,
};
use crate::digest::{CoreHash, Digest};
use crate::json::reader::{Limits, MemberNames, ReadError};
use crate::json::{Object, Value};
use crate::validation::{Findings, Report, RuleInfo};

use documents::HashedDocument;
pub(crate) use documents::list_of_files;

/// The kind `attachment`.
pub struct Attachment;

const CONTENT: AttributeInfo = AttributeInfo::text("content", "`text` if the bytes are UTF-8, else `binary`");
const DOCUMENT: AttributeInfo =
    AttributeInfo::text("document", "what a verified document is that has a hash of its own");
const LENGTH: AttributeInfo = AttributeInfo::count("length", "the number of bytes");

static INFO: KindInfo = KindInfo {
    name: "attachment",
    noun: "attachment",
    plural: "attachments",
    members: &["attachment"],
    attributes: &[CONTENT, DOCUMENT, LENGTH],
    takes_any_bytes: true,
    step_noun: "content",
    view: ArtifactView {
        about: "any bytes, by their SHA-256",
        named_by: None,
        columns: &[CONTENT.column().facet(), DOCUMENT.column().facet(), LENGTH.column()],
    },
    ..KindInfo::NONE
};

impl Artifact for Attachment {
    fn info(&self) -> &'static KindInfo {
        &INFO
    }

    /// Returns the rules of documents that are recognized: any bytes are an attachment on request.
    fn rules(&self) -> Vec<RuleInfo> {
        documents::RULES.to_vec()
    }

    fn recognizes(&self, text: &str, names: &mut MemberNames<'_>) -> Option<Recognition> {
        documents::recognize(text, names)
    }

    /// Returns the canonical forms of a document that others refer to by their hashes.
    fn derive(&self, document: &[u8], limits: &Limits) -> Option<Result<Vec<Vec<u8>>, Report>> {
        let forms = |found: HashedDocument<'_>| found.forms.into_iter().map(|(_, form)| form).collect();
        documents::read(document, limits).map(|read| read.map(forms))
    }

    fn examine(&self, bytes: &[u8], _: &AdmitOptions, _: &mut Findings) -> Option<Draft> {
        let mut draft = Draft::new(CoreHash(Digest::from_content(bytes)));
        draft.attribute(CONTENT.name, if str::from_utf8(bytes).is_ok() { "text" } else { "binary" });
        draft.count(LENGTH, bytes.len());
        // The same data is derived of the same bytes, whatever the limits were when they were added.
        if let Some(Ok(found)) = documents::read(bytes, &Limits::most()) {
            describe(&found, &mut draft);
        }
        Some(draft)
    }

    /// Writes all bytes.
    fn write_core(&self, members: &[MemberBytes<'_>], out: &mut dyn Write) -> io::Result<()> {
        out.write_all(MemberBytes::only(members))
    }

    fn parts<'d>(&self, members: &[MemberBytes<'d>]) -> Result<Vec<Part<'d>>, ReadError> {
        Ok(parts(MemberBytes::only(members)))
    }

    /// Returns nothing: attachments are found by their hash and by the artifacts that refer to them.
    fn passages(&self, _: &[MemberBytes<'_>]) -> Result<Vec<Passage>, ReadError> {
        Ok(Vec::new())
    }

    fn transcript(&self, members: &[MemberBytes<'_>], visit: &mut StepVisitor<'_>) -> Result<(), ReadError> {
        visit_content(MemberBytes::only(members), visit);
        Ok(())
    }
}

/// The role of a form of the document that has a hash of its own.
const CANONICAL_FORM: Role =
    Role { name: "canonical_form", group: "canonical_form", unit: "", relation: Some(REFERS_TO) };

/// The role of the hash of the names of a pack's files.
const FILE_NAMES: Role = Role { name: "file_names", group: "file_names", unit: "", relation: None };

/// The relation of a list of files to the run that they are of.
const FILES_OF: Relation = Relation { name: "files-of", dangles: false };

fn describe(found: &HashedDocument<'_>, draft: &mut Draft) {
    draft.attribute(DOCUMENT.name, found.noun);
    draft.refers_to.extend(found.run.as_deref().map(|run| (FILES_OF, NameHandle::new("run", run))));
    for (at, form) in &found.forms {
        let digest = Digest::from_content(form);
        if CoreHash(digest) != draft.core {
            let place = ArtifactLocation::Pointer((*at).to_owned());
            draft.mentions.push(Mention { role: &CANONICAL_FORM, place, digest });
        }
    }
    for (at, digest) in &found.references {
        let place = ArtifactLocation::Pointer((*at).to_owned());
        draft.mentions.push(Mention { role: &REFERENCE, place, digest: *digest });
    }
    let mut indexed = Vec::new();
    for (at, digest) in &found.file_names {
        indexed.push(*at);
        let place = ArtifactLocation::Pointer((*at).to_owned());
        draft.mentions.push(Mention { role: &FILE_NAMES, place, digest: *digest });
    }
    draft.collect_references(&found.root, "", &indexed);
}

/// Maximum number of lines that are compared separately: each takes some hundred bytes of memory.
const MAX_LINES: usize = 100_000;

static LINE: PartKind = PartKind {
    is_ephemeral: |_| false,
    canonical: |value| value.as_str().map(|line| line.as_bytes().to_vec()),
    describe: |_, _, _| "the line differs".to_owned(),
};

static WHOLE: PartKind = PartKind {
    is_ephemeral: |_| false,
    // The digest of the bytes; the size is shown, and follows from them.
    canonical: |value| value.get("sha256").and_then(Value::as_str).map(|digest| digest.as_bytes().to_vec()),
    describe: |_, _, names| {
        if names.contains(&"sha256") { "the bytes differ".to_owned() } else { differ(names) }
    },
};

fn parts(document: &[u8]) -> Vec<Part<'_>> {
    match str::from_utf8(document) {
        Ok(text) if memchr::memchr_iter(b'\n', document).count() < MAX_LINES => {
            text.split('\n').zip(1..).map(|(line, number)| of_line(line, number)).collect()
        }
        _ => vec![whole(document)],
    }
}

fn of_line(line: &str, number: usize) -> Part<'_> {
    let keys = [same_place(&[line.trim()]), same_place(&["line"])];
    Part::new(format!("line {number}"), keys, Value::String(Cow::Borrowed(line)), &LINE)
}

fn whole(document: &[u8]) -> Part<'_> {
    let member = |name: &'static str, text: String| (Cow::Borrowed(name), Value::String(Cow::Owned(text)));
    let value = Value::Object(Object::from_members(vec![
        member("sha256", Digest::from_content(document).to_string()),
        member("size", format!("{} bytes", document.len())),
    ]));
    Part::new("bytes".to_owned(), [same_place(&["bytes"]); 2], value, &WHOLE)
}

/// Calls `visit` with the content.
fn visit_content(document: &[u8], visit: &mut StepVisitor<'_>) {
    let content = BodyContent::from_bytes(document);
    let step_type = if matches!(content, BodyContent::Binary(_)) { "binary" } else { "text" };
    let mut step = TranscriptStep::new(0, step_type, StepClass::Content, content.clone());
    step.digest = Some(Digest::from_content(document));
    step.push(BodyRole::Content, content);
    visit(step);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::Kind;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_core_hash_is_the_digest_of_the_bytes(bytes: Vec<u8>) {
            let digest = Digest::from_content(&bytes);
            let kind = Kind::new(&Attachment);
            let admitted = kind.admit(bytes.clone(), &AdmitOptions::default()).unwrap();
            prop_assert_eq!(admitted.core().0, digest);
            prop_assert_eq!(admitted.capture().0, digest);
            prop_assert_eq!(admitted.members()[0].blob().0, digest);
            let mut core = Vec::new();
            Attachment.write_core(&[MemberBytes { name: "", bytes: &bytes }], &mut core).unwrap();
            prop_assert_eq!(core, bytes);
        }
    }

    #[test]
    fn text_is_compared_by_line_and_anything_else_as_a_whole() {
        let labels =
            |document: &[u8]| -> Vec<String> { parts(document).into_iter().map(|part| part.label).collect() };
        // The end of the last line is also compared: it is followed by an empty line.
        assert_eq!(labels(b"a\nb\n"), ["line 1", "line 2", "line 3"]);
        assert_eq!(labels(b"a\xff\n"), ["bytes"]);
        assert_eq!(labels(&b"\n".repeat(MAX_LINES)), ["bytes"]);
        assert_eq!(parts(b"\x80")[0].identity, parts(b"\x80")[0].identity);
        assert_ne!(parts(b"\x80")[0].identity, parts(b"\x81")[0].identity);
    }
}
