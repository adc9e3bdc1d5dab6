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
