//! Pages as files, which link to each other and to nothing else.
//!
//! The pages are those of the server. Of the artifacts that are written, everything is: their transcripts, the graphs of
//! their links and their bytes. Links to other pages are left out, or are text.

mod names;
mod page_starts;
mod rewrite;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;

use axum::http::Uri;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use maud::{DOCTYPE, PreEscaped, html};

use super::frame::{line, title_line};
use super::pages;
use super::visit::{Download, HtmlPage, Medium, PageError, PageRequest, ResponseContent, SCRIPT, STYLE};
use crate::digest::{CoreHash, Digest};
use crate::formats;
use crate::storage::StorageError;
use crate::vault::Vault;
use crate::vault::answers::PromptAnswers;
use crate::vault::journal::JournalHeadRequest;
use crate::vault::list::{ListAnswer, ListRequest};
use crate::vault::show::ShowRequest;
use names::{INDEX, PageFileNames, PendingPageFile};
use page_starts::PageStarts;

/// Artifacts whose pages are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageSelection {
    /// Artifacts that are written with those of the same run and the contracts that govern it. If they are two of one kind,
    /// or up to eight recordings of one kind, the differences between them are written too.
    pub artifacts: Vec<CoreHash>,
    /// Further artifacts.
    pub others: Vec<CoreHash>,
}

/// Counts of the written artifacts, files and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WrittenPages {
    /// Number of artifacts.
    pub artifacts: u64,
    /// Number of files.
    pub files: u64,
    /// Their size in bytes.
    pub bytes: u64,
}

/// The reason why pages were not written.
#[derive(Debug, thiserror::Error)]
pub enum WritePagesError {
    /// The vault cannot be read.
    #[error(transparent)]
    Store(#[from] StorageError),
    /// The vault was changed meanwhile, so that the pages would not agree with each other.
    #[error("the vault was changed while its pages were written")]
    Changed,
    /// A page cannot be made.
    #[error("the page {name} cannot be made: {message}")]
    Page {
        /// The name of its file.
        name: String,
        /// The cause.
        message: String,
    },
    /// A file cannot be written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Passes the pages of artifacts and all that they link to to `write`, each with the name of its file. The names contain no
/// separators of paths; `index.html` leads to all others. The same vault and the same selection give the same files.
///
/// # Errors
/// Returns a [`WritePagesError`]; what was written is then incomplete.
pub fn write_pages(
    vault: &Vault,
    selection: &PageSelection,
    write: &mut dyn FnMut(&str, &[u8]) -> io::Result<()>,
) -> Result<WrittenPages, WritePagesError> {
    let head = vault.run(&JournalHeadRequest {})?;
    let artifacts = artifacts(vault, selection)?;
    let list = list(vault, &artifacts)?;
    let kinds = kinds(&list, &artifacts);
    let compared = compared(&kinds, selection);
    let prompts = prompts(vault, &artifacts)?;
    let starts = PageStarts::read(vault, &kinds).map_err(|error| failed(INDEX, &error.into()))?;
    let names = PageFileNames::new(&kinds, prompts.keys().copied().collect(), compared.to_vec(), starts);
    let mut writer = PageFileWriter { vault, names, prompts, write, written: WrittenPages::default() };
    writer.written.artifacts = artifacts.len() as u64;
    writer.all(&list, compared)?;
    if vault.run(&JournalHeadRequest {})? != head {
        return Err(WritePagesError::Changed);
    }
    Ok(writer.written)
}

/// Returns all artifacts that are written, by core hash.
fn artifacts(vault: &Vault, selection: &PageSelection) -> Result<Vec<CoreHash>, WritePagesError> {
    let named: BTreeSet<CoreHash> = selection.artifacts.iter().copied().collect();
    let rows = list(vault, &named.iter().copied().collect::<Vec<_>>())?.rows;
    let members = rows.iter().flat_map(|row| row.members.iter().map(|member| member.artifact.core_hash));
    let runs: BTreeSet<CoreHash> = named.into_iter().chain(members).collect();
    let mut all: BTreeSet<CoreHash> = selection.others.iter().copied().collect();
    for run in &runs {
        all.extend(pages::audits::contracts(&vault.run(&ShowRequest { artifact: *run })?));
    }
    all.extend(runs);
    Ok(all.into_iter().collect())
}

fn list(vault: &Vault, artifacts: &[CoreHash]) -> Result<ListAnswer, WritePagesError> {
    if artifacts.is_empty() {
        return Ok(ListAnswer::default());
    }
    Ok(vault.run(&ListRequest {
        artifacts: artifacts.to_vec(),
        attributes: pages::runs::EXCERPTS.iter().map(|info| info.name.to_owned()).collect(),
        ..ListRequest::default()
    })?)
}

/// Returns the artifacts with their kinds.
fn kinds(list: &ListAnswer, artifacts: &[CoreHash]) -> Vec<(CoreHash, String)> {
    let members = list.rows.iter().flat_map(|row| &row.members).map(|member| &member.artifact);
    let known: HashMap<CoreHash, &str> =
        members.map(|artifact| (artifact.core_hash, artifact.kind.as_str())).collect();
    let kind = |core: &CoreHash| known.get(core).copied().unwrap_or_default().to_owned();
    artifacts.iter().map(|core| (*core, kind(core))).collect()
}

/// Returns the selected artifacts if they are compared: two of one kind, or several recordings of one kind.
fn compared<'s>(kinds: &[(CoreHash, String)], selection: &'s PageSelection) -> &'s [CoreHash] {
    let kind = |core: CoreHash| kinds.iter().find(|(known, _)| *known == core).map(|(_, kind)| kind.as_str());
    let artifacts = selection.artifacts.as_slice();
    let distinct: BTreeSet<&CoreHash> = artifacts.iter().collect();
    let of_kinds: BTreeSet<Option<&str>> = artifacts.iter().map(|core| kind(*core)).collect();
    let are_recordings = formats::recordings().any(|kind| of_kinds.contains(&Some(kind.name())));
    let most = if are_recordings { pages::diff::RUNS } else { 2 };
    let are_compared = of_kinds.len() == 1 && distinct.len() == artifacts.len();
    if are_compared && (2..=most).contains(&artifacts.len()) { artifacts } else { &[] }
}

