//! Signatures: what the vault says of them, compared with what checking the stored bytes again gives.

use crate::artifact::{Signature, SignatureState};
use crate::store::check::finding::{FindingInfo, SIGNATURE_DIFFERS, SIGNATURE_WRONG};

/// What checking the signatures of all captures again gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignatureCounts {
    /// Verified with the keys that were given.
    pub verified: u64,
    /// Of these, how many the vault says were never checked.
    pub verified_now: u64,
    /// Signed with keys that were not given.
    pub unchecked: u64,
    /// Wrong.
    pub wrong: u64,
}

impl SignatureCounts {
    /// Counts a signature that checking gave as `found`, and that is in the vault as `recorded`.
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

/// What contradicts `found`, which checking the bytes gave, in what is `stored`. That a signature was never checked, or that
/// one that was checked before cannot be checked with the keys of today, is no contradiction.
pub(super) fn compare(
    stored: Option<&Signature>,
    found: Option<&Signature>,
) -> Option<(FindingInfo, &'static str)> {
    use SignatureState::{Unchecked, Verified, Wrong};
    let (stored, found) = match (stored, found) {
        (None, None) => return None,
        (Some(_), None) => return Some((SIGNATURE_DIFFERS, "it is recorded as signed and is not signed")),
        (None, Some(_)) => return Some((SIGNATURE_DIFFERS, "it is signed and is recorded as unsigned")),
        (Some(stored), Some(found)) => (stored, found),
    };
    match (stored.state, found.state) {
        (Verified, Wrong) => Some((SIGNATURE_WRONG, "it is recorded as verified")),
        (Unchecked, Wrong) => Some((SIGNATURE_WRONG, "it is recorded as not checked")),
        (Wrong, Wrong) => Some((SIGNATURE_WRONG, "it is recorded as wrong")),
        _ if stored.key_id != found.key_id => {
            Some((SIGNATURE_DIFFERS, "it is recorded with another key id than it states"))
        }
        (Wrong, Verified) => Some((SIGNATURE_DIFFERS, "it is verified now and is recorded as wrong")),
        (_, Unchecked) | (Verified | Unchecked, Verified) => None,
    }
}

/// Whether a signature was found to be wrong.
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
        let (wrong, differs) = (Some(SIGNATURE_WRONG.id), Some(SIGNATURE_DIFFERS.id));
        assert_eq!(table, [[None, None, wrong], [None, None, wrong], [differs, None, wrong]]);
        for state in states {
            let one = signature(state, "a");
            assert_eq!(compare(one.as_ref(), None).unwrap().0, SIGNATURE_DIFFERS);
            assert_eq!(compare(None, one.as_ref()).unwrap().0, SIGNATURE_DIFFERS);
            assert!(compare(one.as_ref(), signature(state, "b").as_ref()).is_some());
        }
        assert!(compare(None, None).is_none());
    }
}
