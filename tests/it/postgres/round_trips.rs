//! Operations take a fixed number of round trips to the server, whatever the number of artifacts that they find.

use std::ops::Range;
use std::path::Path;

use runvault::Vault;
use runvault::digest::{CoreHash, Digest};
use runvault::vault::audit::AuditRequest;
use runvault::vault::find::FindRequest;
use runvault::vault::forks::ForksRequest;
use runvault::vault::links::LinksRequest;
use runvault::vault::list::ListRequest;
use runvault::vault::path::PathRequest;
use runvault::vault::run_stats::RunStatsRequest;
use runvault::vault::stats::StatsRequest;
use runvault::vault::unresolved::UnresolvedRequest;
use serde_json::{Value, json};

use super::Database;
use super::proxy::{Plan, Proxy};
use crate::audit::contract;
use crate::sandbox::{run_pack, sealed, session};
use crate::traces;

type Operation<'g> = Box<dyn Fn(&Vault) + 'g>;

/// The most round trips that the links of 301 artifacts take, to a depth of three.
const MOST_FOR_LINKS: usize = 10;

/// The most round trips that the audit of a run takes.
const MOST_FOR_RUN: usize = 3;

/// The most round trips that a run of which others have the same inputs takes when forks are looked for.
const MOST_FOR_EQUAL_INPUTS: usize = 4;

/// A vault with a contract, runs that it governs, and a session and a trace of each.
struct Governed {
    database: Database,
    contract: CoreHash,
    runs: Vec<CoreHash>,
    sessions: Vec<CoreHash>,
}

fn exchange(number: usize) -> (String, String) {
    (format!("prompt {number}"), format!("response {number}"))
}

/// A run pack that repeats a session, and states the core hash of the contract.
fn run(id: &str, number: usize, contract: CoreHash) -> String {
    let (prompt, response) = exchange(number);
    let request = json!({"type": "model.request", "input": {"prompt": prompt}});
    let answer = json!({"type": "model.response", "output": {"content": response}});
    let mut pack: Value = serde_json::from_str(&run_pack(id, &[request, answer])).unwrap();
    pack["metadata"]["contract"] = contract.to_string().into();
    sealed(pack)
}

impl Governed {
    fn new() -> Option<Self> {
        let database = Database::new()?;
        database.run(["init"]).expect(0);
        let terms = contract(&[json!({})], &[]).to_string();
        let mut governed = Self {
            database,
            contract: CoreHash(Digest::from_content(b"")),
            runs: Vec::new(),
            sessions: Vec::new(),
        };
        governed.contract = governed.add("contract", [("contract.json".to_owned(), terms)]).remove(0);
        Some(governed)
    }

    /// Adds documents, and returns their core hashes in the order of their names.
    fn add(&self, name: &str, documents: impl IntoIterator<Item = (String, String)>) -> Vec<CoreHash> {
        for (file, text) in documents {
            self.database.sandbox.write(&format!("{name}/{file}"), text);
        }
        let directory = self.database.sandbox.path(name);
        let added =
            self.database.run([Path::new("add"), Path::new("--json"), directory.as_path()]).expect(0).json();
        added.iter().map(|added| added["core_hash"].as_str().unwrap().parse().unwrap()).collect()
    }

    /// Adds runs with their sessions and traces.
    fn fill(&mut self, numbers: Range<usize>) {
        let named = |number: usize| format!("{number:03}.json");
        let of = |number: usize| exchange(number);
        let sessions = numbers.clone().map(|number| {
            let (prompt, response) = of(number);
            (named(number), session("a", &[(prompt.as_str(), response.as_str())]))
        });
        let directory = |sort: &str| format!("{sort}-{}", numbers.start);
        let sessions = self.add(&directory("sessions"), sessions);
        let runs = numbers
            .clone()
            .map(|number| (named(number), run(&format!("run-{number}"), number, self.contract)));
        let runs = self.add(&directory("runs"), runs);
        let trace = |number: usize| traces::steps(&format!("run-{number}"), 1).concat();
        self.add(&directory("traces"), numbers.clone().map(|number| (named(number), trace(number))));
        // Two of each id fork, and each refers to a contract that is not there.
        let orphan = |number: usize| {
            let missing = CoreHash(Digest::from_content(&number.to_le_bytes()));
            run(&format!("orphan-{}", number / 2), number + 1_000, missing)
        };
        self.add(&directory("orphans"), numbers.map(|number| (named(number), orphan(number))));
        self.sessions.extend(sessions);
        self.runs.extend(runs);
    }

