//! The names of artifacts: the ids of the runs that they record, and what was asked first.

use std::collections::HashMap;

use maud::{Markup, html};

use super::parts;
use crate::artifact::AttributeInfo;
use crate::digest::CoreHash;
use crate::server::address;
use crate::server::text::line;
use crate::server::visit::{PageError, PageRequest};
use crate::vault::links::LinkEnd;
use crate::vault::list::ListRequest;

/// The names of the artifacts of a page.
pub(super) struct ArtifactNames(HashMap<CoreHash, RunName>);

/// What tells a run from others.
#[derive(Clone)]
struct RunName {
    id: Option<String>,
    prompt: Option<String>,
}

impl ArtifactNames {
    /// Reads the names of artifacts, which need not be in the vault.
    pub(super) fn read(visit: &PageRequest<'_>, mut artifacts: Vec<CoreHash>) -> Result<Self, PageError> {
        artifacts.sort_unstable();
        artifacts.dedup();
        if artifacts.is_empty() {
            // It would request all of them.
            return Ok(Self(HashMap::new()));
        }
        let attributes = vec![AttributeInfo::FIRST_PROMPT.name.to_owned()];
        let answer = visit.run(&ListRequest { artifacts, attributes, ..ListRequest::default() })?;
        let mut names = HashMap::new();
        for row in answer.rows {
            let prompt = row.values(AttributeInfo::FIRST_PROMPT.name).into_iter().next();
            for member in row.members {
                let id = row.run_id.clone().or(member.details.run_id);
                names.insert(member.artifact.core_hash, RunName { id, prompt: prompt.clone() });
            }
        }
        Ok(Self(names))
    }

    /// Returns whether an artifact is in the vault, if its name was read.
    pub(super) fn has(&self, core: CoreHash) -> bool {
        self.0.contains_key(&core)
    }

    /// Returns the id of the run that an artifact records, if it is known.
    pub(super) fn run_id(&self, core: CoreHash) -> Option<&str> {
        self.0.get(&core)?.id.as_deref()
    }

    /// Returns the beginning of what was asked first, if it is known.
    pub(super) fn prompt(&self, core: CoreHash) -> Option<&str> {
        self.0.get(&core)?.prompt.as_deref()
    }

    /// Returns an artifact as a link with the id of its run and its hash, and what was asked first.
    pub(super) fn link(&self, core: CoreHash) -> Markup {
        html! { (self.short(core)) (self.excerpt(core)) }
    }

    /// Returns an artifact as a link with the id of its run and its hash.
    pub(super) fn short(&self, core: CoreHash) -> Markup {
        html! {
            @match self.run_id(core) {
                Some(id) => {
                    a.hash href=(address::artifact(core)) { (line(id)) }
                    " " span.faint.hash { (format!("{core:.12}")) }
                },
                None => (parts::hash(core)),
            }
        }
    }

    /// Returns what was asked first, as a line of its own.
    pub(super) fn excerpt(&self, core: CoreHash) -> Markup {
        html! { @if let Some(prompt) = self.prompt(core) { " " span.excerpt { (line(prompt)) } } }
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
