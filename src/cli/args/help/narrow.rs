//! Usage lines on narrow terminals. clap wraps everything else.

use clap::Command;

use crate::cli::output::fit;

/// The indent of further usage lines.
const INDENT: &str = "\n         ";

/// Wraps the usage of every command that does not fit into this width.
pub(super) fn fitted(mut command: Command, width: usize) -> Command {
    // Global options are part of every usage.
    command.build();
    let name = command.get_name().to_owned();
    below(command, &name, width)
}

fn below(command: Command, path: &str, width: usize) -> Command {
    let command = command.mut_subcommands(|inner| {
        let path = format!("{path} {}", inner.get_name());
        below(inner, &path, width)
    });
    let usage = command.clone().bin_name(path).render_usage().to_string();
    if fit::width(&usage) <= width {
        return command;
    }
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage);
    let lines = fit::fold(usage, width.saturating_sub(INDENT.len()).max(1));
    command.override_usage(lines.join(INDENT))
}
