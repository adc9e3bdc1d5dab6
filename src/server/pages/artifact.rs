//! The page of an artifact.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::thread;

use maud::{Markup, html};

use super::audits::PageAudit;
use super::parts::ArtifactNames;
use super::selection::TranscriptSelection;
use super::{annotate, audits, parts, search, transcript};
use crate::artifact::{AttributeInfo, ValueType};
use crate::clock;
use crate::digest::{CoreHash, Digest};
use crate::display::{counted, size};
use crate::formats;
use crate::server::address;
use crate::server::frame::{exact_time, line, long_line, number, time};
use crate::server::visit::{HtmlPage, Medium, PageError, PageRequest, ResponseContent};
use crate::storage::ErrorKind;
use crate::vault::audit::ContractTerms;
use crate::vault::details::{AttributeSummary, CaptureSummary};
use crate::vault::links::{Direction, LinkSummary};
use crate::vault::resolve::{RecoveredFiles, ResolveRequest};
use crate::vault::show::{ShowAnswer, ShowRequest};
use crate::vault::view::{ViewAnswer, ViewFilter, ViewRequest};
use crate::vault::{LocatedCapture, LookupError};

/// Maximum number of values listed per attribute.
const MAX_VALUES: usize = 20;

/// Maximum number of captures that are listed.
const MAX_LISTED: usize = 200;

/// Maximum number of links with one relation to artifacts of one kind that are listed.
const MAX_GROUP: usize = 100;

/// Maximum number of these that are listed without being asked for.
const MAX_OPEN: usize = 10;

/// Artifacts of up to this size are hashed for the page.
const MAX_HASHED: u64 = 64 << 20;

/// Makes the page of an artifact. If the catalog does not lead to it, its full hash leads to its bytes.
pub(in crate::server) fn page(visit: &PageRequest<'_>) -> Result<ResponseContent, PageError> {
    let found = match cataloged(visit) {
        Err(PageError::Lookup(error)) => Err(error),
        Err(PageError::Store(error)) => Err(error.into()),
        found => return found,
    };
    let reason = found.as_ref().err().map(LookupError::to_string).unwrap_or_default();
    let request = ResolveRequest::new(visit.name);
    let page = request.or_recovered(visit.vault, found, |recovered| {
        let hash = request.prefix()?.whole()?;
        Some(ResponseContent::Page(recovered_page(hash, &recovered, &reason)))
    });
    Ok(page?)
}

fn cataloged(visit: &PageRequest<'_>) -> Result<ResponseContent, PageError> {
    let located = search::artifact_of_path(visit)?;
    let core = located.artifact.core;
    // Parameters that are valid are ASCII, so that they can be in the address of a redirect.
    let selection = TranscriptSelection::new(visit)?;
    if visit.name != core.to_string() {
        let query = visit.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        return Ok(ResponseContent::Redirect(address::artifact(core) + &query));
    }
    let (content, answer) = read(visit, &located, selection);
    let answer = answer?;
    let groups = link_groups(&answer.links);
    let view = readable(content)?;
    let audits = PageAudit::read(visit, &answer, selection);
    let linked = linked(&answer, &groups).chain(view.iter().flat_map(transcript::sources));
    let names =
        ArtifactNames::read(visit, linked.chain(audits.iter().flat_map(PageAudit::artifacts)).collect())?;
    let noun = formats::bare_noun(&answer.artifact.kind);
    let checked = match &view {
        Ok(ViewAnswer { core_checked: true, .. }) => CoreHashCheck::Computed(None),
        _ => check(visit, &located)?,
    };
    let audits = html! { @for audit in &audits { (audit.section(&names, selection.is_file)) } };
    let body = html! {
        h1 {
            span.kind { (noun) } " " (line(&name(&answer)))
            @for tag in &answer.tags { " " span.tag { "@" (line(tag)) } }
        }
        div.status {
            (badge(&checked, &answer, visit.medium))
            (measures(&answer, selection))
        }
        @match &checked {
            CoreHashCheck::Computed(Some(terms)) => {
                (contents(&answer, true))
                (audits::section(core, terms))
                (audits)
                (steps(&view, selection, &names))
            },
            _ => {
                (contents(&answer, false))
                (steps(&view, selection, &names))
                (audits)
            },
        }
        (facts(visit, &answer, &names))
        (links(&answer, &groups, &names))
        (attributes(&answer.attributes))
        (captures(&answer))
    };
    Ok(ResponseContent::Page(HtmlPage {
        title: format!("{noun} {}", name(&answer)),
        section: "/artifacts",
        body,
    }))
}

