//! The README's tour: every command in it is run, and prints what the README says.

use std::process::Command;

use crate::output::steady;
use crate::sandbox::{Sandbox, repository};

/// The commands of the `console` blocks with what they are said to print.
fn commands(text: &str) -> Vec<(String, String)> {
    let mut commands: Vec<(String, String)> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        match (inside, line.strip_prefix("$ "), line) {
            (false, _, "```console") => inside = true,
            (true, _, "```") => inside = false,
            (true, Some(command), _) => commands.push((command.to_owned(), String::new())),
            (true, None, line) => {
                let (_, output) = commands.last_mut().unwrap();
                *output += line;
                output.push('\n');
            }
            _ => {}
        }
    }
    commands
}

#[cfg(unix)]
#[test]
fn the_tour_is_real() {
    let sandbox = Sandbox::new();
    std::os::unix::fs::symlink(repository("examples"), sandbox.path("examples")).unwrap();
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_runvault"));
    let path = std::env::join_paths(
        std::iter::once(program.parent().unwrap().to_owned())
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let commands = commands(&std::fs::read_to_string(repository("README.md")).unwrap());
    assert!(commands.len() > 8, "the tour is gone");
    let mut actual = String::new();
    let mut expected = String::new();
    for (command, output) in commands {
        let ran = Command::new("sh")
            .args(["-c", &format!("{command} 2>&1")])
            .current_dir(sandbox.path(""))
            .env_clear()
            .env("PATH", path.as_ref().unwrap())
            .env("RUNVAULT_VAULT", "demo.vault")
            .env("RUNVAULT_CONFIG", sandbox.path("config.toml"))
            .output()
            .unwrap();
        actual += &format!("$ {command}\n{}", String::from_utf8(ran.stdout).unwrap());
        expected += &format!("$ {command}\n{output}");
    }
    assert_eq!(steady(&actual), steady(&expected), "the program prints:\n{actual}");
}
