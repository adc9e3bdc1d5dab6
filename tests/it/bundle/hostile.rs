//! Bundles that are not what they should be. Each refusal names the bundle, the entry and the rule.

use runvault::digest::Digest;
use runvault::intake::InputItem;
use serde_json::{Value, json};

use super::making::{Entries, Making, header_of, tar_of};
use super::{contents, on};
use crate::sandbox::{Sandbox, repository, session};

/// Two sessions, a link between them, and their bundle.
fn two_sessions() -> (Sandbox, Making) {
    let sandbox = Sandbox::new();
    let paths = ["one", "two"].map(|name| {
        sandbox.write(&format!("{name}.json"), session(name, &[("hello", "this is a response")]))
    });
    let cores = sandbox.add(paths);
    sandbox.run(["link", "add", &cores[0], "resembles", &cores[1]]).expect(0);
    sandbox.run(["export", "--all", "-o", "good.rvz"]).expect(0);
    let mut making = Making::of(&sandbox, "good.rvz");
    for artifact in making.manifest["artifacts"].as_array_mut().unwrap() {
        artifact["captures"][0]["added_at"] = "2026-11-20T00:00:00.000Z".into();
    }
    (sandbox, making)
}

/// Imports `bytes`, which must be refused as a whole; gives what was said.
fn refusal(sandbox: &Sandbox, bytes: &[u8]) -> String {
    sandbox.write("bad.rvz", bytes);
    let ran = on(sandbox, "n.vault", &["import", "--create", "bad.rvz"]).expect(1);
    assert!(ran.stdout.is_empty() && !sandbox.path("n.vault").exists(), "{}", ran.stdout);
    assert!(ran.stderr.starts_with("error: bad.rvz: ") && ran.stderr.contains("(rule BU"), "{}", ran.stderr);
    ran.stderr
}

#[test]
fn containers() {
    let (sandbox, good) = two_sessions();
    let tar = good.tar();
    let packed = std::fs::read(sandbox.path("good.rvz")).unwrap();
    let mut flipped = packed.clone();
    *flipped.last_mut().unwrap() ^= 1;
    let mut bad_header = tar.clone();
    bad_header[100] ^= 1;
    let mut behind = tar.clone();
    behind.extend(header_of("more", 0, |_| {}).as_bytes());
    let huge: [u8; 512] = *header_of("manifest.json", 0o7_777_777_777, |_| {}).as_bytes();
    let mut said = String::new();
    for (what, bytes) in [
        ("a directory's archive", tar_of(&[("run.json".to_owned(), b"{}".to_vec())], |_| {})),
        ("half of it", packed[..packed.len() / 2].to_vec()),
        ("all but the last byte", packed[..packed.len() - 1].to_vec()),
        ("another checksum", flipped),
        ("half of a tar file", tar[..tar.len() / 2].to_vec()),
        ("a tar file without an end", tar[..tar.len() - 1024].to_vec()),
        ("a tar file with half an end", tar[..tar.len() - 512].to_vec()),
        ("a tar file with something behind its end", behind),
        ("a header that was changed", bad_header),
        ("a manifest of a gigabyte", huge.to_vec()),
    ] {
        said += &format!("{what}\n  {}", refusal(&sandbox, &bytes));
    }
    insta::assert_snapshot!(said);
}

