//! A network namespace of Linux in which only the loopback interface can be reached.

use std::ffi::OsString;
use std::fs;
use std::process::Command;

use crate::cli::args::environment::variable;
use crate::cli::output::exit::CommandError;

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
