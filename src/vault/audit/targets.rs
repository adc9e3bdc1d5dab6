//! Mapping from the calls of a run to the targets and effects of a contract.

use std::collections::HashMap;

use crate::artifact::CallNames;
use crate::formats::{ContractTerms, Effect, IoRef};

/// Maximum number of name prefixes looked up; names with more parts are not names of targets.
const MAX_PARTS: usize = 16;

/// Maximum length of a name whose prefixes are looked up; longer names are looked up as a whole only.
const MAX_NAME_BYTES: usize = 2_048;

/// Maximum number of refs that one name may match; with more, it is ambiguous.
const MAX_REFS: usize = 8;

/// Maximum number of effects that one call may be; with more, it is ambiguous.
const MAX_EFFECTS: usize = 8;

/// The declarations of a contract by the names under which runs may call them.
pub(super) struct Targets<'t> {
    refs: HashMap<&'t str, usize>,
    /// Names of refs without the part before the first colon, and the names that refs list as `tools`.
    local: HashMap<&'t str, Vec<usize>>,
    /// Effects by name; `None` if several share it.
    effects: HashMap<&'t str, Option<usize>>,
    /// The tools that effects declare as their own.
    tools: HashMap<&'t str, usize>,
    /// The refs of these effects by tool number; at most one more than the limit.
    refs_of_tools: Vec<Vec<usize>>,
    /// The ref of each effect.
    refs_of_effects: Vec<Option<usize>>,
    /// The effects that declare a tool as their own, by tool number, and those on a ref that declare none, by ref; at most
    /// one more than the limit.
    effects_of_tools: Vec<Vec<usize>>,
    effects_of_refs: HashMap<usize, Vec<usize>>,
}

/// The targets and effects of a call.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct CallTargets {
    /// Whether the run names the call's target at all, declared or not.
    pub(super) is_named: bool,
    /// Whether the named target is declared.
    pub(super) is_declared: bool,
    /// The refs; empty if a name matches too many.
    pub(super) refs: Vec<usize>,
    /// The effect, if the run names it.
    pub(super) effect: Option<usize>,
    /// The numbers of the tools that effects declare as their own.
    pub(super) tools: Vec<usize>,
}

impl<'t> Targets<'t> {
    pub(super) fn new(terms: &'t ContractTerms) -> Self {
        let mut targets = Self {
            refs: HashMap::new(),
            local: HashMap::new(),
            effects: HashMap::new(),
            tools: HashMap::new(),
            refs_of_tools: Vec::new(),
            refs_of_effects: Vec::new(),
            effects_of_tools: Vec::new(),
            effects_of_refs: HashMap::new(),
        };
        for (index, io_ref) in terms.io_refs.iter().enumerate() {
            targets.add_ref(index, io_ref);
        }
        for (index, effect) in terms.effects.iter().enumerate() {
            targets.add_effect(index, effect);
        }
        targets
    }

    fn add_ref(&mut self, index: usize, io_ref: &'t IoRef) {
        self.refs.insert(&io_ref.name, index);
        let local = io_ref.name.split_once(':').map(|(_, local)| local).filter(|local| !local.is_empty());
        for name in local.into_iter().chain(io_ref.tools.iter().map(String::as_str)) {
            let refs = self.local.entry(name).or_default();
            if refs.last() != Some(&index) && refs.len() <= MAX_REFS {
                refs.push(index);
            }
        }
    }

    fn add_effect(&mut self, index: usize, effect: &'t Effect) {
        self.effects.entry(&effect.name).and_modify(|known| *known = None).or_insert(Some(index));
        let target = self.io_ref(&effect.target);
        for tool in &effect.tools {
            let number = *self.tools.entry(tool).or_insert(self.refs_of_tools.len());
            if number == self.refs_of_tools.len() {
                self.refs_of_tools.push(Vec::new());
                self.effects_of_tools.push(Vec::new());
            }
            let effects = self.effects_of_tools.get_mut(number);
            effects.filter(|effects| effects.len() <= MAX_EFFECTS).into_iter().for_each(|it| it.push(index));
            let known = self.refs_of_tools.get_mut(number);
            let is_new = |refs: &&mut Vec<usize>| {
                refs.len() <= MAX_REFS && target.is_some_and(|target| !refs.contains(&target))
            };
            known.filter(is_new).into_iter().for_each(|refs| refs.extend(target));
        }
        if let Some(target) = target.filter(|_| effect.tools.is_empty()) {
            let effects = self.effects_of_refs.entry(target).or_default();
            if effects.len() <= MAX_EFFECTS {
                effects.push(index);
            }
        }
        self.refs_of_effects.push(target);
    }

