//! Presets of `exec`: how a program is pointed at a gateway, and by which rules its requests are compared. Each is a file in
//! `presets`, and those of the user lie in the directory `presets` beside the configuration.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use runvault::calls::{InvalidRule, MatchingRules};
use serde::Deserialize;

use crate::cli::args::settings;
use crate::cli::output::exit::CommandError;

/// The presets of this program, by name.
const BUILT_IN: [(&str, &str); 9] = [
    ("aider", include_str!("presets/aider.toml")),
    ("claude", include_str!("presets/claude.toml")),
    ("cline", include_str!("presets/cline.toml")),
    ("codex", include_str!("presets/codex.toml")),
    ("gemini", include_str!("presets/gemini.toml")),
    ("goose", include_str!("presets/goose.toml")),
    ("opencode", include_str!("presets/opencode.toml")),
    ("pi", include_str!("presets/pi.toml")),
    ("qwen", include_str!("presets/qwen.toml")),
];

/// The name with which no preset is used.
pub(super) const NONE: &str = "none";

/// Programs that run the one that an argument names.
const LAUNCHERS: [&str; 17] = [
    "bun", "bunx", "deno", "env", "nice", "node", "nohup", "npx", "pipx", "pnpm", "pnpx", "python",
    "python3", "timeout", "uv", "uvx", "yarn",
];

/// Programs that run a script, in which another program may be run.
const SHELLS: [&str; 5] = ["bash", "dash", "fish", "sh", "zsh"];

/// What a program that runs another is told to do with it.
const SUBCOMMANDS: [&str; 5] = ["dlx", "exec", "run", "tool", "x"];

/// Options of a program that runs another which are followed by a value, such as the package that contains the other one.
const WITH_VALUE: [&str; 8] = ["--from", "--package", "--python", "--with", "-k", "-n", "-p", "-s"];

/// Options that are followed by code, which is run in place of another program.
const WITH_CODE: [&str; 4] = ["--call", "--eval", "-c", "-e"];

/// A preset. A text can contain `${NAME}`: a variable that points clients at the gateway, or `gateway`, `cwd`, `cwd-name`,
/// `cwd-slug`, `home`, `file:NAME` of its files, or a variable of the environment. Of `${ONE|OTHER}`, the first that there is
/// takes its place.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct Preset {
    #[serde(skip)]
    pub(super) name: String,
    /// The name of the program for people.
    pub(super) title: String,
    /// The names of the program and of the packages that contain it.
    programs: Vec<String>,
    /// The arguments with which it prints its version.
    pub(super) version: Vec<String>,
    /// The arguments that precede those that are given.
    pub(super) arguments: Vec<String>,
    pub(super) environment: BTreeMap<String, String>,
    /// The contents of temporary files.
    pub(super) files: BTreeMap<String, String>,
    /// The contents of files that the program would otherwise miss, by their paths. They are removed afterwards if nothing
    /// changed them; one that exists is left alone.
    pub(super) missing_files: BTreeMap<String, String>,
    /// Texts that contain a path, by the name with which they are compared.
    pub(super) directories: BTreeMap<String, String>,
    pub(super) ignore: Vec<String>,
    pub(super) normalize: Vec<String>,
    sort: Vec<SortRule>,
    /// Why no call may have arrived.
    pub(super) without_calls: Option<String>,
}

/// Elements whose order is not compared.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SortRule {
    at: String,
    by: String,
}

/// The preset of a command line, and the position of the program in it; `None` if the command line does not name it, as when a
/// script runs it.
#[derive(Debug)]
pub(super) struct ChosenPreset {
    pub(super) preset: Preset,
    pub(super) position: Option<usize>,
}

impl Preset {
    /// Adds its rules.
    pub(super) fn add_rules(&self, rules: &mut MatchingRules) -> Result<(), InvalidRule> {
        self.ignore.iter().try_for_each(|location| rules.ignore(location))?;
        self.normalize.iter().try_for_each(|rule| rules.normalize(rule))?;
        self.sort.iter().try_for_each(|SortRule { at, by }| rules.sort(at, by))
    }

