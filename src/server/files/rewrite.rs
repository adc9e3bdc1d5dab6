//! Pages for files: links lead to files, or are no links.
//!
//! Pages are made for a server. All of their markup is our own, and what artifacts contain is escaped in it, so a `<` is
//! the beginning of a tag, and a `"` the beginning or the end of a value.

use std::fmt::Write;

use maud::html;

/// The result of rewriting a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LinkRewrite {
    /// It leads to this file.
    File(String),
    /// Its content stays, as text.
    Text,
    /// It is left out with its content.
    Nothing,
}

/// The markup is not what pages consist of, so that links could be overlooked.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("unexpected markup at {0:?}")]
pub(super) struct UnexpectedMarkup(String);

/// Returns `page` with the links that `target` determines by their addresses, without forms, and with exact times in the
/// place of those relative to now.
pub(super) fn rewrite(
    page: &str,
    target: &mut dyn FnMut(&str) -> LinkRewrite,
) -> Result<String, UnexpectedMarkup> {
    let mut written =
        RewriteOutput { text: String::with_capacity(page.len()), ends: Vec::new(), drawings: 0 };
    let mut rest = page;
    while let Some((text, tag)) = rest.split_once('<') {
        written.text.push_str(text);
        let (tag, after) = tag.split_once('>').ok_or_else(|| UnexpectedMarkup(start(tag)))?;
        rest = written.tag(&HtmlTag::parse(tag), after, target)?;
    }
    written.text.push_str(rest);
    Ok(written.text)
}

/// The beginning of a text, for messages.
fn start(text: &str) -> String {
    text.chars().take(80).collect()
}

/// A tag without its angle brackets.
struct HtmlTag<'t> {
    whole: &'t str,
    name: &'t str,
    /// The text after the name.
    attributes: &'t str,
}

impl<'t> HtmlTag<'t> {
    fn parse(whole: &'t str) -> Self {
        let (name, attributes) = whole.split_once(' ').unwrap_or((whole, ""));
        Self { whole, name, attributes }
    }

    /// Returns the value of an attribute as it is written.
    fn value(&self, name: &str) -> Option<&'t str> {
        let mut rest = self.attributes;
        while let Some((before, after)) = rest.split_once("=\"") {
            let (value, next) = after.split_once('"')?;
            if before.trim_start().rsplit(' ').next() == Some(name) {
                return Some(value);
            }
            rest = next;
        }
        None
    }
}

/// The output so far.
struct RewriteOutput {
    text: String,
    /// The ends of the elements that are written for links.
    ends: Vec<&'static str>,
    /// Number of drawings that are open.
    drawings: usize,
}

