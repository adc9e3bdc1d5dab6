//! The event streams of AWS, which Bedrock answers with: binary messages, recorded as a text in the form of server-sent
//! events, from which the same bytes are made again.
//!
//! A message is its length and that of its headers, the CRC-32 of both, the headers, the payload, and the CRC-32 of all
//! before it; numbers are big-endian. So its headers and its payload are all that is recorded:
//!
//! - `event: NAME` and `data: PAYLOAD` with the headers that Bedrock sends (`:event-type`, `:content-type`, `:message-type`)
//! - `: p PADDING` before an `event: chunk`, whose payload is an object with the Base64 of the data, and this `p`
//! - `: headers [["NAME","VALUE"],…]` before any other message. The name of its event is then `error` if the message is an
//!   exception or an error

use std::io::{Error, ErrorKind, Result};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::conversation::response::{AWS_EVENTS, Chunk, media_type};

/// The type of content of what is recorded.
const RECORDED: &str = "text/event-stream; transport=vnd.amazon.eventstream";

/// The most bytes of a message: the clients of AWS accept payloads of 24 MiB.
const MAX_MESSAGE: usize = 25 << 20;

/// The bytes of a message before its headers, and after its payload.
const PRELUDE: usize = 12;
const CHECKSUM: usize = 4;

/// The type of a header that is a text.
const TEXT: u8 = 7;

/// The type of the events whose data is Base64.
const CHUNK: &str = "chunk";

/// The name of events that are exceptions or errors.
const ERROR: &str = "error";

/// The values of `:content-type` and `:message-type` of most messages.
const JSON: &str = "application/json";
const EVENT: &str = "event";

/// Returns whether a body of this type is an event stream of AWS.
pub(crate) fn is_type(content_type: &str) -> bool {
    media_type(Some(content_type)).eq_ignore_ascii_case(AWS_EVENTS)
}

/// Returns the type of content of what is recorded of an answer.
pub(crate) fn recorded_type(content_type: String) -> String {
    if is_type(&content_type) { RECORDED.to_owned() } else { content_type }
}

/// Returns whether an answer with this type of content was recorded of an event stream of AWS.
pub(crate) fn is_recorded_type(content_type: Option<&str>) -> bool {
    content_type == Some(RECORDED)
}

/// Reads an event stream while it arrives.
#[derive(Debug, Default)]
pub(crate) struct AwsEventReader {
    pending: Vec<u8>,
    /// Why what followed could not be read.
    failure: Option<Error>,
}

impl AwsEventReader {
    /// Returns the text of the messages that the next part of the stream completes.
    pub(crate) fn read(&mut self, data: &[u8]) -> String {
        let mut text = String::new();
        if self.failure.is_none() {
            self.pending.extend_from_slice(data);
            let mut rest = self.pending.as_slice();
            self.failure = loop {
                match AwsMessage::read(rest) {
                    Ok(Some((message, after))) => {
                        text.push_str(&message);
                        rest = after;
                    }
                    Ok(None) => break None,
                    Err(error) => break Some(error),
                }
            };
            let read = self.pending.len() - rest.len();
            self.pending.drain(..read);
        }
        text
    }

    /// Returns an error if the stream ended inside a message, or a part of it was not a message or cannot be recorded.
    pub(crate) fn finish(&mut self) -> Result<()> {
        match self.failure.take() {
            Some(error) => Err(error),
            None if self.pending.is_empty() => Ok(()),
            None => Err(Error::new(ErrorKind::UnexpectedEof, "it ends inside a message")),
        }
    }
}

/// Returns the event stream that a text was recorded of, and the parts in which it is sent; no parts if the text does not
/// have them any more. Returns `None` if a message would be too long.
pub(crate) fn encoded(text: &str, chunks: &[Chunk]) -> Option<(Vec<u8>, Vec<Chunk>)> {
    let mut rest = text;
    let parts = chunks.iter().map(|chunk| {
        let (part, after) = rest.split_at_checked(usize::try_from(chunk.bytes).ok()?)?;
        rest = after;
        (part.is_empty() || part.ends_with("\n\n")).then_some((chunk.at_us, part))
    });
    let parts: Option<Vec<_>> = parts.collect();
    let mut bytes = Vec::new();
    let Some(parts) = parts.filter(|_| rest.is_empty()) else {
        write(text, &mut bytes)?;
        return Some((bytes, Vec::new()));
    };
    let mut sent = Vec::new();
    for (at_us, part) in parts {
        let before = bytes.len();
        write(part, &mut bytes)?;
        sent.push(Chunk { at_us, bytes: (bytes.len() - before) as u64 });
    }
    Some((bytes, sent))
}

