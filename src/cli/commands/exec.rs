//! `runvault exec`

mod launch;
mod preset;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::{Args as ClapArgs, ValueHint};
use runvault::display::{counted, escaped};
use runvault::gateway::{
    Gateway, GatewayEvent, GatewayMode, GatewayOptions, InvalidRule, PROVIDERS, Provider, REPLAY_KEY,
    ReplayedCalls, UnusedRecording, Upstream, base_url_variables, key_variables,
};
use signal_hook::consts::SIGINT;
use signal_hook::flag;

use self::launch::{Launch, ProgramVersion};
use self::preset::ChosenPreset;
use crate::cli::args::environment::variable;
use crate::cli::args::gateway::GatewayArgs;
use crate::cli::args::help;
use crate::cli::args::mcp_servers::{self, ProxyConfig};
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::stdout;
use crate::cli::output::terminal::Stop;

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
///
/// Paths of the current and of the home directory are compared by name, so that what was recorded elsewhere is replayed
/// here, with the paths of this place.
///
/// Agents need more than variables: a preset has the arguments with which a program asks the gateway, and the rules by
/// which its requests are the same on another day. aider, claude, cline, codex, gemini, goose, opencode, pi and qwen have
/// one. Files in the directory presets beside the configuration add others.
///
/// The values of variables whose names end with `_API_KEY`, `_TOKEN` or `_SECRET_ACCESS_KEY` are not stored, if they have at
/// least 8 bytes.
#[derive(ClapArgs)]
#[command(mut_args(help::rarely(&["ci"])))]
pub(crate) struct Args {
    #[command(flatten)]
    gateway: GatewayArgs,

    #[command(flatten)]
    failures: FailureArgs,

    /// Record and replay the servers of the Model Context Protocol in this file
    ///
    /// The file has the object mcpServers (or servers) of clients. A copy in which "runvault mcp-proxy" takes the place
    /// of each server is named by the variable `RUNVAULT_MCP_CONFIG`, and in the arguments of the program that name the
    /// file.
    #[arg(long, value_name = "CONFIG", value_hint = ValueHint::FilePath, hide_short_help = true)]
    mcp: Option<PathBuf>,

    /// Use the preset of this name, or none; without this, that of the program
    ///
    /// With none, directories are not compared by name either.
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    preset: Option<String>,

    /// Print what would be done, and do nothing
    #[arg(long)]
    explain: bool,

    /// Run the program where no network is, in a namespace of Linux
    ///
    /// Only with --mode replay, and a vault that is a file. It proves that a replay needed no network.
    #[arg(long, hide_short_help = true)]
    isolated: bool,

    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

impl Args {
    pub(crate) fn run(&self, args: &VaultArgs) -> Result<Status, CommandError> {
        let Some(program) = self.command.first() else {
            return Err(CommandError::Usage("no program is given".to_owned()));
        };
        let name = program.to_string_lossy();
        if name.starts_with('-') {
            return Err(CommandError::Usage(format!(
                "unexpected argument {}; the program follows the options and \"--\"",
                escaped(&name)
            )));
        }
        if self.isolated && !self.explain {
            if self.gateway.mode() != GatewayMode::Replay {
                return Err(CommandError::Usage(
                    "--isolated is for --mode replay: others ask servers".to_owned(),
                ));
            }
            if let Some(mut command) = launch::isolated()? {
                let status = run(&mut command)
                    .map_err(|error| CommandError::CouldNotRun(format!("cannot run unshare: {error}")))?;
                return Ok(Status::OfProgram(code(status)));
            }
        }
        let chosen = preset::choose(self.preset.as_deref(), &self.command)?;
        let (secrets, here) = (launch::secrets(), launch::place());
        let directories = match self.preset.as_deref() {
            Some(preset::NONE) => Vec::new(),
            _ => launch::directories(chosen.as_ref().map(|chosen| &chosen.preset), &here)?,
        };
        if self.explain {
            let servers = self.servers(&self.gateway.upstreams()?)?;
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let launch = self.launch(chosen, here, address, &servers, None)?;
            let names: Vec<String> = secrets.into_iter().map(|(name, _)| name).collect();
            let explanation = launch.explanation(&names, &directories);
            // The port is known when the gateway listens.
            let explanation = explanation.replace("127.0.0.1:0", "127.0.0.1:PORT");
            stdout::line(&mut stdout::text(), explanation.trim_end())?;
            return Ok(Status::Done);
        }
        let vault = self.gateway.open(args)?;
        let mut options = self.gateway.options(args, &vault)?;
        // Recordings with other rules than those of the arguments are read only if a call would be missed.
        options.compares_all = !options.rules.is_empty();
        launch::add_rules(&mut options.rules, &directories, &secrets);
        if let Some(chosen) = &chosen {
            let invalid = |error: InvalidRule| CommandError::Usage(error.to_string());
            chosen.preset.add_rules(&mut options.rules).map_err(invalid)?;
        }
        if let Some((key, name)) = launch::program_label(&self.command, chosen.as_ref()) {
            options.labels.entry(key).or_insert(name);
        }
        let servers = self.servers(&options.upstreams)?;
        options.upstreams.extend(servers.iter().map(|server| server.upstream.clone()));
        let counts = CallCounts::of_events(&mut options);
        let gateway = Gateway::start(vault, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), options)?;
        let own_url = format!("http://{}", gateway.address());
        let tools = self.mcp.as_deref().map(|config| ProxyConfig::new(config, &own_url)).transpose()?;
        let launch = self.launch(chosen, here, gateway.address(), &servers, tools.as_ref())?;
        let labeler = gateway.labeler();
        let add_version = move |labels| {
            // Without room for the label, the run has none.
            let _ = labeler.add(&labels);
        };
        let version = if self.gateway.records() { launch.version(add_version) } else { None };
        let status = run(launch.command().env_remove(launch::MARK)).map_err(|error| {
            let program = program.to_string_lossy();
            CommandError::CouldNotRun(format!("cannot run {}: {error}", escaped(&program)))
        });
        version.into_iter().for_each(ProgramVersion::end);
        let status = status?;
        // What was recorded is stored, unless a second signal asks not to wait for that.
        let _stop = Stop::on_signals()?;
        let replayed = gateway.replayed_in_all_runs();
        let stopped = gateway.stop();
        let summary = CallSummary { counts, replayed: replayed? };
        summary.print(&launch);
        if self.isolated {
            stdout::note("isolated: only this machine's loopback interface could be reached");
        }
        stopped?;
        let code = code(status);
        Ok(if summary.fails(&self.failures) && code == 0 { Status::No } else { Status::OfProgram(code) })
    }

