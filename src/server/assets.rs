//! The style sheet and the script of all pages.

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
