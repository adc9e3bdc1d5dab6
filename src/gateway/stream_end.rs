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

/// None of these lines is longer.
const LONGEST: usize = 32;

/// How much of the end of a stream has arrived.
#[derive(Debug, Default)]
pub(super) struct StreamEnd {
    /// The beginning of the last line, which can have more bytes: at most [`LONGEST`] bytes, because streams can have long
    /// lines.
    line: Vec<u8>,
    /// Whether more than white space follows it in the line.
    has_more: bool,
    has_begun: bool,
    is_complete: bool,
}

impl StreamEnd {
    /// Continues with the next part of the body.
    pub(super) fn update(&mut self, data: &[u8]) {
        for part in data.split_inclusive(|byte| *byte == b'\n') {
            let is_whole = part.last() == Some(&b'\n');
            let (kept, rest) = part.split_at(part.len().min(LONGEST - self.line.len()));
            self.line.extend_from_slice(kept);
            self.has_more = self.has_more || !rest.trim_ascii_start().is_empty();
            if !self.has_more {
                self.update_line(is_whole);
            }
            if is_whole {
                self.line.clear();
                self.has_more = false;
            }
        }
    }

    fn update_line(&mut self, is_whole: bool) {
        let text = self.line.trim_ascii_end();
        if text == LAST_DATA {
            (self.has_begun, self.is_complete) = (true, true);
        }
        // The data of the event is in other lines, and an empty one ends it.
        self.is_complete |= self.has_begun && is_whole && text.is_empty();
        self.has_begun |= LAST_EVENTS.contains(&text);
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
        let mut end = StreamEnd::default();
        let state = |part: &&str| {
            end.update(part.as_bytes());
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

    /// Each part is passed once, so that the time for a line is proportional to its length if none of it is examined again.
    #[test]
    fn only_the_beginning_of_a_line_is_kept() {
        let part = "a".repeat(8_192);
        let mut end = StreamEnd::default();
        end.update(b"data: \"");
        for _ in 0..100 {
            end.update(part.as_bytes());
            assert!(end.line.len() <= LONGEST);
        }
        assert!(!end.has_begun());
        end.update(b"\"\n\ndata: [DONE]\n\n");
        assert!(end.is_complete());
        assert!(LAST_EVENTS.iter().chain([&LAST_DATA]).all(|line| line.len() <= LONGEST));
    }

    #[test]
    fn the_last_line_can_end_with_white_space_only() {
        let (no, complete) = ((false, false), (true, true));
        let space = " ".repeat(100);
        assert_eq!(states(&[&format!("data: [DONE]{space}"), &space, "\r\n"]), [complete; 3]);
        assert_eq!(states(&[&format!("data: [DONE]{space}x\n")]), [no]);
        assert_eq!(
            states(&[&format!("data: {space}"), "[DONE]", "\n", "data: [DONE]"]),
            [no, no, no, complete]
        );
    }
}
