//! Links that follow from what artifacts identify and mention, and links that people state.
//!
//! Nearly all derived ones are one join: A is linked to B when A mentions a handle that B identifies. Kinds declare both
//! sides, so nothing here knows what links to what, and the order of arrival cannot matter. Two relations need more than
//! one handle and stand here by name:
//!
//! - `replays`: a run and a session share a prompt *and* its response. One of them alone is no replay: the same prompt
//!   is often asked again and answered otherwise.
//! - `forks`: two traces share their header and have different records at one index, or two run packs share the id of
//!   their run and have different steps at one index. One that only ends earlier is no fork.

use std::collections::BTreeMap;

use super::exchanges::{Exchanges, Known};
use super::forks::{self, Fork, Shared};
use crate::digest::Digest;
use crate::store::{ArtifactId, ArtifactRow, MentionRow, Result, Snapshot};

/// From where a link is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// The artifact relates to the other.
    Out,
    /// The other relates to the artifact.
    In,
}

/// The other end of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkTarget {
    /// An artifact in the vault.
    Artifact(ArtifactRow),
    /// Nothing in the vault has this core hash, yet.
    MissingDigest(Digest),
    /// Nothing in the vault has this name, yet.
    MissingName(String),
}

impl LinkTarget {
    /// What tells targets apart, in the order of answers: artifacts first, each sort by hash or name.
    #[must_use]
    pub fn key(&self) -> (u8, String) {
        match self {
            Self::Artifact(artifact) => (0, artifact.core.to_string()),
            Self::MissingDigest(digest) => (1, digest.to_string()),
            Self::MissingName(name) => (2, name.clone()),
        }
    }
}

/// Where a link comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It follows from what the artifacts say; this is the first of the places that make it, in words.
    Derived(String),
    /// A person stated it, with this note.
    Stated(Option<String>),
}

/// A typed edge between an artifact and another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// From where it is seen.
    pub direction: Direction,
    /// The relation of the one that relates to the other.
    pub relation: String,
    /// The other end.
    pub target: LinkTarget,
    /// Why there is a link.
    pub origin: Origin,
}

/// All links of `artifact`, outgoing ones first, by relation and target.
///
/// # Errors
/// What the database says.
pub fn links(snapshot: &Snapshot<'_>, artifact: &ArtifactRow) -> Result<Vec<Link>> {
    links_knowing(snapshot, artifact, &mut Known::default())
}

/// Finds the links of many artifacts of one snapshot. What several of them have in common is looked up once.
#[derive(Default)]
pub struct Linker {
    known: Known,
}

impl Linker {
    /// All links of `artifact`, as [`links`] gives them.
    ///
    /// # Errors
    /// What the database says.
    pub fn links(&mut self, snapshot: &Snapshot<'_>, artifact: &ArtifactRow) -> Result<Vec<Link>> {
        self.known.forget_what_is_too_much();
        links_knowing(snapshot, artifact, &mut self.known)
    }
}

/// The same for who asks for the links of many.
pub(super) fn links_knowing(
    snapshot: &Snapshot<'_>,
    artifact: &ArtifactRow,
    known: &mut Known,
) -> Result<Vec<Link>> {
    let mut found = Found { snapshot, links: BTreeMap::new() };
    found.stated(artifact)?;
    found.by_digest(artifact)?;
    found.by_name(artifact)?;
    found.replays(artifact, known)?;
    found.forks(artifact)?;
    Ok(found.links.into_values().collect())
}

/// The links of `artifact` that say by a hash or a name which the other one is, or that a person stated: all but `replays`,
/// which may be a coincidence, and `forks`, which have no direction.
///
/// # Errors
/// Returns an error if the database cannot be read.
pub(super) fn stated_links(snapshot: &Snapshot<'_>, artifact: &ArtifactRow) -> Result<Vec<Link>> {
    let mut found = Found { snapshot, links: BTreeMap::new() };
    found.stated(artifact)?;
    found.by_digest(artifact)?;
    found.by_name(artifact)?;
    Ok(found.links.into_values().collect())
}

/// Whether a person stated it counts: such a link stands beside a derived one.
type LinkKey = (Direction, String, (u8, String), bool);

struct Found<'s> {
    snapshot: &'s Snapshot<'s>,
    /// One link for each relation and target, however many places make it.
    links: BTreeMap<LinkKey, Link>,
}

