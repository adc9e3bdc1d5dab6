//! What people see on a real terminal, at the widths that they have, with and without color.
#![cfg(unix)]

mod asking;
mod paging;
mod picture;
mod pty;

use std::fmt::Write as _;

use crate::sandbox::{Sandbox, repository, run_pack, session};
use pty::Terminal;

/// What people do all day, on the shipped examples.
const SESSION: &[&str] = &[
    "add examples",
    "find",
    "find sessions --prompt 'Summarise ticket 4711 in one sentence.'",
    "tag set 4df877dec7f4 baseline",
    "tag set 3941d389b337 release/1.4",
    "note set @baseline 'What the others are compared with; recorded before the tracker was upgraded.'",
    "pin add @baseline --note 'the customer asked for it'",
    "link add 5c496a37feba governs 66c2f87e8153 --note 'agreed with the owners of the tracker'",
    "find --columns hash,kind,size,captures,model_id,tool,tags,note",
    "find runs --format '{{hash}} {{kind}} {{run_id}}'",
    "index build",
    "search 'fix is on its way'",
    "sql 'SELECT model_id, i, response_content FROM sessions JOIN interactions USING (artifact) WHERE i < 2'",
    "show @release/1.4",
    "show @baseline",
    "links 5c496a37feba --depth 3",
    "path 5c496a37feba 54490aab8b3f",
    "tag list",
    "pin list",
    "note show @baseline",
    "log",
    "stats",
    "diff 4df877dec7f4 103ef1c54b58",
    "verify edited.json",
    "get 4df877dec7f4 --core",
    "replay 4df877dec7f4 --prompt 'Which label fits ticket 4711: bug, question or billing?'",
    "show abcdef",
    "show latest~7",
];

/// A sandbox with the examples, and one of them edited.
fn desk() -> Sandbox {
    let sandbox = Sandbox::at("2026-11-21T12:00:00Z");
    std::os::unix::fs::symlink(repository("examples"), sandbox.path("examples")).unwrap();
    let session = std::fs::read_to_string(repository("examples/session.json")).unwrap();
    sandbox.write("edited.json", session.replace("a fix is on its way", "a fix will come"));
    sandbox
}

/// The screen after `commands`, each below a prompt.
fn screen(sandbox: &Sandbox, terminal: Terminal, commands: &[&str]) -> String {
    let mut screen = String::new();
    for command in commands {
        let shown = terminal.run(sandbox, command);
        write!(screen, "$ runvault {command}\n{shown}").unwrap();
        if !shown.is_empty() && !shown.ends_with('\n') {
            screen.push_str("⏎\n");
        }
    }
    steady(&screen)
}

