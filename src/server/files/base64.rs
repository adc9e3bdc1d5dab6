//! Base64 with padding, as policies of pages state digests.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes `bytes`.
pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let bits =
            three.iter().fold(0_u32, |bits, byte| (bits << 8) | u32::from(*byte)) << (8 * (3 - three.len()));
        for place in 0..4 {
            let digit =
                DIGITS.get(((bits >> (18 - 6 * place)) & 63) as usize).filter(|_| place <= three.len());
            text.push(digit.map_or('=', |digit| char::from(*digit)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::encode;

    #[test]
    fn bytes_are_encoded_with_padding() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(encode(bytes.as_bytes()), text);
        }
        assert_eq!(encode(&[255, 239, 190]), "/+++");
    }
}
