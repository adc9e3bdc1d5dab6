//! Runs that are being recorded: in lists, on pages, and as conversations.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use runvault::Vault;
use runvault::gateway::Gateway;
use serde_json::Value;

use super::client::{chat, request};
use super::upstream::Upstream;
use super::{GatewayMode, options, started};
use crate::sandbox::Sandbox;
use crate::server::Serving;

/// Starts a gateway with its calls where other commands look for them.
fn recording(sandbox: &Sandbox, upstream: &Upstream) -> Gateway {
    let mut options = options(sandbox, GatewayMode::Record, upstream);
    options.spool = Vault::recordings_beside(&sandbox.vault()).unwrap();
    options.labels = [("job".to_owned(), "7".to_owned())].into();
    started(sandbox, options).unwrap()
}

/// The lines of JSON that have a state.
fn unfinished(sandbox: &Sandbox) -> Vec<Value> {
    let lines = sandbox.run(["list", "--json"]).expect(0).json();
    lines.into_iter().filter(|line| line["state"].is_string()).collect()
}

#[test]
fn a_run_that_is_being_recorded_is_listed_and_read() {
    let (sandbox, upstream) = (Sandbox::new(), Upstream::start());
    sandbox.add([sandbox.write("session.json", crate::sandbox::session("old", &[("p", "r")]))]);
    let gateway = recording(&sandbox, &upstream);
    assert!(unfinished(&sandbox).is_empty());
    chat(gateway.address(), "one", false).expect(200);
    chat(gateway.address(), "fail", false).expect(429);

    let runs = unfinished(&sandbox);
    let [run] = runs.as_slice() else { panic!("{runs:?}") };
    let id = run["run_id"].as_str().unwrap();
    assert_eq!((&run["state"], &run["calls"], &run["failed"]), (&"recording".into(), &2.into(), &1.into()));
    assert_eq!(run["labels"]["job"], "7");
    let listed = sandbox.run(["list"]).expect(0);
    let first = listed.stdout.lines().next().unwrap();
    assert!(first.starts_with("recording") && first.contains(id) && first.contains("2 calls"), "{first}");
    assert!(listed.stderr.contains("2 rows"), "{}", listed.stderr);
    let listed = |args: &[&str]| sandbox.run([&["list"], args].concat()).stdout;
    // What is known of them selects them, and is in the columns that show it.
    let shown = listed(&["--columns", "hash,run_id,labels,size", "--label", "job=7"]);
    assert!(shown.starts_with(&format!("recording {id} job=7")), "{shown}");
    let year = &run["started_at"].as_str().unwrap()[..4];
    for args in [&["runs"][..], &["sessions"], &["--label", "job=*"], &["--since", year]] {
        assert!(listed(args).contains(id), "{args:?}");
    }
    // What selects other things does not have them.
    for args in [
        &["contracts"][..],
        &["--label", "job=8"],
        &["--label", "other"],
        &["--until", year],
        &["--since", year, "--by", "finished"],
        &["--model", "*"],
        &["--flat"],
    ] {
        assert!(!listed(args).contains(id), "{args:?}");
    }
    assert!(!sandbox.run(["list", "--format", "{{run_id}}"]).expect(0).stdout.contains(id));

    let read = sandbox.run(["view", id]).expect(0);
    let head = format!("recording {id}\n");
    assert!(
        read.stdout.starts_with(&head) && read.stdout.contains("error      slow down"),
        "{}",
        read.stdout
    );
    assert!(read.stderr.contains("2 calls so far"), "{}", read.stderr);
    let answer = sandbox.run(["view", id, "--json"]).expect(0).json().remove(0);
    assert_eq!(answer["conversation"]["calls"].as_array().unwrap().len(), 2);

    let serving = Serving::start(&sandbox);
    for path in ["/", "/recordings"] {
        let page = serving.get(path).expect(200);
        let page = page.text();
        assert!(page.contains("Being recorded") && page.contains(id) && page.contains("2 calls"), "{page}");
    }
    gateway.stop().unwrap();
    assert!(unfinished(&sandbox).is_empty());
    assert!(!serving.get("/recordings").expect(200).text().contains("Being recorded"));
    assert!(sandbox.run(["view", id]).expect(0).stdout.starts_with("run pack "));
}

#[test]
fn a_run_is_followed_until_it_is_finished() {
    let (sandbox, upstream) = (Sandbox::new(), Upstream::start());
    let gateway = recording(&sandbox, &upstream);
    chat(gateway.address(), "one", false).expect(200);
    let mut command = sandbox.command();
    command.args(["view", "latest", "--follow"]).stdin(Stdio::null());
    let mut following = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(following.stdout.take().unwrap());
    let mut text = String::new();
    let mut read_to = |text: &mut String, what: &str| {
        let begin = text.len();
        while !text[begin..].contains(what) {
            assert_ne!(output.read_line(text).unwrap(), 0, "{what}: {text}");
        }
    };
    read_to(&mut text, "user       one");
    chat(gateway.address(), "two", false).expect(200);
    read_to(&mut text, "user       two");
    chat(gateway.address(), "three", false).expect(200);
    // A client can finish the run.
    request(gateway.address(), "POST /_runvault/finish", &[], "").expect(200);
    output.read_to_string(&mut text).unwrap();
    assert!(following.wait().unwrap().success());
    for prompt in ["one", "two", "three"] {
        assert_eq!(text.matches(&format!("user       {prompt}\n")).count(), 1, "{text}");
    }
    gateway.stop().unwrap();
}

#[test]
fn a_run_whose_process_has_ended_is_interrupted() {
    let (sandbox, upstream) = (Sandbox::new(), Upstream::start());
    let gateway = recording(&sandbox, &upstream);
    chat(gateway.address(), "one", false).expect(200);
    let directory = Vault::recordings_beside(&sandbox.vault()).unwrap();
    let entries = std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path());
    let path = entries.into_iter().find(|path| path.extension().is_some_and(|it| it == "run")).unwrap();
    let mut text = std::fs::read(&path).unwrap();
    gateway.stop().unwrap();
    // A line of which only the beginning was written, and a file of which nothing was.
    text.extend_from_slice(b"{\"stored_call\":{\"nu");
    std::fs::write(&path, text).unwrap();
    std::fs::write(directory.join("1-2-3.run"), "").unwrap();
    let runs = unfinished(&sandbox);
    assert_eq!((runs.len(), &runs[0]["state"], &runs[0]["calls"]), (1, &"interrupted".into(), &1.into()));
    let followed = sandbox.run(["view", "latest", "--follow"]).expect(0);
    assert!(followed.stdout.contains("user       one"), "{}", followed.stdout);
    assert!(followed.stderr.contains("has ended"), "{}", followed.stderr);
}
