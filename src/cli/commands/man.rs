//! `runvault man`

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use runvault::files::{self, FileWriteError, Permissions, WriteOptions};

use crate::cli::args::completing::CandidateSource;
use crate::cli::args::help;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::stdout::{self, counted};

/// The command that clap adds to each one that has commands. It has no manual page.
const HELP: &str = "help";

/// Print the manual page of runvault or of one of its commands
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// A command, such as find, or config set
    #[arg(value_name = "COMMAND", add = CandidateSource::Commands.completer())]
    command: Vec<String>,

    /// Write the pages of all commands to this directory
    #[arg(long, value_name = "DIR", conflicts_with = "command", value_hint = clap::ValueHint::DirPath)]
    all: Option<PathBuf>,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let mut root = help::command();
        root.build();
        if let Some(directory) = &self.all {
            return write_all(&root, directory, vault.path().ok().as_deref());
        }
        let mut command = &root;
        for name in &self.command {
            if name == HELP {
                return Err(CommandError::Usage(format!(
                    "{HELP} has no manual page; \"runvault help\" prints it"
                )));
            }
            let inner = command.find_subcommand(name);
            command = inner.ok_or_else(|| {
                CommandError::Usage(format!(
                    "there is no command {}; \"runvault help\" lists them",
                    self.command.join(" ")
                ))
            })?;
        }
        stdout::raw().write_all(&page(command, &self.command.join(" "))?)?;
        Ok(Status::Done)
    }
}

fn write_all(root: &Command, directory: &Path, vault: Option<&Path>) -> Result<Status, CommandError> {
    files::create_dir_all(directory)
        .map_err(|source| FileWriteError::Io { path: directory.to_owned(), source })?;
    // Manual pages are readable by everyone.
    let options = WriteOptions { replace: true, permissions: Permissions::Umask, vault };
    let mut waiting = vec![(root, String::new())];
    let mut count = 0;
    while let Some((command, name)) = waiting.pop() {
        let path = directory.join(format!("runvault {name}").trim_end().replace(' ', "-") + ".1");
        files::write(&path, &options, &page(command, &name)?)?;
        count += 1;
        let inner = command.get_subcommands().filter(|inner| inner.get_name() != HELP);
        waiting.extend(inner.map(|inner| (inner, format!("{name} {}", inner.get_name()).trim().to_owned())));
    }
    let directory = directory.to_string_lossy();
    stdout::note(&format!(
        "wrote {} into {}",
        counted(count, "page"),
        runvault::display::escaped(&directory)
    ));
    Ok(Status::Done)
}

/// Returns the manual page of a command. `path` contains the names of its parent commands and its own.
fn page(command: &Command, path: &str) -> io::Result<Vec<u8>> {
    let name = format!("runvault {path}").trim_end().replace(' ', "-");
    let has_commands = command.get_subcommands().next().is_some();
    // Descriptions of options that the short help hides are left out otherwise.
    let mut command = command.clone().name(name).mut_args(|argument| argument.hide_short_help(false));
    if command.find_subcommand(HELP).is_some() {
        command = command.mut_subcommand(HELP, |help| help.hide(true));
    }
    let man = Man::new(command).manual("runvault");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if has_commands {
        man.render_subcommands_section(&mut page)?;
    }
    if path.is_empty() {
        man.render_extra_section(&mut page)?;
    }
    examples(path).to_writer(&mut page)?;
    man.render_version_section(&mut page)?;
    // The help texts are also doc comments, which mark code with backquotes.
    page.retain(|byte| *byte != b'`');
    Ok(page)
}

fn examples(path: &str) -> Roff {
    let mut roff = Roff::default();
    let examples = help::examples_of(path);
    if !examples.is_empty() {
        roff.control("SH", ["EXAMPLES"]);
    }
    for (what, line) in examples {
        roff.control("TP", []);
        roff.text([roman(*what)]);
        roff.control("nf", []);
        roff.text([roman(*line)]);
        roff.control("fi", []);
    }
    roff
}
