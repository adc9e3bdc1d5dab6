//! Settings: where they come from, which one counts, and what is said of those that are wrong.

use crate::sandbox::{Ran, Sandbox, session};

/// Runs on no vault but that of the settings, with variables.
fn run_with(sandbox: &Sandbox, variables: &[(&str, &str)], arguments: &[&str]) -> Ran {
    let mut command = sandbox.command();
    command.env_remove("RUNVAULT_VAULT").env("HOME", sandbox.path("home"));
    command.envs(variables.iter().copied()).args(arguments).output().unwrap().into()
}

fn config(sandbox: &Sandbox, arguments: &[&str]) -> Ran {
    run_with(sandbox, &[], &[&["config"], arguments].concat())
}

#[test]
fn an_argument_goes_before_a_variable_and_that_before_the_file() {
    let sandbox = Sandbox::new();
    sandbox.write("s.json", session("a", &[("p", "r")]));
    let least = |ran: Ran| ran.json()[0]["violations"][0]["message"].as_str().unwrap().to_owned();
    let told = |limit: &str| format!("bytes, more than the limit of {limit}; raise it with --max-size");
    let verify = |variables: &[(&str, &str)], arguments: &[&str]| {
        run_with(&sandbox, variables, &[&["verify", "--json", "s.json"], arguments].concat())
    };
    verify(&[], &[]).expect(0);
    config(&sandbox, &["set", "max-size", "100"]).expect(0);
    assert!(least(verify(&[], &[]).expect(1)).ends_with(&told("100")));
    let variable = [("RUNVAULT_MAX_SIZE", "90")];
    assert!(least(verify(&variable, &[]).expect(1)).ends_with(&told("90")));
    assert!(least(verify(&variable, &["--max-size", "80"]).expect(1)).ends_with(&told("80")));
    verify(&[("RUNVAULT_MAX_SIZE", "1M")], &[]).expect(0);
    // A variable that is set to nothing counts as not set.
    verify(&[("RUNVAULT_MAX_SIZE", "")], &[]).expect(1);
    config(&sandbox, &["unset", "max-size"]).expect(0);
    verify(&[], &[]).expect(0);
    config(&sandbox, &["unset", "max-size"]).expect(1);
}

#[test]
fn a_vault_and_an_actor_that_are_set_are_used() {
    let sandbox = Sandbox::new();
    sandbox.write("s.json", session("a", &[]));
    config(&sandbox, &["set", "vault", "mine.vault"]).expect(0);
    config(&sandbox, &["set", "actor", "dana"]).expect(0);
    run_with(&sandbox, &[], &["add", "s.json"]).expect(2);
    run_with(&sandbox, &[], &["init"]).expect(0);
    run_with(&sandbox, &[], &["add", "s.json"]).expect(0);
    assert!(sandbox.path("mine.vault").is_file());
    // It is the same vault from everywhere.
    std::fs::create_dir(sandbox.path("elsewhere")).unwrap();
    let mut command = sandbox.command();
    command.env_remove("RUNVAULT_VAULT").current_dir(sandbox.path("elsewhere"));
    let log: Ran = command.args(["log", "--json"]).output().unwrap().into();
    assert_eq!(log.expect(0).json()[0]["entry"]["actor"], "dana");
    run_with(&sandbox, &[("RUNVAULT_ACTOR", "")], &["--actor", "kim", "tag", "set", "@none", "x"]).expect(1);
}

#[test]
fn whoever_imports_is_in_the_journal() {
    let sandbox = Sandbox::new();
    sandbox.add([sandbox.write("s.json", session("a", &[]))]);
    sandbox.run(["export", "--all", "-o", "a.rvz"]).expect(0);
    config(&sandbox, &["set", "actor", "nightly"]).expect(0);
    sandbox.run(["--vault", "b.vault", "import", "--create", "a.rvz"]).expect(0);
    sandbox.run(["--vault", "c.vault", "--actor", "kim", "import", "--create", "a.rvz"]).expect(0);
    for (vault, actor) in [("b.vault", "nightly"), ("c.vault", "kim")] {
        let log = sandbox.run(["--vault", vault, "log", "--json"]).expect(0).json();
        assert_eq!(log[0]["entry"]["actor"], actor);
    }
}

