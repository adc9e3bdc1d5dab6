//! The common parts of all pages: the head, the navigation, the page of an error, and untrusted text.
//!
//! maud escapes what HTML interprets. Characters that control or hide text are shown as escapes, as on a terminal, and are
//! marked, so that they cannot be confused with a text that contains the escape itself.

use std::path::Path;

use chrono::{DateTime, Utc};
use maud::{DOCTYPE, Markup, Render, html};

use super::address;
use super::visit::{HtmlPage, PageError};
use crate::clock;
use crate::display::{self, is_hidden, write_escape};

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

/// Maximum characters of a text that shares a line with others.
const BRIEF: usize = 120;

/// Maximum characters of a block of text.
const BLOCK: usize = 200_000;

/// Maximum characters of a block of text beside what is of interest.
const EXCERPT: usize = 300;

/// Untrusted text.
pub(super) struct UntrustedText<'t> {
    text: &'t str,
    /// Maximum characters; the middle of longer texts is omitted.
    most: usize,
    /// Whether line feeds and tabs are part of the layout.
    is_block: bool,
    marks: Marks,
}

/// The elements that mark escapes and omissions.
#[derive(Clone, Copy)]
enum Marks {
    Html,
    /// In a drawing, an element of HTML would end the drawing.
    Svg,
    /// The text is in an element that contains no others.
    None,
}

/// Returns text for a line with other text.
pub(super) fn line(text: &str) -> UntrustedText<'_> {
    UntrustedText { text, most: BRIEF, is_block: false, marks: Marks::Html }
}

/// Returns text for the texts of a drawing.
pub(super) fn drawn_line(text: &str) -> UntrustedText<'_> {
    UntrustedText { marks: Marks::Svg, ..line(text) }
}

/// Returns text for a title, of which browsers show the characters and no elements.
pub(super) fn title_line(text: &str) -> UntrustedText<'_> {
    UntrustedText { marks: Marks::None, ..line(text) }
}

/// Returns text for a line of its own.
pub(super) fn long_line(text: &str) -> UntrustedText<'_> {
    UntrustedText { most: 10 * BRIEF, ..line(text) }
}

/// Returns all of a text that is limited in another way.
pub(super) fn whole(text: &str) -> UntrustedText<'_> {
    UntrustedText { most: usize::MAX, ..line(text) }
}

/// Returns text for a block in which line feeds and tabs are kept.
pub(super) fn block(text: &str) -> UntrustedText<'_> {
    UntrustedText { most: BLOCK, is_block: true, ..line(text) }
}

/// Returns text that surrounds what is of interest: a block of which only the beginning and the end are shown if it is long.
pub(super) fn excerpt(text: &str) -> UntrustedText<'_> {
    UntrustedText { most: EXCERPT, ..block(text) }
}

impl Render for UntrustedText<'_> {
    fn render_to(&self, buffer: &mut String) {
        let half = self.most / 2;
        let head = self.text.char_indices().nth(half).map_or(self.text.len(), |(at, _)| at);
        let tail = self.text.char_indices().nth_back(half.saturating_sub(1)).map_or(0, |(at, _)| at);
        match (self.text.get(..head), self.text.get(head..tail), self.text.get(tail..)) {
            (Some(head), Some(omitted), Some(tail)) if !omitted.is_empty() => {
                self.write(head, buffer);
                let omission = format!("…[{} characters]…", omitted.chars().count());
                self.marks.write("omitted", &omission, buffer);
                self.write(tail, buffer);
            }
            _ => self.write(self.text, buffer),
        }
    }
}

impl Marks {
    /// Writes a text with the mark of a class.
    fn write(self, class: &str, text: &str, buffer: &mut String) {
        match self {
            Self::Html => html! { span class=(class) { (text) } }.render_to(buffer),
            Self::Svg => html! { tspan class=(class) { (text) } }.render_to(buffer),
            Self::None => text.render_to(buffer),
        }
    }
}

impl UntrustedText<'_> {
    fn write(&self, text: &str, buffer: &mut String) {
        let mut written = 0;
        let mut before = None;
        let mut characters = text.char_indices().peekable();
        while let Some((at, character)) = characters.next() {
            let after = characters.peek().map(|(_, after)| *after);
            if !self.is_escaped(character) || joins(before, character, after) {
                before = Some(character);
                continue;
            }
            text.get(written..at).unwrap_or_default().render_to(buffer);
            let mut escape = String::new();
            // Writing to a string cannot fail.
            let _ = write_escape(character, &mut escape);
            self.marks.write("escape", &escape, buffer);
            written = at + character.len_utf8();
            before = None;
        }
        text.get(written..).unwrap_or_default().render_to(buffer);
    }

    fn is_escaped(&self, character: char) -> bool {
        is_hidden(character) && !(self.is_block && matches!(character, '\n' | '\t'))
    }
}

