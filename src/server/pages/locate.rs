//! Names of artifacts in addresses: what a person knows an artifact by, and the address of its page.

use serde::Deserialize;

use crate::artifact::group;
use crate::server::address;
use crate::server::visit::{PageError, PageRequest, ResponseContent};
use crate::vault::find::{ArtifactFilter, FindCondition};
use crate::vault::resolve::ResolveRequest;
use crate::vault::{LocatedCapture, LookupError};

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Parameters {
    q: String,
}

/// Returns the artifact that the path of a request names: by a hash, a prefix of one, a tag or a run id.
pub(in crate::server) fn named(visit: &PageRequest<'_>) -> Result<LocatedCapture, PageError> {
    located(visit, visit.name)
}

/// Returns the artifact that `text` names.
pub(in crate::server) fn located(visit: &PageRequest<'_>, text: &str) -> Result<LocatedCapture, PageError> {
    Ok(ResolveRequest::new(text).locate(visit.vault)?)
}

/// Redirects to what the text names, or else to the search for the words.
pub(in crate::server) fn go(visit: &PageRequest<'_>) -> Result<ResponseContent, PageError> {
    let Parameters { q } = visit.parameters()?;
    let text = q.trim();
    match located(visit, text) {
        Ok(located) => Ok(ResponseContent::Redirect(address::artifact(located.artifact.core))),
        Err(PageError::Lookup(error)) => match error {
            LookupError::Mentioned(mentioned) => {
                let digest = mentioned.digest;
                let group = Some(group::PROMPT.to_owned());
                let conditions = vec![FindCondition::Mention { group, digest }];
                let prompts = ArtifactFilter { conditions, ..ArtifactFilter::default() };
                let is_prompt = visit.vault.count(&prompts)? > 0;
                let address = if is_prompt { address::prompt(digest) } else { address::mentions(digest) };
                Ok(ResponseContent::Redirect(address))
            }
            LookupError::NotFound(_)
            | LookupError::NoSuchTag(_)
            | LookupError::NoSuchName { .. }
            | LookupError::LatestOutOfRange { .. } => {
                Ok(ResponseContent::Redirect(address::with_query("/search", &[("q", Some(text))])))
            }
            error => Err(error.into()),
        },
        Err(error) => Err(error),
    }
}