/// Returns the artifacts that the page lists as linked to this one.
fn linked<'a>(answer: &'a ShowAnswer, groups: &'a [LinkGroup<'_>]) -> impl Iterator<Item = CoreHash> + 'a {
    let listed = groups.iter().flat_map(|group| group.links.iter().take(MAX_GROUP));
    listed.filter_map(|link| link.target.core_hash).chain(answer.extended_by.iter().copied())
}

/// Leads to the sections of the page.
fn contents(answer: &ShowAnswer, has_terms: bool) -> Markup {
    html! {
        nav.pages aria-label="On this page" {
            @if has_terms { a href="#terms" { "Terms" } a href="#audits" { "Audits" } }
            a href="#content-of-artifact" { "Content" }
            a href="#facts" { "Facts" }
            a href="#links" { (counted(answer.links.len() as u64, "link")) }
            a href="#attributes" { "Attributes" }
            a href=(address::diff(answer.artifact.core_hash, None)) { "Compare with…" }
            a href="#captures" { (counted(answer.captures.len() as u64, "capture")) }
        }
    }
}

/// The selected steps, or why they cannot be read.
type Content = Result<ViewAnswer, LookupError>;

/// Reads the selected steps, and at the same time what the catalog says: for a large run, either takes about as long. The core
/// hash is computed from the bytes with the steps, so that they are read once; those of a contract are read for its terms.
fn read(
    visit: &PageRequest<'_>,
    located: &LocatedCapture,
    selection: TranscriptSelection,
) -> (Content, Result<ShowAnswer, PageError>) {
    let artifact = located.artifact.core;
    let check_core = located.capture.size <= MAX_HASHED && located.artifact.kind != formats::TERMS.name();
    let request = ViewRequest { check_core, ..selection.request(artifact) };
    let vault = visit.vault;
    thread::scope(|scope| {
        let content = scope.spawn(|| vault.run(&request));
        let answer = visit.run(&ShowRequest { artifact });
        (content.join().unwrap_or_else(|panic| resume_unwind(panic)), answer)
    })
}

/// Returns the steps, or why the document cannot be read.
fn readable(content: Content) -> Result<Result<ViewAnswer, String>, PageError> {
    match content {
        Ok(answer) => Ok(Ok(answer)),
        Err(error) if is_defect(&error) => Ok(Err(error.to_string())),
        Err(error) => Err(error.into()),
    }
}

fn steps(view: &Result<ViewAnswer, String>, selection: TranscriptSelection, names: &ArtifactNames) -> Markup {
    match view {
        Ok(answer) => transcript::section(selection, answer, names),
        Err(error) => html! {
            section { h2 id="content-of-artifact" { "Content" } p.failure { (long_line(error)) "." } }
        },
    }
}

/// Returns whether the stored document is damaged or cannot be interpreted.
pub(in crate::server) fn is_defect(error: &LookupError) -> bool {
    match error {
        LookupError::Unreadable { .. } => true,
        LookupError::Store(error) => error.kind() == ErrorKind::Damaged,
        _ => false,
    }
}

/// Returns what the artifact is called: the id of its run, or its hash.
fn name(answer: &ShowAnswer) -> String {
    let run_id = parts::run_id(&answer.attributes).map(str::to_owned);
    run_id.unwrap_or_else(|| format!("{:.12}", answer.artifact.core_hash))
}

