//! What people see.

use super::examples;
use crate::sandbox::Sandbox;

const LOOKS: &[&str] = &[
    "SELECT * FROM interactions ORDER BY artifact, i LIMIT 3",
    "SELECT core_hash, model_id, interactions FROM sessions ORDER BY core_hash",
    "SELECT i, type, tool, prompts, responses FROM steps",
    "SELECT 1 AS a, -2.5 AS b, NULL AS c, x'00ff' AS d, 'zwölf 漢字 😀' AS e, '' AS f, 1e300 * 1e300 AS g",
    "SELECT 'x' AS a, 'y' AS bc WHERE 0",
];

/// What the queries print at this width.
fn looks(sandbox: &Sandbox, columns: Option<&str>, color: bool) -> String {
    let mut all = String::new();
    for query in LOOKS {
        let mut command = sandbox.command();
        command.args(["sql", query]);
        if let Some(columns) = columns {
            command.env("COLUMNS", columns);
        }
        if color {
            command.env("CLICOLOR_FORCE", "1");
        }
        let output = command.output().unwrap();
        all += &format!("$ {query}\n{}", String::from_utf8(output.stdout).unwrap());
        all += &String::from_utf8(output.stderr).unwrap();
        all += "\n";
    }
    all
}

#[test]
fn tables_fit_the_terminal() {
    let sandbox = examples();
    insta::assert_snapshot!("at_80_columns", looks(&sandbox, Some("80"), false));
    insta::assert_snapshot!("at_120_columns", looks(&sandbox, Some("120"), false));
    insta::assert_snapshot!("in_color", looks(&sandbox, Some("80"), true));
    insta::assert_snapshot!("in_a_pipe", looks(&sandbox, None, false));
}

#[test]
fn csv_and_json() {
    let sandbox = examples();
    let mut all = String::new();
    for query in LOOKS {
        for arguments in [&["--csv"][..], &["--csv", "--no-header"], &["--json"], &["--no-header"]] {
            let ran = sandbox.run(["sql"].iter().chain(arguments).chain([query])).expect(0);
            // Git and editors change the line ends of CSV.
            all += &format!("$ {} {query}\n{}\n", arguments.join(" "), ran.stdout.replace('\r', "␍"));
        }
    }
    insta::assert_snapshot!(all);
}

#[test]
fn members_of_objects_have_names_of_their_own() {
    let sandbox = examples();
    let query = "SELECT 1 AS a, 2 AS a, 3 AS a_2, 9223372036854775807 AS b";
    let printed = sandbox.run(["sql", "--json", query]).expect(0).stdout;
    assert_eq!(printed, "{\"a\":1,\"a_2\":2,\"a_2_2\":3,\"b\":9223372036854775807}\n");
}

#[test]
fn a_query_comes_from_where_it_is() {
    let sandbox = examples();
    let file = sandbox.write("q.sql", "-- How many?\nSELECT count(*) AS n\n  FROM sessions;\n");
    let from_file = sandbox.run(["sql", "--csv", "--file", file.to_str().unwrap()]).expect(0).stdout;
    assert_eq!(from_file, "n\r\n2\r\n");
    for arguments in [&["sql", "--csv", "-"][..], &["sql", "--csv", "--file", "-"]] {
        assert_eq!(
            sandbox.run_on(b"SELECT count(*) AS n FROM sessions", arguments).expect(0).stdout,
            from_file
        );
    }
    for (arguments, status) in [
        (&["sql"][..], 3),
        (&["sql", "SELECT 1", "--file", "q.sql"], 3),
        (&["sql", "SELECT 1", "--csv", "--json"], 3),
        (&["sql", "SELECT 1", "--force"], 3),
        (&["sql", "--save", "x.db", "SELECT 1"], 3),
        (&["sql", "--tables", "SELECT 1"], 3),
        (&["sql", "--file", "nothing.sql"], 2),
    ] {
        sandbox.run(arguments).expect(status);
    }
    sandbox.run_on(b"SELECT '\xff'", &["sql", "-"]).expect(2);
    let nothing = Sandbox::without_vault();
    let missing = nothing.run(["sql", "SELECT 1"]).expect(2);
    assert!(missing.stderr.contains("there is no vault"), "{}", missing.stderr);
    // What can be asked does not depend on a vault.
    insta::assert_snapshot!(nothing.run(["sql", "--tables"]).expect(0).stdout);
}

#[test]
fn rows_are_lists_if_that_is_asked_for() {
    let sandbox = examples();
    let query = "SELECT i, type, tool, prompt_text FROM steps WHERE i < 2";
    let expected = "row 1\n  i           0\n  type        prompt.render\n  tool        NULL\n  \
        prompt_text Summarise ticket 4711 in one sentence.\n\nrow 2\n  i           1\n  type        model.request\n  \
        tool        NULL\n  prompt_text Summarise ticket 4711 in one sentence.\n";
    for option in ["-x", "--vertical", "--expanded", "--vertical=always"] {
        assert_eq!(sandbox.run(["sql", option, query]).expect(0).stdout, expected);
    }
    let without_headings = sandbox.run(["sql", "-x", "--no-header", query]).expect(0).stdout;
    assert_eq!(without_headings, expected.replace("row 1\n", "").replace("row 2\n", ""));
    // In a pipe, nothing changes with the width.
    let table = sandbox.run(["sql", query]).expect(0).stdout;
    assert!(table.starts_with("i type"), "{table}");
    for other in ["--csv", "--json", "--tables"] {
        sandbox.run(["sql", "-x", other, query]).expect(3);
    }
}
