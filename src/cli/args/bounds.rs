//! The values that limits can have.

use runvault::json::reader::Limits;

pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match text.get(digits.len()..).unwrap_or_default().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        _ => {
            return Err("expected a number of bytes, or a number followed by k, M or G".to_owned());
        }
    };
    let number: u64 = digits.parse().map_err(|_| "a size must begin with a whole number".to_owned())?;
    let bytes = number.checked_mul(unit).filter(|bytes| (1..=Limits::MAX_BYTES).contains(bytes));
    bytes.ok_or_else(|| "expected a size from 1 to 900M".to_owned())
}

pub(crate) fn depth(text: &str) -> Result<usize, String> {
    bound_number(text, 1, Limits::MAX_DEPTH)
}

pub(crate) fn values(text: &str) -> Result<usize, String> {
    bound_number(text, 1, 1_000_000_000)
}

pub(crate) fn entries(text: &str) -> Result<usize, String> {
    bound_number(text, 1, 1_000_000)
}

pub(crate) fn violations(text: &str) -> Result<usize, String> {
    bound_number(text, 1, runvault::validation::Report::MAX_ERRORS)
}

fn bound_number(text: &str, least: usize, most: usize) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| format!("expected a whole number from {least} to {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_of_what_can_be_set() {
        assert_eq!(bytes("900M"), Ok(Limits::MAX_BYTES));
        assert!(
            bytes("943718401").is_err() && bytes("1G").is_err() && bytes("99999999999999999999").is_err()
        );
        assert_eq!((bytes("1k"), bytes("7"), bytes("2MiB")), (Ok(1024), Ok(7), Ok(2 << 20)));
        assert!(bytes("0").is_err() && bytes("0k").is_err() && bytes("1").is_ok());
        assert!(depth("500").is_ok() && depth("501").is_err() && depth("0").is_err() && depth("-1").is_err());
        assert!(values("1000000000").is_ok() && values("1000000001").is_err());
        assert!(entries("1000000").is_ok() && entries("1000001").is_err());
        assert!(violations("100000").is_ok() && violations("100001").is_err() && violations("").is_err());
    }
}
