//! The facts by which an artifact can be found, from the index and from admission.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::sync::Arc;

use rusqlite::Row;

use super::finding::{Finding, FindingInfo, INDEX_MISSING, INDEX_SURPLUS, MENTIONS_MISSING, Subject};
use super::{CheckedArtifact, Inspection};
use crate::artifact::{Admitted, Place, Role};
use crate::digest::Digest;
use crate::storage::sqlite::lists::Stated;
use crate::storage::sqlite::{Result, mention_index};

/// Maximum number of characters of a fact that are shown.
const SHOWN_CHARACTERS: usize = 300;

/// The facts by which an artifact can be found.
#[derive(Debug, Default)]
pub struct Facts {
    mentions: Vec<MentionFact>,
    attributes: Vec<AttributeFact>,
    names: Vec<Name>,
    references: Vec<ReferenceFact>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RoleFact {
    kind: String,
    name: String,
    group: String,
    unit: String,
    relation: Option<String>,
    dangles: bool,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct MentionFact {
    role: Arc<RoleFact>,
    place: Place,
    digest: Digest,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct AttributeFact {
    name: String,
    value: String,
    number: Option<i64>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Name(String);

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ReferenceFact {
    relation: String,
    handle: String,
    dangles: bool,
}

impl Facts {
    /// Creates the facts of an admitted artifact.
    #[must_use]
    pub fn from_admitted(admitted: &Admitted) -> Self {
        let draft = admitted.draft();
        let mut mentions = Vec::with_capacity(draft.mentions.len());
        for run in draft.mentions.chunk_by(|one, other| one.role == other.role) {
            let Some(role) =
                run.first().map(|mention| Arc::new(RoleFact::new(admitted.kind().name(), mention.role)))
            else {
                continue;
            };
            mentions.extend(run.iter().map(|mention| MentionFact {
                role: role.clone(),
                place: mention.place.clone(),
                digest: mention.digest,
            }));
        }
        let attributes = draft.attributes.iter().map(|one| AttributeFact {
            name: one.name.to_owned(),
            value: one.value.clone(),
            number: one.number,
        });
        let references = draft.refers_to.iter().map(|(relation, handle)| ReferenceFact {
            relation: relation.name.to_owned(),
            handle: handle.as_str().to_owned(),
            dangles: relation.dangles,
        });
        Self {
            mentions,
            attributes: attributes.collect(),
            names: draft.identified_by.iter().map(|handle| Name(handle.as_str().to_owned())).collect(),
            references: references.collect(),
        }
    }

    /// Adds the facts of another capture of the same artifact.
    pub fn add(&mut self, mut other: Self) {
        self.mentions.append(&mut other.mentions);
        self.attributes.append(&mut other.attributes);
        self.names.append(&mut other.names);
        self.references.append(&mut other.references);
    }

    /// Reports what the artifact's index entries lack of these facts, and, if `are_complete`, what they contain beyond
    /// them.
    #[must_use]
    pub fn compare(self, stored: Self, subject: &Subject, are_complete: bool) -> Vec<Finding> {
        let mut comparison = Comparison { subject, are_complete, findings: Vec::new() };
        comparison.compare("mention", self.mentions, stored.mentions);
        comparison.compare("attribute", self.attributes, stored.attributes);
        comparison.compare("name", self.names, stored.names);
        comparison.compare("reference", self.references, stored.references);
        comparison.findings
    }
}

struct Comparison<'s> {
    subject: &'s Subject,
    are_complete: bool,
    findings: Vec<Finding>,
}

impl Comparison<'_> {
    fn compare<T: Ord + Display>(&mut self, what: &str, mut expected: Vec<T>, mut stored: Vec<T>) {
        for facts in [&mut expected, &mut stored] {
            facts.sort_unstable();
            facts.dedup();
        }
        self.report(INDEX_MISSING, what, &expected, &stored);
        if self.are_complete {
            self.report(INDEX_SURPLUS, what, &stored, &expected);
        }
    }

    /// Reports at most one finding, however many facts are missing: a damaged list could contain any number.
    fn report<T: Ord + Display>(&mut self, info: FindingInfo, what: &str, some: &[T], others: &[T]) {
        let mut lacking = some.iter().filter(|fact| others.binary_search(fact).is_err());
        let Some(first) = lacking.next() else { return };
        let first = shortened(&first.to_string());
        let detail = match lacking.count() {
            0 => format!("{what} {first}"),
            more => format!("{what} {first} and {more} more"),
        };
        self.findings.push(Finding::new(info, self.subject.clone(), detail));
    }
}

/// Truncates a text, which may be megabytes long.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARACTERS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

impl RoleFact {
    fn new(kind: &str, role: &Role) -> Self {
        Self {
            kind: kind.to_owned(),
            name: role.name.to_owned(),
            group: role.group.to_owned(),
            unit: role.unit.to_owned(),
            relation: role.relation.map(|relation| relation.name.to_owned()),
            dangles: role.relation.is_some_and(|relation| relation.dangles),
        }
    }
}

impl Display for MentionFact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RoleFact { kind, name, group, unit, relation, dangles } = &*self.role;
        write!(f, "{name} {} {}", self.place, self.digest)?;
        // The rest of the role matters only if it differs, but is always printed.
        let relation = relation.as_deref().unwrap_or("no relation");
        write!(f, " ({kind}, {group}, {unit:?}, {relation}{})", if *dangles { ", dangles" } else { "" })
    }
}

