//! The package for TypeScript: its types, its own tests, and a project in which it is installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::console::{self, Surroundings};
use crate::gateway::clients::{Providers, skip};
use crate::sandbox::{self, Ran, Sandbox, repository};

const PACKAGE: &str = "bindings/typescript";

/// Packages that the project uses, where the tests have them.
const PACKAGES: [(&str, &str); 4] =
    [(PACKAGE, "typescript"), (PACKAGE, "vitest"), (PACKAGE, "@types/node"), ("tests/clients", "openai")];

/// Whether the packages are installed. If not, says what is skipped.
fn are_installed(what: &str) -> bool {
    for (directory, package) in PACKAGES {
        if !repository(directory).join("node_modules").join(package).is_dir() {
            skip(what, &format!("{package} is not installed in {directory}: npm ci does that"));
            return false;
        }
    }
    true
}

/// Runs a program with the built `runvault` where the package looks for it.
fn run(sandbox: &Sandbox, directory: &Path, program: &[&str], variables: &[(&str, &str)]) -> Ran {
    let (program, arguments) = program.split_first().unwrap();
    let mut command = Command::new(program);
    command.args(arguments).current_dir(directory).env("RUNVAULT_BIN", sandbox::program());
    command.env("RUNVAULT_VAULT", sandbox.vault()).env("RUNVAULT_CONFIG", sandbox.path("config.toml"));
    for name in ["OPENAI_API_KEY", "RUNVAULT_MODE", "RUNVAULT_UNUSED"] {
        command.env_remove(name);
    }
    command.env("NO_COLOR", "1").envs(variables.iter().copied()).output().unwrap().into()
}

#[test]
fn the_types_are_those_of_the_api() {
    let generator = repository(PACKAGE).join("scripts/generate-types.mjs");
    let Ok(output) = Command::new("node").arg(generator).arg("--check").output() else {
        return skip("the types for TypeScript", "node is not installed");
    };
    Ran::from(output).expect(0);
}

#[test]
fn the_tests_of_the_package_pass() {
    if !are_installed("the tests of the package for TypeScript") {
        return;
    }
    let sandbox = Sandbox::without_vault();
    let package = repository(PACKAGE);
    run(&sandbox, &package, &["node", "node_modules/typescript/bin/tsc", "-p", "test"], &[]).expect(0);
    run(&sandbox, &package, &["node", "node_modules/vitest/vitest.mjs", "run"], &[]).expect(0);
}

/// Packs the package and installs it in a project, which has no other packages than those that it names itself.
pub(crate) fn install(sandbox: &Sandbox, project: &Path) {
    // Tests run at the same time, and each of them builds the package.
    let copy = sandbox.path("package");
    std::fs::create_dir(&copy).unwrap();
    let files = ["cp", "-r", "package.json", "scripts", "src", "tsconfig.cjs.json", "tsconfig.json"];
    let target = copy.to_str().unwrap();
    run(sandbox, &repository(PACKAGE), &[&files[..], &[target]].concat(), &[]).expect(0);
    let modules = repository(PACKAGE).join("node_modules");
    std::os::unix::fs::symlink(modules, copy.join("node_modules")).unwrap();
    let destination = project.to_str().unwrap();
    let pack = ["npm", "pack", "--silent", "--pack-destination", destination];
    let packed = run(sandbox, &copy, &pack, &[]).expect(0);
    let tarball = format!("./{}", packed.stdout.lines().last().unwrap());
    let install = ["npm", "install", "--offline", "--no-audit", "--no-fund", "--silent", &tarball];
    run(sandbox, project, &install, &[]).expect(0);
    for (directory, package) in PACKAGES {
        let link = project.join("node_modules").join(package);
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(repository(directory).join("node_modules").join(package), link).unwrap();
    }
    let programs = project.join("node_modules/.bin");
    std::fs::create_dir_all(&programs).unwrap();
    std::os::unix::fs::symlink("../vitest/vitest.mjs", programs.join("vitest")).unwrap();
}