fn write(text: &str, bytes: &mut Vec<u8>) -> Option<()> {
    let events = text.split("\n\n").filter(|event| !event.is_empty());
    events.map(AwsMessage::from_text).try_for_each(|message| message.write(bytes))
}

/// A message with headers that are texts, and a payload that is one.
#[derive(Debug, PartialEq)]
struct AwsMessage {
    headers: Vec<(String, String)>,
    payload: String,
}

/// The payload of an event [`CHUNK`].
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct EncodedData {
    bytes: String,
    /// A text of random length, so that the length of the message does not tell that of the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    p: Option<String>,
}

impl AwsMessage {
    /// Returns the text of the first message, and what follows the message; `None` if it is not complete.
    fn read(bytes: &[u8]) -> Result<Option<(String, &[u8])>> {
        let damaged = |reason| Error::new(ErrorKind::InvalidData, reason);
        let Some((prelude, _)) = bytes.split_first_chunk::<PRELUDE>() else { return Ok(None) };
        let (lengths, checksum) = prelude.split_at(PRELUDE - CHECKSUM);
        if crc32fast::hash(lengths) != number(checksum) {
            return Err(damaged("the checksum of the lengths of a message is wrong"));
        }
        let (length, headers) = lengths.split_at(CHECKSUM);
        let (length, headers) = (size(length), size(headers));
        let shortest = PRELUDE + CHECKSUM;
        if !(shortest..=MAX_MESSAGE).contains(&length) || headers > length - shortest {
            return Err(damaged("the lengths of a message are not valid"));
        }
        let Some((message, after)) = bytes.split_at_checked(length) else { return Ok(None) };
        let (content, checksum) = message.split_at(length - CHECKSUM);
        if crc32fast::hash(content) != number(checksum) {
            return Err(damaged("the checksum of a message is wrong"));
        }
        let (headers, payload) = content.split_at(PRELUDE).1.split_at(headers);
        // Models are not known to send other messages.
        let text = Self::parse(headers, payload).and_then(|message| message.text());
        let text =
            text.ok_or_else(|| Error::new(ErrorKind::Unsupported, "has a message that is not text"))?;
        Ok(Some((text, after)))
    }

    /// Reads a message with these headers. Returns `None` if it has other values than texts.
    fn parse(mut headers: &[u8], payload: &[u8]) -> Option<Self> {
        let mut read = Vec::new();
        while let Some((length, rest)) = headers.split_first() {
            let (name, rest) = rest.split_at_checked(usize::from(*length))?;
            let ([TEXT, high, low], rest) = rest.split_first_chunk::<3>()? else { return None };
            let (value, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([*high, *low])))?;
            read.push((text(name)?, text(value)?));
            headers = rest;
        }
        Some(Self { headers: read, payload: text(payload)? })
    }

    /// Writes the message. Returns `None` if it is too long.
    fn write(&self, bytes: &mut Vec<u8>) -> Option<()> {
        let mut headers = Vec::new();
        for (name, value) in &self.headers {
            headers.push(u8::try_from(name.len()).ok()?);
            headers.extend_from_slice(name.as_bytes());
            headers.push(TEXT);
            headers.extend_from_slice(&u16::try_from(value.len()).ok()?.to_be_bytes());
            headers.extend_from_slice(value.as_bytes());
        }
        let length = PRELUDE + headers.len() + self.payload.len() + CHECKSUM;
        let mut message = Vec::with_capacity(length);
        for number in [u32::try_from(length).ok()?, u32::try_from(headers.len()).ok()?] {
            message.extend_from_slice(&number.to_be_bytes());
        }
        message.extend_from_slice(&crc32fast::hash(&message).to_be_bytes());
        message.extend_from_slice(&headers);
        message.extend_from_slice(self.payload.as_bytes());
        message.extend_from_slice(&crc32fast::hash(&message).to_be_bytes());
        bytes.append(&mut message);
        Some(())
    }

    /// Returns the text that the message is recorded as: the first one that it can be made from again.
    fn text(&self) -> Option<String> {
        let forms = [self.chunk(), self.event(), self.with_headers()];
        forms.into_iter().flatten().find(|text| Self::from_text(text.trim_end_matches('\n')) == *self)
    }

    fn chunk(&self) -> Option<String> {
        let EncodedData { bytes, p } = serde_json::from_str(&self.payload).ok()?;
        let data = String::from_utf8(STANDARD.decode(bytes).ok()?).ok()?;
        let padding = p.map(|padding| format!(": p {padding}\n")).unwrap_or_default();
        Some(format!("{padding}event: {CHUNK}\n{}\n", lines(&data)))
    }

    fn event(&self) -> Option<String> {
        let (_, name) = self.headers.first()?;
        Some(format!("event: {name}\n{}\n", lines(&self.payload)))
    }

    fn with_headers(&self) -> Option<String> {
        let headers = serde_json::to_string(&self.headers).ok()?;
        let name = if self.header(":message-type") == Some(EVENT) { EVENT } else { ERROR };
        let message = self.header(":error-message").or_else(|| self.header(":error-code"));
        // An error states its message in a header, and has no payload.
        let data = match message {
            Some(message) if self.payload.is_empty() => lines(&json!({"message": message}).to_string()),
            _ => lines(&self.payload),
        };
        Some(format!(": headers {headers}\nevent: {name}\n{data}\n"))
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(stated, _)| stated == name).map(|(_, value)| value.as_str())
    }

    /// Returns the message that was recorded as this text, of which the empty line at its end is no part.
    fn from_text(text: &str) -> Self {
        let (mut headers, mut name, mut padding, mut data) = (None, "", None, Vec::new());
        for line in text.split('\n') {
            if let Some(listed) = line.strip_prefix(": headers ") {
                headers = serde_json::from_str(listed).ok();
            } else if let Some(text) = line.strip_prefix(": p ") {
                padding = Some(text.to_owned());
            } else if let Some(text) = line.strip_prefix("event: ") {
                name = text;
            } else if let Some(text) = line.strip_prefix("data: ") {
                data.push(text);
            }
        }
        let payload = data.join("\n");
        if let Some(headers) = headers {
            let message = Self { headers, payload };
            let is_error = message.header(":message-type") == Some(ERROR);
            return if is_error { Self { payload: String::new(), ..message } } else { message };
        }
        let headers = [(":event-type", name), (":content-type", JSON), (":message-type", EVENT)];
        let payload = if name == CHUNK {
            let encoded = EncodedData { bytes: STANDARD.encode(payload), p: padding };
            serde_json::to_string(&encoded).unwrap_or_default()
        } else {
            payload
        };
        Self { headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(), payload }
    }
}

