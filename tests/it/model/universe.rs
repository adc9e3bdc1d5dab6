//! The artifacts of the model test: few, so that sequences meet each of them often, and related in every way.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use runvault::artifact::{
    AdmitOptions, Admitted, Directory, DirectoryEntry, EntryContent, KeyRing, Kind, MemberBytes,
    SignaturePolicy, SigningKey,
};
use runvault::digest::{CaptureHash, CoreHash, Digest};
use runvault::formats;
use serde_json::{Value, json};

use crate::agent_sessions::forms;
use crate::packs;
use crate::sandbox::{repository, run_pack, sealed, session};
use crate::signatures::sign;
use crate::traces::{self, Record};

/// What a document is admitted from.
enum Source {
    Document(Vec<u8>),
    Directory(Vec<(String, Vec<u8>)>),
}

/// Something that can be added.
pub(super) struct Input {
    kind: Kind,
    source: Source,
    /// Whether the key of its signature is available.
    has_key: bool,
}

impl Input {
    fn document(kind: &str, bytes: impl Into<Vec<u8>>) -> Self {
        Self { kind: formats::named(kind).unwrap(), source: Source::Document(bytes.into()), has_key: false }
    }

    fn directory(files: Vec<(&str, Vec<u8>)>) -> Self {
        let files = files.into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).collect();
        Self { kind: formats::named("pack").unwrap(), source: Source::Directory(files), has_key: false }
    }

    fn with_key(self) -> Self {
        Self { has_key: true, ..self }
    }

    pub(super) fn admit(&self) -> Admitted {
        let mut signing_keys = KeyRing::default();
        if self.has_key {
            signing_keys.add(Some("ours"), SigningKey::new("key").unwrap()).unwrap();
        }
        let options = AdmitOptions {
            signing_keys,
            signature_policy: SignaturePolicy::Record,
            ..AdmitOptions::default()
        };
        match &self.source {
            Source::Document(bytes) => {
                self.kind.admit(bytes.clone(), &options).unwrap_or_else(|report| panic!("{report:?}"))
            }
            Source::Directory(files) => {
                let entry = |(name, bytes): &(String, Vec<u8>)| DirectoryEntry {
                    name: name.clone(),
                    content: EntryContent::File(bytes.clone()),
                };
                let directory = Directory { entries: files.iter().map(entry).collect() };
                self.kind.admit_directory(directory, &options).unwrap()
            }
        }
    }
}

/// The inputs, and everything that questions can name.
pub(super) struct Universe {
    pub(super) inputs: Vec<Input>,
    /// What the inputs are admitted as.
    pub(super) admitted: Vec<Admitted>,
    pub(super) kinds: Vec<String>,
    /// The artifacts, and one that does not exist.
    pub(super) cores: Vec<CoreHash>,
    pub(super) captures: Vec<CaptureHash>,
    /// All mentioned digests, core hashes, capture hashes and hashes of files.
    pub(super) digests: Vec<Digest>,
    pub(super) attributes: Vec<(String, String)>,
    pub(super) names: Vec<String>,
    pub(super) groups: Vec<String>,
    pub(super) relations: Vec<String>,
}

pub(super) static UNIVERSE: LazyLock<Universe> = LazyLock::new(|| Universe::new(inputs()));

impl Universe {
    fn new(inputs: Vec<Input>) -> Self {
        let nothing = Digest::from_content(b"nothing");
        let (mut cores, mut captures) =
            (BTreeSet::from([CoreHash(nothing)]), BTreeSet::from([CaptureHash(nothing)]));
        let (mut digests, mut attributes) = (BTreeSet::from([nothing]), BTreeSet::new());
        let (mut names, mut groups, mut relations) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let mut waiting: Vec<Admitted> = inputs.iter().map(Input::admit).collect();
        while let Some(mut admitted) = waiting.pop() {
            waiting.extend(admitted.take_embedded());
            cores.insert(admitted.core());
            captures.insert(admitted.capture());
            digests.extend([admitted.core().0, admitted.capture().0]);
            digests.extend(admitted.members().iter().map(|member| member.blob().0));
            let draft = admitted.draft();
            digests.extend(draft.mentions.iter().map(|mention| mention.digest));
            groups.extend(draft.mentions.iter().map(|mention| mention.role.group.to_owned()));
            let of_roles = draft.mentions.iter().filter_map(|mention| mention.role.relation);
            let of_names = draft.refers_to.iter().map(|(relation, _)| *relation);
            relations.extend(of_roles.chain(of_names).map(|relation| relation.name.to_owned()));
            let attribute =
                |known: &runvault::artifact::Attribute| (known.name.to_owned(), known.value.clone());
            attributes.extend(draft.attributes.iter().map(attribute));
            names.extend(draft.identified_by.iter().map(|name| name.as_str().to_owned()));
            names.extend(draft.refers_to.iter().map(|(_, name)| name.as_str().to_owned()));
        }
        names.insert("run:none".to_owned());
        Self {
            admitted: inputs.iter().map(Input::admit).collect(),
            inputs,
            kinds: formats::ALL.iter().map(|kind| kind.name().to_owned()).collect(),
            cores: cores.into_iter().collect(),
            captures: captures.into_iter().collect(),
            digests: digests.into_iter().collect(),
            attributes: attributes.into_iter().collect(),
            names: names.into_iter().collect(),
            groups: groups.into_iter().collect(),
            relations: relations.into_iter().collect(),
        }
    }
}

