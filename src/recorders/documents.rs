//! Files of one or several JSON texts.

use super::error::{Fault, RecorderResult, SYNTAX};
use crate::json::Value;
use crate::json::reader::{self, Defect, Limits};

/// Returns the JSON texts of a file, each with the number of its first line: one, or one in each line.
pub(super) fn documents<'b>(bytes: &'b [u8], limits: &Limits) -> RecorderResult<Vec<(usize, Value<'b>)>> {
    let whole = match reader::read(bytes, limits) {
        Ok(document) => return Ok(vec![(1, document)]),
        Err(error) => error,
    };
    let first = bytes.split(|byte| *byte == b'\n').find(|line| !line.trim_ascii().is_empty());
    let begins = first.is_some_and(|line| reader::read(line.trim_ascii(), limits).is_ok());
    if whole.defect != Defect::Syntax || !begins {
        return Err(Fault::of_text(&whole, 1));
    }
    let mut documents = Vec::new();
    for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let line = line.trim_ascii();
        if !line.is_empty() {
            let document = reader::read(line, limits).map_err(|error| Fault::of_text(&error, index + 1))?;
            documents.push((index + 1, document));
        }
    }
    if documents.is_empty() {
        return Err(Fault::new(SYNTAX, "the document", "there is nothing in it"));
    }
    Ok(documents)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_defect_is_located_in_its_line() {
        let error = documents(b"{\"a\":1}\n{\"a\":}\n", &Limits::default()).unwrap_err();
        let error = error.in_file("f").to_string();
        assert!(error.starts_with("f: line 2 column 6: ") && error.ends_with("(rule IM1)"), "{error}");
    }
}
