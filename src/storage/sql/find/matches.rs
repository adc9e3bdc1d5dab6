//! Matches of artifacts with the conditions of a filter.

use std::collections::{BTreeSet, HashMap};

use super::super::{SqlSession, annotations, attributes_named, captures, read_rows};
use super::statements::PlacedArtifact;
use super::{
    ContainedArtifacts, FindSnapshot, NumberedArtifact, PlacedHit, ResolvedCondition, ResolvedQuery,
};
use crate::digest::{CoreHash, Digest};
use crate::storage::Result;
use crate::storage::interface::{Condition, Hit, Match};

/// The matches of one condition by artifact.
type MatchesByArtifact = HashMap<CoreHash, Vec<Match>>;

impl<S: FindSnapshot> ResolvedQuery<'_, S> {
    /// Returns those of these artifacts that match all conditions, with their matches in the order of the conditions.
    pub(super) fn hits(&self, artifacts: Vec<PlacedArtifact>) -> Result<Vec<PlacedHit>> {
        let mut matches = vec![Some(Vec::new()); artifacts.len()];
        if !artifacts.is_empty() && !self.conditions.is_empty() {
            let numbered = |PlacedArtifact { artifact, .. }: &PlacedArtifact| NumberedArtifact {
                core: artifact.core,
                number: artifact.addition.cast_signed(),
            };
            self.add_matches(&artifacts.iter().map(numbered).collect::<Vec<_>>(), &mut matches)?;
        }
        let hit = |(PlacedArtifact { artifact, place, .. }, matches): (_, Option<_>)| {
            Some((Hit { artifact, matches: matches? }, place))
        };
        Ok(artifacts.into_iter().zip(matches).filter_map(hit).collect())
    }

    /// Adds the matches of each of these artifacts: nothing if it does not match a condition.
    fn add_matches(&self, of: &[NumberedArtifact], matches: &mut [Option<Vec<Match>>]) -> Result<()> {
        let scopes: ContainedArtifacts = if self.filter.through_members {
            self.snapshot.with_contained(of)?
        } else {
            of.iter().map(|artifact| (artifact.core, BTreeSet::from([*artifact]))).collect()
        };
        let all: BTreeSet<NumberedArtifact> = scopes.values().flatten().copied().collect();
        let all: Vec<NumberedArtifact> = all.into_iter().collect();
        for condition in &self.conditions {
            let is_certain = self.is_stated(condition) && !self.filter.through_members;
            if let Some(certain) = condition.condition.certain_match().filter(|_| is_certain) {
                matches.iter_mut().flatten().for_each(|matches| matches.push(certain.clone()));
                continue;
            }
            let found = self.matches_of(&all, condition)?;
            for (artifact, matches) in of.iter().zip(matches.iter_mut()) {
                let scope = scopes.get(&artifact.core).into_iter().flatten();
                let mut own = scope.filter_map(|part| found.get(&part.core)).flatten().peekable();
                match matches {
                    Some(known) if own.peek().is_some() => known.extend(own.cloned()),
                    _ => *matches = None,
                }
            }
        }
        Ok(())
    }

    fn matches_of(
        &self,
        artifacts: &[NumberedArtifact],
        condition: &ResolvedCondition<'_>,
    ) -> Result<MatchesByArtifact> {
        let (session, answer) = (self.snapshot.session(), condition.condition);
        let of = &artifacts.iter().map(|artifact| artifact.core).collect::<Vec<CoreHash>>()[..];
        match answer {
            Condition::Mention { .. } => self.mention_matches(artifacts, condition),
            Condition::About { digest } => self.hash_matches(artifacts, *digest, condition),
            Condition::Attribute { name, .. }
            | Condition::AttributeLike { name, .. }
            | Condition::Range { name, .. } => {
                let found = self.snapshot.answer(attributes_named(session, of, name))?;
                Ok(by_artifact(of, found, |found| answer.matches_of_attributes(found)))
            }
            Condition::Signature { .. } => {
                let found = self.snapshot.answer(captures(session, of))?;
                Ok(by_artifact(of, found, |found| answer.matches_of_captures(found)))
            }
            Condition::Note { .. }
            | Condition::Tagged { .. }
            | Condition::Label { .. }
            | Condition::LabelLike { .. }
            | Condition::Pinned => {
                let found = self.snapshot.answer(annotations(session, of))?;
                Ok(by_artifact(of, found, |found| answer.matches_of_annotations(found)))
            }
        }
    }

    fn mention_matches(
        &self,
        of: &[NumberedArtifact],
        condition: &ResolvedCondition<'_>,
    ) -> Result<MatchesByArtifact> {
        let Some(mention) = &condition.mention else { return Ok(MatchesByArtifact::new()) };
        let found = self.snapshot.mentions_among(of, mention)?.into_iter();
        Ok(found.map(|(core, mentions)| (core, mentions.into_iter().map(Match::Mention).collect())).collect())
    }

    /// Returns the artifacts that have the digest as their hash or as that of a capture, and the mentions of it.
    fn hash_matches(
        &self,
        of: &[NumberedArtifact],
        digest: Digest,
        condition: &ResolvedCondition<'_>,
    ) -> Result<MatchesByArtifact> {
        let dialect = S::Session::DIALECT;
        let sql = format!(
            "SELECT a.core FROM {} WHERE a.core = ?2
                OR EXISTS (SELECT 1 FROM {} WHERE c.artifact = a.id AND {} = ?2)",
            dialect.artifacts("?1"),
            dialect.captures(),
            dialect.capture_hash()
        );
        let cores: Vec<CoreHash> = of.iter().map(|artifact| artifact.core).collect();
        let parameters = [cores[..].into(), (&digest).into()];
        let own = read_rows(self.snapshot.session(), &sql, &parameters, |row| row.core(0));
        let own = self.snapshot.answer(own)?.into_iter();
        let mut found: MatchesByArtifact = own.map(|core| (core, vec![Match::Hash(digest)])).collect();
        for (core, mut mentions) in self.mention_matches(of, condition)? {
            found.entry(core).or_default().append(&mut mentions);
        }
        Ok(found)
    }
}

/// Returns the matches in what was found of each artifact.
fn by_artifact<T>(of: &[CoreHash], found: Vec<T>, matches: impl Fn(T) -> Vec<Match>) -> MatchesByArtifact {
    of.iter().copied().zip(found.into_iter().map(matches)).collect()
}
