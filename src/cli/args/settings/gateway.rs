//! The values of settings of a gateway: lists of texts.
//!
//! In a build without gateway, they are not checked: nothing uses them.

#[cfg(feature = "gateway")]
use runvault::gateway::{MatchingRules, Upstream};

pub(super) fn upstreams(text: &str) -> Result<Vec<String>, String> {
    #[cfg(feature = "gateway")]
    check(text, |line| Upstream::parse(line).map(drop))?;
    Ok(lines(text))
}

pub(super) fn ignored(text: &str) -> Result<Vec<String>, String> {
    #[cfg(feature = "gateway")]
    check(text, |line| MatchingRules::default().ignore(line))?;
    Ok(lines(text))
}

pub(super) fn normalized(text: &str) -> Result<Vec<String>, String> {
    #[cfg(feature = "gateway")]
    check(text, |line| MatchingRules::default().normalize(line))?;
    Ok(lines(text))
}

pub(super) fn redacted(text: &str) -> Result<Vec<String>, String> {
    #[cfg(feature = "gateway")]
    check(text, |line| MatchingRules::default().redact(line))?;
    Ok(lines(text))
}

fn lines(text: &str) -> Vec<String> {
    text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[cfg(feature = "gateway")]
fn check<E: ToString>(text: &str, check: impl Fn(&str) -> Result<(), E>) -> Result<(), String> {
    lines(text).iter().try_for_each(|line| check(line).map_err(|error| error.to_string()))
}
