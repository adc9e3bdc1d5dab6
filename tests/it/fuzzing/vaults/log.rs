//! Changes of a write-ahead log beside a vault, with checksums that fit what was changed, or not.

use super::super::mutate::Random;

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;

/// The checksum of SQLite's write-ahead logs over `bytes`, whose length is a multiple of eight. The words are in the order
/// that the first four bytes of the log say.
fn checksum(is_big_endian: bool, (mut one, mut other): (u32, u32), bytes: &[u8]) -> (u32, u32) {
    let word = |bytes: &[u8]| {
        let bytes = [bytes[0], bytes[1], bytes[2], bytes[3]];
        if is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    };
    for pair in bytes.chunks_exact(8) {
        one = one.wrapping_add(word(&pair[..4])).wrapping_add(other);
        other = other.wrapping_add(word(&pair[4..])).wrapping_add(one);
    }
    (one, other)
}

/// Gives every frame the salts of the header and the checksum that makes it valid.
fn seal(log: &mut [u8], page: usize) {
    let is_big_endian = log[3] & 1 == 1;
    let mut sum = checksum(is_big_endian, (0, 0), &log[..24]);
    let write = |log: &mut [u8], at: usize, (one, other): (u32, u32)| {
        log[at..at + 4].copy_from_slice(&one.to_be_bytes());
        log[at + 4..at + 8].copy_from_slice(&other.to_be_bytes());
    };
    write(log, 24, sum);
    let salts = log[16..24].to_vec();
    let mut at = HEADER;
    while at + FRAME_HEADER + page <= log.len() {
        log[at + 8..at + 16].copy_from_slice(&salts);
        sum = checksum(is_big_endian, sum, &log[at..at + 8]);
        sum = checksum(is_big_endian, sum, &log[at + FRAME_HEADER..at + FRAME_HEADER + page]);
        write(log, at + 16, sum);
        at += FRAME_HEADER + page;
    }
}

/// One change of the log of a vault with pages of `page` bytes, and a description of it.
pub(super) fn change(log: &mut Vec<u8>, page: usize, random: &mut Random) -> String {
    let frame = FRAME_HEADER + page;
    let count = log.len().saturating_sub(HEADER) / frame;
    if count == 0 {
        return "nothing: no frames".to_owned();
    }
    let start = |number: usize| HEADER + number * frame;
    let (one, other) = (random.below(count), random.below(count));
    let described = match random.below(9) {
        0 => {
            let at = random.below(log.len());
            log[at] ^= 1 << random.below(8);
            format!("a bit of byte {at} of the log")
        }
        1 => {
            log.truncate(random.below(log.len()));
            format!("the log is cut off at {}", log.len())
        }
        2 => {
            for at in 0..frame {
                log.swap(start(one) + at, start(other) + at);
            }
            format!("frames {one} and {other} are exchanged")
        }
        3 => {
            log.copy_within(start(one)..start(one) + frame, start(other));
            format!("frame {other} is a copy of frame {one}")
        }
        4 => {
            let number: u32 = *random.of(&[0, 1, 2, 0x7fff_ffff, 0xffff_ffff, 0x0001_0000]);
            log[start(one)..start(one) + 4].copy_from_slice(&number.to_be_bytes());
            format!("frame {one} is page {number}")
        }
        5 => {
            let number: u32 = *random.of(&[0, 1, 2, 5, 0x7fff_ffff, 0xffff_ffff]);
            log[start(one) + 4..start(one) + 8].copy_from_slice(&number.to_be_bytes());
            format!("with frame {one}, the vault has {number} pages")
        }
        6 => {
            let at = random.below(24);
            log[at] = *random.of(&[0, 1, 0x37, 0x7f, 0x80, 0xff]);
            format!("the header of the log has another byte at {at}")
        }
        7 => {
            let more = log[start(one)..start(one) + frame].to_vec();
            log.extend(more);
            format!("frame {one} stands at the end again")
        }
        _ => {
            let at = start(one) + FRAME_HEADER + random.below(page.min(200));
            log[at] ^= 1 << random.below(8);
            format!("a bit of byte {at} of the log, in the page of frame {one}")
        }
    };
    if log.len() >= HEADER && random.below(3) > 0 {
        seal(log, page);
        return format!("{described}, with checksums that fit");
    }
    described
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What SQLite wrote stays as it is: these are its checksums.
    #[test]
    fn seals_are_those_of_sqlite() {
        let base = super::super::bases::logged();
        let mut sealed = base.log.clone().unwrap();
        seal(&mut sealed, base.page_size());
        assert_eq!(Some(sealed), base.log);
    }
}
