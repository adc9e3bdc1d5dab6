//! Addresses of pages.

use std::fmt::Write;

use crate::digest::{CaptureHash, CoreHash, Digest};

/// The address of the page of an artifact.
pub(super) fn artifact(core: CoreHash) -> String {
    format!("/artifact/{core}")
}

/// Maximum number of steps of a page.
pub(super) const STEPS: u64 = 200;

/// The address of a step of an artifact.
pub(super) fn step(core: CoreHash, index: u64) -> String {
    let from = index / STEPS * STEPS;
    let from = (from > 0).then(|| from.to_string());
    format!("{}#step-{index}", with_query(&artifact(core), &[("from", from.as_deref())]))
}

/// The address of the page of a contract with the audits of the runs after this one.
pub(super) fn audits(contract: CoreHash, after: Option<CoreHash>) -> String {
    let after = after.map(|after| after.to_string());
    format!("{}#audits", with_query(&artifact(contract), &[("audits_after", after.as_deref())]))
}

/// The address of the bytes of a capture, or of one of its files.
pub(super) fn bytes(core: CoreHash, capture: CaptureHash, member: Option<&str>) -> String {
    with_query(
        &format!("/artifact/{core}/bytes"),
        &[("capture", Some(&capture.to_string())), ("member", member)],
    )
}

/// The address of the bytes, or of one of several files, that are found by a hash without the catalog.
pub(super) fn recovered_bytes(hash: Digest, member: Option<&str>) -> String {
    with_query(&format!("/artifact/{hash}/bytes"), &[("member", member)])
}

/// The address of the canonical text that the core hash is the digest of.
pub(super) fn core_bytes(core: CoreHash, capture: CaptureHash) -> String {
    with_query(&format!("/artifact/{core}/core"), &[("capture", Some(&capture.to_string()))])
}

/// The address of the graph of links of an artifact.
pub(super) fn graph(core: CoreHash, depth: u8) -> String {
    with_query(&format!("/artifact/{core}/graph"), &[("depth", Some(&depth.to_string()))])
}

/// The address of the answers to a prompt.
pub(super) fn prompt(digest: Digest) -> String {
    format!("/prompt/{digest}")
}

/// The address of the artifacts that mention a digest.
pub(super) fn mentions(digest: Digest) -> String {
    with_query("/artifacts", &[("mention", Some(&digest.to_string()))])
}

/// The address of the artifacts with an attribute.
pub(super) fn attribute(name: &str, value: &str) -> String {
    with_query("/artifacts", &[("attribute", Some(&format!("{name}={value}")))])
}

/// The address of the runs with a label.
pub(super) fn label(key: &str, value: &str) -> String {
    with_query("/", &[("label", Some(&format!("{key}={value}")))])
}

/// The address of the differences between an artifact and another, which a form asks for if there is none.
pub(super) fn diff(one: CoreHash, other: Option<CoreHash>) -> String {
    let other = other.map(|other| other.to_string());
    with_query("/diff", &[("one", Some(&one.to_string())), ("other", other.as_deref())])
}

/// The address of the answers of several runs, from a prompt on.
pub(super) fn compared(runs: &[CoreHash], from: usize) -> String {
    let runs: Vec<String> = runs.iter().map(ToString::to_string).collect();
    let from = (from > 0).then(|| from.to_string());
    let runs = runs.iter().map(|run| ("run", Some(run.as_str())));
    with_query("/diff", &runs.chain([("from", from.as_deref())]).collect::<Vec<_>>())
}

/// The path of the page that changes tags, labels and notes.
pub(super) const ANNOTATE: &str = "/annotate";

/// The address of the page that changes the annotations of artifacts.
pub(super) fn annotate(artifacts: &[CoreHash]) -> String {
    let artifacts: Vec<String> = artifacts.iter().map(ToString::to_string).collect();
    let parameters: Vec<(&str, Option<&str>)> =
        artifacts.iter().map(|core| ("artifact", Some(core.as_str()))).collect();
    with_query(ANNOTATE, &parameters)
}

/// Appends the parameters that have a value.
pub(super) fn with_query(path: &str, parameters: &[(&str, Option<&str>)]) -> String {
    let mut address = path.to_owned();
    let given = parameters.iter().filter_map(|(name, value)| Some((name, (*value)?)));
    for (index, (name, value)) in given.enumerate() {
        address.push(if index == 0 { '?' } else { '&' });
        address.push_str(&encoded(name));
        address.push('=');
        address.push_str(&encoded(value));
    }
    address
}

/// Returns a name or a value of a parameter.
fn encoded(text: &str) -> String {
    percent_encoded(text, |byte| is_unreserved(byte) || matches!(byte, b':' | b'/'))
}

/// Returns whether a byte is an unreserved character of an address (RFC 3986, section 2.3).
pub(crate) fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Returns a text in which all bytes that are not plain are percent-encoded.
pub(crate) fn percent_encoded(text: &str, is_plain: impl Fn(u8) -> bool) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if is_plain(byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_cannot_add_parameters() {
        let address = with_query("/artifacts", &[("tag", None), ("attribute", Some("a=b&c#d é\"<"))]);
        assert_eq!(address, "/artifacts?attribute=a%3Db%26c%23d%20%C3%A9%22%3C");
    }
}
