//! Parts that several pages show.

use maud::{Markup, html};

use crate::artifact::Kind;
use crate::digest::CoreHash;
use crate::formats;
use crate::server::address;
use crate::server::text::line;
use crate::vault::api::{ArtifactSummary, SignatureName};
use crate::vault::links::{Direction, LinkEnd, LinkSummary};

/// Returns the first digits of a core hash as a link to its artifact.
pub(super) fn hash(core: CoreHash) -> Markup {
    html! { a.hash href=(address::artifact(core)) { (format!("{core:.12}")) } }
}

/// Returns an artifact as a link, with its kind.
pub(super) fn artifact(artifact: &ArtifactSummary) -> Markup {
    html! { (kind(&artifact.kind)) " " (hash(artifact.core_hash)) }
}

/// Returns a label as a link to the runs that have it.
pub(super) fn label(key: &str, value: &str) -> Markup {
    html! { a.tag href=(address::label(key, value)) { (line(key)) "=" (line(value)) } }
}

/// Returns the noun of a kind as a label.
pub(super) fn kind(name: &str) -> Markup {
    html! { span.kind { (line(formats::bare_noun(name))) } }
}

/// Returns an end of a link: an artifact, or what is missing.
pub(super) fn link_end(end: &LinkEnd) -> Markup {
    let LinkEnd { kind: name, core_hash, digest, name: missing, .. } = end;
    if let (Some(core), Some(name)) = (core_hash, name) {
        html! { (kind(name)) " " (hash(*core)) }
    } else {
        let missing = digest.map(|digest| format!("{digest:.12}")).or_else(|| missing.clone());
        html! { span.missing { "not in the vault: " (line(&missing.unwrap_or_default())) } }
    }
}

/// Returns the name of a relation as it is read from the artifact: `contains`, or `← contains` for incoming links.
pub(super) fn relation(link: &LinkSummary) -> Markup {
    let (arrow, name) = match link.direction {
        Direction::Out => ("→", "from this artifact"),
        Direction::In => ("←", "to this artifact"),
    };
    html! { span title=(name) { (arrow) } span.hidden { " " (name) } " " (line(&link.relation)) }
}

/// Returns the state of a signature in words.
pub(super) fn signature(state: SignatureName, key_id: Option<&str>) -> Markup {
    let (class, text) = match state {
        SignatureName::Verified => ("good", "signature verified at admission"),
        SignatureName::Unsigned => ("faint", "not signed"),
        SignatureName::Unchecked => ("caution", "signed; not checked at admission"),
        SignatureName::Wrong => ("bad", "wrong signature"),
    };
    html! {
        span class=(class) { (text) }
        @if let Some(key_id) = key_id { " (key " (line(key_id)) ")" }
    }
}

/// Returns whether an artifact of this kind can have signatures.
pub(super) fn can_be_signed(kind: &str) -> bool {
    formats::named(kind).is_some_and(Kind::can_be_signed)
}

/// Returns a definition list of the rows that have a value.
pub(super) fn fields(rows: &[(&str, Option<Markup>)]) -> Markup {
    html! {
        dl {
            @for (name, value) in rows {
                @if let Some(value) = value {
                    div { dt { (name) } dd { (value) } }
                }
            }
        }
    }
}
