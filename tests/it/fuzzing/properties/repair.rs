//! Changed documents with the hashes that their changes call for. Without, nearly everything that a generator makes
//! would be refused for its hashes, and what comes behind would never be tried.
//!
//! Hashes are replaced in the text, so that everything else in it stays as odd as it is.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use runvault::artifact::AdmitOptions;
use runvault::digest::Digest;
use runvault::formats;
use runvault::json::Value;
use runvault::json::canonical::replaykit::{self, VolatilePolicy};
use runvault::json::canonical::{c14n_v1, rfc8785};
use runvault::json::reader::{self, Limits};

use super::kind;

/// `data` as it is and, if that is something else, repaired.
pub(super) fn both(data: &[u8], repair: fn(&[u8]) -> Option<Vec<u8>>) -> Vec<Vec<u8>> {
    let repaired = repair(data).filter(|repaired| repaired != data);
    [Some(data.to_vec()), repaired].into_iter().flatten().collect()
}

/// What is said to be the hash of something, and what is.
type Corrections = Vec<(String, String)>;

fn corrected(text: &str, corrections: &Corrections) -> String {
    let is_hash = |stated: &str| stated.len() > 8 && !stated.contains(['"', '\\']);
    let mut text = text.to_owned();
    for (stated, actual) in corrections.iter().filter(|(stated, actual)| stated != actual && is_hash(stated))
    {
        text = text.replace(stated, actual);
    }
    text
}

fn stated<'v>(value: &'v Value<'_>, name: &str) -> Option<&'v str> {
    value.get(name).and_then(Value::as_str)
}

fn read(text: &str) -> Option<Value<'_>> {
    reader::read_keeping_overflow(text.as_bytes(), &Limits::default()).ok()
}

pub(super) fn session(data: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(data).ok()?;
    let root = read(text)?;
    let interactions = root.get("interactions")?.as_array()?.iter();
    let corrections = interactions.filter_map(|interaction| {
        let content = stated(interaction, "response_content")?;
        Some((
            stated(interaction, "response_hash")?.to_owned(),
            Digest::from_content(content.as_bytes()).to_string(),
        ))
    });
    Some(corrected(text, &corrections.collect()).into_bytes())
}

fn members<'v>(value: &'v Value<'v>, names: &[&'static str]) -> Option<Vec<(&'static str, &'v Value<'v>)>> {
    names.iter().map(|name| Some((*name, value.get(name)?))).collect()
}

pub(super) fn run(data: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(data).ok()?;
    let root = read(text)?;
    let steps = root.get("payload")?.get("run")?.get("steps")?.as_array()?.iter();
    let corrections = steps.filter_map(|step| {
        let members = members(step, &["type", "input", "output", "metadata"])?;
        let hash = Digest::from_content(&replaykit::object(&members, VolatilePolicy::Omit).ok()?);
        Some((stated(step, "hash")?.to_owned(), hash.to_string()))
    });
    let text = corrected(text, &corrections.collect());
    let root = read(&text)?;
    let members = members(&root, &["version", "metadata", "payload"])?;
    let checksum = Digest::from_content(&replaykit::object(&members, VolatilePolicy::Include).ok()?);
    let corrections = vec![(stated(&root, "checksum")?.to_owned(), checksum.to_string())];
    Some(corrected(&text, &corrections).into_bytes())
}

pub(super) fn trace(data: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(data).ok()?;
    let mut before = None;
    let mut lines = Vec::new();
    for line in text.split('\n') {
        let chained = |line: &str| {
            let record = read(line)?;
            let previous = Some((stated(&record, "prev_hash")?.to_owned(), before.clone()?));
            Some(corrected(line, &previous.into_iter().collect()))
        };
        let line = chained(line).unwrap_or_else(|| line.to_owned());
        let hashed = || {
            let record = read(&line)?;
            let text = c14n_v1::object_without(record.as_object()?, "record_hash").ok()?;
            let hash = Digest::from_content(&text).hex();
            Some((corrected(&line, &vec![(stated(&record, "record_hash")?.to_owned(), hash.clone())]), hash))
        };
        let (line, hash) = hashed().map_or((line.clone(), None), |(line, hash)| (line, Some(hash)));
        before = hash;
        lines.push(line);
    }
    Some(lines.join("\n").into_bytes())
}

