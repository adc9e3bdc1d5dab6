//! Links that follow from what artifacts identify and mention.
//!
//! Nearly all of them are one join: A is linked to B when A mentions a handle that B identifies. Kinds declare both
//! sides, so nothing here knows what links to what, and the order of arrival cannot matter. Two relations need more than
//! one handle and stand here by name:
//!
//! - `replays`: a run and a session share a prompt *and* its response. One of them alone is no replay: the same prompt
//!   is often asked again and answered otherwise.
//! - `forks`: two traces share their header and have different records at one index. A single shared record is an
//!   extension, not a fork.

use std::collections::{BTreeMap, BTreeSet};

use crate::artifact::Place;
use crate::digest::Digest;
use crate::store::{ArtifactId, ArtifactRow, MentionRow, Result, Snapshot};

/// From where a link is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    fn sort_key(&self) -> (u8, String) {
        match self {
            Self::Artifact(artifact) => (0, artifact.core.to_string()),
            Self::MissingDigest(digest) => (1, digest.to_string()),
            Self::MissingName(name) => (2, name.clone()),
        }
    }
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
    /// Why there is a link: the first of the places that make it, in words.
    pub because: String,
}

/// All links of `artifact`, outgoing ones first, by relation and target.
///
/// # Errors
/// What the database says.
pub fn links(snapshot: &Snapshot<'_>, artifact: &ArtifactRow) -> Result<Vec<Link>> {
    let mut found = Found { snapshot, links: BTreeMap::new() };
    found.by_digest(artifact)?;
    found.by_name(artifact)?;
    found.replays(artifact)?;
    found.forks(artifact)?;
    Ok(found.links.into_values().collect())
}

type LinkKey = (Direction, String, (u8, String));

struct Found<'s> {
    snapshot: &'s Snapshot<'s>,
    /// One link for each relation and target, however many places make it.
    links: BTreeMap<LinkKey, Link>,
}

impl Found<'_> {
    fn add(&mut self, direction: Direction, relation: &str, target: LinkTarget, because: String) {
        let key = (direction, relation.to_owned(), target.sort_key());
        let link = Link { direction, relation: relation.to_owned(), target, because };
        self.links.entry(key).or_insert(link);
    }

    fn artifact(&self, id: ArtifactId) -> Result<LinkTarget> {
        self.snapshot.artifact_by_id(id).map(LinkTarget::Artifact)
    }

    fn by_digest(&mut self, artifact: &ArtifactRow) -> Result<()> {
        for edge in self.snapshot.digest_edges_from(artifact.id)? {
            let because = format!("{} states its core hash", place(&edge.mention));
            let Some(target) = edge.target else {
                let target = LinkTarget::MissingDigest(edge.mention.digest);
                self.add(Direction::Out, &edge.relation, target, place(&edge.mention));
                continue;
            };
            let target = self.artifact(target)?;
            if let Some(inverse) = edge.inverse {
                self.add(Direction::In, &inverse, target.clone(), because.clone());
            }
            self.add(Direction::Out, &edge.relation, target, because);
        }
        for edge in self.snapshot.digest_edges_to(artifact)? {
            let because = format!("{} of the other states this core hash", place(&edge.mention));
            let target = self.artifact(edge.mention.artifact)?;
            if let Some(inverse) = edge.inverse {
                self.add(Direction::Out, &inverse, target.clone(), because.clone());
            }
            self.add(Direction::In, &edge.relation, target, because);
        }
        Ok(())
    }

    fn by_name(&mut self, artifact: &ArtifactRow) -> Result<()> {
        for edge in self.snapshot.name_edges_from(artifact.id)? {
            let (target, because) = match edge.target {
                Some(target) => (self.artifact(target)?, format!("it is {}", edge.handle)),
                None => (LinkTarget::MissingName(edge.handle.clone()), edge.handle),
            };
            self.add(Direction::Out, &edge.relation, target, because);
        }
        for edge in self.snapshot.name_edges_to(artifact.id)? {
            let target = self.artifact(edge.artifact)?;
            self.add(Direction::In, &edge.relation, target, format!("this is {}", edge.handle));
        }
        Ok(())
    }

    /// Runs carry prompts and responses at different steps, sessions at the same interaction. So of two artifacts that
    /// share an exchange, the one whose exchange spans steps replays the other.
    fn replays(&mut self, artifact: &ArtifactRow) -> Result<()> {
        let exchanges = Exchanges::of(self.snapshot, artifact.id)?;
        for other in exchanges.candidates(self.snapshot, artifact.id)? {
            let theirs = Exchanges::of(self.snapshot, other)?;
            let (direction, run, session) = match (exchanges.is_recording, theirs.is_recording) {
                (false, true) => (Direction::Out, &exchanges, &theirs),
                (true, false) => (Direction::In, &theirs, &exchanges),
                _ => continue,
            };
            if let Some((step, interaction)) = run.first_shared(session) {
                let because = format!("{step} has the prompt and the response of {interaction}");
                let target = self.artifact(other)?;
                self.add(direction, "replays", target, because);
            }
        }
        Ok(())
    }

    fn forks(&mut self, artifact: &ArtifactRow) -> Result<()> {
        let records = self.records(artifact.id)?;
        let Some(header) = records.first().copied() else {
            return Ok(());
        };
        let same_header = self.snapshot.mentioning(header, Some("record"))?;
        let others: BTreeSet<ArtifactId> = same_header
            .into_iter()
            .filter(|row| row.place == Place::Index(0) && row.artifact != artifact.id)
            .map(|row| row.artifact)
            .collect();
        for other in others {
            let theirs = self.records(other)?;
            let fork = records.iter().zip(&theirs).position(|(ours, theirs)| ours != theirs);
            if let Some(index) = fork {
                let target = self.artifact(other)?;
                // Neither of two histories came first, so a fork is seen the same from both sides.
                self.add(Direction::Out, "forks", target, format!("same header, different record {index}"));
            }
        }
        Ok(())
    }

    /// The record hashes of a trace, in order.
    fn records(&self, artifact: ArtifactId) -> Result<Vec<Digest>> {
        Ok(self.snapshot.mentions_of(artifact, "record")?.into_iter().map(|row| row.digest).collect())
    }
}

