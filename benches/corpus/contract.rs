//! Documents of the kind `contract`, in JSON.

use runvault::digest::Digest;
use serde_json::json;

use super::random::Random;
use super::words::{MODULES, VERBS};

/// A contract and its core hash. It is written in its canonical form, so it is its own core.
pub fn document(random: &mut Random, number: usize) -> (Vec<u8>, Digest) {
    let target = format!("service:{}-{number}", random.usual(MODULES));
    let mut refs: Vec<_> = (0..random.between(1, 6))
        .map(|index| {
            json!({"ref": format!("artifact:{}-{index}", random.usual(MODULES)), "kind": "artifact", "mode": "read",
                "required": true, "schema": format!("schemas/{}.json", random.usual(MODULES))})
        })
        .collect();
    refs.push(json!({"ref": target, "kind": "service", "mode": "mutate", "required": true,
        "schema": "schemas/service.json"}));
    let effect = json!({"name": format!("{}-it", random.usual(VERBS)), "kind": "resource", "target": target,
        "idempotency": {"type": "reentrant"}, "evidence": {"type": "status", "metric": "ok"}});
    let document = json!({"io_refs": refs, "effects": [effect]}).to_string().into_bytes();
    let core = Digest::from_content(&document);
    (document, core)
}