#[test]
fn entries() {
    let (sandbox, good) = two_sessions();
    let entries = good.entries();
    let with = |change: &dyn Fn(&mut Entries)| {
        let mut entries = entries.clone();
        change(&mut entries);
        tar_of(&entries, |_| {})
    };
    let named = |name: &'static str| with(&move |entries| entries[1].0 = name.to_owned());
    let typed = |change: fn(&mut tar::Header)| {
        let mut bytes = with(&|entries| entries.truncate(1));
        bytes.truncate(bytes.len() - 1024);
        bytes.extend(header_of(&entries[1].0, 0, change).as_bytes());
        bytes
    };
    let mut said = String::new();
    for (what, bytes) in [
        ("a blob before the manifest", with(&|entries| entries.swap(0, 1))),
        ("no manifest", with(&|entries| drop(entries.remove(0)))),
        ("two manifests", with(&|entries| entries.insert(1, entries[0].clone()))),
        ("blobs out of order", with(&|entries| entries.swap(1, 2))),
        ("a blob twice", with(&|entries| entries.insert(1, entries[1].clone()))),
        ("the last blob twice", with(&|entries| entries.push(entries[2].clone()))),
        ("a blob is missing", with(&|entries| drop(entries.remove(1)))),
        ("the last blob is missing", with(&|entries| drop(entries.pop()))),
        ("a blob more", with(&|entries| entries.push((format!("blobs/{}", "f".repeat(64)), vec![1])))),
        ("a path that leads out", named("../../etc/passwd")),
        ("an absolute path", named("/etc/passwd")),
        ("a name that controls the terminal", named("blobs/\u{1b}[2J")),
        ("a link", typed(|header| header.set_entry_type(tar::EntryType::Symlink))),
        ("a directory", typed(|header| header.set_entry_type(tar::EntryType::Directory))),
        ("a long name", typed(|header| header.set_entry_type(tar::EntryType::GNULongName))),
        ("extended headers", typed(|header| header.set_entry_type(tar::EntryType::XHeader))),
        ("a sparse file", typed(|header| header.set_entry_type(tar::EntryType::GNUSparse))),
        ("a blob that is longer", with(&|entries| entries[1].1.push(b' '))),
        ("a blob that is shorter", with(&|entries| entries[1].1.truncate(9))),
        ("a blob with another byte", with(&|entries| entries[1].1[9] ^= 1)),
        ("a size of eight gibibytes", typed(|header| header.set_size(8 << 30))),
    ] {
        said += &format!("{what}\n  {}", refusal(&sandbox, &bytes));
    }
    insta::assert_snapshot!(said);
}

#[test]
fn manifests() {
    let (sandbox, good) = two_sessions();
    let text = String::from_utf8(serde_json_canonicalizer::to_vec(&good.manifest).unwrap()).unwrap();
    let mut said = String::new();
    let mut written = |what: &str, text: String| {
        let mut entries = good.entries();
        entries[0].1 = text.into_bytes();
        said += &format!("{what}\n  {}", refusal(&sandbox, &tar_of(&entries, |_| {})));
    };
    written("no JSON", "{".to_owned());
    written("not UTF-8", text.replace("model_io", "model\u{fffd}io").replace('\u{fffd}', "\\ud83d"));
    written("a list", "[]".to_owned());
    written("line feeds", text.replace(",\"links\"", ",\n\"links\""));
    written("a member twice", text.replace("\"version\":1", "\"version\":1,\"version\":1"));
    written("another spelling of a number", text.replace("\"version\":1", "\"version\":1.0"));
    written("another spelling of a hash", text.replace("\"blob\":\"sha256:", "\"blob\":\""));
    written("something behind it", format!("{text}{text}"));
    written("very deep", text.replace("\"tags\":[]", &format!("\"tags\":{}", "[".repeat(100_000))));
    let artifact = good.manifest["artifacts"][0].clone();
    let core = artifact["core_hash"].clone();
    let other = Digest::from_content(b"another").to_string();
    let mut changed = |what: &str, pointer: &str, value: Value| {
        let mut manifest = good.manifest.clone();
        let place = manifest.pointer_mut(pointer).unwrap();
        *place = value;
        written(what, String::from_utf8(serde_json_canonicalizer::to_vec(&manifest).unwrap()).unwrap());
    };
    changed("another format", "/format", json!("zip"));
    changed("a later version", "/version", json!(2));
    changed("no artifacts, but a link", "/artifacts", json!([]));
    changed("an artifact twice", "/artifacts/1", artifact.clone());
    changed("artifacts out of order", "/artifacts", json!([good.manifest["artifacts"][1], artifact]));
    changed("no captures", "/artifacts/0/captures", json!([]));
    changed(
        "a capture twice",
        "/artifacts/0/captures",
        json!([artifact["captures"][0], artifact["captures"][0]]),
    );
    changed("another capture hash", "/artifacts/0/captures/0/capture_hash", json!(other));
    changed("another size of the capture", "/artifacts/0/captures/0/size", json!(1));
    changed("a negative size", "/artifacts/0/captures/0/size", json!(-1));
    changed("no members", "/artifacts/0/captures/0/members", json!([]));
    changed("an unknown member", "/artifacts/0/captures/0/members/0", json!({"path": "/etc/passwd"}));
    let member = artifact["captures"][0]["members"][0].clone();
    changed("a file twice", "/artifacts/0/captures/0/members", json!([member, member]));
    changed("a name with control characters", "/artifacts/0/captures/0/members/0/name", json!("a\u{1b}[2J"));
    changed("a long name", "/artifacts/0/captures/0/members/0/name", json!("n".repeat(256)));
    changed("a long kind", "/artifacts/0/kind", json!("k".repeat(256)));
    changed("tags out of order", "/artifacts/0/tags", json!(["b", "a"]));
    changed("a tag twice", "/artifacts/0/tags", json!(["a", "a"]));
    for (what, note) in
        [("a note of spaces", " \n".to_owned()), ("a note that is too long", "n".repeat(4097))]
    {
        let mut noted = artifact.clone();
        noted["note"] = json!(note);
        changed(what, "/artifacts/0", noted);
    }
    let links = &good.manifest["links"];
    changed("a link twice", "/links", json!([links[0], links[0]]));
    changed("a relation that is none", "/links/0/relation", json!("Governs!"));
    changed("a long relation", "/links/0/relation", json!("r".repeat(41)));
    changed("a link to itself", "/links", json!([{"relation": "r", "source": core, "target": core}]));
    changed(
        "a link of others",
        "/links",
        json!([{"relation": "r", "source": other, "target": Digest::from_content(b"b").to_string()}]),
    );
    changed(
        "a long note",
        "/links/0",
        json!({"note": "n".repeat((1 << 20) + 1), "relation": "r", "source": core, "target": other}),
    );
    insta::assert_snapshot!(said);
}

