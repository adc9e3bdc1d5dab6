//! `runvault config`

use std::io::{self, Write};
use std::path::Path;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args as ClapArgs, Subcommand};
use runvault::Vault;
use runvault::display::escaped;
use serde::Serialize;

use crate::cli::args::completing::CandidateSource;
use crate::cli::args::settings::{self, AnySetting, SettingInfo, SettingOrigin, SettingType};
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::stdout::{self, FAINT, plain};
use crate::cli::output::table::{TextCell, TextColumn, TextTable};
use crate::cli::output::{json, terminal};

/// Show or change settings
///
/// A setting is given by a command-line option, a variable such as `RUNVAULT_VAULT`, or the configuration file.
/// Options take precedence over variables, variables over the file, and the file over defaults. The file is
/// runvault/config.toml in the user's configuration directory, or what `RUNVAULT_CONFIG` names.
#[derive(ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: ConfigAction,
}

#[derive(Subcommand)]
enum ConfigAction {
    /// Print the value of a setting
    ///
    /// The exit status is 1 if it has no value.
    Get {
        /// The setting
        #[arg(value_name = "NAME", value_parser = names())]
        name: String,
    },
    /// Write the value of a setting into the configuration file
    ///
    /// The file is created if necessary. Comments and order are preserved.
    Set {
        /// The setting
        #[arg(value_name = "NAME", value_parser = names())]
        name: String,
        /// The value; "runvault config list" shows the current one
        #[arg(value_name = "VALUE", allow_hyphen_values = true, value_hint = clap::ValueHint::AnyPath, add = CandidateSource::SettingValues.completer())]
        value: String,
    },
    /// Remove a setting from the configuration file
    ///
    /// The exit status is 1 if the file does not contain it.
    Unset {
        /// The setting
        #[arg(value_name = "NAME", value_parser = names())]
        name: String,
    },
    /// List all settings with their values and sources
    List {
        /// Print one line of JSON for each setting
        #[arg(long)]
        json: bool,
    },
    /// Print the path of the configuration file
    Path,
}

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(settings::ALL.map(|known| {
        let entry = known.entry();
        PossibleValue::new(entry.name).help(plain(entry.about))
    }))
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        // The path of the vault may be the setting to correct, so an error is ignored.
        let vault = vault.path().ok();
        let vault = vault.as_deref();
        match &self.action {
            ConfigAction::Get { name } => get(find_setting(name)?.entry()),
            ConfigAction::Set { name, value } => set(find_setting(name)?, value, vault),
            ConfigAction::Unset { name } => unset(name, vault),
            ConfigAction::List { json } => list(*json),
            ConfigAction::Path => print(&settings::path()?.to_string_lossy()),
        }
    }
}

fn find_setting(name: &str) -> Result<&'static dyn AnySetting, CommandError> {
    // The argument parser accepts no other names.
    settings::named(name).ok_or_else(|| CommandError::Usage(format!("there is no setting {name}")))
}

fn print(line: &str) -> Result<Status, CommandError> {
    let mut out = stdout::text();
    if terminal::is_terminal() {
        writeln!(out, "{}", escaped(line))?;
    } else {
        writeln!(out, "{line}")?;
    }
    Ok(Status::Done)
}

fn get(entry: &SettingInfo) -> Result<Status, CommandError> {
    match SettingView::new(entry)?.value {
        Some(value) => print(&value),
        None => Err(CommandError::No(format!("{} is not set: {}", entry.name, plain(entry.default_text())))),
    }
}

fn set(known: &dyn AnySetting, value: &str, vault: Option<&Path>) -> Result<Status, CommandError> {
    let entry = known.entry();
    known.check(value).map_err(|why| CommandError::Usage(format!("{}: {why}", entry.name)))?;
    let value = match entry.values {
        SettingType::Paths => {
            let list = settings::path_list(value, |path| Ok(absolute(path)?.into()))?;
            list.to_string_lossy().into_owned()
        }
        SettingType::VaultAddress => {
            let address = settings::vault_address(value, |path| Ok(absolute(path)?.into()))?;
            address.to_string_lossy().into_owned()
        }
        SettingType::Text | SettingType::List => value.to_owned(),
    };
    let path = settings::path()?;
    settings::edit(&path, entry.name, Some(&value), vault)?;
    let mut written = value;
    hide_password(&mut written);
    let written = if written.is_empty() { "nothing".into() } else { escaped(&written).to_string() };
    stdout::note(&format!("{} is set to {written} in {}", entry.name, shown(&path)));
    if entry.variable_value().is_some() {
        stdout::note(&format!("note: {} is also set and takes precedence", entry.variable()));
    }
    Ok(Status::Done)
}

