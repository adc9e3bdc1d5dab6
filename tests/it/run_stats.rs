//! Runs counted by what they state, and their costs.

use runvault::Vault;
use runvault::intake::ExamineOptions;
use runvault::storage::ErrorKind;
use runvault::vault::find::{ArtifactFilter, Condition};
use runvault::vault::list::ListRequest;
use runvault::vault::prices::ModelPrice;
use runvault::vault::run_stats::{RunGrouping, RunStatsAnswer, RunStatsRequest};
use serde_json::{Value, json};

use crate::sandbox::{Sandbox, repository, run_pack, sealed, session};

/// A run pack of a model with tokens, latency and costs.
struct StatedRun {
    id: &'static str,
    model: &'static str,
    day: &'static str,
    tokens: (u64, u64),
    latency_ms: u64,
    cost_usd: Option<f64>,
    failed_steps: usize,
}

impl StatedRun {
    fn document(&self) -> String {
        let request = json!({"type": "model.request", "input": {"model": self.model, "prompt": self.id}});
        let tool = json!({"type": "tool.request", "input": {"tool": format!("tool-of-{}", self.model)}});
        let mut response = json!({"type": "model.response", "metadata": {"latency_ms": self.latency_ms},
            "output": {"usage": {"input_tokens": self.tokens.0, "output_tokens": self.tokens.1}}});
        if let Some(cost) = self.cost_usd {
            response["metadata"]["cost_usd"] = json!(cost);
        }
        let mut steps = vec![request, response, tool];
        steps.extend(std::iter::repeat_n(json!({"type": "error.event"}), self.failed_steps));
        let mut pack: Value = serde_json::from_str(&run_pack(self.id, &steps)).unwrap();
        pack["metadata"]["created_at"] = format!("{}T23:59:59Z", self.day).into();
        pack["payload"]["run"]["agent"] = "clerk".into();
        sealed(pack)
    }
}

/// Three runs of one model, one with costs, and one of another.
fn runs() -> [StatedRun; 4] {
    let run = |id, model, day| StatedRun {
        id,
        model,
        day,
        tokens: (1_000, 100),
        latency_ms: 50,
        cost_usd: None,
        failed_steps: 0,
    };
    [
        StatedRun { latency_ms: 20, failed_steps: 2, ..run("one", "large-1", "2026-11-02") },
        StatedRun { latency_ms: 30, cost_usd: Some(0.1), ..run("two", "large-1", "2026-11-01") },
        StatedRun { latency_ms: 12_345, tokens: (333, 1), ..run("three", "large-1", "2026-11-02") },
        run("four", "small-1", "2026-11-02"),
    ]
}

fn fill(vault: &Vault) {
    for run in runs() {
        vault.add_document(run.document().into_bytes(), &ExamineOptions::default()).unwrap();
    }
    // It records no run.
    let contract = std::fs::read(repository("examples/contract.yaml")).unwrap();
    vault.add_document(contract, &ExamineOptions::default()).unwrap();
}

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    fill(&Vault::open(&sandbox.vault()).unwrap());
    sandbox
}

fn price(model: &str, input: &str, output: &str) -> ModelPrice {
    ModelPrice { model: model.to_owned(), input: input.parse().unwrap(), output: output.parse().unwrap() }
}

fn by(name: &str) -> RunStatsRequest {
    let by = RunGrouping::Attribute { name: name.to_owned() };
    RunStatsRequest { by, ..RunStatsRequest::default() }
}

/// Returns the values with the numbers of runs and of failures.
fn counts(answer: &RunStatsAnswer) -> Vec<(&str, u64, u64)> {
    let groups = answer.groups.iter();
    groups.map(|group| (group.value.as_str(), group.totals.runs, group.totals.failures)).collect()
}

#[test]
fn groups_are_the_same_on_both_engines() {
    let directory = tempfile::tempdir().unwrap();
    let vaults = [Vault::in_memory(), Vault::create(&directory.path().join("v.vault")).unwrap()];
    vaults.iter().for_each(fill);
    let run = |request: &RunStatsRequest| {
        let [memory, file] = vaults.each_ref().map(|vault| vault.run(request).unwrap());
        assert_eq!(memory, file);
        file
    };
    let answer = run(&RunStatsRequest::default());
    assert_eq!(counts(&answer), [("large-1", 3, 1), ("small-1", 1, 0)]);
    let large = &answer.groups[0].totals;
    assert_eq!((large.tokens_input, large.tokens_output), (Some(2_333), Some(201)));
    assert_eq!((large.latency_p50_ms, large.latency_p95_ms), (Some(30), Some(12_300)));
    assert_eq!((large.cost_usd, large.runs_with_cost), (Some(0.1), 1));
    assert_eq!((answer.groups[1].totals.cost_usd, answer.groups[1].totals.runs_with_cost), (None, 0));
    assert_eq!((answer.total.runs, answer.total.failures, answer.without), (4, 1, 0));
    assert_eq!(counts(&run(&by("tool"))), [("tool-of-large-1", 3, 1), ("tool-of-small-1", 1, 0)]);
    assert_eq!(counts(&run(&by("agent"))), [("clerk", 4, 1)]);
    let without = run(&by("result"));
    assert_eq!((without.groups.len(), without.without), (0, 4));
    let day = RunStatsRequest { by: RunGrouping::Day, ..RunStatsRequest::default() };
    assert_eq!(counts(&run(&day)), [("2026-11-01", 1, 0), ("2026-11-02", 3, 1)]);
    let filter = ArtifactFilter {
        conditions: vec![Condition::attribute("model_id", "small-*")],
        ..ArtifactFilter::default()
    };
    assert_eq!(counts(&run(&RunStatsRequest { filter, ..day })), [("2026-11-02", 1, 0)]);
    for vault in &vaults {
        let refused = vault.run(&by("modle_id")).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid);
    }
    let empty = Vault::in_memory().run(&RunStatsRequest::default()).unwrap();
    assert_eq!(empty, RunStatsAnswer::default());
}

