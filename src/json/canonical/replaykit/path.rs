//! Normalization of the paths of any system to one POSIX form.

/// Returns `text` with forward slashes, a drive letter as first component, and no redundant components. A trailing
/// slash is kept.
pub(super) fn normalize(text: &str) -> String {
    let mut text = with_drive_as_component(text.replace('\\', "/"));
    while text.contains("//") {
        text = text.replace("//", "/");
    }
    let root = if text.starts_with('/') { "/" } else { "" };
    let mut path = root.to_owned();
    // The prefix that `..` cannot remove: the root, and earlier `..` components that were kept.
    let mut fixed = path.len();
    for component in text.split('/') {
        match component {
            "" | "." => {}
            ".." if path.len() > fixed => {
                let end = path.rfind('/').unwrap_or(0);
                path.truncate(end.max(fixed));
            }
            ".." if !root.is_empty() => {}
            other => {
                if !path.is_empty() && !path.ends_with('/') {
                    path.push('/');
                }
                path.push_str(other);
                if other == ".." {
                    fixed = path.len();
                }
            }
        }
    }
    if path.is_empty() {
        path.push('.');
    }
    if text.ends_with('/') && path != "/" {
        path.push('/');
    }
    path
}

/// Converts `C:/rest` to `/c/rest` if the rest is one line; a line feed at its end is removed.
fn with_drive_as_component(text: String) -> String {
    let Some((drive, rest)) = text.split_once(":/") else {
        return text;
    };
    let rest = rest.strip_suffix('\n').unwrap_or(rest);
    match drive.as_bytes() {
        [letter] if letter.is_ascii_alphabetic() && !rest.contains('\n') => {
            format!("/{}/{rest}", drive.to_ascii_lowercase())
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn paths_of_all_systems() {
        for (text, expected) in [
            ("", "."),
            ("./", "./"),
            ("x/../", "./"),
            ("/..", "/"),
            ("../../a/..", "../.."),
            ("C:\\", "/c/"),
            ("C:", "C:"),
            ("C:foo", "C:foo"),
            ("D:/a/b\n", "/d/a/b"),
            ("D:/a\nb", "D:/a\nb"),
            ("\\\\srv\\x", "/srv/x"),
            ("a//b/./c/", "a/b/c/"),
            ("/", "/"),
            ("é:/x", "é:/x"),
        ] {
            assert_eq!(super::normalize(text), expected, "{text:?}");
        }
    }
}