    /// Returns the effects that a call may be; none if they are too many.
    pub(super) fn effects(&self, tie: &CallTargets) -> Vec<usize> {
        let of_tools = || tie.tools.iter().filter_map(|tool| self.effects_of_tools.get(*tool)).flatten();
        let of_refs = || tie.refs.iter().filter_map(|index| self.effects_of_refs.get(index)).flatten();
        let mut effects: Vec<usize> = match tie.effect {
            Some(effect) => vec![effect],
            None if tie.tools.is_empty() => of_refs().copied().collect(),
            None => of_tools().copied().collect(),
        };
        effects.sort_unstable();
        effects.dedup();
        if effects.len() > MAX_EFFECTS { Vec::new() } else { effects }
    }

    /// Returns the number of the ref with this name.
    pub(super) fn io_ref(&self, name: &str) -> Option<usize> {
        self.refs.get(name).copied()
    }

    /// Returns the number of a tool that an effect declares as its own.
    pub(super) fn tool(&self, name: &str) -> Option<usize> {
        self.tools.get(name).copied()
    }

    /// Returns the targets and effects of a call with these names.
    pub(super) fn tie(&self, names: &CallNames<'_>) -> CallTargets {
        let called: Vec<&str> = names.tools.iter().chain(&names.url).copied().collect();
        let tools: Vec<usize> = called.iter().filter_map(|name| self.tool(name)).collect();
        let by_call = self.refs_of_call(names);
        let effect = self.effect(names, by_call);
        let of_tools = tools.iter().filter_map(|tool| self.refs_of_tools.get(*tool)).flatten();
        let of_effect = effect.and_then(|effect| self.target_of(effect));
        let mut refs = by_call.map_or_else(|| self.refs_of_labels(names), <[usize]>::to_vec);
        refs.extend(of_tools.copied().chain(of_effect));
        refs.sort_unstable();
        refs.dedup();
        let is_declared = !refs.is_empty() || effect.is_some() || !tools.is_empty();
        if refs.len() > MAX_REFS {
            refs.clear();
        }
        let is_named = is_declared || !called.is_empty() || names.io_ref.is_some();
        CallTargets { is_named, is_declared, refs, effect, tools }
    }

    fn target_of(&self, effect: usize) -> Option<usize> {
        self.refs_of_effects.get(effect).copied().flatten()
    }

    /// Returns the effect that a call names, unless the call has a target other than the effect's: names other than the
    /// tool may have been chosen by a model.
    fn effect(&self, names: &CallNames<'_>, by_call: Option<&[usize]>) -> Option<usize> {
        let mut given = names.tools.iter().chain(&names.labels);
        let effect = given.find_map(|name| self.effects.get(name).copied().flatten())?;
        let is_on = |refs: &[usize]| self.target_of(effect).is_some_and(|target| refs.contains(&target));
        by_call.is_none_or(is_on).then_some(effect)
    }

    /// Returns the refs that the run states explicitly; otherwise those that match its tools or its URL.
    fn refs_of_call(&self, names: &CallNames<'_>) -> Option<&[usize]> {
        if let Some(io_ref) = names.io_ref {
            return self.refs.get(io_ref).map(std::slice::from_ref);
        }
        let by_tool = names.tools.iter().find_map(|tool| self.by_name(tool));
        by_tool.or_else(|| names.url.and_then(|url| self.by_url(url)))
    }

    /// Returns the refs that other names match: by their full names, and by other names only if nothing identifies the
    /// target.
    fn refs_of_labels(&self, names: &CallNames<'_>) -> Vec<usize> {
        if names.io_ref.is_some() {
            return Vec::new();
        }
        if let Some(index) = names.labels.iter().find_map(|label| self.io_ref(label)) {
            return vec![index];
        }
        let is_called = !names.tools.is_empty() || names.url.is_some();
        let by_label = names.labels.iter().find_map(|label| self.by_name(label)).filter(|_| !is_called);
        by_label.map(<[usize]>::to_vec).unwrap_or_default()
    }

    /// Returns the refs named `name`, or with the longest prefix of it that ends at a separator: `tracker.label` is a
    /// call of `service:tracker`.
    fn by_name(&self, name: &str) -> Option<&[usize]> {
        let unprefixed = name.strip_prefix("mcp__").unwrap_or(name);
        let separators = unprefixed.char_indices().filter(|(at, character)| {
            matches!(character, '.' | '/' | ':')
                || unprefixed.get(*at..).is_some_and(|rest| rest.starts_with("__"))
        });
        let ends: Vec<usize> = separators.map(|(at, _)| at).take(MAX_PARTS).collect();
        self.whole(name).or_else(|| self.longest(unprefixed, &ends))
    }

    /// Returns the refs that match a URL without its query, by the longest prefix of it, or by its host.
    fn by_url(&self, url: &str) -> Option<&[usize]> {
        let path = url.split(['?', '#']).next().unwrap_or(url);
        let rest = path.split_once("://").map_or(path, |(_, rest)| rest);
        let start = path.len() - rest.len();
        let ends: Vec<usize> = rest.match_indices('/').map(|(at, _)| start + at).take(MAX_PARTS).collect();
        let authority = rest.split('/').next().unwrap_or(rest);
        let host = authority.rsplit('@').next().unwrap_or(authority);
        let without_port = host.split(':').next().unwrap_or(host);
        let by_host = || self.whole(host).or_else(|| self.whole(without_port));
        // A path with ".." does not lead to what it begins with.
        let climbs = rest.split('/').any(|segment| segment == "..");
        let by_path = || self.longest(path, &ends).filter(|_| !climbs);
        self.whole(url).or_else(by_path).or_else(by_host)
    }

