//! The facts by which an artifact can be found, from the index and from admission.

use std::fmt::{self, Display};
use std::sync::Arc;

use super::finding::{Finding, FindingInfo, MISSING_ROW, SURPLUS_ROW, Subject};
use crate::artifact::{Admitted, ArtifactLocation, Role};
use crate::digest::Digest;

/// Maximum number of characters of a fact that are shown.
const SHOWN_CHARACTERS: usize = 300;

/// The facts by which an artifact can be found.
#[derive(Debug, Default)]
pub struct ArtifactFacts {
    pub(in crate::storage) mentions: Vec<MentionFact>,
    pub(in crate::storage) attributes: Vec<AttributeFact>,
    pub(in crate::storage) names: Vec<NameFact>,
    pub(in crate::storage) references: Vec<ReferenceFact>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::storage) struct RoleFact {
    pub(in crate::storage) kind: String,
    pub(in crate::storage) name: String,
    pub(in crate::storage) group: String,
    pub(in crate::storage) unit: String,
    pub(in crate::storage) relation: Option<String>,
    pub(in crate::storage) dangles: bool,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::storage) struct MentionFact {
    pub(in crate::storage) role: Arc<RoleFact>,
    pub(in crate::storage) place: ArtifactLocation,
    pub(in crate::storage) digest: Digest,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::storage) struct AttributeFact {
    pub(in crate::storage) name: String,
    pub(in crate::storage) value: String,
    pub(in crate::storage) number: Option<i64>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::storage) struct NameFact(pub(in crate::storage) String);

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::storage) struct ReferenceFact {
    pub(in crate::storage) relation: String,
    pub(in crate::storage) handle: String,
    pub(in crate::storage) dangles: bool,
}

impl ArtifactFacts {
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
            names: draft.identified_by.iter().map(|handle| NameFact(handle.as_str().to_owned())).collect(),
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
        let mut comparison = DerivedDataComparison { subject, are_complete, findings: Vec::new() };
        comparison.compare("mention", self.mentions, stored.mentions);
        comparison.compare("attribute", self.attributes, stored.attributes);
        comparison.compare("name", self.names, stored.names);
        comparison.compare("reference", self.references, stored.references);
        comparison.findings
    }
}

struct DerivedDataComparison<'s> {
    subject: &'s Subject,
    are_complete: bool,
    findings: Vec<Finding>,
}

impl DerivedDataComparison<'_> {
    fn compare<T: Ord + Display>(&mut self, what: &str, mut expected: Vec<T>, mut stored: Vec<T>) {
        for facts in [&mut expected, &mut stored] {
            facts.sort_unstable();
            facts.dedup();
        }
        self.report(MISSING_ROW, what, &expected, &stored);
        if self.are_complete {
            self.report(SURPLUS_ROW, what, &stored, &expected);
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

impl Display for NameFact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Display for ReferenceFact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.relation, self.handle, if self.dangles { " (dangles)" } else { "" })
    }
}
