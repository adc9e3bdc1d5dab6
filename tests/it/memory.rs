//! Memory: every command that reads documents stays within the documented bounds (`docs/limits.md`, "Memory").
#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::{Value, json};

use crate::audit::{self, contract};
use crate::sandbox::{Sandbox, command_pages, repository, run_pack, session};
use crate::traces::{self, Record};

/// Memory that a command uses without documents, in MiB, as documented.
const BASE: u64 = 64;

/// Runs the program with this number of MiB of data, which does not count its code; nothing where the shell cannot limit it.
#[expect(clippy::print_stdout, reason = "a test that tests nothing says so")]
fn within_memory(sandbox: &Sandbox, mebibytes: u64, arguments: &[&str]) -> Option<std::process::Output> {
    let limit = format!("ulimit -d {}", mebibytes << 10);
    if !Command::new("sh").args(["-c", &limit]).status().is_ok_and(|status| status.success()) {
        println!("this system cannot limit memory: nothing was tested");
        return None;
    }
    let program = sandbox.command();
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("{limit} && exec \"$0\" \"$@\"")])
        .arg(program.get_program())
        .args(arguments);
    command.current_dir(sandbox.path("")).env_clear().env("RUNVAULT_VAULT", "v.vault");
    command.env("RUNVAULT_CONFIG", sandbox.path("config.toml"));
    // Each thread would reserve its own, used or not.
    command.env("MALLOC_ARENA_MAX", "1");
    Some(command.output().unwrap())
}

