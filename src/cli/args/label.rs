//! Labels as arguments, and from the environment of CI systems.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use clap::Args;
use runvault::storage::{
    MAX_LABEL_KEY_BYTES, MAX_LABEL_VALUE_BYTES, MAX_NOTE_BYTES, is_label_key, is_label_value, is_note,
};
use runvault::vault::find::Condition;
use runvault::vault::retention::LabelRule;

use crate::cli::args::completing::CandidateSource;
use crate::cli::output::exit::CommandError;
use crate::cli::output::stdout;

/// Labels for everything that is added.
#[derive(Args)]
pub(crate) struct LabelArgs {
    /// Set this label on everything that is added
    ///
    /// Artifacts that are already stored get it too. Can be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair, add = CandidateSource::Labels.completer())]
    label: Vec<(String, String)>,

    /// Set labels from the environment of a CI system
    ///
    /// The labels are ci, repository, commit, branch and job, as far as the environment states them.
    #[arg(long)]
    ci: bool,
}

impl LabelArgs {
    /// Returns the labels. Those that are given replace those of the environment.
    pub(crate) fn labels(&self) -> Result<BTreeMap<String, String>, CommandError> {
        let given = unique(&self.label)?;
        let mut labels = if self.ci { from_environment() } else { BTreeMap::new() };
        labels.extend(given);
        Ok(labels)
    }
}

/// Returns labels by key.
///
/// # Errors
/// Returns a usage error if a key has two values.
pub(crate) fn unique(labels: &[(String, String)]) -> Result<BTreeMap<String, String>, CommandError> {
    let mut unique = BTreeMap::new();
    for (key, value) in labels {
        match unique.entry(key.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(value.clone());
            }
            Entry::Occupied(entry) if entry.get() == value => {}
            Entry::Occupied(_) => {
                return Err(CommandError::Usage(format!("the label {key} is given with two values")));
            }
        }
    }
    Ok(unique)
}

/// Returns the labels of the environment, and reports if there is no CI system.
fn from_environment() -> BTreeMap<String, String> {
    let labels = ci_labels(|name| std::env::var(name).ok());
    if labels.is_empty() {
        stdout::note("--ci: the environment is not that of a known CI system; no labels are taken from it");
    }
    labels
}

/// Parses the key of a label, for clap.
pub(crate) fn key(text: &str) -> Result<String, String> {
    if is_label_key(text) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "the key of a label is a letter a-z or A-Z or a digit, followed by at most {} of these and - _ . /",
        MAX_LABEL_KEY_BYTES - 1
    ))
}

/// Parses `KEY=VALUE`, for clap.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    Ok((key(name)?, label_value(value)?))
}

/// A label, or all labels with a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LabelTest {
    key: String,
    value: Option<String>,
}

/// Parses `KEY` or `KEY=VALUE`, for clap.
pub(crate) fn test(text: &str) -> Result<LabelTest, String> {
    match text.split_once('=') {
        Some((name, value)) => Ok(LabelTest { key: key(name)?, value: Some(label_value(value)?) }),
        None => Ok(LabelTest { key: key(text)?, value: None }),
    }
}

impl LabelTest {
    /// Returns the condition that an artifact has it.
    pub(crate) fn condition(&self) -> Condition {
        Condition::label(&self.key, self.value.as_deref())
    }

    /// Returns it for a retention policy.
    pub(crate) fn rule(&self) -> LabelRule {
        LabelRule { key: self.key.clone(), value: self.value.clone() }
    }
}

fn label_value(value: &str) -> Result<String, String> {
    if is_label_value(value) {
        return Ok(value.to_owned());
    }
    Err(format!("the value of a label has at most {MAX_LABEL_VALUE_BYTES} bytes and no control characters"))
}

/// Parses a note, for clap.
pub(crate) fn note_text(text: &str) -> Result<String, String> {
    if is_note(text) {
        return Ok(text.to_owned());
    }
    Err(if text.trim().is_empty() {
        "it is blank".to_owned()
    } else {
        format!("it has {} bytes, and a note at most {MAX_NOTE_BYTES}", text.len())
    })
}

/// A CI system, and the variables of its jobs.
struct CiSystem {
    /// The value of the label `ci`.
    name: &'static str,
    /// The variable by which its jobs are recognized, and its value; any but an empty one if `None`.
    marker: (&'static str, Option<&'static str>),
    repository: VariableTemplates,
    commit: VariableTemplates,
    branch: VariableTemplates,
    job: VariableTemplates,
}

/// Texts with variables in braces. The first one whose variables are all set counts.
type VariableTemplates = &'static [&'static str];

