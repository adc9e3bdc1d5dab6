//! The common parts of all pages: the head, the navigation, and the page of an error.

use std::path::Path;

use maud::{DOCTYPE, Markup, html};

use super::address;
use super::text::{line, long_line, title_line};
use super::visit::{HtmlPage, PageError};

/// The pages that every page leads to: path and name.
const SECTIONS: [(&str, &str); 5] = [
    ("/", "Runs"),
    ("/artifacts", "Artifacts"),
    ("/diff", "Compare"),
    ("/stats", "Statistics"),
    ("/journal", "Journal"),
];

/// The layout of a page.
pub(super) struct PageLayout<'f> {
    /// The path of the vault.
    pub(super) vault: &'f Path,
    /// Whether pages have forms that change the vault.
    pub(super) allows_write: bool,
}

impl PageLayout<'_> {
    /// Returns the whole document.
    pub(super) fn document(&self, page: &HtmlPage) -> String {
        let vault = self.vault.file_name().unwrap_or_default().to_string_lossy();
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (title_line(&page.title)) " – runvault" }
                    link rel="icon" href="data:,";
                    link rel="stylesheet" href="/assets/style.css";
                    script src="/assets/script.js" {}
                }
                body {
                    a.skip href="#content" { "Skip to the content" }
                    header {
                        (navigation(page.section))
                        (search_box())
                    }
                    main id="content" tabindex="-1" { (page.body) }
                    footer {
                        p {
                            "Vault " (line(&vault)) " · runvault " (env!("CARGO_PKG_VERSION"))
                            @if self.allows_write { " · tags, labels and notes can be changed" } @else { " · read only" }
                        }
                    }
                }
            }
        }
        .into_string()
    }
}

fn navigation(section: &str) -> Markup {
    html! {
        nav aria-label="Sections" {
            ul {
                @for (path, name) in SECTIONS {
                    li { a href=(path) aria-current=[(path == section).then_some("page")] { (name) } }
                }
            }
        }
    }
}

fn search_box() -> Markup {
    html! {
        form.go action="/go" role="search" {
            label.hidden for="go" { "Words, a hash, a tag or a run id" }
            input #go name="q" type="search" placeholder="Words, hash, @tag, run id" autocomplete="off";
            button { "Search" }
        }
    }
}

/// Returns the page of an error.
pub(super) fn failure(error: &PageError, hint: Option<&str>) -> HtmlPage {
    let message = error.to_string();
    let candidates = error.candidates();
    let body = html! {
        h1 { (title(error)) }
        p.failure { (long_line(&message)) "." }
        @if let Some(hint) = hint {
            p { "On the command line: " (hint) "." }
        }
        @if !candidates.is_empty() {
            ul {
                @for core in &candidates {
                    li { a href=(address::artifact(*core)) { code { (core) } } }
                }
            }
        }
        p { a href="/artifacts" { "All artifacts" } }
    };
    HtmlPage { title: title(error).to_owned(), section: "", body }
}

fn title(error: &PageError) -> &'static str {
    match error.status().as_u16() {
        300 => "Several artifacts",
        400 => "Invalid request",
        404 => "Not found",
        410 => "Removed",
        _ => "The page could not be made",
    }
}
