use crate::digest::Digest;
use crate::json::{Object, Value};

/// Names of members that contain the path of a file whose digest is in the same object.
const PATHS: [&str; 6] = ["path", "file", "file_path", "filename", "name", "schema"];

/// Maximum length of a path in bytes, and maximum number of its components.
const MAX_PATH: usize = 4096;
const MAX_COMPONENTS: usize = 32;

/// Maximum number of references of one artifact: each costs an attempt to open a file.
const MAX_REFERENCES: usize = 256;

/// A file that an artifact identifies by its digest, and whose path it states in the same object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileReference {
    path: String,
    /// The digest of its bytes.
    pub digest: Digest,
}

impl FileReference {
    /// Creates the reference to the file at `path`, or returns `None` unless it is a relative path that does not lead out
    /// of the directory it is relative to.
    #[must_use]
    pub fn new(path: &str, digest: Digest) -> Option<Self> {
        let is_plain = !path.is_empty() && path.len() <= MAX_PATH && !path.contains(['\\', '\0', ':']);
        let is_inside = |part: &str| !matches!(part, "" | "." | "..");
        let parts = || path.split('/');
        (is_plain && parts().all(is_inside) && parts().count() <= MAX_COMPONENTS)
            .then(|| Self { path: path.to_owned(), digest })
    }

    /// Returns the path.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Iterates over the components of the path: names, neither empty nor `.` or `..`.
    pub fn components(&self) -> impl Iterator<Item = &str> {
        self.path.split('/')
    }

    /// Adds the references of one object, without those of the objects in it.
    pub(super) fn collect(object: &Object<'_>, references: &mut Vec<Self>) {
        if references.len() >= MAX_REFERENCES {
            return;
        }
        // An object may have any number of digests: the paths are looked up once.
        let paths: Vec<&str> = PATHS.into_iter().filter_map(|name| path_in(object, name)).collect();
        if paths.is_empty() {
            return;
        }
        let digest = |(_, value): (&str, &Value<'_>)| value.as_str().and_then(Digest::parse_prefixed);
        let all =
            object.iter().filter_map(digest).flat_map(|digest| paths.iter().map(move |path| (path, digest)));
        let valid = all.filter_map(|(path, digest)| Self::new(path, digest));
        references.extend(valid.take(MAX_REFERENCES.saturating_sub(references.len())));
    }
}

/// Returns the path in the member `name`. What is only called a name is one if it looks like a file name: steps and
/// tools have names too.
fn path_in<'o>(object: &'o Object<'_>, name: &str) -> Option<&'o str> {
    let path = object.get(name)?.as_str()?;
    (name != "name" || path.contains(['.', '/'])).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::reader::{self, Limits};

    #[test]
    fn only_paths_that_stay_inside_are_references() {
        let digest = Digest::from_content(b"x");
        for path in ["a", "a/b.json", "a b/..c", "…"] {
            assert!(FileReference::new(path, digest).is_some(), "{path}");
        }
        let deep = "a/".repeat(MAX_COMPONENTS) + "b";
        let escaping =
            ["", "/etc/passwd", "../a", "a/../../b", "a//b", "./a", "a/", "C:/a", r"a\..\b", "a\0b", &deep];
        for path in escaping {
            assert!(FileReference::new(path, digest).is_none(), "{path}");
        }
    }

    #[test]
    fn the_path_and_the_digest_are_in_one_object() {
        let digest = Digest::from_content(b"x");
        let text = format!(
            r#"{{"path": "a", "sha256": "{digest}", "file": 1, "name": "b.c", "filename": "d", "in": {{"path": "c"}}, "bare": "{}"}}"#,
            digest.hex()
        );
        let value = reader::read(text.as_bytes(), &Limits::default()).unwrap();
        let mut references = Vec::new();
        FileReference::collect(value.as_object().unwrap(), &mut references);
        let expected = ["a", "d", "b.c"].map(|path| FileReference::new(path, digest).unwrap());
        assert_eq!(references, expected);
    }
}
