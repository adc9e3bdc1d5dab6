//! The media that Inspect removes from requests before it writes them to a log. The messages in its own form, of which the
//! requests were made, usually still have them.

use std::collections::{HashMap, VecDeque};

use crate::json::members::word;
use crate::json::{Object, Value};

/// What Inspect writes in the place of the data of a medium.
const REMOVED: &str = "<base64-data-removed>";

/// The reason for which media that are nowhere in a log are listed.
pub(super) const NOT_IN_LOG: &str =
    "the data of images or other media is not in the log, because Inspect removed it";

/// The members of parts of messages, in the form of Inspect, that have media. They have the names of the types.
const OF_INSPECT: [&str; 4] = ["image", "audio", "video", "document"];

/// The members that Inspect removes from parts in the form of an API: Base64, and `data:` URLs.
const BASE64: &str = "data";
const URLS: [&str; 2] = ["url", "image_url"];

/// A value, and whether all media that were removed from it were restored.
pub(super) struct RestoredMedia {
    pub(super) value: Value<'static>,
    pub(super) is_complete: bool,
}

/// Returns whether media were removed from a value.
pub(super) fn is_removed_from(value: &Value<'_>) -> bool {
    match value {
        Value::Array(elements) => elements.iter().any(is_removed_from),
        Value::Object(members) => {
            removed_member(value).is_some() || members.iter().any(|(_, member)| is_removed_from(member))
        }
        _ => false,
    }
}

/// Returns a value with the media that were removed from it, of the messages of which it was made. Those that the messages
/// do not have are left out, with their members: a placeholder is not an image.
pub(super) fn restored(value: Value<'static>, messages: &[Value<'static>]) -> RestoredMedia {
    let mut known: HashMap<&str, MediaQueue<'_>> = HashMap::new();
    for url in messages.iter().flat_map(data_urls) {
        // Members that state no media type have any image, or any sound.
        let sort = url.media_type.split('/').next().unwrap_or_default();
        known.entry(sort).or_default().urls.push_back(url);
        if sort != url.media_type {
            known.entry(url.media_type).or_default().urls.push_back(url);
        }
    }
    count(&value, &mut known);
    // With other numbers, it is not known which of them was removed where.
    for queue in known.values_mut().filter(|queue| queue.urls.len() != queue.removed) {
        queue.urls.clear();
    }
    let mut restoration = MediaRestoration { known, is_complete: true };
    let value = restoration.restore(value);
    RestoredMedia { value, is_complete: restoration.is_complete }
}

/// The media of a type in the order of the messages, and how many of this type were removed.
#[derive(Default)]
struct MediaQueue<'v> {
    urls: VecDeque<DataUrl<'v>>,
    removed: usize,
}

/// A `data:` URL.
#[derive(Clone, Copy)]
struct DataUrl<'v> {
    url: &'v str,
    media_type: &'v str,
    base64: &'v str,
}

/// Returns the media that a message in the form of Inspect contains.
fn data_urls<'v>(message: &'v Value<'_>) -> impl Iterator<Item = DataUrl<'v>> {
    let parts = message.get("content").and_then(Value::as_array).unwrap_or_default().iter();
    parts.filter_map(|part| {
        let name = OF_INSPECT.into_iter().find(|name| word(part, "type") == Some(name))?;
        let url = word(part, name)?;
        let (media_type, base64) = url.strip_prefix("data:")?.split_once(";base64,")?;
        Some(DataUrl { url, media_type, base64 })
    })
}

/// A member of an object from which a medium was removed.
struct RemovedMember {
    name: &'static str,
    media_type: String,
}

/// Returns the member of an object from which a medium was removed.
fn removed_member(object: &Value<'_>) -> Option<RemovedMember> {
    let is_removed = |name: &&str| word(object, name) == Some(REMOVED);
    let name = [BASE64].into_iter().chain(URLS).chain(OF_INSPECT).find(is_removed)?;
    let stated = ["media_type", "mimeType", "mime_type"].into_iter().find_map(|name| word(object, name));
    // The data of sounds has a format beside it.
    let sort = if name == BASE64 && object.get("format").is_some() { "audio" } else { "image" };
    Some(RemovedMember { name, media_type: stated.unwrap_or(sort).to_owned() })
}

/// Counts the media that were removed from a value, of the types that are known.
fn count(value: &Value<'_>, known: &mut HashMap<&str, MediaQueue<'_>>) {
    match value {
        Value::Array(elements) => elements.iter().for_each(|element| count(element, known)),
        Value::Object(members) => {
            let queue = removed_member(value).and_then(|member| known.get_mut(member.media_type.as_str()));
            if let Some(queue) = queue {
                queue.removed += 1;
            }
            members.iter().for_each(|(_, member)| count(member, known));
        }
        _ => {}
    }
}

