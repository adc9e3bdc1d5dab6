//! Markdown from artifacts, as markup that runs and loads nothing.
//!
//! HTML in it stays text. Links lead to the web and to mail only, and state their addresses. Images are their descriptions
//! and addresses as text.

use maud::{Markup, PreEscaped, Render, html};
use pulldown_cmark::{Alignment, CodeBlockKind, Event, LinkType, Options, Parser, Tag, TagEnd};

use super::address::percent_encoded;
use super::frame::{block, line};

/// Elements within more others are left out; their texts are not.
const MAX_DEPTH: usize = 40;

/// The schemes of addresses that links may lead to.
const SCHEMES: [&str; 3] = ["https://", "http://", "mailto:"];

/// Returns whether an address leads elsewhere, as those in Markdown do.
pub(super) fn is_external(address: &str) -> bool {
    SCHEMES.iter().any(|scheme| {
        address.get(..scheme.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(scheme))
    })
}

/// Returns a text in Markdown as markup. A line feed in a paragraph is a line feed: texts of people and models often are
/// no Markdown.
pub(super) fn markdown(text: &str) -> Markup {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut writer = MarkdownWriter::default();
    for event in Parser::new_ext(text, options) {
        writer.event(&event);
    }
    PreEscaped(writer.out)
}

#[derive(Default)]
struct MarkdownWriter {
    out: String,
    /// What ends the elements that are open.
    ends: Vec<ElementEnd>,
    /// The alignments of the columns of the table that is open.
    alignments: Vec<Alignment>,
    is_in_head: bool,
    column: usize,
}