/// Returns whether a joiner or a variation selector is where it forms an emoji or a word. Elsewhere it has no effect, so that
/// texts that look alike could differ by it. `before` is `None` after an escape.
fn joins(before: Option<char>, character: char, after: Option<char>) -> bool {
    match character {
        '\u{fe0e}' | '\u{fe0f}' => match before {
            // A digit on a key, which this and the next character make of it.
            Some('0'..='9' | '#' | '*') => after == Some('\u{20e3}'),
            before => before.is_some_and(is_symbol),
        },
        '\u{200c}' | '\u{200d}' => {
            let are_letters = before.is_some_and(is_joined) && after.is_some_and(is_joined);
            let follows_symbol = before.is_some_and(|before| is_symbol(before) || before == '\u{fe0f}');
            are_letters || character == '\u{200d}' && follows_symbol && after.is_some_and(is_symbol)
        }
        _ => false,
    }
}

/// Returns whether a character is of a block with those that have a form as an emoji.
fn is_symbol(character: char) -> bool {
    // Not those of Braille, of which one is blank.
    matches!(character,
        '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2100}'..='\u{27ff}' | '\u{2900}'..='\u{2bff}'
        | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1faff}')
}

/// Returns whether a character is of a script in which joiners determine the forms of letters: Arabic, Syriac, and those of
/// India and its neighbors.
fn is_joined(character: char) -> bool {
    let is_of_script =
        matches!(character, '\u{600}'..='\u{109f}' | '\u{1780}'..='\u{18af}' | '\u{fb50}'..='\u{fdff}');
    is_of_script && !is_hidden(character)
}

/// Returns a time, relative to now, with the exact time for programs and as a tooltip.
pub(super) fn time(at: DateTime<Utc>) -> Markup {
    let exact = display::time(at);
    html! { time datetime=(at.to_rfc3339()) title=(exact) { (display::ago(at, clock::now())) } }
}

/// Returns an exact time.
pub(super) fn exact_time(at: DateTime<Utc>) -> Markup {
    html! { time datetime=(at.to_rfc3339()) { (display::time(at)) } }
}

/// Returns a number with separators of thousands.
pub(super) fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_and_control_characters_are_shown() {
        let shown = line("<b>&\"\u{1b}[31m\u{202e}a\nb\\u{1b}").render().into_string();
        let escape = |text: &str| format!("<span class=\"escape\">{text}</span>");
        let expected = format!(
            "&lt;b&gt;&amp;&quot;{}[31m{}a{}b\\u{{1b}}",
            escape("\\u{1b}"),
            escape("\\u{202e}"),
            escape("\\n")
        );
        assert_eq!(shown, expected);
        assert!(block("a\n\tb\r\n").render().into_string().starts_with("a\n\tb<span"));
    }

    #[test]
    fn joiners_and_variation_selectors_are_shown_unless_they_form_emoji_or_words() {
        let escapes = |text: &str| line(text).render().into_string().matches("escape").count();
        let texts = [
            "\u{26a0}\u{fe0f} careful",
            "\u{2764}\u{fe0f}\u{200d}\u{1f525}",
            "\u{1f469}\u{1f3fd}\u{200d}\u{1f4bb}\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}",
            "1\u{fe0f}\u{20e3} \u{a9}\u{fe0e}",
            "\u{645}\u{6cc}\u{200c}\u{62e}\u{648}\u{627}\u{647}\u{645}",
            "\u{915}\u{94d}\u{200d}\u{937}",
        ];
        for text in texts {
            assert_eq!(escapes(text), 0, "{text}");
        }
        let hidden = [
            ("\u{fe0f}a\u{fe0f}1\u{fe0f}", 3),
            ("\u{26a0}\u{fe0f}\u{fe0f}\u{fe0f}", 2),
            ("a\u{200d}b\u{200c}c \u{200d}", 3),
            ("\u{1f469}\u{200d}\u{200d}\u{1f4bb}\u{200d}", 3),
            ("\u{1f469}\u{200c}\u{1f4bb}", 1),
            ("\u{645}\u{200c}\u{200c}\u{645} \u{200c}\u{645}\u{200d}", 4),
            ("\u{2800}\u{fe0f}", 1),
            ("\u{1f3f4}\u{e0067}\u{e007f}", 2),
            ("\u{645}\u{202e}\u{200d}\u{645}\u{61c}", 3),
        ];
        for (text, expected) in hidden {
            assert_eq!(escapes(text), expected, "{}", text.escape_unicode());
        }
    }

    #[test]
    fn drawings_and_titles_contain_no_elements_of_html() {
        let text = format!("a\u{2028}{}<", "b".repeat(2 * BRIEF));
        let drawn = drawn_line(&text).render().into_string();
        assert!(drawn.starts_with("a<tspan class=\"escape\">\\u{2028}</tspan>b"), "{drawn}");
        assert!(drawn.contains("<tspan class=\"omitted\">") && !drawn.contains("<span"), "{drawn}");
        let title = title_line(&text).render().into_string();
        assert!(title.starts_with("a\\u{2028}b") && !title.contains('<'), "{title}");
    }

    #[test]
    fn long_lines_lose_their_middle() {
        let text = "<".repeat(BRIEF + 7);
        let shown = line(&text).render().into_string();
        assert!(shown.contains("…[7 characters]…"), "{shown}");
        assert_eq!(shown.matches("&lt;").count(), BRIEF);
    }

    #[test]
    fn numbers_have_separators() {
        for (value, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(number(value), text);
        }
    }
}
