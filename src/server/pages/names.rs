//! The names of artifacts: the ids of the runs that they record, and what was asked first, or the effects of a contract.

use std::collections::HashMap;

use maud::{Markup, html};

use super::parts;
use crate::artifact::AttributeInfo;
use crate::digest::CoreHash;
use crate::formats;
use crate::server::text::{line, long_line};
use crate::server::visit::{PageError, PageRequest};
use crate::vault::links::LinkEnd;
use crate::vault::list::{ListRequest, ListRow};

/// The names of the artifacts of a page.
pub(super) struct ArtifactNames(HashMap<CoreHash, RunName>);

/// What tells a run or a contract from others.
struct RunName {
    id: Option<String>,
    excerpt: Option<String>,
}

/// The attribute with the effects of a contract.
const EFFECT: &str = "effect";

impl ArtifactNames {
    /// Reads the names of artifacts, which need not be in the vault.
    pub(super) fn read(visit: &PageRequest<'_>, mut artifacts: Vec<CoreHash>) -> Result<Self, PageError> {
        artifacts.sort_unstable();
        artifacts.dedup();
        if artifacts.is_empty() {
            // It would request all of them.
            return Ok(Self(HashMap::new()));
        }
        let attributes = [AttributeInfo::FIRST_PROMPT.name, EFFECT].map(str::to_owned).to_vec();
        let answer = visit.run(&ListRequest { artifacts, attributes, ..ListRequest::default() })?;
        Ok(Self::new(&answer.rows))
    }

    /// Returns the names that rows of a list state. The attributes of excerpts must have been requested.
    pub(super) fn new(rows: &[ListRow]) -> Self {
        let mut names = HashMap::new();
        for row in rows {
            let prompt = row.values(AttributeInfo::FIRST_PROMPT.name).into_iter().next();
            let effects = Some(row.values(EFFECT).join(", ")).filter(|effects| !effects.is_empty());
            for member in &row.members {
                let id = row.run_id.clone().or_else(|| member.details.run_id.clone());
                let is_contract = member.artifact.kind == formats::TERMS.name();
                let excerpt = if is_contract { effects.clone() } else { prompt.clone() };
                names.insert(member.artifact.core_hash, RunName { id, excerpt });
            }
        }
        Self(names)
    }

    /// Returns whether an artifact is in the vault, if its name was read.
    pub(super) fn has(&self, core: CoreHash) -> bool {
        self.0.contains_key(&core)
    }

    /// Returns the id of the run that an artifact records, if it is known.
    pub(super) fn run_id(&self, core: CoreHash) -> Option<&str> {
        self.0.get(&core)?.id.as_deref()
    }

    /// Returns the beginning of what was asked first, or the effects of a contract, if they are known.
    pub(super) fn excerpt(&self, core: CoreHash) -> Option<&str> {
        self.0.get(&core)?.excerpt.as_deref()
    }

    /// Returns an artifact as a link with the id of its run and its hash, and its excerpt.
    pub(super) fn link(&self, core: CoreHash) -> Markup {
        html! { (self.short(core)) (self.excerpt_line(core)) }
    }

    /// Returns an artifact as a link with the id of its run and its hash.
    pub(super) fn short(&self, core: CoreHash) -> Markup {
        parts::named(core, self.run_id(core))
    }

    /// Returns the excerpt as a line of its own.
    pub(super) fn excerpt_line(&self, core: CoreHash) -> Markup {
        html! { @if let Some(excerpt) = self.excerpt(core) { " " span.excerpt { (long_line(excerpt)) } } }
    }

    /// Returns an end of a link: an artifact, or what is missing.
    pub(super) fn link_end(&self, end: &LinkEnd) -> Markup {
        let LinkEnd { core_hash, digest, name, .. } = end;
        if let Some(core) = core_hash {
            self.short(*core)
        } else {
            let missing = digest.map(|digest| format!("{digest:.12}")).or_else(|| name.clone());
            html! { span.missing { "not in the vault: " (line(&missing.unwrap_or_default())) } }
        }
    }
}