/// The attributes that say how a run went, each with the noun for one of what it counts.
const MEASURES: [(AttributeInfo, &str); 5] = [
    (AttributeInfo::DURATION_MS, ""),
    (AttributeInfo::TOKENS, "token"),
    (AttributeInfo::COST_USD, "USD"),
    (AttributeInfo::TOOL_CALLS, "tool call"),
    (AttributeInfo::ERRORS, "error"),
];

/// Returns in a line when a run was made, with which models, and how it went.
fn measures(answer: &ShowAnswer, selection: TranscriptSelection) -> Markup {
    let values = |info: AttributeInfo| {
        answer
            .attributes
            .iter()
            .filter(move |attribute| attribute.name == info.name)
            .map(|one| one.value.as_str())
    };
    let errors = selection.filtered(Some(ViewFilter::Errors)).address(answer.artifact.core_hash);
    html! {
        @for model in values(AttributeInfo::MODEL_ID).take(parts::MAX_MODELS) { strong { (line(model)) } " " }
        @for (info, noun) in MEASURES {
            @for value in values(info).take(1).filter(|value| *value != "0") {
                @let is_plural = info.values == ValueType::Count && value != "1";
                @let shown = html! { (parts::attribute_value(info, value)) @if !noun.is_empty() { " " (noun) } @if is_plural { "s" } };
                @if info.name == AttributeInfo::ERRORS.name { a.bad href=(errors) { (shown) } } @else { span { (shown) } }
                " "
            }
        }
        @if let Some(created) = &answer.created_at { span.faint { (line(created)) } }
    }
}

/// The result of reading the stored bytes for the page.
enum CoreHashCheck {
    /// The core hash was computed from them. If they are a contract, these are its terms.
    Computed(Option<ContractTerms>),
    /// They are too large to be read for a page.
    TooLarge,
    /// They are not what was admitted, or cannot be interpreted.
    Failed(String),
}

fn check(visit: &PageRequest<'_>, located: &LocatedCapture) -> Result<CoreHashCheck, PageError> {
    if located.capture.size > MAX_HASHED {
        return Ok(CoreHashCheck::TooLarge);
    }
    match visit.vault.read_core(located) {
        Ok(bytes) => {
            let is_contract = located.artifact.kind == formats::TERMS.name();
            let terms = is_contract.then(|| ContractTerms::read(&bytes).ok()).flatten();
            Ok(CoreHashCheck::Computed(terms))
        }
        Err(error) if is_defect(&error) => Ok(CoreHashCheck::Failed(error.to_string())),
        Err(error) => Err(error.into()),
    }
}

/// States what was checked, and when; the details of a success are folded.
fn badge(checked: &CoreHashCheck, answer: &ShowAnswer, medium: Medium) -> Markup {
    let preferred = answer.captures.iter().find(|capture| capture.preferred);
    let warnings = preferred.map_or(0, |capture| capture.violations.len() as u64);
    let admitted = preferred.map_or(answer.artifact.added_at, |capture| capture.added_at);
    let rules = html! {
        p.faint {
            "The rules of its kind were checked when it was added, at " (exact_time(admitted.0))
            @if warnings == 0 { ", without warnings." } @else { ", with " (counted(warnings, "warning")) "." }
        }
    };
    html! {
        @match checked {
            CoreHashCheck::Computed(_) => details.badge.good {
                summary { "Verified" }
                p {
                    "The stored bytes were read and hashed "
                    @match medium {
                        Medium::Response => { "for this page, at " (exact_time(clock::now())) },
                        Medium::File => { "when this page was written" },
                    }
                    ": they have the core hash " code { (answer.artifact.core_hash) } "."
                }
                (rules)
            },
            CoreHashCheck::TooLarge => details.badge.caution {
                summary { "Not read" }
                p { "The stored bytes are too large to be hashed for this page; a download is hashed." }
                (rules)
            },
            CoreHashCheck::Failed(message) => div.badge.bad {
                strong { "Damaged" } " " (long_line(message)) "."
                (rules)
            },
        }
        @if warnings > 0 { a.caution href="#captures" { (counted(warnings, "warning")) } }
    }
}

