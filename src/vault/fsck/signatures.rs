//! Comparison of recorded signature states with the results of checking the stored bytes.

use crate::artifact::{Signature, SignatureState};
use crate::storage::check::finding::{DIFFERENT_ROW, FindingInfo, WRONG_SIGNATURE};

/// Results of checking the signatures of all captures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignatureCounts {
    /// Verified with the given keys.
    pub verified: u64,
    /// Number of these that are recorded as never checked.
    pub verified_now: u64,
    /// Signed with keys that were not given.
    pub unchecked: u64,
    /// Wrong.
    pub wrong: u64,
}

impl SignatureCounts {
    /// Counts a signature with the result `found` and the recorded state `recorded`.
    pub(super) fn count(&mut self, found: &Signature, recorded: SignatureState) {
        match found.state {
            SignatureState::Verified => {
                self.verified += 1;
                self.verified_now += u64::from(recorded == SignatureState::Unchecked);
            }
            SignatureState::Unchecked => self.unchecked += 1,
            SignatureState::Wrong => self.wrong += 1,
        }
    }
}

/// Returns the contradiction between `found`, the result of checking the bytes, and `stored`. A signature that was
/// never checked, or one that was checked before but cannot be checked with the current keys, is not a contradiction.
pub(super) fn compare(
    stored: Option<&Signature>,
    found: Option<&Signature>,
) -> Option<(FindingInfo, &'static str)> {
    use SignatureState::{Unchecked, Verified, Wrong};
    let (stored, found) = match (stored, found) {
        (None, None) => return None,
        (Some(_), None) => {
            return Some((DIFFERENT_ROW, "signature: it is recorded as signed but is not signed"));
        }
        (None, Some(_)) => return Some((DIFFERENT_ROW, "signature: it is signed but recorded as unsigned")),
        (Some(stored), Some(found)) => (stored, found),
    };
    match (stored.state, found.state) {
        (Verified, Wrong) => Some((WRONG_SIGNATURE, "it is recorded as verified")),
        (Unchecked, Wrong) => Some((WRONG_SIGNATURE, "it is recorded as not checked")),
        (Wrong, Wrong) => Some((WRONG_SIGNATURE, "it is recorded as wrong")),
        _ if stored.key_id != found.key_id => {
            Some((DIFFERENT_ROW, "signature: key_id is not the one that it states"))
        }
        (Wrong, Verified) => Some((DIFFERENT_ROW, "signature: it verifies now but is recorded as wrong")),
        (_, Unchecked) | (Verified | Unchecked, Verified) => None,
    }
}

/// Returns whether a signature is wrong.
pub(super) fn is_wrong(signature: Option<&Signature>) -> bool {
    signature.is_some_and(|signature| signature.state == SignatureState::Wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_contradictions_are_findings() {
        let signature = |state, id: &str| Some(Signature { state, key_id: Some(id.to_owned()) });
        let states = [SignatureState::Verified, SignatureState::Unchecked, SignatureState::Wrong];
        let id = |stored, found| {
            compare(signature(stored, "a").as_ref(), signature(found, "a").as_ref()).map(|(info, _)| info.id)
        };
        let table: Vec<Vec<Option<&str>>> =
            states.iter().map(|stored| states.iter().map(|found| id(*stored, *found)).collect()).collect();
        let (wrong, differs) = (Some(WRONG_SIGNATURE.id), Some(DIFFERENT_ROW.id));
        assert_eq!(table, [[None, None, wrong], [None, None, wrong], [differs, None, wrong]]);
        for state in states {
            let one = signature(state, "a");
            assert_eq!(compare(one.as_ref(), None).unwrap().0, DIFFERENT_ROW);
            assert_eq!(compare(None, one.as_ref()).unwrap().0, DIFFERENT_ROW);
            assert!(compare(one.as_ref(), signature(state, "b").as_ref()).is_some());
        }
        assert!(compare(None, None).is_none());
    }
}
