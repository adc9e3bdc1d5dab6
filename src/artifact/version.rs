//! The supported versions of a format.

/// The supported major versions of a format. Minor versions and patches of a supported major version are additions that
/// do not change the meaning of other members.
#[derive(Clone, Copy, Debug)]
pub struct SupportedMajors(&'static [&'static str]);

impl SupportedMajors {
    /// Creates a set of major versions, in decimal without leading zeros.
    #[must_use]
    pub const fn new(majors: &'static [&'static str]) -> Self {
        Self(majors)
    }

    /// Returns the message that the major version of `version` is not supported, with those that are. Returns `None` if
    /// it is supported, or if the text does not begin with digits and a full stop and so states no major version.
    #[must_use]
    pub fn objection(self, version: &str) -> Option<String> {
        let (major, _) = version.split_once('.')?;
        if major.is_empty() || !major.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let major = match major.trim_start_matches('0') {
            "" => "0",
            major => major,
        };
        if self.0.contains(&major) {
            return None;
        }
        Some(format!("unknown major version {}; known: {self}", shortened(major)))
    }
}

impl std::fmt::Display for SupportedMajors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, major) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{major}.x")?;
        }
        Ok(())
    }
}

/// Shortens a number of any length for a message.
fn shortened(digits: &str) -> String {
    const LONGEST: usize = 20;
    match digits.split_at_checked(LONGEST) {
        Some((first, rest)) if !rest.is_empty() => format!("{first}…"),
        _ => digits.to_owned(),
    }
}

/// Returns whether `text` is a version as Semantic Versioning 2.0.0 defines it, including pre-release and build parts.
#[must_use]
pub fn is_semver(text: &str) -> bool {
    let (rest, build) = match text.split_once('+') {
        Some((rest, build)) => (rest, Some(build)),
        None => (text, None),
    };
    let (core, pre_release) = match rest.split_once('-') {
        Some((core, pre_release)) => (core, Some(pre_release)),
        None => (rest, None),
    };
    let identifier = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let number = |part: &str| digits(part) && (part == "0" || !part.starts_with('0'));
    core.split('.').count() == 3
        && core.split('.').all(number)
        && pre_release.is_none_or(|part| {
            part.split('.').all(|part| identifier(part) && (number(part) || !digits(part)))
        })
        && build.is_none_or(|part| part.split('.').all(identifier))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_majors_are_named_with_the_known_ones() {
        let known = SupportedMajors::new(&["0", "1"]);
        for version in ["0.1", "1.0.0", "01.20.300", "00.1", "1.", "", "1", "v2.0", ".1", "x.1", "2"] {
            assert_eq!(known.objection(version), None, "{version}");
        }
        assert_eq!(known.objection("02.1.0").as_deref(), Some("unknown major version 2; known: 0.x, 1.x"));
        let long = format!("{}.0", "9".repeat(1000));
        let message = known.objection(&long).unwrap();
        assert!(message.starts_with("unknown major version 99999999999999999999…;"), "{message}");
    }

    #[test]
    fn versions_are_those_of_semver() {
        for text in [
            "0.0.0",
            "1.0.0",
            "10.20.30",
            "1.0.0-alpha",
            "1.0.0-0.3.7",
            "1.0.0-x-y-z.--",
            "1.0.0+001",
            "1.0.0-rc.1+sha.5114f85",
            "1.0.0+a-b",
        ] {
            assert!(is_semver(text), "{text}");
        }
        for text in [
            "",
            "1",
            "1.0",
            "1.0.0.0",
            "01.0.0",
            "1.0.0-",
            "1.0.0+",
            "1.0.0-01",
            "1.0.0-a..b",
            "v1.0.0",
            "1.0.0-é",
            " 1.0.0",
            "1.0.0\n",
            "1.0.x",
            "1.0.0+a+b",
            "-1.0.0",
        ] {
            assert!(!is_semver(text), "{text}");
        }
    }
}
