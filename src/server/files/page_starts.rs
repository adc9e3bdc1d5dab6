//! The beginnings of the pages of transcripts, which determine the file that a link to a step leads to.
//!
//! A page of a server begins at any step that its address states. In files, every step is on one page of each form of a
//! transcript, so that the number of files does not grow with the number of links.

use std::collections::HashMap;

use crate::digest::CoreHash;
use crate::formats;
use crate::server::address::STEPS;
use crate::server::pages::artifact::is_defect;
use crate::vault::view::{Conversation, ViewRequest};
use crate::vault::{LookupError, Vault};

/// The numbers of the first steps of the pages of conversations after the first page, by artifact.
#[derive(Debug, Default)]
pub(super) struct PageStarts(HashMap<CoreHash, Vec<u64>>);

impl PageStarts {
    /// Reads the conversations of artifacts, which have these kinds.
    pub(super) fn read(vault: &Vault, artifacts: &[(CoreHash, String)]) -> Result<Self, LookupError> {
        let mut starts = Self::default();
        for (core, kind) in artifacts {
            if !formats::recordings().any(|recording| recording.name() == kind) {
                continue;
            }
            let request = ViewRequest { conversation: true, max_text: Some(0), ..ViewRequest::new(*core) };
            match vault.run(&request) {
                Ok(answer) => {
                    if let Some(conversation) = answer.conversation {
                        starts.add(*core, &conversation);
                    }
                }
                // The page of the artifact says so.
                Err(error) if is_defect(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(starts)
    }

    fn add(&mut self, core: CoreHash, conversation: &Conversation) {
        let size = usize::try_from(STEPS).unwrap_or(usize::MAX);
        let first_calls = conversation.calls.iter().step_by(size).skip(1);
        self.0.insert(core, first_calls.map(|call| call.step).collect());
    }

    /// Returns the number of the first step of the page with a step: of the conversation, or of the steps as they are
    /// recorded if `is_raw` or if there is no conversation.
    pub(super) fn page_of(&self, core: CoreHash, step: u64, is_raw: bool) -> u64 {
        match self.0.get(&core).filter(|_| !is_raw) {
            Some(starts) => starts.iter().rfind(|start| **start <= step).copied().unwrap_or(0),
            None => step / STEPS * STEPS,
        }
    }
}
