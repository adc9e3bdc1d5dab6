//! The short help of `-h`: the common options only.

use clap::{Arg, Command};

/// Options that only `--help` lists, on every command that has them.
const RARE: &[&str] = &[
    "actor",
    "adapter",
    "all-versions",
    "bundle-hash",
    "by",
    "coincident",
    "core",
    "create",
    "fail-unused",
    "force",
    "format",
    "full",
    "group-by",
    "host",
    "intent-hash",
    "interval",
    "io-ref",
    "keep-going",
    "max-depth",
    "max-entries",
    "max-size",
    "max-values",
    "max-violations",
    "mentions",
    "method",
    "model-mode",
    "new-only",
    "no-header",
    "no-pager",
    "no-source-path",
    "occurrence",
    "policy",
    "prompt-file",
    "prompt-hash",
    "record-hash",
    "refuse-secrets",
    "repeat",
    "require-signature",
    "response-hash",
    "result",
    "resume",
    "seed",
    "settle-traces",
    "signature",
    "signed-by",
    "signing-key-file",
    "state-hash",
    "step-hash",
    "strict",
    "trace-id",
];

/// Options that only `--help` lists, by command, so that the short help fits on a screen of 24 lines.
const RARE_OF: &[(&str, &[&str])] = &[
    ("add", &["fail-fast", "note", "tag"]),
    ("find", &["attr", "columns", "note", "sort", "until"]),
    ("list", &["attr", "note", "prompt", "run-id", "sort", "until"]),
    ("search", &["attr", "has-error", "label", "note", "run-id", "tool", "until"]),
    ("replay", &["attr", "until"]),
    ("exec", &["ci", "idle", "pace", "spool"]),
    ("export", &["all", "attr", "json", "label", "mode", "note", "run-id", "tool", "until"]),
    ("gateway", &["ci", "idle", "label", "pace", "spool"]),
    ("get", &["mode"]),
    ("forget", &["keep-hourly", "keep-yearly", "reason", "yes"]),
];

/// Hides the rare options from the short help.
pub(super) fn without_rare(command: Command) -> Command {
    let of_command =
        RARE_OF.iter().find(|(name, _)| *name == command.get_name()).map_or(&[][..], |(_, own)| own);
    let hidden = |argument: Arg| {
        let is_rare =
            argument.get_long().is_some_and(|name| RARE.contains(&name) || of_command.contains(&name));
        argument.hide_short_help(is_rare)
    };
    command.mut_args(hidden).mut_subcommands(without_rare)
}

/// Options of every command, which the short help lists in one line.
const COMMON: [&str; 5] = ["vault", "quiet", "verbose", "help", "version"];

/// Describes the options of every command in one line of their short help. The commands must have been built.
pub(super) fn with_common_in_one_line(command: Command) -> Command {
    command.mut_subcommands(|inner| {
        let hidden = |argument: Arg| {
            let is_common = COMMON.contains(&argument.get_id().as_str());
            if is_common { argument.hide_short_help(true) } else { argument }
        };
        let inner = inner
            .mut_args(hidden)
            .after_help("Global options: --vault, -q, -v. --help shows all options and examples.");
        with_common_in_one_line(inner)
    })
}

/// Returns the rare options, for the test that they exist.
#[cfg(test)]
pub(super) fn rare() -> &'static [&'static str] {
    RARE
}