#[test]
fn relative_paths_and_home_in_the_file() {
    let sandbox = Sandbox::new();
    sandbox.write("config.toml", "vault = 'runs/a.vault'\nsigning-key-file = '~/key'\n");
    let vault = config(&sandbox, &["get", "vault"]).expect(0).stdout;
    assert_eq!(vault.trim_end(), sandbox.path("runs/a.vault").to_str().unwrap());
    let key = config(&sandbox, &["get", "signing-key-file"]).expect(0).stdout;
    assert_eq!(key.trim_end(), sandbox.path("home/key").to_str().unwrap());
}

#[test]
fn a_key_is_found_by_its_setting_and_never_shown() {
    let sandbox = Sandbox::new();
    let run = std::fs::read(crate::sandbox::repository("examples/run.rpk")).unwrap();
    sandbox.write("run.rpk", run);
    sandbox.write("key", "secret-key\n");
    config(&sandbox, &["set", "signing-key-file", "key"]).expect(0);
    let arguments = ["verify", "--require-signature", "run.rpk"];
    let noted = "signatures are required but not checked";
    assert!(!run_with(&sandbox, &[], &arguments).expect(1).stderr.contains(noted));
    config(&sandbox, &["set", "signing-key-file", "missing"]).expect(0);
    let ran = run_with(&sandbox, &[], &arguments).expect(2);
    assert!(ran.stderr.contains("cannot read the signing key"), "{}", ran.stderr);
    // The key itself goes before a file of the settings.
    run_with(&sandbox, &[("RUNVAULT_SIGNING_KEY", "k")], &arguments).expect(1);
    let listed = run_with(&sandbox, &[("RUNVAULT_SIGNING_KEY", "k3y-itself")], &["config", "list", "--json"]);
    assert!(!listed.expect(0).stdout.contains("k3y-itself"));
}

#[test]
fn what_cannot_be_set_is_refused_and_nothing_is_written() {
    let sandbox = Sandbox::new();
    for (name, value, why) in [
        ("max-size", "lots", "expected a number of bytes"),
        ("max-size", "0", "expected a size from 1 to 900M"),
        ("max-depth", "501", "expected a whole number from 1 to 500"),
        ("max-depth", "-1", "expected a whole number from 1 to 500"),
        ("search", "perhaps", "expected on or off"),
        ("vault", "", "a path must not be empty"),
        ("actor", "", "actor: "),
    ] {
        let ran = config(&sandbox, &["set", name, value]).expect(3);
        assert!(ran.stderr.contains(why), "{name} {value}: {}", ran.stderr);
    }
    config(&sandbox, &["set", "vualt", "x"]).expect(3);
    config(&sandbox, &["get", "vualt"]).expect(3);
    assert!(!sandbox.path("config.toml").exists());
}

#[test]
fn what_is_wrong_in_the_file_is_told_with_its_line() {
    let sandbox = Sandbox::without_vault();
    sandbox.write("s.json", session("a", &[]));
    let path = sandbox.path("config.toml");
    for (text, why) in [
        ("max-depth = 9\nmax-depth 3\n", "line 2: invalid TOML"),
        (
            "\nmax-depth = 'deep'\n",
            "line 2: max-depth: expected a whole number from 1 to 500; \"runvault config set",
        ),
        // What the message shows as an example can be written.
        ("max-size = 512M\n", "correct the line, such as max-size = \"512M\""),
        ("max-depth = 1979-05-27\n", "line 1: max-depth is not a string, a whole number"),
    ] {
        sandbox.write("config.toml", text);
        let ran = sandbox.run(["verify", "s.json"]).expect(3);
        assert!(ran.stderr.contains(why) && ran.stderr.contains(path.to_str().unwrap()), "{}", ran.stderr);
    }
    // Whoever needs nothing of it is not kept from working, and one can repair it.
    sandbox.write("config.toml", "max-depth = 'deep'\n");
    sandbox.run(["--actor", "a", "find"]).expect(2);
    let listed = sandbox.run(["config", "list"]).expect(1);
    assert!(
        listed.stdout.contains("deep") && listed.stderr.contains("line 1: max-depth"),
        "{}",
        listed.stderr
    );
    sandbox.run(["config", "set", "max-depth", "9"]).expect(0);
    sandbox.run(["verify", "s.json"]).expect(0);
}

