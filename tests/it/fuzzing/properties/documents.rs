//! The kinds: whatever they are given, they come to one verdict, and canonical bytes are the same artifact.

use runvault::artifact::{AdmitOptions, Admitted, ArtifactLocation, Directory, DirectoryEntry, EntryContent};
use runvault::formats::{self, model_io::Session};
use runvault::intake::archive::{self, ArchiveFormat};
use runvault::intake::{self, ExamineOptions};
use runvault::json::Value;
use runvault::json::canonical::{c14n_v1, rfc8785};
use runvault::json::reader::{self, Limits};
use runvault::vault::audit::{ContractTerms, Effect, ParsedMember};

use super::{admit, check_admitted, check_rejected, core, kind, members, repair};

/// The core of a session is a session, with the same core.
pub(super) fn model_io(data: &[u8]) {
    for document in repair::both(data, repair::session) {
        let Ok(admitted) = admit(kind("model_io"), &document) else { continue };
        let session = Session::read(&document).unwrap().unwrap();
        let text = core(&admitted);
        let again = admit(kind("model_io"), &text).unwrap();
        assert_eq!((again.core(), core(&again)), (admitted.core(), text.clone()));
        assert_eq!(Session::read(&text).unwrap(), Some(session));
    }
}

/// The core of a run with its checksum is a run with this checksum.
pub(super) fn rpk(data: &[u8]) {
    for document in repair::both(data, repair::run) {
        let Ok(admitted) = admit(kind("rpk"), &document) else { continue };
        let text = String::from_utf8(core(&admitted)).unwrap();
        let with_checksum = format!("{{\"checksum\":\"{}\",{}", admitted.core(), &text[1..]);
        match admit(kind("rpk"), with_checksum.as_bytes()) {
            Ok(again) => assert_eq!(again.core(), admitted.core()),
            // Windows paths may come to light only when others were cut off, as in the original implementation.
            Err(report) => assert!(text.contains(":/"), "{report:?}"),
        }
    }
}

/// A trace whose records are written canonically is the same trace, and its first records are the trace that it was.
pub(super) fn trace(data: &[u8]) {
    for document in repair::both(data, repair::trace) {
        let Ok(admitted) = admit(kind("trace"), &document) else { continue };
        let mut text = Vec::new();
        for (index, line) in document.split(|byte| *byte == b'\n').enumerate() {
            assert_eq!(kind("trace").quote(&document, index).unwrap().as_bytes(), line);
            if !line.is_empty() {
                let record = reader::read(line, &Limits::default()).unwrap();
                text.extend(c14n_v1::to_vec(&record).unwrap());
                text.push(b'\n');
            }
        }
        assert_eq!(admit(kind("trace"), &text).unwrap().core(), admitted.core());
        let ends: Vec<usize> = (0..text.len()).filter(|at| text[*at] == b'\n').collect();
        let records: Vec<_> =
            admitted.draft().mentions.iter().filter(|mention| mention.role.name == "record").collect();
        assert_eq!(records.len(), ends.len());
        let middle = ends.len() / 2;
        let earlier = admit(kind("trace"), &text[..=ends[middle]]).unwrap();
        let place = ArtifactLocation::Index(u32::try_from(middle).unwrap());
        assert!(records.iter().any(|record| record.place == place && record.digest == earlier.core().0));
    }
}

/// The effects of a contract. Bounds are numbers as they are written, which the core may write in another way.
fn effects(contract: &[u8]) -> Vec<Effect> {
    let mut effects = ContractTerms::read(contract).unwrap().effects;
    for evidence in effects.iter_mut().filter_map(|effect| effect.evidence.as_mut()) {
        evidence.bounds = ParsedMember::Nothing;
    }
    effects
}

/// The core of a contract is a contract with the same core, read as JSON and as YAML.
pub(super) fn contract(data: &[u8]) {
    let Ok(admitted) = admit(kind("contract"), data) else { return };
    let effects = effects(data);
    let text = core(&admitted);
    let again = match admit(kind("contract"), &text) {
        Ok(again) => again,
        Err(report) => {
            // A large number with a fraction is rounded, and is a large integer then.
            let large = |message: &str| message.contains("integer");
            assert!(report.violations().iter().all(|one| large(&one.message)), "{report:?}");
            return;
        }
    };
    assert_eq!((again.core(), core(&again)), (admitted.core(), text.clone()));
    assert_eq!(self::effects(&text), effects);
    let yaml = [b"--- ", &text[..]].concat();
    match admit(kind("contract"), &yaml) {
        Ok(again) => assert_eq!(again.core(), admitted.core()),
        // YAML has shorter keys, less depth and fewer pieces.
        Err(report) => assert!(
            has_long_key(&reader::read(&text, &Limits::default()).unwrap()) || text.len() > 100_000,
            "{report:?}"
        ),
    }
}

