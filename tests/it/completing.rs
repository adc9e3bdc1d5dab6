//! Completion, with the words that shells really send.

use crate::sandbox::{self, Ran, Sandbox, repository, session};

fn examples() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.add([repository("examples")]);
    sandbox
}

/// What `shell` is answered when the last of `words` is typed.
fn ask(sandbox: &Sandbox, shell: &str, words: &[&str]) -> Ran {
    let mut command = sandbox.command();
    command.env("RUNVAULT_COMPLETE", shell).env("_CLAP_COMPLETE_INDEX", (words.len()).to_string());
    command.env("_CLAP_IFS", "\n").args(["--", "runvault"]).args(words).output().unwrap().into()
}

/// The values that are offered, without options, which stand behind them where nothing was typed.
fn offered(sandbox: &Sandbox, words: &[&str]) -> Vec<String> {
    let ran = ask(sandbox, "fish", words).expect(0);
    assert_eq!(ran.stderr, "");
    let values = ran.stdout.lines().map(|line| line.split('\t').next().unwrap().to_owned());
    values.filter(|value| !value.starts_with("--")).collect()
}

#[test]
fn hashes_tags_and_what_they_are() {
    let sandbox = examples();
    sandbox.run(["tag", "set", "3941d389b337", "baseline"]).expect(0);
    sandbox.run(["tag", "set", "5c496a37feba", "terms"]).expect(0);
    let all = offered(&sandbox, &["get", ""]);
    assert_eq!(all[..3], ["latest", "@baseline", "@terms"]);
    assert_eq!(all.len() - 3, sandbox.run(["find", "--all-versions", "--json"]).expect(0).json().len());
    assert_eq!(offered(&sandbox, &["get", "@b"]), ["@baseline"]);
    assert_eq!(offered(&sandbox, &["get", "3"]), ["3941d389b337"]);
    assert_eq!(offered(&sandbox, &["get", "3941d"]), ["3941d389b337"]);
    assert_eq!(offered(&sandbox, &["get", "3941D389"]), ["3941d389b337"]);
    let whole = "3941d389b337de5871f371f4b05bbe20089693d2a54d63edcc0320bb5c9b4f09";
    assert_eq!(offered(&sandbox, &["get", "3941d389b337d"]), [whole]);
    assert_eq!(offered(&sandbox, &["get", "sha256:39"]), [format!("sha256:{whole}")]);
    assert!(offered(&sandbox, &["get", "xyz"]).is_empty());
    // The run and its trace have the same id.
    assert_eq!(offered(&sandbox, &["get", "run-t"]), ["run-triage-4711"]);
    assert!(offered(&sandbox, &["audit", "run-t"]).is_empty());
    assert_eq!(offered(&sandbox, &["tag", "remove", "t"]), ["terms"]);
    for label in ["commit=4f2a", "commit-date=2026-11-22", "branch=main"] {
        sandbox.run(["label", "set", "3941d389b337", label]).expect(0);
    }
    sandbox.run(["label", "set", "5c496a37feba", "commit=77ab", "odd=a b"]).expect(0);
    assert_eq!(offered(&sandbox, &["find", "--label", "com"]), ["commit=", "commit-date="]);
    assert_eq!(offered(&sandbox, &["find", "--label", "commit=4"]), ["commit=4f2a"]);
    assert_eq!(offered(&sandbox, &["forget", "--keep-label", "commit="]), ["commit=4f2a", "commit=77ab"]);
    assert_eq!(offered(&sandbox, &["label", "list", "b"]), ["branch"]);
    assert_eq!(offered(&sandbox, &["label", "set", "latest", "branch=m"]), ["branch=main"]);
    assert!(offered(&sandbox, &["find", "--label", "odd="]).is_empty());
    assert_eq!(offered(&sandbox, &["view", "3941d"]), ["3941d389b337"]);
    assert_eq!(offered(&sandbox, &["view", "3941d", "--only", ""]), ["tools", "errors"]);
    // Only what the command takes.
    assert_eq!(offered(&sandbox, &["audit", ""]), ["@terms", "5c496a37feba"]);
    assert!(!offered(&sandbox, &["replay", ""]).contains(&"5c496a37feba".to_owned()));
    let described = ask(&sandbox, "fish", &["get", "3941"]).stdout;
    assert!(
        described.starts_with("3941d389b337\trun pack 2") && described.contains("run-triage-4711"),
        "{described}"
    );
}

