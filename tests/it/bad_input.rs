//! Invalid input: a clear error, the right status, an unchanged vault.

use crate::sandbox::{Ran, Sandbox, program, session};

/// A sandbox whose vault has one session, and what `find` says of it.
fn prepared() -> (Sandbox, String) {
    let sandbox = Sandbox::new();
    sandbox.add([sandbox.write("good.json", session("a", &[("hello", "hi")]))]);
    let found = sandbox.run(["find", "--json"]).expect(0).stdout;
    (sandbox, found)
}

/// Adds `name`, expects `status` and that the vault is as it was.
fn add_in_vain(arguments: &[&str], write: impl Fn(&Sandbox), status: i32) -> Ran {
    let (sandbox, before) = prepared();
    write(&sandbox);
    let ran = sandbox.run(["add", "--json"].iter().chain(arguments)).expect(status);
    assert_eq!(sandbox.run(["find", "--json"]).expect(0).stdout, before);
    ran
}

fn rejected(name: &str, bytes: &[u8], extra: &[&str]) -> (Option<String>, Vec<String>) {
    let arguments: Vec<&str> = extra.iter().copied().chain([name]).collect();
    let ran = add_in_vain(&arguments, |sandbox| drop(sandbox.write(name, bytes)), 1);
    let line = ran.json().remove(0);
    assert_eq!((&line["outcome"], &line["core_hash"]), (&"rejected".into(), &serde_json::Value::Null));
    let violations = line["violations"].as_array().unwrap().iter();
    let text = |violation: &serde_json::Value, name: &str| violation[name].as_str().unwrap().to_owned();
    let found = violations
        .map(|one| format!("{} {}: {}", text(one, "rule_id"), text(one, "path"), text(one, "message")));
    (line["kind"].as_str().map(str::to_owned), found.collect())
}

#[test]
fn what_is_not_there() {
    let ran = add_in_vain(&["no/such/directory"], |_| {}, 2);
    assert!(ran.stderr.contains("error: no/such/directory: "), "{}", ran.stderr);
    let (sandbox, _) = prepared();
    let missing = sandbox.run(["--vault", "other.vault", "find"]).expect(2);
    assert!(missing.stderr.contains(
        "there is no vault at other.vault; \"runvault init\" or \"runvault add --create\" creates one"
    ));
}

#[test]
fn binary_files() {
    let (kind, found) = rejected("x.bin", b"\x00\xff\xfe\x01", &[]);
    assert_eq!(
        (kind, found),
        (None, vec!["DOC1 line 1 column 2: byte 0xff is not valid UTF-8 here".to_owned()])
    );
    // A file name that a format gives says what was meant, and nothing more.
    let (kind, found) = rejected("x.rpk", b"\x00\xff\xfe\x01", &[]);
    assert_eq!(kind.as_deref(), Some("rpk"));
    assert!(found[0].starts_with("DOC1"), "{found:?}");
}

#[test]
fn truncated_documents_keep_their_kind() {
    let text = session("a", &[("hello", "hi")]);
    let (kind, found) = rejected("cut.json", &text.as_bytes()[..text.len() / 2], &[]);
    assert_eq!(kind.as_deref(), Some("model_io"));
    assert!(found[0].starts_with("DOC2 line 1 column "), "{found:?}");
    let (kind, found) = rejected("empty.json", b"", &[]);
    assert_eq!((kind, found), (None, vec!["KIND : the document is empty".to_owned()]));
}

#[test]
fn deep_nesting() {
    let brackets = "[".repeat(10_000);
    let (_, found) = rejected("deep.json", brackets.as_bytes(), &[]);
    assert_eq!(
        found,
        ["DOC4 line 1 column 129: nested deeper than 128 levels; raise the limit with --max-depth"]
    );
    for kind in ["model_io", "rpk", "trace", "contract"] {
        let (found_kind, found) = rejected("deep.json", brackets.as_bytes(), &["--kind", kind]);
        assert_eq!(found_kind.as_deref(), Some(kind));
        assert!(found.iter().any(|one| one.starts_with("DOC4")), "{kind}: {found:?}");
    }
}

#[test]
fn alias_bombs() {
    let mut bomb = String::from("io_refs: []\na0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..20 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        bomb += &format!("a{level}: &a{level} [{aliases}]\n");
    }
    bomb += "effects: []\n";
    let (kind, found) = rejected("bomb.yaml", bomb.as_bytes(), &[]);
    assert_eq!(kind.as_deref(), Some("contract"));
    assert!(found[0].starts_with("DOC5 line"), "{found:?}");
}

