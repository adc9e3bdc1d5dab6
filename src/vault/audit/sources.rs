//! Locations of evidence in results. All are looked up in one traversal of a result.

use std::collections::HashMap;

use crate::formats::{ContractTerms, Effect, Evidence};
use crate::json::{Object, Value};

/// A location in results to search for evidence of effects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum EvidenceLocation {
    /// The value at a JSON Pointer.
    Path(String),
    /// The member with that name, at any depth.
    Metric(String),
    /// The member with that name of the object at a JSON Pointer.
    MetricAt(String, String),
    /// A plain value at a JSON Pointer, instead of an object with a metric.
    ValueAt(String),
}

/// A value found at the location of a source.
pub(super) struct EvidenceMatch<'v, 'd> {
    /// The number of the source.
    pub(super) source: usize,
    pub(super) value: &'v Value<'d>,
    /// The object that contains it as a member.
    pub(super) parent: Option<&'v Value<'d>>,
}

/// The sources of all effects of a contract.
#[derive(Default)]
pub(super) struct EvidenceLocations {
    numbers: HashMap<EvidenceLocation, usize>,
    metrics: HashMap<String, usize>,
    /// The pointers, as a tree of their tokens. The first node is the empty pointer.
    nodes: Vec<PointerTreeNode>,
}

#[derive(Default)]
struct PointerTreeNode {
    children: HashMap<String, usize>,
    whole: Option<usize>,
    plain: Option<usize>,
    metrics: HashMap<String, usize>,
}

impl EvidenceLocations {
    /// Returns the sources of all effects, and the source numbers of each effect.
    pub(super) fn new(terms: &ContractTerms) -> (Self, Vec<Vec<usize>>) {
        let mut sources = Self { nodes: vec![PointerTreeNode::default()], ..Self::default() };
        let of = |effect: &Effect| effect.evidence.as_ref().map(from_evidence).unwrap_or_default();
        let numbers = terms
            .effects
            .iter()
            .map(|effect| of(effect).into_iter().map(|source| sources.number(source)).collect());
        let numbers = numbers.collect();
        (sources, numbers)
    }

    fn number(&mut self, source: EvidenceLocation) -> usize {
        let next = self.numbers.len();
        let number = *self.numbers.entry(source.clone()).or_insert(next);
        match source {
            EvidenceLocation::Metric(name) => {
                self.metrics.insert(name, number);
            }
            EvidenceLocation::Path(path) => self.with_node(&path, |node| node.whole = Some(number)),
            EvidenceLocation::ValueAt(path) => self.with_node(&path, |node| node.plain = Some(number)),
            EvidenceLocation::MetricAt(path, name) => self.with_node(&path, |node| {
                node.metrics.insert(name, number);
            }),
        }
        number
    }

    fn with_node(&mut self, path: &str, change: impl FnOnce(&mut PointerTreeNode)) {
        let mut at = 0;
        for token in path.split('/').skip(1) {
            let token = token.replace("~1", "/").replace("~0", "~");
            let next = self.nodes.len();
            let child = self.nodes.get_mut(at).map(|node| *node.children.entry(token).or_insert(next));
            at = child.unwrap_or_default();
            if at == next {
                self.nodes.push(PointerTreeNode::default());
            }
        }
        self.nodes.get_mut(at).map(change);
    }

    /// Returns everything in `result` that is at the location of a source. A metric is searched at the smallest depth
    /// at which it occurs; all occurrences at that depth are returned.
    pub(super) fn find<'v, 'd>(&self, result: &'v Value<'d>) -> Vec<EvidenceMatch<'v, 'd>> {
        let mut found = Vec::new();
        self.by_pointer(0, result, None, &mut found);
        if !self.metrics.is_empty() {
            let mut shallowest = HashMap::new();
            self.by_metric(result, 0, &mut shallowest);
            let mut by_source: Vec<_> = shallowest.into_iter().collect();
            by_source.sort_unstable_by_key(|(source, _)| *source);
            found.extend(by_source.into_iter().flat_map(|(_, (_, found))| found));
        }
        found
    }

    fn by_pointer<'v, 'd>(
        &self,
        node: usize,
        value: &'v Value<'d>,
        parent: Option<&'v Value<'d>>,
        found: &mut Vec<EvidenceMatch<'v, 'd>>,
    ) {
        let Some(node) = self.nodes.get(node) else { return };
        found.extend(node.whole.map(|source| EvidenceMatch { source, value, parent }));
        match value {
            Value::Object(_) if node.children.is_empty() && node.metrics.is_empty() => {}
            Value::Object(object) => {
                for (name, member) in object.iter() {
                    let metric = node.metrics.get(name);
                    found.extend(metric.map(|source| EvidenceMatch {
                        source: *source,
                        value: member,
                        parent: Some(value),
                    }));
                    if let Some(child) = node.children.get(name) {
                        self.by_pointer(*child, member, Some(value), found);
                    }
                }
            }
            Value::Array(_) if node.children.is_empty() => {}
            Value::Array(elements) => {
                for (index, element) in elements.iter().enumerate() {
                    if let Some(child) = node.children.get(&index.to_string()) {
                        self.by_pointer(*child, element, None, found);
                    }
                }
            }
            plain => found.extend(node.plain.map(|source| EvidenceMatch { source, value: plain, parent })),
        }
    }