/// `text` without what differs from run to run: times, durations, and the size of the vault's file.
fn steady(text: &str) -> String {
    let steady = crate::output::steady(text);
    // On a narrow terminal, its line has a second one or not, as its size is.
    let lines = steady.lines().filter(|line| !["free", "it free", "of it free"].contains(&line.trim()));
    let lines = lines.map(|line| match line.trim_start() {
        dates
            if dates.len() > 20
                && dates.starts_with("20")
                && dates.ends_with(|end: char| end.is_ascii_digit()) =>
        {
            "  0000-00-00 to 0000-00-00".to_owned()
        }
        file if file.starts_with("file ") => "  file".to_owned(),
        _ => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

/// Makes what controls the terminal visible, so that a snapshot shows where colors begin and end.
fn visible(text: &str) -> String {
    text.replace("\u{1b}[", "‹").replace('\u{1b}', "‹ESC›")
}

/// All but commands and exact bytes must fit.
fn expect_to_fit(screen: &str, width: usize) {
    for line in screen.lines().filter(|line| !line.starts_with("$ ") && !line.starts_with('{')) {
        let seen = pty::without_colors(line);
        // What these tests write, counted without the program's own table of widths.
        let is_wide =
            |character: char| matches!(character, '\u{3000}'..='\u{9fff}' | '\u{1f300}'..='\u{1faff}');
        let taken: usize = seen.chars().map(|character| if is_wide(character) { 2 } else { 1 }).sum();
        assert!(taken <= width, "{taken} columns of {width}: {seen}");
    }
}

#[test]
fn a_session_at_80_columns() {
    let screen = screen(&desk(), Terminal { width: 80, color: false }, SESSION);
    expect_to_fit(&screen, 80);
    insta::assert_snapshot!(screen);
}

#[test]
fn a_session_at_120_columns() {
    let screen = screen(&desk(), Terminal { width: 120, color: false }, SESSION);
    expect_to_fit(&screen, 120);
    insta::assert_snapshot!(screen);
}

#[test]
fn a_session_in_color() {
    for width in [80, 120] {
        let screen = screen(&desk(), Terminal { width, color: true }, SESSION);
        assert!(screen.contains('\u{1b}'), "there are no colors");
        expect_to_fit(&screen, width.into());
        insta::assert_snapshot!(format!("a_session_in_color_at_{width}_columns"), visible(&screen));
    }
}

#[test]
fn ids_that_begin_alike_stay_distinct() {
    let sandbox = Sandbox::at("2026-11-21T12:00:00Z");
    let ids: Vec<String> =
        (0..9).map(|run| format!("nightly-2026-11-27-agent-{}-{run:04}", ["a", "b"][run % 2])).collect();
    for id in &ids {
        let request = serde_json::json!({"type": "model.request",
            "input": {"model": "a-model-with-a-long-name-2026-11-18", "prompt": id}});
        let file = sandbox.write(&format!("{id}.rpk"), run_pack(id, &[request]));
        sandbox.run(["add".as_ref(), file.as_os_str()]).expect(0);
    }
    for width in [40, 60, 80, 100, 200] {
        for command in ["list", "find", "find --columns hash,run_id,model_id,seen"] {
            let shown = Terminal { width, color: false }.run(&sandbox, command);
            expect_to_fit(&shown, width.into());
            for id in &ids {
                let rows = shown.lines().filter(|line| line.contains(&id[id.len() - 6..]));
                assert_eq!(rows.count(), 1, "{id} at {width} columns:\n{shown}");
            }
        }
    }
}

/// Commands whose lines must fit whatever the vault has. Violations, errors and differences are folded by the terminal.
const FITTING: &[&str] = &[
    "find",
    "find --columns hash,kind,added,age,size,bytes,captures,label,tags,note,model_id,adapter_id,core",
    "find sessions --prompt hello",
    "show latest",
    "show latest~1",
    "view latest",
    "view latest~2",
    "find --prompt hello --answers",
    "links latest~1",
    "tag list",
    "pin list",
    "log",
    "stats",
    "replay latest~1",
    "forget --keep-last 1 --dry-run",
    "audit 5c496a37feba",
    "unresolved",
    "tombstones",
];

#[test]
fn hostile_values_fit_and_control_nothing() {
    let sandbox = desk();
    let exchanges = [("hello", "hi")];
    let long = session("adapter", &exchanges).replace("\"m\"", &format!("\"{}\"", "model-".repeat(84)));
    let wide = session("記録アダプター", &exchanges)
        .replace("\"m\"", "\"模型😀模型😀模型😀模型😀模型😀模型😀模型😀模型😀\"");
    let evil = session("evil\u{1b}[2J\u{9b}31m\r\n\u{202e}adapter", &exchanges);
    for (name, text) in [("long.json", long), ("wide.json", wide), ("evil.json", evil)] {
        sandbox.write(name, text);
    }
    sandbox.run(["--actor", "dana", "add", "examples", "evil.json", "long.json", "wide.json"]).expect(0);
    sandbox
        .run([
            "--actor",
            "dana",
            "note",
            "set",
            "latest",
            "\u{1b}]0;title\u{7} 備考備考備考備考備考備考備考備考備考備考備考備考備考備考備考備考",
        ])
        .expect(0);
    sandbox.run(["--actor", "dana", "note", "set", "latest~1", &"no-space".repeat(60)]).expect(0);
    sandbox.run(["--actor", "dana", "tag", "set", "latest~1", &"t".repeat(100)]).expect(0);
    sandbox.run(["--actor", "dana", "pin", "add", "latest", "--note", "\u{202e}pinned\tfor\ngood"]).expect(0);
    sandbox
        .run([
            "--actor",
            "dana",
            "link",
            "add",
            "latest~1",
            "governs",
            "latest",
            "--note",
            &"because ".repeat(40),
        ])
        .expect(0);
    // The run states which session it replays, and that is gone.
    sandbox.run(["--actor", "dana", "rm", "4df877dec7f4", "--force", "--with-containers"]).expect(0);
    for width in [40, 57, 80, 120] {
        for color in [false, true] {
            let screen = screen(&sandbox, Terminal { width, color }, FITTING);
            expect_to_fit(&screen, width.into());
            let seen = pty::without_colors(&screen);
            let controls =
                |character: char| character.is_control() && character != '\n' || character == '\u{202e}';
            assert!(!seen.contains(controls), "{seen:?}");
            if width == 40 && !color {
                insta::assert_snapshot!("hostile_values_at_40_columns", screen);
            }
        }
    }
}

#[test]
fn many_artifacts_are_listed_in_part() {
    let sandbox = Sandbox::new();
    for number in 0..120 {
        sandbox.write(&format!("d/{number}.json"), session(&format!("adapter-{number}"), &[]));
    }
    sandbox.add([sandbox.path("d")]);
    let terminal = Terminal { width: 80, color: false };
    let shown = terminal.run(&sandbox, "find sessions");
    assert_eq!(shown.lines().count(), 101);
    assert_eq!(shown.lines().last().unwrap(), "100 of 120 sessions; --limit 120 shows all");
    assert_eq!(terminal.run(&sandbox, "find --limit 120").lines().count(), 121);
    assert_eq!(terminal.run(&sandbox, "find --format {{core}}").lines().count(), 120);
    assert_eq!(terminal.run(&sandbox, "find --json").lines().count(), 120);
    assert_eq!(sandbox.run(["find"]).expect(0).stdout.lines().count(), 120);
    assert_eq!(sandbox.run(["find", "--limit", "3"]).expect(0).stderr, "3 of 120 artifacts\n");
}

#[test]
fn columns_says_how_wide_it_is() {
    let sandbox = desk();
    sandbox.run(["add", "examples"]).expect(0);
    let at = |columns: &str| -> crate::sandbox::Ran {
        let mut command = sandbox.command();
        command
            .env("COLUMNS", columns)
            .args(["find", "--columns", "core,label,note"])
            .output()
            .unwrap()
            .into()
    };
    assert!(at("50").stdout.lines().all(|line| line.chars().count() <= 50), "{}", at("50").stdout);
    // What is no width is as if it were not there, and then nothing is cut.
    for none in ["", "0", "wide", "-3"] {
        assert!(
            at(none)
                .stdout
                .contains("sha256:103ef1c54b5851189f9ce652cf23861fa90772e5f434615852cc9e2030f80a4c ")
        );
        assert!(!at(none).stdout.contains('…'), "{none:?}");
    }
}

#[test]
fn rows_that_do_not_fit_a_table_are_lists() {
    let sandbox = desk();
    sandbox.add([repository("examples")]);
    let narrow = Terminal { width: 60, color: false };
    let lists = narrow.run(&sandbox, "sql 'SELECT * FROM steps LIMIT 2'");
    assert!(lists.starts_with("row 1\n  artifact ") && lists.contains("\n\nrow 2\n"), "{lists}");
    assert!(lists.contains("Summarise ticket 4711 in one sentence."), "{lists}");
    assert!(lists.lines().all(|line| line.chars().count() <= 60), "{lists}");
    let omitted = narrow.run(&sandbox, "sql --vertical=never 'SELECT * FROM steps LIMIT 2'");
    assert!(omitted.starts_with("artifact ") && omitted.lines().next().unwrap().ends_with('…'), "{omitted}");
    let table = narrow.run(&sandbox, "sql 'SELECT i, type, input FROM steps LIMIT 2'");
    assert!(table.starts_with("i  type "), "{table}");
}