#[test]
fn too_large() {
    let big = |sandbox: &Sandbox| {
        let file = std::fs::File::create(sandbox.path("big.json")).unwrap();
        // Sparse: 300 MiB that take no room.
        file.set_len(300 << 20).unwrap();
        std::fs::write(sandbox.path("head"), "").unwrap();
    };
    let ran = add_in_vain(&["big.json"], big, 1);
    let line = ran.json().remove(0);
    let message =
        "the document has 314572800 bytes, more than the limit of 268435456; raise it with --max-size";
    assert_eq!(line["violations"][0]["rule_id"], "DOC5");
    assert_eq!(line["violations"][0]["message"], message);
    let text = session("a", &[("p", "r")]);
    let (_, found) = rejected("s.json", text.as_bytes(), &["--max-size", "100"]);
    assert!(found[0].starts_with("DOC5"), "{found:?}");
    let (sandbox, _) = prepared();
    sandbox.write("s.json", &text);
    let limit = text.len().to_string();
    sandbox.run(["add", "--max-size", &limit, "s.json"]).expect(0);
}

#[test]
fn the_good_ones_among_bad_ones_are_stored() {
    let (sandbox, _) = prepared();
    sandbox.write("d/1.json", session("one", &[]));
    sandbox.write("d/2.rpk", "{}");
    sandbox.write("d/3.json", session("three", &[]).replace("record", "neither"));
    sandbox.write("d/4.txt", "notes");
    sandbox.write("d/5.json", session("five", &[]));
    let ran = sandbox.run(["add", "--json", "d"]).expect(1);
    let outcomes: Vec<String> = ran
        .json()
        .iter()
        .map(|line| format!("{} {}", line["path"], line["outcome"]).replace('"', ""))
        .collect();
    assert_eq!(outcomes, ["d/1.json added", "d/2.rpk rejected", "d/3.json rejected", "d/5.json added"]);
    assert!(ran.stderr.contains("2 added") && ran.stderr.contains("1 other file skipped"), "{}", ran.stderr);
    assert_eq!(sandbox.run(["find", "--json"]).expect(0).json().len(), 3);
}

#[test]
fn links_and_pipes_in_directories_are_not_opened() {
    let (sandbox, before) = prepared();
    std::fs::create_dir(sandbox.path("d")).unwrap();
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("/etc/passwd", sandbox.path("d/model_io.json")).unwrap();
        std::os::unix::fs::symlink("..", sandbox.path("d/up")).unwrap();
        let made = std::process::Command::new("mkfifo").arg(sandbox.path("d/pipe.rpk")).status();
        assert!(made.unwrap().success());
        let named = sandbox.run(["add", "d/pipe.rpk"]).expect(2);
        assert!(named.stderr.contains("neither a file nor a directory"), "{}", named.stderr);
    }
    // Names that a format gives are never skipped silently.
    let ran = sandbox.run(["add", "--json", "d"]).expect(1);
    let kinds: Vec<_> = ran.json().iter().map(|line| line["kind"].clone()).collect();
    assert_eq!(kinds, ["model_io", "rpk"]);
    assert!(ran.stderr.contains("1 other file skipped"), "{}", ran.stderr);
    assert_eq!(sandbox.run(["find", "--json"]).expect(0).stdout, before);
}

