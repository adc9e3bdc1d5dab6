//! The program of `exec` as it is started: its arguments, its variables, the directories and secrets of its place, and the
//! network namespace of Linux in which only the loopback interface can be reached.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;
use std::{fs, io, thread};

use runvault::calls::MatchingRules;
use runvault::files;
use runvault::gateway::REPLAY_KEY;
use runvault::storage::is_label_value;
use tempfile::TempDir;

use super::preset::{ChosenPreset, Preset};
use crate::cli::args::environment::variable;
use crate::cli::output::exit::CommandError;

/// The labels of a run with the name and the version of its program.
const PROGRAM: &str = "program";
const PROGRAM_VERSION: &str = "program-version";

/// The program as it is started.
pub(super) struct Launch {
    pub(super) program: OsString,
    pub(super) arguments: Vec<OsString>,
    pub(super) environment: BTreeMap<String, String>,
    pub(super) preset: Option<Preset>,
    /// The program and the arguments with which it prints its version.
    version: Option<(OsString, Vec<OsString>)>,
    /// The files of the preset, which are removed with it.
    _files: PresetFiles,
}

/// The files of a preset.
#[derive(Default)]
struct PresetFiles {
    directory: Option<TempDir>,
    /// Those that did not exist, with their contents.
    missing: Vec<(PathBuf, String)>,
}

impl Drop for PresetFiles {
    fn drop(&mut self) {
        for (path, content) in &self.missing {
            if fs::read_to_string(path).is_ok_and(|now| now == *content) {
                // What cannot be removed changes nothing.
                let _ = fs::remove_file(path);
            }
        }
    }
}

impl Launch {
    /// Returns a command line as a preset changes it, with the `names` of this place and the variables that point clients at
    /// the gateway. The files of the preset are written if `writes` says so.
    pub(super) fn new(
        command: &[OsString],
        chosen: Option<ChosenPreset>,
        mut names: BTreeMap<String, String>,
        mut variables: BTreeMap<String, String>,
        gateway: &str,
        writes: bool,
    ) -> Result<Self, CommandError> {
        let (program, arguments) = command
            .split_first()
            .map_or((OsString::new(), Vec::new()), |(first, rest)| (first.clone(), rest.to_vec()));
        let Some(ChosenPreset { preset, position }) = chosen else {
            return Ok(Self {
                program,
                arguments,
                environment: variables,
                preset: None,
                version: None,
                _files: PresetFiles::default(),
            });
        };
        names.insert("gateway".to_owned(), gateway.to_owned());
        names.extend(variables.clone());
        let wrong = |error: String| CommandError::Usage(format!("the preset {}: {error}", preset.name));
        let files = PresetFiles::new(&preset, &mut names, writes).map_err(wrong)?;
        let (before, after) = arguments.split_at(position.unwrap_or(0).min(arguments.len()));
        let own: Vec<String> = preset
            .arguments
            .iter()
            .filter(|_| position.is_some())
            .map(|text| expanded(text, &names))
            .collect::<Result<_, _>>()
            .map_err(wrong)?;
        let version = position.filter(|_| !preset.version.is_empty()).map(|_| {
            let arguments = before.iter().cloned().chain(preset.version.iter().map(OsString::from));
            (program.clone(), arguments.collect())
        });
        let arguments = before.iter().cloned().chain(own.into_iter().map(OsString::from));
        let arguments = arguments.chain(after.iter().cloned()).collect();
        for (name, text) in &preset.environment {
            variables.insert(name.clone(), expanded(text, &names).map_err(wrong)?);
        }
        Ok(Self { program, arguments, environment: variables, preset: Some(preset), version, _files: files })
    }

