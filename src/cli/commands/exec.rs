//! `runvault exec`

mod program;
mod summary;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, ExitStatus};

use clap::Args as ClapArgs;
use runvault::gateway::{
    Gateway, GatewayMode, PROVIDERS, Provider, REPLAY_KEY, Upstream, base_url_variables, key_variables,
};

use runvault::display::escaped;
use summary::{CallCounts, CallSummary, FailureArgs};

use crate::cli::args::gateway::GatewayArgs;
use crate::cli::args::help;
use crate::cli::args::variable::variable;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::stop::Stop;

/// Run a program and record or replay its model calls
///
/// Starts a gateway, runs the program with the variables that point clients at it, and finishes the run. Prints the
/// hashes of the run pack and the session and how many calls were recorded, replayed and missed, and exits with the
/// status of the program.
///
/// If one of these variables is already set, its calls are forwarded to that server instead of the provider's, unless
/// --upstream names another.
///
/// SIGTERM is passed on to the program, and the run is finished after the program has ended.
///
/// With --mode replay, variables for API keys that are not set get a placeholder that no server accepts.
#[derive(ClapArgs)]
#[command(mut_args(help::rarely(&["ci"])))]
pub(crate) struct Args {
    #[command(flatten)]
    gateway: GatewayArgs,

    #[command(flatten)]
    failures: FailureArgs,

    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

impl Args {
    pub(crate) fn run(&self, args: &VaultArgs) -> Result<Status, CommandError> {
        let Some((program, arguments)) = self.command.split_first() else {
            return Err(CommandError::Usage("no program is given".to_owned()));
        };
        let name = program.to_string_lossy();
        if name.starts_with('-') {
            return Err(CommandError::Usage(format!(
                "unexpected argument {}; the program follows the options and \"--\"",
                escaped(&name)
            )));
        }
        let vault = self.gateway.open(args)?;
        let mut options = self.gateway.options(args, &vault)?;
        let servers = if self.gateway.mode() == GatewayMode::Replay {
            Vec::new()
        } else {
            servers(&options.upstreams)?
        };
        options.upstreams.extend(servers.iter().map(|server| server.upstream.clone()));
        let counts = CallCounts::of_events(&mut options);
        let gateway = Gateway::start(vault, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), options)?;
        let variables = variables(gateway.address(), &servers);
        let mut command = Command::new(program);
        command.args(arguments).envs(&variables).envs(not_through_proxies());
        command.env("RUNVAULT_GATEWAY", format!("http://{}", gateway.address()));
        if self.gateway.mode() == GatewayMode::Replay {
            command.envs(
                key_variables().filter(|key| std::env::var_os(key).is_none()).map(|key| (key, REPLAY_KEY)),
            );
        }
        let status = program::run(&mut command).map_err(|error| {
            let program = program.to_string_lossy();
            CommandError::CouldNotRun(format!("cannot run {}: {error}", escaped(&program)))
        })?;
        // What was recorded is stored, unless a second signal asks not to wait for that.
        let _stop = Stop::on_signals()?;
        let replayed = gateway.replayed_in_all_runs();
        let stopped = gateway.stop();
        let summary = CallSummary { counts, replayed: replayed? };
        let variables: Vec<String> = variables.iter().map(|(name, url)| format!("{name}={url}")).collect();
        summary.print(&variables);
        stopped?;
        let code = code(status);
        Ok(if summary.fails(&self.failures) && code == 0 { Status::No } else { Status::OfProgram(code) })
    }
}

/// A server that the program would ask, for which the gateway takes its place.
struct InterceptedServer {
    provider: &'static Provider,
    upstream: Upstream,
    /// Whether its URL ends with what the URLs of the API have at their end, such as `/v1`.
    has_version: bool,
}

/// Returns the servers that variables name, of the providers that are not among those that are `given`.
fn servers(given: &[Upstream]) -> Result<Vec<InterceptedServer>, CommandError> {
    let mut servers = Vec::new();
    for provider in PROVIDERS.iter().filter(|one| given.iter().all(|given| given.name() != one.name)) {
        let mut named =
            provider.base_urls.iter().filter_map(|(name, end)| Some((name, end, variable(name)?)));
        let Some((name, end, url)) = named.next() else { continue };
        let url = url.to_string_lossy();
        let upstream = Upstream::parse(&format!("{}={url}", provider.name))
            .map_err(|error| CommandError::Usage(format!("{name}: {error}")))?;
        let has_version = url.trim_end_matches('/').ends_with(end);
        // Requests without a version are those that its clients would make.
        let upstream = if has_version { upstream } else { upstream.with_whole_paths() };
        servers.push(InterceptedServer { provider, upstream, has_version });
    }
    Ok(servers)
}

/// Returns the variables that point clients at the gateway. Where the URL of a server had no version, that of the
/// gateway has none, so that the paths of requests stay as they would be.
fn variables(address: SocketAddr, servers: &[InterceptedServer]) -> BTreeMap<&'static str, String> {
    let mut variables: BTreeMap<_, _> = base_url_variables(address).collect();
    for InterceptedServer { provider, .. } in servers.iter().filter(|server| !server.has_version) {
        let names = provider.base_urls.iter().map(|(name, _)| *name);
        variables.extend(names.map(|name| (name, format!("http://{address}/{}", provider.name))));
    }
    variables
}

/// Hosts that programs ask without a proxy.
const LOOPBACK: [&str; 3] = ["127.0.0.1", "localhost", "::1"];

/// Returns the variables with which a program asks this machine without a proxy, in addition to the hosts that they have.
fn not_through_proxies() -> [(&'static str, String); 2] {
    let hosts = |name: &str| variable(name).map(|hosts| hosts.to_string_lossy().into_owned());
    // Programs read one or the other.
    let given = hosts("no_proxy").or_else(|| hosts("NO_PROXY")).unwrap_or_default();
    ["NO_PROXY", "no_proxy"].map(|name| {
        let own = hosts(name).unwrap_or_else(|| given.clone());
        let mut all: Vec<&str> = own.split(',').map(str::trim).filter(|host| !host.is_empty()).collect();
        all.extend(LOOPBACK.iter().filter(|host| !own.split(',').any(|other| other.trim() == **host)));
        (name, all.join(","))
    })
}

/// Returns the exit code of a program; for one that a signal ended, the one that shells report.
fn code(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return u8::try_from(128 + signal).unwrap_or(u8::MAX);
    }
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}