    fn longest(&self, name: &str, ends: &[usize]) -> Option<&[usize]> {
        if name.len() > MAX_NAME_BYTES {
            return None;
        }
        let beginnings = ends.iter().rev().filter_map(|end| name.get(..*end));
        std::iter::once(name).chain(beginnings).find_map(|beginning| self.whole(beginning))
    }

    fn whole(&self, name: &str) -> Option<&[usize]> {
        let by_full_name = self.refs.get(name).map(std::slice::from_ref);
        by_full_name.or_else(|| self.local.get(name).map(Vec::as_slice))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms() -> ContractTerms {
        let contract = br#"{"io_refs": [
            {"ref": "service:tracker"}, {"ref": "service:tracker.admin"}, {"ref": "state:workload", "tools": ["kubectl"]},
            {"ref": "service:api.example.com"}, {"ref": "https://pay.example.com/v1"}, {"ref": "artifact:tracker2"}],
            "effects": [{"name": "label", "target": "service:tracker"}, {"name": "twice"}, {"name": "twice"},
            {"name": "close", "tool": "issues.close"}]}"#;
        ContractTerms::read(contract).unwrap()
    }

    #[test]
    fn tools_are_calls_of_the_target_that_their_name_begins_with() {
        let terms = terms();
        let targets = Targets::new(&terms);
        for (tool, expected) in [
            ("tracker", &[0][..]),
            ("tracker.label", &[0]),
            ("service:tracker", &[0]),
            ("service:tracker/label", &[0]),
            ("tracker.admin.delete", &[1]),
            ("mcp__tracker__label", &[0]),
            ("tracker__label", &[0]),
            ("kubectl.apply", &[2]),
            ("workload", &[2]),
            ("tracker_label", &[]),
            ("trackers.label", &[]),
            ("Tracker.label", &[]),
            ("close-it", &[]),
            ("", &[]),
        ] {
            let tie = targets.tie(&CallNames { tools: vec![tool], ..CallNames::default() });
            assert_eq!((tie.refs.as_slice(), tie.is_named), (expected, true), "{tool}");
        }
    }

    #[test]
    fn requests_are_calls_of_the_target_that_their_url_begins_with() {
        let terms = terms();
        let targets = Targets::new(&terms);
        for (url, expected) in [
            ("https://api.example.com/search?q=1", &[3][..]),
            ("https://user@api.example.com:8443/", &[3]),
            ("https://pay.example.com/v1/charges", &[4]),
            ("https://pay.example.com/v1", &[4]),
            ("https://pay.example.com/v10", &[]),
            ("https://pay.example.com/v1/../v2", &[]),
            ("https://evil.com/api.example.com", &[]),
            ("https://evil.com/?u=https://pay.example.com/v1", &[]),
        ] {
            let tie = targets.tie(&CallNames { url: Some(url), ..CallNames::default() });
            assert_eq!((tie.refs.as_slice(), tie.is_named), (expected, true), "{url}");
        }
    }

    #[test]
    fn stated_names_count_before_what_names_begin_with() {
        let terms = terms();
        let targets = Targets::new(&terms);
        let tie = |tools: &[&'static str], io_ref, labels: &[&'static str]| {
            let names =
                CallNames { tools: tools.to_vec(), io_ref, labels: labels.to_vec(), ..CallNames::default() };
            targets.tie(&names)
        };
        assert_eq!(tie(&["tracker.x"], Some("state:workload"), &[]).refs, [2]);
        assert_eq!(tie(&["tracker.x"], Some("state:other"), &[]).refs, [0_usize; 0]);
        assert_eq!(tie(&["other"], None, &["state:workload"]).refs, [2]);
        assert_eq!(tie(&["tracker.x"], None, &["state:workload"]).refs, [0]);
        assert_eq!(tie(&["label"], None, &[]).effect, Some(0));
        assert_eq!(tie(&["tracker.x"], None, &["label"]).effect, Some(0));
        assert_eq!(tie(&["workload"], None, &["label"]).effect, None);
        assert_eq!(tie(&["other"], None, &["label"]).effect, Some(0));
        assert_eq!(tie(&[], None, &["label"]).effect, Some(0));
        assert_eq!(tie(&[], None, &["twice"]), CallTargets::default());
        assert_eq!(tie(&[], None, &["tracker.label"]).refs, [0]);
        assert_eq!(tie(&["unknown"], None, &["tracker"]).refs, [0_usize; 0]);
        assert_eq!(tie(&["issues.close"], None, &[]).tools, [0]);
        assert_eq!(tie(&[], None, &["Normalize"]), CallTargets::default());
    }
}
