//! The attributes of a run that follow from its messages.

use std::collections::{BTreeSet, HashSet};

use super::message::{ConversationMessage, MessagePart, MessageRole, MessageToolCall, MessageToolResult};
use super::reader::AnsweredMessages;
use crate::artifact::{AttributeInfo, Draft};

/// Number of characters of an excerpt.
const EXCERPT: usize = 160;

/// What the messages of a run state: the tools that were called, why answers ended, what was asked first and answered last,
/// and which results of tools are errors.
#[derive(Default)]
pub(crate) struct ConversationFacts {
    first_prompt: Option<String>,
    /// The first message of a user that a program wrote, if there is no other.
    first_element: Option<String>,
    last_answer: Option<String>,
    first_error: Option<String>,
    finish_reasons: BTreeSet<String>,
    tool_calls: Vec<CalledTool>,
    /// The results that are errors, by the ids of their calls, or else by their contents: a request may repeat them.
    failed_results: HashSet<String>,
}

/// A call of a tool in an answer.
pub(crate) struct CalledTool {
    pub(crate) id: Option<String>,
    pub(crate) name: String,
}

impl ConversationFacts {
    /// Adds the messages of a request, or those that are new in it.
    pub(crate) fn asked(&mut self, messages: &[ConversationMessage]) {
        for message in messages {
            if message.role == MessageRole::User
                && self.first_prompt.is_none()
                && let Some(text) = text_of(message)
            {
                let first = if is_element(text) { &mut self.first_element } else { &mut self.first_prompt };
                first.get_or_insert_with(|| excerpt(text));
            }
            self.read_results(message);
        }
    }

    /// Adds an answer.
    pub(crate) fn answered(&mut self, answer: &AnsweredMessages) {
        for message in &answer.messages {
            self.read_results(message);
            for part in &message.parts {
                if let MessagePart::ToolCall(MessageToolCall { id, name, .. }) = part {
                    self.tool_calls.push(CalledTool { id: id.clone(), name: name.clone() });
                }
            }
        }
        let said = answer.messages.iter().rev().find_map(text_of);
        self.last_answer = said.map(excerpt).or(self.last_answer.take());
        self.finish_reasons.extend(answer.finish_reason.clone());
    }

    /// Adds what was asked by a recorder that states texts and not messages.
    pub(crate) fn asked_text(&mut self, text: &str) {
        self.first_prompt.get_or_insert_with(|| excerpt(text));
    }

    /// Adds what was answered, as [`ConversationFacts::asked_text`] does.
    pub(crate) fn answered_text(&mut self, text: &str) {
        self.last_answer = Some(excerpt(text));
    }

    /// Adds the message of an error.
    pub(crate) fn failed(&mut self, message: &str) {
        self.first_error.get_or_insert_with(|| excerpt(message));
    }

    /// Returns the calls of tools in answers.
    pub(crate) fn tool_calls(&self) -> &[CalledTool] {
        &self.tool_calls
    }

    /// Returns the number of results of tools that are errors.
    pub(crate) fn failed_results(&self) -> usize {
        self.failed_results.len()
    }

    /// Adds the attributes that are not numbers.
    pub(crate) fn describe(mut self, draft: &mut Draft) {
        let first_prompt = self.first_prompt();
        for tool in self.tool_calls.into_iter().filter(|tool| !tool.name.is_empty()) {
            draft.attribute(AttributeInfo::TOOL.name, tool.name);
        }
        for reason in self.finish_reasons {
            draft.attribute(AttributeInfo::FINISH_REASON.name, reason);
        }
        for (info, text) in [
            (AttributeInfo::FIRST_PROMPT, first_prompt),
            (AttributeInfo::LAST_ANSWER, self.last_answer),
            (AttributeInfo::ERROR, self.first_error),
        ] {
            if let Some(text) = text {
                draft.attribute(info.name, text);
            }
        }
    }

    /// Takes what was asked first.
    fn first_prompt(&mut self) -> Option<String> {
        self.first_prompt.take().or(self.first_element.take())
    }

