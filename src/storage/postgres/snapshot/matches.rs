//! Matches of artifacts with the conditions of a filter.

use std::collections::{BTreeMap, BTreeSet};

use crate::digest::{CoreHash, Digest};
use crate::storage::interface::{ArtifactRecord, Condition, Filter, Match};
use crate::storage::postgres::columns::core;
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::view::PostgresSnapshot;
use crate::storage::sql;

/// The matches of one condition by artifact.
type MatchesByArtifact = BTreeMap<CoreHash, Vec<Match>>;

impl PostgresSnapshot<'_> {
    /// Returns the matches of each artifact, in the order of the conditions; those of one condition by artifact.
    pub(super) fn matches(
        &self,
        artifacts: &[ArtifactRecord],
        filter: &Filter,
    ) -> PostgresResult<Vec<Vec<Match>>> {
        let mut matches = vec![Vec::new(); artifacts.len()];
        if artifacts.is_empty() || filter.conditions.is_empty() {
            return Ok(matches);
        }
        let cores: Vec<CoreHash> = artifacts.iter().map(|artifact| artifact.core).collect();
        let scopes = if filter.through_members {
            self.with_contained(&cores)?
        } else {
            cores.iter().map(|core| (*core, BTreeSet::from([*core]))).collect()
        };
        let all: Vec<CoreHash> =
            scopes.values().flatten().copied().collect::<BTreeSet<_>>().into_iter().collect();
        for condition in &filter.conditions {
            if let Some(certain) = condition.certain_match().filter(|_| !filter.through_members) {
                for matches in &mut matches {
                    matches.push(certain.clone());
                }
                continue;
            }
            let found = self.matches_of(&all, condition)?;
            for (core, matches) in cores.iter().zip(&mut matches) {
                let scope = scopes.get(core).into_iter().flatten();
                matches.extend(scope.filter_map(|core| found.get(core)).flatten().cloned());
            }
        }
        Ok(matches)
    }

    fn matches_of(&self, of: &[CoreHash], condition: &Condition) -> PostgresResult<MatchesByArtifact> {
        match condition {
            Condition::Mention { group, digest } => self.mention_matches(of, group.as_deref(), *digest),
            Condition::About { digest } => self.hash_matches(of, *digest),
            Condition::Attribute { name, .. }
            | Condition::AttributeLike { name, .. }
            | Condition::Range { name, .. } => {
                let attributes = sql::attributes_named(&self.session, of, name)?;
                Ok(by_artifact(of, attributes, |found| condition.matches_of_attributes(found)))
            }
            Condition::Signature { .. } => Ok(by_artifact(of, sql::captures(&self.session, of)?, |found| {
                condition.matches_of_captures(found)
            })),
            Condition::Note { .. }
            | Condition::Tagged { .. }
            | Condition::Label { .. }
            | Condition::LabelLike { .. }
            | Condition::Pinned => {
                let annotations = sql::annotations(&self.session, of)?;
                Ok(by_artifact(of, annotations, |found| condition.matches_of_annotations(found)))
            }
        }
    }

    fn mention_matches(
        &self,
        of: &[CoreHash],
        group: Option<&str>,
        digest: Digest,
    ) -> PostgresResult<MatchesByArtifact> {
        let mentions = self.mentions_with(&[digest], group, Some(of))?.remove(&digest);
        let mut found = MatchesByArtifact::new();
        for mention in mentions.unwrap_or_default() {
            found.entry(mention.artifact).or_default().push(Match::Mention(mention));
        }
        Ok(found)
    }

    /// Returns the artifacts that have the digest as their hash or as that of a capture, and the mentions of it.
    fn hash_matches(&self, of: &[CoreHash], digest: Digest) -> PostgresResult<MatchesByArtifact> {
        let sql = "SELECT a.core FROM artifact a
                    WHERE a.core = ANY($1)
                      AND (a.core = $2 OR EXISTS (SELECT 1 FROM capture c WHERE c.artifact = a.id AND c.digest = $2))";
        let rows = self.session.rows(sql, &[&of, &digest])?;
        let own = rows.iter().map(|row| Ok((core(row, 0)?, vec![Match::Hash(digest)])));
        let mut found: MatchesByArtifact = own.collect::<PostgresResult<_>>()?;
        for (artifact, mut mentions) in self.mention_matches(of, None, digest)? {
            found.entry(artifact).or_default().append(&mut mentions);
        }
        Ok(found)
    }
}

/// Returns the matches in what was found of each artifact.
fn by_artifact<T>(of: &[CoreHash], found: Vec<T>, matches: impl Fn(T) -> Vec<Match>) -> MatchesByArtifact {
    of.iter().copied().zip(found.into_iter().map(matches)).collect()
}
