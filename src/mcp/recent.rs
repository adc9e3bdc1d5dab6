//! Artifacts that were read last: clients read an artifact page by page, and it is not read and parsed again for each
//! page.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::digest::{CaptureHash, CoreHash};
use crate::vault::view::{ViewAnswer, ViewBody, ViewRequest, ViewStep};

/// A capture of an artifact.
type RecentKey = (CoreHash, CaptureHash);

/// The last transcript and the last bytes that were read.
#[derive(Default)]
pub(super) struct RecentReads {
    view: Mutex<Option<(ViewRequest, Arc<RecentView>)>>,
    bytes: Mutex<Option<(RecentKey, Arc<RecentBytes>)>>,
}

/// A part of a transcript.
pub(super) struct RecentView {
    /// The answer without the steps.
    pub(super) answer: ViewAnswer,
    /// The steps without their bodies, and the bodies.
    pub(super) steps: Vec<(ViewStep, Vec<ViewBody>)>,
    /// The number of the first step after those.
    pub(super) next: Option<u64>,
}

/// The bytes of a document.
pub(super) enum RecentBytes {
    Text(String),
    Binary(Vec<u8>),
}

impl RecentReads {
    /// Returns the transcript that was read last, if `request` is for a part of it that begins in it.
    pub(super) fn view(&self, request: &ViewRequest) -> Option<Arc<RecentView>> {
        let last = lock(&self.view);
        let (known, view) = last.as_ref()?;
        let is_same = ViewRequest { from: request.from, ..known.clone() } == *request;
        let begins_in_it = known.from <= request.from && view.next.is_none_or(|next| request.from < next);
        (is_same && begins_in_it).then(|| Arc::clone(view))
    }

    /// Remembers the answer to a request for a transcript.
    pub(super) fn remember_view(&self, request: ViewRequest, answer: ViewAnswer) -> Arc<RecentView> {
        let view = Arc::new(RecentView::from(answer));
        *lock(&self.view) = Some((request, Arc::clone(&view)));
        view
    }

    /// Returns the bytes of a capture, if they were read last.
    pub(super) fn bytes(&self, of: RecentKey) -> Option<Arc<RecentBytes>> {
        let last = lock(&self.bytes);
        last.as_ref().filter(|(known, _)| *known == of).map(|(_, bytes)| Arc::clone(bytes))
    }

    /// Remembers the bytes of a capture.
    pub(super) fn remember_bytes(&self, of: RecentKey, bytes: Vec<u8>) -> Arc<RecentBytes> {
        let bytes = Arc::new(RecentBytes::from(bytes));
        *lock(&self.bytes) = Some((of, Arc::clone(&bytes)));
        bytes
    }
}

fn lock<T>(last: &Mutex<T>) -> MutexGuard<'_, T> {
    last.lock().unwrap_or_else(PoisonError::into_inner)
}

impl From<ViewAnswer> for RecentView {
    fn from(mut answer: ViewAnswer) -> Self {
        let next = answer.next.take();
        let steps = std::mem::take(&mut answer.steps).into_iter().map(|mut step| {
            let bodies = std::mem::take(&mut step.bodies);
            (step, bodies)
        });
        let steps = steps.collect();
        Self { answer, steps, next }
    }
}

impl From<Vec<u8>> for RecentBytes {
    fn from(bytes: Vec<u8>) -> Self {
        String::from_utf8(bytes).map_or_else(|error| Self::Binary(error.into_bytes()), Self::Text)
    }
}

impl RecentBytes {
    /// Returns the bytes.
    pub(super) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Binary(bytes) => bytes,
        }
    }
}
