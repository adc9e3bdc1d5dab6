//! The dialects of agent sessions: the programs whose sessions are read.

use super::form::{AgentDialect, DocumentHead};
use super::{atif, claude_code, codex, gemini_cli, opencode, pi};
use crate::json::reader::MemberNames;

/// The dialects, in the order in which they recognize documents.
static DIALECTS: [AgentDialect; 7] = [
    claude_code::CLAUDE_CODE,
    codex::CODEX,
    gemini_cli::DOCUMENT,
    gemini_cli::LINES,
    opencode::OPENCODE,
    pi::PI,
    atif::ATIF,
];

/// Returns whether the sessions of a dialect state numbers of tokens as the API of the model does.
pub(crate) fn states_tokens_of_api(name: &str) -> bool {
    DIALECTS.iter().any(|dialect| dialect.name == name && !dialect.counts_tokens)
}

/// Returns the dialect of a document. `root` has the names of the members of its first object.
pub(super) fn detect(text: &str, root: &mut MemberNames<'_>) -> Option<&'static AgentDialect> {
    let mut head = DocumentHead::new(text, root);
    DIALECTS.iter().find(|dialect| (dialect.recognizes)(&mut head))
}