#[test]
fn what_only_resembles_an_artifact_is_skipped_in_directories() {
    let (sandbox, before) = prepared();
    for (name, text) in [
        ("effects.json", r#"{"effects": ["blur"]}"#),
        ("effects.yaml", "effects:\n - blur\n"),
        ("event.json", r#"{"version": 2, "metadata": {}, "payload": {}}"#),
        ("post.md", "---\ntitle: x\neffects: none\n---\ntext\n"),
        ("quote.md", "# Contracts\n\nThey look like this:\n\n```yaml\nio_refs: []\n```\n"),
        ("log.txt", "INFO: start\nWARN: x\neffects: none\nplain line\n"),
        ("states.ndjson", "{\"type\": \"enter\", \"state_hash\": \"a\"}\n{\"type\": \"leave\"}\n"),
        ("chat.json", r#"{"interactions": [], "model_id": "x"}"#),
        ("list.json", "[1, 2, 3]"),
        ("empty", ""),
    ] {
        sandbox.write(&format!("d/{name}"), text);
    }
    // A directory that is named has something in it.
    sandbox.write("d/good.json", session("a", &[("hello", "hi")]));
    let ran = sandbox.run(["add", "d"]).expect(0);
    assert!(ran.stderr.contains("10 other files skipped"), "{}", ran.stderr);
    // The good one is the one that was there, and is seen again.
    let cores_of = |lines: &str| -> Vec<String> {
        let core =
            |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["core_hash"].to_string();
        lines.lines().map(core).collect()
    };
    let after = sandbox.run(["find", "--json"]).expect(0).stdout;
    assert_eq!(cores_of(&after), cores_of(&before));
    // Who names one of them is told what is wrong with it.
    let named = sandbox.run(["add", "--json", "d/effects.json"]).expect(1).json().remove(0);
    assert_eq!((&named["kind"], &named["violations"][0]["path"]), (&"contract".into(), &"/effects/0".into()));
    let log = sandbox.run(["verify", "--json", "d/states.ndjson", "d/list.json"]).expect(1).json();
    assert_eq!((&log[0]["kind"], &log[1]["violations"][0]["rule_id"]), (&"trace".into(), &"KIND".into()));
}

#[test]
fn long_names_above_many_digests_do_not_multiply() {
    let digests = vec![format!("\"sha256:{}\"", "ab".repeat(32)); 600].join(",");
    let text = session("a", &[]).replacen('{', &format!("{{\"{}\":[{digests}],", "k".repeat(100_000)), 1);
    let (kind, found) = rejected("wide.json", text.as_bytes(), &[]);
    assert_eq!(kind.as_deref(), Some("model_io"));
    assert!(found[0].starts_with("DOC5 : the JSON Pointers to the digests"), "{found:?}");
    // All the pointers of this one would take 40 GB.
    let digests = vec![format!("\"sha256:{}\"", "ab".repeat(32)); 20_000].join(",");
    let text = session("a", &[]).replacen('{', &format!("{{\"{}\":[{digests}],", "k".repeat(2_000_000)), 1);
    let (_, found) = rejected("wider.json", text.as_bytes(), &[]);
    assert!(found[0].starts_with("DOC5 : the JSON Pointers to the digests"), "{found:?}");
    let numbers = vec!["1e999"; 5_000].join(",");
    let text = format!("{{\"io_refs\":[],\"effects\":[],\"{}\":[{numbers}]}}", "k".repeat(100_000));
    let (_, found) = rejected("numbers.json", text.as_bytes(), &[]);
    assert!(found.len() < 100 && found[0].starts_with("SCHEMA /kkk"), "{}", found.len());
}

#[test]
fn a_vault_that_is_none() {
    let sandbox = Sandbox::new();
    sandbox.write("good.json", session("a", &[]));
    sandbox.write(
        "text",
        "this is no database, but it is long enough to have a header of a hundred bytes".repeat(3),
    );
    let ran = sandbox.run(["--vault", "text", "add", "--create", "good.json"]).expect(2);
    assert!(ran.stderr.contains("text is not a vault: it is not an SQLite database"), "{}", ran.stderr);
    std::fs::create_dir(sandbox.path("directory")).unwrap();
    sandbox.run(["--vault", "directory", "add", "--create", "good.json"]).expect(2);
    sandbox.run(["--vault", "good.json/below", "add", "--create", "good.json"]).expect(2);
    // Who only reads changes nothing.
    sandbox.write("empty", "");
    let ran = sandbox.run(["--vault", "empty", "find"]).expect(2);
    assert!(ran.stderr.contains("empty is not a vault: it is empty"), "{}", ran.stderr);
    assert_eq!(std::fs::read(sandbox.path("empty")).unwrap(), b"");
    // A name is a name, not a URI with options.
    sandbox.run(["--vault", "file:odd.vault?mode=memory", "add", "--create", "good.json"]).expect(0);
    assert!(sandbox.path("file:odd.vault?mode=memory").metadata().unwrap().len() > 0);
    #[cfg(unix)]
    {
        assert!(std::process::Command::new("mkfifo").arg(sandbox.path("pipe")).status().unwrap().success());
        let ran = sandbox.run(["--vault", "pipe", "find"]).expect(2);
        assert!(ran.stderr.contains("pipe is not a vault: it is not a file"), "{}", ran.stderr);
        assert!(
            sandbox
                .run(["--vault", "pipe", "add", "good.json"])
                .expect(2)
                .stderr
                .contains("it is not a file")
        );
    }
}

#[test]
fn empty_variables_count_as_not_set() {
    let sandbox = Sandbox::new();
    sandbox.write("good.json", session("a", &[]));
    let mut command = sandbox.command();
    command.env("RUNVAULT_SIGNING_KEY", "").args(["verify", "good.json"]);
    assert!(command.output().unwrap().status.success());
    let mut command = sandbox.command();
    command.env("RUNVAULT_VAULT", "").env("HOME", sandbox.path("home")).args(["add", "good.json"]);
    assert!(command.output().unwrap().status.success());
    assert!(sandbox.path("home").is_dir());
}

#[cfg(unix)]
#[test]
fn a_key_is_not_printed_whatever_is_wrong_with_it() {
    use std::os::unix::ffi::OsStrExt;
    let sandbox = Sandbox::new();
    sandbox.write("good.json", session("a", &[]));
    let mut command = sandbox.command();
    command
        .env("RUNVAULT_SIGNING_KEY", std::ffi::OsStr::from_bytes(b"secret\xff"))
        .args(["verify", "good.json"]);
    let ran = Ran::from(command.output().unwrap()).expect(3);
    assert_eq!(ran.stderr, "error: RUNVAULT_SIGNING_KEY is not valid UTF-8\n");
    sandbox.write("key", b"secret\xff");
    let ran = sandbox.run(["verify", "--signing-key-file", "key", "good.json"]).expect(2);
    assert!(!ran.stderr.contains("secret"), "{}", ran.stderr);
}

#[cfg(unix)]
#[test]
fn a_disk_that_takes_no_more() {
    use std::fmt::Write;
    let (sandbox, before) = prepared();
    let mut incompressible = String::new();
    for number in 0..40_000_u32 {
        write!(incompressible, "{}", runvault::digest::Digest::from_content(&number.to_le_bytes()).hex())
            .unwrap();
    }
    for number in 0..4 {
        let half = &incompressible[number * 600_000..][..600_000];
        sandbox.write(&format!("d/{number}.json"), session("big", &[("p", half)]));
    }
    // Writing beyond the limit fails as it does on a full disk, if the signal that comes with it is ignored. Each of the
    // documents is larger than the 250 KiB, also compressed.
    let script = "trap '' XFSZ; ulimit -f 500; exec \"$0\" add d";
    let mut command = std::process::Command::new("sh");
    command.arg("-c").arg(script).arg(program());
    command.current_dir(sandbox.path("")).env("RUNVAULT_VAULT", sandbox.vault());
    command.env("RUNVAULT_CONFIG", sandbox.path("config.toml"));
    let ran: Ran = command.output().unwrap().into();
    assert_eq!(ran.status, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("error: "), "{}", ran.stderr);
    assert_eq!(sandbox.run(["find", "--json"]).expect(0).stdout, before);
    let sessions = sandbox.run(["add", "--json", "d"]).expect(0).json().len();
    assert_eq!(sessions, 4);
}

#[test]
fn wrong_usage_has_a_status_of_its_own() {
    let sandbox = Sandbox::new();
    for arguments in [
        &["add"][..],
        &["nonsense"],
        &["get", "x:z"],
        &["get", "12345"],
        &["find", "--attr", "novalue"],
        &["find", "--since", "whenever"],
        &["add", "--kind", "pdf", "x"],
        &["add", "--max-size", "huge", "x"],
    ] {
        let ran = sandbox.run(arguments).expect(3);
        assert!(ran.stdout.is_empty() && ran.stderr.starts_with("error: "), "{arguments:?}: {}", ran.stderr);
    }
    // A name that nothing has is an answer, not wrong usage.
    let unknown = sandbox.run(["find", "things"]).expect(1);
    assert!(unknown.stdout.is_empty() && unknown.stderr.starts_with("error: "), "{}", unknown.stderr);
    for arguments in [&["--help"][..], &["find", "--help"], &["--version"]] {
        assert!(sandbox.run(arguments).expect(0).stderr.is_empty());
    }
}

#[test]
fn untrusted_text_does_not_reach_the_terminal() {
    let sandbox = Sandbox::new();
    let text = session("evil\\u001b[2J\\u009b\\u202eadapter", &[("p", "r")]).replace("\\\\u", "\\u");
    let path = sandbox.write("a\u{1b}[31m.json", text);
    let core = sandbox.add([path]).remove(0);
    let outputs = [
        sandbox.run(["show", &core]),
        sandbox.run(["show", "--json", &core]),
        sandbox.run(["find"]),
        sandbox.run(["add", "-v", "a\u{1b}[31m.json"]),
        sandbox.run(["verify", "a\u{1b}[31m.json"]),
    ];
    for ran in outputs {
        let printed = ran.expect(0);
        let printed = printed.stdout + &printed.stderr;
        assert!(!printed.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{printed:?}");
    }
    assert!(sandbox.run(["show", &core]).stdout.contains("evil\\u{1b}[2J\\u{9b}\\u{202e}adapter"));
}
