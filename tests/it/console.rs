//! Commands in documents, with what they are said to print.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use crate::output::steady;
use crate::sandbox::{Sandbox, program, repository};

/// A piece of a document: text, or a command of a `console` block, which may go on over several lines, with what it is
/// said to print.
enum Piece<'d> {
    Text(&'d str),
    Command { lines: Vec<&'d str>, output: String },
}

fn pieces(document: &str) -> Vec<Piece<'_>> {
    let mut pieces: Vec<Piece<'_>> = Vec::new();
    let mut inside = false;
    for line in document.lines() {
        match (inside, line.strip_prefix("$ ")) {
            (true, Some(command)) => {
                pieces.push(Piece::Command { lines: vec![command], output: String::new() });
            }
            (true, None) if line != "```" => match pieces.last_mut() {
                Some(Piece::Command { lines, output }) => match line.strip_prefix("> ").or(empty(line)) {
                    Some(more) if output.is_empty() => lines.push(more),
                    _ => *output += &format!("{line}\n"),
                },
                _ => panic!("a console block begins with output: {line}"),
            },
            _ => {
                inside = line == "```console";
                pieces.push(Piece::Text(line));
            }
        }
    }
    pieces
}

/// An empty line of a command, without a space at its end.
fn empty(line: &str) -> Option<&str> {
    line.strip_prefix('>').filter(|rest| rest.is_empty())
}

fn document(pieces: &[Piece<'_>]) -> String {
    let mut document = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(line) => writeln!(document, "{line}").unwrap(),
            Piece::Command { lines, output } => {
                let lines = lines.join("\n> ").replace("\n> \n", "\n>\n");
                write!(document, "$ {lines}\n{output}").unwrap();
            }
        }
    }
    document
}

/// A shell with the program and the repository's examples, in a directory of its own.
struct Shell<'s> {
    sandbox: Sandbox,
    surroundings: &'s Surroundings<'s>,
}

/// What the commands of a document find besides the program.
#[derive(Default)]
pub(crate) struct Surroundings<'s> {
    /// Variables.
    pub(crate) variables: Vec<(&'static str, String)>,
    /// What is done in a new directory, before `runvault init`.
    pub(crate) prepare: Option<&'s dyn Fn(&Sandbox)>,
}

impl<'s> Shell<'s> {
    fn new(surroundings: &'s Surroundings<'s>) -> Self {
        let sandbox = Sandbox::new();
        std::os::unix::fs::symlink(repository("examples"), sandbox.path("examples")).unwrap();
        if let Some(prepare) = surroundings.prepare {
            prepare(&sandbox);
        }
        Self { sandbox, surroundings }
    }

    /// What a script prints, errors included.
    fn run(&self, script: &str) -> String {
        let program = Path::new(program());
        let path = std::env::join_paths(
            std::iter::once(program.parent().unwrap().to_owned())
                .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
        );
        let ran = Command::new("sh")
            .args(["-c", &format!("{{ {script}\n}} 2>&1")])
            .current_dir(self.sandbox.path(""))
            .env_clear()
            .env("PATH", path.unwrap())
            .env("HOME", self.sandbox.path(""))
            .env("RUNVAULT_VAULT", "demo.vault")
            .envs(self.surroundings.variables.iter().map(|(name, value)| (name, value)))
            .output()
            .unwrap();
        // Lines of CSV end as its standard has it.
        String::from_utf8(ran.stdout).unwrap().replace("\r\n", "\n")
    }
}

/// Runs every command of a document and holds what it prints to what the document says, but for times. Where a line of
/// the document begins with `fresh`, the commands after it run in a new directory with an empty vault. With `UPDATE_DOCS` in the environment,
/// the document is written again. Gives the number of commands.
pub(crate) fn check(file: &str, fresh: Option<&str>) -> usize {
    check_in(file, fresh, &Surroundings::default())
}

/// The same, with more than the program.
pub(crate) fn check_in(file: &str, fresh: Option<&str>, surroundings: &Surroundings<'_>) -> usize {
    let path = repository(file);
    let text = std::fs::read_to_string(&path).unwrap();
    let mut pieces = pieces(&text);
    let mut shell = None;
    let mut differences = String::new();
    let mut commands = 0;
    for piece in &mut pieces {
        match piece {
            Piece::Text(line) if fresh.is_some_and(|fresh| line.starts_with(fresh)) => {
                shell.insert(Shell::new(surroundings)).run("runvault init");
            }
            Piece::Text(_) => {}
            Piece::Command { lines, output } => {
                let script = lines.join("\n");
                commands += 1;
                if script.contains("python3") && !has("python3") {
                    continue;
                }
                let printed = shell.get_or_insert_with(|| Shell::new(surroundings)).run(&script);
                if steady(&printed) != steady(output) {
                    differences += &format!("$ {script}\n{printed}-- and not\n{output}\n");
                    *output = printed;
                }
            }
        }
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, document(&pieces)).unwrap();
    } else {
        assert!(differences.is_empty(), "UPDATE_DOCS=1 writes down what {file} should say:\n{differences}");
    }
    commands
}

fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|ran| ran.status.success())
}
