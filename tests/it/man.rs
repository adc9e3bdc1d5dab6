//! Manual pages, as `man` shows them.

use std::process::Command;

use crate::sandbox::Sandbox;

/// The commands that help lists below `path`, and those below them.
fn commands(sandbox: &Sandbox, path: &[String]) -> Vec<Vec<String>> {
    let help = sandbox.run(path.iter().map(String::as_str).chain(["--help"])).expect(0).stdout;
    let mut found = Vec::new();
    let listing = help.split("Options:").next().unwrap().split("Usage:").nth(1).unwrap();
    if !path.is_empty() && !listing.contains("\nCommands:") {
        return found;
    }
    for line in listing.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   ")) {
        let name = line.split_whitespace().next().unwrap();
        if name != "help" && !name.starts_with('<') {
            let inner = [path, &[name.to_owned()]].concat();
            found.push(inner.clone());
            found.extend(commands(sandbox, &inner));
        }
    }
    found
}

#[test]
fn every_command_has_a_page_that_can_be_shown() {
    let sandbox = Sandbox::new();
    let commands = commands(&sandbox, &[]);
    assert!(commands.len() > 35 && commands.contains(&vec!["config".to_owned(), "set".to_owned()]));
    let ran = sandbox.run(["man", "--all", "pages"]).expect(0);
    assert!(ran.stderr.contains(&format!("wrote {} pages into pages", commands.len() + 1)), "{}", ran.stderr);
    for command in commands {
        let page =
            sandbox.run(["man"].into_iter().chain(command.iter().map(String::as_str))).expect(0).stdout;
        let name = format!("runvault-{}", command.join("-"));
        assert_eq!(std::fs::read_to_string(sandbox.path(&format!("pages/{name}.1"))).unwrap(), page);
        for section in [".SH NAME", ".SH SYNOPSIS", ".SH DESCRIPTION", ".SH OPTIONS", ".SH EXAMPLES"] {
            assert!(page.contains(section), "{name} has no {section}");
        }
        assert!(page.contains(&name.replace('-', "\\-")), "{page}");
        let groff = Command::new("groff")
            .args(["-man", "-Tascii", "-ww"])
            .arg(sandbox.path(&format!("pages/{name}.1")))
            .output();
        if let Ok(shown) = groff {
            assert!(shown.status.success(), "{name}");
            assert_eq!(String::from_utf8_lossy(&shown.stderr), "", "{name}");
            assert!(String::from_utf8_lossy(&shown.stdout).contains("runvault "), "{name}");
        }
    }
}

#[test]
fn pages_that_are_not_there() {
    let sandbox = Sandbox::new();
    assert!(sandbox.run(["man"]).expect(0).stdout.contains(".TH runvault 1"));
    let ran = sandbox.run(["man", "config", "nothing"]).expect(3);
    assert!(
        ran.stderr.contains("there is no command config nothing; \"runvault help\" lists them"),
        "{}",
        ran.stderr
    );
    sandbox.run(["man", "find", "--all", "x"]).expect(3);
    sandbox.write("file", "");
    assert!(sandbox.run(["man", "--all", "file"]).expect(2).stderr.contains("cannot write file: "));
}

#[test]
fn every_option_has_a_description() {
    let sandbox = Sandbox::new();
    for command in commands(&sandbox, &[]) {
        let page =
            sandbox.run(["man"].into_iter().chain(command.iter().map(String::as_str))).expect(0).stdout;
        let options = page.split_once(".SH OPTIONS").unwrap().1.split(".SH ").next().unwrap();
        for option in options.split(".TP\n").skip(1) {
            assert!(option.lines().count() > 1, "{command:?}: {option}");
        }
        assert!(!page.contains("\\-help(1)"), "{command:?}");
    }
}

#[test]
fn help_has_no_page() {
    let sandbox = Sandbox::new();
    for command in [&["help"][..], &["help", "find"], &["config", "help"], &["config", "help", "set"]] {
        let ran = sandbox.run(["man"].into_iter().chain(command.iter().copied())).expect(3);
        assert_eq!(ran.stderr, "error: help has no manual page; \"runvault help\" prints it\n");
    }
}