/// Returns what is known of the artifact beside its content.
fn facts(visit: &PageRequest<'_>, answer: &ShowAnswer, names: &ArtifactNames) -> Markup {
    let ShowAnswer { artifact, created_at, pinned, extended_by, mentions, .. } = answer;
    let seen = html! {
        (time(artifact.seen_at.0))
        @if artifact.added_at < artifact.seen_at { ", first " (time(artifact.added_at.0)) }
    };
    let mentions = mentions.iter().map(|mention| format!("{}: {}", mention.role, number(mention.count)));
    let mentions = mentions.collect::<Vec<_>>().join(", ");
    let [tags, labels, note] = annotate::rows(visit, answer);
    let rows = [
        ("core hash", Some(html! { code.copy { (artifact.core_hash) } })),
        ("created", created_at.as_deref().map(|created| html! { (line(created)) })),
        ("seen", Some(seen)),
        tags,
        labels,
        note,
        ("pinned", pinned.then(|| html! { "protected from removal" })),
        (
            "extended by",
            (!extended_by.is_empty()).then(|| html! { @for core in extended_by { (names.link(*core)) " " } }),
        ),
        ("mentions", (!mentions.is_empty()).then(|| html! { (long_line(&mentions)) })),
    ];
    html! { section { h2 id="facts" { "Facts" } (parts::fields(&rows)) } }
}

/// Links with one relation to artifacts of one kind.
struct LinkGroup<'a> {
    direction: Direction,
    relation: &'a str,
    /// `None` if what they lead to is not in the vault.
    kind: Option<&'a str>,
    links: Vec<&'a LinkSummary>,
}

/// Groups links by direction, relation and kind, outgoing ones first.
fn link_groups(links: &[LinkSummary]) -> Vec<LinkGroup<'_>> {
    let mut groups: BTreeMap<_, Vec<&LinkSummary>> = BTreeMap::new();
    for link in links {
        let key = (link.direction, link.relation.as_str(), link.target.kind.as_deref());
        groups.entry(key).or_default().push(link);
    }
    let group = |((direction, relation, kind), links)| LinkGroup { direction, relation, kind, links };
    groups.into_iter().map(group).collect()
}

