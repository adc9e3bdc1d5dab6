//! Input of requests: lines of limited length.

use std::io::{self, BufRead, Read};

/// Maximum bytes of a line, without its end.
pub(super) const MAX_BYTES: usize = 16 << 20;

/// The result of reading a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LineReadResult {
    /// A complete line, in the buffer without its end.
    Whole,
    /// A line that was too long and was skipped.
    TooLong,
    /// The end of the input.
    End,
}

/// Reads one line into `buffer`. The last line need not have an end.
pub(super) fn read(input: &mut impl BufRead, buffer: &mut Vec<u8>) -> io::Result<LineReadResult> {
    buffer.clear();
    buffer.shrink_to(USUAL_BYTES);
    let most = MAX_BYTES as u64 + 1;
    let count = Read::by_ref(input).take(most).read_until(b'\n', buffer)?;
    if buffer.pop_if(|last| *last == b'\n').is_some() {
        return Ok(LineReadResult::Whole);
    }
    if count > MAX_BYTES {
        buffer.clear();
        pass_over_line(input)?;
        return Ok(LineReadResult::TooLong);
    }
    Ok(if count == 0 { LineReadResult::End } else { LineReadResult::Whole })
}

/// Buffers larger than this are freed after a line.
const USUAL_BYTES: usize = 1 << 20;

fn pass_over_line(input: &mut impl BufRead) -> io::Result<()> {
    input.skip_until(b'\n').map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_bounded() {
        let mut text = b"one\n\n".to_vec();
        text.extend(vec![b'x'; MAX_BYTES]);
        text.push(b'\n');
        text.extend(vec![b'x'; MAX_BYTES + 1]);
        text.extend(b"\nlast");
        let (mut input, mut buffer) = (text.as_slice(), Vec::new());
        let mut next = || read(&mut input, &mut buffer).map(|line| (line, buffer.len())).unwrap();
        assert_eq!(next(), (LineReadResult::Whole, 3));
        assert_eq!(next(), (LineReadResult::Whole, 0));
        assert_eq!(next(), (LineReadResult::Whole, MAX_BYTES));
        assert_eq!(next(), (LineReadResult::TooLong, 0));
        assert_eq!(next(), (LineReadResult::Whole, 4));
        assert_eq!(next(), (LineReadResult::End, 0));
    }
}
