//! The histories of one run as a tree: they share nodes as long as their records are equal.
//!
//! A tree of n histories has fewer than 2n nodes, so all diverging pairs can be counted without comparing each of them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::artifact::group;
use crate::digest::{CoreHash, Digest};
use crate::storage::{ArtifactRecord, Result, Snapshot};

/// The maximum number of record hashes in memory while histories are compared.
const MAX_HASHES: usize = 1 << 20;

/// Number of artifacts whose hashes are read at a time.
const AT_A_TIME: usize = 100;

/// The histories of one run, which share a header or a run id.
pub(super) struct Histories {
    shared: HistoryIdentity,
    /// The artifacts, by core hash.
    members: Vec<ArtifactRecord>,
    numbers: HashMap<CoreHash, usize>,
    /// The nodes, parents before their children.
    nodes: Vec<HistoryTreeNode>,
    /// The members in the order of the nodes at which they end, and below the position of each member in it.
    order: Vec<usize>,
    places: Vec<usize>,
    /// The node at which each member ends.
    ends: Vec<usize>,
}

/// Histories that are equal up to a record.
struct HistoryTreeNode {
    parent: Option<usize>,
    /// The hash of the first record after those of the parent.
    first: Digest,
    /// The number of records that its members share.
    depth: usize,
    children: Vec<usize>,
    /// The range of positions of its members in the order.
    from: usize,
    to: usize,
}

/// Members that will become a node.
struct PendingHistoryNode {
    parent: Option<usize>,
    first: Digest,
    depth: usize,
    members: Vec<usize>,
}

impl Histories {
    /// Reads the histories of each of `all`.
    pub(super) fn read_all(
        snapshot: &dyn Snapshot,
        all: Vec<(HistoryIdentity, Vec<ArtifactRecord>)>,
    ) -> Result<Vec<Self>> {
        let mut read = ReadAhead::default();
        for unit in [STEP, RECORD] {
            let of_unit = all.iter().filter(|(shared, members)| shared.unit() == unit && members.len() > 1);
            let cores = of_unit.flat_map(|(_, members)| members.iter().map(|member| member.core));
            read.read(snapshot, unit, cores.collect())?;
        }
        all.into_iter().map(|(shared, members)| Self::read(snapshot, shared, members, &read)).collect()
    }

    fn read(
        snapshot: &dyn Snapshot,
        shared: HistoryIdentity,
        mut members: Vec<ArtifactRecord>,
        read: &ReadAhead,
    ) -> Result<Self> {
        members.sort_by_key(|member| member.core);
        let count = members.len();
        let mut tree = Self {
            shared,
            numbers: members.iter().map(|member| member.core).zip(0..).collect(),
            members,
            nodes: Vec::new(),
            order: Vec::with_capacity(count),
            places: vec![0; count],
            ends: vec![0; count],
        };
        let group = tree.shared.unit();
        let mut hashes = HistoryHashReader { snapshot, group, loaded: read.windows(&tree.members, group) };
        let first = Digest::from_bytes([0; 32]);
        let mut classes =
            vec![PendingHistoryNode { parent: None, first, depth: 0, members: (0..count).collect() }];
        while let Some(class) = classes.pop() {
            tree.add(class, &mut classes, &mut hashes)?;
        }
        tree.close();
        Ok(tree)
    }

    /// Adds a node for a class, and pushes the classes of its children.
    fn add(
        &mut self,
        class: PendingHistoryNode,
        classes: &mut Vec<PendingHistoryNode>,
        hashes: &mut HistoryHashReader<'_>,
    ) -> Result<()> {
        let PendingHistoryNode { parent, first, mut depth, members } = class;
        let number = self.nodes.len();
        let mut next: BTreeMap<Digest, Vec<usize>> = BTreeMap::new();
        let mut ended = Vec::new();
        if members.len() == 1 {
            // No other member can diverge from it later.
            ended.clone_from(&members);
        }
        while ended.is_empty() && next.is_empty() {
            hashes.load(&self.members, &members, depth)?;
            let at = |member: &usize| hashes.at(*member, depth);
            let one = members.first().and_then(at);
            if one.is_some() && members.iter().all(|member| at(member) == one) {
                depth += 1;
                continue;
            }
            for member in &members {
                match at(member) {
                    Some(hash) => next.entry(hash).or_default().push(*member),
                    None => ended.push(*member),
                }
            }
            if members.is_empty() {
                break;
            }
        }
        let from = self.order.len();
        for member in ended {
            if let (Some(place), Some(end)) = (self.places.get_mut(member), self.ends.get_mut(member)) {
                (*place, *end) = (self.order.len(), number);
            }
            self.order.push(member);
        }
        if let Some(parent) = parent.and_then(|parent| self.nodes.get_mut(parent)) {
            parent.children.push(number);
        }
        self.nodes.push(HistoryTreeNode {
            parent,
            first,
            depth,
            children: Vec::new(),
            from,
            to: self.order.len(),
        });
        let class = |(first, members)| PendingHistoryNode { parent: Some(number), first, depth, members };
        classes.extend(next.into_iter().map(class));
        Ok(())
    }

