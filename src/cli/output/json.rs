//! JSON output. `docs/json.md` specifies its structure.

use std::io::{self, Write};

use runvault::artifact::{Kind, Signature};
use runvault::digest::{CoreHash, hex};
use runvault::secrets::SecretMatch;
use runvault::validation::Violation;
use runvault::vault::add::DocumentResult;
use serde::Serialize;
use serde_json::ser::{CharEscape, Formatter};

use crate::cli::hints;
use crate::cli::output::escape::is_hidden;

pub(crate) use runvault::vault::api::bytes_of;

/// Writes `value` as one line of JSON.
pub(crate) fn line(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    let mut text = Vec::new();
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut text, EscapingFormatter))?;
    text.push(b'\n');
    out.write_all(&text)
}

/// Writes `value` as one line of JSON as it is serialized. Unlike [`line`], the text is not in memory as a whole.
pub(crate) fn stream(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut *out, EscapingFormatter))?;
    out.write_all(b"\n")
}

#[derive(Serialize)]
struct ExaminedLine<'e, V> {
    path: &'e str,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_bytes: Option<String>,
    kind: Option<&'e str>,
    #[serde(flatten)]
    verdict: V,
    core_hash: Option<CoreHash>,
    /// The artifact that the document continues, if it is a continuation.
    #[serde(skip_serializing_if = "Option::is_none")]
    continues: Option<CoreHash>,
    /// The files beside it that are stored with it.
    #[serde(skip_serializing_if = "<[CoreHash]>::is_empty")]
    attachments: &'e [CoreHash],
    /// What looks like a key or a card number.
    #[serde(skip_serializing_if = "<[SecretMatch]>::is_empty")]
    secrets: &'e [SecretMatch],
    #[serde(flatten)]
    signature: Option<SignatureMembers<'e>>,
    violations: Vec<Violation>,
    /// Number of further violations; reports of hostile documents are truncated, and so are those limited on request.
    #[serde(skip_serializing_if = "is_zero")]
    violations_omitted: usize,
}

/// The signature of a document, if it has one.
#[derive(Serialize)]
pub(crate) struct SignatureMembers<'s> {
    signature: &'static str,
    key_id: Option<&'s str>,
}

impl<'s> SignatureMembers<'s> {
    pub(crate) fn new(signature: &'s Signature) -> Self {
        Self { signature: signature.state.name(), key_id: signature.key_id.as_deref() }
    }
}

/// Writes the data of an examined document, with up to `most` violations; `verdict` contains the members with the
/// result.
pub(crate) fn examined(
    out: &mut dyn Write,
    examined: &DocumentResult,
    verdict: impl Serialize,
    most: Option<usize>,
) -> io::Result<()> {
    let violations = examined.report.violations();
    let (listed, left_out) =
        violations.split_at_checked(most.unwrap_or(usize::MAX)).unwrap_or((violations, &[]));
    let value = ExaminedLine {
        path: &examined.path,
        path_bytes: examined.path_bytes.as_deref().map(hex),
        kind: examined.kind.map(Kind::name),
        verdict,
        core_hash: examined.core,
        continues: examined.continues,
        attachments: &examined.attachments,
        secrets: &examined.secrets,
        signature: examined.signature.as_ref().map(SignatureMembers::new),
        violations: hints::for_violations(listed),
        violations_omitted: examined.report.omitted() + left_out.len(),
    };
    line(out, &value)
}

/// Whether a count is zero and omitted.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Compact JSON that escapes characters that could control a terminal.
struct EscapingFormatter;

impl Formatter for EscapingFormatter {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        let mut start = 0;
        for (offset, character) in fragment.char_indices().filter(|(_, character)| is_hidden(*character)) {
            out.write_all(fragment.get(start..offset).unwrap_or_default().as_bytes())?;
            for unit in character.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}")?;
            }
            start = offset + character.len_utf8();
        }
        out.write_all(fragment.get(start..).unwrap_or_default().as_bytes())
    }

    /// Writes part of compact JSON, in which only strings contain such characters.
    fn write_raw_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        self.write_string_fragment(out, fragment)
    }

    fn write_char_escape<W: ?Sized + Write>(&mut self, out: &mut W, escape: CharEscape) -> io::Result<()> {
        serde_json::ser::CompactFormatter.write_char_escape(out, escape)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn hidden_characters_are_escaped_and_nothing_else_changes() {
        let text = "a\u{9b}\u{202e}\u{1}\"é😀";
        let mut out = Vec::new();
        super::line(&mut out, &text).unwrap();
        assert_eq!(String::from_utf8(out.clone()).unwrap(), "\"a\\u009b\\u202e\\u0001\\\"é😀\"\n");
        assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
    }
}