/// The parts of `data`, each under the name in the line with `=== ` before it.
pub(super) fn sections(data: &[u8]) -> Vec<(&[u8], &[u8])> {
    const MARK: &[u8] = b"=== ";
    let is_start = |at: &usize| data[*at..].starts_with(MARK) && (*at == 0 || data[*at - 1] == b'\n');
    let starts: Vec<usize> = (0..data.len()).filter(is_start).collect();
    let ends = starts.iter().skip(1).map(|next| next - 1).chain([data.len()]);
    let sections = starts.iter().zip(ends).map(|(start, end)| &data[start + MARK.len()..end]);
    sections
        .map(|section| {
            section.split_at(section.iter().position(|byte| *byte == b'\n').unwrap_or(section.len()))
        })
        .map(|(name, rest)| (name, rest.get(1..).unwrap_or_default()))
        .collect()
}

pub(super) fn pack(data: &[u8]) -> Option<Vec<u8>> {
    let mut files: Vec<(Vec<u8>, Vec<u8>)> =
        sections(data).into_iter().map(|(name, bytes)| (name.to_vec(), bytes.to_vec())).collect();
    let mut corrections = Corrections::new();
    let run = files.iter().find(|(name, _)| name == b"run.json")?.1.clone();
    let run = read(std::str::from_utf8(&run).ok()?)?;
    for (name, bytes) in &mut files {
        match name.as_slice() {
            b"model_io.json" => {
                *bytes = session(bytes).unwrap_or_else(|| bytes.clone());
                let admitted = kind("model_io").admit(bytes.clone(), &AdmitOptions::default()).ok();
                let stated = stated(&run, "model_io_hash");
                corrections.extend(
                    stated
                        .zip(admitted)
                        .map(|(stated, admitted)| (stated.to_owned(), admitted.core().to_string())),
                );
            }
            b"bundle.json" => {
                let stated = run.get("bundle").and_then(|bundle| stated(bundle, "sha256"));
                let bundle = std::str::from_utf8(bytes).ok().and_then(read);
                let text = bundle.and_then(|bundle| rfc8785::to_vec(&bundle).ok());
                let hash = text.map(|text| Digest::from_content(&[&text[..], b"\n"].concat()).to_string());
                corrections.extend(stated.map(str::to_owned).zip(hash));
            }
            _ => {}
        }
    }
    let mut repaired = Vec::new();
    for (name, bytes) in files {
        let text = String::from_utf8(bytes).map(|text| corrected(&text, &corrections).into_bytes());
        repaired.extend([b"=== ", &name[..], b"\n", &text.unwrap_or_default(), b"\n"].concat());
    }
    Some(repaired)
}

/// Repairs `data` as what it is recognized as.
pub(super) fn recognized(data: &[u8]) -> Option<Vec<u8>> {
    match formats::recognize(data)?.0.name() {
        "model_io" => session(data),
        "rpk" => run(data),
        "trace" => trace(data),
        _ => None,
    }
}

/// `data` as it is, as a tar file with the checksums that its headers call for, and that compressed.
pub(super) fn archives(data: &[u8]) -> Vec<Vec<u8>> {
    let mut archives = vec![data.to_vec()];
    if let Some(tar) = tar(data) {
        let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
        packer.write_all(&tar).unwrap();
        archives.push(packer.finish().unwrap());
        if tar != data {
            archives.push(tar);
        }
    }
    archives
}

fn tar(data: &[u8]) -> Option<Vec<u8>> {
    const BLOCK: usize = 512;
    const CHECKSUM: std::ops::Range<usize> = 148..156;
    const SIZE: std::ops::Range<usize> = 124..136;
    let mut tar = data.to_vec();
    let mut at = 0;
    let mut found = false;
    while let Some(header) = tar.get_mut(at..at + BLOCK) {
        if &header[257..262] != b"ustar" {
            break;
        }
        found = true;
        header[CHECKSUM].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[CHECKSUM].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        let size = String::from_utf8_lossy(&header[SIZE]).into_owned();
        let size = usize::from_str_radix(size.trim_matches(['\0', ' ']), 8).unwrap_or(0);
        at = at
            .saturating_add(BLOCK)
            .saturating_add(size.checked_next_multiple_of(BLOCK).unwrap_or(usize::MAX));
        if at >= tar.len() {
            break;
        }
    }
    found.then_some(tar)
}
