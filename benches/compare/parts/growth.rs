//! Adding to a vault with five million mentions, beside adding to an empty one.

use std::fs;

use runvault::Vault;

use super::Bench;
use crate::corpus::many::{self, MENTIONS};
use crate::measure::{self, Times};
use crate::programs::{Place, empty, runvault_add};
use crate::table::{Table, Target, size};

pub fn run(bench: &Bench) -> Table {
    let (root, directory) = (bench.unique(), bench.directory("growth"));
    empty(&directory);
    let sessions = bench.many(250_000, 5_000);
    let filled = directory.join("filled.vault");
    let vault = Vault::open_or_create(&filled).expect("a vault");
    many::fill(&vault, (0..sessions).map(many::session));
    drop(vault);
    let place = Place { corpus: root.to_owned(), scratch: directory.join("scratch") };
    let mut times = [Times::new(), Times::new()];
    for _ in 0..bench.runs {
        for (times, is_filled) in times.iter_mut().zip([false, true]) {
            empty(&place.scratch);
            fs::create_dir_all(place.vault().parent().expect("a directory")).expect("a directory");
            if is_filled {
                fs::copy(&filled, place.vault()).expect("copied");
            }
            measure::settle();
            times.push(measure::time(&mut runvault_add(&place.vault(), &place.corpus)));
        }
    }
    let [into_empty, into_filled] = &times;
    let mut table = Table::new(format!(
        "growth: add of unique, into a vault of {} with {} mentions",
        size(measure::size_of(&directory) - measure::size_of(&place.scratch)),
        sessions * MENTIONS
    ));
    table.plain("into an empty vault", &into_empty.text());
    let rate = into_empty.median() / into_filled.median();
    table.ratio("into the large vault; ratio of the rates", &into_filled.text(), rate, Target::AtLeast(0.5));
    table
}
