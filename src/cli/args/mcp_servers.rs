//! Configurations with servers of the Model Context Protocol, in which proxies take the places of the servers.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use runvault::display::escaped;
use serde_json::{Map, Value as Json, json};
use tempfile::TempDir;

use crate::cli::output::exit::CommandError;

/// The variable with the URL of the gateway of a program that runs with one.
pub(crate) const GATEWAY: &str = "RUNVAULT_GATEWAY";

/// The variable with headers for a server at a URL.
pub(crate) const HEADERS: &str = "RUNVAULT_MCP_HEADERS";

/// The variable with the path of the configuration with proxies.
pub(crate) const CONFIG: &str = "RUNVAULT_MCP_CONFIG";

/// Members with the servers, of which clients know one or the other.
const SERVERS: [&str; 2] = ["mcpServers", "servers"];

/// A configuration with proxies, in a file of its own until this is dropped.
pub(crate) struct ProxyConfig {
    /// The configuration that it takes the place of.
    original: PathBuf,
    path: PathBuf,
    /// Only its owner can read it: it can have keys.
    _directory: TempDir,
}

impl ProxyConfig {
    /// Reads a configuration, and writes it with proxies that report calls to a gateway.
    pub(crate) fn new(original: &Path, gateway: &str) -> Result<Self, CommandError> {
        let failed = |reason: &dyn std::fmt::Display| {
            CommandError::CouldNotRun(format!("{}: {reason}", escaped(&original.to_string_lossy())))
        };
        let text = fs::read_to_string(original).map_err(|error| failed(&error))?;
        let mut config: Json = serde_json::from_str(&text).map_err(|error| failed(&error))?;
        let program = std::env::current_exe()?;
        let proxy = ProxyCommand { program: &program.to_string_lossy(), gateway };
        let name = SERVERS.into_iter().find(|name| config.get(name).is_some());
        let servers = name.and_then(|name| config.get_mut(name)?.as_object_mut());
        let servers = servers.ok_or_else(|| failed(&"it has no object mcpServers or servers"))?;
        for (name, server) in servers {
            let replaced = server.as_object_mut().ok_or("it is not an object".to_owned());
            let replaced = replaced.and_then(|server| proxy.replace(name, server));
            replaced.map_err(|reason| failed(&format!("server {}: {reason}", escaped(name))))?;
        }
        let directory = TempDir::with_prefix("runvault-mcp-")?;
        // Clients can look at how it is called.
        let path = directory.path().join(original.file_name().unwrap_or(OsStr::new("mcp.json")));
        fs::File::create(&path)?.write_all(format!("{config:#}\n").as_bytes())?;
        Ok(Self { original: original.to_owned(), path, _directory: directory })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns an argument of a program: the path of this configuration in place of that of the original, also after `=`.
    pub(crate) fn argument(&self, argument: &OsStr) -> OsString {
        if argument == self.original.as_os_str() {
            return self.path.clone().into_os_string();
        }
        let text = argument.to_string_lossy();
        let option = text.strip_suffix(&*self.original.to_string_lossy());
        match option.filter(|option| option.starts_with('-') && option.ends_with('=')) {
            Some(option) => [OsStr::new(option), self.path.as_os_str()].into_iter().collect(),
            None => argument.to_owned(),
        }
    }
}

/// How a proxy is started.
struct ProxyCommand<'c> {
    program: &'c str,
    gateway: &'c str,
}

impl ProxyCommand<'_> {
    /// Puts a proxy in the place of a server. Other members, such as how long the client waits, stay as they are.
    fn replace(&self, name: &str, server: &mut Map<String, Json>) -> Result<(), String> {
        let mut arguments = vec![json!("mcp-proxy"), json!("--server"), json!(name)];
        let mut variables = match server.remove("env") {
            None | Some(Json::Null) => Map::new(),
            Some(Json::Object(variables)) => variables,
            Some(_) => return Err("its member env is not an object".to_owned()),
        };
        if let Some(command) = server.remove("command") {
            arguments.extend([json!("--"), command]);
            match server.remove("args") {
                None | Some(Json::Null) => {}
                Some(Json::Array(given)) => arguments.extend(given),
                Some(_) => return Err("its member args is not an array".to_owned()),
            }
        } else if let Some(url) = server.remove("url").or_else(|| server.remove("httpUrl")) {
            arguments.extend([json!("--url"), url]);
            if let Some(headers) = server.remove("headers") {
                variables.insert(HEADERS.to_owned(), json!(headers.to_string()));
            }
            // Its own is that of the proxy.
            if server.remove("type").is_some() {
                server.insert("type".to_owned(), json!("stdio"));
            }
        } else {
            return Err("it has neither a command nor a url".to_owned());
        }
        variables.insert(GATEWAY.to_owned(), json!(self.gateway));
        server.insert("command".to_owned(), json!(self.program));
        server.insert("args".to_owned(), Json::Array(arguments));
        server.insert("env".to_owned(), Json::Object(variables));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(server: Json) -> Result<Json, String> {
        let Json::Object(mut server) = server else { unreachable!() };
        let proxy = ProxyCommand { program: "runvault", gateway: "http://h" };
        proxy.replace("files", &mut server).map(|()| Json::Object(server))
    }

    #[test]
    fn proxies_take_the_places_of_servers() {
        let process = json!({"command": "srv", "args": ["-a"], "env": {"K": "v"}, "timeout": 5});
        assert_eq!(
            replaced(process).unwrap(),
            json!({"command": "runvault", "args": ["mcp-proxy", "--server", "files", "--", "srv", "-a"],
                "env": {"K": "v", "RUNVAULT_GATEWAY": "http://h"}, "timeout": 5})
        );
        for transport in ["http", "sse"] {
            let remote =
                json!({"type": transport, "url": "https://m/mcp", "headers": {"authorization": "x"}});
            assert_eq!(
                replaced(remote).unwrap(),
                json!({"command": "runvault", "args": ["mcp-proxy", "--server", "files", "--url", "https://m/mcp"],
                    "env": {HEADERS: "{\"authorization\":\"x\"}", "RUNVAULT_GATEWAY": "http://h"}, "type": "stdio"})
            );
        }
    }

    #[test]
    fn what_is_not_a_server_that_can_be_recorded_is_refused() {
        for (server, reason) in [
            (json!({}), "neither a command nor a url"),
            (json!({"command": "srv", "args": "-a"}), "args is not an array"),
            (json!({"command": "srv", "env": []}), "env is not an object"),
        ] {
            let refused = replaced(server).unwrap_err();
            assert!(refused.contains(reason), "{refused}");
        }
    }
}