impl RewriteOutput {
    /// Writes a tag, and returns what follows after it and what belongs to it.
    fn tag<'t>(
        &mut self,
        tag: &HtmlTag<'t>,
        after: &'t str,
        target: &mut dyn FnMut(&str) -> LinkRewrite,
    ) -> Result<&'t str, UnexpectedMarkup> {
        match tag.name {
            "a" => return self.link(tag, after, target),
            "/a" => {
                let end = self.ends.pop().ok_or_else(|| UnexpectedMarkup(start(after)))?;
                self.text.push_str(end);
                return Ok(after);
            }
            "form" => return skip(after, "</form>").map(|(_, after)| after),
            "time" => {
                if let Some(exact) = tag.value("title") {
                    let (_, rest) = skip(after, "</time>")?;
                    self.copy(tag);
                    self.text.push_str(exact);
                    self.text.push_str("</time>");
                    return Ok(rest);
                }
            }
            "svg" => self.drawings += 1,
            "/svg" => self.drawings = self.drawings.saturating_sub(1),
            // No other element refers to anything.
            _ if ["href", "src", "action", "srcset", "data"].iter().any(|name| tag.value(name).is_some()) => {
                return Err(UnexpectedMarkup(start(tag.whole)));
            }
            _ => {}
        }
        self.copy(tag);
        Ok(after)
    }

    fn copy(&mut self, tag: &HtmlTag<'_>) {
        self.text.push('<');
        self.text.push_str(tag.whole);
        self.text.push('>');
    }

    fn link<'t>(
        &mut self,
        tag: &HtmlTag<'t>,
        after: &'t str,
        target: &mut dyn FnMut(&str) -> LinkRewrite,
    ) -> Result<&'t str, UnexpectedMarkup> {
        let written = tag.value("href").ok_or_else(|| UnexpectedMarkup(start(tag.whole)))?;
        if written.starts_with('#') {
            self.copy(tag);
            self.ends.push("</a>");
            return Ok(after);
        }
        // A place within a page is also the place within its file.
        let (_, place) = written.split_at(written.find('#').unwrap_or(written.len()));
        match target(&unescaped(written)) {
            LinkRewrite::File(name) => {
                let name = html! { (name) }.into_string();
                let link =
                    tag.whole.replacen(&format!("href=\"{written}\""), &format!("href=\"{name}{place}\""), 1);
                self.copy(&HtmlTag::parse(&link));
                self.ends.push("</a>");
            }
            LinkRewrite::Text => {
                let name = if self.drawings > 0 { "g" } else { "span" };
                self.text.push('<');
                self.text.push_str(name);
                if let Some(class) = tag.value("class") {
                    // Writing to a string cannot fail.
                    let _ = write!(self.text, " class=\"{class}\"");
                }
                self.text.push('>');
                self.ends.push(if self.drawings > 0 { "</g>" } else { "</span>" });
            }
            LinkRewrite::Nothing => return skip(after, "</a>").map(|(_, after)| after),
        }
        Ok(after)
    }
}

/// Returns what is before and after an end tag. The element contains no other one of its name.
fn skip<'t>(text: &'t str, end: &str) -> Result<(&'t str, &'t str), UnexpectedMarkup> {
    text.split_once(end).ok_or_else(|| UnexpectedMarkup(start(text)))
}

/// Returns the text that maud has escaped.
fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(page: &str) -> Result<String, UnexpectedMarkup> {
        rewrite(page, &mut |address| match address {
            "/one?a=1&b=\"" | "/one?a=1&b=\"#step-8" => LinkRewrite::File("one&.html".to_owned()),
            "/text" => LinkRewrite::Text,
            _ => LinkRewrite::Nothing,
        })
    }

    #[test]
    fn links_lead_to_files_or_are_no_links() {
        let page = "<p>&lt;a href=&quot;/text&quot;&gt; <a class=\"hash\" href=\"/one?a=1&amp;b=&quot;\">1</a> \
                    <a href=\"/text\" class=\"hash\">2 <b>3</b></a> <a href=\"/other\">4</a> <a href=\"#x\">5</a></p>";
        let expected = "<p>&lt;a href=&quot;/text&quot;&gt; <a class=\"hash\" href=\"one&amp;.html\">1</a> \
                        <span class=\"hash\">2 <b>3</b></span>  <a href=\"#x\">5</a></p>";
        assert_eq!(rewritten(page).unwrap(), expected);
        let place = rewritten("<a href=\"/one?a=1&amp;b=&quot;#step-8\">1</a>").unwrap();
        assert_eq!(place, "<a href=\"one&amp;.html#step-8\">1</a>");
        let drawing = "<svg><a href=\"/text\" aria-label=\"n\"><rect/></a></svg>";
        assert_eq!(rewritten(drawing).unwrap(), "<svg><g><rect/></g></svg>");
    }

    #[test]
    fn forms_are_left_out_and_times_are_exact() {
        let page = "a<form action=\"/x\"><input name=\"q\"></form>b";
        assert_eq!(rewritten(page).unwrap(), "ab");
        let time = "<time datetime=\"2026\" title=\"2026 UTC\">just now</time>";
        assert_eq!(rewritten(time).unwrap(), "<time datetime=\"2026\" title=\"2026 UTC\">2026 UTC</time>");
    }

    #[test]
    fn a_reference_is_never_overlooked() {
        for page in ["<img src=\"/x\">", "<use href=\"/x\"/>", "</a>", "<a>", "<a href=\"/other\">", "a < b"]
        {
            assert!(rewritten(page).is_err(), "{page}");
        }
    }
}
