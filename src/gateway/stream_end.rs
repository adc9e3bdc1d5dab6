//! Recognizes the end of a stream of events while it arrives.

/// The line that ends a stream of events by itself. A line break in a value is escaped, so no text can imitate it.
const LAST_DATA: &[u8] = b"data: [DONE]";

/// The first lines of events that end a stream.
const LAST_EVENTS: [&[u8]; 4] = [
    b"event: message_stop",
    b"event: response.completed",
    b"event: response.failed",
    b"event: response.incomplete",
];

/// How much of the end of a stream has arrived.
#[derive(Debug, Default)]
pub(super) struct StreamEnd {
    /// Where the last line begins that can have more bytes.
    line: usize,
    has_begun: bool,
    is_complete: bool,
}

impl StreamEnd {
    /// Continues with what has arrived of the body by now.
    pub(super) fn update(&mut self, body: &[u8]) {
        let mut start = self.line;
        let rest = body.get(start..).unwrap_or_default();
        for line in rest.split_inclusive(|byte| *byte == b'\n') {
            let is_whole = line.last() == Some(&b'\n');
            let text = line.trim_ascii_end();
            if text == LAST_DATA {
                (self.has_begun, self.is_complete) = (true, true);
            }
            // The data of the event is in other lines, and an empty one ends it.
            self.is_complete |= self.has_begun && is_whole && text.is_empty();
            self.has_begun |= LAST_EVENTS.contains(&text);
            if is_whole {
                start += line.len();
            }
        }
        self.line = start;
    }

    /// Returns whether the event that ends the stream has begun.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Returns whether all of this event has arrived.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The states after each part of a body.
    fn states(parts: &[&str]) -> Vec<(bool, bool)> {
        let (mut end, mut body) = (StreamEnd::default(), Vec::new());
        let state = |part: &&str| {
            body.extend_from_slice(part.as_bytes());
            end.update(&body);
            (end.has_begun(), end.is_complete())
        };
        parts.iter().map(state).collect()
    }

    #[test]
    fn an_event_ends_with_an_empty_line() {
        let (no, begun, complete) = ((false, false), (true, false), (true, true));
        let slow = ["data: {}\n\n", "event: message_", "stop\n", "data: {\"a\"", ":1}\n", "\n"];
        assert_eq!(states(&slow), [no, no, begun, begun, begun, complete]);
        let windows = ["event: response.completed\r", "\n", "data: {}\r\n", "\r", "\n"];
        assert_eq!(states(&windows), [begun, begun, begun, begun, complete]);
        assert_eq!(states(&["event: response.failed\ndata: {}\n\n"]), [complete]);
        assert_eq!(states(&["data: [DO", "NE]"]), [no, complete]);
        assert_eq!(states(&["data: \"event: message_stop\"\n\n"]), [no]);
    }
}