fn expect_success(output: Option<std::process::Output>) {
    if let Some(output) = output {
        assert!(output.status.success(), "{:?}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    }
}

/// Makes the documents larger: 10 million values each, and a trace of 900 MB.
const LARGE: &str = "RUNVAULT_TEST_MEMORY";

#[test]
fn documents_of_many_values_are_not_all_in_memory_at_once() {
    let (count, values, mebibytes) =
        if std::env::var_os(LARGE).is_some() { (5, 9_900_000, 1_000) } else { (3, 4_500_000, 450) };
    let sandbox = Sandbox::new();
    let zeros = "0,".repeat(values);
    for number in 0..count {
        let document = session(&format!("a{number}"), &[]);
        let document = format!("{},\"x\":[{zeros}0]}}", document.strip_suffix('}').unwrap());
        sandbox.write(&format!("many/{number}.json"), document);
    }
    expect_success(within_memory(&sandbox, mebibytes, &["add", "many"]));
}

#[test]
fn large_documents_take_a_few_times_their_size() {
    let megabytes = if std::env::var_os(LARGE).is_some() { 850 } else { 34 };
    let sandbox = Sandbox::new();
    // Digests stand in it, and most of it is not compressible.
    let mut text = String::new();
    let mut number = 0_u64;
    while text.len() < megabytes * 1_000_000 {
        let digest = runvault::digest::Digest::from_content(&number.to_le_bytes()).hex();
        text.push_str(&digest);
        text.push(' ');
        text.push_str(digest.get(..63).unwrap());
        text.push(' ');
        number += 1;
    }
    let document = session("large", &[]);
    let document = format!("{},\"x\":\"{text}\"}}", document.strip_suffix('}').unwrap());
    sandbox.write("large.json", &document);
    let mebibytes = BASE + 3 * megabytes as u64;
    let size = ["--max-size", "900M"];
    expect_success(within_memory(&sandbox, mebibytes, &["add", "large.json", size[0], size[1]]));
    expect_success(within_memory(&sandbox, mebibytes, &["get", "latest", "-o", "out.json"]));
    if let Ok(bytes) = std::fs::read(sandbox.path("out.json")) {
        assert!(bytes == document.into_bytes(), "it comes out as it went in");
    }
}

#[test]
fn large_attachments_take_a_few_times_their_size() {
    let megabytes = if std::env::var_os(LARGE).is_some() { 850 } else { 34 };
    let sandbox = Sandbox::new();
    // Neither text nor compressible.
    let bytes = noise(0, megabytes * 1_000_000);
    sandbox.write("large", &bytes);
    let mebibytes = BASE + 3 * megabytes as u64;
    let add = ["add", "--as", "attachment", "large", "--max-size", "900M"];
    expect_success(within_memory(&sandbox, mebibytes, &add));
    expect_success(within_memory(&sandbox, mebibytes, &["get", "latest", "-o", "out"]));
    if let Ok(read) = std::fs::read(sandbox.path("out")) {
        assert!(read == bytes, "it comes out as it went in");
        let stored = std::fs::metadata(sandbox.vault()).unwrap().len();
        assert!(stored < bytes.len() as u64 * 21 / 20, "{stored} bytes for {}", bytes.len());
    }
}

#[test]
fn large_traces_take_a_few_times_their_size() {
    const RECORD: usize = 100_000;
    let megabytes = if std::env::var_os(LARGE).is_some() { 910 } else { 12 };
    let sandbox = Sandbox::new();
    let outputs: Vec<Value> = (0..megabytes * 1_000_000 / RECORD)
        .map(|number| text(&format!("record {number}"), RECORD).into())
        .collect();
    let lines = traces::lines("run-1", &outputs.iter().map(Record::Output).collect::<Vec<_>>()).concat();
    drop(outputs);
    sandbox.write("trace.ndjson", &lines);
    let mebibytes = BASE + 3 * megabytes as u64;
    expect_success(within_memory(&sandbox, mebibytes, &["add", "trace.ndjson", "--max-size", "900M"]));
    expect_success(within_memory(&sandbox, mebibytes, &["fsck"]));
    expect_success(within_memory(&sandbox, mebibytes, &["get", "latest", "-o", "out.ndjson"]));
    if let Ok(bytes) = std::fs::read(sandbox.path("out.ndjson")) {
        assert!(bytes == lines.into_bytes(), "it comes out as it went in");
    }
}

/// Bytes that are not compressible, each time others.
fn noise(seed: usize, bytes: usize) -> Vec<u8> {
    // Xorshift: a digest for every 32 bytes took more time than what is tested.
    let mut state = 0x9e37_79b9_7f4a_7c15 ^ (seed as u64 + 1).wrapping_mul(0x2545_f491_4f6c_dd1d);
    let mut noise = vec![0; bytes];
    for chunk in noise.chunks_exact_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        chunk.copy_from_slice(&state.to_le_bytes());
    }
    noise
}

/// Three times the 64 MiB of documents that are read at the same time.
const AT_ONCE: u64 = BASE + 3 * 64;

#[test]
fn many_large_documents_wait_for_each_other() {
    let sandbox = Sandbox::new();
    for number in 0..10 {
        sandbox.write(&format!("many/{number}"), noise(number, 20_000_000));
    }
    expect_success(within_memory(&sandbox, AT_ONCE, &["add", "--as", "attachment", "many"]));
    expect_success(within_memory(&sandbox, AT_ONCE, &["fsck"]));
    expect_success(within_memory(&sandbox, AT_ONCE, &["export", "--all", "-o", "all.rvz"]));
    expect_success(within_memory(
        &sandbox,
        AT_ONCE,
        &["import", "all.rvz", "--vault", "n.vault", "--create"],
    ));
}

/// Each run refers to a file beside it, so that a small document takes much memory.
#[test]
fn large_files_beside_small_documents_wait_for_each_other() {
    let sandbox = Sandbox::new();
    for number in 0..10 {
        let content = noise(number, 20_000_000);
        let digest = runvault::digest::Digest::from_content(&content).to_string();
        let name = format!("beside-{number}");
        sandbox.write(&format!("d/{name}"), content);
        let output = json!({"files": [{"path": name, "sha256": digest}]});
        let run = run_pack(&format!("run-{number}"), &[json!({"type": "tool.response", "output": output})]);
        sandbox.write(&format!("d/{number}.rpk"), run);
    }
    expect_success(within_memory(&sandbox, AT_ONCE, &["add", "d"]));
    let attachments = sandbox.run(["find", "attachments", "--json"]).expect(0).json();
    assert_eq!(attachments.len(), 10);
}

/// Each string would have the name in its place.
#[test]
fn strings_beneath_a_long_name_do_not_take_its_length_each() {
    let sandbox = Sandbox::new();
    let strings: Vec<String> = (0..16_000).map(|number| format!("s{number}")).collect();
    let body =
        json!({"model": "m", "messages": [{"role": "user", "content": "hi"}], "k".repeat(150_000): strings});
    let answer = json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}}]});
    let call = json!({"request": {"url": "/v1/chat/completions", "body": body},
        "response": {"status_code": 200, "headers": {"content-type": "application/json"}, "body": answer.to_string()}});
    sandbox.write("calls.jsonl", format!("{call}\n"));
    let import = ["import", "calls.jsonl", "--no-original", "--redact", "zk-[A-Z]{8}"];
    expect_success(within_memory(&sandbox, BASE + 8, &import));
    assert_eq!(sandbox.run(["find", "--json"]).expect(0).json().len(), 2, "the session and the run pack");
}