    /// Extends the range of each node to its descendants.
    fn close(&mut self) {
        for number in (0..self.nodes.len()).rev() {
            let Some(HistoryTreeNode { parent: Some(parent), to, .. }) = self.nodes.get(number) else {
                continue;
            };
            let (parent, to) = (*parent, *to);
            if let Some(parent) = self.nodes.get_mut(parent) {
                parent.to = parent.to.max(to);
            }
        }
    }

    /// Returns the number of histories.
    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// Returns the artifacts.
    pub(super) fn members(&self) -> &[ArtifactRecord] {
        &self.members
    }

    /// Returns the number of pairs that diverge.
    pub(super) fn count(&self) -> u64 {
        let pairs = |node: &HistoryTreeNode| {
            let sizes =
                node.children.iter().filter_map(|child| self.nodes.get(*child)).map(HistoryTreeNode::size);
            let (sum, squares) =
                sizes.fold((0, 0), |(sum, squares), size| (sum + size, squares + size * size));
            (sum * sum - squares) / 2
        };
        self.nodes.iter().map(pairs).sum()
    }

    /// Returns what they share.
    pub(super) fn shared(&self) -> &HistoryIdentity {
        &self.shared
    }

    /// Iterates over the pairs that diverge, by core hashes: those after a pair, or all.
    pub(super) fn pairs(&self, after: Option<[CoreHash; 2]>) -> impl Iterator<Item = Fork> {
        let begin = after.map_or(0, |[one, _]| self.members.partition_point(|member| member.core < one));
        (begin..self.members.len()).flat_map(move |one| {
            let core = |number: usize| self.members.get(number).map(|member| member.core);
            let is_after = |other: usize| match after {
                Some(after) => core(one).zip(core(other)).is_some_and(|(one, other)| [one, other] > after),
                None => true,
            };
            let mut others: Vec<_> = self
                .parting_from(one)
                .filter(|parting| parting.other > one && is_after(parting.other))
                .collect();
            others.sort_unstable_by_key(|parting| parting.other);
            others.into_iter().filter_map(move |parting| self.fork(one, &parting))
        })
    }

    /// Iterates over the forks of an artifact.
    pub(super) fn forks_of(&self, artifact: CoreHash) -> impl Iterator<Item = Fork> {
        let one = self.numbers.get(&artifact).copied();
        one.into_iter()
            .flat_map(move |one| self.parting_from(one).filter_map(move |parting| self.fork(one, &parting)))
    }

    /// Returns whether two histories diverge, from their stored positions.
    pub(super) fn do_part(&self, one: CoreHash, other: CoreHash) -> bool {
        let numbers = self.numbers.get(&one).zip(self.numbers.get(&other));
        numbers.is_some_and(|(one, other)| !self.goes_on(*one, *other) && !self.goes_on(*other, *one))
    }

    /// Returns the fork of two artifacts, if they diverge.
    pub(super) fn fork_between(&self, one: CoreHash, other: CoreHash) -> Option<Fork> {
        let (one, other) = (*self.numbers.get(&one)?, *self.numbers.get(&other)?);
        let place = *self.places.get(other)?;
        let mut below = *self.ends.get(one)?;
        loop {
            let node = self.nodes.get(self.nodes.get(below)?.parent?)?;
            if node.has(place) {
                let ours = self.nodes.get(below)?.first;
                let mut children = node.children.iter().filter_map(|child| self.nodes.get(*child));
                let theirs = children.find(|child| child.has(place))?.first;
                return self.fork(one, &HistoryDivergence { other, index: node.depth, ours, theirs });
            }
            below = self.nodes.get(below)?.parent?;
        }
    }