/// The CI systems. Forges that run actions of the first one's form set its variables.
const SYSTEMS: [CiSystem; 9] = [
    CiSystem {
        name: "github-actions",
        marker: ("GITHUB_ACTIONS", Some("true")),
        repository: &["{GITHUB_REPOSITORY}"],
        commit: &["{GITHUB_SHA}"],
        branch: &["{GITHUB_HEAD_REF}", "{GITHUB_REF_NAME}"],
        job: &["{GITHUB_SERVER_URL}/{GITHUB_REPOSITORY}/actions/runs/{GITHUB_RUN_ID}"],
    },
    CiSystem {
        name: "gitlab-ci",
        marker: ("GITLAB_CI", Some("true")),
        repository: &["{CI_PROJECT_PATH}"],
        commit: &["{CI_COMMIT_SHA}"],
        branch: &["{CI_MERGE_REQUEST_SOURCE_BRANCH_NAME}", "{CI_COMMIT_REF_NAME}"],
        job: &["{CI_JOB_URL}"],
    },
    CiSystem {
        name: "jenkins",
        marker: ("JENKINS_URL", None),
        // The address of the repository may contain a password.
        repository: &[],
        commit: &["{GIT_COMMIT}"],
        branch: &["{CHANGE_BRANCH}", "{BRANCH_NAME}", "{GIT_BRANCH}"],
        job: &["{BUILD_URL}"],
    },
    CiSystem {
        name: "circleci",
        marker: ("CIRCLECI", Some("true")),
        repository: &["{CIRCLE_PROJECT_USERNAME}/{CIRCLE_PROJECT_REPONAME}"],
        commit: &["{CIRCLE_SHA1}"],
        branch: &["{CIRCLE_BRANCH}", "{CIRCLE_TAG}"],
        job: &["{CIRCLE_BUILD_URL}"],
    },
    CiSystem {
        name: "buildkite",
        marker: ("BUILDKITE", Some("true")),
        repository: &[],
        commit: &["{BUILDKITE_COMMIT}"],
        branch: &["{BUILDKITE_BRANCH}"],
        job: &["{BUILDKITE_BUILD_URL}#{BUILDKITE_JOB_ID}", "{BUILDKITE_BUILD_URL}"],
    },
    CiSystem {
        name: "azure-pipelines",
        marker: ("TF_BUILD", Some("True")),
        repository: &["{BUILD_REPOSITORY_NAME}"],
        commit: &["{BUILD_SOURCEVERSION}"],
        branch: &["{SYSTEM_PULLREQUEST_SOURCEBRANCH}", "{BUILD_SOURCEBRANCH}"],
        job: &[
            "{SYSTEM_COLLECTIONURI}{SYSTEM_TEAMPROJECT}/_build/results?buildId={BUILD_BUILDID}",
            "{SYSTEM_TEAMFOUNDATIONCOLLECTIONURI}{SYSTEM_TEAMPROJECT}/_build/results?buildId={BUILD_BUILDID}",
        ],
    },
    CiSystem {
        name: "travis-ci",
        marker: ("TRAVIS", Some("true")),
        repository: &["{TRAVIS_REPO_SLUG}"],
        commit: &["{TRAVIS_COMMIT}"],
        branch: &["{TRAVIS_PULL_REQUEST_BRANCH}", "{TRAVIS_BRANCH}"],
        job: &["{TRAVIS_JOB_WEB_URL}"],
    },
    CiSystem {
        name: "bitbucket-pipelines",
        marker: ("BITBUCKET_BUILD_NUMBER", None),
        repository: &["{BITBUCKET_REPO_FULL_NAME}"],
        commit: &["{BITBUCKET_COMMIT}"],
        branch: &["{BITBUCKET_BRANCH}", "{BITBUCKET_TAG}"],
        job: &["{BITBUCKET_GIT_HTTP_ORIGIN}/pipelines/results/{BITBUCKET_BUILD_NUMBER}"],
    },
    CiSystem {
        name: "drone",
        marker: ("DRONE", Some("true")),
        repository: &["{DRONE_REPO}"],
        commit: &["{DRONE_COMMIT_SHA}"],
        branch: &["{DRONE_SOURCE_BRANCH}", "{DRONE_BRANCH}"],
        job: &["{DRONE_BUILD_LINK}"],
    },
];

/// Beginnings of references to branches, which are not part of their names.
const REFERENCES: [&str; 2] = ["refs/heads/", "origin/"];

/// Returns the labels that the environment of a CI system states; none if it is not that of a known one. `get` returns
/// the value of a variable.
pub(super) fn ci_labels(get: impl Fn(&str) -> Option<String>) -> BTreeMap<String, String> {
    let get = |name: &str| get(name).filter(|value| !value.is_empty());
    let is_marked = |system: &&CiSystem| {
        let (name, expected) = system.marker;
        get(name).is_some_and(|value| expected.is_none_or(|expected| value.eq_ignore_ascii_case(expected)))
    };
    let Some(system) = SYSTEMS.iter().find(is_marked) else { return BTreeMap::new() };
    let branch = fill_first(system.branch, &get).map(|branch| {
        let short = REFERENCES.iter().find_map(|reference| branch.strip_prefix(reference));
        short.map_or(branch.clone(), str::to_owned)
    });
    let labels = [
        ("ci", Some(system.name.to_owned())),
        ("repository", fill_first(system.repository, &get)),
        ("commit", fill_first(system.commit, &get)),
        ("branch", branch),
        ("job", fill_first(system.job, &get)),
    ];
    // A value that cannot be a label, such as a very long one, is left out.
    let valid = labels.into_iter().filter_map(|(key, value)| {
        let value = value.filter(|value| is_label_value(value))?;
        Some((key.to_owned(), value))
    });
    valid.collect()
}