fn inputs() -> Vec<Input> {
    let mut inputs = sessions();
    inputs.extend(runs());
    inputs.extend(other_traces());
    inputs.extend(agent_sessions());
    inputs.extend(contracts());
    inputs.extend(packs());
    inputs.extend(attachments());
    inputs
}

fn parsed(document: &str) -> Value {
    serde_json::from_str(document).unwrap()
}

/// Sessions with prompts and responses in common, several captures of one, and one that refers to others by their hashes and by
/// those of their files.
fn sessions() -> Vec<Input> {
    let one = session("a", &[("p0", "r0"), ("p1", "r1")]);
    let mut dated = parsed(&one);
    dated["created_at_utc"] = "2026-01-05T10:00:00Z".into();
    let mut later = dated.clone();
    later["created_at_utc"] = "2026-02-05T10:00:00.500Z".into();
    let core = |text: &str| {
        formats::named("model_io").unwrap().admit(text.as_bytes().to_vec(), &AdmitOptions::default())
    };
    let core = core(&one).unwrap().core().to_string();
    let mut referring = parsed(&session("a", &[("p0", "r2")]));
    let pretty = format!("{:#}", parsed(&one));
    let hash = |file: &str| Digest::from_content(file.as_bytes()).to_string();
    referring["metadata"] = json!({"parent": core, "missing": hash("missing"), "file": hash(&pretty),
        "two_kinds": hash(&session_and_contract()), "and_attachment": hash(&session("b", &[("p0", "r0")]))});
    let documents = [
        one.clone(),
        pretty,
        dated.to_string(),
        later.to_string(),
        session("b", &[("p0", "r0")]),
        session("b", &[("p1", "r1"), ("p0", "r0"), ("p0", "r0")]),
        referring.to_string(),
    ];
    documents.into_iter().map(|document| Input::document("model_io", document)).collect()
}

/// Runs that fork, a copy of one that says so, one that replays a session, and signed captures.
fn runs() -> Vec<Input> {
    let steps = |answers: &[&str]| -> Vec<Value> {
        let request =
            json!({"type": "model.request", "input": {"prompt": "p0"}, "output": {"status": "sent"}});
        let answer = |answer: &&str| json!({"type": "model.response", "output": {"content": answer}});
        std::iter::once(request).chain(answers.iter().map(answer)).collect()
    };
    let one = run_pack("run-1", &steps(&["r0", "r1"]));
    let mut copy = parsed(&one);
    copy["metadata"]["bundle"] = true.into();
    copy["metadata"]["source_run_id"] = "run-1".into();
    let mut elsewhere = parsed(&run_pack("run-2", &steps(&["r0"])));
    elsewhere["metadata"]["source_run_id"] = "run-9".into();
    let documents = [
        one.clone(),
        format!("{:#}", parsed(&one)),
        run_pack("run-1", &steps(&["r0", "x", "y"])),
        sealed(copy),
        sealed(elsewhere),
    ];
    let mut inputs: Vec<Input> =
        documents.into_iter().map(|document| Input::document("rpk", document)).collect();
    for (id, key, has_key) in
        [("ours", "key", true), ("ours", "key", false), ("ours", "other", true), ("theirs", "other", false)]
    {
        let input = Input::document("rpk", sign(one.as_bytes(), id, key));
        inputs.push(if has_key { input.with_key() } else { input });
    }
    inputs
}

