//! The pages of recorded runs, which are read as conversations.

use std::collections::VecDeque;
use std::sync::Mutex;

use runvault::Vault;
use runvault::gateway::{Gateway, GatewayMode};
use runvault::vault::find::FindRequest;
use runvault::vault::view::{ConversationThread, ViewRequest};
use serde_json::{Value, json};

use super::files::{assert_closed, export, pages};
use super::{HOSTILE, Response, Serving};
use crate::gateway::client::request;
use crate::gateway::scripted;
use crate::sandbox::Sandbox;

/// A request and its answer, with the status of the answer.
pub(super) struct RecordedExchange {
    pub(super) request: Value,
    status: u16,
    pub(super) answer: Value,
}

impl RecordedExchange {
    pub(super) fn answered(messages: &Value, message: &Value) -> Self {
        let request = json!({"model": "m-1", "messages": messages, "temperature": 0,
            "tools": [{"type": "function", "function": {"name": "get_weather"}}]});
        let reason = if message["tool_calls"].is_null() { "stop" } else { "tool_calls" };
        let answer = json!({"model": "m-1", "choices": [{"message": message, "finish_reason": reason}],
            "usage": {"prompt_tokens": 1234, "completion_tokens": 5}});
        Self { request, status: 200, answer }
    }

    fn failed(messages: &Value, message: &str) -> Self {
        Self {
            status: 429,
            answer: json!({"error": {"message": message}}),
            ..Self::answered(messages, &Value::Null)
        }
    }
}

/// Records exchanges through a gateway, and returns the core hash of their run pack.
pub(super) fn record(sandbox: &Sandbox, exchanges: &[RecordedExchange]) -> String {
    let answers: VecDeque<String> = exchanges
        .iter()
        .map(|exchange| {
            let body = exchange.answer.to_string();
            let status = exchange.status;
            format!(
                "HTTP/1.1 {status} S\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            )
        })
        .collect();
    let answers = Mutex::new(answers);
    let upstream = scripted::server(move |_| vec![(0, answers.lock().unwrap().pop_front().unwrap())]);
    let options = scripted::options(sandbox, GatewayMode::Record, upstream);
    let vault = Vault::open_or_create(&sandbox.vault()).unwrap();
    let gateway = Gateway::start(vault, "127.0.0.1:0".parse().unwrap(), options).unwrap();
    for RecordedExchange { request: body, status, .. } in exchanges {
        request(gateway.address(), "POST /openai/v1/chat/completions", &[], &body.to_string())
            .expect(*status);
    }
    let run = gateway.finish(None).unwrap().unwrap();
    gateway.stop().unwrap();
    run.run_pack.to_string()
}

/// An agent with a tool that works, one that fails, a branch and a call that fails.
pub(super) fn weather() -> Vec<RecordedExchange> {
    let call = |id: &str, city: &str| {
        let arguments = json!({"city": city}).to_string();
        json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function",
            "function": {"name": "get_weather", "arguments": arguments}}]})
    };
    let rules: Vec<String> = (0..60).map(|number| format!("- rule {number}")).collect();
    let asked = json!({"role": "user", "content": "Is it **warm** in [Paris](https://paris.example/)?"});
    let mut messages = vec![json!({"role": "system", "content": rules.join("\n")}), asked];
    let mut exchanges = Vec::new();
    let mut say = |messages: &mut Vec<Value>, answer: Value| {
        exchanges.push(RecordedExchange::answered(&Value::Array(messages.clone()), &answer));
        messages.push(answer);
    };
    say(&mut messages, call("c-0", "Paris"));
    messages.push(json!({"role": "tool", "tool_call_id": "c-0", "content": "{\"sky\":{\"clear\":true},\"temperature\":21.50}"}));
    say(
        &mut messages,
        json!({"role": "assistant", "content": "# Yes\n\n| a | b |\n|---|---|\n| warm | `21.5` |"}),
    );
    let mut other = vec![json!({"role": "user", "content": "Summarise the day."})];
    say(&mut other, json!({"role": "assistant", "content": "It was warm."}));
    messages.push(json!({"role": "user", "content": "And tomorrow?"}));
    exchanges.push(RecordedExchange::failed(&Value::Array(messages), "slow down"));
    exchanges
}