    /// Returns its rules as text.
    pub(super) fn rules(&self) -> impl Iterator<Item = String> {
        let ignored = self.ignore.iter().map(|location| format!("ignore {location}"));
        let normalized = self.normalize.iter().map(|rule| format!("normalize {rule}"));
        let sorted = self.sort.iter().map(|SortRule { at, by }| format!("sort {at} by {by}"));
        ignored.chain(normalized).chain(sorted)
    }

    /// Reads a preset of the user.
    fn parse(name: &str, text: &str) -> Result<Self, String> {
        let preset = Self::read(name, text)?;
        preset.add_rules(&mut MatchingRules::default()).map_err(|error| error.to_string())?;
        Ok(preset)
    }

    /// Reads a preset whose rules are valid: to compile them takes most of the time.
    fn read(name: &str, text: &str) -> Result<Self, String> {
        let mut preset: Self = toml_edit::de::from_str(text).map_err(|error| error.to_string())?;
        name.clone_into(&mut preset.name);
        if preset.title.is_empty() {
            name.clone_into(&mut preset.title);
        }
        Ok(preset)
    }

    /// Returns whether an argument names its program: by its name, by a package that contains it, with or without a version,
    /// or by a path into such a package. A script that has the name of the program is another one.
    fn is_named_by(&self, argument: &OsStr) -> bool {
        let text = argument.to_string_lossy();
        let file = Path::new(&*text).file_name().map(OsStr::to_string_lossy).unwrap_or_default();
        let file = [".exe", ".cmd"].iter().find_map(|end| file.strip_suffix(end)).unwrap_or(&file);
        let package = text.char_indices().skip(1).find(|(_, character)| *character == '@');
        let package = package.map_or(&*text, |(at, _)| text.get(..at).unwrap_or_default());
        self.programs.iter().any(|program| {
            file == program || package == program || text.contains(&format!("node_modules/{program}/"))
        })
    }
}

/// Returns the preset that is named, or that of the program of a command line; `None` if there is none.
pub(super) fn choose(
    named: Option<&str>,
    command: &[OsString],
) -> Result<Option<ChosenPreset>, CommandError> {
    if named == Some(NONE) {
        return Ok(None);
    }
    let mut presets = all()?;
    let place = |preset: &Preset| program_position(preset, command);
    if let Some(named) = named {
        let Some(preset) = presets.iter().find(|preset| preset.name == named) else {
            let known: Vec<&str> = presets.iter().map(|preset| preset.name.as_str()).collect();
            let message = format!("there is no preset {named}; presets are {} and {NONE}", known.join(", "));
            return Err(CommandError::Usage(message));
        };
        let runs_another = |first| is_one_of(&LAUNCHERS, first) || is_one_of(&SHELLS, first);
        let first = || command.first().is_some_and(|first| !runs_another(first)).then_some(0);
        let position = place(preset).or_else(first);
        return Ok(Some(ChosenPreset { preset: preset.clone(), position }));
    }
    let found = presets.iter().enumerate().filter_map(|(index, preset)| Some((place(preset)?, index)));
    let found = found.min();
    Ok(found.map(|(position, index)| ChosenPreset {
        preset: presets.swap_remove(index),
        position: Some(position),
    }))
}

/// Returns where a command line names the program of a preset: first, or as the one that a program runs. What follows the name of
/// another program is for that: a script can be told which agent to run.
fn program_position(preset: &Preset, command: &[OsString]) -> Option<usize> {
    let mut previous: Option<&OsString> = None;
    for (position, argument) in command.iter().enumerate() {
        let text = argument.to_string_lossy();
        let is_value = previous.is_some_and(|option| WITH_VALUE.iter().any(|known| option == known));
        if !is_value && preset.is_named_by(argument) {
            return Some(position);
        }
        if WITH_CODE.contains(&&*text) {
            return None;
        }
        let is_of_launcher = previous.is_some()
            && (is_value
                || SUBCOMMANDS.contains(&&*text)
                || text.starts_with(|first: char| first == '-' || first.is_ascii_digit())
                || text.contains('='));
        if !is_of_launcher && !is_one_of(&LAUNCHERS, argument) {
            return None;
        }
        previous = Some(argument);
    }
    None
}

