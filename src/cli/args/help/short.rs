//! The short help of `-h`: the common options only.

use clap::{Arg, Command};

/// Options that only `--help` lists, on every command that has them.
const RARE: &[&str] = &[
    "actor",
    "adapter",
    "all-versions",
    "bundle-hash",
    "by",
    "core",
    "create",
    "fail-unused",
    "force",
    "format",
    "full",
    "group-by",
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
    "mode",
    "model-mode",
    "new-only",
    "no-header",
    "no-pager",
    "occurrence",
    "policy",
    "prompt-file",
    "prompt-hash",
    "record-hash",
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

/// Hides the rare options from the short help.
pub(super) fn without_rare(command: Command) -> Command {
    let hidden = |argument: Arg| {
        let is_rare = argument.get_long().is_some_and(|name| RARE.contains(&name));
        argument.hide_short_help(is_rare)
    };
    command.mut_args(hidden).mut_subcommands(without_rare)
}

/// Returns the rare options, for the test that they exist.
#[cfg(test)]
pub(super) fn rare() -> &'static [&'static str] {
    RARE
}