/// A run with hostile text in everything that a client and a server can say.
pub(super) fn hostile() -> Vec<RecordedExchange> {
    const MARKDOWN: &str = "[a](javascript:alert(1)) ![b](https://x.example/b.png\"onerror=alert(1)) <svg onload=alert(1)>\n\n\
        <iframe src=//x.example></iframe>\n\n```\"><script>alert(1)</script>\n</pre>\n```\n\n[c](data:text/html,<script>alert(1)</script>)\n\n\
        | <b> | [d](https://x.example/\"onmouseover=\"alert(1)) |\n|-|-|\n| </table> | <https://x.example/\"><script>> |\n\n";
    let text = format!("{MARKDOWN}{HOSTILE}");
    let arguments = json!({HOSTILE: [HOSTILE, {"</pre><script>": text}]}).to_string();
    let call = json!({"role": "assistant", "content": text, "reasoning_content": text, "tool_calls": [
        {"id": "c-0", "type": "function", "function": {"name": HOSTILE, "arguments": arguments}},
        {"id": HOSTILE, "type": "function", "function": {"name": "f", "arguments": text}}]});
    let parts = json!([{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": format!("https://x.example/{HOSTILE}")}},
        {"type": HOSTILE, "<b>": text}]);
    let mut messages =
        vec![json!({"role": "system", "content": text}), json!({"role": "user", "content": parts})];
    let first = RecordedExchange::answered(&Value::Array(messages.clone()), &call);
    messages.push(call);
    messages.push(json!({"role": "tool", "tool_call_id": "c-0", "content": arguments}));
    messages.push(json!({"role": "tool", "tool_call_id": HOSTILE, "content": text}));
    let refusal = json!({"role": "assistant", "content": null, "refusal": text});
    let second = RecordedExchange::answered(&Value::Array(messages.clone()), &refusal);
    messages.push(json!({"role": "user", "content": "again"}));
    vec![first, second, RecordedExchange::failed(&Value::Array(messages), &text)]
}

/// A run with more calls than a page has.
pub(super) fn long_run() -> Vec<RecordedExchange> {
    run_of_calls(230)
}

/// A run with this many calls.
fn run_of_calls(count: usize) -> Vec<RecordedExchange> {
    let exchange = |number| {
        let messages = json!([{"role": "user", "content": format!("question {number}.")}]);
        let text = format!("answer {number}.");
        RecordedExchange::answered(&messages, &json!({"role": "assistant", "content": text}))
    };
    (0..count).map(exchange).collect()
}

pub(super) fn page(serving: &Serving, path: &str) -> Response {
    serving.get(path).expect(200)
}

/// The values of an attribute in a page.
pub(super) fn values<'p>(page: &'p str, attribute: &str) -> Vec<&'p str> {
    page.split(&format!(" {attribute}=\"")).skip(1).map(|rest| rest.split('"').next().unwrap()).collect()
}

