//! The vaults that are changed. The same every time: the clock stands still while they are made.

use std::sync::LazyLock;

use super::limited::CLOCK;
use crate::fsck::{bytes_of, every_table, small_pages, sql};
use crate::sandbox::{Sandbox, repository, session};

/// A vault before it is changed.
#[derive(Clone)]
pub(super) struct Base {
    pub(super) name: &'static str,
    pub(super) bytes: Vec<u8>,
    /// The write-ahead log beside it, if there is one.
    pub(super) log: Option<Vec<u8>>,
}

impl Base {
    pub(super) fn page_size(&self) -> usize {
        let stated = usize::from(u16::from_be_bytes([self.bytes[16], self.bytes[17]]));
        if stated == 1 { 65_536 } else { stated }
    }
}

/// All of them.
pub(super) static ALL: LazyLock<Vec<Base>> = LazyLock::new(|| {
    let small = every_table::small();
    let large = every_table::large();
    vec![
        of("small", &small),
        with_small_pages("small pages", &small),
        with_small_pages("large, small pages", &large),
        logged(),
        earlier("earlier build", "tests/vaults/earlier-build.vault.zst"),
    ]
});

fn of(name: &'static str, sandbox: &Sandbox) -> Base {
    Base { name, bytes: bytes_of(sandbox), log: None }
}

fn with_small_pages(name: &'static str, sandbox: &Sandbox) -> Base {
    Base { name, bytes: small_pages(sandbox), log: None }
}

/// A vault most of which is in its log.
pub(super) fn logged() -> Base {
    let mut sandbox = Sandbox::new();
    sandbox.set_clock(CLOCK);
    sandbox.write("config.toml", "actor = \"fuzz\"\n");
    sandbox.run(["add".into(), repository("examples/run.rpk")]).expect(0);
    let bytes = bytes_of(&sandbox);
    // Whoever reads keeps the log from being emptied.
    let reader = sql(&sandbox);
    reader.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema").unwrap();
    sandbox.run(["add".into(), repository("examples")]).expect(0);
    let text = session("a", &[("p", "response")]);
    sandbox.add([sandbox.write("a.json", text)]);
    sandbox.run(["index", "build"]).expect(0);
    sandbox.run(["tag", "set", "latest", "golden"]).expect(0);
    let log = std::fs::read(sandbox.path("v.vault-wal")).unwrap();
    assert!(std::fs::read(sandbox.vault()).unwrap() == bytes && log.len() > 100_000, "{}", log.len());
    Base { name: "logged", bytes, log: Some(log) }
}

fn earlier(name: &'static str, path: &str) -> Base {
    let file = std::fs::File::open(repository(path)).unwrap();
    Base { name, bytes: zstd::decode_all(file).unwrap(), log: None }
}