#[test]
fn the_newest_come_first_and_not_too_many() {
    let sandbox = Sandbox::new();
    for number in 0..60 {
        sandbox.write("s.json", session(&format!("adapter-{number}"), &[]));
        if number == 59 || number == 0 {
            sandbox.add([sandbox.path("s.json")]);
        } else {
            sandbox.write(&format!("d/{number}.json"), session(&format!("adapter-{number}"), &[]));
        }
        if number == 58 {
            sandbox.add([sandbox.path("d")]);
        }
    }
    let newest = sandbox.add([sandbox.path("s.json")]).remove(0);
    let all = offered(&sandbox, &["get", ""]);
    assert_eq!((all.len(), all[0].as_str(), all[1].as_str()), (51, "latest", &newest[7..19]));
}

#[test]
fn values_of_attributes_kinds_rules_settings_and_files() {
    let sandbox = examples();
    assert_eq!(offered(&sandbox, &["find", "--model", "triage-l"]), ["triage-large-2"]);
    assert_eq!(offered(&sandbox, &["find", "--model=triage-l"]), [] as [&str; 0], "begins with --");
    assert!(ask(&sandbox, "fish", &["find", "--model=triage-l"]).stdout.contains("--model=triage-large-2"));
    assert_eq!(offered(&sandbox, &["find", "--tool", ""]), ["tracker.label"]);
    assert_eq!(offered(&sandbox, &["find", "--run-id", "run"]), ["run-triage-4711"]);
    assert!(offered(&sandbox, &["find", "--attr", "mod"]).contains(&"model_id=".to_owned()));
    assert_eq!(offered(&sandbox, &["find", "--attr", "model_id=triage-s"]), ["model_id=triage-small-1"]);
    assert_eq!(offered(&sandbox, &["find", "tr"]), ["traces"]);
    assert_eq!(offered(&sandbox, &["add", "--kind", "m"]), ["model_io"]);
    assert_eq!(offered(&sandbox, &["search", "--kind", "s"]), ["sessions"]);
    assert_eq!(offered(&sandbox, &["search", "--in", "response,to"]), ["response,tool"]);
    assert_eq!(offered(&sandbox, &["find", "--columns", "hash,model_i"]), ["hash,model_id"]);
    assert!(offered(&sandbox, &["rules", "rpk"]).contains(&"RPK4".to_owned()));
    assert_eq!(offered(&sandbox, &["config", "get", "max-d"]), ["max-depth"]);
    sandbox.write("on.vault", "");
    assert_eq!(offered(&sandbox, &["config", "set", "search", "o"]), ["on", "off"]);
    assert_eq!(offered(&sandbox, &["config", "set", "vault", "o"]), ["on.vault"]);
    assert!(offered(&sandbox, &["config", "set", "max-depth", "o"]).is_empty());
    assert_eq!(offered(&sandbox, &["wat"]), ["watch"]);
    sandbox.write("spool/x.json", "");
    assert_eq!(offered(&sandbox, &["add", "spo"]), ["spool/"]);
    assert!(offered(&sandbox, &["diff", "spo"]).contains(&"spool/".to_owned()));
}

#[test]
fn the_vault_that_is_meant_is_asked() {
    let sandbox = examples();
    let other = sandbox.path("other.vault");
    sandbox.write("s.json", session("elsewhere", &[]));
    sandbox.run(["--vault", "other.vault", "add", "--create", "s.json"]).expect(0);
    for words in [
        &["--vault", "other.vault", "find", "--adapter", ""][..],
        &["--vault=other.vault", "find", "--adapter", ""],
    ] {
        assert_eq!(offered(&sandbox, words), ["elsewhere"]);
    }
    assert!(!offered(&sandbox, &["find", "--adapter", ""]).contains(&"elsewhere".to_owned()));
    sandbox.write("config.toml", format!("vault = '{}'\nstrange = 1\n", other.display()));
    let mut command = sandbox.command();
    command.env_remove("RUNVAULT_VAULT").env("RUNVAULT_COMPLETE", "fish");
    let ran: Ran = command.args(["--", "runvault", "find", "--adapter", ""]).output().unwrap().into();
    assert!(ran.stdout.starts_with("elsewhere") && ran.stderr.is_empty(), "{}", ran.stderr);
}

#[test]
fn nothing_fails_loudly_and_nothing_is_made() {
    let sandbox = Sandbox::without_vault();
    assert!(offered(&sandbox, &["get", ""]).is_empty());
    assert!(!sandbox.vault().exists());
    sandbox.write("config.toml", "this is no TOML");
    let mut command = sandbox.command();
    command.env_remove("RUNVAULT_VAULT").env("RUNVAULT_COMPLETE", "zsh").env("_CLAP_COMPLETE_INDEX", "2");
    let ran: Ran = command.args(["--", "runvault", "get", ""]).output().unwrap().into();
    assert!(ran.status == 0 && ran.stderr.is_empty(), "{}", ran.stderr);
    sandbox.write("v.vault", "no vault at all, but long enough to look like a file of some sort");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        for words in [
            &["get", ""][..],
            &["find", "--model", ""],
            &["nothing", "of", "the", "sort"],
            &[""],
            &["--", "x"],
        ] {
            assert_eq!(ask(&sandbox, shell, words).stderr, "", "{shell} {words:?}");
        }
    }
    assert_eq!(ask(&sandbox, "tcsh", &["get", ""]).stderr, "");
}