/// Converts a path so that it is valid in any directory. `~/` is expanded as in the configuration file, because shells
/// do not expand it when quoted.
fn absolute(value: &str) -> Result<String, CommandError> {
    let failed = |why: String| CommandError::Usage(format!("{}: {why}", escaped(value)));
    let path = std::path::absolute(settings::at_home(value).unwrap_or_else(|| value.into()))
        .map_err(|error| failed(error.to_string()))?;
    path.into_os_string().into_string().map_err(|_| failed("the directory's name is not UTF-8".to_owned()))
}

fn unset(name: &str, vault: Option<&Path>) -> Result<Status, CommandError> {
    let path = settings::path()?;
    if settings::edit(&path, name, None, vault)? {
        stdout::note(&format!("removed {name} from {}", shown(&path)));
        return Ok(Status::Done);
    }
    stdout::note(&format!("{name} is not set in {}", shown(&path)));
    Ok(Status::No)
}

fn shown(path: &Path) -> String {
    escaped(&path.to_string_lossy()).to_string()
}

/// A view of a setting.
#[derive(Serialize)]
struct SettingView {
    name: &'static str,
    value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value_bytes: Option<String>,
    origin: &'static str,
    variable: String,
    argument: Option<String>,
    about: String,
    /// The file that sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_bytes: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
}

impl SettingView {
    fn new(entry: &SettingInfo) -> Result<Self, CommandError> {
        let view = Self {
            name: entry.name,
            value: entry.default(),
            value_bytes: None,
            origin: "default",
            variable: entry.variable(),
            argument: entry.argument(),
            about: plain(entry.about),
            file: None,
            file_bytes: None,
            line: None,
        };
        let Some(value) = entry.value()? else { return Ok(view) };
        let text = &value.text;
        let view = Self {
            value: Some(text.to_string_lossy().into_owned()),
            value_bytes: json::bytes_of(text),
            ..view
        };
        Ok(match value.origin {
            SettingOrigin::Variable(_) => Self { origin: "variable", ..view },
            SettingOrigin::File(place) => {
                let file = place.path.to_string_lossy().into_owned();
                let file_bytes = json::bytes_of(place.path.as_os_str());
                Self { origin: "file", file: Some(file), file_bytes, line: Some(place.line), ..view }
            }
        })
    }

    fn origin_text(&self) -> String {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => format!("{} line {line}", shown(Path::new(file))),
            _ if self.origin == "variable" => self.variable.clone(),
            _ => "default".to_owned(),
        }
    }
}

fn list(as_json: bool) -> Result<Status, CommandError> {
    let mut views =
        settings::ALL.iter().map(|known| SettingView::new(known.entry())).collect::<Result<Vec<_>, _>>()?;
    for value in views.iter_mut().filter_map(|view| view.value.as_mut()) {
        hide_password(value);
    }
    let mut out = io::BufWriter::new(stdout::text());
    if as_json {
        views.iter().try_for_each(|view| json::line(&mut out, view))?;
    } else {
        write_table(&mut out, &views)?;
    }
    out.flush()?;
    drop(out);
    // The listing reports all invalid settings, not only the first.
    let mut status = Status::Done;
    for (known, view) in settings::ALL.iter().zip(&views) {
        if let Some(Err(why)) = view.value.as_ref().map(|value| known.check(value)) {
            stdout::error(&format!("{}: {}: {why}", view.origin_text(), view.name));
            status = Status::No;
        }
    }
    Ok(status)
}

/// Replaces the URL of a vault by one without a password.
fn hide_password(value: &mut String) {
    let path = Path::new(&**value);
    if Vault::file_of(path).is_none() {
        *value = Vault::shown_address(path).to_string_lossy().into_owned();
    }
}

fn write_table(out: &mut dyn Write, views: &[SettingView]) -> io::Result<()> {
    let mut table = TextTable::new(vec![
        TextColumn::new("name").whole(),
        TextColumn::new("value"),
        TextColumn::new("origin"),
    ]);
    for (known, view) in settings::ALL.iter().zip(views) {
        let none = || format!("({})", plain(known.entry().default_text()));
        table.push(vec![
            TextCell::plain(view.name),
            TextCell::plain(&view.value.as_ref().map_or_else(none, |value| value.replace('\n', ", "))),
            TextCell::new(&view.origin_text(), FAINT),
        ]);
    }
    table.write(out)
}