#[test]
fn violations_of_all_alternatives_of_a_schema_are_not_in_memory_at_once() {
    const VALUES: usize = 200_000;
    let sandbox = Sandbox::new();
    let alternatives = vec![json!({"items": {"not": {}}}); 10];
    let reference =
        json!({"ref": "service:tracker", "schema": {"properties": {"n": {"anyOf": alternatives}}}});
    let contract = contract(&[json!({"evidence": {"type": "status", "metric": "m"}})], &[reference]);
    let arguments = json!({"n": vec![1; VALUES]});
    let request = json!({"type": "tool.request", "input": {"tool": "tracker.label", "arguments": arguments}});
    let run = audit::run_pack(&[request], &json!({}));
    let documents = [("contract.json", contract), ("run.rpk", run)];
    let added = sandbox.add(documents.map(|(name, document)| sandbox.write(name, document.to_string())));
    // The size of the run, and of its values, as documented.
    let mebibytes = BASE + 1 + ((VALUES * 100) as u64 >> 20);
    let Some(audited) = within_memory(&sandbox, mebibytes, &["audit", "--json", &added[0], &added[1]]) else {
        return;
    };
    let findings = String::from_utf8_lossy(&audited.stdout);
    assert!(
        findings.contains("/n: [1,1,"),
        "{:?} {findings:.500} {:?}",
        audited.status,
        String::from_utf8_lossy(&audited.stderr)
    );
}

/// What one vault has, and the memory that commands may use: as documented, with documents of this size and this number of values
/// at the same time.
struct Large {
    sandbox: Sandbox,
    mebibytes: u64,
}

/// Text that is not compressible, and that repeats in no other text.
fn text(name: &str, bytes: usize) -> String {
    let digests = (0_u64..)
        .map(|number| runvault::digest::Digest::from_content(format!("{name} {number}").as_bytes()).hex());
    let mut text = String::with_capacity(bytes + 65);
    for digest in digests {
        text.push_str(&digest);
        text.push('\n');
        if text.len() >= bytes {
            break;
        }
    }
    text
}

/// Two sessions, a run, a trace and a contract that governs the run, each of about this size except for the contract, with
/// `make` for what makes them large.
fn large(make: impl Fn(&str) -> Value, mebibytes: u64) -> Large {
    let sandbox = Sandbox::new();
    let answers: Vec<String> = (0..3).map(|number| text(&format!("answer {number}"), 50_000)).collect();
    let exchanges: Vec<(&str, &str)> =
        ["first", "second", "third"].into_iter().zip(answers.iter().map(String::as_str)).collect();
    for name in ["one", "other"] {
        let document = session(name, &exchanges);
        let document = format!("{},\"x\":{}}}", document.strip_suffix('}').unwrap(), make(name));
        sandbox.write(&format!("d/{name}.json"), document);
    }
    let run = run_pack(
        "run-1",
        &[
            json!({"type": "model.request", "input": {"prompt": "first"}}),
            json!({"type": "model.response", "output": {"content": answers[0]}}),
            json!({"type": "tool.request", "input": {"tool": "tracker.label", "ticket_id": "1"}}),
            json!({"type": "tool.response", "output": {"tool": "tracker.label", "label_status": "ok", "of": make("run")}}),
        ],
    );
    sandbox.write("d/run.rpk", run);
    let trace = traces::lines("run-1", &[Record::Output(&make("trace")), Record::Step(1)]);
    sandbox.write("d/trace.ndjson", trace.concat());
    std::fs::copy(repository("examples/contract.yaml"), sandbox.path("d/contract.yaml")).unwrap();
    Large { sandbox, mebibytes }
}

