//! The page of an artifact that the vault has and that its catalog does not lead to.

use maud::html;

use super::parts;
use crate::digest::Digest;
use crate::display::size;
use crate::server::address;
use crate::server::text::{line, long_line};
use crate::server::visit::HtmlPage;
use crate::vault::resolve::RecoveredFiles;

/// Makes the page of the artifact that was found by a hash; `None` if only a file was. `reason` says why the catalog does
/// not lead there.
pub(super) fn page(hash: Digest, recovered: &RecoveredFiles, reason: &str) -> Option<HtmlPage> {
    let (core, kind) = recovered.artifact?;
    let noun = kind.noun();
    let body = html! {
        h1 { span.kind { (noun) } " " (format!("{hash:.12}")) }
        p.identity { code.copy { (hash) } }
        p.badge.caution {
            strong { "Recovered" }
            " The catalog does not lead to these bytes: " (long_line(reason)) ". They were found by their hash, and were read and hashed for this page."
        }
        @if core.0 != hash {
            p { "They are a capture of the artifact " (parts::hash(core)) "." }
        }
        p.faint { "Links, attributes and annotations are not shown. Check the vault to find the damage." }
        ul {
            @for file in &recovered.files {
                li {
                    @let name = Some(file.name.as_str()).filter(|name| !name.is_empty());
                    a href=(address::recovered_bytes(hash, name)) download="" {
                        @if let Some(name) = name { (line(name)) } @else { "Download the bytes" }
                    }
                    " " (size(file.bytes.len() as u64))
                }
            }
        }
    };
    Some(HtmlPage { title: format!("{noun} {hash:.12}"), section: "/artifacts", body })
}
