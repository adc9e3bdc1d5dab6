//! Links that one artifact states, and links that may be coincidences.

use crate::examples::examples;
use crate::sandbox::Sandbox;

/// A vault with the examples, and the hashes of a session that only shares an exchange with a run, and of the contract.
fn sharing() -> (Sandbox, String, String) {
    let sandbox = Sandbox::new();
    let core = examples(&sandbox);
    let (session, contract) = (core("session-small-model.json"), core("contract.yaml"));
    (sandbox, session, contract)
}

#[test]
fn coincident_links_are_shown_but_not_followed() {
    let (sandbox, session, _) = sharing();
    let found = sandbox.run(["links", &session, "--depth", "3", "--json"]).expect(0);
    let [link] = &found.json()[..] else { panic!("{}", found.stdout) };
    assert_eq!((&link["relation"], &link["strength"]), (&"replays".into(), &"coincident".into()));
    assert_eq!(found.stderr, "links of 1 artifact were not followed; --coincident follows replays as well\n");

    let followed = sandbox.run(["links", &session, "--depth", "3", "--json", "--coincident"]).expect(0);
    let relations: Vec<String> =
        followed.json().iter().map(|link| link["relation"].as_str().unwrap().to_owned()).collect();
    assert!(["governs", "records-run", "contains"].iter().all(|name| relations.iter().any(|it| it == name)));
    let strengths = followed.json().into_iter().filter(|link| link["strength"] == "coincident");
    assert!(strengths.into_iter().all(|link| link["relation"] == "replays"));
    assert_eq!(followed.stderr, "");

    let replays =
        sandbox.run(["links", &session, "--depth", "2", "--relation", "replays", "--json"]).expect(0);
    assert!(replays.json().len() > 1, "{}", replays.stdout);
}

#[test]
fn a_path_says_what_was_searched() {
    let (sandbox, session, contract) = sharing();
    let none = sandbox.run(["path", &session, &contract]).expect(1);
    let expected = format!(
        "error: no path of links from {} to {}: no artifact is linked to {}; --coincident follows replays as well\n",
        &session[7..19],
        &contract[7..19],
        &session[7..19]
    );
    assert_eq!(none.stderr, expected);
    let steps = sandbox.run(["path", &session, &contract, "--coincident", "--json"]).expect(0).json();
    assert_eq!(steps[0]["strength"], "coincident");

    let lonely = sandbox.write("lonely.json", crate::sandbox::session("a", &[("lonely", "answer")]));
    let [lonely] = &sandbox.add([lonely])[..] else { panic!("one artifact") };
    let none = sandbox.run(["path", &contract, lonely, "--coincident"]).expect(1).stderr;
    assert!(none.ends_with("artifacts can be reached from 5c496a37feba\n"), "{none}");
}

#[test]
fn a_bundle_with_links_has_no_artifact_that_only_shares_an_exchange() {
    let (sandbox, session, contract) = sharing();
    let exported = |options: &[&str], name: &str| {
        let arguments = ["export", &contract, "-o", name];
        sandbox.run(arguments.into_iter().chain(options.iter().copied())).expect(0);
        let imported =
            sandbox.run(["--vault", &format!("{name}.vault"), "import", "--create", name, "--json"]);
        imported.expect(0).json().iter().any(|line| line["core_hash"] == session.as_str())
    };
    assert!(!exported(&["--with-links"], "stated.rvz"));
    assert!(exported(&["--with-links=all", "--coincident"], "all.rvz"));
    sandbox.run(["export", &contract, "--coincident", "-o", "x.rvz"]).expect(3);
    sandbox.run(["export", &contract, "--with-links", "--coincident", "-o", "x.rvz"]).expect(3);
}
