//! Links the program to run at a fixed address, as Go links its programs. With a random one, 40,000 addresses in it have to be
//! changed before it begins, which takes a tenth of the time of `get` as a process. Libraries, heap and stack keep random
//! addresses; with `RUNVAULT_PIE` in the environment, the program has a random address as well.

use std::env;

const PIE: &str = "RUNVAULT_PIE";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={PIE}");
    let has = |variable: &str, value: &str| {
        env::var(variable).is_ok_and(|values| values.split(',').any(|one| one == value))
    };
    let is_static = has("CARGO_CFG_TARGET_FEATURE", "crt-static");
    let is_known = has("CARGO_CFG_TARGET_OS", "linux") && has("CARGO_CFG_TARGET_ENV", "gnu") && !is_static;
    if is_known && env::var_os(PIE).is_none() {
        println!("cargo::rustc-link-arg-bin=runvault=-no-pie");
    }
}
