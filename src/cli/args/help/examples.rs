//! Examples of each command.

/// Command lines with descriptions, by command.
const EXAMPLES: &[(&str, &[(&str, &str)])] = &[
    ("init", &[("create a vault for a project", "runvault --vault runs.vault init")]),
    (
        "add",
        &[
            ("add all artifacts in a directory", "runvault add runs/"),
            ("remove files after they are stored", "runvault add --move spool/"),
            ("add the output of another program", "my-agent --record - | runvault add -"),
        ],
    ),
    (
        "watch",
        &[
            ("while an agent writes to runs/", "runvault watch runs/"),
            ("from cron: add the files that are complete", "runvault watch --once --move spool/"),
        ],
    ),
    (
        "verify",
        &[
            ("all violations of a run", "runvault verify --max-violations 1000 run.rpk"),
            (
                "an artifact in the vault, with its signatures",
                "runvault verify @golden --signing-key-file team.toml",
            ),
        ],
    ),
    (
        "get",
        &[
            ("a recording, byte for byte", "runvault get 4df877dec7f4 > session.json"),
            ("a pack as an archive", "runvault get 54490aab8b3f -o triage.tar.gz"),
            ("one member of a pack", "runvault get @baseline --member run.json"),
        ],
    ),
    (
        "serve",
        &[
            ("open the pages of the default vault in the browser", "runvault serve --open"),
            ("always at the same address", "runvault serve --listen 127.0.0.1:8080"),
        ],
    ),
    (
        "mcp",
        &[
            ("read the default vault; a client of the protocol starts this", "runvault mcp"),
            ("also set notes and labels", "runvault mcp --vault runs.vault --allow-write"),
        ],
    ),
    (
        "exec",
        &[
            ("record what is new, replay the rest", "runvault exec -- python agent.py"),
            ("no network, no key", "runvault exec --mode replay -- pytest"),
            ("with the tools of the agent", "runvault exec --mcp .mcp.json -- python agent.py .mcp.json"),
        ],
    ),
    (
        "mcp-proxy",
        &[
            ("record a server that is a program", "runvault mcp-proxy --server files -- files-server /srv"),
            ("record a server at a URL", "runvault mcp-proxy --url https://mcp.example.com/mcp"),
        ],
    ),
    (
        "gateway",
        &[
            ("record the calls of all clients on this machine", "runvault gateway --mode record"),
            ("ignore dates in prompts", "runvault gateway --normalize 's/\\d{4}-\\d\\d-\\d\\d/DATE/'"),
        ],
    ),
    ("show", &[("an artifact by its tag", "runvault show @baseline")]),
    (
        "view",
        &[
            ("what an agent did, step by step", "runvault view 3941d389b337"),
            ("only what failed, in the newest run", "runvault view latest --only errors"),
            ("a range of steps, with complete texts", "runvault view @baseline --from 2 --to 5 --full"),
        ],
    ),
    (
        "list",
        &[
            ("the runs of this week, newest first", "runvault list --by created --since 7d"),
            ("the longest runs with errors", "runvault list runs --has-error --sort duration"),
            ("what the runs cost", "runvault list --columns created,run_id,tokens,cost --sort cost"),
        ],
    ),
    (
        "find",
        &[
            ("the newest sessions", "runvault find sessions --limit 10"),
            ("everything that was sent this prompt", "runvault find --prompt-file prompt.txt"),
            ("this week's runs that called a tool", "runvault find runs --tool tracker.label --since 7d"),
        ],
    ),
    (
        "search",
        &[
            ("build the index in advance", "runvault index build"),
            ("sessions with this phrase in a response", "runvault search \"export stops\" --in response"),
            ("recent matches, as JSON", "runvault search ticket --since 7d --json"),
        ],
    ),
    (
        "replay",
        &[
            ("the recorded response to a prompt", "runvault replay 4df877dec7f4 --prompt-file prompt.txt"),
            ("the responses recorded in a run", "runvault replay 3941d389b337"),
            (
                "from the newest session that has the prompt",
                "runvault replay any --model m-1 --prompt \"Hello\"",
            ),
            (
                "for a program that makes many requests",
                "runvault replay 4df877dec7f4 --serve-stdio --fail-unused",
            ),
        ],
    ),
    (
        "diff",
        &[
            ("where two recordings diverge", "runvault diff 4df877dec7f4 103ef1c54b58"),
            ("in CI: compare a run with a known good one", "runvault diff --expect golden.rpk run.rpk"),
        ],
    ),
    (
        "assert",
        &[(
            "in CI: fail if a run differs from a known good one, or takes longer",
            "runvault assert golden.rpk --candidate run.rpk --fail-on-slowdown 25",
        )],
    ),
    (
        "links",
        &[
            ("everything linked to a run, up to three links away", "runvault links 3941d389b337 --depth 3"),
            ("as an image", "runvault links @baseline --depth 3 --format dot | dot -Tsvg"),
        ],
    ),
    ("link", &[("what an artifact is linked to", "runvault link list @baseline")]),
    (
        "link add",
        &[(
            "record that a contract governs a run",
            "runvault link add 5c496a37feba governs 66c2f87e8153 --note \"as agreed\"",
        )],
    ),
    ("link remove", &[("remove the link again", "runvault link remove 5c496a37feba governs 66c2f87e8153")]),
    ("link list", &[("links to an artifact", "runvault link list @baseline --direction in")]),
    ("path", &[("how a trace is related to a session", "runvault path 66c2f87e8153 4df877dec7f4")]),
    (
        "sql",
        &[
            ("list views and columns", "runvault sql --tables"),
            ("as CSV", "runvault sql --csv \"SELECT model_id, count(*) FROM sessions GROUP BY 1\""),
            ("all views, for Datasette or a notebook", "runvault sql --save runs.sqlite"),
        ],
    ),
    (
        "stats",
        &[
            ("counts and disk usage", "runvault stats"),
            ("failures, tokens, latency and costs of each model", "runvault stats --by model"),
        ],
    ),
    ("unresolved", &[("missing artifacts, as JSON", "runvault unresolved --json")]),
    ("forks", &[("list runs with two histories", "runvault forks")]),
    (
        "audit",
        &[
            ("all runs that a contract governs", "runvault audit 5c496a37feba"),
            ("a single run", "runvault audit 5c496a37feba 3941d389b337"),
        ],
    ),
    ("gateway recover", &[("store calls that were set aside", "runvault gateway recover")]),
    ("gateway discard", &[("list calls that were set aside", "runvault gateway discard")]),
    ("tag", &[("tag a run as the baseline", "runvault tag set 3941d389b337 baseline")]),
    ("tag set", &[("tag a run as the baseline", "runvault tag set 3941d389b337 baseline")]),
    ("tag remove", &[("remove a tag", "runvault tag remove baseline")]),
    ("tag list", &[("list all tags", "runvault tag list")]),
    ("label", &[("list the keys of labels", "runvault label list")]),
    (
        "label set",
        &[("say where a run comes from", "runvault label set 3941d389b337 commit=4f2a91c branch=main")],
    ),
    ("label remove", &[("remove a label", "runvault label remove 3941d389b337 branch")]),
    ("label list", &[("list the commits, with the number of artifacts", "runvault label list commit")]),
    ("note", &[("print the note of an artifact", "runvault note show @baseline")]),
    ("note set", &[("set a note", "runvault note set @baseline \"the run before the new prompt\"")]),
    ("note show", &[("print the note", "runvault note show @baseline")]),
    ("note remove", &[("remove the note", "runvault note remove @baseline")]),
    ("pin", &[("list pinned artifacts", "runvault pin list")]),
    (
        "pin add",
        &[("protect an artifact from removal", "runvault pin add @baseline --note \"the release of May\"")],
    ),
    ("pin remove", &[("allow removal again", "runvault pin remove @baseline")]),
    ("pin list", &[("list pinned artifacts", "runvault pin list")]),
    (
        "log",
        &[
            ("the removals of the last 30 days", "runvault log --action remove --since 30d"),
            ("the head, to be saved elsewhere", "runvault log --head"),
        ],
    ),
    (
        "rm",
        &[
            ("check first", "runvault rm 7c8de5910f63 --dry-run"),
            ("record a reason", "runvault rm 7c8de5910f63 --reason \"names a customer\""),
        ],
    ),
    (
        "forget",
        &[
            (
                "keep the last hundred of each kind and tagged artifacts",
                "runvault forget --keep-last 100 --keep-tag '*'",
            ),
            (
                "preview: keep one a day for a week, and one a month for a year",
                "runvault forget --keep-daily 7 --keep-monthly 12 --dry-run",
            ),
        ],
    ),
    ("gc", &[("erase removed data from the vault file", "runvault gc")]),
    (
        "tombstones",
        &[
            ("list removed artifacts with the reasons", "runvault tombstones"),
            ("add a removed artifact again", "runvault add session.json --allow-removed"),
        ],
    ),
    (
        "backup",
        &[
            (
                "a checked copy, with the head of its journal",
                "runvault backup /mnt/copies/runs.vault > receipt.txt",
            ),
            ("restore the copy", "runvault --vault copy.vault backup runs.vault --force"),
        ],
    ),
    (
        "copy",
        &[
            ("move to a database", "runvault copy runs.vault 'postgres://db.example/runs'"),
            ("and back to a file", "runvault copy 'postgres://db.example/runs' runs.vault"),
        ],
    ),
    (
        "export",
        &[
            (
                "an artifact with everything linked to it",
                "runvault export @baseline --with-links -o baseline.rvz",
            ),
            ("the runs of one model", "runvault export --kind runs --model m-1 -o runs.rvz"),
            #[cfg(feature = "server")]
            ("a run as pages, for a CI job", "runvault export @baseline --html pages"),
            ("a run as a VCR.py cassette", "runvault export @baseline --as vcr -o run.yaml"),
        ],
    ),
    (
        "import",
        &[
            ("check first", "runvault import --dry-run runs.rvz"),
            ("a VCR.py cassette", "runvault import cassette.yaml"),
            ("an OpenAI batch", "runvault import requests.jsonl responses.jsonl"),
        ],
    ),
    (
        "fsck",
        &[
            ("check everything", "runvault fsck"),
            ("a sample of a large vault", "runvault fsck --sample 5% --seed 42"),
            ("repair from a copy", "runvault fsck --repair --from copy.vault"),
        ],
    ),
    ("index", &[("before the first search", "runvault index build")]),
    ("index build", &[("make artifacts searchable", "runvault index build")]),
    ("index status", &[("whether there is a search index", "runvault index status")]),
    (
        "index rebuild",
        &[
            ("after \"fsck\" found an index damaged", "runvault index rebuild"),
            (
                "check all signatures and record the results",
                "runvault index rebuild --signing-key-file team.toml",
            ),
        ],
    ),
    ("index drop", &[("remove the search index", "runvault index drop")]),
    ("rules", &[("explain a rule", "runvault rules MI7")]),
    (
        "config",
        &[
            ("change the default vault", "runvault config set vault ~/runs.vault"),
            ("the values in use and their sources", "runvault config list"),
        ],
    ),
    ("config get", &[("the path of the vault", "runvault config get vault")]),
    ("config set", &[("allow larger documents", "runvault config set max-size 512M")]),
    ("config unset", &[("restore the default", "runvault config unset max-size")]),
    ("config list", &[("as JSON", "runvault config list --json")]),
    ("config path", &[("edit the file", "$EDITOR \"$(runvault config path)\"")]),
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
            ("show the page of a command", "runvault man config set | man -l -"),
            ("install all pages", "runvault man --all ~/.local/share/man/man1"),
        ],
    ),
];

/// Returns the examples of the command with this path, such as `config set`.
pub(crate) fn for_command(path: &str) -> &'static [(&'static str, &'static str)] {
    EXAMPLES.iter().find(|(known, _)| *known == path).map_or(&[], |(_, examples)| examples)
}

/// Returns the paths of all commands with examples.
#[cfg(test)]
pub(super) fn paths() -> impl Iterator<Item = &'static str> {
    EXAMPLES.iter().map(|(path, _)| *path)
}

/// Returns the examples as shown in help.
pub(super) fn text(path: &str) -> Option<String> {
    let lines = for_command(path).iter().map(|(what, line)| format!("  # {what}\n  {line}"));
    let lines: Vec<String> = lines.collect();
    (!lines.is_empty()).then(|| format!("Examples:\n{}", lines.join("\n")))
}
