//! What is done before a batch is stored, in the threads that prepare artifacts.

use crate::artifact::Admitted;
use crate::storage::Prepared;
use crate::storage::postgres::encoding::{EncodedMember, encoded};

/// The prepared form of an artifact: the encoded bytes of its members, in their order.
pub(super) struct EncodedMembers(pub(super) Vec<EncodedMember>);

/// Prepares an artifact.
pub(in crate::storage::postgres) fn prepare(admitted: Admitted) -> Prepared {
    Prepared::new(admitted, &|admitted, _| {
        EncodedMembers(admitted.members().iter().map(|member| encoded(member.bytes())).collect())
    })
}

/// Returns whether this engine prepared all artifacts of a batch.
pub(in crate::storage::postgres) fn are_ours(batch: &[&Prepared]) -> bool {
    batch.iter().all(|prepared| prepared.private::<EncodedMembers>().is_some())
}