/// Returns the prompts with several answers in artifacts, each of which has a page.
fn prompts(
    vault: &Vault,
    artifacts: &[CoreHash],
) -> Result<BTreeMap<Digest, PromptAnswers>, WritePagesError> {
    if artifacts.is_empty() {
        return Ok(BTreeMap::new());
    }
    match vault.run(&pages::prompt::repeated(artifacts.to_vec())) {
        Ok(answer) => Ok(answer.prompts.into_iter().map(|prompt| (prompt.prompt_hash, prompt)).collect()),
        // The page of the artifact says so.
        Err(error) if pages::artifact::is_defect(&error) => Ok(BTreeMap::new()),
        Err(error) => Err(failed(INDEX, &error.into())),
    }
}

struct PageFileWriter<'w> {
    vault: &'w Vault,
    names: PageFileNames,
    prompts: BTreeMap<Digest, PromptAnswers>,
    write: &'w mut dyn FnMut(&str, &[u8]) -> io::Result<()>,
    written: WrittenPages,
}

impl PageFileWriter<'_> {
    /// Writes the index, and everything that it leads to.
    fn all(&mut self, list: &ListAnswer, compared: &[CoreHash]) -> Result<(), WritePagesError> {
        self.page(INDEX, &pages::runs::index_page(list, compared))?;
        while let Some(PendingPageFile { address, name }) = self.names.next() {
            match self.content(&address, &name)? {
                ResponseContent::Page(page) => self.page(&name, &page)?,
                ResponseContent::Download(Download { bytes, .. }) => self.file(&name, &bytes)?,
                ResponseContent::Invalid(_)
                | ResponseContent::Unchanged(..)
                | ResponseContent::Changed(_)
                | ResponseContent::Redirect(_)
                | ResponseContent::Asset(_) => return Err(failed(&name, &PageError::NoPage)),
            }
        }
        Ok(())
    }

    /// Makes what is at an address.
    fn content(&self, address: &str, name: &str) -> Result<ResponseContent, WritePagesError> {
        let uri: Uri = address.parse().map_err(|_| failed(name, &PageError::NoPage))?;
        let path: Vec<&str> = uri.path().split('/').skip(1).collect();
        let visit = PageRequest {
            vault: self.vault,
            name: path.get(1).copied().unwrap_or_default(),
            uri: &uri,
            medium: Medium::File,
            prices: &[],
            form_token: None,
        };
        let content = match path.as_slice() {
            ["artifact", _] => pages::artifact::page(&visit),
            ["artifact", _, "graph"] => pages::graph::page(&visit),
            ["artifact", _, "bytes"] => pages::download::bytes(&visit),
            ["artifact", _, "core"] => pages::download::core(&visit),
            ["prompt", digest] => self.prompt(&visit, digest),
            ["diff"] => pages::diff::page(&visit),
            _ => Err(PageError::NoPage),
        };
        content.map_err(|error| failed(name, &error))
    }

    fn prompt(&self, visit: &PageRequest<'_>, digest: &str) -> Result<ResponseContent, PageError> {
        let digest = digest.parse().map_err(|_| PageError::NoPage)?;
        pages::prompt::page_with(visit, digest, self.prompts.get(&digest), None).map(ResponseContent::Page)
    }

    fn page(&mut self, name: &str, page: &HtmlPage) -> Result<(), WritePagesError> {
        let body = rewrite::rewrite(&page.body.0, &mut |address| self.names.target(address));
        let body = body.map_err(|error| failed(name, &PageError::BadRequest(error.to_string())))?;
        let vault = self.vault.path().file_name().unwrap_or_default().to_string_lossy();
        let document = HtmlFileLayout { index: INDEX, vault: &vault }.with(&page.title, body);
        self.file(name, document.as_bytes())
    }

    fn file(&mut self, name: &str, bytes: &[u8]) -> Result<(), WritePagesError> {
        (self.write)(name, bytes)?;
        self.written.files += 1;
        self.written.bytes += bytes.len() as u64;
        Ok(())
    }
}