/// Returns the first of the texts whose variables are all set, with their values.
fn fill_first(template: VariableTemplates, get: &impl Fn(&str) -> Option<String>) -> Option<String> {
    template.iter().find_map(|text| fill_template(text, get))
}

fn fill_template(text: &str, get: &impl Fn(&str) -> Option<String>) -> Option<String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, next) = after.split_once('}')?;
        filled.push_str(before);
        filled.push_str(&get(name)?);
        rest = next;
    }
    filled.push_str(rest);
    Some(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_may_contain_equals_signs_and_be_empty() {
        let of = |key: &str, value: &str| Ok((key.to_owned(), value.to_owned()));
        assert_eq!(pair("job=https://ci/x?a=b"), of("job", "https://ci/x?a=b"));
        assert_eq!(pair("flaky="), of("flaky", ""));
        for wrong in ["job", "=x", "a b=c", "k=\u{1b}[2J"] {
            assert!(pair(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(test("commit"), Ok(LabelTest { key: "commit".to_owned(), value: None }));
        assert_eq!(test("k="), Ok(LabelTest { key: "k".to_owned(), value: Some(String::new()) }));
    }

    #[test]
    fn a_key_has_one_value() {
        let given =
            |pairs: &[&str]| unique(&pairs.iter().map(|text| pair(text).unwrap()).collect::<Vec<_>>());
        assert_eq!(given(&["a=1", "b=2", "a=1"]).unwrap().len(), 2);
        assert!(given(&["a=1", "a=2"]).is_err());
    }

    fn of(variables: &[(&str, &str)]) -> Vec<String> {
        let get = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        ci_labels(get).into_iter().map(|(key, value)| format!("{key}={value}")).collect()
    }

    #[test]
    fn a_pull_request_has_the_branch_that_it_comes_from() {
        let mut variables = vec![
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_SHA", "4f2a"),
            ("GITHUB_REF_NAME", "12/merge"),
            ("GITHUB_HEAD_REF", "fix/labels"),
            ("GITHUB_REPOSITORY", "team/agent"),
            ("GITHUB_SERVER_URL", "https://forge.example"),
            ("GITHUB_RUN_ID", "77"),
        ];
        let expected = |branch: &str| {
            vec![
                format!("branch={branch}"),
                "ci=github-actions".to_owned(),
                "commit=4f2a".to_owned(),
                "job=https://forge.example/team/agent/actions/runs/77".to_owned(),
                "repository=team/agent".to_owned(),
            ]
        };
        assert_eq!(of(&variables), expected("fix/labels"));
        // Outside of pull requests, the variable is empty.
        variables[3].1 = "";
        variables[2].1 = "main";
        assert_eq!(of(&variables), expected("main"));
    }

    #[test]
    fn every_system_is_recognized_by_its_own_variables() {
        let (jenkins, azure, buildkite) = (
            [("JENKINS_URL", "https://j/"), ("GIT_COMMIT", "c"), ("GIT_BRANCH", "origin/main")],
            [("TF_BUILD", "True"), ("BUILD_SOURCEVERSION", "c"), ("BUILD_SOURCEBRANCH", "refs/heads/a/b")],
            [("BUILDKITE", "true"), ("BUILDKITE_BUILD_URL", "https://b/1"), ("BUILDKITE_JOB_ID", "0a")],
        );
        assert_eq!(of(&jenkins), ["branch=main", "ci=jenkins", "commit=c"]);
        assert_eq!(of(&azure), ["branch=a/b", "ci=azure-pipelines", "commit=c"]);
        assert_eq!(of(&buildkite), ["ci=buildkite", "job=https://b/1#0a"]);
        for system in &SYSTEMS {
            let (marker, value) = system.marker;
            let found = of(&[(marker, value.unwrap_or("1"))]);
            assert_eq!(found, [format!("ci={}", system.name)]);
            for template in [system.repository, system.commit, system.branch, system.job] {
                assert!(template.iter().all(|text| fill_template(text, &|_| Some("x".to_owned())).is_some()));
            }
        }
    }

    #[test]
    fn other_environments_have_no_labels_and_odd_values_are_left_out() {
        assert!(of(&[("GITHUB_SHA", "4f2a"), ("HOME", "/root"), ("GITHUB_ACTIONS", "")]).is_empty());
        let long = "b".repeat(2_000);
        let odd = of(&[("DRONE", "true"), ("DRONE_BRANCH", &long), ("DRONE_COMMIT_SHA", "a\nb")]);
        assert_eq!(odd, ["ci=drone"]);
    }
}
