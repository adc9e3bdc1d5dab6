//! CSV records according to RFC 4180.
//!
//! The `csv` crate has one quoting rule for all fields of a writer, so it cannot distinguish NULL from an empty text. The
//! tests read the records with it.

use runvault::artifact::Cell;

use super::cell::plain;

/// Formats the cells as a record with its line end. NULL is empty, and an empty text is quoted to distinguish the two.
pub(super) fn record(cells: &[Cell]) -> String {
    let mut record = String::new();
    for (index, cell) in cells.iter().enumerate() {
        if index > 0 {
            record.push(',');
        }
        match cell {
            Cell::Text(text) if must_be_quoted(text) => quote(text, &mut record),
            other => record.push_str(&plain(other)),
        }
    }
    record.push_str("\r\n");
    record
}

fn must_be_quoted(text: &str) -> bool {
    text.is_empty() || text.contains([',', '"', '\r', '\n'])
}

fn quote(text: &str, record: &mut String) {
    record.push('"');
    record.push_str(&text.replace('"', "\"\""));
    record.push('"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_would_be_read_otherwise_is_quoted() {
        let text = |text: &str| Cell::Text(text.to_owned());
        let cells = [
            Cell::Null,
            text(""),
            text("a b"),
            text("a,b"),
            text("say \"hi\""),
            text("two\r\nlines"),
            Cell::Integer(i64::MIN),
            Cell::Real(2.0),
            Cell::Real(f64::NEG_INFINITY),
            Cell::Blob(vec![0, 171]),
        ];
        let expected =
            ",\"\",a b,\"a,b\",\"say \"\"hi\"\"\",\"two\r\nlines\",-9223372036854775808,2.0,-Inf,00ab\r\n";
        assert_eq!(record(&cells), expected);
    }

    fn read(record: &str) -> Vec<String> {
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(record.as_bytes());
        reader.records().next().unwrap().unwrap().iter().map(str::to_owned).collect()
    }

    proptest! {
        #[test]
        fn texts_come_back(texts in proptest::collection::vec("[a\",\r\n é\u{0}]{0,5}", 1..5)) {
            let cells: Vec<Cell> = texts.iter().cloned().map(Cell::Text).collect();
            prop_assert_eq!(read(&record(&cells)), texts);
        }
    }
}
