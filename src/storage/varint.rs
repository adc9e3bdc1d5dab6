//! Variable-length integers: seven bits per byte, the lowest first, and the highest bit set in all bytes but the last
//! (LEB128).

/// Appends `number`.
#[inline]
pub(in crate::storage) fn write(out: &mut Vec<u8>, mut number: u64) {
    loop {
        let [lowest, ..] = number.to_le_bytes();
        number >>= 7;
        if number == 0 {
            // The remaining value has seven bits.
            out.push(lowest & 0x7f);
            return;
        }
        out.push(lowest | 0x80);
    }
}

/// Appends `number` in an encoding that is short for small numbers of either sign.
pub(in crate::storage) fn write_signed(out: &mut Vec<u8>, number: i64) {
    write(out, ((number << 1) ^ (number >> 63)).cast_unsigned());
}

/// Reads a number from the front of `bytes`; returns `None` if they end too early or it has more than 64 bits.
#[inline]
pub(in crate::storage) fn read(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let part = u64::from(byte & 0x7f);
        if (part << shift) >> shift != part {
            return None;
        }
        number |= part << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Reads a number written by [`write_signed`].
pub(in crate::storage) fn read_signed(bytes: &mut &[u8]) -> Option<i64> {
    let number = read(bytes)?;
    Some((number >> 1).cast_signed() ^ -((number & 1).cast_signed()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_come_back(number: u64, signed: i64, rest: Vec<u8>) {
            let mut bytes = Vec::new();
            write(&mut bytes, number);
            write_signed(&mut bytes, signed);
            bytes.extend(&rest);
            let mut left = bytes.as_slice();
            prop_assert_eq!(read(&mut left), Some(number));
            prop_assert_eq!(read_signed(&mut left), Some(signed));
            prop_assert_eq!(left, rest);
        }
    }

    #[test]
    fn numbers_that_end_or_overflow_are_refused() {
        assert_eq!(read(&mut [].as_slice()), None);
        assert_eq!(read(&mut [0x80].as_slice()), None);
        assert_eq!(read(&mut [0xff; 10].as_slice()), None);
        assert_eq!(
            read(&mut [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1].as_slice()),
            Some(u64::MAX)
        );
    }
}