#[test]
fn costs_that_no_run_states_are_computed_from_prices() {
    let vault = Vault::in_memory();
    fill(&vault);
    // 1000 tokens for 3 dollars a million, 100 for 15, and 333 and 1.
    let prices = vec![price("large-*", "3", "15.00"), price("*", "0.10", "0.4")];
    let request = RunStatsRequest { prices: prices.clone(), ..RunStatsRequest::default() };
    let answer = vault.run(&request).unwrap();
    let costs: Vec<Option<f64>> = answer.groups.iter().map(|group| group.totals.cost_usd).collect();
    assert_eq!(costs, [Some(0.105_514), Some(0.000_14)]);
    assert_eq!((answer.total.cost_usd, answer.total.runs_with_cost), (Some(0.105_654), 4));
    let list = ListRequest { prices, ..ListRequest::default() };
    let rows = vault.run(&list).unwrap().rows;
    let cost = |id: &str| {
        let row = rows.iter().find(|row| row.run_id.as_deref() == Some(id)).unwrap();
        (row.cost_usd, row.cost_computed, row.values("cost_usd"))
    };
    assert_eq!(cost("one"), (Some(0.0045), true, vec!["0.0045".to_owned()]));
    assert_eq!(cost("two"), (Some(0.1), false, vec!["0.1".to_owned()]));
    assert!(rows.iter().any(|row| row.run_id.is_none() && row.cost_usd.is_none()));
}

#[test]
fn labels_group_runs_and_not_their_artifacts() {
    let sandbox = sandbox();
    sandbox.run(["label", "set", "one", "env=prod"]).expect(0);
    sandbox.run(["label", "set", "two", "env=test"]).expect(0);
    let stats = sandbox.run(["stats", "--by", "label:env"]).expect(0);
    let rows: Vec<Vec<&str>> = stats.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    let begin: Vec<&[&str]> = rows.iter().map(|row| &row[..3]).collect();
    let expected =
        [["label:env", "count", "failed"], ["prod", "1", "1"], ["test", "1", "0"], ["all", "4", "1"]];
    assert_eq!(begin, expected);
    assert_eq!(stats.stderr, "4 runs; 2 without label:env; the costs of 3 are not known\n");
}

#[test]
fn people_and_programs_read_the_same_numbers() {
    let sandbox = sandbox();
    let stats = sandbox.run(["stats", "--by", "model"]).expect(0).stdout;
    let rows: Vec<Vec<&str>> = stats.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["model", "count", "failed", "tokens_in", "tokens_out", "p50", "p95", "cost"]);
    assert_eq!(rows[1], ["large-1", "3", "1", "2333", "201", "30", "ms", "12.3", "s", "0.1"]);
    assert_eq!(rows[2][..4], ["small-1", "1", "0", "1000"]);
    assert_eq!(rows[3][..4], ["all", "4", "1", "3333"]);
    let list = sandbox.run(["list", "--group-by", "model"]).expect(0).stdout;
    assert_eq!(list, stats);
    let few =
        sandbox.run(["list", "runs", "--model", "small-1", "--group-by", "day", "--json"]).expect(0).json();
    assert_eq!(
        (&few[0]["groups"][0]["value"], few[0]["groups"].as_array().unwrap().len()),
        (&json!("2026-11-02"), 1)
    );
    let whole = sandbox.run(["stats", "--by", "model", "--json"]).expect(0).json();
    assert_eq!(whole[0]["groups"][0]["latency_p95_ms"], 12_300);
    assert_eq!(whole[0]["total"]["cost_usd"], 0.1);
    sandbox.run(["list", "--model", "none", "--group-by", "model"]).expect(1);
    for wrong in ["label", "tokens", "modle"] {
        let refused = sandbox.run(["stats", "--by", wrong]).expect(3).stderr;
        assert!(refused.contains("expected model, tool, agent, day, label:KEY"), "{refused}");
        sandbox.run(["list", "--group-by", wrong]).expect(3);
    }
}

#[test]
fn prices_are_a_setting() {
    let sandbox = sandbox();
    let cost = |sandbox: &Sandbox| {
        let rows = sandbox.run(["list", "--columns", "run_id,cost"]).expect(0).stdout;
        let cost = rows.lines().find_map(|line| line.trim().strip_prefix("three"));
        cost.unwrap().trim().to_owned()
    };
    assert_eq!(cost(&sandbox), "");
    sandbox.write("config.toml", "prices = [\"large-*=3/15\", \"small-1 = 0.10 / 0.40\"]\n");
    assert_eq!(cost(&sandbox), "0.001014");
    let stats = sandbox.run(["stats", "--by", "model"]).expect(0);
    assert!(stats.stdout.lines().nth(1).unwrap().ends_with(" 0.105514"), "{}", stats.stdout);
    assert_eq!(stats.stderr, "4 runs\n");
    // Sessions state no costs either.
    sandbox.add([sandbox.write("s.json", session("a", &[("p", "r")]))]);
    let stats = sandbox.run(["stats", "--by", "agent"]).expect(0);
    assert_eq!(stats.stderr, "5 runs; 1 without agent; the costs of 1 are not known\n");
    sandbox.write("config.toml", "prices = [\"large\"]\n");
    let refused = sandbox.run(["stats", "--by", "model"]).expect(3).stderr;
    assert!(refused.contains("config.toml line 1: prices: expected MODEL=INPUT/OUTPUT"), "{refused}");
}