/// Prompts of an artifact with the responses that answer them.
struct Exchanges {
    /// Whether each prompt stands at the place of its response, as in a session.
    is_recording: bool,
    pairs: BTreeMap<(Digest, Digest), String>,
}

impl Exchanges {
    /// The response to a prompt is what the first place at or after the prompt's carries, up to the next such place.
    fn of(snapshot: &Snapshot<'_>, artifact: ArtifactId) -> Result<Self> {
        let prompts = snapshot.mentions_of(artifact, "prompt")?;
        let responses = snapshot.mentions_of(artifact, "response")?;
        let mut pairs = BTreeMap::new();
        let mut is_recording = true;
        for prompt in &prompts {
            let first = responses.partition_point(|response| response.place < prompt.place);
            let answers = responses.get(first..).unwrap_or_default();
            let at = answers.first().map(|answer| &answer.place);
            is_recording &= at == Some(&prompt.place);
            for answer in answers.iter().take_while(|answer| Some(&answer.place) == at) {
                pairs.entry((prompt.digest, answer.digest)).or_insert_with(|| place(prompt));
            }
        }
        Ok(Self { is_recording, pairs })
    }

    /// Others that mention one of the prompts.
    fn candidates(&self, snapshot: &Snapshot<'_>, artifact: ArtifactId) -> Result<BTreeSet<ArtifactId>> {
        let prompts: BTreeSet<Digest> = self.pairs.keys().map(|(prompt, _)| *prompt).collect();
        let mut candidates = BTreeSet::new();
        for prompt in prompts {
            candidates
                .extend(snapshot.mentioning(prompt, Some("prompt"))?.into_iter().map(|row| row.artifact));
        }
        candidates.remove(&artifact);
        Ok(candidates)
    }

    /// Where both have the same exchange.
    fn first_shared<'e>(&'e self, other: &'e Self) -> Option<(&'e str, &'e str)> {
        self.pairs.iter().find_map(|(pair, ours)| Some((ours.as_str(), other.pairs.get(pair)?.as_str())))
    }
}

/// The place of a mention in words: `interaction 3`, or its pointer.
fn place(mention: &MentionRow) -> String {
    match mention.unit.as_str() {
        "" => mention.place.to_string(),
        unit => format!("{unit} {}", mention.place),
    }
}