/// What is just within the limits gets in.
#[test]
fn limits_are_met_and_tags_are_told() {
    let (sandbox, mut making) = two_sessions();
    let tags: Vec<String> = (0..1_000).map(|number| format!("{number:0100}")).collect();
    making.manifest["artifacts"][0]["tags"] = json!(tags);
    making.manifest["links"][0]["note"] = "n".repeat(1 << 20).into();
    making.manifest["links"][0]["relation"] = "r".repeat(40).into();
    sandbox.write("full.rvz", making.tar());
    let ran = on(&sandbox, "n.vault", &["import", "--create", "full.rvz"]).expect(0);
    assert!(ran.stderr.starts_with("2 added"), "{}", ran.stderr);
    assert!(ran.stderr.contains("1 link added"), "{}", ran.stderr);
    assert!(ran.stderr.contains("1000 tags set"), "{}", ran.stderr);
    // A bundle with that link and note can be made again.
    assert_eq!(on(&sandbox, "n.vault", &["export", "--all", "-o", "again.rvz"]).expect(0).stdout, "");
    assert_eq!(Making::of(&sandbox, "again.rvz").manifest["links"], making.manifest["links"]);
}

/// Names in a manifest are never those of files on a disk: what a kind does not have is not stored, and nowhere.
#[test]
fn bad_artifacts_are_named_and_the_good_ones_stored() {
    let (sandbox, good) = two_sessions();
    let mut said = String::new();
    let mut tried = |what: &str, change: &dyn Fn(&mut Making)| {
        let mut making = good.clone();
        change(&mut making);
        let _ = std::fs::remove_file(sandbox.path("n.vault"));
        sandbox.write("bad.rvz", making.tar());
        let ran = on(&sandbox, "n.vault", &["import", "--create", "bad.rvz"]).expect(1);
        said += &format!("{what}\n{}--\n{}\n", ran.stdout, crate::output::steady(&ran.stderr));
        assert_eq!(contents(&sandbox, "n.vault").len(), 1);
    };
    tried("a response that was edited", &|making| making.edit(0, "a response", "a lie"));
    tried("another artifact under the same core hash", &|making| making.edit(0, "\"m\"", "\"n\""));
    tried("an unknown kind", &|making| making.manifest["artifacts"][0]["kind"] = "wish".into());
    tried("another kind", &|making| making.manifest["artifacts"][0]["kind"] = "trace".into());
    tried("another name of the file", &|making| {
        making.manifest["artifacts"][0]["captures"][0]["members"][0]["name"] = "run.rpk".into();
    });
    tried("a directory's kind", &|making| making.manifest["artifacts"][0]["kind"] = "pack".into());
    insta::assert_snapshot!(said);
}