fn failed(name: &str, error: &PageError) -> WritePagesError {
    WritePagesError::Page { name: name.to_owned(), message: error.to_string() }
}

/// The layout of the pages in files.
struct HtmlFileLayout<'d> {
    /// The name of the file that leads to all others.
    index: &'d str,
    /// The name of the vault.
    vault: &'d str,
}

/// Returns what a document may load and run: what stands in it.
fn policy() -> String {
    let hash = |text: &str| BASE64_STANDARD.encode(Digest::from_content(text.as_bytes()).as_bytes());
    let (style, script) = (hash(STYLE.text), hash(SCRIPT.text));
    format!(
        "default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; img-src data:; \
         form-action 'none'; base-uri 'none'"
    )
}

impl HtmlFileLayout<'_> {
    /// Returns the document with a page, whose links lead to files.
    fn with(&self, title: &str, body: String) -> String {
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(policy());
                    meta name="referrer" content="no-referrer";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (title_line(title)) " – runvault" }
                    link rel="icon" href="data:,";
                    style { (PreEscaped(STYLE.text)) }
                    script { (PreEscaped(SCRIPT.text)) }
                }
                body {
                    a.skip href="#content" { "Skip to the content" }
                    header {
                        nav aria-label="Sections" { ul { li { a href=(self.index) { "Index" } } } }
                    }
                    main id="content" tabindex="-1" { (PreEscaped(body)) }
                    footer { p { "From the vault " (line(self.vault)) " · runvault " (env!("CARGO_PKG_VERSION")) } }
                }
            }
        }
        .into_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn style_and_script_cannot_end_before_their_elements() {
        assert!(!STYLE.text.contains("</") && !SCRIPT.text.contains("</") && !SCRIPT.text.contains("<!--"));
    }
}