    /// Runs each operation, and returns its round trips.
    fn count(&self) -> Vec<(&'static str, usize)> {
        let directory = self.database.address.split("host=").nth(1).unwrap().split('&').next().unwrap();
        let proxy = Proxy::start(directory.to_owned(), Plan::default());
        let vault = Vault::open(Path::new(&proxy.address(&self.database.address))).unwrap();
        let mut counts = Vec::new();
        // Statements are prepared when they are run a second time.
        for _ in 0..3 {
            counts = self
                .operations()
                .map(|(name, operation)| {
                    let before = proxy.statements();
                    operation(&vault);
                    (name, proxy.statements() - before)
                })
                .into();
        }
        counts
    }

    fn operations(&self) -> [(&'static str, Operation<'_>); 9] {
        let linked = |vault: &Vault| {
            let request = LinksRequest { depth: 3, coincident: true, ..LinksRequest::new(self.runs[0]) };
            assert_eq!(vault.run(&request).unwrap().nodes.len(), 1 + 3 * self.runs.len());
        };
        let path = |vault: &Vault| {
            let (from, to) = (self.sessions[0], *self.sessions.last().unwrap());
            let request = PathRequest { from, to, coincident: true };
            assert_eq!(vault.run(&request).unwrap().steps.unwrap().len(), 4);
        };
        let unresolved = |vault: &Vault| {
            assert!(vault.run(&UnresolvedRequest::default()).unwrap().missing.len() >= self.runs.len());
        };
        [
            ("links", Box::new(linked)),
            ("path", Box::new(path)),
            ("unresolved", Box::new(unresolved)),
            (
                "forks",
                Box::new(|vault| {
                    assert_eq!(
                        vault.run(&ForksRequest { limit: Some(1), after: None }).unwrap().count,
                        self.runs.len() as u64 / 2
                    );
                }),
            ),
            ("find", Box::new(|vault| drop(vault.run(&FindRequest::default()).unwrap()))),
            ("list", Box::new(|vault| drop(vault.run(&ListRequest::default()).unwrap()))),
            ("run-stats", Box::new(|vault| drop(vault.run(&RunStatsRequest::default()).unwrap()))),
            ("stats", Box::new(|vault| drop(vault.run(&StatsRequest::default()).unwrap()))),
            (
                "audit",
                Box::new(|vault| {
                    let request =
                        AuditRequest { contract: self.contract, run: None, limit: None, after: None };
                    assert_eq!(vault.run(&request).unwrap().runs.len(), self.runs.len());
                }),
            ),
        ]
    }
}

#[test]
fn operations_take_a_fixed_number_of_round_trips() {
    let Some(mut governed) = Governed::new() else { return };
    governed.fill(0..3);
    let few = governed.count();
    governed.fill(3..100);
    let many = governed.count();
    let added = governed.runs.len() - 3;
    // The documents of each run are read by themselves, and those of runs of equal inputs.
    for ((operation, few), (_, many)) in few.iter().zip(&many) {
        let more = match *operation {
            "audit" => added * MOST_FOR_RUN,
            "forks" => added * MOST_FOR_EQUAL_INPUTS,
            _ => 0,
        };
        assert!(*many <= few + more, "{operation}: {few} for few artifacts, {many} for many");
        assert!(*few >= 3, "{operation}: {few} round trips are too few to be true");
    }
    let (_, links) = many.iter().find(|(operation, _)| *operation == "links").unwrap();
    assert!(*links <= MOST_FOR_LINKS, "{links}");
}
