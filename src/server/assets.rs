//! The style sheet and the script of all pages.

use maud::{Markup, html};

use crate::display::brief;

/// A file that pages refer to.
pub(super) struct Asset {
    pub(super) name: &'static str,
    pub(super) content_type: &'static str,
    pub(super) text: &'static str,
}

/// The style sheet.
pub(super) const STYLE: Asset = Asset {
    name: "style.css",
    content_type: "text/css; charset=utf-8",
    text: include_str!("assets/style.css"),
};

/// The script.
pub(super) const SCRIPT: Asset = Asset {
    name: "script.js",
    content_type: "text/javascript; charset=utf-8",
    text: include_str!("assets/script.js"),
};

/// Returns the file with this name.
pub(super) fn named(name: &str) -> Option<&'static Asset> {
    const FILES: &[Asset] = &[STYLE, SCRIPT];
    FILES.iter().find(|asset| asset.name == name)
}

/// A bar of a chart.
pub(super) struct Bar {
    pub(super) value: u64,
    /// The text of the bar: its category and its value.
    pub(super) label: String,
    pub(super) address: Option<String>,
}

/// The height of a chart in user units; a bar is `BAR` wide.
const HEIGHT: u64 = 48;
const BAR: u64 = 8;

/// Draws a bar for each value. `title` says what the chart shows.
pub(super) fn bars(title: &str, bars: &[Bar]) -> Markup {
    let most = bars.iter().map(|bar| bar.value).max().unwrap_or(0).max(1);
    let width = (bars.len() as u64).max(1) * BAR;
    html! {
        svg.bars viewBox=(format!("0 0 {width} {HEIGHT}")) preserveAspectRatio="none" role="group" aria-label=(title) {
            @for (index, bar) in bars.iter().enumerate() {
                (linked(bar.address.as_deref(), &bar.label, &bar_at(index as u64 * BAR, bar, most)))
            }
        }
    }
}

fn bar_at(x: u64, bar: &Bar, most: u64) -> Markup {
    let height = match bar.value {
        0 => 0,
        value => (u128::from(value) * u128::from(HEIGHT) / u128::from(most)).max(2),
    };
    let y = u128::from(HEIGHT) - height;
    html! {
        g {
            title { (bar.label) }
            rect.room x=(x) y="0" width=(BAR) height=(HEIGHT) {}
            rect.bar x=(x + 1) y=(y) width=(BAR - 2) height=(height) {}
        }
    }
}

/// Returns `drawing` as a link, if there is an address. What it leads to can also be reached without the drawing, so it is
/// no stop of the Tab key. `label` is untrusted text.
pub(super) fn linked(address: Option<&str>, label: &str, drawing: &Markup) -> Markup {
    html! {
        @match address {
            Some(address) => a href=(address) tabindex="-1" aria-label=(brief(label)) { (drawing) },
            None => (drawing),
        }
    }
}
