//! A gateway that records the calls of model clients, and replays them.
//!
//! A client is pointed at the gateway by its base URL. The gateway forwards its requests to the provider of the model,
//! and archives what was asked and answered as a session (`model_io`) and a run pack (`rpk`); or it answers from what is
//! archived, without any network. `docs/gateway.md` specifies which parts of a request are its prompt, and how calls
//! are recorded.
//!
//! ```no_run
//! use runvault::Vault;
//! use runvault::gateway::{Gateway, GatewayMode, GatewayOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let vault = Vault::open("runs.vault".as_ref())?;
//! let options = GatewayOptions::new(GatewayMode::Auto, "runs.vault-gateway".as_ref());
//! let gateway = Gateway::start(vault, "127.0.0.1:0".parse()?, options)?;
//! println!("OPENAI_BASE_URL=http://{}/openai/v1", gateway.address());
//! let recorded = gateway.stop()?;
//! # Ok(())
//! # }
//! ```

mod connection;
mod decoding;
mod difference;
mod finish;
mod forward;
mod handle;
mod http;
mod mcp_proxy;
mod miss;
mod open_calls;
mod otlp;
mod recording;
mod recordings;
mod recovery;
mod replay;
mod responses;
mod route;
mod run;
mod server_calls;
mod shared;
mod signing;
mod spool;
mod traces;
mod web_socket;

pub use crate::calls::{InvalidRule, MatchingRules, PROVIDERS, Provider, REPLAY_KEY, key_variables};
pub use difference::RuleSuggestion;
pub use finish::{FinishError, FinishedRun};
pub use handle::{Gateway, RunLabeler, StartError};
pub use mcp_proxy::{McpProxy, McpProxyError, McpTarget};
pub use otlp::otlp_variables;
pub use recordings::{RecordedCall, recorded_calls};
pub use recovery::{Recovery, UnstoredRun, recover_runs, unstored_runs};
pub use route::{InvalidUpstream, Upstream, base_url_variables};
pub use run::{ReplayedCalls, UnusedRecording};
pub use shared::{GatewayEvent, GatewayMode, GatewayOptions, Pace, ReplaySource};
pub use signing::AwsKey;