#[test]
fn a_list_of_settings_fits_the_terminal() {
    let sandbox = Sandbox::new();
    let directory = "a-directory-with-a-name-that-is-rather-long/".repeat(3);
    let vault = sandbox.path(&format!("{directory}a.vault"));
    config(&sandbox, &["set", "vault", vault.to_str().unwrap()]).expect(0);
    let list = run_with(&sandbox, &[("COLUMNS", "60")], &["config", "list"]).expect(0).stdout;
    assert!(list.lines().all(|line| line.chars().count() <= 60), "{list}");
    assert!(list.lines().any(|line| line.starts_with("vault ") && line.contains('…')), "{list}");
    assert!(config(&sandbox, &["list"]).expect(0).stdout.contains(vault.to_str().unwrap()));
}

#[test]
fn a_setting_of_a_newer_runvault_is_passed_over_with_a_warning() {
    let sandbox = Sandbox::new();
    sandbox.write("s.json", session("a", &[]));
    sandbox.write("config.toml", "max-depth = 200\nvualt = \"x\"\n[mirror]\nurl = \"y\"\n");
    let ran = sandbox.run(["verify", "s.json"]).expect(0);
    let warned: Vec<&str> = ran.stderr.lines().filter(|line| line.starts_with("warning: ")).collect();
    assert_eq!(warned.len(), 2, "{}", ran.stderr);
    assert!(warned[0].contains("line 2: unknown setting vualt ignored"), "{}", warned[0]);
}

#[test]
fn the_file_is_replaced_as_a_whole_and_through_links() {
    let sandbox = Sandbox::new();
    let text = "# mine\nmax-depth = 9 # levels\n\n# who\nactor = \"me\"\n";
    let real = sandbox.write("dotfiles/config.toml", text);
    #[cfg(unix)]
    std::os::unix::fs::symlink(&real, sandbox.path("config.toml")).unwrap();
    #[cfg(not(unix))]
    std::fs::rename(&real, sandbox.path("config.toml")).unwrap();
    config(&sandbox, &["set", "max-depth", "10"]).expect(0);
    config(&sandbox, &["set", "search", "on"]).expect(0);
    let written = std::fs::read_to_string(sandbox.path("config.toml")).unwrap();
    assert_eq!(written, text.replace("9 #", "10 #") + "search = \"on\"\n");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert!(sandbox.path("config.toml").is_symlink());
        assert_eq!(std::fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o600);
        let device = [("RUNVAULT_CONFIG", "/dev/null")];
        let ran = run_with(&sandbox, &device, &["config", "set", "search", "on"]).expect(2);
        assert!(ran.stderr.contains("/dev/null is not a file"), "{}", ran.stderr);
        run_with(&sandbox, &device, &["config", "list"]).expect(0);
    }
}

#[cfg(unix)]
#[test]
fn no_file_can_make_a_command_wait_or_eat() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    let sandbox = Sandbox::new();
    mknodat(CWD, sandbox.path("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let pipe = [("RUNVAULT_CONFIG", "pipe")];
    let ran = run_with(&sandbox, &pipe, &["config", "list"]).expect(2);
    assert!(
        ran.stderr.contains("cannot read the configuration pipe: it is a pipe, not a file"),
        "{}",
        ran.stderr
    );
    run_with(&sandbox, &pipe, &["config", "set", "search", "on"]).expect(2);
    // A shell that asks gets an answer.
    let mut asked = sandbox.command();
    asked.env("RUNVAULT_CONFIG", "pipe").env("RUNVAULT_COMPLETE", "fish").args(["--", "runvault", "get", ""]);
    assert!(asked.output().unwrap().status.success());

    let many: Vec<String> = (0..100_000).map(|number| format!("k{number} = 1")).collect();
    sandbox.write("many.toml", many.join("\n"));
    let large = std::fs::File::create(sandbox.path("large.toml")).unwrap();
    large.set_len(8 << 30).unwrap();
    for name in ["many.toml", "large.toml", "/dev/zero"] {
        let ran = run_with(&sandbox, &[("RUNVAULT_CONFIG", name)], &["config", "list"]).expect(2);
        assert!(ran.stderr.contains("it has more than 65536 bytes"), "{}", ran.stderr);
    }
    run_with(&sandbox, &[("RUNVAULT_CONFIG", "many.toml")], &["config", "set", "search", "on"]).expect(2);
}

#[test]
fn a_home_directory_that_the_shell_left_alone_is_meant() {
    let sandbox = Sandbox::new();
    let home = sandbox.path("home");
    let variables = [("HOME", home.to_str().unwrap()), ("RUNVAULT_VAULT", "")];
    run_with(&sandbox, &variables, &["config", "set", "vault", "~/a.vault"]).expect(0);
    let got = run_with(&sandbox, &variables, &["config", "get", "vault"]).expect(0).stdout;
    assert_eq!(got.trim_end(), home.join("a.vault").to_str().unwrap());
}

#[test]
fn a_file_that_is_no_text_is_not_blamed_on_permissions() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("config.toml"), b"actor = \"\xff\"\n").unwrap();
    for arguments in [&["list"][..], &["set", "search", "on"], &["unset", "search"]] {
        let told = config(&sandbox, arguments).expect(2).stderr;
        assert!(told.contains("cannot read the configuration") && told.contains("it is not UTF-8"), "{told}");
    }
}