    /// Returns whether the history `one` equals or continues the history `other`.
    fn goes_on(&self, one: usize, other: usize) -> bool {
        let end = self.ends.get(other).and_then(|end| self.nodes.get(*end));
        end.zip(self.places.get(one)).is_some_and(|(end, place)| end.has(*place))
    }

    fn fork(&self, one: usize, parting: &HistoryDivergence) -> Option<Fork> {
        let sides = [
            (self.members.get(one)?.clone(), parting.ours),
            (self.members.get(parting.other)?.clone(), parting.theirs),
        ];
        Some(Fork { shared: self.shared.clone(), index: parting.index, sides })
    }

    /// Iterates over the members that diverge from one, nearest first.
    fn parting_from(&self, one: usize) -> impl Iterator<Item = HistoryDivergence> {
        let end = self.ends.get(one).copied();
        let ancestors = std::iter::successors(end, |node| self.nodes.get(*node)?.parent);
        ancestors.flat_map(move |below| {
            let ours = self.nodes.get(below).map(|node| (node.first, node.parent));
            let node = ours.and_then(|(_, parent)| self.nodes.get(parent?));
            let siblings = node.map(|node| node.children.as_slice()).unwrap_or_default().iter();
            let siblings = siblings.filter(move |sibling| **sibling != below);
            siblings.filter_map(|sibling| self.nodes.get(*sibling)).flat_map(move |sibling| {
                let members = self.order.get(sibling.from..sibling.to).unwrap_or_default();
                members.iter().filter_map(move |other| {
                    let (ours, _) = ours?;
                    Some(HistoryDivergence { other: *other, index: node?.depth, ours, theirs: sibling.first })
                })
            })
        })
    }
}

impl HistoryTreeNode {
    fn size(&self) -> u64 {
        (self.to - self.from) as u64
    }

    fn has(&self, place: usize) -> bool {
        (self.from..self.to).contains(&place)
    }
}

/// Where a history diverges from another one.
struct HistoryDivergence {
    other: usize,
    index: usize,
    ours: Digest,
    theirs: Digest,
}

/// The hashes of the records or steps of members, as many at a time as `MAX_HASHES` allows.
struct HistoryHashReader<'s> {
    snapshot: &'s dyn Snapshot,
    group: &'static str,
    loaded: HashMap<usize, HistoryHashWindow>,
}

struct HistoryHashWindow {
    from: usize,
    hashes: HistoryHashes,
    is_last: bool,
}

/// The hashes of a history, of which those that it shares with another one are stored once.
#[derive(Clone, Default)]
struct HistoryHashes {
    other: Arc<[Digest]>,
    /// The number of hashes that are those of `other`.
    shared: usize,
    rest: Vec<Digest>,
}

impl HistoryHashes {
    fn len(&self) -> usize {
        self.shared + self.rest.len()
    }

    fn get(&self, index: usize) -> Option<Digest> {
        let hash = match index.checked_sub(self.shared) {
            None => self.other.get(index),
            Some(index) => self.rest.get(index),
        };
        hash.copied()
    }
}

impl HistoryHashReader<'_> {
    /// Ensures that the hashes of the members of a class at `depth` are loaded.
    fn load(&mut self, rows: &[ArtifactRecord], class: &[usize], depth: usize) -> Result<()> {
        let is_known = |member: &usize| {
            let window = self.loaded.get(member);
            window.is_some_and(|window| window.is_last || depth < window.from + window.hashes.len())
        };
        if class.iter().all(is_known) {
            return Ok(());
        }
        self.loaded.clear();
        let most = (MAX_HASHES / class.len().max(1)).max(1);
        for members in class.chunks(AT_A_TIME) {
            let cores = members.iter().filter_map(|member| rows.get(*member)).map(|row| row.core);
            let mentions = self.snapshot.mentions(&cores.collect::<Vec<_>>(), Some(self.group))?;
            for (member, mentions) in members.iter().zip(mentions) {
                let rest = mentions.iter().skip(depth).take(most).map(|mention| mention.digest).collect();
                let hashes = HistoryHashes { rest, ..HistoryHashes::default() };
                let is_last = depth + hashes.len() >= mentions.len();
                self.loaded.insert(*member, HistoryHashWindow { from: depth, hashes, is_last });
            }
        }
        Ok(())
    }

    fn at(&self, member: usize, depth: usize) -> Option<Digest> {
        let window = self.loaded.get(&member)?;
        window.hashes.get(depth.checked_sub(window.from)?)
    }
}

