//! The page that leads to the pages that are written as files.

use maud::html;

use super::{parts, runs};
use crate::digest::CoreHash;
use crate::server::address;
use crate::server::visit::HtmlPage;
use crate::vault::list::ListAnswer;

/// Makes the page of these rows, and of the differences between two artifacts.
pub(in crate::server) fn page(answer: &ListAnswer, pair: Option<(CoreHash, CoreHash)>) -> HtmlPage {
    let body = html! {
        h1 { "Exported artifacts" }
        @if let Some((one, other)) = pair {
            p {
                a href=(address::diff(one, Some(other))) { "Differences" }
                " between " (parts::hash(one)) " and " (parts::hash(other))
            }
        }
        (runs::table(answer))
    };
    HtmlPage { title: "Exported artifacts".to_owned(), section: "", body }
}
