//! Archives in every form that is read, and those that are refused by their names.

use serde_json::Value;

use super::told;
use crate::packs::{Part, gzip, part, run, tar_of, zip_of};
use crate::sandbox::{Sandbox, session};

fn pack() -> Vec<Part> {
    vec![part("run.json", run().to_string()), part("meta.json", "{\"note\": \"x\"}")]
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

/// A tar file as programs wrote it before 1988: without a mark of its own.
fn old_tar(parts: &[(&str, &str)]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (path, text) in parts {
        let mut header = tar::Header::new_old();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(0);
        tar.append_data(&mut header, path, text.as_bytes()).unwrap();
    }
    let bytes = tar.into_inner().unwrap();
    assert!(!bytes.windows(5).any(|window| window == b"ustar"));
    bytes
}

/// What is done to the larger record and to the end.
type Change = dyn Fn(&mut [u8], &mut [u8]);

/// A zip file whose numbers of entries and bytes are in the records for larger ones, as `change` leaves these.
fn zip64(parts: &[Part], change: impl Fn(&mut [u8], &mut [u8])) -> Vec<u8> {
    let mut zip = zip_of(parts);
    let mut end = zip.split_off(zip.len() - 22);
    let at = zip.len() as u64;
    let [entries, list_bytes, list_at] =
        [(10, 2), (12, 4), (16, 4)].map(|(offset, bytes): (usize, usize)| {
            let mut number = [0; 8];
            number[..bytes].copy_from_slice(&end[offset..offset + bytes]);
            u64::from_le_bytes(number)
        });
    let mut record = b"PK\x06\x06".to_vec();
    record.extend(44_u64.to_le_bytes());
    record.extend([45, 0, 45, 0]);
    record.extend([0; 8]);
    for number in [entries, entries, list_bytes, list_at] {
        record.extend(number.to_le_bytes());
    }
    let mut locator = b"PK\x06\x07".to_vec();
    locator.extend(0_u32.to_le_bytes());
    locator.extend(at.to_le_bytes());
    locator.extend(1_u32.to_le_bytes());
    end[8..20].fill(0xff);
    change(&mut record, &mut end);
    [zip, record, locator, end].concat()
}

/// The lines that "verify" prints for a file of this name, and its exit status.
fn verify(name: &str, bytes: impl AsRef<[u8]>, arguments: &[&str]) -> (i32, Vec<String>) {
    let sandbox = Sandbox::new();
    sandbox.write(name, bytes);
    let ran = sandbox.run(["verify", "--json"].iter().chain(arguments).chain(&[name]));
    (ran.status, ran.json().iter().flat_map(told).collect())
}

#[test]
fn packs_are_read_from_every_form_of_zip_and_tar() {
    let tar = tar_of(&pack());
    let text = run().to_string();
    let old = old_tar(&[("top/run.json", &text), ("top/meta.json", "{}")]);
    let forms = [
        ("p.tar.zst", zstd(&tar)),
        ("frames.tar.zst", [zstd(&tar[..700]), zstd(&tar[700..])].concat()),
        ("old.tar", old.clone()),
        ("old.tgz", gzip(&old)),
        ("old.tar.zst", zstd(&old)),
        ("p64.zip", zip64(&pack(), |_, _| {})),
        ("some64.zip", zip64(&pack(), |_, end| end[12..16].fill(0xff))),
    ];
    for (name, bytes) in forms {
        assert_eq!(verify(name, &bytes, &[]), (0, vec![]), "{name}");
        // By content, whatever they are called, and in directories as well.
        let sandbox = Sandbox::new();
        sandbox.write("d/any.bin", bytes);
        let lines = sandbox.run(["add", "--json", "d"]).expect(0).json();
        assert_eq!((&lines[0]["kind"], &lines[0]["outcome"]), (&"pack".into(), &"added".into()), "{name}");
    }
}

#[test]
fn a_pack_is_written_as_tar_in_zstd() {
    let sandbox = Sandbox::new();
    sandbox.write("p/run.json", run().to_string());
    let core = sandbox.add([sandbox.path("p")]).remove(0);
    for name in ["p.tar.zst", "p.tzst"] {
        sandbox.run(["get", &core, "-o", name]).expect(0);
        let tar = zstd::decode_all(std::fs::File::open(sandbox.path(name)).unwrap()).unwrap();
        let mut tar = tar::Archive::new(tar.as_slice());
        let names: Vec<_> =
            tar.entries().unwrap().map(|entry| entry.unwrap().path().unwrap().into_owned()).collect();
        assert_eq!(names, [std::path::Path::new("run.json")]);
    }
}

#[test]
fn zip64_records_that_contradict_the_end_are_refused() {
    let broken = |change: &Change| verify("p.zip", zip64(&pack(), change), &["--kind", "pack"]);
    let contradicting: [&Change; 5] = [
        &|record, _| record[32] = 1,
        &|record, _| record[4] = 45,
        &|record, _| record[0] = b'Q',
        &|_, end| end[8..12].copy_from_slice(&[1, 0, 1, 0]),
        &|_, end| end[16..20].copy_from_slice(&[7, 0, 0, 0]),
    ];
    for (index, change) in contradicting.into_iter().enumerate() {
        let (status, told) = broken(change);
        assert!(
            status == 1 && told[0].starts_with("pack DOC2 : the archive is broken: "),
            "{index}: {told:?}"
        );
    }
    let many = &|record: &mut [u8], _: &mut [u8]| record[24..40].fill(0x7f);
    assert!(
        broken(many).1[0].starts_with("pack DOC5 : there are more than 10000 entries"),
        "{:?}",
        broken(many)
    );
}

#[test]
fn bombs_are_bounded_in_every_form() {
    let zeros =
        vec![part("run.json", run().to_string()), part("meta.json", format!("\"{}\"", " ".repeat(64 << 20)))];
    let (status, found) = verify("b.tar.zst", zstd(&tar_of(&zeros)), &[]);
    assert!(
        status == 1 && found[0].contains("DOC5 : the archive expands to more than 200 times"),
        "{found:?}"
    );
    let large =
        vec![part("run.json", run().to_string()), part("meta.json", format!("\"{}\"", " ".repeat(3 << 20)))];
    let tar = tar_of(&large);
    for (name, bytes) in [("l.tar.zst", zstd(&tar)), ("l.zip", zip64(&large, |_, _| {}))] {
        let (status, found) = verify(name, &bytes, &["--max-size", "2M"]);
        assert!(status == 1 && found[0].contains("limit of 2097152"), "{name}: {found:?}");
        assert_eq!(verify(name, &bytes, &["--max-size", "4M"]), (0, vec![]));
    }
    // A frame that asks for more memory than any `zstd` takes without being told to.
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, (31 - 10) << 3];
    for block in tar_of(&pack()).chunks(1 << 16) {
        frame.extend(&u32::to_le_bytes(u32::try_from(block.len()).unwrap() << 3)[..3]);
        frame.extend(block);
    }
    frame.extend([1, 0, 0]);
    let (status, found) = verify("w.tar.zst", &frame, &[]);
    assert!(status == 1 && found[0].contains("too much memory"), "{found:?}");
    let document = zstd(&vec![b' '; 64 << 20]);
    assert!(
        verify("d.json.zst", &document, &[]).1[0]
            .contains("DOC5 : the archive expands to more than 200 times")
    );
}