/// The hashes of the records or steps of artifacts that were read together, if they are few.
#[derive(Default)]
struct ReadAhead {
    hashes: HashMap<(&'static str, CoreHash), HistoryHashes>,
    /// The longest history that begins with a hash, which shorter ones of the same run mostly are a prefix of.
    longest: HashMap<Digest, Arc<[Digest]>>,
    /// The number of hashes in memory.
    size: usize,
}

impl ReadAhead {
    /// Reads the hashes of artifacts in the roles of `group`, as long as they are few.
    fn read(&mut self, snapshot: &dyn Snapshot, group: &'static str, mut of: Vec<CoreHash>) -> Result<()> {
        of.sort_unstable();
        of.dedup();
        for cores in of.chunks(AT_A_TIME) {
            if self.size > MAX_HASHES {
                break;
            }
            for (core, mentions) in cores.iter().zip(snapshot.mentions(cores, Some(group))?) {
                let hashes = self.share(mentions.iter().map(|mention| mention.digest).collect());
                self.hashes.insert((group, *core), hashes);
            }
        }
        Ok(())
    }

    fn share(&mut self, mut hashes: Vec<Digest>) -> HistoryHashes {
        let Some(first) = hashes.first() else { return HistoryHashes::default() };
        let longest = self.longest.entry(*first).or_default();
        let shared = longest.iter().zip(&hashes).take_while(|(one, other)| one == other).count();
        if shared == longest.len() && shared < hashes.len() {
            self.size += hashes.len();
            *longest = hashes.into();
            return HistoryHashes { other: longest.clone(), shared: longest.len(), rest: Vec::new() };
        }
        let rest = hashes.split_off(shared);
        self.size += rest.len();
        HistoryHashes { other: longest.clone(), shared, rest }
    }

    /// Returns the hashes of members, if they were read for each.
    fn windows(&self, members: &[ArtifactRecord], group: &'static str) -> HashMap<usize, HistoryHashWindow> {
        let window = |member: &ArtifactRecord| {
            let hashes = self.hashes.get(&(group, member.core))?.clone();
            Some(HistoryHashWindow { from: 0, hashes, is_last: true })
        };
        let all: Option<Vec<HistoryHashWindow>> = members.iter().map(window).collect();
        (0..).zip(all.unwrap_or_default()).collect()
    }
}

/// The groups of records and steps.
pub(super) const RECORD: &str = group::RECORD;
pub(super) const STEP: &str = group::STEP;

/// Two different histories of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fork {
    /// The header or run id that identifies them as histories of one run.
    pub(crate) shared: HistoryIdentity,
    /// The index of the first record or step that differs, from 0.
    pub(crate) index: usize,
    /// Both artifacts, with the hash of their record or step at that index.
    pub(crate) sides: [(ArtifactRecord, Digest); 2],
}

/// The common identity of the histories of one run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum HistoryIdentity {
    /// The hash of the header of two traces.
    Header(Digest),
    /// The run id of two run packs.
    RunId(String),
}

impl HistoryIdentity {
    /// Returns the unit of the histories: `record` or `step`.
    #[must_use]
    pub(crate) fn unit(&self) -> &'static str {
        match self {
            Self::Header(_) => RECORD,
            Self::RunId(_) => STEP,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histories_that_share_hashes_have_their_own() {
        let history =
            |text: &str| -> Vec<Digest> { text.bytes().map(|byte| Digest::from_content(&[byte])).collect() };
        let mut read = ReadAhead::default();
        for (text, size) in
            [("abc", 3), ("ab", 3), ("", 3), ("abcde", 8), ("abc", 8), ("abxy", 10), ("b", 11), ("abcde", 11)]
        {
            let shared = read.share(history(text));
            let hashes: Vec<Digest> = (0..shared.len()).filter_map(|index| shared.get(index)).collect();
            assert_eq!(hashes, history(text));
            assert_eq!((shared.get(text.len()), read.size), (None, size), "{text}");
        }
    }
}