#[cfg(unix)]
#[test]
fn who_has_no_home_needs_no_file() {
    use std::os::unix::process::CommandExt;

    let sandbox = Sandbox::new();
    let mut command = sandbox.command();
    // No user has this number; only root can take it.
    command.env_remove("RUNVAULT_CONFIG").uid(3_141_592);
    let Ok(output) = command.args(["config", "list"]).output() else { return };
    let ran = Ran::from(output).expect(0);
    assert!(ran.stdout.contains("max-depth         128"), "{}", ran.stdout);
}

#[cfg(unix)]
#[test]
fn a_link_to_a_file_that_is_not_there_stays_a_link() {
    let sandbox = Sandbox::new();
    std::os::unix::fs::symlink("dotfiles/config.toml", sandbox.path("config.toml")).unwrap();
    config(&sandbox, &["set", "search", "on"]).expect(0);
    assert!(sandbox.path("config.toml").is_symlink());
    assert_eq!(std::fs::read_to_string(sandbox.path("dotfiles/config.toml")).unwrap(), "search = \"on\"\n");
}

#[test]
fn what_people_read() {
    let sandbox = Sandbox::new();
    let steady = |ran: &Ran| {
        let place = sandbox.path("").to_string_lossy().into_owned();
        format!("{}--\n{}", ran.stdout, ran.stderr).replace(&place, "/here/")
    };
    let mut all = String::new();
    let mut screen = |variables: &[(&str, &str)], arguments: &[&str]| {
        let variables = [&[("USER", "me"), ("XDG_DATA_HOME", "/data")], variables].concat();
        let ran = run_with(&sandbox, &variables, &[&["config"], arguments].concat());
        all +=
            &format!("$ runvault config {}\n{}status {}\n\n", arguments.join(" "), steady(&ran), ran.status);
    };
    screen(&[], &["path"]);
    screen(&[], &["set", "max-size", "1G"]);
    screen(&[], &["set", "max-size", "512M"]);
    screen(&[("RUNVAULT_ACTOR", "nightly")], &["set", "actor", "dana"]);
    screen(&[("RUNVAULT_ACTOR", "nightly")], &["list"]);
    screen(&[], &["get", "max-size"]);
    screen(&[], &["get", "signing-key-file"]);
    screen(&[], &["unset", "max-size"]);
    screen(&[], &["unset", "max-size"]);
    insta::assert_snapshot!(all);
    let lines = config(&sandbox, &["list", "--json"]).expect(0).json();
    let actor = lines.iter().find(|line| line["name"] == "actor").unwrap();
    assert_eq!(
        (&actor["value"], &actor["origin"], &actor["line"]),
        (&"dana".into(), &"file".into(), &1.into())
    );
    let key = lines.iter().find(|line| line["name"] == "signing-key-file").unwrap();
    assert!(key["value"].is_null() && key["origin"] == "default" && key.get("file").is_none());
}

#[test]
fn the_address_of_a_vault_is_kept_and_its_password_is_hidden() {
    let sandbox = Sandbox::new();
    let address = "postgres://user:pa55word@127.0.0.1:1/db?schema=s";
    let set = config(&sandbox, &["set", "vault", address]).expect(0);
    assert!(
        set.stderr.starts_with("vault is set to postgres") && !set.stderr.contains("pa55word"),
        "{}",
        set.stderr
    );
    assert_eq!(config(&sandbox, &["get", "vault"]).expect(0).stdout, format!("{address}\n"));
    let listed = config(&sandbox, &["list"]).expect(0).stdout;
    assert!(listed.contains("127.0.0.1") && !listed.contains("pa55word"), "{listed}");

    sandbox.write("s.json", session("a", &[]));
    config(&sandbox, &["set", "vault", "sqlite:file.vault"]).expect(0);
    run_with(&sandbox, &[], &["add", "s.json", "--create"]).expect(0);
    assert!(sandbox.path("file.vault").is_file());
}