/// Returns whether an argument is one of these programs.
fn is_one_of(programs: &[&str], argument: &OsStr) -> bool {
    let file = Path::new(argument).file_name().map(OsStr::to_string_lossy).unwrap_or_default();
    programs.contains(&&*file)
}

/// Returns the presets of the user, and those of this program that they do not replace.
fn all() -> Result<Vec<Preset>, CommandError> {
    let mut presets = of_user()?;
    for (name, text) in BUILT_IN {
        if presets.iter().all(|preset| preset.name != name) {
            let wrong = |error: String| CommandError::CouldNotRun(format!("the preset {name}: {error}"));
            presets.push(Preset::read(name, text).map_err(wrong)?);
        }
    }
    Ok(presets)
}

fn of_user() -> Result<Vec<Preset>, CommandError> {
    // Without a directory for the configuration, there are none.
    let Ok(configuration) = settings::path() else { return Ok(Vec::new()) };
    let directory = configuration.with_file_name("presets");
    let cannot_read = |path: &Path, error: &dyn std::fmt::Display| {
        CommandError::CouldNotRun(format!("cannot read the preset {}: {error}", path.display()))
    };
    let entries = match fs::read_dir(&directory) {
        Ok(entries) => entries,
        Err(_) if !directory.exists() => return Ok(Vec::new()),
        Err(error) => return Err(cannot_read(&directory, &error)),
    };
    let mut presets = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| cannot_read(&directory, &error))?.path();
        if path.extension() != Some(OsStr::new("toml")) {
            continue;
        }
        let text = fs::read_to_string(&path).map_err(|error| cannot_read(&path, &error))?;
        let name = path.file_stem().map(OsStr::to_string_lossy).unwrap_or_default();
        presets.push(Preset::parse(&name, &text).map_err(|error| cannot_read(&path, &error))?);
    }
    presets.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(presets)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(command: &[&str]) -> Option<(String, usize)> {
        let command: Vec<OsString> = command.iter().map(OsString::from).collect();
        let presets = BUILT_IN.map(|(name, text)| Preset::parse(name, text).unwrap());
        let found = presets
            .iter()
            .filter_map(|preset| Some((preset.name.clone(), program_position(preset, &command)?)));
        found.min_by_key(|(_, position)| *position)
    }

    #[test]
    fn presets_are_chosen_by_the_program() {
        for (command, expected) in [
            (&["claude", "-p", "codex"][..], Some(("claude", 0))),
            (&["/usr/bin/codex.exe"], Some(("codex", 0))),
            (&["npx", "-y", "@openai/codex@latest", "exec"], Some(("codex", 2))),
            (&["node", "/a/node_modules/@google/gemini-cli/bundle/gemini.js"], Some(("gemini", 1))),
            (&["python3", "-m", "aider"], Some(("aider", 2))),
            (&["timeout", "100", "npx", "claude"], Some(("claude", 3))),
            (&["env", "A=b", "nice", "-n", "5", "claude"], Some(("claude", 5))),
            (&["uvx", "--from", "aider-chat", "aider"], Some(("aider", 3))),
            (&["npx", "-y", "-p", "@openai/codex", "codex"], Some(("codex", 4))),
            (&["pnpm", "dlx", "opencode-ai"], Some(("opencode", 2))),
            (&["node", "node_modules/.bin/codex"], Some(("codex", 1))),
            (&["sh", "-c", "claude"], None),
            (&["python3", "agent.py"], None),
            (&["python3", "agent.py", "codex"], None),
            (&["node", "codex.mjs"], None),
            (&["./claude.js"], None),
            (&["npx", "my-agent", "claude"], None),
            (&["python3", "-c", "mode=1", "codex"], None),
            (&["node", "-e", "a=1", "claude"], None),
        ] {
            let expected = expected.map(|(name, position)| (name.to_owned(), position));
            assert_eq!(chosen(command), expected, "{command:?}");
        }
    }

    #[test]
    fn what_is_wrong_in_a_preset_is_named() {
        for (text, expected) in [
            ("programs = 1", "invalid type"),
            ("programms = []", "unknown field"),
            ("normalize = [\"s/(/\"]", "not a replacement"),
            ("sort = [{ at = \"/a~\", by = \"id\" }]", "JSON Pointer"),
        ] {
            let error = Preset::parse("mine", text).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