/// What ends an element.
enum ElementEnd {
    Tag(&'static str),
    /// Of a link or an image: the tag, the address, and where its text begins in the output.
    Address(&'static str, String, usize),
}

impl MarkdownWriter {
    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(*tag),
            Event::Text(text)
            | Event::Html(text)
            | Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text)
            | Event::FootnoteReference(text) => block(text).render_to(&mut self.out),
            Event::Code(text) => html! { code { (block(text)) } }.render_to(&mut self.out),
            Event::SoftBreak | Event::HardBreak => self.out.push_str("<br>"),
            Event::Rule => self.out.push_str("<hr>"),
            Event::TaskListMarker(is_done) => self.out.push_str(if *is_done { "☑ " } else { "☐ " }),
        }
    }

    fn start(&mut self, tag: &Tag<'_>) {
        if self.ends.len() >= MAX_DEPTH {
            return self.ends.push(ElementEnd::Tag(""));
        }
        match tag {
            Tag::Paragraph => self.open("<p>", "</p>"),
            // The headings of the page are above those of its texts.
            Tag::Heading { .. } => self.open("<p class=\"heading\">", "</p>"),
            Tag::BlockQuote(_) => self.open("<blockquote>", "</blockquote>"),
            Tag::CodeBlock(kind) => self.start_code(kind),
            Tag::HtmlBlock => self.open("<p class=\"literal\">", "</p>"),
            // The style sheet cannot place the marks of items where texts begin that are written from right to left.
            Tag::List(None) => self.open("<ul dir=\"auto\">", "</ul>"),
            Tag::List(Some(first)) => self.open(&format!("<ol dir=\"auto\" start=\"{first}\">"), "</ol>"),
            Tag::Item => self.open("<li>", "</li>"),
            Tag::Table(alignments) => {
                self.alignments.clone_from(alignments);
                self.open("<div class=\"scroll\" tabindex=\"0\"><table>", "</table></div>");
            }
            Tag::TableHead => {
                (self.is_in_head, self.column) = (true, 0);
                self.open("<thead><tr>", "</tr></thead>");
            }
            Tag::TableRow => {
                (self.is_in_head, self.column) = (false, 0);
                self.open("<tr>", "</tr>");
            }
            Tag::TableCell => self.start_cell(),
            Tag::Emphasis => self.open("<em>", "</em>"),
            Tag::Strong => self.open("<strong>", "</strong>"),
            Tag::Strikethrough => self.open("<s>", "</s>"),
            Tag::Link { link_type, dest_url, .. } => self.start_link(*link_type, dest_url),
            Tag::Image { dest_url, .. } => {
                self.out.push_str("<span class=\"image\">");
                self.ends.push(ElementEnd::Address("</span>", dest_url.to_string(), self.out.len()));
            }
            Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => self.open("", ""),
        }
    }

    fn open(&mut self, start: &str, end: &'static str) {
        self.out.push_str(start);
        self.ends.push(ElementEnd::Tag(end));
    }

    fn start_code(&mut self, kind: &CodeBlockKind<'_>) {
        let language = match kind {
            CodeBlockKind::Fenced(language) => language.as_ref(),
            CodeBlockKind::Indented => "",
        };
        if !language.is_empty() {
            html! { p.language { (line(language)) } }.render_to(&mut self.out);
        }
        self.open("<pre>", "</pre>");
    }

    fn start_cell(&mut self) {
        let is_right = matches!(self.alignments.get(self.column), Some(Alignment::Right));
        self.column += 1;
        let (start, end) = match (self.is_in_head, is_right) {
            (true, false) => ("<th>", "</th>"),
            (true, true) => ("<th class=\"right\">", "</th>"),
            (false, false) => ("<td>", "</td>"),
            (false, true) => ("<td class=\"right\">", "</td>"),
        };
        self.open(start, end);
    }

    fn start_link(&mut self, link_type: LinkType, address: &str) {
        let address = match link_type {
            LinkType::Email => format!("mailto:{address}"),
            _ => address.to_owned(),
        };
        if is_external(&address) {
            let href = encoded(&address);
            self.out.push_str("<a rel=\"noopener noreferrer nofollow\" href=\"");
            href.render_to(&mut self.out);
            self.out.push_str("\">");
            self.ends.push(ElementEnd::Address("</a>", address, self.out.len()));
        } else {
            self.out.push_str("<span>");
            self.ends.push(ElementEnd::Address("</span>", address, self.out.len()));
        }
    }

    fn end(&mut self, tag: TagEnd) {
        let Some(end) = self.ends.pop() else { return };
        match end {
            ElementEnd::Tag(end) => self.out.push_str(end),
            ElementEnd::Address(end, address, start) => {
                let shown = line(&address).render().into_string();
                let text = self.out.get(start..).unwrap_or_default();
                let is_stated = text == shown || address.strip_prefix("mailto:") == Some(text);
                if tag == TagEnd::Image && text.is_empty() {
                    self.out.push_str("image");
                }
                self.out.push_str(end);
                // Whoever reads it sees where it leads, and a text cannot pretend to be another address.
                if !is_stated {
                    html! { " " span.address { "(" (PreEscaped(&shown)) ")" } }.render_to(&mut self.out);
                }
            }
        }
    }
}

