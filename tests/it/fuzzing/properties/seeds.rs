//! Where generators begin: the corpus and the examples.

use std::fs;
use std::path::Path;

use runvault::artifact::MemberBytes;
use runvault::intake::archive::{self, ArchiveFormat};

/// Larger files slow generators down more than they help.
const MOST_BYTES: usize = 20_000;

/// The files in a directory, in the order of their names.
fn files(directory: &Path) -> Vec<Vec<u8>> {
    let mut paths: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.is_file());
    paths.sort();
    let files = paths.into_iter().map(|path| fs::read(path).unwrap());
    files.filter(|bytes| bytes.len() <= MOST_BYTES).collect()
}

fn corpus(root: &Path, kind: &str) -> Vec<Vec<u8>> {
    files(&root.join("tests/corpus").join(kind))
}

pub(super) fn json(root: &Path) -> Vec<Vec<u8>> {
    let mut seeds = ["model_io", "rpk"].map(|kind| corpus(root, kind)).concat();
    let traces = corpus(root, "trace");
    let lines = traces.iter().flat_map(|text| text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec));
    seeds.extend(lines.take(100));
    seeds
}

pub(super) fn model_io(root: &Path) -> Vec<Vec<u8>> {
    corpus(root, "model_io")
}

pub(super) fn rpk(root: &Path) -> Vec<Vec<u8>> {
    corpus(root, "rpk")
}

pub(super) fn trace(root: &Path) -> Vec<Vec<u8>> {
    corpus(root, "trace")
}

pub(super) fn contract(root: &Path) -> Vec<Vec<u8>> {
    corpus(root, "contract")
}

/// Contracts that no JSON reader takes.
pub(super) fn yaml(root: &Path) -> Vec<Vec<u8>> {
    let mut seeds = corpus(root, "contract");
    seeds.retain(|bytes| !bytes.starts_with(b"{"));
    seeds
}

pub(super) fn recognition(root: &Path) -> Vec<Vec<u8>> {
    let mut seeds = files(&root.join("examples"));
    seeds.extend(["model_io", "rpk", "trace", "contract"].map(|kind| corpus(root, kind)).concat());
    seeds
}

/// The packs of the corpus, each a list of names and bytes.
fn packs(root: &Path) -> Vec<Vec<(String, Vec<u8>)>> {
    let mut paths: Vec<_> =
        fs::read_dir(root.join("tests/corpus/pack")).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.push(root.join("examples/pack"));
    let packs = paths.iter().map(|path| {
        let mut files: Vec<_> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        let files = files.into_iter().filter(|path| path.is_file()).map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read(&path).unwrap())
        });
        files.collect::<Vec<_>>()
    });
    packs.collect()
}

/// As `documents::pack` takes them apart.
pub(super) fn pack(root: &Path) -> Vec<Vec<u8>> {
    let packed = packs(root).into_iter().map(|files| {
        let file =
            |(name, bytes): (String, Vec<u8>)| [b"=== ", name.as_bytes(), b"\n", &bytes, b"\n"].concat();
        files.into_iter().map(file).collect::<Vec<_>>().concat()
    });
    packed.filter(|bytes| bytes.len() <= MOST_BYTES).collect()
}

pub(super) fn archive(root: &Path) -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for files in packs(root) {
        let files: Vec<MemberBytes<'_>> =
            files.iter().map(|(name, bytes)| MemberBytes { name, bytes }).collect();
        for format in [ArchiveFormat::Zip, ArchiveFormat::Tar, ArchiveFormat::TarGz] {
            let mut packed = Vec::new();
            archive::write(format, &files, &mut packed).unwrap();
            seeds.push(packed);
        }
    }
    seeds.retain(|bytes| bytes.len() <= MOST_BYTES);
    seeds
}