struct MediaRestoration<'v> {
    known: HashMap<&'v str, MediaQueue<'v>>,
    is_complete: bool,
}

impl MediaRestoration<'_> {
    fn restore(&mut self, value: Value<'static>) -> Value<'static> {
        let removed = removed_member(&value);
        match value {
            Value::Array(elements) => {
                Value::Array(elements.into_iter().map(|element| self.restore(element)).collect())
            }
            Value::Object(members) => {
                let restored = members.into_members().into_iter().filter_map(|(name, member)| {
                    let member = match &removed {
                        Some(removed) if removed.name == name => self.medium(removed)?,
                        _ => self.restore(member),
                    };
                    Some((name, member))
                });
                Value::Object(Object::from_members(restored.collect()))
            }
            other => other,
        }
    }

    /// Returns the next medium of the type that was removed.
    fn medium(&mut self, removed: &RemovedMember) -> Option<Value<'static>> {
        let queue = self.known.get_mut(removed.media_type.as_str());
        let Some(url) = queue.and_then(|queue| queue.urls.pop_front()) else {
            self.is_complete = false;
            return None;
        };
        let data = if removed.name == BASE64 { url.base64 } else { url.url };
        Some(Value::String(data.to_owned().into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::compact;
    use crate::json::reader::{self, Limits};

    fn value(text: &str) -> Value<'static> {
        reader::read(text.as_bytes(), &Limits::default()).unwrap().into_owned_value()
    }

    /// Returns a body with the media of messages that have these parts, and whether they are all.
    fn with_media(body: &str, parts: &[&str]) -> (String, bool) {
        let message = format!(r#"{{"role":"user","content":[{}]}}"#, parts.join(","));
        let RestoredMedia { value, is_complete } = restored(value(body), &[value(&message)]);
        (compact::text(&value), is_complete)
    }

    const PNG: &str = r#"{"type":"image","image":"data:image/png;base64,YQ=="}"#;
    const JPEG: &str = r#"{"type":"image","image":"data:image/jpeg;base64,Yg=="}"#;
    const LINK: &str = r#"{"type":"image","image":"https://example.org/c.png"}"#;
    const TEXT: &str = r#"{"type":"document","document":"data:text/plain;base64,ZA=="}"#;
    const SOUND: &str = r#"{"type":"audio","audio":"data:audio/mpeg;base64,ZQ==","format":"mp3"}"#;

    #[test]
    fn media_are_restored_in_the_form_of_each_api() {
        for (body, parts, expected) in [
            (
                r#"[{"type":"base64","media_type":"image/jpeg","data":"<base64-data-removed>"},{"type":"base64","media_type":"image/png","data":"<base64-data-removed>"}]"#,
                &[PNG, LINK, TEXT, JPEG][..],
                r#"[{"type":"base64","media_type":"image/jpeg","data":"Yg=="},{"type":"base64","media_type":"image/png","data":"YQ=="}]"#,
            ),
            (
                r#"[{"image_url":{"url":"<base64-data-removed>"}},{"image_url":"<base64-data-removed>"}]"#,
                &[PNG, JPEG],
                r#"[{"image_url":{"url":"data:image/png;base64,YQ=="}},{"image_url":"data:image/jpeg;base64,Yg=="}]"#,
            ),
            (
                r#"{"inline_data":{"data":"<base64-data-removed>","mime_type":"image/png"}}"#,
                &[PNG],
                r#"{"inline_data":{"data":"YQ==","mime_type":"image/png"}}"#,
            ),
            (
                r#"{"input_audio":{"data":"<base64-data-removed>","format":"mp3"}}"#,
                &[PNG, SOUND],
                r#"{"input_audio":{"data":"ZQ==","format":"mp3"}}"#,
            ),
            (r#"{"text":"<base64-data-removed>"}"#, &[PNG], r#"{"text":"<base64-data-removed>"}"#),
        ] {
            assert_eq!(with_media(body, parts), (expected.to_owned(), true));
        }
    }

    #[test]
    fn media_that_cannot_be_assigned_are_left_out() {
        let url = r#"{"type":"image_url","image_url":{"url":"<base64-data-removed>","detail":"auto"}}"#;
        let expected = r#"{"type":"image_url","image_url":{"detail":"auto"}}"#;
        for parts in [&[][..], &[PNG, JPEG], &[LINK], &[SOUND]] {
            assert_eq!(with_media(url, parts), (expected.to_owned(), false));
        }
        let image = r#"{"type":"image","image":"<base64-data-removed>"}"#;
        assert_eq!(with_media(image, &[image]), (r#"{"type":"image"}"#.to_owned(), false));
        assert!(is_removed_from(&value(image)) && !is_removed_from(&value(PNG)));
    }
}