    /// Returns what starts the program.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).envs(&self.environment);
        command
    }

    /// Starts the program once more, beside the run, to read its version, with which `labeled` is called.
    pub(super) fn version(
        &self,
        labeled: impl FnOnce(BTreeMap<String, String>) + Send + 'static,
    ) -> Option<ProgramVersion> {
        let (program, arguments) = self.version.as_ref()?;
        ProgramVersion::ask(Command::new(program).args(arguments).envs(&self.environment), labeled).ok()
    }

    /// Returns how the program could find the gateway, and why it may have asked another server.
    pub(super) fn without_calls(&self) -> String {
        let urls = self.environment.iter().filter(|(_, value)| value.starts_with("http://127.0.0.1:"));
        let urls: Vec<String> = urls.map(|(name, url)| format!("{name}={url}")).collect();
        let why = self.preset.as_ref().and_then(|preset| preset.without_calls.as_ref());
        let why = why.map(|why| format!("; {why}")).unwrap_or_default();
        format!("no call arrived; the program had {}{why}", urls.join(", "))
    }

    /// Returns what is done, for people. The port of the gateway is known when it listens.
    pub(super) fn explanation(&self, redacted: &[String], directories: &[(String, String)]) -> String {
        let mut text = String::new();
        let mut line = |line: String| {
            // Writing to a text does not fail.
            let _ = writeln!(text, "{line}");
        };
        match &self.preset {
            Some(preset) => line(format!("preset: {} ({})", preset.name, preset.title)),
            None => line("preset: none".to_owned()),
        }
        let words = [&self.program].into_iter().chain(&self.arguments);
        let words: Vec<String> = words.map(|word| quoted(&word.to_string_lossy())).collect();
        line(format!("program: {}", words.join(" ")));
        line("environment:".to_owned());
        for (name, value) in &self.environment {
            line(format!("  {name}={}", quoted(value)));
        }
        if !directories.is_empty() {
            line("directories, by the names with which they are compared:".to_owned());
            for (name, path) in directories {
                line(format!("  {name} {path}"));
            }
        }
        if let Some(preset) = &self.preset {
            line("rules of the preset:".to_owned());
            preset.rules().for_each(|rule| line(format!("  {rule}")));
            let temporary = preset.files.iter().map(|file| ("temporary file", file));
            let missing = preset
                .missing_files
                .iter()
                .map(|file| ("file for the time of the run, if there is none:", file));
            for (what, (name, content)) in temporary.chain(missing) {
                line(format!("{what} {name}"));
                content.trim().lines().for_each(|content| line(format!("  {content}")));
            }
        }
        if !redacted.is_empty() {
            line(format!("redacted: the values of {}", redacted.join(", ")));
        }
        text
    }
}

/// Returns the labels with the name of the program, which preset and command line give.
pub(super) fn program_label(command: &[OsString], chosen: Option<&ChosenPreset>) -> Option<(String, String)> {
    let name = match chosen {
        Some(chosen) => chosen.preset.name.clone(),
        None => Path::new(command.first()?).file_stem().map(OsStr::to_string_lossy)?.into_owned(),
    };
    is_label_value(&name).then(|| (PROGRAM.to_owned(), name))
}

/// Returns the directories of this place by the names with which requests are compared, with those of a preset.
pub(super) fn directories(
    preset: Option<&Preset>,
    names: &BTreeMap<String, String>,
) -> Result<Vec<(String, String)>, CommandError> {
    let mut all: Vec<(String, String)> = Vec::new();
    let usual = [("<cwd>", "cwd"), ("<cwd>", "cwd-link"), ("<home>", "home"), ("<home>", "home-link")];
    let usual =
        usual.into_iter().filter_map(|(name, place)| Some((name.to_owned(), names.get(place)?.clone())));
    all.extend(usual);
    if let Some(preset) = preset {
        for (name, text) in &preset.directories {
            let wrong = |error: String| CommandError::Usage(format!("the preset {}: {error}", preset.name));
            all.push((name.clone(), expanded(text, names).map_err(wrong)?));
        }
    }
    Ok(all)
}

/// Returns the names and values of the variables that look like keys. A short value can be any word.
pub(super) fn secrets() -> Vec<(String, String)> {
    const SHORTEST: usize = 8;
    const ENDINGS: [&str; 3] = ["_API_KEY", "_TOKEN", "_SECRET_ACCESS_KEY"];
    let is_key = |name: &str| ENDINGS.iter().any(|ending| name.ends_with(ending));
    let all = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let mut secrets: Vec<(String, String)> =
        all.filter(|(name, value)| is_key(name) && value.len() >= SHORTEST && value != REPLAY_KEY).collect();
    secrets.sort_unstable();
    secrets
}

/// Adds rules for what is of this place: its directories and its secrets.
pub(super) fn add_rules(
    rules: &mut MatchingRules,
    directories: &[(String, String)],
    secrets: &[(String, String)],
) {
    for (name, path) in directories {
        rules.name_directory(name, path);
    }
    for (_, secret) in secrets {
        rules.redact_text(secret);
    }
}

