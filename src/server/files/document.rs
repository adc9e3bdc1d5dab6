//! Whole documents that need no other file: the style sheet and the script stand in them.

use maud::{DOCTYPE, PreEscaped, html};

use crate::digest::Digest;
use crate::server::assets::{SCRIPT, STYLE};
use crate::server::text::{line, title_line};

/// The layout of the pages in files.
pub(super) struct HtmlFileLayout<'d> {
    /// The name of the file that leads to all others.
    pub(super) index: &'d str,
    /// The name of the vault.
    pub(super) vault: &'d str,
}

/// Returns what a document may load and run: what stands in it.
fn policy() -> String {
    let hash = |text: &str| encode_base64(Digest::from_content(text.as_bytes()).as_bytes());
    let (style, script) = (hash(STYLE.text), hash(SCRIPT.text));
    format!(
        "default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; img-src data:; \
         form-action 'none'; base-uri 'none'"
    )
}

impl HtmlFileLayout<'_> {
    /// Returns the document with a page, whose links lead to files.
    pub(super) fn with(&self, title: &str, body: String) -> String {
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

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes `bytes` in base64 with padding, as the hashes of a content security policy are written.
pub(super) fn encode_base64(bytes: &[u8]) -> String {
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let bits =
            three.iter().fold(0_u32, |bits, byte| (bits << 8) | u32::from(*byte)) << (8 * (3 - three.len()));
        for place in 0..4 {
            let digit =
                DIGITS.get(((bits >> (18 - 6 * place)) & 63) as usize).filter(|_| place <= three.len());
            text.push(digit.map_or('=', |digit| char::from(*digit)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn style_and_script_cannot_end_before_their_elements() {
        assert!(!STYLE.text.contains("</") && !SCRIPT.text.contains("</") && !SCRIPT.text.contains("<!--"));
    }

    #[test]
    fn bytes_are_encoded_with_padding() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(encode_base64(bytes.as_bytes()), text);
        }
        assert_eq!(encode_base64(&[255, 239, 190]), "/+++");
    }
}
