//! The rows that follow from an entry of the journal.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::artifact::Admitted;
use crate::digest::{CaptureHash, CoreHash};
use crate::storage::entry::Entry;
use crate::storage::journal::arrival;
use crate::storage::{Prepared, RecordedEntry, Tombstone};

use super::row::{MentionRole, Row, RowChange, RowKey};

/// Returns the changes of rows that follow from an entry. `content` is the artifact whose capture it adds; `None` if its
/// bytes were removed later, with everything that follows from them.
pub(crate) fn apply<'c>(entry: &RecordedEntry, content: Option<&'c Prepared>) -> Vec<RowChange<'c>> {
    let (seq, actor) = (entry.head().seq, entry.actor.as_deref());
    let Entry::Add { core, capture, .. } = entry.change else {
        return journaled(seq, entry.at, actor, &entry.change);
    };
    let Some(content) = content else { return vec![RowChange::Readmit { core }] };
    let mut changes = vec![RowChange::Insert(Row::Kind(content.admitted().kind()))];
    changes.extend(journaled(seq, entry.at, actor, &entry.change));
    changes.push(RowChange::Store { core, capture, content });
    changes.extend(facts(core, content.admitted()).map(RowChange::Insert));
    changes
}

/// Returns the changes of rows that follow from an entry alone, without the bytes of what it adds. It has the number `seq`
/// and is by `actor`.
pub(crate) fn journaled<'c>(
    seq: u64,
    time: DateTime<Utc>,
    actor: Option<&str>,
    change: &Entry,
) -> Vec<RowChange<'c>> {
    let at = time.timestamp_millis();
    match change {
        Entry::Add { core, capture, kind, size, source_path } => {
            let (core, capture, arrival) = (*core, *capture, arrival(seq.cast_signed(), 0));
            vec![
                RowChange::Readmit { core },
                RowChange::Insert(Row::Artifact {
                    core,
                    entry: seq,
                    kind: kind.clone(),
                    added_at: at,
                    seen_at: at,
                    arrival,
                }),
                RowChange::Arrive { core, at, arrival },
                RowChange::Put(Row::Capture {
                    core,
                    capture,
                    entry: seq,
                    size: *size,
                    added_at: at,
                    seen_at: at,
                    source_path: source_path.clone(),
                }),
                // A capture that was lost and is added again has the signature that is recorded after this.
                RowChange::Delete(RowKey::Signature(core, capture)),
            ]
        }
        Entry::Seen { captures, cores } => see(seq, at, captures, cores),
        Entry::Signature { capture, core, key_id, state } => vec![RowChange::Put(Row::Signature {
            core: *core,
            capture: *capture,
            state: state.clone(),
            key_id: key_id.clone(),
        })],
        Entry::Link { note, relation, source, target } => vec![RowChange::Put(Row::Link {
            source: *source,
            relation: relation.clone(),
            target: *target,
            note: note.clone(),
            at,
        })],
        Entry::Unlink { relation, source, target } => {
            vec![RowChange::Delete(RowKey::Link(*source, relation.clone(), *target))]
        }
        Entry::Tag { core, name } => {
            vec![RowChange::Put(Row::Tag { name: name.clone(), core: *core, at })]
        }
        Entry::Untag { name, .. } => vec![RowChange::Delete(RowKey::Tag(name.clone()))],
        Entry::Pin { core, note } => {
            vec![RowChange::Put(Row::Pin { core: *core, note: note.clone(), at })]
        }
        Entry::Unpin { core } => vec![RowChange::Delete(RowKey::Pin(*core))],
        Entry::Note { core, note: Some(text) } => {
            vec![RowChange::Put(Row::Note { core: *core, text: text.clone(), at })]
        }
        Entry::Note { core, note: None } => vec![RowChange::Delete(RowKey::Note(*core))],
        Entry::Label { cores, labels } => {
            let row = |core: &CoreHash, (key, value): (&String, &String)| {
                RowChange::Put(Row::Label { core: *core, key: key.clone(), value: value.clone(), at })
            };
            cores.iter().flat_map(|core| labels.iter().map(move |label| row(core, label))).collect()
        }
        Entry::Unlabel { cores, keys } => {
            let key = |core: &CoreHash, key: &String| RowChange::Delete(RowKey::Label(*core, key.clone()));
            cores.iter().flat_map(|core| keys.iter().map(move |name| key(core, name))).collect()
        }
        Entry::Remove { captures, core, left, .. } => {
            let removal = (*left == 0).then_some(RowChange::Remove { core: *core });
            let digests = captures.iter().map(|capture| capture.0).chain([core.0]);
            let tombstones = digests.filter_map(|digest| Tombstone::new(change, digest, seq, time, actor));
            let put = |tombstone| RowChange::Put(Row::Tombstone(Box::new(tombstone)));
            removal.into_iter().chain(tombstones.map(put)).collect()
        }
        Entry::AllowRemoved { core, .. } => vec![RowChange::Readmit { core: *core }],
        // What follows from an unknown entry is unknown, and checks say so.
        Entry::Gc { .. } | Entry::Reindex { .. } | Entry::Repair { .. } | Entry::Unknown => Vec::new(),
    }
}

fn see<'c>(seq: u64, at: i64, captures: &[CaptureHash], cores: &[CoreHash]) -> Vec<RowChange<'c>> {
    let mut changes = Vec::with_capacity(captures.len() * 2);
    for (position, (capture, core)) in (0..).zip(captures.iter().zip(cores)) {
        changes.push(RowChange::See { core: *core, capture: *capture, at });
        changes.push(RowChange::Arrive { core: *core, at, arrival: arrival(seq.cast_signed(), position) });
    }
    changes
}

/// Returns the rows of what an artifact states that have a value of their own.
pub(crate) fn facts(core: CoreHash, admitted: &Admitted) -> impl Iterator<Item = Row> + use<'_> {
    let draft = admitted.draft();
    let attributes = draft.attributes.iter().map(move |attribute| Row::Attribute {
        core,
        name: attribute.name.to_owned(),
        value: attribute.value.clone(),
        number: attribute.number,
    });
    let names = draft
        .identified_by
        .iter()
        .map(move |handle| Row::Identity { core, handle: handle.as_str().to_owned() });
    let mentions = draft.refers_to.iter().map(move |(relation, handle)| Row::NameMention {
        core,
        relation: relation.name.to_owned(),
        handle: handle.as_str().to_owned(),
        dangles: relation.dangles,
    });
    attributes.chain(names).chain(mentions)
}

/// Returns all rows that follow from the bytes of a capture.
pub(crate) fn rows_of(admitted: &Admitted) -> Vec<Row> {
    let (core, capture, draft) = (admitted.core(), admitted.capture(), admitted.draft());
    let mut rows: Vec<Row> = facts(core, admitted).collect();
    rows.extend(admitted.members().iter().map(|member| Row::Member {
        core,
        capture,
        name: member.name().to_owned(),
        blob: member.blob(),
    }));
    for run in draft.mentions.chunk_by(|one, other| one.role == other.role) {
        let Some(first) = run.first() else { continue };
        let role = Arc::new(MentionRole::new(admitted.kind(), first.role));
        rows.extend(run.iter().map(|mention| Row::Mention {
            core,
            role: role.clone(),
            place: mention.place.clone(),
            digest: mention.digest,
        }));
    }
    rows
}
