//! Twenty sessions and runs that are recorded again every night: near-identical documents.

use rusqlite::{Connection, OpenFlags};

use super::{Bench, Rivals, add_sizes, add_times, all_of, expect_valid};
use crate::corpus;
use crate::measure;
use crate::programs::{BORG, GIT, Place, RESTIC, contest, git};
use crate::table::{Table, Target, megabytes, size};

/// The bytes of what a vault stores, without any index. To be changed with `migrations/`.
const STORED_PAYLOAD: &str =
    "SELECT coalesce(sum(length(bytes) + coalesce(length(digests), 0)), 0) FROM payload";

static IN_TIME: &Rivals = &[(&BORG, Target::AtMost(0.9)), (&RESTIC, Target::None), (&GIT, Target::None)];
static IN_SIZE: &Rivals = &[(&RESTIC, Target::AtMost(0.5)), (&BORG, Target::None)];

pub fn run(bench: &Bench) -> Table {
    let (root, nights) = (bench.directory("ci"), bench.many(100, 5));
    corpus::write_ci(&root, nights);
    expect_valid(&root, 20 * nights);
    let bytes = measure::size_of(&root);
    let mut table = Table::new(format!("ci: {} recordings, {} in files", 20 * nights, size(bytes)));
    let scores = contest(&all_of(IN_TIME), &root, &bench.directory("contest-ci"), bench.runs);
    add_times(&mut table, &scores, IN_TIME);
    let payload = stored_payload(&scores[0].place);
    table.plain("stored payload of the vault", &size(payload));
    if let Some(of_git) = scores.iter().find(|score| score.program.name == GIT.name) {
        let pack = packed(&of_git.place);
        let ratio = megabytes(payload) / megabytes(pack);
        table.ratio("pack of git gc --aggressive, to the payload", &size(pack), ratio, Target::AtMost(1.0));
    }
    add_sizes(&mut table, &scores, IN_SIZE);
    table
}

fn stored_payload(place: &Place) -> u64 {
    let vault = Connection::open_with_flags(place.vault(), OpenFlags::SQLITE_OPEN_READ_ONLY);
    let number = vault.and_then(|vault| vault.query_row(STORED_PAYLOAD, [], |row| row.get(0)));
    number.expect("a number")
}

/// The size of git's pack after it has done its best.
fn packed(place: &Place) -> u64 {
    let repository = place.scratch.join("repository");
    let author = ["-c", "user.name=bench", "-c", "user.email=bench@example.com"];
    measure::time(git(&repository).args(author).args(["commit", "--quiet", "-m", "bench"]));
    measure::time(git(&repository).args(["gc", "--aggressive", "--quiet", "--prune=now"]));
    let packs = std::fs::read_dir(repository.join(".git/objects/pack")).expect("packs");
    packs
        .map(|entry| entry.expect("an entry"))
        .filter(|entry| entry.path().extension().is_some_and(|extension| extension == "pack"))
        .map(|entry| entry.metadata().expect("its size").len())
        .sum()
}
