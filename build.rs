//! Links the program so that it starts fast, which is most of the time of `get` as a process, on Linux with glibc:
//!
//! - At a fixed address, as Go links its programs: with a random one, 40,000 addresses in the program have to be changed
//!   before it begins. Libraries, heap and stack keep random addresses; with `RUNVAULT_PIE` in the environment, the program
//!   has a random address as well.
//! - With the unwinder of the C compiler in the program, instead of another library to load.
//! - With the functions of everyday commands side by side (`link/functions.txt`), so that they are on fewer pages.
//!
//! The last two are done in release builds, each if the linker can do it.
//!
//! With `RUNVAULT_LINK_MAP`, the linker writes a map of the program to this file, which `link/order` reads.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PIE: &str = "RUNVAULT_PIE";
const MAP: &str = "RUNVAULT_LINK_MAP";
const FUNCTIONS: &str = "link/functions.txt";

fn main() {
    for path in ["build.rs", FUNCTIONS] {
        println!("cargo::rerun-if-changed={path}");
    }
    for variable in [PIE, MAP] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    let has = |variable: &str, value: &str| {
        env::var(variable).is_ok_and(|values| values.split(',').any(|one| one == value))
    };
    let is_static = has("CARGO_CFG_TARGET_FEATURE", "crt-static");
    if !has("CARGO_CFG_TARGET_OS", "linux") || !has("CARGO_CFG_TARGET_ENV", "gnu") || is_static {
        return;
    }
    if env::var_os(PIE).is_none() {
        pass(&["-no-pie".to_owned()]);
    }
    // Other builds are linked more often than they are run.
    if !has("PROFILE", "release") {
        return;
    }
    if let Some(map) = env::var_os(MAP) {
        pass(&[format!("-Wl,--no-demangle,-Map={}", Path::new(&map).display())]);
    }
    let functions = Path::new(&variable("CARGO_MANIFEST_DIR")).join(FUNCTIONS);
    let order = functions.is_file().then(|| {
        vec![
            format!("-Wl,--symbol-ordering-file={}", functions.display()),
            "-Wl,--no-warn-symbol-ordering".to_owned(),
        ]
    });
    let unwinder = unwinder().map(|directory| vec![format!("-L{}", directory.display())]);
    for arguments in [order, unwinder].into_iter().flatten() {
        if can_link(&arguments) {
            pass(&arguments);
        }
    }
}

/// Passes `arguments` to the linker of the program.
fn pass(arguments: &[String]) {
    for argument in arguments {
        println!("cargo::rustc-link-arg-bin=runvault={argument}");
    }
}

/// Returns a directory in which the linker finds the static unwinder under the name of the library.
fn unwinder() -> Option<PathBuf> {
    let linker = env::var_os("RUSTC_LINKER").unwrap_or_else(|| "cc".into());
    let printed = Command::new(linker).arg("-print-file-name=libgcc_eh.a").output().ok()?;
    let archive = PathBuf::from(String::from_utf8(printed.stdout).ok()?.trim_end());
    let directory = scratch().join("unwinder");
    fs::create_dir_all(&directory).ok()?;
    fs::copy(archive, directory.join("libgcc_s.a")).ok()?;
    Some(directory)
}

/// Returns whether a program can be linked with `arguments`.
fn can_link(arguments: &[String]) -> bool {
    let source = scratch().join("probe.rs");
    if fs::write(&source, "fn main() {}").is_err() {
        return false;
    }
    let mut compiler = Command::new(variable("RUSTC"));
    compiler.args(["--edition=2024", "--target", &variable("TARGET")]);
    compiler.args(variable("CARGO_ENCODED_RUSTFLAGS").split('\x1f').filter(|flag| !flag.is_empty()));
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        compiler.arg(format!("-Clinker={linker}"));
    }
    compiler.args(arguments.iter().map(|argument| format!("-Clink-arg={argument}")));
    compiler.arg("-o").arg(scratch().join("probe")).arg(source);
    compiler.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Returns the directory for files of this build.
fn scratch() -> PathBuf {
    variable("OUT_DIR").into()
}

/// Returns the value of a variable that Cargo sets.
fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}
