//! The values of settings of a gateway: lists of texts.

use runvault::calls::MatchingRules;
#[cfg(feature = "gateway")]
use runvault::gateway::Upstream;

/// Returns servers. In a build without gateway, they are not checked: nothing uses them.
#[cfg_attr(not(feature = "gateway"), expect(clippy::unnecessary_wraps, reason = "gateways check it"))]
pub(super) fn upstreams(text: &str) -> Result<Vec<String>, String> {
    #[cfg(feature = "gateway")]
    check(text, |line| Upstream::parse(line).map(drop))?;
    Ok(lines(text))
}

/// Returns members. As in the argument, commas can be between them.
pub(super) fn ignored(text: &str) -> Result<Vec<String>, String> {
    let text = text.replace(',', "\n");
    check(&text, |line| MatchingRules::default().ignore(line))?;
    Ok(lines(&text))
}

pub(super) fn normalized(text: &str) -> Result<Vec<String>, String> {
    check(text, |line| MatchingRules::default().normalize(line))?;
    Ok(lines(text))
}

pub(super) fn redacted(text: &str) -> Result<Vec<String>, String> {
    check(text, |line| MatchingRules::default().redact(line))?;
    Ok(lines(text))
}

fn lines(text: &str) -> Vec<String> {
    text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

fn check<E: ToString>(text: &str, check: impl Fn(&str) -> Result<(), E>) -> Result<(), String> {
    lines(text).iter().try_for_each(|line| check(line).map_err(|error| error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_members_are_separated_by_commas_or_lines() {
        assert_eq!(ignored("seed,/messages/*/name\nuser").unwrap(), ["seed", "/messages/*/name", "user"]);
        assert!(ignored("seed,a/b").is_err());
    }
}