/// Returns the lines with a payload.
fn lines(payload: &str) -> String {
    if payload.is_empty() { String::new() } else { format!("data: {}\n", payload.replace('\n', "\ndata: ")) }
}

fn text(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}

/// Returns the number that four bytes are.
fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, byte| (number << 8) | u32::from(*byte))
}

fn size(bytes: &[u8]) -> usize {
    usize::try_from(number(bytes)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(headers: &[(&str, &str)], payload: &str) -> Vec<u8> {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let mut bytes = Vec::new();
        AwsMessage { headers: headers.collect(), payload: payload.to_owned() }.write(&mut bytes).unwrap();
        bytes
    }

    fn event(name: &str, payload: &str) -> Vec<u8> {
        message(&[(":event-type", name), (":content-type", JSON), (":message-type", EVENT)], payload)
    }

    /// Reads a stream, and returns its text and what is wrong with it.
    fn read(bytes: &[u8]) -> (String, Option<String>) {
        let mut reader = AwsEventReader::default();
        let text = reader.read(bytes);
        (text, reader.finish().err().map(|error| error.to_string()))
    }

    /// The bytes that the SDKs of AWS read as a message with a header and a payload.
    #[test]
    fn messages_have_lengths_and_checksums() {
        let bytes = message(&[("content-type", JSON)], "{'foo':'bar'}");
        let hex = bytes.iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
        assert_eq!(
            hex,
            "0000003d0000002007fd83960c636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e\
             7b27666f6f273a27626172277d8d9c08b1"
        );
        let empty = message(&[], "");
        assert_eq!(empty, [0, 0, 0, 16, 0, 0, 0, 0, 5, 194, 72, 235, 125, 152, 200, 255]);
    }

    #[test]
    fn messages_are_recorded_as_events_and_made_again() {
        for (bytes, text) in [
            (
                event("contentBlockDelta", r#"{"p":"ab"}"#),
                "event: contentBlockDelta\ndata: {\"p\":\"ab\"}\n\n",
            ),
            (event("chunk", r#"{"bytes":"e30="}"#), "event: chunk\ndata: {}\n\n"),
            (event("chunk", r#"{"bytes":"e30=","p":"abc"}"#), ": p abc\nevent: chunk\ndata: {}\n\n"),
            (
                event("chunk", r#"{ "bytes": "e30=" }"#),
                ": headers [[\":event-type\",\"chunk\"],[\":content-type\",\"application/json\"],\
                 [\":message-type\",\"event\"]]\nevent: event\ndata: { \"bytes\": \"e30=\" }\n\n",
            ),
            (event("a", "{\n\n}\n"), "event: a\ndata: {\ndata: \ndata: }\ndata: \n\n"),
            (event("a", ""), "event: a\n\n"),
            (
                message(&[(":message-type", "exception"), (":exception-type", "x")], r#"{"message":"no"}"#),
                ": headers [[\":message-type\",\"exception\"],[\":exception-type\",\"x\"]]\nevent: error\n\
                 data: {\"message\":\"no\"}\n\n",
            ),
            (
                message(&[(":message-type", "error"), (":error-code", "x"), (":error-message", "no")], ""),
                ": headers [[\":message-type\",\"error\"],[\":error-code\",\"x\"],[\":error-message\",\"no\"]]\n\
                 event: error\ndata: {\"message\":\"no\"}\n\n",
            ),
        ] {
            assert_eq!(read(&bytes), (text.to_owned(), None));
            assert_eq!(encoded(text, &[]).unwrap().0, bytes, "{text}");
        }
    }

    #[test]
    fn damaged_messages_are_found_after_those_before_them() {
        let (first, second) = (event("a", "{}"), event("b", "{}"));
        let stream = [first.clone(), second].concat();
        for position in first.len()..stream.len() {
            let mut damaged = stream.clone();
            damaged[position] ^= 1;
            let (text, failure) = read(&damaged);
            assert_eq!(text, "event: a\ndata: {}\n\n");
            assert!(failure.is_some_and(|reason| reason.contains("checksum")), "{position}");
            if position > first.len() {
                let (_, failure) = read(&stream[..position]);
                assert_eq!(failure.as_deref(), Some("it ends inside a message"), "{position}");
            }
        }
        let mut binary = Vec::new();
        binary.extend_from_slice(&[0, 0, 0, 17, 0, 0, 0, 0]);
        binary.extend_from_slice(&crc32fast::hash(&binary).to_be_bytes());
        binary.push(0xff);
        binary.extend_from_slice(&crc32fast::hash(&binary).to_be_bytes());
        assert_eq!(read(&binary).1.as_deref(), Some("has a message that is not text"));
    }

    #[test]
    fn streams_are_sent_in_the_parts_in_which_they_came() {
        let messages = [event("a", "{}"), event("b", "{\"a\":1}"), event("c", "{}")];
        let mut reader = AwsEventReader::default();
        let stream = messages.concat();
        let (first, second) = stream.split_at(messages[0].len() + 5);
        let texts = [reader.read(first), reader.read(second)];
        let chunk = |at_us, text: &str| Chunk { at_us, bytes: text.len() as u64 };
        let chunks = [chunk(1, &texts[0]), chunk(2, &texts[1])];
        let (bytes, sent) = encoded(&texts.concat(), &chunks).unwrap();
        assert_eq!(bytes, stream);
        let sizes: Vec<usize> = sent.iter().map(|chunk| usize::try_from(chunk.bytes).unwrap()).collect();
        assert_eq!(sizes, [messages[0].len(), messages[1].len() + messages[2].len()]);
        // Redacted, it has other parts.
        assert_eq!(encoded(&texts.concat(), &chunks[..1]).unwrap(), (stream, Vec::new()));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..200), text in ".*") {
            read(&bytes);
            let _ = encoded(&text, &[]);
            // Also where the checksum of the lengths is right.
            let mut framed = vec![0, 0, 0, 200];
            framed.extend_from_slice(bytes.get(..4).unwrap_or(&[0, 0, 0, 0]));
            framed.extend_from_slice(&crc32fast::hash(&framed).to_be_bytes());
            framed.extend_from_slice(&bytes);
            framed.resize(196, 0);
            framed.extend_from_slice(&crc32fast::hash(&framed).to_be_bytes());
            read(&framed);
        }

        #[test]
        fn a_written_stream_is_read_again(
            messages in proptest::collection::vec(
                (proptest::collection::vec((".{0,9}", "(?s).{0,9}"), 0..4), "(?s).{0,30}", any::<bool>()),
                0..5,
            ),
            at in any::<proptest::sample::Index>(),
        ) {
            let mut stream = Vec::new();
            for (headers, payload, is_chunk) in messages {
                if is_chunk {
                    stream.extend(event("chunk", &json!({"bytes": STANDARD.encode(payload)}).to_string()));
                } else {
                    AwsMessage { headers, payload }.write(&mut stream).unwrap();
                }
            }
            let mut reader = AwsEventReader::default();
            let (first, second) = stream.split_at(at.index(stream.len() + 1));
            let text = [reader.read(first), reader.read(second)].concat();
            prop_assert!(reader.finish().is_ok());
            prop_assert_eq!(encoded(&text, &[]).unwrap().0, stream);
        }
    }
}
