//! The events of a stream while it arrives.

/// Removes and returns the first event of a stream that is complete.
pub(super) fn take_event(buffer: &mut Vec<u8>) -> Option<Vec<u8>> {
    let ends = [&b"\n\n"[..], b"\r\n\r\n", b"\r\r"].into_iter();
    let found = ends.filter_map(|end| Some((memchr::memmem::find(buffer, end)?, end.len()))).min();
    let (at, length) = found?;
    let rest = buffer.split_off(at + length);
    Some(std::mem::replace(buffer, rest))
}

/// Returns the data of an event.
pub(super) fn data_of(event: &[u8]) -> Vec<u8> {
    let lines = event.split(|byte| matches!(byte, b'\n' | b'\r'));
    let data = lines.filter_map(|line| line.strip_prefix(b"data:"));
    data.flat_map(|data| data.strip_prefix(b" ").unwrap_or(data)).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_taken_when_they_are_complete() {
        let mut buffer = b"event: message\ndata: {\"a\":\ndata: 1}\n\ndata:{}\r\n\r\ndata: {".to_vec();
        let mut taken = Vec::new();
        while let Some(event) = take_event(&mut buffer) {
            taken.push(String::from_utf8(data_of(&event)).unwrap());
        }
        assert_eq!(taken, ["{\"a\":1}", "{}"]);
        assert_eq!(buffer, b"data: {");
    }
}
