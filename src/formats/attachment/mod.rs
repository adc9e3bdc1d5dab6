//! `attachment`: any bytes, identified by their SHA-256, for what artifacts refer to and no format defines: schemas,
//! problem specifications, reasoning states, outputs of tools. `docs/formats.md`, "attachment".

mod parts;
mod transcript;

use std::io::{self, Write};

use crate::artifact::{
    AdmitOptions, Artifact, ArtifactView, AttributeInfo, Draft, KindInfo, MemberBytes, Part, Passage,
    StepVisitor,
};
use crate::digest::{CoreHash, Digest};
use crate::json::reader::{Limits, ReadError};
use crate::validation::{Findings, RuleInfo};

/// The kind `attachment`.
pub struct Attachment;

const CONTENT: AttributeInfo = AttributeInfo::text("content", "`text` if the bytes are UTF-8, else `binary`");
const LENGTH: AttributeInfo = AttributeInfo::count("length", "the number of bytes");

static INFO: KindInfo = KindInfo {
    name: "attachment",
    noun: "attachment",
    plural: "attachments",
    members: &["attachment"],
    attributes: &[CONTENT, LENGTH],
    takes_any_bytes: true,
    step_noun: "content",
    view: ArtifactView {
        about: "any bytes, by their SHA-256",
        named_by: None,
        columns: &[CONTENT.column().facet(), LENGTH.column()],
    },
    ..KindInfo::NONE
};

impl Artifact for Attachment {
    fn info(&self) -> &'static KindInfo {
        &INFO
    }

    /// Returns no rules: any bytes are an attachment.
    fn rules(&self) -> Vec<RuleInfo> {
        Vec::new()
    }

    fn examine(&self, bytes: &[u8], _: &AdmitOptions, _: &mut Findings) -> Option<Draft> {
        let mut draft = Draft::new(CoreHash(Digest::from_content(bytes)));
        draft.attribute(CONTENT.name, if str::from_utf8(bytes).is_ok() { "text" } else { "binary" });
        draft.count(LENGTH, bytes.len());
        Some(draft)
    }

    /// Writes all bytes.
    fn write_core(&self, members: &[MemberBytes<'_>], _: &Limits, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(MemberBytes::only(members))
    }

    fn parts<'d>(&self, members: &[MemberBytes<'d>], _: &Limits) -> Result<Vec<Part<'d>>, ReadError> {
        Ok(parts::parts(MemberBytes::only(members)))
    }

    /// Returns nothing: attachments are found by their hash and by the artifacts that refer to them.
    fn passages(&self, _: &[MemberBytes<'_>], _: &Limits) -> Result<Vec<Passage>, ReadError> {
        Ok(Vec::new())
    }

    fn transcript(
        &self,
        members: &[MemberBytes<'_>],
        _: &Limits,
        visit: &mut StepVisitor<'_>,
    ) -> Result<(), ReadError> {
        transcript::visit(MemberBytes::only(members), visit);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::artifact::Kind;

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
            Attachment.write_core(&[MemberBytes { name: "", bytes: &bytes }], &Limits::default(), &mut core).unwrap();
            prop_assert_eq!(core, bytes);
        }
    }
}