/// Percent-encodes what is not a plain character of an address.
fn encoded(address: &str) -> String {
    percent_encoded(address, |byte| {
        byte.is_ascii_graphic() && !matches!(byte, b'"' | b'<' | b'>' | b'\\' | b'`')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        markdown(text).into_string()
    }

    #[test]
    fn texts_are_laid_out() {
        let cases = [
            ("a *b* **c** `d`\ne", "<p>a <em>b</em> <strong>c</strong> <code>d</code><br>e</p>"),
            ("# A", "<p class=\"heading\">A</p>"),
            ("3. a\n4. b", "<ol dir=\"auto\" start=\"3\"><li>a</li><li>b</li></ol>"),
            ("- [x] a", "<ul dir=\"auto\"><li>☑ a</li></ul>"),
            ("```rust\na < b\n```", "<p class=\"language\">rust</p><pre>a &lt; b\n</pre>"),
            (
                "|a|b|\n|-|-:|\n|1|2|",
                "<div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th>a</th><th class=\"right\">b</th></tr></thead>\
                 <tr><td>1</td><td class=\"right\">2</td></tr></table></div>",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn links_lead_to_the_web_and_state_where() {
        let rel = "rel=\"noopener noreferrer nofollow\"";
        let cases = [
            (
                "[a](https://b.example/?c=\"&d)",
                format!(
                    "<p><a {rel} href=\"https://b.example/?c=%22&amp;d\">a</a> \
                     <span class=\"address\">(https://b.example/?c=&quot;&amp;d)</span></p>"
                ),
            ),
            (
                "<https://b.example>",
                format!("<p><a {rel} href=\"https://b.example\">https://b.example</a></p>"),
            ),
            ("<a@b.example>", format!("<p><a {rel} href=\"mailto:a@b.example\">a@b.example</a></p>")),
            (
                "[https://a.example](https://b.example)",
                format!(
                    "<p><a {rel} href=\"https://b.example\">https://a.example</a> \
                     <span class=\"address\">(https://b.example)</span></p>"
                ),
            ),
            (
                "[a](javascript:alert(1))",
                "<p><span>a</span> <span class=\"address\">(javascript:alert(1))</span></p>".to_owned(),
            ),
            ("[a](/b)", "<p><span>a</span> <span class=\"address\">(/b)</span></p>".to_owned()),
            (
                "![a *b*](https://c.example/d.png)",
                "<p><span class=\"image\">a <em>b</em></span> \
                 <span class=\"address\">(https://c.example/d.png)</span></p>"
                    .to_owned(),
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    /// Every element that Markdown can become.
    const ELEMENTS: &[&str] = &[
        "a",
        "blockquote",
        "br",
        "code",
        "div",
        "em",
        "hr",
        "li",
        "ol",
        "p",
        "pre",
        "s",
        "span",
        "strong",
        "table",
        "td",
        "th",
        "thead",
        "tr",
        "ul",
    ];

    #[test]
    fn nothing_in_it_runs_or_loads() {
        let hostile = [
            "<script>alert(1)</script>",
            "a <img src=x onerror=alert(1)> b",
            "<svg onload=alert(1)><style>@import 'https://x.example'</style></svg>",
            "[a](data:text/html,<script>alert(1)</script>)",
            "[a](JaVaScRiPt:alert(1)) [b](java\tscript:alert(1)) [c](&#106;avascript:alert(1)) [d](vbscript:a)",
            "![x\" onerror=\"alert(1)](https://x.example/\"onerror=\"alert(1))",
            "[x](https://x.example/\"onmouseover=\"alert(1) \"title\")",
            "<https://x.example/\"><script>alert(1)</script>>",
            "[x]: javascript:alert(1)\n[x]",
            "```\"><script>alert(1)</script>\n</pre><script>alert(1)</script>\n```",
            "| <script> | ![](x) |\n|-|-|\n| </table><script> | [a](//x.example) |",
            "\u{202e}txt \u{1b}[2J [\u{202e}](https://x.example/\u{202e})",
            "&lt;script&gt;alert(1)&lt;/script&gt;",
            "<!--\n# a\n--><iframe src=//x.example></iframe>",
        ];
        for text in hostile {
            let shown = shown(text);
            for tag in shown.split('<').skip(1) {
                let (tag, _) = tag.split_once('>').unwrap();
                let mut words = tag.trim_start_matches('/').split(' ');
                assert!(ELEMENTS.contains(&words.next().unwrap()), "{text}: {shown}");
                for attribute in words.filter(|word| word.contains("=\"")) {
                    let name = attribute.split('=').next().unwrap();
                    assert!(
                        ["class", "dir", "href", "rel", "start", "tabindex"].contains(&name),
                        "{text}: {shown}"
                    );
                }
            }
            for href in shown.split("href=\"").skip(1) {
                assert!(is_external(href), "{text}: {shown}");
            }
            assert!(!shown.contains(['\u{202e}', '\u{1b}']), "{text}: {shown}");
        }
    }

    #[test]
    fn deep_texts_are_flat() {
        let shown = shown(&format!("{}deep", ">".repeat(5_000)));
        assert_eq!(shown.matches("<blockquote>").count(), MAX_DEPTH);
        assert_eq!(shown.matches("</blockquote>").count(), MAX_DEPTH);
        assert!(shown.contains("deep"));
    }
}