/// Returns the texts that a preset can refer to: the current and the home directory, with links and without, and what programs
/// make of the name of the current directory.
pub(super) fn place() -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    let mut add =
        |name: &str, path: Option<String>| drop(path.map(|path| names.insert(name.to_owned(), path)));
    let text = |path: &Path| path.to_str().map(str::to_owned);
    let cwd = std::env::current_dir().ok();
    let cwd = cwd.as_deref().and_then(text);
    let home = etcetera::home_dir().ok();
    let real_home = home.as_deref().and_then(|home| home.canonicalize().ok());
    add("cwd-slug", cwd.as_deref().map(|cwd| slug(cwd, false)));
    add(
        "cwd-name",
        cwd.as_deref().and_then(|cwd| Path::new(cwd).file_name()?.to_str()).map(|name| slug(name, true)),
    );
    // Shells keep the links by which they came here.
    add(
        "cwd-link",
        variable("PWD").and_then(|path| path.into_string().ok()).filter(|path| Some(path) != cwd.as_ref()),
    );
    add("home-link", home.as_deref().filter(|home| real_home.as_deref() != Some(*home)).and_then(text));
    add("home", real_home.or(home).as_deref().and_then(text));
    add("cwd", cwd);
    names
}

/// Returns a text with hyphens in the place of what is neither a letter nor a digit; as the name of a project, in small
/// letters and with single hyphens.
fn slug(text: &str, as_name: bool) -> String {
    let hyphened =
        text.chars().map(|character| if character.is_ascii_alphanumeric() { character } else { '-' });
    let slug: String = hyphened.collect();
    if !as_name {
        return slug;
    }
    let lower = slug.to_ascii_lowercase();
    let words: Vec<&str> = lower.split('-').filter(|word| !word.is_empty()).collect();
    words.join("-")
}

/// Returns a text with what `${NAME}` stands for in it.
fn expanded(text: &str, names: &BTreeMap<String, String>) -> Result<String, String> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (name, after) = after.split_once('}').ok_or_else(|| format!("${{ is not closed in {text}"))?;
        expanded.push_str(before);
        let value = |name: &str| names.get(name).cloned().or_else(|| variable(name)?.into_string().ok());
        let value = name.split('|').find_map(value);
        expanded.push_str(&value.ok_or_else(|| format!("${{{name}}} stands for nothing"))?);
        rest = after;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

impl PresetFiles {
    /// Writes the files of a preset, and adds the paths of its temporary ones to the names.
    fn new(preset: &Preset, names: &mut BTreeMap<String, String>, writes: bool) -> Result<Self, String> {
        let failed = |error: io::Error| format!("its files cannot be written: {error}");
        let mut files = Self::default();
        if writes && !preset.files.is_empty() {
            files.directory = Some(tempfile::Builder::new().prefix("runvault-").tempdir().map_err(failed)?);
        }
        for (name, content) in &preset.files {
            let file =
                Path::new(name).file_name().ok_or_else(|| format!("{name} is not the name of a file"))?;
            let path =
                files.directory.as_ref().map_or_else(|| PathBuf::from(file), |all| all.path().join(file));
            let content = expanded(content, names)?;
            if writes {
                fs::write(&path, content).map_err(failed)?;
            }
            names.insert(format!("file:{name}"), path.to_string_lossy().into_owned());
        }
        for (path, content) in &preset.missing_files {
            let (path, content) = (PathBuf::from(expanded(path, names)?), expanded(content, names)?);
            if writes && !path.exists() {
                files::create_dir_all(path.parent().unwrap_or(Path::new(""))).map_err(failed)?;
                fs::write(&path, &content).map_err(failed)?;
                files.missing.push((path, content));
            }
        }
        Ok(files)
    }
}

