//! PK7: whether a path is given plainly.

/// Whether `path` has neither `..` nor anything that could be left out of it. One slash at its end is allowed.
pub(super) fn is_plain(path: &str) -> bool {
    let trimmed = path.strip_suffix('/').unwrap_or(path);
    if matches!(path, "." | "./" | "/") {
        return true;
    }
    let relative = trimmed.strip_prefix('/').unwrap_or(trimmed);
    !path.contains("..") && relative.split('/').all(|part| !matches!(part, "" | "."))
}

#[cfg(test)]
mod tests {
    #[test]
    fn paths_are_plain_when_nothing_can_be_left_out() {
        for plain in ["pack", "pack/", "a/b", "/a/b", "/a/b/", ".", "./", "/", ".hidden", "a.b"] {
            assert!(super::is_plain(plain), "{plain}");
        }
        for odd in ["..", "../pack", "a/../b", "a..b", "./pack", "a//b", "a/./b", "a//", "//a", "a/.", ""] {
            assert!(!super::is_plain(odd), "{odd}");
        }
    }
}
