//! Events that a gateway reports while it runs.

use std::path::Path;

use chrono::{DateTime, Utc};

use super::finish::FinishedRun;
use crate::digest::CoreHash;
use crate::secrets::SecretMatch;

/// Something that a gateway reports.
#[derive(Debug)]
#[non_exhaustive]
pub enum GatewayEvent<'e> {
    /// A call was recorded.
    Recorded {
        /// The provider.
        provider: &'e str,
        /// The path of the request.
        path: &'e str,
        /// The status of the answer.
        status: u16,
    },
    /// A call was answered from a run pack.
    Replayed {
        /// The provider.
        provider: &'e str,
        /// The path of the request.
        path: &'e str,
        /// The run pack.
        from: CoreHash,
        /// The number of the step with the request there.
        step: usize,
    },
    /// A call is forwarded although it was recorded: only with a failure.
    AskedAgain {
        /// The provider.
        provider: &'e str,
        /// The path of the request.
        path: &'e str,
        /// The failure.
        reason: &'e str,
    },
    /// A request that is no call, or any in the mode `pass`, was forwarded. Nothing of it is recorded.
    Forwarded {
        /// The provider.
        provider: &'e str,
        /// The path of the request.
        path: &'e str,
    },
    /// A call was not recorded before and could not be replayed.
    Missed {
        /// The provider.
        provider: &'e str,
        /// The path of the request.
        path: &'e str,
        /// The difference from the nearest recorded request.
        reason: &'e str,
    },
    /// A call was forwarded and not recorded, or only as a failure.
    NotRecorded {
        /// The provider.
        provider: &'e str,
        /// The path of the request.
        path: &'e str,
        /// Why not.
        reason: &'e str,
    },
    /// A call contains what looks like a key or a card number.
    Secrets {
        /// The provider.
        provider: &'e str,
        /// The path of the request.
        path: &'e str,
        /// Where it is, and what it looks like.
        secrets: &'e [SecretMatch],
        /// Whether the call was not recorded for that.
        refused: bool,
    },
    /// A call was not complete when the process of its gateway was killed.
    Lost {
        /// The provider.
        provider: &'e str,
        /// The path of the request.
        path: &'e str,
        /// When the request arrived.
        requested_at: DateTime<Utc>,
    },
    /// A run was stored in the vault.
    Finished(&'e FinishedRun),
    /// A file with the calls of a run was set aside, because they could not be stored or the file is damaged. It is
    /// reported at every start.
    SetAside {
        /// The file.
        file: &'e Path,
        /// What is known of it.
        reason: &'e str,
    },
    /// A run could not be stored, or only a part of it. Its calls stay on disk.
    Failed {
        /// Why not.
        reason: &'e str,
    },
}
