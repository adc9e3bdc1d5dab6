//! `runvault exec`

mod program;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::Args as ClapArgs;
use runvault::display::counted;
use runvault::gateway::{
    Gateway, GatewayEvent, GatewayMode, GatewayOptions, PROVIDERS, Provider, REPLAY_KEY, Upstream,
    base_url_variables, key_variables,
};

use crate::cli::args::gateway::GatewayArgs;
use crate::cli::args::variable::variable;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::escape::escaped;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::stdout;
use crate::cli::output::stop::Stop;

/// Run a program and record or replay its model calls
///
/// Starts a gateway, runs the program with the variables that point clients at it, and finishes the run. Prints the
/// hashes of the run pack and the session, and exits with the status of the program.
///
/// If one of these variables is already set, its calls are forwarded to that server instead of the provider's, unless
/// --upstream names another.
///
/// SIGTERM is passed on to the program, and the run is finished after the program has ended.
///
/// With --mode replay, variables for API keys that are not set get a placeholder that no server accepts.
#[derive(ClapArgs)]
pub(crate) struct Args {
    #[command(flatten)]
    gateway: GatewayArgs,

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
        let counts = (self.gateway.mode() == GatewayMode::Auto).then(|| CallCounts::of_events(&mut options));
        let gateway = Gateway::start(vault, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), options)?;
        let mut command = Command::new(program);
        command.args(arguments).envs(variables(gateway.address(), &servers));
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
        let stopped = gateway.stop();
        if let Some(counts) = counts {
            counts.print();
        }
        stopped?;
        Ok(Status::OfProgram(code(status)))
    }
}

/// The number of calls so far.
#[derive(Default)]
struct CallCounts {
    replayed: AtomicU64,
    recorded: AtomicU64,
}

impl CallCounts {
    /// Counts the calls that a gateway with these options reports.
    fn of_events(options: &mut GatewayOptions) -> Arc<Self> {
        let counts = Arc::new(Self::default());
        let (for_gateway, report) = (Arc::clone(&counts), Arc::clone(&options.report));
        options.report = Arc::new(move |event| {
            match event {
                GatewayEvent::Replayed { .. } => for_gateway.replayed.fetch_add(1, Ordering::Relaxed),
                GatewayEvent::Recorded { .. } => for_gateway.recorded.fetch_add(1, Ordering::Relaxed),
                _ => 0,
            };
            report(event);
        });
        counts
    }

    /// Prints the numbers if there were calls that only this tells of: what was recorded is reported anyway.
    fn print(&self) {
        let (replayed, recorded) =
            (self.replayed.load(Ordering::Relaxed), self.recorded.load(Ordering::Relaxed));
        if replayed > 0 {
            let (replayed, recorded) = (counted(replayed, "call"), counted(recorded, "call"));
            stdout::note(&format!("replayed {replayed}, recorded {recorded}"));
        }
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
        servers.push(InterceptedServer {
            provider,
            upstream,
            has_version: url.trim_end_matches('/').ends_with(end),
        });
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

/// Returns the exit code of a program; for one that a signal ended, the one that shells report.
fn code(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return u8::try_from(128 + signal).unwrap_or(u8::MAX);
    }
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}
