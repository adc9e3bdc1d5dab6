//! Contracts held against runs: what proves an effect, what does not, and what is found beside the effects.

mod evidence;
mod findings;
mod making;
mod outcomes;
mod retries;
mod schemas;
mod targets;

pub(crate) use making::{Audited, audited, audited_in, contract, pack, run_pack, trace};
