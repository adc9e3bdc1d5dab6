//! The picture in the README: a recording of a terminal, made of what the program shows on one.

use anstyle_svg::Term;

use super::pty::Terminal;
use super::{desk, steady};
use crate::sandbox::repository;

const SESSION: [&str; 6] = [
    "add examples",
    "find --prompt 'Summarise ticket 4711 in one sentence.'",
    "replay 4df877dec7f4 --prompt 'Which label fits ticket 4711: bug, question or billing?'",
    "index build",
    "search 'cut off by mistake'",
    "diff 4df877dec7f4 103ef1c54b58 --first",
];

#[test]
fn the_picture_in_the_readme_is_real() {
    let (desk, terminal) = (desk(), Terminal { width: 100, color: true });
    let mut recording = String::new();
    for command in SESSION {
        let shown = terminal.run(&desk, command);
        recording += &format!("\u{1b}[1m$ runvault {command}\u{1b}[0m\n{}\n\n", shown.trim_end());
    }
    let picture = Term::new().min_width_px(860).render_svg(&steady(&recording));
    let path = repository("docs/terminal.svg");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &picture).unwrap();
    }
    assert!(picture == std::fs::read_to_string(&path).unwrap(), "UPDATE_DOCS=1 writes it");
}
