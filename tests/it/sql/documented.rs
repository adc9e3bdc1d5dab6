//! What `docs/sql.md` and `docs/views.md` say.

#![allow(clippy::print_stderr, reason = "who runs the tests learns what was not tried")]

use std::fmt::Write;
use std::fs;
use std::process::Command;

use runvault::vault::sql;
use rusqlite::OpenFlags;

use super::{examples, open};
use crate::sandbox::{Ran, repository};

fn docs() -> String {
    fs::read_to_string(repository("docs/sql.md")).unwrap()
}

/// The code blocks in this language.
fn blocks(language: &str) -> Vec<String> {
    let mut blocks: Vec<String> = Vec::new();
    let mut inside = false;
    for line in docs().lines() {
        match (inside, line) {
            (false, line) if line.strip_prefix("```") == Some(language) => {
                inside = true;
                blocks.push(String::new());
            }
            (true, "```") => inside = false,
            (true, line) => writeln!(blocks.last_mut().unwrap(), "{line}").unwrap(),
            _ => {}
        }
    }
    blocks
}

#[test]
fn the_views_are_described() {
    for (mark, is_plain) in [("plain", true), ("computed", false)] {
        let docs = fs::read_to_string(repository("docs/views.md")).unwrap();
        let mut expected = String::new();
        for view in sql::views().iter().filter(|view| view.is_plain == is_plain) {
            write!(
                expected,
                "\n`{}`: {}.\n\n| column | sort | what |\n|---|---|---|\n",
                view.name, view.about
            )
            .unwrap();
            for column in &view.columns {
                writeln!(expected, "| `{}` | {} | {} |", column.name, column.sort.name(), column.about)
                    .unwrap();
            }
        }
        let (_, rest) = docs.split_once(&format!("<!-- {mark} -->\n")).unwrap();
        let (said, _) = rest.split_once("\n<!-- end -->").unwrap();
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(repository("docs/views.md"), docs.replace(said, &expected)).unwrap();
        }
        assert_eq!(said, expected, "docs/views.md should say:\n{expected}");
    }
}

#[test]
fn every_query_is_answered() {
    let sandbox = examples();
    let queries = blocks("sql");
    assert!(queries.len() >= 9);
    sandbox.run(["sql", "--save", "saved.db"]).expect(0);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let saved = rusqlite::Connection::open_with_flags(sandbox.path("saved.db"), flags).unwrap();
    for query in queries {
        let answer = sandbox.run_on(query.as_bytes(), &["sql", "--json", "-"]).expect(0).json();
        // Nothing was removed, and no trace tells of a failure.
        let may_be_empty = query.contains("tombstones") || query.contains("'failed'");
        assert!(may_be_empty || !answer.is_empty(), "{query}");
        // A saved file has the same answer.
        let mut statement = saved.prepare(&query).unwrap();
        let rows = statement.query_map([], |_| Ok(())).unwrap().count();
        assert_eq!(rows, answer.len(), "{query}");
    }
}

#[test]
fn what_is_printed_is_what_is_said() {
    let sandbox = examples();
    let sessions = blocks("console");
    assert_eq!(sessions.len(), 2);
    for session in sessions {
        let (command, said) = session.split_once('\n').unwrap();
        let command = command.strip_prefix("$ runvault ").unwrap();
        let (before, query) = command.strip_suffix('"').unwrap().split_once('"').unwrap();
        let arguments = before.split_whitespace().chain([query]);
        assert_eq!(sandbox.run(arguments).expect(0).stdout, said);
    }
}

#[test]
fn plain_views_need_nothing_of_runvaults() {
    let sandbox = examples();
    let shell = blocks("sh").concat();
    let (_, query) = shell.split_once("sqlite3 -readonly demo.vault \"").unwrap();
    let (query, _) = query.split_once('"').unwrap();
    let connection = open(&sandbox, OpenFlags::SQLITE_OPEN_READ_ONLY);
    let mut statement = connection.prepare(query).unwrap();
    assert_eq!(statement.query_map([], |_| Ok(())).unwrap().count(), 5);
}

#[test]
fn the_notebook_runs() {
    let sandbox = examples();
    sandbox.run(["sql", "--save", "demo.db"]).expect(0);
    let script = repository("examples/notebook.py");
    let ran: Ran = match Command::new("python3").arg(script).arg(sandbox.path("demo.db")).output() {
        Ok(output) => output.into(),
        Err(error) => {
            eprintln!("skipped: python3 cannot be run: {error}");
            return;
        }
    };
    insta::assert_snapshot!(ran.expect(0).stdout);
}

#[test]
fn tables_as_json_are_the_views() {
    let sandbox = examples();
    let lines = sandbox.run(["sql", "--tables", "--json"]).expect(0).json();
    let views = sql::views();
    assert_eq!(lines.len(), views.len());
    for (line, view) in lines.iter().zip(&views) {
        assert_eq!(
            (line["name"].as_str(), line["in_file"].as_bool()),
            (Some(view.name), Some(view.is_plain))
        );
        assert_eq!(line["columns"].as_array().unwrap().len(), view.columns.len());
    }
}
