//! The names of files, by the addresses of what is in them.
//!
//! Names are made of our own words, of digests, and of those characters of other texts that every system permits.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use axum::extract::Query;
use axum::http::Uri;

use super::page_starts::PageStarts;
use super::rewrite::LinkRewrite;
use crate::artifact::Kind;
use crate::digest::{CoreHash, Digest};
use crate::formats;
use crate::server::address;
use crate::server::markdown::is_external;
use crate::server::pages::download::safe;

/// The name of the file that leads to all others.
pub(super) const INDEX: &str = "index.html";

/// Endings with which programs neither run nor interpret a file as a page.
const INERT: [&str; 3] = ["json", "txt", "bin"];

/// The depth of the graphs that are written: the one that pages of artifacts link to.
const DEPTH: &str = "2";

/// Maximum number of characters of a name that an artifact determines.
const LONGEST: usize = 80;

/// Something to be written: its address on a server, and the name of its file.
pub(super) struct PendingPageFile {
    pub(super) address: String,
    pub(super) name: String,
}

/// The files of some artifacts.
pub(super) struct PageFileNames {
    /// The artifacts that have pages, with their kinds, and the beginnings of the names of their files.
    artifacts: BTreeMap<CoreHash, (String, String)>,
    /// The prompts that have pages.
    prompts: BTreeSet<Digest>,
    /// Artifacts whose differences have pages: all together, and the first with each other one.
    compared: Vec<CoreHash>,
    /// Where the pages of the artifacts begin.
    starts: PageStarts,
    /// The names by address.
    files: HashMap<String, String>,
    /// The names in lowercase: some file systems do not distinguish cases.
    used_names: HashSet<String>,
    waiting: VecDeque<PendingPageFile>,
}

/// The parts of an address.
struct PageAddress {
    path: Vec<String>,
    parameters: Vec<(String, String)>,
}

impl PageAddress {
    fn parse(address: &str) -> Option<Self> {
        let uri: Uri = address.parse().ok()?;
        let Query(parameters) = Query::try_from_uri(&uri).ok()?;
        Some(Self { path: uri.path().split('/').skip(1).map(str::to_owned).collect(), parameters })
    }

    fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the parameters except those with these names, as a part of a name.
    fn suffix(&self, except: &[&str]) -> String {
        let others = self.parameters.iter().filter(|(name, _)| !except.contains(&name.as_str()));
        others.flat_map(|(name, value)| ["-".to_owned(), safe(name), "-".to_owned(), safe(value)]).collect()
    }
}

impl PageFileNames {
    pub(super) fn new(
        artifacts: &[(CoreHash, String)],
        prompts: BTreeSet<Digest>,
        compared: Vec<CoreHash>,
        starts: PageStarts,
    ) -> Self {
        // Whoever makes artifacts can make two whose hashes begin alike.
        let beginnings: HashSet<String> = artifacts.iter().map(|(core, _)| format!("{core:.12}")).collect();
        let is_unique = beginnings.len() == artifacts.len();
        let stem = |core: CoreHash, kind: &str| {
            // The kind may be one that this program does not know.
            let noun = formats::named(kind).map_or_else(|| "artifact".to_owned(), |kind| safe(kind.noun()));
            if is_unique { format!("{noun}-{core:.12}") } else { format!("{noun}-{core:.64}") }
        };
        let artifacts =
            artifacts.iter().map(|(core, kind)| (*core, (kind.clone(), stem(*core, kind)))).collect();
        let used_names = HashSet::from([INDEX.to_owned()]);
        let (files, waiting) = (HashMap::new(), VecDeque::new());
        Self { artifacts, prompts, compared, starts, files, used_names, waiting }
    }

    /// Returns what is to be written next.
    pub(super) fn next(&mut self) -> Option<PendingPageFile> {
        self.waiting.pop_front()
    }