#[test]
fn a_recorded_run_is_a_conversation_with_each_message_once() {
    let sandbox = Sandbox::without_vault();
    let core = record(&sandbox, &weather());
    let serving = Serving::start(&sandbox);
    let page = page(&serving, &format!("/artifact/{core}"));
    let text = page.text();
    let in_order = [
        "<li>rule 59</li>",
        "Is it <strong>warm</strong> in <a rel=\"noopener noreferrer nofollow\" href=\"https://paris.example/\">Paris</a>",
        "<strong>get_weather</strong>",
        "<span class=\"value string\">Paris</span>",
        "data-pointer=\"/sky/clear\"",
        "<span class=\"value number\">21.50</span>",
        "<p class=\"heading\">Yes</p>",
        "<td>warm</td><td><code>21.5</code></td>",
        "Summarise the day.",
        "<p>It was warm.</p>",
        "And tomorrow?",
        "slow down</pre>",
    ];
    let places: Vec<usize> = in_order
        .iter()
        .map(|part| {
            assert_eq!(text.matches(part).count(), 1, "{part}: {text}");
            text.find(part).unwrap()
        })
        .collect();
    assert!(places.is_sorted(), "{places:?}");
    for part in ["1,234 tokens in", "Thread 1", "1 failed", "Raw steps", "Exact bytes", "stop</span>"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // The instructions are folded, and the conversation comes before the facts.
    let folded = text.split("<details class=\"long\">").nth(1).unwrap();
    assert!(folded.split("</details>").next().unwrap().contains("rule 59"), "{text}");
    assert!(text.find("It was warm.") < text.find("id=\"facts\""));
    // Whatever links to a step or a message finds it.
    let ids: Vec<&str> = values(text, "id");
    for step in 0..8 {
        let id = format!("step-{step}");
        assert_eq!(ids.iter().filter(|one| **one == id).count(), 1, "{id}: {ids:?}");
    }
    for link in
        values(text, "href").into_iter().filter(|link| link.starts_with(&format!("/artifact/{core}#")))
    {
        assert!(ids.contains(&link.split_once('#').unwrap().1), "{link}");
    }
    assert!(text.contains(&format!("href=\"/artifact/{core}#step-0-1\"")), "{text}");
}

#[test]
fn the_steps_and_a_part_of_a_conversation_can_be_chosen() {
    let sandbox = Sandbox::without_vault();
    let core = record(&sandbox, &weather());
    let serving = Serving::start(&sandbox);
    let calls = |query: &str| {
        let page = page(&serving, &format!("/artifact/{core}{query}"));
        page.text().matches("<article class=\"call").count()
    };
    assert_eq!(calls(""), 4);
    assert_eq!(calls("?from=4"), 2);
    assert_eq!(calls("?from=2&to=2"), 1);
    assert_eq!(calls("?only=tools"), 1);
    // The failed call is after this one, so that it is not known whether there is one.
    let part = page(&serving, &format!("/artifact/{core}?from=0&to=0"));
    assert!(!part.text().contains(" failed</a>") && part.text().contains(">failed</a>"), "{}", part.text());
    assert!(page(&serving, &format!("/artifact/{core}?only=errors")).text().contains(">1 failed</a>"));
    assert_eq!(calls("?only=errors"), 1);
    let raw = page(&serving, &format!("/artifact/{core}?raw=true"));
    assert_eq!(raw.text().matches("<details class=\"step").count(), 8);
    assert_eq!(calls("?raw=true"), 0);
    serving.get(&format!("/artifact/{core}?raw=x")).expect(400);
}

#[test]
fn a_long_conversation_is_paged() {
    let sandbox = Sandbox::without_vault();
    let core = record(&sandbox, &long_run());
    let serving = Serving::start(&sandbox);
    let first = page(&serving, &format!("/artifact/{core}"));
    assert!(first.text().contains("answer 199.") && !first.text().contains("question 200."));
    assert!(first.text().contains("the first 200 of 230 calls"), "{}", first.text());
    let next = format!("/artifact/{core}?from=400");
    assert!(first.text().contains(&format!("rel=\"next\" href=\"{next}\"")), "{}", first.text());
    let second = page(&serving, &next);
    assert!(!second.text().contains("answer 199.") && second.text().contains("answer 229."));
    assert!(second.text().contains("30 of 230 calls"), "{}", second.text());
    assert!(second.text().contains("rel=\"prev\"") && !second.text().contains("rel=\"next\""));
    // Links to steps lead to a page that has them.
    let middle = page(&serving, &format!("/artifact/{core}?from=200"));
    assert!(middle.text().contains("id=\"step-399\""));
    let files = export(&sandbox, &[&core]);
    let all: String = pages(&files).map(|(_, page)| page).collect();
    assert!(all.contains("answer 0.") && all.contains("answer 229."));
}

#[test]
fn the_previous_page_is_full_and_ends_where_the_page_begins() {
    let sandbox = Sandbox::without_vault();
    let core = record(&sandbox, &run_of_calls(450));
    let serving = Serving::start(&sandbox);
    let previous = |query: &str| -> Option<String> {
        let page = page(&serving, &format!("/artifact/{core}{query}"));
        let address = page.text().split("rel=\"prev\" href=\"").nth(1)?.split('"').next()?.to_owned();
        Some(address.strip_prefix(&format!("/artifact/{core}")).unwrap().replace("&amp;", "&"))
    };
    // A call has two steps: the request and the answer.
    for (query, expected) in [
        ("", None),
        ("?from=2", Some("")),
        ("?from=400", Some("")),
        ("?from=480", Some("?from=80")),
        ("?from=800", Some("?from=400")),
        ("?from=5000", Some("?from=500")),
        ("?from=480&raw=true", Some("?from=280&raw=true")),
        ("?from=480&only=errors", None),
    ] {
        assert_eq!(previous(query).as_deref(), expected, "{query}");
    }
}

#[test]
fn files_have_each_call_and_each_step_once() {
    let sandbox = Sandbox::without_vault();
    let core = record(&sandbox, &run_of_calls(450));
    let files = export(&sandbox, &[&core]);
    assert_closed(&files);
    let stem = format!("run-pack-{}", &core["sha256:".len()..][..12]);
    let of_run = |page: &&(&str, &str)| page.0.starts_with(&stem);
    let all: Vec<(&str, &str)> = pages(&files).collect();
    let mut names: Vec<&str> =
        all.iter().filter(of_run).filter_map(|(name, _)| name.strip_prefix(&stem)).collect();
    names.sort_unstable();
    let mut expected = vec![
        ".html",
        "-from-400.html",
        "-from-800.html",
        "-raw-true.html",
        "-from-200-raw-true.html",
        "-from-400-raw-true.html",
        "-from-600-raw-true.html",
        "-from-800-raw-true.html",
        "-only-tools.html",
        "-only-errors.html",
        "-links.html",
    ];
    expected.sort_unstable();
    assert_eq!(names, expected);
    // Wherever a link leads to a step, the step is there.
    for (name, page) in &all {
        for (file, place) in values(page, "href").into_iter().filter_map(|link| link.split_once('#')) {
            let file = if file.is_empty() { *name } else { file };
            let target = all.iter().find(|(other, _)| *other == file).unwrap().1;
            assert!(target.contains(&format!(" id=\"{place}\"")), "{name}: {file}#{place}");
        }
    }
}

#[test]
fn pieces_of_a_conversation_are_the_same_as_all_of_it() {
    let sandbox = Sandbox::without_vault();
    let exchanges: Vec<_> = weather().into_iter().chain(long_run()).chain(weather()).collect();
    let run = record(&sandbox, &exchanges);
    let vault = Vault::open(&sandbox.vault()).unwrap();
    let found = vault.run(&FindRequest::default()).unwrap().hits;
    assert!(found.len() > 1 && found.iter().any(|hit| hit.artifact.core_hash.to_string() == run));
    let mut was_partial = false;
    for hit in found {
        let view = |from, limit, partial| {
            let all = ViewRequest::new(hit.artifact.core_hash);
            let request = ViewRequest { from, limit, partial, conversation: true, check_core: true, ..all };
            let answer = vault.run(&request).unwrap();
            assert!(answer.core_checked);
            answer
        };
        let whole = view(0, None, true);
        let conversation = whole.conversation.unwrap();
        // A session has no calls that failed.
        assert!(conversation.calls.len() >= 236);
        let parents = |threads: &[ConversationThread]| -> Vec<_> {
            threads.iter().map(|thread| thread.parent).collect()
        };
        // Of five calls each, a page ends with the call of a tool whose result is in the next request.
        for (limit, partial) in [(5, true), (7, false), (7, true), (50, false), (50, true)] {
            let (mut calls, mut next) = (Vec::new(), Some(0));
            while let Some(from) = next {
                let piece = view(from, Some(limit), partial);
                let read = piece.conversation.unwrap();
                assert_eq!([piece.total, piece.matching], [whole.total, whole.matching]);
                if partial && piece.next.is_some() {
                    assert!(piece.failed <= whole.failed);
                    was_partial |= piece.failed < whole.failed;
                    assert!(parents(&conversation.threads).starts_with(&parents(&read.threads)));
                } else {
                    assert_eq!((piece.failed, &read.threads), (whole.failed, &conversation.threads));
                }
                calls.extend(read.calls);
                next = piece.next;
            }
            assert_eq!(calls, conversation.calls);
        }
    }
    assert!(was_partial);
}

#[test]
fn damage_to_a_call_that_a_page_does_not_show_is_on_its_badge() {
    let sandbox = Sandbox::without_vault();
    let core = record(&sandbox, &long_run());
    let badges = |badge: &str| {
        let serving = Serving::start(&sandbox);
        for query in ["", "?from=400", "?from=2&to=2", "?only=errors", "?raw=true"] {
            let page = page(&serving, &format!("/artifact/{core}{query}"));
            let status = page.text().split("<div class=\"status\">").nth(1).unwrap();
            let status = status.split("</div>").next().unwrap();
            assert!(status.contains(badge), "{query}: {status}");
        }
    };
    badges("Verified");
    let vault =
        rusqlite::Connection::open_with_flags(sandbox.vault(), rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE)
            .unwrap();
    let payload = "SELECT p.blob, p.bytes FROM payload p JOIN capture c ON c.blob = p.blob
        JOIN artifact a ON a.id = c.artifact JOIN kind k ON k.id = a.kind WHERE k.name = 'rpk'";
    let (blob, mut bytes): (i64, Vec<u8>) =
        vault.query_row(payload, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    vault.execute("UPDATE payload SET bytes = ?2 WHERE blob = ?1", (blob, bytes)).unwrap();
    drop(vault);
    badges("Damaged");
}

#[test]
fn nothing_in_a_conversation_is_markup() {
    let sandbox = Sandbox::without_vault();
    let core = record(&sandbox, &hostile());
    let files = export(&sandbox, &[&core]);
    let serving = Serving::start(&sandbox);
    let mut shown: Vec<(String, String)> =
        pages(&files).map(|(name, page)| (name.to_owned(), page.to_owned())).collect();
    for query in ["", "?raw=true", "?from=0&to=0", "?only=tools", "?only=errors"] {
        let path = format!("/artifact/{core}{query}");
        shown.push((path.clone(), page(&serving, &path).text().to_owned()));
    }
    let mut seen = 0;
    for (name, page) in &shown {
        let body = page.split("<main").nth(1).unwrap().split("</main>").next().unwrap();
        for part in ["<script", "<img", "<svg o", "<iframe", "\u{1b}", "\u{202e}", "\u{9b}", "\u{7f}"] {
            assert!(!body.contains(part), "{name} has {part:?}");
        }
        for tag in body.split('<').skip(1).map(|rest| rest.split('>').next().unwrap()) {
            assert!(values(tag, "onerror").is_empty() && values(tag, "onload").is_empty(), "{name}: {tag}");
            assert!(!tag.contains(" onmouseover=") && !tag.contains(" style="), "{name}: {tag}");
        }
        for link in values(body, "href") {
            let is_ours = link.starts_with(['/', '#']) && !link.starts_with("//");
            // Only pages of the server link to elsewhere.
            let is_served = name.starts_with('/');
            let is_allowed =
                if is_served { link.starts_with("https://x.example/") } else { !link.contains(':') };
            assert!(is_ours || is_allowed, "{name}: {link}");
        }
        seen += body.matches("&lt;script&gt;").count();
    }
    assert!(seen > 50, "the hostile text is on {seen} places only");
}

#[test]
fn files_contain_the_conversation_and_the_steps() {
    let sandbox = Sandbox::without_vault();
    let core = record(&sandbox, &weather());
    let files = export(&sandbox, &[&core]);
    let all: Vec<(&str, &str)> = pages(&files).collect();
    let page = |ending: &str| all.iter().find(|(name, _)| name.ends_with(ending)).unwrap().1;
    let first = page(&format!("{}.html", &core["sha256:".len()..][..12]));
    assert!(first.contains("Is it <strong>warm</strong> in <span>Paris</span>"), "{first}");
    assert!(first.contains("(https://paris.example/)"), "{first}");
    assert!(page("-raw-true.html").contains("<details class=\"step"));
    for (name, page) in &all {
        let ids = values(page, "id");
        for link in values(page, "href").into_iter().filter_map(|link| link.split_once('#')) {
            let target = all.iter().find(|(other, _)| *other == link.0).map_or(&ids[..], |_| &[]);
            let found = if link.0.is_empty() || link.0 == *name {
                ids.contains(&link.1)
            } else {
                target.is_empty() && files.contains_key(link.0)
            };
            assert!(found, "{name}: {link:?}");
        }
    }
}
