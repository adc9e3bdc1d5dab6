//! Kinds as arguments.

use runvault::artifact::Kind;
use runvault::formats;

/// Parses any name of a kind, for clap: its id, such as `model_io`, or its noun in singular or plural.
pub(crate) fn kind(text: &str) -> Result<Kind, String> {
    formats::called(text).ok_or_else(|| {
        let plurals = formats::ALL.map(Kind::plural).join(", ");
        format!("expected one of {}, or {plurals}", formats::names())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_has_several_names() {
        let found = |text: &str| kind(text).map(Kind::name);
        for name in ["model_io", "model-io", "session", "sessions", "Session"] {
            assert_eq!(found(name), Ok("model_io"), "{name}");
        }
        for name in ["rpk", "run", "runs", "run pack", "run-packs"] {
            assert_eq!(found(name), Ok("rpk"), "{name}");
        }
        for name in ["pack", "packs", "export pack", "export-packs"] {
            assert_eq!(found(name), Ok("pack"), "{name}");
        }
        assert_eq!((found("trace"), found("contracts")), (Ok("trace"), Ok("contract")));
        let error = found("recording").unwrap_err();
        assert!(error.contains("model_io, rpk, ") && error.contains("sessions, runs, "), "{error}");
    }

    #[test]
    fn no_name_is_of_two_kinds() {
        for one in formats::ALL {
            for name in [one.name(), one.noun(), one.plural()] {
                let called = formats::ALL.into_iter().filter(|kind| kind.is_called(name)).count();
                assert_eq!(called, 1, "{name}");
            }
        }
    }
}
