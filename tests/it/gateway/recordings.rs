//! Calls that name the recording from which they are replayed, and what a finished run says about that.

use runvault::gateway::{Gateway, GatewayMode};
use serde_json::{Value, json};

use super::client::{chat_at, request};
use super::upstream::Upstream;
use super::{kinds, start};
use crate::sandbox::Sandbox;

fn finish(gateway: &Gateway, path: &str) -> Value {
    request(gateway.address(), &format!("POST {path}/_runvault/finish"), &[], "").expect(200).json()
}

/// Records the prompts as a run, and returns the hashes of its run pack and its session.
fn record(gateway: &Gateway, run: &str, prompts: &[&str]) -> [String; 2] {
    let path = format!("/run/{run}");
    for prompt in prompts {
        chat_at(gateway.address(), &path, prompt).expect(200);
    }
    let finished = finish(gateway, &path)["finished"].clone();
    [&finished["run_pack"], &finished["sessions"][0]].map(|hash| hash.as_str().unwrap().to_owned())
}

#[test]
fn a_call_that_names_a_recording_is_replayed_from_it_only() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let gateway = start(&sandbox, GatewayMode::Record, &upstream);
    let [pack, session] = record(&gateway, "one", &["a", "b"]);
    let [other, _] = record(&gateway, "two", &["a", "c"]);
    assert_eq!(upstream.requests(), 4);
    for from in [&pack, &session] {
        let path = format!("/run/again/recording/{from}");
        let answer = chat_at(gateway.address(), &path, "a").expect(200);
        assert_eq!(answer.header("x-runvault-replayed"), Some(pack.as_str()));
        let missed = chat_at(gateway.address(), &path, "c").expect(400).json();
        assert!(missed["detail"].as_str().unwrap().starts_with("messages[0].content differs"), "{missed}");
        let replayed = finish(&gateway, &path)["replayed"].clone();
        assert_eq!((&replayed["replayed"], &replayed["missed"]), (&json!(1), &json!(1)));
        assert_eq!(replayed["misses"], json!([missed["detail"]]));
        let [unused] = &replayed["unused"].as_array().unwrap()[..] else { panic!("{replayed}") };
        assert_eq!((&unused["core_hash"], &unused["step"]), (&json!(pack), &json!(2)));
        assert!(unused["prompt"].as_str().unwrap().contains(r#""content":"b""#), "{unused}");
    }
    // A run that asked nothing used nothing.
    let nothing = finish(&gateway, &format!("/run/silent/recording/{other}"))["replayed"].clone();
    assert_eq!(nothing["unused"].as_array().unwrap().len(), 2);
    assert_eq!(upstream.requests(), 4);
}

#[test]
fn a_recording_is_named_by_a_prefix_of_its_hash_a_tag_or_a_run_id() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let gateway = start(&sandbox, GatewayMode::Record, &upstream);
    let [pack, _] = record(&gateway, "one", &["a"]);
    sandbox.run(["tag", "set", &pack, "golden"]).expect(0);
    let shown = sandbox.run(["find", "runs", "--format", "{{run_id}}"]).expect(0).stdout;
    let run_id = shown.trim().to_owned();
    let digits = pack.strip_prefix("sha256:").unwrap();
    for (number, name) in [&digits[..16], &pack[..23], "@golden", "golden", &run_id].iter().enumerate() {
        let path = format!("/run/again-{number}/recording/{name}");
        let answer = chat_at(gateway.address(), &path, "a").expect(200);
        assert_eq!(answer.header("x-runvault-replayed"), Some(pack.as_str()), "{name}");
    }
    let unknown = chat_at(gateway.address(), "/recording/nothing", "a").expect(400);
    let unknown = unknown.json();
    let detail = unknown["detail"].as_str().unwrap();
    assert!(detail.contains("no tag or run in the vault has the name nothing"), "{unknown}");
    assert_eq!(upstream.requests(), 1);
}

#[test]
fn a_recording_of_no_gateway_is_refused() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let gateway = start(&sandbox, GatewayMode::Pass, &upstream);
    chat_at(gateway.address(), "/recording/latest", "a").expect(400);
    chat_at(gateway.address(), "/recording/4711", "a").expect(400);
    let unknown = format!("/recording/sha256:{}", "ab".repeat(32));
    assert_ne!(chat_at(gateway.address(), &unknown, "a").status, 200);
    assert_eq!((upstream.requests(), kinds(&sandbox)), (0, vec![]));
}