impl Display for AttributeFact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.name, self.value)?;
        // The number follows from the value, and is printed because only it may differ.
        self.number.map_or(Ok(()), |number| write!(f, " ({number})"))
    }
}

impl Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Display for ReferenceFact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.relation, self.handle, if self.dangles { " (dangles)" } else { "" })
    }
}

impl Inspection<'_> {
    /// Returns the indexed facts of an artifact, or `None` and a finding if they cannot be read.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read for a reason other than damage.
    pub fn facts(&self, artifact: &CheckedArtifact, findings: &mut Vec<Finding>) -> Result<Option<Facts>> {
        let id = artifact.id.0;
        let attribute =
            |row: &Row<'_>| Ok(AttributeFact { name: row.get(0)?, value: row.get(1)?, number: row.get(2)? });
        let reference = |row: &Row<'_>| {
            Ok(ReferenceFact { relation: row.get(0)?, handle: row.get(1)?, dangles: row.get(2)? })
        };
        self.look(Subject::Artifact(artifact.core), findings, || {
            Ok(Facts {
                mentions: self.mentions(id)?,
                attributes: self.all(
                    "SELECT v.name, v.value, v.number FROM attribute a JOIN attribute_value v ON v.id = a.value
                      WHERE a.artifact = ?1",
                    id,
                    attribute,
                )?,
                names: self
                    .all("SELECT handle FROM identity WHERE artifact = ?1", id, |row| row.get(0).map(Name))?,
                references: self.all(
                    "SELECT relation, handle, dangles FROM name_mention WHERE artifact = ?1",
                    id,
                    reference,
                )?,
            })
        })
    }

    /// Adds a finding if the artifact's captures mention digests that are missing from the mention index.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read for a reason other than damage.
    pub fn unlisted(&self, artifact: &CheckedArtifact, findings: &mut Vec<Finding>) -> Result<()> {
        let mut unlisted = 0;
        let subject = || Subject::Artifact(artifact.core);
        self.look(subject(), findings, || {
            for capture in
                self.all("SELECT id FROM capture WHERE artifact = ?1", artifact.id.0, |row| row.get(0))?
            {
                for key in self.keys(capture)? {
                    if mention_index::captures(&self.connection, key)?.binary_search(&capture).is_err() {
                        unlisted += 1;
                    }
                }
            }
            Ok(())
        })?;
        if unlisted > 0 {
            findings.push(Finding::new(
                MENTIONS_MISSING,
                subject(),
                format!("{unlisted} of the digests it mentions"),
            ));
        }
        Ok(())
    }

    /// Returns the keys of the digests that a capture mentions, without duplicates.
    pub(super) fn keys(&self, capture: i64) -> rusqlite::Result<Vec<u64>> {
        let mut keys: Vec<u64> = self
            .lists()
            .for_capture(capture)?
            .iter()
            .map(|stated| mention_index::key(&stated.digest))
            .collect();
        keys.sort_unstable();
        keys.dedup();
        Ok(keys)
    }

    fn mentions(&self, artifact: i64) -> rusqlite::Result<Vec<MentionFact>> {
        let mut roles: BTreeMap<i64, Arc<RoleFact>> = BTreeMap::new();
        let mut mentions = Vec::new();
        for Stated { role, place, digest } in self.lists().for_artifact(artifact)? {
            let role = if let Some(known) = roles.get(&role) {
                known.clone()
            } else {
                let fact = Arc::new(self.role(role)?);
                roles.insert(role, fact.clone());
                fact
            };
            mentions.push(MentionFact { role, place, digest });
        }
        Ok(mentions)
    }

    fn role(&self, id: i64) -> rusqlite::Result<RoleFact> {
        let sql = "SELECT k.name, r.name, r.role_group, r.unit, r.relation, r.dangles
                     FROM role r LEFT JOIN kind k ON k.id = r.kind WHERE r.id = ?1";
        let role = self.connection.prepare_cached(sql)?.query_row([id], |row| {
            Ok(RoleFact {
                kind: row.get::<_, Option<String>>(0)?.unwrap_or_default(),
                name: row.get(1)?,
                group: row.get(2)?,
                unit: row.get(3)?,
                relation: row.get(4)?,
                dangles: row.get(5)?,
            })
        });
        match role {
            Err(rusqlite::Error::QueryReturnedNoRows) => Ok(RoleFact {
                kind: String::new(),
                name: format!("role {id}, which does not exist,"),
                group: String::new(),
                unit: String::new(),
                relation: None,
                dangles: false,
            }),
            role => role,
        }
    }

    fn all<T>(
        &self,
        sql: &str,
        id: i64,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        self.connection.prepare_cached(sql)?.query_map([id], read)?.collect()
    }
}