#[test]
fn what_was_cut_off_of_an_archive_does_not_get_in() {
    let parts = pack();
    let tar = tar_of(&parts);
    for (bytes, step) in [(zstd(&tar), 11), (zip64(&parts, |_, _| {}), 29)] {
        for length in (1..bytes.len()).step_by(step) {
            let (status, _) = verify("cut", &bytes[..length], &["--kind", "pack"]);
            assert_eq!(status, 1, "{length} of {}", bytes.len());
        }
    }
}

#[test]
fn what_is_not_read_is_refused_by_its_name() {
    let twice = gzip(&gzip(session("a", &[]).as_bytes()));
    let unread: [(&str, &[u8], &str); 7] = [
        ("p.tar.xz", b"\xfd7zXZ\0rest", "an xz file"),
        ("p.tar.bz2", b"BZh91AY&SYrest", "a bzip2 file"),
        ("p.7z", b"7z\xbc\xaf\x27\x1crest", "a 7z archive"),
        ("p.rar", b"Rar!\x1a\x07\x01\0", "a RAR archive"),
        ("p.tar.lz4", b"\x04\x22\x4d\x18rest", "an LZ4 file"),
        ("p.tar.lz", b"LZIP\x01rest", "an lzip file"),
        ("s.json.gz.gz", &twice, "a gzip file that contains no tar archive"),
    ];
    for (name, bytes, what) in unread {
        let message = format!(
            "KIND : this is {what}, which is not supported; decompress it first, or pack as zip, tar, tar.gz or tar.zst"
        );
        assert_eq!(verify(name, bytes, &[]), (1, vec![format!("? {message}")]));
        assert_eq!(verify(name, bytes, &["--kind", "pack"]), (1, vec![format!("pack {message}")]));
        let sandbox = Sandbox::new();
        let ran = sandbox.run_on(bytes, &["verify", "--json", "-"]).expect(1);
        assert_eq!(ran.json().iter().flat_map(told).collect::<Vec<_>>(), [format!("? {message}")]);
    }
    // In a directory, a name tells what is meant to be one.
    let sandbox = Sandbox::new();
    sandbox.write("d/good.json", session("a", &[]));
    for (name, bytes) in [("p.tar.xz", &unread[0].1), ("r.rpk.gz", &unread[6].1), ("x.xz", &unread[0].1)] {
        sandbox.write(&format!("d/{name}"), bytes);
    }
    let lines = sandbox.run(["verify", "--json", "d"]).expect(1).json();
    let of = |line: &Value| format!("{} {}", line["path"], line["ok"]).replace('"', "");
    assert_eq!(
        lines.iter().map(of).collect::<Vec<_>>(),
        ["d/good.json true", "d/p.tar.xz false", "d/r.rpk.gz false"]
    );
}