fn links(answer: &ShowAnswer, groups: &[LinkGroup<'_>], names: &ArtifactNames) -> Markup {
    html! {
        section {
            h2 id="links" { "Links" }
            @if groups.is_empty() {
                p.faint { "No artifact in the vault is linked to it." }
            } @else {
                p { a href=(address::graph(answer.artifact.core_hash, 2)) { "Graph" } }
                @for group in groups { (shown_group(group, names)) }
            }
        }
    }
}

/// Returns links below a line that says what they are and how many. Long lists are folded.
fn shown_group(group: &LinkGroup<'_>, names: &ArtifactNames) -> Markup {
    let LinkGroup { direction, relation, kind, links } = group;
    let more = links.len().saturating_sub(MAX_GROUP) as u64;
    html! {
        details.links open[links.len() <= MAX_OPEN] {
            summary {
                (parts::relation(*direction, relation)) " "
                @if let Some(kind) = kind { (parts::kind(kind)) } @else { span.missing { "not in the vault" } }
                " " (number(links.len() as u64))
            }
            ul.listed {
                @for link in links.iter().take(MAX_GROUP) {
                    li {
                        (names.link_end(&link.target))
                        @if link.manual { " " span.faint { "added manually" } }
                        @if let Some(because) = &link.because { " " span.faint { (line(because)) } }
                        @if let Some(core) = link.target.core_hash { (names.excerpt_line(core)) }
                    }
                }
                @if more > 0 { li.faint { "and " (counted(more, "more link")) } }
            }
        }
    }
}

fn attributes(attributes: &[AttributeSummary]) -> Markup {
    html! {
        section {
            h2 id="attributes" { "Attributes" }
            @if attributes.is_empty() { p.faint { "None." } }
            dl {
                @for group in attributes.chunk_by(|one, other| one.name == other.name) {
                    @if let Some(AttributeSummary { name, .. }) = group.first() {
                        div {
                            dt { (line(name)) }
                            dd { (values(group)) }
                        }
                    }
                }
            }
        }
    }
}

fn values(group: &[AttributeSummary]) -> Markup {
    html! {
        @for (index, AttributeSummary { name, value }) in group.iter().take(MAX_VALUES).enumerate() {
            @if index > 0 { ", " }
            a href=(address::attribute(name, value)) { (line(value)) }
        }
        @if let more @ 1.. = group.len().saturating_sub(MAX_VALUES) { " and " (more) " more" }
    }
}

fn captures(answer: &ShowAnswer) -> Markup {
    let more = answer.captures.len().saturating_sub(MAX_LISTED) as u64;
    html! {
        section {
            h2 id="captures" { "Captures" }
            p.faint { "The exact bytes that were received. Two captures of an artifact have the same core." }
            @for capture in answer.captures.iter().take(MAX_LISTED) { (shown_capture(answer, capture)) }
            @if more > 0 { p.faint { "and " (counted(more, "more capture")) } }
        }
    }
}

fn shown_capture(answer: &ShowAnswer, capture: &CaptureSummary) -> Markup {
    let is_signed = parts::can_be_signed(&answer.artifact.kind);
    html! {
        div.capture {
            p {
                code { (capture.capture_hash) }
                @if capture.preferred && answer.captures.len() > 1 { " " span.tag { "preferred" } }
            }
            p {
                (size(capture.size)) ", added " (time(capture.added_at.0))
                @if capture.seen_at > capture.added_at { ", seen again " (time(capture.seen_at.0)) }
                @if is_signed { ", " (parts::signature(capture.signature, capture.key_id.as_deref())) }
            }
            @if let Some(path) = &capture.source_path {
                p { "Read from " @if path == "-" { "standard input" } @else { code { (long_line(path)) } } }
            }
            (downloads(answer, capture))
            @if !capture.violations.is_empty() {
                ul {
                    @for violation in &capture.violations {
                        li.caution {
                            (line(&violation.rule_id)) " " (line(&violation.path)) ": " (long_line(&violation.message))
                        }
                    }
                }
            }
        }
    }
}

/// Returns links to the bytes of a capture and of its core. They are hashed again when they are read.
fn downloads(answer: &ShowAnswer, capture: &CaptureSummary) -> Markup {
    let (core, hash) = (answer.artifact.core_hash, capture.capture_hash);
    let has_several = !answer.members.is_empty();
    html! {
        p {
            @if !has_several {
                a href=(address::bytes(core, hash, None)) download="" { "Download the bytes" }
                " · "
            }
            a href=(address::core_bytes(core, hash)) download="" { "Download the core" }
        }
        @if has_several && capture.preferred {
            ul {
                @for member in &answer.members {
                    li {
                        a href=(address::bytes(core, hash, Some(&member.name))) download="" { (line(&member.name)) }
                        " " (size(member.size))
                    }
                }
            }
        }
    }
}

/// Makes the page of the bytes that were found by a hash. `reason` says why the catalog does not lead there.
fn recovered_page(hash: Digest, recovered: &RecoveredFiles, reason: &str) -> HtmlPage {
    let noun = recovered.artifact.map_or("bytes", |(_, kind)| kind.noun());
    let body = html! {
        h1 { span.kind { (noun) } " " (format!("{hash:.12}")) }
        p.identity { code.copy { (hash) } }
        p.badge.caution {
            strong { "Recovered" }
            " The catalog does not lead to these bytes: " (long_line(reason)) ". They were found by their hash, and were read and hashed for this page."
        }
        @match recovered.artifact {
            Some((core, _)) if core.0 == hash => {}
            Some((core, _)) => p { "They are a capture of the artifact " (parts::hash(core)) "." },
            None => p { "The vault does not say which artifact they belong to." },
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
    HtmlPage { title: format!("{noun} {hash:.12}"), section: "/artifacts", body }
}