/// Commands that run one after another. After the first addition, each file's artifact has its name as a tag.
const COMMANDS: &[&str] = &[
    "verify d",
    "add --dry-run d",
    "add d",
    "watch --once --settle 0 d",
    "verify @one @other @run @trace",
    "show @one",
    "show @run --json",
    "show @trace",
    "view @one",
    "view @run --full",
    "view @run --json",
    "view @trace --recorded",
    "view @contract",
    "find --prompt first --answers",
    "find --answers --json",
    "get @one -o out.json",
    "get @run --core -o out.json --force",
    "get @trace -o out.json --force",
    "diff @one @other --stat",
    "diff @one @other --json",
    "diff d/one.json @one --first",
    "diff @run @run",
    "assert @run --candidate @run",
    "diff @trace d/trace.ndjson",
    "find --prompt first",
    "find --json",
    "list",
    "list --json --flat",
    "index build",
    "index status",
    "search answer",
    "replay @one --prompt second",
    "replay any --prompt third",
    "links @run",
    "link add @one follows @run",
    "link list @one",
    "path @run @one",
    "link remove @one follows @run",
    "label set @one commit=4f2a91c",
    "label list",
    "label list commit",
    "label list --of @one",
    "label remove @one commit",
    "unresolved",
    "forks",
    "audit @contract @run",
    "stats",
    "log",
    "sql|SELECT count(*) FROM interactions",
    "sql|SELECT length(response_content) FROM interactions",
    "sql|SELECT count(*), sum(length(output)) FROM steps",
    "sql|SELECT count(*), sum(length(record)) FROM records",
    "sql|SELECT count(*) FROM effects",
    "sql|SELECT count(*) FROM links",
    "sql --save saved.db",
    "fsck",
    "fsck --repair",
    "fsck --repair --from d",
    "index rebuild",
    "index drop",
    "backup b.vault",
    "copy v.vault c.vault",
    "copy v.vault b.vault",
    "export --all -o all.rvz",
    "export @one --with-links -o one.rvz",
    "import all.rvz",
    "import all.rvz --vault new.vault --create",
    "tag set @one again",
    "tag list",
    "note set @one remember",
    "note show @one",
    "note remove @one",
    "pin add @one",
    "pin list",
    "pin remove @one",
    "forget --keep-last 1 --dry-run",
    "rm @other --dry-run",
    "rm @other --force",
    "gc",
    "tombstones",
    "tag remove trace",
];

/// Commands that read no document, and those that answer requests until they are stopped.
const OTHERS: &[&str] = &[
    "init",
    "config get",
    "config set",
    "config unset",
    "config list",
    "config path",
    "rules",
    "serve",
    "mcp",
    "exec",
    "gateway",
    "mcp-proxy",
    "gateway discard",
    "gateway recover",
    "completions",
    "man",
];

/// The commands that can be run, as the documentation lists them, with their subcommands.
fn commands() -> BTreeSet<String> {
    let text = command_pages();
    let usages: BTreeSet<&str> =
        text.lines().filter_map(|line| line.strip_prefix("Usage: runvault ")).collect();
    assert!(usages.len() > 30, "{usages:?}");
    let runs = |usage: &&&str| !usage.ends_with("<COMMAND>");
    usages
        .iter()
        .filter(runs)
        .map(|usage| usage.split(['[', '<']).next().unwrap().trim().to_owned())
        .collect()
}

fn expect_within(Large { sandbox, mebibytes }: &Large) {
    let mut broken = Vec::new();
    for command in COMMANDS {
        let words: Vec<&str> = match command.split_once('|') {
            Some((command, query)) => vec![command, query],
            None => command.split(' ').collect(),
        };
        let Some(output) = within_memory(sandbox, *mebibytes, &words) else { return };
        // A negative answer is an answer.
        if !matches!(output.status.code(), Some(0 | 1)) {
            broken.push(format!(
                "{command}: {:?}: {}",
                output.status,
                String::from_utf8_lossy(&output.stderr)
            ));
        }
        if *command == "add d" {
            for file in ["contract.yaml", "one.json", "other.json", "run.rpk", "trace.ndjson"] {
                let core = sandbox.add([sandbox.path("d").join(file)]).remove(0);
                sandbox.run(["tag", "set", &core, file.split('.').next().unwrap()]).expect(0);
            }
        }
    }
    assert!(broken.is_empty(), "{mebibytes} MiB: {broken:#?}");
}

#[test]
fn every_command_stays_within_the_bounds_with_large_documents() {
    let bytes = if std::env::var_os(LARGE).is_some() { 60_000_000 } else { 1_500_000 };
    // The four documents are read at the same time, if they have at most 64 MiB together.
    let at_once = (4 * bytes as u64 / 1_000_000).min(67).max(bytes as u64 / 1_000_000 + 1);
    expect_within(&large(|name| text(name, bytes).into(), BASE + 3 * at_once));
}

#[test]
fn every_command_stays_within_the_bounds_with_many_values() {
    let values = if std::env::var_os(LARGE).is_some() { 9_000_000 } else { 100_000 };
    let at_once = (4 * values).min(4_194_304).max(values);
    let megabytes = (2 * at_once + 100 * at_once) / 1_000_000;
    expect_within(&large(|_| vec![0; values].into(), BASE + 3 * 3 + megabytes as u64));
}

#[test]
fn every_command_is_run_within_the_bounds_or_reads_no_document() {
    let is_run = |command: &String| {
        let words = format!("{command} ");
        COMMANDS.iter().any(|run| format!("{} ", run.replace('|', " ")).starts_with(&words))
            || OTHERS.contains(&command.as_str())
    };
    let missing: Vec<_> = commands().into_iter().filter(|command| !is_run(command)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