/// Returns a word as a shell would read it.
fn quoted(word: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_./:=@%+,".contains(character);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A program that prints its version.
pub(super) struct ProgramVersion {
    child: Child,
    /// Disconnected when the version is known, or that there is none.
    known: Receiver<()>,
}

/// How long the version is waited for after the program has ended.
const LAST_WAIT: Duration = Duration::from_secs(10);

impl ProgramVersion {
    fn ask(
        command: &mut Command,
        labeled: impl FnOnce(BTreeMap<String, String>) + Send + 'static,
    ) -> io::Result<Self> {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let (sender, known) = mpsc::channel::<()>();
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        thread::Builder::new().spawn(move || {
            // Some programs print it as a message.
            let printed = stdout.map(io::read_to_string).and_then(Result::ok).unwrap_or_default();
            let noted = stderr.map(io::read_to_string).and_then(Result::ok).unwrap_or_default();
            if let Some(version) = version_in(&printed).or_else(|| version_in(&noted)) {
                labeled(BTreeMap::from([(PROGRAM_VERSION.to_owned(), version)]));
            }
            drop(sender);
        })?;
        Ok(Self { child, known })
    }

    /// Waits a little for the version, and ends the program.
    pub(super) fn end(mut self) {
        // Whether it is known or not, there is nothing else to do.
        let _ = self.known.recv_timeout(LAST_WAIT);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the first word that begins with a digit and has a dot.
fn version_in(printed: &str) -> Option<String> {
    let words = printed.split(|character: char| character.is_whitespace() || "(),:".contains(character));
    let version = |word: &str| word.trim_start_matches('v').to_owned();
    let mut versions = words.map(version);
    versions.find(|word| {
        word.starts_with(|first: char| first.is_ascii_digit()) && word.contains('.') && is_label_value(word)
    })
}

/// The variable that says that this process was started in a namespace of its own.
pub(super) const MARK: &str = "RUNVAULT_ISOLATED";

/// What starts a program in a namespace of its own, as the same user.
const NAMESPACE: [&str; 6] = ["--user", "--map-current-user", "--keep-caps", "--net", "--", "sh"];

/// Starts the loopback interface, and then a program.
const START: &str = r#"ip link set lo up && exec "$@""#;

/// Returns what runs this command line once more in a network namespace; `None` if only the loopback interface has routes,
/// as in such a namespace.
///
/// # Errors
/// Returns an error if there is no such namespace, or it has other routes.
pub(super) fn isolated() -> Result<Option<Command>, CommandError> {
    if has_only_loopback()? {
        return Ok(None);
    }
    if variable(MARK).is_some() {
        return Err(CommandError::CouldNotRun(
            "the network namespace has other routes than to itself".to_owned(),
        ));
    }
    let namespace = |program: OsString, arguments: Vec<OsString>| {
        let mut command = Command::new("unshare");
        command.args(NAMESPACE).args(["-c", START, "sh"]).arg(program).args(arguments).env(MARK, "1");
        command
    };
    let refused = |reason: &str| {
        CommandError::CouldNotRun(format!(
            "this system permits no network namespace with a loopback interface, which the programs unshare and ip make: {reason}"
        ))
    };
    let tried = namespace("true".into(), Vec::new()).output().map_err(|error| refused(&error.to_string()))?;
    if !tried.status.success() {
        return Err(refused(String::from_utf8_lossy(&tried.stderr).trim()));
    }
    let own = std::env::current_exe().map_err(|error| refused(&error.to_string()))?;
    Ok(Some(namespace(own.into_os_string(), std::env::args_os().skip(1).collect())))
}

/// Returns whether no route leads to another interface than the loopback interface.
fn has_only_loopback() -> Result<bool, CommandError> {
    // Without the protocol, there is no file.
    let table = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let (four, six) = (table("/proc/net/route"), table("/proc/net/ipv6_route"));
    if four.is_empty() {
        let message = "a network namespace needs Linux".to_owned();
        return Err(CommandError::CouldNotRun(message));
    }
    let four = four.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    let six = six.lines().filter_map(|line| line.split_whitespace().last());
    Ok(four.chain(six).all(|interface| interface == "lo"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_expanded() {
        let names = BTreeMap::from([("gateway".to_owned(), "http://g".to_owned())]);
        assert_eq!(expanded("a=${gateway}/x ${gateway}", &names).unwrap(), "a=http://g/x http://g");
        assert!(expanded("${other}", &names).unwrap_err().contains("${other} stands for nothing"));
        assert!(expanded("${gateway", &names).unwrap_err().contains("is not closed"));
    }

    #[test]
    fn slugs_are_those_of_the_programs() {
        assert_eq!(slug("/work/My.App_1", false), "-work-My-App-1");
        assert_eq!(slug("My.App__1", true), "my-app-1");
    }

    #[test]
    fn versions_are_found_in_what_programs_print() {
        for (printed, expected) in [
            ("2.1.332 (Claude Code)\n", Some("2.1.332")),
            ("codex-cli 0.171.0\n", Some("0.171.0")),
            ("aider v0.86.1", Some("0.86.1")),
            ("usage: prog", None),
        ] {
            assert_eq!(version_in(printed).as_deref(), expected);
        }
    }

    #[test]
    fn words_are_quoted_for_shells() {
        assert_eq!(["a=b", "", "a b", "it's"].map(quoted), ["a=b", "''", "'a b'", r"'it'\''s'"]);
    }
}