/// A session that grows, one that forks from it, and that of an agent that it starts.
fn agent_sessions() -> Vec<Input> {
    let lines = forms::claude_code();
    let rewritten: Vec<String> = lines.iter().map(|line| line.replace("18 degrees", "9 degrees")).collect();
    let started: Vec<String> = lines
        .iter()
        .map(|line| line.replace("\"isSidechain\":false", "\"isSidechain\":true,\"agentId\":\"a1\""))
        .collect();
    [&lines[..2], &lines[..4], &lines, &rewritten, &started]
        .into_iter()
        .map(|lines| Input::document("agent_session", forms::lines(lines)))
        .collect()
}

/// Traces that extend each other, and one that is another history of the same run.
fn other_traces() -> Vec<Input> {
    let steps = traces::steps("run-1", 3);
    let fork = traces::lines("run-1", &[Record::Step(0), Record::Failed, Record::Step(2)]);
    let other = traces::lines("run-2", &[Record::Step(0), Record::Control("STOP")]);
    [&steps[..2], &steps[..3], &steps[..], &fork[..], &other[..1]]
        .into_iter()
        .map(|lines| Input::document("trace", lines.concat()))
        .collect()
}

/// Returns a document that is of two kinds.
fn session_and_contract() -> String {
    let mut both = parsed(&session("two", &[("p0", "r0")]));
    both["io_refs"] = json!([]);
    both["effects"] = json!([]);
    both.to_string()
}

/// Contracts, one of which is a session as well, and one of which other artifacts name.
fn contracts() -> Vec<Input> {
    let example = std::fs::read(repository("examples/contract.yaml")).unwrap();
    let core =
        formats::named("contract").unwrap().admit(example.clone(), &AdmitOptions::default()).unwrap().core();
    let mut governed = parsed(&run_pack("run-3", &[json!({"type": "agent.command"})]));
    governed["metadata"]["contract"] = core.to_string().into();
    vec![
        Input::document("model_io", session_and_contract()),
        Input::document("contract", session_and_contract()),
        Input::document("contract", example),
        Input::document("rpk", sealed(governed)),
    ]
}

/// Bytes that other artifacts refer to, that they contain, that are an artifact of another kind as well, and whose hash
/// is the core hash of one.
fn attachments() -> Vec<Input> {
    let session = session("b", &[("p0", "r0")]);
    let member = MemberBytes { name: "model_io.json", bytes: session.as_bytes() };
    let mut core = Vec::new();
    formats::named("model_io").unwrap().write_core(&[member], &mut core).unwrap();
    [&b"missing"[..], b"nothing", POLICY, session.as_bytes(), &core]
        .into_iter()
        .map(|bytes| Input::document("attachment", bytes))
        .collect()
}

/// A file that several packs have.
const POLICY: &[u8] = br#"{"name":"strict","version":"2"}"#;

/// Packs with and without the sessions that are artifacts of their own, with a file in common.
fn packs() -> Vec<Input> {
    let example = ["bundle.json", "evidence.json", "model_io.json", "policy.json", "run.json"]
        .map(|name| (name, std::fs::read(repository(&format!("examples/pack/{name}"))).unwrap()));
    let pack = |id: &str, session: Option<String>| {
        let mut run = packs::run();
        run["run_id"] = id.into();
        let mut files = vec![("policy.json", POLICY.to_vec()), ("run.json", run.to_string().into_bytes())];
        files.extend(session.map(|session| ("model_io.json", session.into_bytes())));
        Input::directory(files)
    };
    vec![
        Input::directory(example.to_vec()),
        pack("run-1", Some(session("a", &[("p0", "r0"), ("p1", "r1")]))),
        pack("run-2", Some(session("b", &[("p0", "r0")]))),
        pack("run-2", None),
    ]
}

#[test]
fn the_universe_has_artifacts_of_every_kind() {
    let rejected: Vec<String> = inputs()
        .iter()
        .filter_map(|input| std::panic::catch_unwind(|| input.admit()).err())
        .map(|panic| format!("{:?}", panic.downcast_ref::<String>()))
        .collect();
    assert!(rejected.is_empty(), "{rejected:#?}");
    for kind in &UNIVERSE.kinds {
        assert!(UNIVERSE.admitted.iter().any(|admitted| admitted.kind().name() == kind), "{kind}");
    }
}
