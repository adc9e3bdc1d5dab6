//! Every limit from both sides: what reaches it gets in, what exceeds it is told which it was, its value, and the flag.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::packs::{gzip, part, run, tar_of, zip_of};
use crate::sandbox::{Ran, Sandbox, session};

/// A session that is `levels` deep.
fn deep(levels: usize) -> String {
    let inner = levels - 1;
    session("a", &[("p", "r")]).replacen(
        '{',
        &format!("{{\"deep\":{}{},", "[".repeat(inner), "]".repeat(inner)),
        1,
    )
}

fn contract(levels: usize) -> String {
    format!("io_refs: []\neffects: []\ndeep: {}{}\n", "[".repeat(levels - 1), "]".repeat(levels - 1))
}

/// The messages of what broke a DOC rule.
fn messages(ran: &Ran) -> Vec<String> {
    let lines = ran.json();
    let violations = lines.iter().flat_map(|line| line["violations"].as_array().unwrap());
    let limits = violations.filter(|one| one["rule_id"].as_str().unwrap().starts_with("DOC"));
    limits.map(|one| one["message"].as_str().unwrap().to_owned()).collect()
}

/// Verifies `name` with `arguments` and expects it to be good.
fn within(sandbox: &Sandbox, arguments: &[&str], name: &str) {
    let ran = sandbox.run(["verify", "--json"].iter().chain(arguments).chain([&name]));
    assert_eq!(messages(&ran), Vec::<String>::new());
    ran.expect(0);
}

/// Verifies `name` with `arguments` and expects that this is all that is wrong.
fn beyond(sandbox: &Sandbox, arguments: &[&str], name: &str, message: &str) {
    let ran = sandbox.run(["verify", "--json"].iter().chain(arguments).chain([&name])).expect(1);
    assert_eq!(messages(&ran), [message]);
}

#[test]
fn bytes() {
    let sandbox = Sandbox::new();
    let text = session("a", &[("p", "r")]);
    sandbox.write("s.json", &text);
    let (exact, less) = (text.len().to_string(), (text.len() - 1).to_string());
    within(&sandbox, &["--max-size", &exact], "s.json");
    let message = format!(
        "the document has {} bytes, more than the limit of {less}; raise it with --max-size",
        text.len()
    );
    beyond(&sandbox, &["--max-size", &less], "s.json", &message);
}

#[test]
fn bytes_from_standard_input() {
    let sandbox = Sandbox::new();
    let text = session("a", &[("p", "r")]);
    let archive = tar_of(&[part("run.json", run().to_string())]);
    for input in [text.as_bytes(), &archive] {
        let (exact, less) = (input.len().to_string(), (input.len() - 1).to_string());
        sandbox.run_on(input, &["add", "--max-size", &exact, "-"]).expect(0);
        let ran = sandbox.run_on(input, &["verify", "--json", "--max-size", &less, "-"]).expect(1);
        let message = format!("the document exceeds the limit of {less} bytes; raise it with --max-size");
        assert_eq!(messages(&ran), [message]);
    }
    // What was cut off is still told for what it is.
    let ran = sandbox.run_on(text.as_bytes(), &["verify", "--json", "--max-size", "300", "-"]).expect(1);
    assert_eq!(ran.json()[0]["kind"], "model_io");
}

#[test]
fn bytes_of_packs() {
    let sandbox = Sandbox::new();
    let run = run().to_string();
    sandbox.write("p/run.json", &run);
    sandbox.write("p/meta.json", "{}");
    let size = run.len() + 2;
    let (exact, less) = (size.to_string(), (size - 1).to_string());
    within(&sandbox, &["--max-size", &exact], "p");
    let message = format!("the files exceed the total limit of {less} bytes; raise it with --max-size");
    beyond(&sandbox, &["--max-size", &less], "p", &message);
    let parts = [part("run.json", &run), part("meta.json", "{}")];
    for archive in [zip_of(&parts), tar_of(&parts), gzip(&tar_of(&parts))] {
        sandbox.write("p.archive", archive);
        within(&sandbox, &["--max-size", &exact], "p.archive");
        let message =
            format!("the files in the archive exceed the limit of {less} bytes; raise it with --max-size");
        beyond(&sandbox, &["--max-size", &less], "p.archive", &message);
    }
}