    /// Returns what a link becomes to an address, which may end with a place on the page. What it leads to is written.
    pub(super) fn target(&mut self, link: &str) -> LinkRewrite {
        if is_external(link) {
            return LinkRewrite::Text;
        }
        let (address, place) = link.split_once('#').unwrap_or((link, ""));
        let Some(parsed) = PageAddress::parse(address) else { return LinkRewrite::Nothing };
        if let Some(page) = self.page_with_step(&parsed, place).filter(|page| page != address) {
            return self.target(&page);
        }
        let path: Vec<&str> = parsed.path.iter().map(String::as_str).collect();
        let artifact = path.get(1).and_then(|core| self.artifacts.get(&core.parse().ok()?));
        let (key, name) = match (path.as_slice(), artifact) {
            (["artifact", _], None) => return LinkRewrite::Text,
            (["artifacts"], _) if parsed.parameter("attribute").is_some() => return LinkRewrite::Text,
            ([""], _) if parsed.parameter("label").is_some() => return LinkRewrite::Text,
            (["artifact", _], Some((_, stem))) => {
                (address.to_owned(), format!("{stem}{}.html", parsed.suffix(&[])))
            }
            (["artifact", _, "graph"], Some((_, stem))) => {
                if parsed.parameter("depth") != Some(DEPTH) {
                    return LinkRewrite::Nothing;
                }
                (address.to_owned(), format!("{stem}-links.html"))
            }
            (["artifact", _, "bytes"], Some((kind, stem))) => {
                (address.to_owned(), bytes(kind, stem, &parsed))
            }
            // All captures of an artifact have the same core.
            (["artifact", core, "core"], Some((_, stem))) => {
                (format!("core of {core}"), format!("{stem}-core.txt"))
            }
            (["prompt", digest], _) => match digest.parse() {
                Ok(digest) if self.prompts.contains(&digest) => {
                    (address.to_owned(), format!("prompt-{digest:.12}.html"))
                }
                _ => return LinkRewrite::Nothing,
            },
            (["diff"], _) if self.is_compared(&parsed) => {
                (address.to_owned(), format!("diff{}.html", parsed.suffix(&["one", "other", "run"])))
            }
            _ => return LinkRewrite::Nothing,
        };
        LinkRewrite::File(self.assign(key, &name, address))
    }

    /// Returns the address of the page with the step that an address leads to, if it is one of the pages of an artifact
    /// without a filter. Those with a filter lead to each other only.
    fn page_with_step(&self, link: &PageAddress, place: &str) -> Option<String> {
        let ["artifact", core] = *link.path.iter().map(String::as_str).collect::<Vec<_>>() else {
            return None;
        };
        let core: CoreHash = core.parse().ok()?;
        if link.parameters.iter().any(|(name, _)| !["from", "raw"].contains(&name.as_str())) {
            return None;
        }
        let from = || link.parameter("from")?.parse().ok();
        let step: u64 = step_of(place).or_else(from)?;
        let is_raw = link.parameter("raw") == Some("true");
        let start = self.starts.page_of(core, step, is_raw);
        let start = (start > 0).then(|| start.to_string());
        let parameters = [("from", start.as_deref()), ("raw", is_raw.then_some("true"))];
        Some(address::with_query(&address::artifact(core), &parameters))
    }

    /// Returns whether these are all artifacts that are compared, or the first and another one.
    fn is_compared(&self, address: &PageAddress) -> bool {
        let runs =
            address.parameters.iter().filter(|(name, _)| ["one", "other", "run"].contains(&name.as_str()));
        let runs: Vec<CoreHash> = runs.filter_map(|(_, core)| core.parse().ok()).collect();
        match (runs.as_slice(), self.compared.split_first()) {
            ([one, other], Some((first, others))) => one == first && others.contains(other),
            (runs, _) => runs.len() > 2 && runs == self.compared,
        }
    }

    /// Returns the name for a key, which is `name` unless another file has it.
    fn assign(&mut self, key: String, name: &str, address: &str) -> String {
        if let Some(name) = self.files.get(&key) {
            return name.clone();
        }
        let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
        let mut unique = name.to_owned();
        let mut number = 2;
        while !self.used_names.insert(unique.to_lowercase()) {
            unique = format!("{stem}-{number}.{ending}");
            number += 1;
        }
        self.files.insert(key, unique.clone());
        self.waiting.push_back(PendingPageFile { address: address.to_owned(), name: unique.clone() });
        unique
    }
}

/// Returns the number of the step in which a place on the page of an artifact is.
fn step_of(place: &str) -> Option<u64> {
    place.strip_prefix("step-")?.split('-').next()?.parse().ok()
}

/// Returns the name of a file with the bytes of a capture, or of one of its members.
fn bytes(kind: &str, stem: &str, address: &PageAddress) -> String {
    let capture = address.parameter("capture").unwrap_or_default();
    let capture: String = safe(capture.rsplit(':').next().unwrap_or_default()).chars().take(12).collect();
    if let Some(member) = address.parameter("member") {
        let member: String = safe(member).chars().take(LONGEST).collect();
        return inert(&format!("{stem}-{capture}-{member}"));
    }
    let members = formats::named(kind).map(Kind::members).unwrap_or_default();
    let ending = members.first().and_then(|member| member.rsplit_once('.'));
    let ending = match ending {
        Some((_, ending)) => format!(".{ending}"),
        // Contracts are JSON or YAML.
        None if kind == formats::TERMS.name() => ".txt".to_owned(),
        None => String::new(),
    };
    inert(&format!("{stem}-{capture}{ending}"))
}

/// Returns a name with which no program runs the file or interprets it as a page.
fn inert(name: &str) -> String {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_lowercase()).unwrap_or_default();
    if INERT.contains(&ending.as_str()) {
        name.to_owned()
    } else if is_text(&ending) {
        format!("{name}.txt")
    } else {
        format!("{name}.bin")
    }
}