impl Found<'_> {
    fn add(&mut self, direction: Direction, relation: &str, target: LinkTarget, origin: Origin) {
        let key = (direction, relation.to_owned(), target.key(), matches!(origin, Origin::Stated(_)));
        let link = Link { direction, relation: relation.to_owned(), target, origin };
        self.links.entry(key).or_insert(link);
    }

    fn derive(&mut self, direction: Direction, relation: &str, target: LinkTarget, because: String) {
        self.add(direction, relation, target, Origin::Derived(because));
    }

    fn artifact(&self, id: ArtifactId) -> Result<LinkTarget> {
        self.snapshot.artifact_by_id(id).map(LinkTarget::Artifact)
    }

    fn stated(&mut self, artifact: &ArtifactRow) -> Result<()> {
        for edge in self.snapshot.stated_edges(artifact.id)? {
            let origin = Origin::Stated(edge.note);
            if edge.source == artifact.id {
                self.add(Direction::Out, &edge.relation, self.artifact(edge.target)?, origin.clone());
            }
            if edge.target == artifact.id {
                self.add(Direction::In, &edge.relation, self.artifact(edge.source)?, origin);
            }
        }
        Ok(())
    }

    fn by_digest(&mut self, artifact: &ArtifactRow) -> Result<()> {
        for edge in self.snapshot.digest_edges_from(artifact.id)? {
            let because = format!("{} states its core hash", place(&edge.mention));
            let Some(target) = edge.target else {
                let target = LinkTarget::MissingDigest(edge.mention.digest);
                self.derive(Direction::Out, &edge.relation, target, place(&edge.mention));
                continue;
            };
            let target = self.artifact(target)?;
            if let Some(inverse) = edge.inverse {
                self.derive(Direction::In, &inverse, target.clone(), because.clone());
            }
            self.derive(Direction::Out, &edge.relation, target, because);
        }
        for edge in self.snapshot.digest_edges_to(artifact)? {
            let because = format!("{} of the other states this core hash", place(&edge.mention));
            let target = self.artifact(edge.mention.artifact)?;
            if let Some(inverse) = edge.inverse {
                self.derive(Direction::Out, &inverse, target.clone(), because.clone());
            }
            self.derive(Direction::In, &edge.relation, target, because);
        }
        Ok(())
    }

    fn by_name(&mut self, artifact: &ArtifactRow) -> Result<()> {
        for edge in self.snapshot.name_edges_from(artifact.id)? {
            let (target, because) = match edge.target {
                Some(target) => (self.artifact(target)?, format!("it is {}", edge.handle)),
                None => {
                    (LinkTarget::MissingName(edge.handle), "nothing in the vault has this name".to_owned())
                }
            };
            self.derive(Direction::Out, &edge.relation, target, because);
        }
        for edge in self.snapshot.name_edges_to(artifact.id)? {
            let target = self.artifact(edge.artifact)?;
            self.derive(Direction::In, &edge.relation, target, format!("this is {}", edge.handle));
        }
        Ok(())
    }

    fn replays(&mut self, artifact: &ArtifactRow, known: &mut Known) -> Result<()> {
        let exchanges = Exchanges::of(self.snapshot, artifact.id)?;
        for (other, (ours, theirs)) in exchanges.shared_with_others(self.snapshot, artifact.id, known)? {
            let target = self.artifact(other)?;
            if exchanges.is_recording() {
                let because = format!("{theirs} has the prompt and the response of {ours}");
                self.derive(Direction::In, "replays", target, because);
            } else {
                let because = format!("{ours} has the prompt and the response of {theirs}");
                self.derive(Direction::Out, "replays", target, because);
            }
        }
        Ok(())
    }

    fn forks(&mut self, artifact: &ArtifactRow) -> Result<()> {
        let (forks, _) = forks::forks_of(self.snapshot, artifact, usize::MAX)?;
        for Fork { shared, index, sides: [_, (other, _)] } in forks {
            let because = match shared {
                Shared::Header(_) => format!("same header, different record {index}"),
                Shared::RunId(id) => format!("same run id {id}, different step {index}"),
            };
            // Neither of two histories came first, so a fork is seen the same from both sides.
            self.derive(Direction::Out, "forks", LinkTarget::Artifact(other), because);
        }
        Ok(())
    }
}

/// The place of a mention in words: `interaction 3`, or its pointer.
pub(super) fn place(mention: &MentionRow) -> String {
    match mention.unit.as_str() {
        "" => mention.place.to_string(),
        unit => format!("{unit} {}", mention.place),
    }
}