#[test]
fn a_pack_with_other_files() {
    let sandbox = Sandbox::new();
    sandbox.run(["add".into(), repository("examples/pack")]).expect(0);
    sandbox.run(["export", "--kind", "pack", "-o", "good.rvz"]).expect(0);
    let mut making = Making::of(&sandbox, "good.rvz");
    let capture = &mut making.manifest["artifacts"][0]["captures"][0];
    let members = capture["members"].as_array_mut().unwrap();
    members
        .insert(0, json!({"blob": members[0]["blob"], "name": "../../escape", "size": members[0]["size"]}));
    let size: u64 = members.iter().map(|member| member["size"].as_u64().unwrap()).sum();
    let names =
        members.iter().map(|member| (member["name"].as_str().unwrap().to_owned(), member["blob"].clone()));
    let digests: serde_json::Map<String, Value> = names.collect();
    capture["capture_hash"] =
        Digest::from_content(&serde_json_canonicalizer::to_vec(&digests).unwrap()).to_string().into();
    capture["size"] = size.into();
    sandbox.write("bad.rvz", making.tar());
    let ran = on(&sandbox, "n.vault", &["import", "--create", "bad.rvz"]).expect(1);
    assert!(ran.stderr.contains("../../escape"), "{}", ran.stderr);
    assert!(!sandbox.path("n.vault").exists(), "what is rejected leaves no vault behind");
}

#[test]
fn a_bomb() {
    let (sandbox, good) = two_sessions();
    let zeros = vec![0; 80 << 20];
    let digest = Digest::from_content(&zeros);
    let mut making = good.clone();
    let member = json!({"blob": digest.to_string(), "name": "model_io.json", "size": zeros.len()});
    making.manifest["artifacts"][0]["captures"][0] = json!({
        "added_at": "2026-11-20T00:00:00.000Z", "capture_hash": digest.to_string(), "members": [member],
        "size": zeros.len(),
    });
    let name = making.manifest["artifacts"][1]["captures"][0]["members"][0]["blob"].as_str().unwrap()[7..]
        .to_owned();
    making.blobs.retain(|(entry, _)| entry.ends_with(&name));
    making.blobs.push((format!("blobs/{}", digest.hex()), zeros));
    making.blobs.sort();
    let said = refusal(&sandbox, &zstd::encode_all(making.tar().as_slice(), 3).unwrap());
    assert!(said.contains("expands to more than 200 times its size (rule BU7)"), "{said}");
    // Who unpacks it on purpose may import it; it is no artifact all the same.
    sandbox.write("bomb.tar", making.tar());
    let ran = on(&sandbox, "n.vault", &["import", "--create", "bomb.tar"]).expect(1);
    assert!(ran.stdout.starts_with("added") && ran.stderr.contains("1 rejected"), "{}", ran.stderr);
}

#[test]
fn no_flipped_bit_gets_anything_else_in() {
    let (sandbox, good) = two_sessions();
    let limit = 1 << 20;
    // What is compressed has a checksum. In what is not, a flip may change what the manifest says of artifacts, which is
    // checked when they are admitted, but never their bytes.
    let of = |bytes: &[u8]| {
        let bundle = runvault::vault::bundle::read(bytes, "b", limit).ok()?;
        let files = bundle.items().map(|item| match item.unwrap() {
            InputItem::Declared(stated) => {
                stated.files.into_iter().map(|(_, bytes)| bytes).collect::<Vec<_>>()
            }
            other => panic!("{other:?}"),
        });
        Some((files.collect::<Vec<_>>(), bundle.manifest().clone()))
    };
    let mut refused = 0;
    for (bytes, is_compressed) in
        [(std::fs::read(sandbox.path("good.rvz")).unwrap(), true), (good.tar(), false)]
    {
        let expected = of(&bytes).unwrap();
        for offset in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[offset] ^= 1 << (offset % 8);
            match of(&flipped) {
                None => refused += 1,
                Some((files, manifest)) => {
                    assert!(files == expected.0, "byte {offset}");
                    assert!(!is_compressed || manifest == expected.1, "byte {offset}");
                }
            }
        }
        for length in (0..bytes.len()).step_by(7) {
            // Nothing but zeros may be missing, and those not either.
            assert!(of(&bytes[..length]).is_none(), "{length} bytes");
        }
    }
    assert!(refused > 1_000);
}
