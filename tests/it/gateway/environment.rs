//! Servers that variables of the environment name when a program is run.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::json;

use super::client::{chat, request};
use super::upstream::Upstream;
use crate::sandbox::Sandbox;

/// Prints the URL that the client of a program would read, and waits until its standard input ends.
const PROGRAM: &str = r#"echo "$OPENAI_BASE_URL"; cat"#;

/// Makes a call at the URL that a program gets, where the variable has a path at the server.
fn forwarded(path: &str, options: &[&str]) -> String {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let mut command = sandbox.command();
    command.args(["exec", "--create", "--mode", "record"]).args(options).args(["--", "sh", "-c", PROGRAM]);
    command.env("OPENAI_BASE_URL", format!("http://{}{path}", upstream.address));
    command.env("PATH", std::env::var_os("PATH").unwrap());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut url = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let (address, base) = url.trim().strip_prefix("http://").unwrap().split_once('/').unwrap();
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "one"}]}).to_string();
    let line = format!("POST /{base}/chat/completions");
    let answer = request(address.parse().unwrap(), &line, &["content-type: application/json"], &body);
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    assert_eq!(answer.status == 200, upstream.requests() == 1, "{}", answer.body);
    upstream.heads().lines().next().unwrap_or_default().to_owned()
}

#[test]
fn a_server_that_a_variable_names_is_asked() {
    assert_eq!(forwarded("/v1", &[]), "POST /v1/chat/completions HTTP/1.1");
    assert_eq!(forwarded("/models/v1/", &[]), "POST /models/v1/chat/completions HTTP/1.1");
    // What has no version gets none.
    assert_eq!(forwarded("/proxy", &[]), "POST /proxy/chat/completions HTTP/1.1");
    // Port 9 has no server.
    assert_eq!(forwarded("/v1", &["--upstream", "openai=http://127.0.0.1:9"]), "");
}

#[test]
fn a_variable_that_is_not_the_url_of_a_server_is_an_error_unless_it_is_not_used() {
    let sandbox = Sandbox::new();
    let run = |options: &[&str]| {
        let mut command = sandbox.command();
        command.arg("exec").args(options).args(["--", "true"]).env("ANTHROPIC_BASE_URL", "ftp://models");
        command.env("PATH", std::env::var_os("PATH").unwrap()).output().unwrap()
    };
    let refused = run(&[]);
    assert_eq!(refused.status.code(), Some(3));
    let message = String::from_utf8(refused.stderr).unwrap();
    assert!(message.contains("ANTHROPIC_BASE_URL: the URL of the upstream server anthropic"), "{message}");
    for options in [&["--mode", "replay"][..], &["--upstream", "anthropic=http://127.0.0.1:9"]] {
        assert!(run(options).status.success(), "{options:?}");
    }
}

#[test]
fn the_number_of_replayed_and_recorded_calls_is_printed() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let run = |prompts: &[&str]| {
        let mut command = sandbox.command();
        let server = format!("openai=http://{}", upstream.address);
        command.args(["exec", "--create", "--upstream", &server, "--", "sh", "-c", PROGRAM]);
        command.env("PATH", std::env::var_os("PATH").unwrap());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let (address, _) = url.trim().strip_prefix("http://").unwrap().split_once('/').unwrap();
        for prompt in prompts {
            chat(address.parse().unwrap(), prompt, false).expect(200);
        }
        drop(child.stdin.take());
        String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap()
    };
    assert!(!run(&["one"]).contains("replayed"));
    assert_eq!(run(&["one"]), "replayed 1 call, recorded 0 calls\n");
    assert!(run(&["one", "two", "three"]).contains("replayed 1 call, recorded 2 calls\n"));
    assert_eq!(run(&[]), "");
}

#[test]
fn an_unknown_option_is_not_taken_for_the_program() {
    let sandbox = Sandbox::without_vault();
    let said = sandbox.run(["exec", "--create", "--lable", "a=b", "--", "true"]).expect(3).stderr;
    assert_eq!(said, "error: unexpected argument --lable; the program follows the options and \"--\"\n");
    assert!(!sandbox.vault().exists());
}
