//! JSON Pointers (RFC 6901).

use std::borrow::Cow;

use memchr::memchr2;

/// A step from a value to a value that it contains.
#[derive(Clone, Copy, Debug)]
pub enum Token<'v> {
    /// The member of an object.
    Name(&'v str),
    /// The element of an array.
    Index(usize),
}

/// Returns the pointer that consists of `tokens`.
#[must_use]
pub fn format(tokens: &[Token<'_>]) -> String {
    let length = |token: &Token<'_>| match token {
        Token::Name(name) => name.len(),
        Token::Index(_) => 3,
    };
    let mut pointer = String::with_capacity(tokens.iter().map(|token| 1 + length(token)).sum());
    for token in tokens {
        match token {
            Token::Name(name) => push(&mut pointer, name),
            Token::Index(index) => push_index(&mut pointer, *index),
        }
    }
    pointer
}

/// Appends `/` and `token`, escaped, to `pointer`.
pub fn push(pointer: &mut String, token: &str) {
    pointer.push('/');
    if memchr2(b'~', b'/', token.as_bytes()).is_none() {
        return pointer.push_str(token);
    }
    for character in token.chars() {
        match character {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}

/// Appends `/` and the array index `index` to `pointer`.
pub fn push_index(pointer: &mut String, index: usize) {
    pointer.push('/');
    pointer.push_str(&index.to_string());
}

/// Returns the decoded tokens of a pointer.
pub(crate) fn tokens(pointer: &str) -> impl Iterator<Item = Cow<'_, str>> {
    pointer.split('/').skip(1).map(|token| {
        if token.contains('~') {
            Cow::Owned(token.replace("~1", "/").replace("~0", "~"))
        } else {
            Cow::Borrowed(token)
        }
    })
}

/// Locations of values: a JSON Pointer in which `*` matches every name and index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PointerPattern {
    text: String,
    tokens: Vec<String>,
}

impl PointerPattern {
    /// Parses a pattern: a JSON Pointer, or the name of a member of the whole. Returns `None` if it is neither.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let tokens: Vec<String> = match text.strip_prefix('/') {
            Some(rest) if rest.split('~').skip(1).any(|after| !after.starts_with(['0', '1'])) => return None,
            Some(_) => self::tokens(text).map(Cow::into_owned).collect(),
            None if text.is_empty() || text.contains('/') => return None,
            None => vec![text.to_owned()],
        };
        Some(Self { text: text.to_owned(), tokens })
    }

    /// Returns the pattern as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the names and indexes, of which `*` is any.
    pub(crate) fn tokens(&self) -> &[String] {
        &self.tokens
    }

    /// Returns whether a place is one of these.
    pub(crate) fn is_at(&self, at: &[String]) -> bool {
        self.tokens.len() == at.len() && self.contains(at)
    }

    /// Returns whether a place is one of these or inside one.
    pub(crate) fn contains(&self, at: &[String]) -> bool {
        self.tokens.len() <= at.len()
            && self.tokens.iter().zip(at).all(|(token, name)| token == "*" || token == name)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn tokens_are_escaped() {
        let mut pointer = String::new();
        super::push(&mut pointer, "a/b~c");
        super::push_index(&mut pointer, 7);
        super::push(&mut pointer, "");
        assert_eq!(pointer, "/a~1b~0c/7/");
    }
}
