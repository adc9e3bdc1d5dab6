//! Shell completion.
//!
//! The script that `runvault completions` prints calls runvault, with [`VARIABLE`] set and the words of the command
//! line. It then prints nothing on standard error, and creates or changes nothing.

mod candidates;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::Command;
use clap_complete::engine;
use clap_complete::env::{self, EnvCompleter, Shells};

use super::environment::variable;
use crate::cli::args::{help, settings};
use crate::cli::output::stdout;
use candidates::asked_words;

pub(crate) use candidates::CandidateSource;

/// The variable that contains the name of the calling shell.
const VARIABLE: &str = "RUNVAULT_COMPLETE";

/// Returns the completer of a supported shell.
pub(crate) fn shell(name: &str) -> Option<&'static dyn EnvCompleter> {
    const BUILTIN_SHELLS: Shells<'static> = Shells::builtins();
    if name == Bash.name() {
        return Some(&Bash);
    }
    BUILTIN_SHELLS.0.iter().copied().find(|shell| shell.is(name))
}

/// Writes the registration script of a shell.
pub(crate) fn write_registration(shell: &dyn EnvCompleter, out: &mut dyn Write) -> std::io::Result<()> {
    shell.write_registration(VARIABLE, "runvault", "runvault", &program().to_string_lossy(), out)
}

/// Returns the name by which this program was called. A relative path is made absolute.
fn program() -> OsString {
    let called = std::env::args_os().next().unwrap_or_else(|| "runvault".into());
    if Path::new(&called).components().count() < 2 {
        return called;
    }
    std::path::absolute(&called).map_or(called, OsString::from)
}

/// Answers a completion request, if there is one, and returns the exit code.
pub(crate) fn answer() -> Option<ExitCode> {
    let name = variable(VARIABLE)?;
    let name = Path::new(&name).file_stem()?.to_string_lossy().into_owned();
    let answered = shell(&name).is_some_and(|shell| write_answer(shell).is_ok());
    // Without an answer, the shell falls back to its default completion.
    Some(if answered { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn write_answer(shell: &dyn EnvCompleter) -> std::io::Result<()> {
    settings::be_silent();
    let mut answer = Vec::new();
    let directory = std::env::current_dir().ok();
    shell.write_complete(&mut help::command(), asked_words(), directory.as_deref(), &mut answer)?;
    stdout::raw().write_all(&answer)
}

/// The characters at which words are split.
const BREAKS: [char; 3] = [':', '=', '@'];

struct Bash;

impl EnvCompleter for Bash {
    fn name(&self) -> &'static str {
        "bash"
    }

    fn is(&self, name: &str) -> bool {
        name == self.name()
    }

    fn write_registration(
        &self,
        variable: &str,
        name: &str,
        program: &str,
        completer: &str,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        env::Bash.write_registration(variable, name, program, completer, out)
    }

    fn write_complete(
        &self,
        command: &mut Command,
        words: Vec<OsString>,
        directory: Option<&Path>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let index = std::env::var("_CLAP_COMPLETE_INDEX").ok().and_then(|index| index.parse().ok());
        let separator = std::env::var("_CLAP_IFS").unwrap_or_else(|_| "\n".to_owned());
        let CompletionWords { words, index, kept } = joined(words, index.unwrap_or_default());
        let candidates = engine::complete(command, words, index, directory)?;
        let values = candidates.iter().map(|candidate| candidate.get_value().to_string_lossy());
        // Bash replaces only the part after the last word break.
        let rest =
            values.map(|value| value.strip_prefix(kept.as_str()).map(str::to_owned).unwrap_or(value.into()));
        out.write_all(rest.collect::<Vec<String>>().join(&separator).as_bytes())
    }
}

/// Words as typed.
struct CompletionWords {
    words: Vec<OsString>,
    /// The index of the word to complete.
    index: usize,
    /// The part of the word that Bash does not replace.
    kept: String,
}

/// Joins the words that Bash split, up to the word at `index`. Break characters typed as separate words are also
/// joined, but no runvault argument consists of them.
fn joined(words: Vec<OsString>, index: usize) -> CompletionWords {
    let mut joined = CompletionWords { words: Vec::new(), index: 0, kept: String::new() };
    let mut glue = false;
    for (at, word) in words.into_iter().enumerate().take_while(|(at, _)| *at <= index) {
        let text = word.to_str().unwrap_or_default();
        let is_break = !text.is_empty() && text.chars().all(|character| BREAKS.contains(&character));
        let begins = text.starts_with('@') && !glue || joined.words.len() < 2;
        if at == index && glue {
            joined.retain_prefix(text.starts_with('@'));
        }
        match joined.words.last_mut() {
            Some(last) if glue || (is_break && !begins) => last.push(&word),
            _ => joined.words.push(word),
        }
        glue = is_break;
    }
    joined.index = joined.words.len().saturating_sub(1);
    joined
}

impl CompletionWords {
    /// Keeps the text before the word to complete. Only @ is both before that word and part of it.
    fn retain_prefix(&mut self, again: bool) {
        let Some(last) = self.words.last_mut() else { return };
        let text = last.to_str().unwrap_or_default();
        let kept = if again { text.strip_suffix('@').unwrap_or(text) } else { text };
        self.kept = kept.to_owned();
        *last = self.kept.clone().into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(words: &[&str], index: usize) -> (Vec<String>, usize, String) {
        let CompletionWords { words, index, kept } =
            joined(words.iter().map(OsString::from).collect(), index);
        (words.into_iter().map(|word| word.into_string().unwrap()).collect(), index, kept)
    }

    proptest::proptest! {
        #[test]
        fn any_words_can_be_put_together(words: Vec<String>, index in 0_usize..20) {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let (joined, at, kept) = new(&words, index);
            proptest::prop_assert!(joined.is_empty() || at + 1 == joined.len());
            proptest::prop_assert!(joined.last().is_none_or(|last| last.starts_with(&kept)));
        }
    }

    #[test]
    fn words_are_put_together_again() {
        let whole = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(new(&["rv", "get", "4d"], 2), (whole(&["rv", "get", "4d"]), 2, String::new()));
        assert_eq!(new(&["rv", "get", "@", "@ba"], 3), (whole(&["rv", "get", "@ba"]), 2, String::new()));
        assert_eq!(new(&["rv", "get", "@"], 2), (whole(&["rv", "get", "@"]), 2, String::new()));
        assert_eq!(new(&["rv", "get", "@ba"], 2), (whole(&["rv", "get", "@ba"]), 2, String::new()));
        let golden = (whole(&["rv", "diff", "--expect=@ba"]), 2, "--expect=".to_owned());
        assert_eq!(new(&["rv", "diff", "--expect", "=@", "@ba"], 4), golden);
        let hash = (whole(&["rv", "get", "sha256:4d"]), 2, "sha256:".to_owned());
        assert_eq!(new(&["rv", "get", "sha256", ":", "4d"], 4), hash);
        let option = (whole(&["rv", "find", "--model=m"]), 2, "--model=".to_owned());
        assert_eq!(new(&["rv", "find", "--model", "=", "m", "later"], 4), option);
        let several = (whole(&["rv", "--vault=a", "get", "4"]), 3, String::new());
        assert_eq!(new(&["rv", "--vault", "=", "a", "get", "4"], 5), several);
        assert_eq!(new(&["rv"], 0), (whole(&["rv"]), 0, String::new()));
        assert_eq!(new(&[], 0), (whole(&[]), 0, String::new()));
    }
}