#[test]
fn the_example_for_typescript_is_real() {
    if !are_installed("the example for TypeScript") {
        return;
    }
    let providers = Providers::start("python3");
    let server = format!("openai=http://127.0.0.1:{}", providers.port);
    let prepare = |sandbox: &Sandbox| install(sandbox, &sandbox.path(""));
    let surroundings = Surroundings {
        variables: vec![
            ("OPENAI_API_KEY", "sk-not-a-key".to_owned()),
            ("RUNVAULT_GATEWAY_UPSTREAM", server),
            ("NO_COLOR", "1".to_owned()),
        ],
        prepare: Some(&prepare),
    };
    assert!(console::check_in("docs/typescript.md", None, &surroundings) > 10);
}

/// Copies the project of the tests, and installs the package in it.
fn project(sandbox: &Sandbox) -> PathBuf {
    let project = sandbox.path("project");
    std::fs::create_dir(&project).unwrap();
    for entry in std::fs::read_dir(repository(PACKAGE).join("test/consumer")).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), project.join(entry.file_name())).unwrap();
    }
    install(sandbox, &project);
    project
}

/// What the tests of the project print of answers.
fn answers(ran: &Ran) -> Vec<&str> {
    ran.stdout.lines().filter(|line| line.contains("echo:")).collect()
}

#[test]
fn a_project_records_replays_and_reads() {
    if !are_installed("a project that uses the package for TypeScript") {
        return;
    }
    let sandbox = Sandbox::without_vault();
    let project = project(&sandbox);
    let compile = |file: &str| {
        run(&sandbox, &project, &["node", "node_modules/typescript/bin/tsc", "-p", file], &[]).expect(0)
    };
    compile("tsconfig.alone.json");
    compile("tsconfig.json");
    let test = |variables: &[(&str, &str)]| {
        let program = ["node", "node_modules/vitest/vitest.mjs", "run", "agent.test.ts"];
        run(&sandbox, &project, &program, variables)
    };
    let providers = Providers::start("python3");
    let upstream = format!("http://127.0.0.1:{}", providers.port);
    let key = ("OPENAI_API_KEY", "sk-not-a-key");
    // What a test that fails has recorded is not replayed.
    test(&[("UPSTREAM", &upstream), key, ("FAIL", "1")]).expect(1);
    let recorded = test(&[("UPSTREAM", &upstream), key]).expect(0);
    assert_eq!(recorded.stdout.matches("replaying true").count(), 2, "{}", recorded.stdout);
    drop(providers);
    let replayed = test(&[]).expect(0);
    assert_eq!(replayed.stdout.matches("replaying true").count(), 3, "{}", replayed.stdout);
    assert_eq!(answers(&replayed), answers(&recorded));
    assert_eq!(answers(&replayed).len(), 4, "{}", replayed.stdout);
    let changed = test(&[("TICKET", "the import stops")]).expect(1);
    let said = "messages[1].content differs: recorded \"the export stops\", requested \"the import stops\"";
    assert!(changed.stderr.contains(said), "{}", changed.stderr);
    assert!(changed.stderr.contains("labels a ticket: 1 call not recorded"), "{}", changed.stderr);
    test(&[("ASK_ONCE", "1")]).expect(0);
    let unused = test(&[("ASK_ONCE", "1"), ("RUNVAULT_UNUSED", "fail")]).expect(1);
    assert!(unused.stderr.contains("labels a ticket did not use 1 recording:"), "{}", unused.stderr);
    for (file, says) in [("out/modules.mjs", "modules"), ("out/commonjs.cjs", "commonjs")] {
        let read = run(&sandbox, &project, &["node", file], &[]).expect(0);
        assert!(read.stdout.starts_with(says) && read.stdout.contains("'model_io'"), "{}", read.stdout);
    }
    let labels = sandbox.run(["label", "list", "run"]).expect(0).stdout;
    assert!(labels.contains("agent.test.ts > an agent > explains/streams 100 % of it"), "{labels}");
    sandbox.run(["fsck"]).expect(0);
}
