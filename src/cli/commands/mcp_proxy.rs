//! `runvault mcp-proxy`

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;

use clap::Args as ClapArgs;
use runvault::gateway::{Gateway, McpProxy, McpProxyError, McpTarget};

use crate::cli::args::environment::variable;
use crate::cli::args::gateway::GatewayArgs;
use crate::cli::args::help;
use crate::cli::args::mcp_servers::{GATEWAY, HEADERS};
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::terminal::Stop;

/// Record and replay a server of the Model Context Protocol
///
/// Takes the place of a server in the configuration of a client: it is asked over standard input and output, passes
/// messages on to the server, and records its calls as steps of tools in a run pack. A call that was recorded is
/// answered without the server, which is started when it is needed; with --mode replay, never.
///
/// In a program that "runvault exec" runs, calls become part of its run, and the options about recording are those of
/// that command.
#[derive(ClapArgs)]
#[command(mut_args(help::rarely(&["ci", "upstream"])))]
pub(crate) struct Args {
    /// Name of the server, by which its recordings are found. Default: that of the program, or the host of the URL
    #[arg(long, value_name = "NAME")]
    server: Option<String>,

    /// Ask the server at this URL, over the transport "streamable HTTP"
    ///
    /// A server that refuses that is asked over the older transport, HTTP+SSE.
    /// The variable `RUNVAULT_MCP_HEADERS` has headers for it, as a JSON object.
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    url: Option<String>,

    #[command(flatten)]
    gateway: GatewayArgs,

    /// The server and its arguments
    #[arg(required_unless_present = "url", last = true, value_name = "SERVER")]
    command: Vec<OsString>,
}

impl Args {
    pub(crate) fn run(&self, args: &VaultArgs) -> Result<Status, CommandError> {
        let (name, target) = self.target()?;
        let name = self.server.clone().unwrap_or(name);
        let stop = Stop::on_signals()?;
        let relay = |gateway: String| {
            let proxy = McpProxy { name, target, gateway };
            proxy.run(|| stop.is_requested()).map_err(|error| could_not_run(&error))
        };
        if let Some(gateway) = variable(GATEWAY) {
            relay(gateway.to_string_lossy().into_owned())?;
            return Ok(Status::Done);
        }
        let vault = self.gateway.open(args)?;
        let options = self.gateway.options(args, &vault)?;
        let gateway = Gateway::start(vault, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), options)?;
        let relayed = relay(format!("http://{}", gateway.address()));
        gateway.stop()?;
        relayed.map(|()| Status::Done)
    }

    /// Returns the server, and the name that it has if none is given.
    fn target(&self) -> Result<(String, McpTarget), CommandError> {
        if let Some(url) = &self.url {
            let target = McpTarget::from_url(url, &headers()?).map_err(|error| could_not_run(&error))?;
            let host = url.split("://").nth(1).and_then(|rest| rest.split(['/', '?', ':']).next());
            return Ok((host.unwrap_or(url).to_owned(), target));
        }
        let Some((program, arguments)) = self.command.split_first() else {
            return Err(CommandError::Usage("no server is given".to_owned()));
        };
        let mut command = Command::new(program);
        command.args(arguments).env_remove(HEADERS);
        let name = Path::new(program).file_stem().unwrap_or(program).to_string_lossy().into_owned();
        Ok((name, McpTarget::from_command(command)))
    }
}

/// Returns the headers for a server.
fn headers() -> Result<BTreeMap<String, String>, CommandError> {
    let Some(text) = variable(HEADERS) else { return Ok(BTreeMap::new()) };
    serde_json::from_str(&text.to_string_lossy())
        .map_err(|error| CommandError::Usage(format!("{HEADERS} is not a JSON object of texts: {error}")))
}

fn could_not_run(error: &McpProxyError) -> CommandError {
    CommandError::CouldNotRun(format!("the proxy failed: {error}"))
}