#[test]
fn a_vault_of_an_earlier_build_is_left_alone() {
    let sandbox = Sandbox::new();
    let earlier = std::fs::File::open(repository("tests/vaults/earlier-build.vault.zst")).unwrap();
    zstd::stream::copy_decode(earlier, std::fs::File::create(sandbox.vault()).unwrap()).unwrap();
    let before = std::fs::read(sandbox.vault()).unwrap();
    assert!(offered(&sandbox, &["get", ""]).is_empty());
    assert_eq!(std::fs::read(sandbox.vault()).unwrap(), before);
}

#[test]
fn nothing_that_a_shell_would_run_is_offered() {
    let sandbox = Sandbox::new();
    for (number, hostile) in
        ["$(reboot)", "`reboot`", "a;reboot", "a b", "-rf", "harmless"].iter().enumerate()
    {
        sandbox.write(&format!("d/{number}.json"), session(hostile, &[]));
    }
    sandbox.add([sandbox.path("d")]);
    assert_eq!(offered(&sandbox, &["find", "--adapter", ""]), ["harmless"]);
}

#[test]
fn no_more_is_offered_of_a_large_vault_than_can_be_looked_through() {
    let sandbox = Sandbox::new();
    for number in 0..5_000 {
        sandbox.write(&format!("d/{number}.json"), session(&format!("adapter-{number}"), &[]));
    }
    sandbox.add([sandbox.path("d")]);
    for words in [&["get", ""][..], &["get", "a"], &["get", "abcd"], &["find", "--adapter", "adapter-4"]] {
        assert!(offered(&sandbox, words).len() <= 51, "and latest");
    }
}

/// Runs a script with the program where shells look for it.
#[cfg(unix)]
fn in_shell(sandbox: &Sandbox, program: &str, script: &str) -> Option<Ran> {
    let built = std::path::Path::new(sandbox::program()).parent().unwrap().to_owned();
    let rest = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(built).chain(std::env::split_paths(&rest))).unwrap();
    let mut command = std::process::Command::new(program);
    command.args(["-c", script]).env_clear().env("PATH", path).env("HOME", sandbox.path(""));
    command.env("RUNVAULT_VAULT", sandbox.vault()).env("RUNVAULT_CONFIG", sandbox.path("config.toml"));
    command.current_dir(sandbox.path("")).output().ok().map(Ran::from)
}

#[cfg(unix)]
#[test]
fn bash_itself() {
    let sandbox = examples();
    sandbox.run(["tag", "set", "3941d389b337", "baseline"]).expect(0);
    // As Bash calls it: words are taken apart at : = and @, and the second argument is what follows the last of them.
    let complete = |typed: &str, words: &str| {
        let script = format!(
            "source <(runvault completions bash); COMP_WORDS=({words}); COMP_CWORD=$(({} - 1)); COMP_TYPE=9; \
             _clap_complete_runvault runvault '{typed}' ''; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            "${#COMP_WORDS[@]}"
        );
        in_shell(&sandbox, "bash", &script).map(|ran| (ran.stdout.trim_end().to_owned(), ran.stderr))
    };
    let Some((hash, stderr)) = complete("394", "runvault get 394") else { return };
    assert_eq!((hash.as_str(), stderr.as_str()), ("3941d389b337", ""));
    assert_eq!(complete("@ba", "runvault get @ ba").unwrap().0, "@baseline");
    let whole = "3941d389b337de5871f371f4b05bbe20089693d2a54d63edcc0320bb5c9b4f09";
    assert_eq!(complete("39", "runvault get sha256 : 39").unwrap().0, whole);
    assert_eq!(complete("triage-l", "runvault find --model = triage-l").unwrap().0, "triage-large-2");
    assert_eq!(complete("@ba", "runvault diff --expect =@ ba").unwrap().0, "@baseline");
}

#[cfg(unix)]
#[test]
fn scripts_are_what_their_shells_take() {
    let sandbox = Sandbox::new();
    for (shell, check) in [("bash", "bash -n"), ("zsh", "zsh -n"), ("fish", "fish --no-execute")] {
        for kind in ["", "--static"] {
            let script = format!("runvault completions {kind} {shell} > script && {check} script");
            if std::process::Command::new(shell).arg("--version").output().is_ok() {
                let ran = in_shell(&sandbox, "sh", &script).unwrap().expect(0);
                assert_eq!(ran.stderr, "");
            }
        }
    }
}