    fn by_metric<'v, 'd>(
        &self,
        value: &'v Value<'d>,
        depth: usize,
        shallowest: &mut HashMap<usize, (usize, Vec<EvidenceMatch<'v, 'd>>)>,
    ) {
        match value {
            Value::Array(elements) => {
                for element in elements {
                    self.by_metric(element, depth + 1, shallowest);
                }
            }
            Value::Object(object) => {
                for (name, member) in object.iter() {
                    if let Some(source) = self.metrics.get(name).copied() {
                        let found = EvidenceMatch { source, value: member, parent: Some(value) };
                        let known = shallowest.entry(source).or_insert_with(|| (depth, Vec::new()));
                        if depth < known.0 {
                            *known = (depth, Vec::new());
                        }
                        if depth == known.0 {
                            known.1.push(found);
                        }
                    }
                    self.by_metric(member, depth + 1, shallowest);
                }
            }
            _ => {}
        }
    }
}

/// Returns the locations of the evidence. With a path and a metric, the metric is a member of the object at the path,
/// or only names a plain value there.
fn from_evidence(evidence: &Evidence) -> Vec<EvidenceLocation> {
    let is_pointer = |path: &&String| path.is_empty() || path.starts_with('/');
    match (&evidence.path, &evidence.metric) {
        (Some(path), Some(metric)) if is_pointer(&path) => {
            vec![
                EvidenceLocation::MetricAt(path.clone(), metric.clone()),
                EvidenceLocation::ValueAt(path.clone()),
            ]
        }
        (Some(path), None) if is_pointer(&path) => vec![EvidenceLocation::Path(path.clone())],
        (None, Some(metric)) => vec![EvidenceLocation::Metric(metric.clone())],
        _ => Vec::new(),
    }
}

/// Returns the value at `pointer`.
pub(super) fn at_pointer<'v, 'd>(value: &'v Value<'d>, pointer: &str) -> Option<&'v Value<'d>> {
    let mut value = value;
    for token in pointer.split('/').skip(1) {
        let token = token.replace("~1", "/").replace("~0", "~");
        value = match value {
            Value::Array(elements) => elements.get(token.parse::<usize>().ok()?)?,
            other => other.as_object().and_then(|object: &Object<'d>| object.get(&token))?,
        };
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::compact;
    use crate::json::reader::{self, Limits};

    /// Returns the values found in `result` for evidence with this path and metric.
    fn found(path: Option<&str>, metric: Option<&str>, result: &str) -> Vec<String> {
        let evidence = serde_json::json!({"type": "status", "path": path, "metric": metric});
        let mut contract = serde_json::json!({"io_refs": [], "effects": [{"name": "e", "target": "t", "evidence": evidence}]});
        let evidence = contract["effects"][0]["evidence"].as_object_mut().unwrap();
        evidence.retain(|_, value| !value.is_null());
        let terms = ContractTerms::read(contract.to_string().as_bytes()).unwrap();
        let (sources, _) = EvidenceLocations::new(&terms);
        let value = reader::read(result.as_bytes(), &Limits::default()).unwrap();
        sources.find(&value).iter().map(|found| compact::text(found.value)).collect()
    }

    #[test]
    fn a_path_leads_to_one_value() {
        let result = r#"{"state": {"a/b": ["x", "y"], "": 1}, "n": null}"#;
        assert_eq!(found(Some("/state/a~1b/1"), None, result), ["\"y\""]);
        assert_eq!(found(Some("/state/"), None, result), ["1"]);
        assert_eq!(found(Some("/n"), None, result), ["null"]);
        assert_eq!(found(Some(""), None, "true"), ["true"]);
        for path in ["/state/a~1b/2", "/state/a~1b/01", "/state/a", "state", "/n/x"] {
            assert!(found(Some(path), None, result).is_empty(), "{path}");
        }
    }

    #[test]
    fn a_metric_is_found_at_the_smallest_depth_and_everywhere_there() {
        let result = r#"{"a": {"m": 1}, "b": [{"m": 2}], "c": {"m": 3}}"#;
        assert_eq!(found(None, Some("m"), result), ["1", "3"]);
        assert_eq!(found(None, Some("m"), r#"[[{"m": 1}], {"m": 2, "x": {"m": 3}}, {"m": 4}]"#), ["2", "4"]);
        assert!(found(None, Some("x"), result).is_empty());
    }

    #[test]
    fn a_path_and_a_metric_are_both_met() {
        let result = r#"{"a": {"m": 1, "deeper": {"m": 2}}, "m": 3, "plain": 4, "list": [5]}"#;
        assert_eq!(found(Some("/a"), Some("m"), result), ["1"]);
        assert_eq!(found(Some("/plain"), Some("m"), result), ["4"]);
        assert!(found(Some("/a/deeper"), Some("x"), result).is_empty());
        assert!(found(Some("/list"), Some("m"), result).is_empty());
        assert!(found(Some("/nowhere"), Some("m"), result).is_empty());
    }

    #[test]
    fn pointers_lead_through_objects_and_lists() {
        let value = reader::read(br#"{"a": [{"b~": 1}]}"#, &Limits::default()).unwrap();
        assert_eq!(at_pointer(&value, "/a/0/b~0").map(compact::text).as_deref(), Some("1"));
        assert_eq!(at_pointer(&value, "").map(compact::text), Some(compact::text(&value)));
        assert!(at_pointer(&value, "/a/1").is_none());
    }
}