/// Returns whether files of a kind have this ending. All of them are texts; browsers guess what their content is.
fn is_text(ending: &str) -> bool {
    let mut members = formats::ALL.iter().flat_map(|kind| kind.members());
    members.any(|member| member.rsplit_once('.').is_some_and(|(_, known)| known == ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn core(text: &str) -> CoreHash {
        CoreHash(Digest::from_content(text.as_bytes()))
    }

    fn names(compared: &[CoreHash]) -> PageFileNames {
        let artifacts = ["a", "b", "c"].map(|text| (core(text), "../<odd>".to_owned()));
        let prompts = BTreeSet::from([core("p").0]);
        PageFileNames::new(&artifacts, prompts, compared.to_vec(), PageStarts::default())
    }

    #[test]
    fn only_what_is_written_has_a_file() {
        let (a, b, other) = (core("a"), core("b"), core("other"));
        let mut names = names(&[a, b]);
        let file = |target| matches!(target, LinkRewrite::File(_));
        assert!(file(names.target(&address::artifact(a))) && file(names.target(&address::graph(b, 2))));
        assert!(
            file(names.target(&address::diff(a, Some(b))))
                && file(names.target(&address::prompt(core("p").0)))
        );
        assert_eq!(names.target(&address::artifact(other)), LinkRewrite::Text);
        assert_eq!(names.target(&address::attribute("a", "b")), LinkRewrite::Text);
        assert_eq!(names.target(&address::label("a", "b")), LinkRewrite::Text);
        assert_eq!(names.target("https://example.org/"), LinkRewrite::Text);
        let elsewhere = [
            address::graph(other, 2),
            address::diff(b, Some(a)),
            address::diff(a, None),
            address::mentions(a.0),
            address::prompt(a.0),
            "/".to_owned(),
            "//example.org/".to_owned(),
            "not an address".to_owned(),
        ];
        for address in elsewhere {
            assert_eq!(names.target(&address), LinkRewrite::Nothing, "{address}");
        }
        let waiting: Vec<String> = std::iter::from_fn(|| names.next()).map(|waiting| waiting.name).collect();
        assert_eq!(waiting.len(), 4);
        assert!(names.target(&address::artifact(a)) != LinkRewrite::Text && names.next().is_none());
    }

    #[test]
    fn a_step_has_one_page_of_each_form() {
        let a = core("a");
        let mut names = names(&[]);
        let mut file = |link: &str| match names.target(&format!("{}{link}", address::artifact(a))) {
            LinkRewrite::File(name) => {
                name.split_once('.').unwrap().0.split_at("artifact-".len() + 12).1.to_owned()
            }
            other => panic!("{link} becomes {other:?}"),
        };
        let cases = [
            ("", ""),
            ("?from=0", ""),
            ("#step-199-1", ""),
            ("?from=7#step-201-0-3", "-from-200"),
            ("?from=399#facts", "-from-200"),
            ("?from=7&raw=true", "-raw-true"),
            ("?from=400&raw=true#step-399", "-from-200-raw-true"),
            ("?from=7&only=errors#step-201", "-from-7-only-errors"),
        ];
        for (link, expected) in cases {
            assert_eq!(file(link), expected, "{link}");
        }
    }

    #[test]
    fn several_are_compared_together_and_each_with_the_first() {
        let [a, b, c] = ["a", "b", "c"].map(core);
        let mut names = names(&[a, b, c]);
        let mut is_written = |address: &str| matches!(names.target(address), LinkRewrite::File(_));
        assert!(
            is_written(&address::compared(&[a, b, c], 0)) && is_written(&address::compared(&[a, b, c], 100))
        );
        assert!(is_written(&address::diff(a, Some(b))) && is_written(&address::diff(a, Some(c))));
        assert!(!is_written(&address::diff(b, Some(c))) && !is_written(&address::compared(&[a, c, b], 0)));
    }

    #[test]
    fn names_of_files_are_safe_and_differ() {
        let mut names = names(&[]);
        let capture = crate::digest::CaptureHash(core("c").0);
        let mut used = HashSet::new();
        let members =
            ["x.html", "../../x.html", "..-..-x.html", "X.HTML", "a.json", "a.ndjson", "", &"y".repeat(300)];
        for member in members {
            let LinkRewrite::File(name) = names.target(&address::bytes(core("a"), capture, Some(member)))
            else {
                panic!("{member} has no file");
            };
            assert!(name.chars().all(|one| one.is_ascii_alphanumeric() || "-._".contains(one)), "{name}");
            assert!(!name.starts_with(['.', '-']) && name.len() < 160, "{name}");
            assert!([".bin", ".txt", ".json"].iter().any(|ending| name.ends_with(ending)), "{name}");
            assert!(used.insert(name.to_lowercase()), "{name}");
        }
    }
}
