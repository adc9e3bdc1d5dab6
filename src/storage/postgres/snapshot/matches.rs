//! Matches of artifacts with the conditions of a filter.

use std::collections::{BTreeMap, BTreeSet};

use crate::artifact::SignatureName;
use crate::digest::{CoreHash, Digest};
use crate::storage::interface::{ArtifactRecord, Condition, Filter, Match, matches_pattern};
use crate::storage::postgres::columns::{capture, core, text, value};
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::snapshot::captures::signature;
use crate::storage::postgres::text::to_stored;
use crate::storage::postgres::view::PostgresSnapshot;

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
            | Condition::Range { name, .. } => self.attribute_matches(of, name, condition),
            Condition::Signature { state, key_id } => self.signature_matches(of, *state, key_id.as_deref()),
            Condition::Note { text } => self.note_matches(of, text),
            Condition::Tagged { name } => self.tag_matches(of, name.as_deref()),
            Condition::Label { key, value } => {
                let is_match = |found: &str| value.as_ref().is_none_or(|value| value == found);
                self.label_matches(of, key, &is_match)
            }
            Condition::LabelLike { key, pattern } => {
                self.label_matches(of, key, &|value| matches_pattern(pattern, value))
            }
            Condition::Pinned => {
                let sql =
                    "SELECT a.core FROM pin p JOIN artifact a ON a.id = p.artifact WHERE a.core = ANY($1)";
                let rows = self.session.rows(sql, &[&of])?;
                rows.iter().map(|row| Ok((core(row, 0)?, vec![Match::Pinned]))).collect()
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

    /// Returns the attributes of this name that match a condition on attributes.
    fn attribute_matches(
        &self,
        of: &[CoreHash],
        name: &str,
        condition: &Condition,
    ) -> PostgresResult<MatchesByArtifact> {
        let mut found = MatchesByArtifact::new();
        for (core, attributes) in of.iter().zip(self.attributes(of)?) {
            let mut attributes: Vec<_> =
                attributes.into_iter().filter(|attribute| attribute.name == name).collect();
            match condition {
                Condition::Attribute { value, .. } => {
                    attributes.retain(|attribute| attribute.value == *value);
                    attributes.truncate(1);
                }
                Condition::AttributeLike { pattern, .. } => {
                    attributes.retain(|attribute| matches_pattern(pattern, &attribute.value));
                    attributes.dedup_by(|one, other| one.value == other.value);
                }
                Condition::Range { least, most, .. } => {
                    let is_within = |number: i64| {
                        least.is_none_or(|least| number >= least) && most.is_none_or(|most| number <= most)
                    };
                    attributes.retain(|attribute| attribute.number.is_some_and(is_within));
                    attributes.sort_by_key(|attribute| attribute.number);
                }
                _ => attributes.clear(),
            }
            let matched = attributes
                .into_iter()
                .map(|attribute| Match::Attribute { name: attribute.name, value: attribute.value });
            found.insert(*core, matched.collect());
        }
        Ok(found)
    }

    fn signature_matches(
        &self,
        of: &[CoreHash],
        state: SignatureName,
        key_id: Option<&str>,
    ) -> PostgresResult<MatchesByArtifact> {
        let sql = "SELECT a.core, c.digest, c.signature, c.key_id FROM artifact a JOIN capture c ON c.artifact = a.id
                    WHERE a.core = ANY($1) ORDER BY c.id";
        let mut found = MatchesByArtifact::new();
        for row in self.session.rows(sql, &[&of])? {
            let matches = found.entry(core(&row, 0)?).or_default();
            let signature = signature(&row, 2)?;
            if state != SignatureName::from(signature.as_ref().map(|signature| signature.state)) {
                continue;
            }
            match signature {
                Some(signature) if key_id.is_none() || signature.key_id.as_deref() == key_id => {
                    matches.push(Match::Signature { capture: capture(&row, 1)?, signature });
                }
                None if matches.is_empty() => matches.push(Match::Unsigned),
                _ => {}
            }
        }
        Ok(found)
    }

    fn note_matches(&self, of: &[CoreHash], phrase: &str) -> PostgresResult<MatchesByArtifact> {
        let sql = "SELECT a.core, n.text FROM note n JOIN artifact a ON a.id = n.artifact
                    WHERE a.core = ANY($1) AND position($2 IN n.folded) > 0";
        let folded = phrase.to_lowercase().into_bytes();
        let rows = self.session.rows(sql, &[&of, &folded])?;
        rows.iter().map(|row| Ok((core(row, 0)?, vec![Match::Note(text(row, 1)?)]))).collect()
    }

    fn label_matches(
        &self,
        of: &[CoreHash],
        key: &str,
        is_match: &dyn Fn(&str) -> bool,
    ) -> PostgresResult<MatchesByArtifact> {
        let sql = "SELECT a.core, l.value FROM label l JOIN artifact a ON a.id = l.artifact
                    WHERE a.core = ANY($1) AND l.key = $2";
        let mut found = MatchesByArtifact::new();
        for row in self.session.rows(sql, &[&of, &to_stored(key)])? {
            let value = text(&row, 1)?;
            if is_match(&value) {
                found.insert(core(&row, 0)?, vec![Match::Label { key: key.to_owned(), value }]);
            }
        }
        Ok(found)
    }

    fn tag_matches(&self, of: &[CoreHash], name: Option<&str>) -> PostgresResult<MatchesByArtifact> {
        let sql = "SELECT a.core, t.name FROM tag t JOIN artifact a ON a.id = t.artifact
                    WHERE a.core = ANY($1) AND ($2::text IS NULL OR t.name = $2) ORDER BY t.name";
        let mut found = MatchesByArtifact::new();
        for row in self.session.rows(sql, &[&of, &name])? {
            let name: String = value(&row, 1)?;
            found.entry(core(&row, 0)?).or_default().push(Match::Tag(name));
        }
        Ok(found)
    }
}
