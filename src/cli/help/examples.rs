//! What people do with each command.

/// Command lines with what they do, by the command.
const EXAMPLES: &[(&str, &[(&str, &str)])] = &[
    ("init", &[("a vault for a project", "runvault --vault runs.vault init")]),
    (
        "add",
        &[
            ("everything in a directory that is an artifact", "runvault add runs/"),
            ("take files away once they are stored", "runvault add --move spool/"),
            ("what another program prints", "my-agent --record - | runvault add -"),
        ],
    ),
    (
        "watch",
        &[
            ("beside an agent that writes into runs/", "runvault watch runs/"),
            ("from cron: what is complete by now goes into the vault", "runvault watch --once --move spool/"),
        ],
    ),
    (
        "verify",
        &[
            ("what is wrong with a run, and all of it", "runvault verify --max-violations 1000 run.rpk"),
            ("what is in the vault, with keys", "runvault verify @golden --signing-key-file team.toml"),
        ],
    ),
    (
        "get",
        &[
            ("a recording, byte for byte", "runvault get 4df877dec7f4 > session.json"),
            ("a pack as an archive", "runvault get 54490aab8b3f -o triage.tar.gz"),
            ("the file that counts in it", "runvault get @baseline --member run.json"),
        ],
    ),
    ("show", &[("what is known of what has a tag", "runvault show @baseline")]),
    (
        "find",
        &[
            ("the newest sessions", "runvault find sessions --limit 10"),
            ("who was ever asked this", "runvault find --prompt-file prompt.txt"),
            ("this week's runs that called a tool", "runvault find runs --tool tracker.label --since 7d"),
        ],
    ),
    (
        "search",
        &[
            ("make the index, once", "runvault search --build"),
            ("which session said this", "runvault search \"export stops\" --in response"),
            ("lately, for other programs", "runvault search ticket --since 7d --json"),
        ],
    ),
    (
        "replay",
        &[
            ("what the model said", "runvault replay 4df877dec7f4 --prompt-file prompt.txt"),
            ("from whichever session has it", "runvault replay any --model m-1 --prompt \"Hello\""),
            ("for a program that asks often", "runvault replay 4df877dec7f4 --serve-stdio --fail-unused"),
        ],
    ),
    ("stub", &[("what a run's models and tools answered", "runvault stub 3941d389b337")]),
    (
        "diff",
        &[
            ("where two recordings diverge", "runvault diff 4df877dec7f4 103ef1c54b58"),
            ("in CI: a run against one that was good", "runvault diff --expect golden.rpk run.rpk"),
        ],
    ),
    (
        "links",
        &[
            ("what belongs to a run, near and far", "runvault links 3941d389b337 --depth 3"),
            ("as a picture", "runvault links @baseline --depth 3 --format dot | dot -Tsvg"),
        ],
    ),
    (
        "link",
        &[("what no artifact says", "runvault link 5c496a37feba governs 66c2f87e8153 --note \"as agreed\"")],
    ),
    ("unlink", &[("it was a mistake", "runvault unlink 5c496a37feba governs 66c2f87e8153")]),
    ("why", &[("what a trace has to do with a session", "runvault why 66c2f87e8153 4df877dec7f4")]),
    (
        "sql",
        &[
            ("what can be asked for", "runvault sql --tables"),
            ("as CSV", "runvault sql --csv \"SELECT model_id, count(*) FROM sessions GROUP BY model_id\""),
            ("everything, for a notebook", "runvault sql --save runs.sqlite"),
        ],
    ),
    ("stats", &[("how much there is of what", "runvault stats")]),
    ("dangling", &[("what is missing, for other programs", "runvault dangling --json")]),
    ("forks", &[("does any run have two histories?", "runvault forks")]),
    (
        "audit",
        &[
            ("all runs that a contract governs", "runvault audit 5c496a37feba"),
            ("one run", "runvault audit 5c496a37feba 3941d389b337"),
        ],
    ),
    ("tag", &[("what others are compared with", "runvault tag 3941d389b337 baseline")]),
    (
        "note",
        &[
            ("write it down", "runvault note @baseline \"the run before the new prompt\""),
            ("and read it", "runvault note @baseline"),
        ],
    ),
    ("untag", &[("the name is free again", "runvault untag baseline")]),
    ("tags", &[("all names", "runvault tags")]),
    ("pin", &[("this must stay", "runvault pin @baseline --note \"the release of May\"")]),
    ("unpin", &[("it may go", "runvault unpin @baseline")]),
    ("pins", &[("what must stay", "runvault pins")]),
    (
        "log",
        &[
            ("what was removed this month", "runvault log --action remove --since 30d"),
            ("to be written down elsewhere", "runvault log --head"),
        ],
    ),
    (
        "rm",
        &[
            ("look before", "runvault rm 7c8de5910f63 --dry-run"),
            ("and tell why", "runvault rm 7c8de5910f63 --reason \"names a customer\""),
        ],
    ),
    (
        "forget",
        &[
            (
                "all but the last hundred of each kind, and tagged ones",
                "runvault forget --keep-last 100 --keep-tag '*'",
            ),
            (
                "of each model one a day for a week and one a month for a year, and why",
                "runvault forget --keep-daily 7 --keep-monthly 12 --group-by kind,model_id --dry-run",
            ),
        ],
    ),
    ("gc", &[("nothing of what was removed is left in the file", "runvault gc")]),
    (
        "tombstones",
        &[
            ("what was removed, by whom and why", "runvault tombstones"),
            ("and may come back", "runvault add session.json --allow-removed"),
        ],
    ),
    (
        "backup",
        &[
            (
                "a checked copy, with the head of its journal",
                "runvault backup /mnt/copies/runs.vault > receipt.txt",
            ),
            ("and back again", "runvault --vault copy.vault backup runs.vault --force"),
        ],
    ),
    (
        "export",
        &[
            (
                "an artifact with all that belongs to it",
                "runvault export @baseline --with-links -o baseline.rvz",
            ),
            ("the runs of one model", "runvault export --kind rpk --model m-1 -o runs.rvz"),
        ],
    ),
    ("import", &[("look before", "runvault import --dry-run runs.rvz")]),
    (
        "fsck",
        &[
            ("everything", "runvault fsck"),
            ("a large vault, a bit every night", "runvault fsck --sample 5% --seed 42"),
            ("mend it from a copy", "runvault fsck --repair --from copy.vault"),
        ],
    ),
    (
        "reindex",
        &[
            ("after \"fsck\" found the index damaged", "runvault reindex"),
            ("check all signatures and remember the result", "runvault reindex --signing-key-file team.toml"),
        ],
    ),
    ("upgrade", &[("before a vault of an older runvault is used", "runvault upgrade")]),
    ("rules", &[("what a rule is for", "runvault rules MI7")]),
    (
        "config",
        &[
            ("another vault for good", "runvault config set vault ~/runs.vault"),
            ("which values count, and why", "runvault config list"),
        ],
    ),
    ("config get", &[("where the vault is", "runvault config get vault")]),
    ("config set", &[("larger documents", "runvault config set max-size 512M")]),
    ("config unset", &[("back to the default", "runvault config unset max-size")]),
    ("config list", &[("for other programs", "runvault config list --json")]),
    ("config path", &[("change the file by hand", "$EDITOR \"$(runvault config path)\"")]),
    (
        "completions",
        &[
            ("bash", "echo 'source <(runvault completions bash)' >> ~/.bashrc"),
            ("zsh", "echo 'source <(runvault completions zsh)' >> ~/.zshrc"),
            ("fish", "echo 'runvault completions fish | source' >> ~/.config/fish/config.fish"),
        ],
    ),
    (
        "man",
        &[
            ("read about a command", "runvault man config set | man -l -"),
            ("have them where man finds them", "runvault man --all ~/.local/share/man/man1"),
        ],
    ),
];

/// The examples of the command with this path, such as `config set`.
pub(crate) fn of(path: &str) -> &'static [(&'static str, &'static str)] {
    EXAMPLES.iter().find(|(known, _)| *known == path).map_or(&[], |(_, examples)| examples)
}

/// All commands that have examples.
#[cfg(test)]
pub(super) fn paths() -> impl Iterator<Item = &'static str> {
    EXAMPLES.iter().map(|(path, _)| *path)
}

/// The same as help shows them.
pub(super) fn text(path: &str) -> Option<String> {
    let lines = of(path).iter().map(|(what, line)| format!("  # {what}\n  {line}"));
    let lines: Vec<String> = lines.collect();
    (!lines.is_empty()).then(|| format!("Examples:\n{}", lines.join("\n")))
}
