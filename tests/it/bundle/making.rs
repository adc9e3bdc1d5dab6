//! Bundles as others might make them.

use std::io::Read;

use runvault::digest::Digest;
use serde_json::Value;

use crate::sandbox::Sandbox;

/// Entries of a tar file, by name.
pub(crate) type Entries = Vec<(String, Vec<u8>)>;

/// A bundle in parts, to be put together in any way.
#[derive(Clone)]
pub(crate) struct Making {
    pub(crate) manifest: Value,
    pub(crate) blobs: Entries,
    pub(crate) header: fn(&mut tar::Header),
}

impl Making {
    /// The parts of a bundle that was exported.
    pub(crate) fn of(sandbox: &Sandbox, bundle: &str) -> Self {
        let file = std::fs::File::open(sandbox.path(bundle)).unwrap();
        let mut tar = tar::Archive::new(zstd::Decoder::new(file).unwrap());
        let mut blobs = Vec::new();
        for entry in tar.entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            blobs.push((entry.path().unwrap().to_str().unwrap().to_owned(), bytes));
        }
        let (_, manifest) = blobs.remove(0);
        Self { manifest: serde_json::from_slice(&manifest).unwrap(), blobs, header: |_| {} }
    }

    /// Entries with the manifest in front.
    pub(crate) fn entries(&self) -> Entries {
        let manifest =
            ("manifest.json".to_owned(), serde_json_canonicalizer::to_vec(&self.manifest).unwrap());
        std::iter::once(manifest).chain(self.blobs.clone()).collect()
    }

    pub(crate) fn tar(&self) -> Vec<u8> {
        tar_of(&self.entries(), self.header)
    }

    /// Replaces the text `from` in the document of the artifact `number`, and states everywhere what follows from it, but
    /// for the core hash.
    pub(crate) fn edit(&mut self, number: usize, from: &str, to: &str) {
        let capture = &mut self.manifest["artifacts"][number]["captures"][0];
        let name = format!("blobs/{}", &capture["capture_hash"].as_str().unwrap()[7..]);
        let (entry, bytes) = self.blobs.iter_mut().find(|(other, _)| *other == name).unwrap();
        let text = String::from_utf8(bytes.clone()).unwrap();
        assert!(text.contains(from));
        *bytes = text.replace(from, to).into_bytes();
        let digest = Digest::from_content(bytes);
        *entry = format!("blobs/{}", digest.hex());
        capture["capture_hash"] = digest.to_string().into();
        capture["members"][0]["blob"] = digest.to_string().into();
        capture["members"][0]["size"] = bytes.len().into();
        capture["size"] = bytes.len().into();
        self.blobs.sort();
    }
}

/// A tar file of entries with any names, which `change` has the last word about.
pub(crate) fn tar_of(entries: &[(String, Vec<u8>)], change: fn(&mut tar::Header)) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, bytes) in entries {
        out.extend(header_of(name, bytes.len() as u64, change).as_bytes());
        out.extend(bytes);
        out.resize(out.len().next_multiple_of(512), 0);
    }
    out.resize(out.len() + 1024, 0);
    out
}

pub(crate) fn header_of(name: &str, size: u64, change: fn(&mut tar::Header)) -> tar::Header {
    let mut header = tar::Header::new_ustar();
    // As others write names: nothing is checked.
    header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
    header.set_size(size);
    header.set_entry_type(tar::EntryType::Regular);
    header.set_mode(0o644);
    change(&mut header);
    header.set_cksum();
    header
}