    fn read_results(&mut self, message: &ConversationMessage) {
        for part in &message.parts {
            let MessagePart::ToolResult(result @ MessageToolResult { is_error: true, .. }) = part else {
                continue;
            };
            let text = result.parts.iter().find_map(said_text);
            if let Some(text) = text {
                self.failed(text);
            }
            let key = result.id.clone().unwrap_or_else(|| text.unwrap_or_default().to_owned());
            self.failed_results.insert(key);
        }
    }
}

/// Returns the last text of a message. Programs put what surrounds a prompt before it.
fn text_of(message: &ConversationMessage) -> Option<&str> {
    message.parts.iter().rev().find_map(said_text)
}

/// Returns whether a text consists of elements, such as `<environment_context>…</environment_context>`. Programs write such
/// messages in the name of the user.
fn is_element(text: &str) -> bool {
    let text = text.trim();
    let (start, end) =
        (text.strip_prefix('<'), text.strip_suffix('>').and_then(|text| text.rsplit_once("</")));
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    start.is_some_and(|text| text.starts_with(|first: char| first.is_ascii_lowercase()))
        && end.is_some_and(|(_, name)| is_name(name))
}

fn said_text(part: &MessagePart) -> Option<&str> {
    part.as_text().filter(|text| !text.trim().is_empty())
}

/// Returns the beginning of a text in one line.
fn excerpt(text: &str) -> String {
    let mut taken = String::new();
    // A word may be longer than the excerpt.
    for word in text.split_whitespace() {
        if !taken.is_empty() {
            taken.push(' ');
        }
        taken.extend(word.chars().take(EXCERPT + 1));
        if taken.chars().count() > EXCERPT {
            let cut = taken.chars().take(EXCERPT - 1).chain(['…']);
            return cut.collect();
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts_are_one_line_of_limited_length() {
        assert_eq!(excerpt(" one\n\ttwo  three "), "one two three");
        assert_eq!(excerpt(&"x".repeat(EXCERPT)), "x".repeat(EXCERPT));
        let cut = excerpt(&"é".repeat(1_000));
        assert_eq!(cut.chars().count(), EXCERPT);
        assert!(cut.ends_with("é…"), "{cut}");
        assert_eq!(excerpt(&"word ".repeat(100)).chars().count(), EXCERPT);
    }

    #[test]
    fn the_first_prompt_is_what_a_user_wrote() {
        let first = |texts: &[&str]| {
            let message =
                |text: &&str| ConversationMessage::new(MessageRole::User, vec![MessagePart::text(*text)]);
            let mut facts = ConversationFacts::default();
            facts.asked(&texts.iter().map(message).collect::<Vec<_>>());
            facts.first_prompt()
        };
        let command = "<command-name>/clear</command-name>\n<command-args></command-args>";
        let context = "<environment_context>\n  <cwd>/a</cwd>\n</environment_context>";
        assert_eq!(first(&[command, context, "fix it", "more"]).as_deref(), Some("fix it"));
        assert_eq!(
            first(&["<b>bold</b> is not closed", "more"]).as_deref(),
            Some("<b>bold</b> is not closed")
        );
        assert_eq!(first(&["a </b>"]).as_deref(), Some("a </b>"));
        assert!(first(&[command]).unwrap().starts_with("<command-name>"));
        assert_eq!(first(&[]), None);
    }

    #[test]
    fn errors_of_tools_that_are_repeated_count_once() {
        let failed = |id: Option<&str>, text: &str| {
            let parts = vec![MessagePart::text(text)];
            let id = id.map(str::to_owned);
            let result = MessageToolResult { id, name: None, parts, is_error: true };
            ConversationMessage::new(MessageRole::Tool, vec![MessagePart::ToolResult(result)])
        };
        let mut facts = ConversationFacts::default();
        for _ in 0..2 {
            facts.asked(&[failed(Some("a"), "no"), failed(Some("b"), "no"), failed(None, "other")]);
        }
        assert_eq!(facts.failed_results(), 3);
        assert_eq!(facts.first_error.as_deref(), Some("no"));
    }
}
