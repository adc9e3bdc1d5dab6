//! The runs that are being recorded.

use maud::{Markup, html};

use crate::display::counted;
use crate::server::frame::{line, number, time};
use crate::server::visit::{HtmlPage, PageError, PageRequest, ResponseContent};
use crate::vault::unfinished::{UnfinishedRun, UnfinishedRunState, UnfinishedRunsRequest};

/// Makes the page of the runs that are being recorded, which the script reads again and again.
pub(in crate::server) fn page(visit: &PageRequest<'_>) -> Result<ResponseContent, PageError> {
    let recordings = section(visit)?;
    let title = "Recordings".to_owned();
    let body = html! {
        h1 { (title) }
        (recordings)
        p { a href="/" { "All runs" } }
    };
    Ok(ResponseContent::Page(HtmlPage { title, section: "", body }))
}

/// Shows the runs that are being recorded; an empty section if there are none.
pub(super) fn section(visit: &PageRequest<'_>) -> Result<Markup, PageError> {
    let runs = visit.run(&UnfinishedRunsRequest::default())?.runs;
    Ok(html! {
        section.recordings {
            @if !runs.is_empty() {
                h2 { "Being recorded" }
                ul { @for run in &runs { li { (recording(run)) } } }
            }
        }
    })
}

fn recording(run: &UnfinishedRun) -> Markup {
    let class = match run.state {
        UnfinishedRunState::Recording => "good",
        UnfinishedRunState::Interrupted => "caution",
    };
    html! {
        span class=(class) { (run.state.name()) } " "
        span.hash { (line(&run.run_id)) } ": "
        (counted(run.calls, "call"))
        @if run.failed > 0 { ", " span.bad { (number(run.failed)) " failed" } }
        @for model in &run.models { ", " (line(model)) }
        @if let Some(at) = run.started_at { ", since " (time(at.0)) }
        @for (key, value) in &run.labels { " " span.tag { (line(key)) "=" (line(value)) } }
    }
}
