//! `attachment`: any bytes, identified by their SHA-256, for what artifacts refer to and no format defines: schemas,
//! problem specifications, reasoning states, outputs of tools. `docs/formats.md`, "attachment".

mod parts;
mod transcript;

use std::io::{self, Write};

use crate::artifact::{
    AdmitOptions, Artifact, ArtifactView, AttributeInfo, Draft, Part, Passage, Recognition, StepVisitor,
};
use crate::digest::{CoreHash, Digest};
use crate::json::reader::{Limits, MemberNames, ReadError};
use crate::validation::{Findings, RuleInfo};

/// The kind `attachment`.
pub struct Attachment;

const CONTENT: AttributeInfo = AttributeInfo::text("content", "`text` if the bytes are UTF-8, else `binary`");
const LENGTH: AttributeInfo = AttributeInfo::count("length", "the number of bytes");

impl Artifact for Attachment {
    const NAME: &'static str = "attachment";
    const NOUN: &'static str = "attachment";
    const PLURAL: &'static str = "attachments";
    const MEMBER: &'static str = "attachment";
    const FILE_NAMES: &'static [&'static str] = &[];
    const ATTRIBUTES: &'static [AttributeInfo] = &[CONTENT, LENGTH];
    const TAKES_ANY_BYTES: bool = true;
    const STEP_NOUN: &'static str = "content";
    const VIEW: ArtifactView = ArtifactView {
        about: "any bytes, by their SHA-256",
        named_by: None,
        columns: &[CONTENT.column().facet(), LENGTH.column()],
    };

    /// Returns no rules: any bytes are an attachment.
    fn rules() -> Vec<RuleInfo> {
        Vec::new()
    }

    /// Returns nothing: any bytes could be an attachment, so none is one unless this is requested.
    fn recognizes(_: &str, _: &mut MemberNames<'_>) -> Option<Recognition> {
        None
    }

    fn examine(bytes: &[u8], _: &AdmitOptions, _: &mut Findings) -> Option<Draft> {
        let mut draft = Draft::new(CoreHash(Digest::from_content(bytes)));
        draft.attribute(CONTENT.name, if str::from_utf8(bytes).is_ok() { "text" } else { "binary" });
        draft.count(LENGTH, bytes.len());
        Some(draft)
    }

    /// Writes all bytes.
    fn write_core(document: &[u8], _: &Limits, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(document)
    }

    fn parts<'d>(document: &'d [u8], _: &Limits) -> Result<Vec<Part<'d>>, ReadError> {
        Ok(parts::parts(document))
    }

    /// Returns nothing: attachments are found by their hash and by the artifacts that refer to them.
    fn passages(_: &[u8], _: &Limits) -> Result<Vec<Passage>, ReadError> {
        Ok(Vec::new())
    }

    fn transcript(document: &[u8], _: &Limits, visit: &mut StepVisitor<'_>) -> Result<(), ReadError> {
        transcript::visit(document, visit);
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
            let kind = Kind::new::<Attachment>();
            let admitted = kind.admit(bytes.clone(), &AdmitOptions::default()).unwrap();
            prop_assert_eq!(admitted.core().0, digest);
            prop_assert_eq!(admitted.capture().0, digest);
            prop_assert_eq!(admitted.members()[0].blob().0, digest);
            let mut core = Vec::new();
            Attachment::write_core(&bytes, &Limits::default(), &mut core).unwrap();
            prop_assert_eq!(core, bytes);
        }
    }
}
