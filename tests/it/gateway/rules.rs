//! Rules of comparison in the configuration file.

use std::net::SocketAddr;

use runvault::Vault;
use runvault::gateway::recorded_calls;
use serde_json::{Value, json};

use super::Process;
use super::client::{Answer, request};
use super::upstream::Upstream;
use crate::sandbox::Sandbox;

fn ask(address: SocketAddr, seed: u32, content: &str) -> Answer {
    let body = json!({"model": "m", "seed": seed, "temperature": seed, "messages": [{"role": "user", "content": content}]});
    request(address, "POST /v1/chat/completions", &[], &body.to_string())
}

#[test]
fn rules_and_servers_of_the_configuration_are_used_and_stated() {
    let (sandbox, upstream, unused) = (Sandbox::without_vault(), Upstream::start(), Upstream::start());
    let server = |upstream: &Upstream| format!("openai=http://{}", upstream.address);
    let config = format!(
        "gateway-upstream = ['{}', 'other=http://127.0.0.1:9']\ngateway-ignore = 'temperature'\n\
         gateway-normalize = ['uuid', '/messages=timestamp']\ngateway-redact = ['sk-[a-z]+']\n",
        server(&unused)
    );
    sandbox.write("config.toml", config);
    // Arguments add to the rules, and replace the server of the same name.
    let upstream_option = format!("--upstream={}", server(&upstream));
    let more = ["--ignore=seed", "--normalize=s/No [0-9]+/No N/"];
    let recording = Process::start_with(
        &sandbox,
        &[&["--create", "--mode=record", &upstream_option], &more[..]].concat(),
    );
    let first = "0190163d-8694-739b-aea5-966c26f8ad91 at 2026-11-22T20:15:00Z, No 7, sk-secret";
    let recorded = ask(recording.address, 1, first).expect(200);
    request(recording.address, "POST /_runvault/finish", &[], "").expect(200);
    assert_eq!((upstream.requests(), unused.requests()), (1, 0));
    let found = sandbox.run(["find", "rpk", "--json"]).expect(0).json();
    let pack = sandbox.run(["get", found[0]["core_hash"].as_str().unwrap()]).expect(0).stdout;
    assert!(!pack.contains("sk-secret"));
    let pack: Value = serde_json::from_str(&pack).unwrap();
    let stated = &pack["metadata"]["gateway"]["matching"];
    assert_eq!((&stated["ignored"], &stated["redacted"]), (&json!(["temperature", "seed"]), &json!(1)));
    let replaced = stated["replaced"].as_array().unwrap();
    let texts = |name: &str| replaced.iter().map(|rule| rule[name].as_str().unwrap()).collect::<Vec<_>>();
    assert_eq!((texts("at"), texts("with")), (vec!["", "/messages", ""], vec!["UUID", "TIMESTAMP", "No N"]));
    let core = found[0]["core_hash"].as_str().unwrap().parse().unwrap();
    let vault = Vault::open(&sandbox.vault()).unwrap();
    let prompt = &recorded_calls(&vault, core).unwrap().unwrap()[0].prompt;
    assert!(prompt.contains("UUID at TIMESTAMP, No N, [REDACTED]"), "{prompt}");
    let replaying = Process::start_with(&sandbox, &[&["--mode=replay"], &more[..]].concat());
    let other = "11111111-2222-4333-8444-555555555555 at 2027-01-01 00:00, No 8, sk-other";
    // The client got the answer as it was; what is stored and replayed is redacted.
    let stored = recorded.body.replace("sk-secret", "[REDACTED]");
    assert_eq!(ask(replaying.address, 2, other).expect(200).body, stored);
    // Without the rules of the arguments, it is another prompt.
    ask(Process::start_with(&sandbox, &["--mode=replay"]).address, 2, first).expect(400);
}

#[test]
fn settings_of_the_gateway_are_lists() {
    let sandbox = Sandbox::new();
    let config = |arguments: &[&str]| sandbox.run([&["config"], arguments].concat());
    config(&["set", "gateway-normalize", "uuid\n/input=s/a,b/c/"]).expect(0);
    let written = std::fs::read_to_string(sandbox.path("config.toml")).unwrap();
    assert_eq!(written, "gateway-normalize = [\"uuid\", \"/input=s/a,b/c/\"]\n");
    assert_eq!(config(&["get", "gateway-normalize"]).expect(0).stdout, "uuid\n/input=s/a,b/c/\n");
    let listed = config(&["list", "--json"]).expect(0).json();
    let listed = listed.iter().find(|line| line["name"] == "gateway-normalize").unwrap();
    assert_eq!(
        (&listed["value"], &listed["origin"], &listed["argument"]),
        (&json!("uuid\n/input=s/a,b/c/"), &json!("file"), &json!("--normalize"))
    );
    assert!(config(&["list"]).expect(0).stdout.contains("uuid, /input=s/a,b/c/"));
    config(&["set", "gateway-normalize", "guid"]).expect(3);
    config(&["set", "gateway-redact", "("]).expect(3);
    config(&["set", "gateway-ignore", "a/b"]).expect(3);
    config(&["set", "gateway-upstream", "openai"]).expect(3);
    sandbox.write("config.toml", "gateway-redact = ['ok', 7]\n");
    let wrong = sandbox.run(["exec", "--create", "--", "true"]).expect(3).stderr;
    assert!(wrong.contains("line 1: gateway-redact is not a string or an array of strings"), "{wrong}");
    sandbox.write("config.toml", "gateway-redact = ['ok', '(']\n");
    let wrong = sandbox.run(["exec", "--create", "--", "true"]).expect(3).stderr;
    assert!(wrong.contains("line 1: gateway-redact: the regular expression \"(\" is not valid"), "{wrong}");
}

#[test]
fn rules_that_are_given_only_at_replay_apply_to_what_was_recorded_without_them() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let server = format!("--upstream=openai=http://{}", upstream.address);
    let recording = Process::start_with(&sandbox, &["--create", "--mode=record", &server]);
    let first = ask(recording.address, 1, "Today is Thu Nov 26 2026, key sk-secret").expect(200);
    let second = ask(recording.address, 1, "again").expect(200);
    request(recording.address, "POST /_runvault/finish", &[], "").expect(200);
    let changed = "Today is Friday, November 27, 2026, key sk-other";
    let rules = [
        "--ignore=seed,temperature",
        "--normalize=date",
        "--normalize=s/Thu |Friday, //",
        "--redact=sk-[a-z]+",
    ];
    for (mode, rules, status) in [
        ("--mode=replay", &rules[..], 200),
        ("--mode=auto", &rules, 200),
        ("--mode=replay", &rules[1..], 400),
        ("--mode=replay", &rules[..3], 400),
        ("--mode=replay", &[], 400),
    ] {
        let replaying = Process::start_with(&sandbox, &[&[mode, &server], rules].concat());
        let answer = ask(replaying.address, 2, changed).expect(status);
        assert_eq!(answer.body == first.body, status == 200, "{rules:?}");
        let again = ask(replaying.address, 1, "again").expect(200);
        assert_eq!(again.body, second.body);
    }
    assert_eq!(upstream.requests(), 2);
}