fn has_long_key(value: &Value<'_>) -> bool {
    match value {
        Value::Array(elements) => elements.iter().any(has_long_key),
        Value::Object(object) => object.iter().any(|(name, member)| name.len() > 200 || has_long_key(member)),
        _ => false,
    }
}

/// What is read as YAML and as JSON at once means the same.
pub(super) fn yaml(data: &[u8]) {
    contract(data);
    let marked = [b"---\n", data].concat();
    let (plain, marked) = (admit(kind("contract"), data), admit(kind("contract"), &marked));
    if let (Ok(plain), Ok(marked)) = (&plain, &marked) {
        assert_eq!(plain.core(), marked.core());
    }
}

/// A pack that is packed or written canonically is the same pack, and its session the artifact that it is by itself.
pub(super) fn pack(data: &[u8]) {
    for data in repair::both(data, repair::pack) {
        let options = AdmitOptions::default();
        match kind("pack").admit_directory(directory(&data), &options) {
            Ok(admitted) => {
                check_admitted(&admitted);
                packed_again(&admitted);
                written_canonically(&admitted);
                for session in admitted.embedded() {
                    let alone = admit(kind("model_io"), session.members()[0].bytes()).unwrap();
                    assert_eq!((alone.core(), alone.capture()), (session.core(), session.capture()));
                }
            }
            Err(report) => check_rejected(kind("pack"), &report),
        }
    }
}

/// The directory that `data` stands for: files, each after a line with `=== ` and its name. A name after `link ` or
/// `other ` is no file.
fn directory(data: &[u8]) -> Directory {
    let entries = repair::sections(data).into_iter().map(|(name, bytes)| {
        let name = String::from_utf8_lossy(name);
        let is_member = |name: &str| kind("pack").members().contains(&name);
        let (name, content) = match (name.strip_prefix("link "), name.strip_prefix("other ")) {
            (Some(name), _) => (name, EntryContent::Link),
            (_, Some(name)) => (name, EntryContent::Other),
            _ if is_member(&name) => (name.as_ref(), EntryContent::File(bytes.to_vec())),
            _ => (name.as_ref(), EntryContent::Unexpected),
        };
        DirectoryEntry { name: name.to_owned(), content }
    });
    Directory { entries: entries.collect() }
}

/// Members that are written canonically make the same pack.
fn written_canonically(pack: &Admitted) {
    let limits = Limits::default();
    let entries = pack.members().iter().map(|member| {
        let content = match (member.name(), pack.embedded()) {
            ("model_io.json", [session]) => core(session),
            ("ledger.jsonl", _) => member.bytes().to_vec(),
            _ => rfc8785::to_vec(&reader::read(member.bytes(), &limits).unwrap()).unwrap(),
        };
        DirectoryEntry { name: member.name().to_owned(), content: EntryContent::File(content) }
    });
    let directory = Directory { entries: entries.collect() };
    let again = kind("pack").admit_directory(directory, &AdmitOptions::default()).unwrap();
    assert_eq!(again.core(), pack.core());
}

pub(super) fn packed_again(admitted: &Admitted) {
    let options = ExamineOptions { kind: Some(admitted.kind()), ..ExamineOptions::default() };
    for format in [ArchiveFormat::Zip, ArchiveFormat::Tar, ArchiveFormat::TarGz] {
        let mut packed = Vec::new();
        archive::write(format, &members(admitted), &mut packed).unwrap();
        assert_eq!(ArchiveFormat::detect(&packed), Some(format));
        let again = intake::examine_document(packed, "", &options).unwrap();
        assert_eq!((again.core(), again.capture()), (admitted.core(), admitted.capture()));
    }
}

/// What a kind admits is recognized, and what is recognized is admitted as nothing else.
pub(super) fn recognition(data: &[u8]) {
    let recognized = formats::recognize(data).map(|(kind, _)| kind);
    let options = ExamineOptions::default();
    let verdict = intake::examine_document(data.to_vec(), "", &options);
    if let (Ok(admitted), Some(recognized)) = (&verdict, recognized)
        && ArchiveFormat::detect(data).is_none()
    {
        assert_eq!(admitted.kind(), recognized);
    }
    for kind in
        formats::ALL.into_iter().filter(|kind| !kind.is_of_directories() && !kind.info().takes_any_bytes)
    {
        if admit(kind, data).is_ok() {
            // In YAML there are unusual spellings of keys.
            assert!(recognized.is_some() || kind.name() == "contract", "{} is not recognized", kind.name());
        }
    }
}