    /// Returns the servers that the program would ask: none if only recordings answer.
    fn servers(&self, given: &[Upstream]) -> Result<Vec<InterceptedServer>, CommandError> {
        if self.gateway.mode() == GatewayMode::Replay { Ok(Vec::new()) } else { servers(given) }
    }

    /// Returns the program as it is started here with a gateway at this address.
    fn launch(
        &self,
        chosen: Option<ChosenPreset>,
        here: BTreeMap<String, String>,
        address: SocketAddr,
        servers: &[InterceptedServer],
        tools: Option<&ProxyConfig>,
    ) -> Result<Launch, CommandError> {
        let mut upstreams = self.gateway.upstreams()?;
        upstreams.extend(servers.iter().map(|server| server.upstream.clone()));
        let only_replays = self.gateway.mode() == GatewayMode::Replay;
        let base_urls = base_url_variables(address, &upstreams, only_replays);
        let mut environment = variables(address, base_urls, servers);
        let gateway = format!("http://{address}");
        environment.insert(mcp_servers::GATEWAY.to_owned(), gateway.clone());
        environment.extend(not_through_proxies().map(|(name, hosts)| (name.to_owned(), hosts)));
        if only_replays {
            let keys = key_variables().filter(|key| std::env::var_os(key).is_none());
            environment.extend(keys.map(|key| (key.to_owned(), REPLAY_KEY.to_owned())));
        }
        let Some(tools) = tools else {
            return Launch::new(&self.command, chosen, here, environment, &gateway, !self.explain);
        };
        let config = tools.path().to_string_lossy().into_owned();
        environment.insert(mcp_servers::CONFIG.to_owned(), config);
        let command: Vec<OsString> = self.command.iter().map(|word| tools.argument(word)).collect();
        Launch::new(&command, chosen, here, environment, &gateway, !self.explain)
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
fn variables(
    address: SocketAddr,
    base_urls: Vec<(&'static str, String)>,
    servers: &[InterceptedServer],
) -> BTreeMap<String, String> {
    let mut variables: BTreeMap<_, _> =
        base_urls.into_iter().map(|(name, url)| (name.to_owned(), url)).collect();
    for InterceptedServer { provider, .. } in servers.iter().filter(|server| !server.has_version) {
        let names = provider.base_urls.iter().map(|(name, _)| (*name).to_owned());
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

/// Runs a program. SIGTERM, which `timeout` and supervisors send to a process, is passed on to the program; Ctrl-C, which
/// a terminal sends to both, is left to it.
fn run(command: &mut Command) -> io::Result<ExitStatus> {
    flag::register(SIGINT, Arc::default())?;
    system::run(command)
}

#[cfg(unix)]
mod system {
    use std::io::{self, Read};
    use std::os::unix::net::UnixStream;
    use std::process::{Command, ExitStatus};
    use std::sync::Arc;
    use std::thread;

    use parking_lot::Mutex;
    use rustix::io::retry_on_intr;
    use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
    use signal_hook::consts::SIGTERM;
    use signal_hook::low_level::pipe;

    /// The program, until it has ended: its identifier may then be that of another one.
    type Running = Mutex<Option<Pid>>;

    pub(super) fn run(command: &mut Command) -> io::Result<ExitStatus> {
        let (signals, sender) = UnixStream::pair()?;
        pipe::register(SIGTERM, sender)?;
        let mut child = command.spawn()?;
        let pid = Pid::from_child(&child);
        let running = Arc::new(Running::new(Some(pid)));
        let for_thread = Arc::clone(&running);
        thread::Builder::new().spawn(move || pass_on(signals, &for_thread))?;
        // It stays a process that has ended until the call of `wait`.
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        retry_on_intr(|| waitid(WaitId::Pid(pid), ended))?;
        running.lock().take();
        child.wait()
    }

    /// Sends the program a signal for each byte.
    fn pass_on(mut signals: UnixStream, running: &Running) {
        while signals.read_exact(&mut [0]).is_ok() {
            if let Some(pid) = *running.lock() {
                // It can have ended by itself.
                let _ = kill_process(pid, Signal::TERM);
            }
        }
    }
}

#[cfg(not(unix))]
mod system {
    use std::io;
    use std::process::{Command, ExitStatus};

    pub(super) fn run(command: &mut Command) -> io::Result<ExitStatus> {
        command.status()
    }
}

/// Maximum number of recordings that are listed.
const LISTED: usize = 10;

/// When the status is not that of the program.
#[derive(ClapArgs)]
struct FailureArgs {
    /// Exit with status 1 if a call that was to be replayed has no recording
    #[arg(long)]
    fail_on_miss: bool,

    /// Exit with status 1 if a recording was not used
    #[arg(long, hide_short_help = true)]
    fail_unused: bool,

    /// Exit with status 1 if no call arrived
    #[arg(long)]
    fail_if_empty: bool,
}

/// The number of requests so far, by what became of them.
#[derive(Default)]
struct CallCounts {
    recorded: AtomicU64,
    not_recorded: AtomicU64,
    forwarded: AtomicU64,
}

impl CallCounts {
    /// Counts the requests that a gateway with these options reports.
    fn of_events(options: &mut GatewayOptions) -> Arc<Self> {
        let counts = Arc::new(Self::default());
        let (for_gateway, report) = (Arc::clone(&counts), Arc::clone(&options.report));
        options.report = Arc::new(move |event| {
            match event {
                GatewayEvent::Recorded { .. } => for_gateway.recorded.fetch_add(1, Ordering::Relaxed),
                GatewayEvent::NotRecorded { .. } | GatewayEvent::Secrets { refused: true, .. } => {
                    for_gateway.not_recorded.fetch_add(1, Ordering::Relaxed)
                }
                GatewayEvent::Forwarded { .. } => for_gateway.forwarded.fetch_add(1, Ordering::Relaxed),
                _ => 0,
            };
            report(event);
        });
        counts
    }
}

/// The calls of a program that has ended.
struct CallSummary {
    counts: Arc<CallCounts>,
    replayed: ReplayedCalls,
}

impl CallSummary {
    /// Prints what became of the calls; if none arrived, how the program could find the gateway, and why it may have asked
    /// another server.
    fn print(&self, launch: &Launch) {
        if self.is_empty() {
            stdout::note(&launch.without_calls());
            return;
        }
        let [recorded, not_recorded, forwarded] =
            [&self.counts.recorded, &self.counts.not_recorded, &self.counts.forwarded]
                .map(|count| count.load(Ordering::Relaxed));
        let ReplayedCalls { replayed, missed, unused, .. } = &self.replayed;
        let if_any = |count: u64, what: &str| {
            if count > 0 { format!(", {count} {what}") } else { String::new() }
        };
        let not_recorded = if_any(not_recorded, "without a recorded answer");
        let forwarded = if_any(forwarded, "only forwarded");
        let unused = counted(unused.len() as u64, "recording");
        stdout::note(&format!(
            "calls: {recorded} recorded, {replayed} replayed, {missed} missed{not_recorded}{forwarded}; {unused} unused"
        ));
    }

    /// Prints why the status is one of failure. Returns false if it is that of the program.
    fn fails(&self, failures: &FailureArgs) -> bool {
        let ReplayedCalls { missed, unused, .. } = &self.replayed;
        let mut fails = false;
        let mut fail = |reason: String| {
            stdout::error(&reason);
            fails = true;
        };
        if failures.fail_on_miss && *missed > 0 {
            fail(format!("{} not recorded", counted(*missed, "call")));
        }
        if failures.fail_unused && !unused.is_empty() {
            fail(format!("{} not used:", counted(unused.len() as u64, "recording")));
            unused.iter().take(LISTED).for_each(|recording| stdout::message(&unused_line(recording)));
            let more = unused.len().saturating_sub(LISTED);
            if more > 0 {
                stdout::message(&format!("  and {more} more"));
            }
        }
        if failures.fail_if_empty && self.is_empty() {
            fail("no call arrived".to_owned());
        }
        fails
    }

    fn is_empty(&self) -> bool {
        let CallCounts { recorded, not_recorded, forwarded } = &*self.counts;
        let arrived = [recorded, not_recorded, forwarded].map(|count| count.load(Ordering::Relaxed));
        arrived == [0; 3] && self.replayed.replayed == 0 && self.replayed.missed == 0
    }
}

fn unused_line(recording: &UnusedRecording) -> String {
    let UnusedRecording { core_hash, step, provider, endpoint, prompt } = recording;
    format!("  {core_hash:.12} step {step}, {provider} {endpoint}: {}", escaped(prompt))
}
