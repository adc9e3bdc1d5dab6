//! Card numbers: digits that begin as the networks assign them, with the right length and check digit.

use super::rules::{CARD, SecretSpan};

/// The shortest and the longest number, in digits.
const SHORTEST: usize = 14;
const LONGEST: usize = 16;

/// The longest number in characters: four groups and three separators.
const WIDEST: usize = LONGEST + 3;

/// The lengths of the groups in which numbers are written.
const GROUPS: [&[usize]; 3] = [&[4, 4, 4, 4], &[4, 6, 5], &[4, 6, 4]];

/// How many characters are examined at once: half of the shortest number.
const PIECE: usize = SHORTEST / 2;

/// Returns the card numbers in `bytes`, in order.
pub(super) fn find(bytes: &[u8]) -> Vec<SecretSpan> {
    let mut spans = Vec::new();
    // Every run of as many characters as the shortest number contains a whole piece, wherever it begins.
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| rest.len() >= PIECE) {
        at += PIECE;
        if is_part_of_run(rest) {
            let (start, end) = run_around(bytes, at);
            spans.extend(number(bytes, start, end));
            at = end;
        }
    }
    spans
}

/// Returns whether a character can be part of a number.
fn is_part(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b' ' | b'-')
}

/// Returns whether the first piece of `bytes` consists of characters that can be part of a number. It examines them all at
/// once, because branches that depend on digits are predicted badly: digests have many.
fn is_part_of_run(bytes: &[u8]) -> bool {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const HIGHEST: u64 = EACH * 0x80;
    let Some(piece) = bytes.first_chunk::<8>() else {
        return bytes.iter().take(PIECE).all(|byte| is_part(*byte));
    };
    let word = u64::from_le_bytes(*piece);
    // The highest bit of a byte is set in the result if the byte of `difference` is more than `most`, which is below 0x80.
    let exceeds = |difference: u64, most: u64| ((difference & !HIGHEST) + EACH * (0x7f - most)) | difference;
    let not_digit = exceeds(word ^ (EACH * u64::from(b'0')), 9);
    let not_space = exceeds(word ^ (EACH * u64::from(b' ')), 0);
    let not_hyphen = exceeds(word ^ (EACH * u64::from(b'-')), 0);
    let others = not_digit & not_space & not_hyphen & HIGHEST;
    // The eighth character belongs to the next piece.
    others << 8 == 0
}

/// Returns the run of digits and separators around a position, without separators at its ends.
fn run_around(bytes: &[u8], at: usize) -> (usize, usize) {
    let before = bytes.get(..at).unwrap_or_default().iter().rev().take_while(|byte| is_part(**byte)).count();
    let after = bytes.get(at..).unwrap_or_default().iter().take_while(|byte| is_part(**byte)).count();
    (at - before, at + after)
}

/// Returns the number in a run, if there is exactly one in it.
fn number(bytes: &[u8], start: usize, end: usize) -> Option<SecretSpan> {
    let run = bytes.get(start..end)?;
    let first = run.iter().position(u8::is_ascii_digit)?;
    let last = run.iter().rposition(u8::is_ascii_digit)?;
    let (start, end) = (start + first, start + last + 1);
    if end - start < SHORTEST || end - start > WIDEST || is_within_word(bytes, start, end) {
        return None;
    }
    let text = bytes.get(start..end)?;
    let digits: Vec<u8> = text.iter().filter(|byte| byte.is_ascii_digit()).map(|byte| byte - b'0').collect();
    let is_number = is_grouped(text) && is_assigned(&digits) && is_checked(&digits);
    is_number.then_some(SecretSpan { rule: &CARD, start, end })
}

/// Returns whether the characters around make it a part of something else, such as a digest or a fraction.
fn is_within_word(bytes: &[u8], start: usize, end: usize) -> bool {
    let joins =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/' | b':' | b'+');
    let is_escape = matches!(bytes.get(..start), Some([.., b'\\', b'n' | b't' | b'r']));
    let before = start.checked_sub(1).and_then(|before| bytes.get(before)).is_some_and(joins);
    // A full stop ends a sentence, unless digits follow.
    let after = match bytes.get(end..) {
        Some([b'.', next, ..]) => next.is_ascii_alphanumeric(),
        Some([next, ..]) => joins(next) && *next != b'.',
        _ => false,
    };
    before && !is_escape || after
}