#[test]
fn depth() {
    let sandbox = Sandbox::new();
    let told = |limit: usize| format!("nested deeper than {limit} levels; raise the limit with --max-depth");
    for limit in [1, 7, 128, 200] {
        let argument = limit.to_string();
        let flag: &[&str] = if limit == 128 { &[] } else { &["--max-depth", &argument] };
        if limit > 2 {
            sandbox.write("in.json", deep(limit));
            within(&sandbox, flag, "in.json");
            sandbox.write("in.yaml", contract(limit));
            within(&sandbox, flag, "in.yaml");
        }
        sandbox.write("out.json", deep(limit + 1));
        beyond(&sandbox, flag, "out.json", &told(limit));
        sandbox.write("out.yaml", contract(limit + 1));
        beyond(&sandbox, flag, "out.yaml", &told(limit));
    }
}

/// The stack of a thread does for as much depth as can be asked for, in every kind.
#[test]
fn greatest_depth() {
    let sandbox = Sandbox::new();
    let most = ["--max-depth", "500"];
    sandbox.write("in.json", deep(500));
    within(&sandbox, &most, "in.json");
    sandbox.run(["add", "--max-depth", "500", "in.json"]).expect(0);
    let block: String = (0..498).fold(String::new(), |text, level| text + &" ".repeat(level) + "- \n");
    let block = format!("io_refs: []\neffects: []\ndeep:\n{block}");
    sandbox.write("in.yaml", block);
    within(&sandbox, &most, "in.yaml");
    let brackets = "[".repeat(498) + &"]".repeat(498);
    for (name, text) in [
        (
            "run.rpk",
            format!(r#"{{"version":"1.0","metadata":{{"x":{brackets}}},"payload":{{}},"checksum":""}}"#),
        ),
        ("trace", format!(r#"{{"record_hash":"","prev_hash":"","type":"header","x":[{brackets}]}}"#)),
        ("contract", format!(r#"{{"io_refs":[],"effects":[],"x":[{brackets}]}}"#)),
        ("hashed", format!(r#"{{"io_refs":[{{"schema":{{"x":{}}}}}],"effects":[]}}"#, &brackets[2..994])),
    ] {
        sandbox.write(name, text);
        let ran = sandbox.run(["verify", "--json", "--max-depth", "500", name]);
        assert_eq!((messages(&ran), ran.stderr.contains("overflow")), (vec![], false), "{name}");
    }
    let schema = format!("{}{}", "[".repeat(496), "]".repeat(496));
    let io_ref = r#""ref":"r","kind":"service","required":true,"mode":"read""#;
    sandbox
        .write("c.json", format!(r#"{{"io_refs":[{{{io_ref},"schema":{{"x":{schema}}}}}],"effects":[]}}"#));
    within(&sandbox, &most, "c.json");
    sandbox.write("p/run.json", run().to_string());
    sandbox.write("p/meta.json", format!("{{\"x\":[{brackets}]}}"));
    within(&sandbox, &most, "p");
    let ran = sandbox.run(["verify", "--max-depth", "501", "in.json"]).expect(3);
    assert!(ran.stderr.contains("expected a whole number from 1 to 500"), "{}", ran.stderr);
    // Whoever calls the library cannot go beyond it either.
    let limits = runvault::json::reader::Limits::most();
    let error = runvault::json::reader::read("[".repeat(501).as_bytes(), &limits).unwrap_err();
    assert_eq!(error.message, "nested deeper than 500 levels");
}

#[test]
fn values() {
    let sandbox = Sandbox::new();
    sandbox.write("c.json", r#"{"io_refs": [], "effects": [], "x": [1, 2, 3]}"#);
    sandbox.write("c.yaml", "io_refs: []\neffects: []\nx: [1, 2, 3]\n");
    for name in ["c.json", "c.yaml"] {
        within(&sandbox, &["--max-values", "7"], name);
        let message = "the document has more than 6 values; raise the limit with --max-values";
        beyond(&sandbox, &["--max-values", "6"], name, message);
    }
    // What aliases stand for counts each time.
    sandbox.write("a.yaml", "io_refs: []\neffects: []\nx: &x [1, 2, 3]\ny: *x\n");
    within(&sandbox, &["--max-values", "11"], "a.yaml");
    sandbox.run(["verify", "--max-values", "10", "a.yaml"]).expect(1);
}

#[test]
fn entries() {
    let sandbox = Sandbox::new();
    let parts = [part("run.json", run().to_string()), part("meta.json", "{}")];
    sandbox.write("p/run.json", run().to_string());
    sandbox.write("p/meta.json", "{}");
    sandbox.write("p.zip", zip_of(&parts));
    sandbox.write("p.tar", tar_of(&parts));
    sandbox.write("p.tgz", gzip(&tar_of(&parts)));
    for name in ["p", "p.zip", "p.tar", "p.tgz"] {
        within(&sandbox, &["--max-entries", "2"], name);
        let message = "there are more than 1 entries; raise the limit with --max-entries";
        beyond(&sandbox, &["--max-entries", "1"], name, message);
    }
}

#[test]
fn names_and_lists_in_archives() {
    let sandbox = Sandbox::new();
    let doc5 = |ran: &Ran| messages(ran);
    let told = "an entry has a name of more than 4096 bytes, or headers of more than 262144, the limits";
    for (length, expected) in [(4096, vec![]), (4097, vec![told.to_owned()])] {
        let parts = [part("run.json", run().to_string()), part(&"n".repeat(length), "")];
        sandbox.write("p.zip", zip_of(&parts));
        assert_eq!(doc5(&sandbox.run(["verify", "--json", "p.zip"]).expect(1)), expected, "{length}");
    }
    let told = "the list of entries exceeds the limit of 8388608 bytes";
    for (length, expected) in [(700, vec![]), (1_000, vec![told.to_owned()])] {
        let many = (0..9_000).map(|number| part(&format!("{number:0length$}"), ""));
        let parts: Vec<_> = many.chain([part("run.json", run().to_string())]).collect();
        sandbox.write("p.zip", zip_of(&parts));
        assert_eq!(doc5(&sandbox.run(["verify", "--json", "p.zip"]).expect(1)), expected, "{length}");
    }
}

#[test]
fn headers_in_tar_files() {
    let sandbox = Sandbox::new();
    let told = "an entry has a name of more than 4096 bytes, or headers of more than 262144, the limits";
    for (length, expected) in [(250 << 10, vec![]), (257 << 10, vec![told.to_owned()])] {
        let mut tar = tar::Builder::new(Vec::new());
        tar.append_pax_extensions([("comment", "c".repeat(length).as_bytes())]).unwrap();
        let (text, mut header) = (run().to_string(), tar::Header::new_ustar());
        header.set_size(text.len() as u64);
        tar.append_data(&mut header, "run.json", text.as_bytes()).unwrap();
        sandbox.write("p.tar", tar.into_inner().unwrap());
        assert_eq!(messages(&sandbox.run(["verify", "--json", "p.tar"])), expected, "{length}");
    }
}

#[test]
fn growth_of_archives() {
    let sandbox = Sandbox::new();
    let note = |bytes: usize| part("meta.json", format!("\"{}\"", " ".repeat(bytes - 2)));
    let told =
        "the archive expands to more than 200 times its size, the limit beyond 16 MiB; if trusted, unpack it";
    let run = run().to_string();
    let free = (16 << 20) - run.len();
    for (bytes, expected) in [(free, vec![]), (free + 1, vec![told.to_owned()])] {
        sandbox.write("p.zip", zip_of(&[part("run.json", &run), note(bytes)]));
        let ran = sandbox.run(["verify", "--json", "p.zip"]);
        assert_eq!(messages(&ran), expected, "{bytes}");
    }
}

#[test]
fn pointer_bytes() {
    let sandbox = Sandbox::new();
    let digest = runvault::digest::Digest::from_content(b"");
    let with_name = |length: usize| {
        session("a", &[]).replacen('{', &format!("{{\"{}\":\"{digest}\",", "k".repeat(length)), 1)
    };
    // The pointer has a slash before the name.
    sandbox.write("in.json", with_name((16 << 20) - 1));
    within(&sandbox, &[], "in.json");
    sandbox.write("out.json", with_name(16 << 20));
    let message = "the JSON Pointers to the digests in the document exceed the limit of 16777216 bytes";
    beyond(&sandbox, &[], "out.json", message);
}

#[test]
fn yaml() {
    let sandbox = Sandbox::new();
    let words = |count: usize| format!("io_refs: []\neffects: []\nx: |\n {}\n", "w ".repeat(count));
    // Three names with their colons, two pairs of brackets, and the bar.
    let others = 3 + 3 + 4 + 1;
    sandbox.write("in.yaml", words(1_000_000 - others));
    within(&sandbox, &[], "in.yaml");
    sandbox.write("out.yaml", words(1_000_001 - others));
    let message = "more than 1000000 words and indicators, the limit for YAML (JSON allows more)";
    beyond(&sandbox, &[], "out.yaml", message);
    sandbox.write("flow.yaml", contract(255));
    within(&sandbox, &["--max-depth", "500"], "flow.yaml");
    sandbox.write("flow.yaml", contract(300));
    let message = "nested deeper than 255 levels of [ and {, the limit for YAML (JSON allows more)";
    beyond(&sandbox, &["--max-depth", "500"], "flow.yaml", message);
}

#[test]
fn recognition_looks_at_a_thousand_members() {
    let sandbox = Sandbox::new();
    let after = |members: usize| {
        let others = (0..members).fold(String::new(), |text, number| text + &format!("\"{number}\":0,"));
        format!("{{{others}\"io_refs\":[],\"effects\":[]}}").replace("io_refs", "model_io_schema_version")
    };
    for (members, kind) in [(999, json!("model_io")), (1_000, Value::Null)] {
        sandbox.write("x.json", after(members).replace("\"effects\":[]", "\"x\":[]"));
        let line = sandbox.run(["verify", "--json", "x.json"]).expect(1).json().remove(0);
        assert_eq!(line["kind"], kind, "{members}");
    }
}

#[test]
fn violations_that_are_told() {
    let sandbox = Sandbox::new();
    let mut interactions = String::new();
    for number in 0..25 {
        write!(interactions, "{}{number}", if number > 0 { "," } else { "" }).unwrap();
    }
    let text =
        session("a", &[]).replace("\"interactions\":[]", &format!("\"interactions\":[{interactions}]"));
    sandbox.write("s.json", text);
    let all = sandbox.run(["verify", "--json", "s.json"]).expect(1).json().remove(0);
    let count = all["violations"].as_array().unwrap().len();
    assert!(count > 25 && all["violations_omitted"] == 0);
    let listed = |ran: &Ran| (ran.stdout.clone() + &ran.stderr).matches("  error").count();
    for command in ["verify", "add"] {
        let ran = sandbox.run([command, "s.json"]).expect(1);
        assert_eq!(listed(&ran), 20);
        let more = format!("and {} more; --max-violations N or --json lists them", count - 20);
        assert!((ran.stdout + &ran.stderr).contains(&more), "{more}");
        let ran = sandbox.run([command, "--max-violations", &count.to_string(), "s.json"]).expect(1);
        assert_eq!((listed(&ran), (ran.stdout + &ran.stderr).contains("more;")), (count, false));
        let line =
            sandbox.run([command, "--json", "--max-violations", "3", "s.json"]).expect(1).json().remove(0);
        assert_eq!(line["violations"].as_array().unwrap().len(), 3);
        assert_eq!(line["violations_omitted"], count - 3);
    }
}

#[test]
fn timestamps_that_are_listed() {
    let sandbox = Sandbox::new();
    for (bad, listed) in [(100, 100), (101, 100)] {
        let stamps = vec![r#"{"timestamp":"0001-01-01T00:00:00+01:00"}"#; bad].join(",");
        sandbox.write(
            "run.rpk",
            format!(r#"{{"version":"1.0","metadata":{{"x":[{stamps}]}},"payload":{{}},"checksum":""}}"#),
        );
        let ran = sandbox.run(["verify", "--json", "run.rpk"]).expect(1);
        assert_eq!(ran.stdout.matches("RPK6").count(), listed);
    }
}

#[test]
fn values_that_show_lists() {
    let sandbox = Sandbox::new();
    for (refs, more) in [(8, false), (9, true)] {
        let io_ref = |number| json!({"ref": format!("r{number}"), "kind": "service", "schema": "s", "required": true, "mode": "read"});
        let refs: Vec<Value> = (0..refs).map(io_ref).collect();
        let contract = sandbox.write("c.json", json!({"io_refs": refs, "effects": []}).to_string());
        let core = sandbox.add([contract]).remove(0);
        let shown = sandbox.run(["show", &core]).expect(0).stdout;
        assert_eq!(shown.contains("and 1 more"), more, "{shown}");
    }
}

#[test]
fn variables_set_limits_and_arguments_go_before_them() {
    let sandbox = Sandbox::new();
    sandbox.write("s.json", deep(6));
    sandbox.write("p/run.json", run().to_string());
    sandbox.write("p/meta.json", "{}");
    let verify = |variable: &str, value: &str, arguments: &[&str]| -> Ran {
        let mut command = sandbox.command();
        command.env(variable, value).args(["verify"]).args(arguments).output().unwrap().into()
    };
    for (variable, small, flag, enough, name) in [
        ("RUNVAULT_MAX_SIZE", "10", "--max-size", "1M", "s.json"),
        ("RUNVAULT_MAX_DEPTH", "5", "--max-depth", "6", "s.json"),
        ("RUNVAULT_MAX_VALUES", "3", "--max-values", "100", "s.json"),
        ("RUNVAULT_MAX_ENTRIES", "1", "--max-entries", "2", "p"),
    ] {
        let ran = verify(variable, small, &[name]).expect(1);
        assert!(ran.stdout.contains(&format!("with {flag}")), "{}", ran.stdout);
        verify(variable, small, &[flag, enough, name]).expect(0);
        verify(variable, "", &[name]).expect(0);
        let wrong = verify(variable, "many", &[name]).expect(3);
        assert!(wrong.stderr.starts_with(&format!("error: {variable}: ")), "{}", wrong.stderr);
        // What is not used is not looked at.
        verify(variable, "many", &[flag, enough, name]).expect(0);
    }
    let listed = verify("RUNVAULT_MAX_VIOLATIONS", "1", &["--max-depth", "2", "s.json"]).expect(1);
    assert_eq!(listed.stdout.matches("error").count(), 1);
}

#[test]
fn limits_of_arguments() {
    let sandbox = Sandbox::new();
    let core = sandbox.add([sandbox.write("s.json", session("a", &[("p", "r")]))]).remove(0);
    sandbox.run(["links", "--depth", "100", &core]).expect(0);
    assert!(sandbox.run(["links", "--depth", "101", &core]).expect(3).stderr.contains("1..=100"));
    let hex = core.strip_prefix("sha256:").unwrap();
    sandbox.run(["show", &hex[..6]]).expect(0);
    assert!(sandbox.run(["show", &hex[..5]]).expect(3).stderr.contains("at least 6"));
    for (length, status) in [(40, 1), (41, 3)] {
        // Forty will do; what is missing then is the other artifact.
        sandbox.run(["link", "add", &core, &"r".repeat(length), "000000"]).expect(status);
    }
}
