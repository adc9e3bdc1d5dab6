//! Signatures of run packs: which key checks them, what the vault remembers of that, and what follows from it.

mod audited;
mod keys;
mod preferred;
mod repaired;
mod stored;

use std::path::PathBuf;

use hmac::{KeyInit, Mac};
use runvault::digest::Digest;
use runvault::formats;
use serde_json::Value;

use crate::sandbox::{Sandbox, repository};

/// The run of the examples, signed with `key`. Captures with other ids or keys are captures of one artifact.
pub(crate) fn signed(key_id: &str, key: &str) -> String {
    let document = std::fs::read(repository("examples/run.rpk")).unwrap();
    sign(&document, key_id, key)
}

/// A run pack with a signature by `key`, which it says has the id `key_id`.
pub(crate) fn sign(document: &[u8], key_id: &str, key: &str) -> String {
    let mut run: Value = serde_json::from_slice(document).unwrap();
    let kind = formats::named("rpk").unwrap();
    let member = runvault::artifact::MemberBytes { name: "run.rpk", bytes: document };
    let mut core = Vec::new();
    kind.write_core(&[member], &mut core).unwrap();
    // The checksum comes first in the canonical order of the members that are signed.
    #[expect(
        clippy::disallowed_types,
        reason = "signatures of tests are made without the code that checks them"
    )]
    let mut mac = hmac::Hmac::<sha2::Sha256>::new_from_slice(key.as_bytes()).unwrap();
    mac.update(format!("{{\"checksum\":{},", run["checksum"]).as_bytes());
    mac.update(&core[1..]);
    let authentication = Digest::from_bytes(mac.finalize().into_bytes().into());
    let value = format!("hmac-sha256:{}", authentication.hex());
    run["signature"] = serde_json::json!({ "algorithm": "hmac-sha256", "key_id": key_id, "value": value });
    run.to_string()
}

/// The core hash of the run of the examples.
pub(crate) fn core() -> String {
    let run: Value = serde_json::from_slice(&std::fs::read(repository("examples/run.rpk")).unwrap()).unwrap();
    run["checksum"].as_str().unwrap().to_owned()
}

/// The hash of a capture.
pub(crate) fn capture(document: &str) -> String {
    Digest::from_content(document.as_bytes()).to_string()
}

/// A key ring file with these ids and keys.
pub(crate) fn ring(sandbox: &Sandbox, name: &str, keys: &[(&str, &str)]) -> PathBuf {
    let lines: Vec<String> = keys.iter().map(|(id, key)| format!("{id:?} = '{key}'\n")).collect();
    let lines = lines.concat();
    sandbox.write(name, format!("# ours\n[keys]\n{lines}"))
}

/// What `show` says of the captures of the run: hash, state, key id.
pub(crate) fn shown(sandbox: &Sandbox) -> Vec<(String, String, Option<String>)> {
    let shown = sandbox.run(["show", "--json", &core()]).expect(0).json().remove(0);
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let captures = shown["captures"].as_array().unwrap().iter();
    captures
        .map(|capture| {
            let hash = text(&capture["capture_hash"]).unwrap();
            (hash, text(&capture["signature"]).unwrap(), text(&capture["key_id"]))
        })
        .collect()
}

/// The state of the only capture of the run.
pub(crate) fn state(sandbox: &Sandbox) -> String {
    let mut shown = shown(sandbox);
    assert_eq!(shown.len(), 1);
    shown.remove(0).1
}

/// The entries of the journal about signatures: capture, state, key id.
pub(crate) fn journalled(sandbox: &Sandbox) -> Vec<(String, String, String)> {
    let entries = sandbox.run(["log", "--json", "--action", "signature"]).json();
    let text = |entry: &Value, name: &str| entry["entry"][name].as_str().unwrap_or_default().to_owned();
    entries
        .iter()
        .map(|entry| (text(entry, "capture"), text(entry, "state"), text(entry, "key_id")))
        .collect()
}