/// Returns whether the digits are together, or in usual groups with one sort of separator.
fn is_grouped(text: &[u8]) -> bool {
    let Some(separator) = text.iter().find(|byte| !byte.is_ascii_digit()) else { return true };
    let lengths: Vec<usize> = text.split(|byte| byte == separator).map(<[u8]>::len).collect();
    text.iter().all(|byte| byte.is_ascii_digit() || byte == separator) && GROUPS.contains(&&lengths[..])
}

/// Returns whether a network assigns numbers of this length that begin so.
fn is_assigned(digits: &[u8]) -> bool {
    let begin =
        |count: usize| digits.iter().take(count).fold(0, |number, digit| number * 10 + u32::from(*digit));
    match digits.len() {
        // Diners Club.
        14 => matches!(begin(3), 300..=305) || matches!(begin(2), 36 | 38 | 39),
        // American Express.
        15 => matches!(begin(2), 34 | 37),
        // Visa, Mastercard, Discover, JCB and UnionPay.
        16 => {
            digits.first() == Some(&4)
                || matches!(begin(2), 51..=55 | 62 | 65)
                || matches!(begin(3), 644..=649)
                || matches!(begin(4), 2221..=2720 | 3528..=3589 | 6011)
        }
        _ => false,
    }
}

/// Returns whether the last digit is the check digit of the others.
fn is_checked(digits: &[u8]) -> bool {
    let value = |(at, digit): (usize, &u8)| match (at % 2, *digit) {
        (0, digit) => u32::from(digit),
        (_, digit @ 0..=4) => u32::from(digit) * 2,
        (_, digit) => u32::from(digit) * 2 - 9,
    };
    digits.iter().rev().enumerate().map(value).sum::<u32>().is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that the networks publish for tests.
    const NUMBERS: [&str; 9] = [
        "4111111111111111",
        "5555555555554444",
        "2223003122003222",
        "378282246310005",
        "6011111111111117",
        "3530111333300000",
        "30569309025904",
        "6200000000000005",
        "4242 4242 4242 4242",
    ];

    #[test]
    fn numbers_are_found_wherever_they_are() {
        for number in NUMBERS {
            for before in 0..40 {
                let text = format!("{}\"{number}\", and more text", "x".repeat(before));
                let found = find(text.as_bytes());
                assert_eq!(found.len(), 1, "{text}");
                assert_eq!(&text[found[0].start..found[0].end], number);
            }
        }
        for text in [
            "card 4111 1111 1111 1111.",
            "\\n4111111111111111\\n",
            "4111-1111-1111-1111",
            "[4111111111111111]",
        ] {
            assert_eq!(find(text.as_bytes()).len(), 1, "{text}");
        }
    }

    #[test]
    fn other_digits_are_not_numbers() {
        for text in [
            // Another check digit, length or beginning.
            "4111111111111112",
            "41111111111111111",
            "411111111111111",
            "1111111111111117",
            // Digests, UUIDs, times, fractions, versions.
            "a4111111111111111",
            "4111111111111111f",
            "sha256:4111111111111111",
            "4111111111111111-0000",
            "41111111-1111-1111-1111-111111111111",
            "00000000-4111-1111-1111-111111111111",
            "0.4111111111111111",
            "4111111111111111.5",
            "2026-11-22 20:52:00",
            "1795379346000000",
            "1 2 3 4 5 6 7 8 9 10 11 12 13",
            "4111 1111 1111 1111 1111",
            "4111 1111-1111 1111",
            "411 11111 1111 1111",
        ] {
            assert_eq!(find(format!("\"{text}\" and so on").as_bytes()), [], "{text}");
        }
        assert_eq!(find("0123456789".repeat(1000).as_bytes()), []);
        assert_eq!(find("        ".repeat(1000).as_bytes()), []);
    }

    #[test]
    fn a_piece_is_examined_as_its_characters_are() {
        for byte in 0..=u8::MAX {
            for at in 0..8 {
                let mut piece = *b"12 45-78";
                piece[at] = byte;
                assert_eq!(is_part_of_run(&piece), at == PIECE || is_part(byte), "{byte} at {at}");
                assert_eq!(is_part_of_run(&piece[..PIECE]), at == PIECE || is_part(byte), "{byte} at {at}");
            }
        }
    }
}
