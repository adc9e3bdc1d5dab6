//! Labels from the environment of CI systems.

use std::collections::BTreeMap;

use runvault::storage::is_label_value;

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
pub(super) fn labels(get: impl Fn(&str) -> Option<String>) -> BTreeMap<String, String> {
    let get = |name: &str| get(name).filter(|value| !value.is_empty());
    let is_marked = |system: &&CiSystem| {
        let (name, expected) = system.marker;
        get(name).is_some_and(|value| expected.is_none_or(|expected| value.eq_ignore_ascii_case(expected)))
    };
    let Some(system) = SYSTEMS.iter().find(is_marked) else { return BTreeMap::new() };
    let branch = filled(system.branch, &get).map(|branch| {
        let short = REFERENCES.iter().find_map(|reference| branch.strip_prefix(reference));
        short.map_or(branch.clone(), str::to_owned)
    });
    let labels = [
        ("ci", Some(system.name.to_owned())),
        ("repository", filled(system.repository, &get)),
        ("commit", filled(system.commit, &get)),
        ("branch", branch),
        ("job", filled(system.job, &get)),
    ];
    // A value that cannot be a label, such as a very long one, is left out.
    let valid = labels.into_iter().filter_map(|(key, value)| {
        let value = value.filter(|value| is_label_value(value))?;
        Some((key.to_owned(), value))
    });
    valid.collect()
}

/// Returns the first of the texts whose variables are all set, with their values.
fn filled(template: VariableTemplates, get: &impl Fn(&str) -> Option<String>) -> Option<String> {
    template.iter().find_map(|text| fill(text, get))
}

fn fill(text: &str, get: &impl Fn(&str) -> Option<String>) -> Option<String> {
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

    fn of(variables: &[(&str, &str)]) -> Vec<String> {
        let get = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        labels(get).into_iter().map(|(key, value)| format!("{key}={value}")).collect()
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
                assert!(template.iter().all(|text| fill(text, &|_| Some("x".to_owned())).is_some()));
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
