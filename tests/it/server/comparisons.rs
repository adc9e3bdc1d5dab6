//! Pages that compare: runs by message, several runs by prompt, answers to a prompt, and runs against a contract.

use serde_json::{Value, json};

use super::conversations::{RecordedExchange, hostile, page, record, values, weather};
use super::files::{assert_closed, export, pages};
use super::{HOSTILE, Serving};
use crate::sandbox::{Sandbox, run_pack, sealed, session};

/// A run with one exchange for each prompt and answer.
fn asked(exchanges: &[(&str, &str)]) -> Vec<RecordedExchange> {
    let mut messages = Vec::new();
    let exchange = |(prompt, answer): &(&str, &str)| {
        messages.push(json!({"role": "user", "content": prompt}));
        let message = json!({"role": "assistant", "content": answer});
        let exchange = RecordedExchange::answered(&Value::Array(messages.clone()), &message);
        messages.push(message);
        exchange
    };
    exchanges.iter().map(exchange).collect()
}

/// The weather agent, with another result of its tool and another answer to the second request.
fn other_weather() -> Vec<RecordedExchange> {
    let mut exchanges = weather();
    let answer = json!({"role": "assistant", "content": "# No\n\nIt is cold."});
    for exchange in &mut exchanges {
        for message in exchange.request["messages"].as_array_mut().unwrap() {
            if message["role"] == "tool" {
                message["content"] = r#"{"sky":{"clear":false},"temperature":3}"#.into();
            } else if message["content"].as_str().is_some_and(|text| text.starts_with("# Yes")) {
                *message = answer.clone();
            }
        }
    }
    exchanges[1].answer["choices"][0]["message"] = answer;
    exchanges
}

/// The content of a page.
fn main_of(page: &str) -> &str {
    page.split("<main").nth(1).unwrap().split("</main>").next().unwrap()
}

fn without_form(page: &str) -> &str {
    main_of(page).split("</form>").nth(1).unwrap()
}

#[test]
fn two_runs_are_compared_message_by_message() {
    let sandbox = Sandbox::without_vault();
    let (one, other) = (record(&sandbox, &weather()), record(&sandbox, &other_weather()));
    let files = export(&sandbox, &[&one, &other]);
    assert_closed(&files);
    let serving = Serving::start(&sandbox);
    let pair = page(&serving, &format!("/diff?run={one}&run={other}"));
    let text = without_form(pair.text());
    // Of the call of the tool, only the result differs; the answers to it differ, and what follows is the same.
    assert!(text.contains("6 messages the same, 2 changed."), "{text}");
    assert_eq!(text.matches("<article class=\"change").count(), 2, "{text}");
    let first = text.split("<article class=\"change first\" id=\"message-2\">").nth(1).expect(text);
    let first = first.split("</article>").next().unwrap();
    for part in ["<del>21.50</del>", "<ins>3</ins>", "<del>true</del>", "<ins>false</ins>", "get_weather {\n"]
    {
        assert!(first.contains(part), "{part}: {first}");
    }
    assert!(values(text, "href").contains(&"#message-2"), "{text}");
    assert!(text.contains("<summary>2 messages are the same</summary>"), "{text}");
    assert!(text.contains("<summary>4 messages are the same</summary>"), "{text}");
    assert_eq!(text.matches("Summarise the day.").count(), 1, "what is the same is shown once: {text}");
    // Every link to a message leads to it.
    for link in values(text, "href").into_iter().filter(|link| link.contains("#step-")) {
        let (path, place) = link.split_once('#').unwrap();
        let target = page(&serving, path);
        assert!(values(target.text(), "id").contains(&place), "{link}");
    }
    assert!(text.contains("<summary>All values that differ</summary>"), "{text}");
    // The same address as before, and the file, say the same.
    let named = page(&serving, &format!("/diff?one={one}&other={other}"));
    assert_eq!(without_form(named.text()), text);
    let file = main_of(std::str::from_utf8(&files["diff.html"]).unwrap());
    assert!(file.contains("<del>21.50</del>") && file.contains("href=\"#message-2\""), "{file}");
}

#[test]
fn runs_that_say_the_same_have_no_message_that_differs() {
    let sandbox = Sandbox::without_vault();
    let (one, other) = (record(&sandbox, &weather()), record(&sandbox, &weather()));
    let serving = Serving::start(&sandbox);
    let pair = page(&serving, &format!("/diff?run={one}&run={other}"));
    let text = without_form(pair.text());
    assert!(text.contains("No message differs.") && text.contains("8 messages the same."), "{text}");
    assert!(!text.contains("<article class=\"change"), "{text}");
}

#[test]
fn many_differences_are_paged() {
    let exchanges = |word: &str| -> Vec<RecordedExchange> {
        let exchange = |number| {
            let messages = json!([{"role": "user", "content": format!("question {number}.")}]);
            let message = json!({"role": "assistant", "content": format!("{word} {number}.")});
            RecordedExchange::answered(&messages, &message)
        };
        (0..103).map(exchange).collect()
    };
    let sandbox = Sandbox::without_vault();
    let (one, other) = (record(&sandbox, &exchanges("one")), record(&sandbox, &exchanges("two")));
    let files = export(&sandbox, &[&one, &other]);
    assert_closed(&files);
    assert!(files.contains_key("diff-from-201.html"), "{:?}", files.keys());
    let serving = Serving::start(&sandbox);
    let shown = |path: &str| {
        let page = page(&serving, path);
        let next = values(page.text(), "href")
            .into_iter()
            .find(|link| link.starts_with("/diff") && link.contains("from="));
        (page.text().matches("<article class=\"change").count(), next.map(|next| next.replace("&amp;", "&")))
    };
    let (count, next) = shown(&format!("/diff?run={one}&run={other}"));
    assert_eq!(
        (count, next.as_deref()),
        (100, Some(format!("/diff?one={one}&other={other}&from=201").as_str()))
    );
    assert_eq!(shown(&next.unwrap()), (3, None));
    let table = page(&serving, &format!("/diff?run={one}&run={other}&run={one}"));
    let next = format!("/diff?run={one}&amp;run={other}&amp;run={one}&amp;from=100");
    assert!(values(table.text(), "href").contains(&next.as_str()), "{}", table.text());
    let rest = page(&serving, &next.replace("&amp;", "&"));
    assert_eq!(rest.text().matches("<th scope=\"row\">").count(), 3);
}

#[test]
fn several_runs_are_a_table_with_a_row_for_each_prompt() {
    let sandbox = Sandbox::without_vault();
    let runs = [
        asked(&[("first?", "It is one."), ("last?", "Same.")]),
        asked(&[("first?", "It is two."), ("between?", "New."), ("last?", "Same.")]),
        asked(&[("first?", "It is one."), ("last?", "Other.")]),
    ]
    .map(|exchanges| record(&sandbox, &exchanges));
    let plain = sandbox.add([sandbox.write("plain.rpk", run_pack("plain", &[]))]).remove(0);
    let serving = Serving::start(&sandbox);
    let [one, two, three] = &runs;
    let page = page(&serving, &format!("/diff?run={one}&run={two}&run={three}&run={plain}"));
    let table = page.text().split("<table class=\"runs\">").nth(1).unwrap().split("</table>").next().unwrap();
    let rows: Vec<Vec<&str>> = table
        .split("<tbody>")
        .nth(1)
        .unwrap()
        .split("<tr>")
        .skip(1)
        .map(|row| row.split("<td>").collect())
        .collect();
    let prompts: Vec<bool> = rows
        .iter()
        .zip(["first?", "between?", "last?"])
        .map(|(row, prompt)| row[0].contains(prompt))
        .collect();
    assert_eq!((prompts, rows.len()), (vec![true; 3], 3), "{table}");
    assert!(rows[0][2].contains("It is <ins>two</ins>.") && rows[0][3].contains("same</span>"), "{table}");
    assert!(rows[1][1].contains('–') && rows[1][2].contains("New."), "{table}");
    assert!(rows[2][2].contains("same</span>") && rows[2][3].contains("<ins>Other</ins>."), "{table}");
    assert!(rows.iter().all(|row| row.len() == 5 && row[4].contains('–')), "{table}");
    assert!(table.contains("It has no conversation."), "{table}");
    let title = page.text().split("<title>").nth(1).unwrap().split("</title>").next().unwrap();
    assert!(title.starts_with("Differences: ") && title.ends_with(", plain – runvault"), "{title}");
    let differences = format!("/diff?one={one}&amp;other={two}");
    assert!(values(table, "href").contains(&differences.as_str()), "{table}");
}

#[test]
fn the_form_of_a_comparison_has_the_runs_and_limits_them() {
    let sandbox = Sandbox::without_vault();
    let run = record(&sandbox, &asked(&[("a", "b")]));
    let serving = Serving::start(&sandbox);
    let form = page(&serving, &format!("/diff?run={run}"));
    assert!(form.text().contains(&format!("name=\"run\" value=\"{run}\"")), "{}", form.text());
    page(&serving, &format!("/diff?run={run}&run=+&run={run}"));
    let eight = vec![format!("run={run}"); 8].join("&");
    page(&serving, &format!("/diff?{eight}"));
    let refused = serving.get(&format!("/diff?{eight}&run={run}")).expect(400);
    assert!(refused.text().contains("at most 8 are compared"), "{}", refused.text());
    serving.get(&format!("/diff?run={run}&run=nothing-with-this-name")).expect(404);
    serving.get(&format!("/diff?run={run}&color=red")).expect(400);
    serving.get(&format!("/diff?run={run}&all=true&all=true")).expect(400);
}

#[test]
fn nothing_in_a_comparison_is_markup() {
    let sandbox = Sandbox::without_vault();
    let [one, other, third] =
        [hostile(), asked(&[(HOSTILE, HOSTILE), ("b", HOSTILE)]), asked(&[(HOSTILE, "x")])]
            .map(|exchanges| record(&sandbox, &exchanges));
    let contract = json!({
        "io_refs": [{"ref": HOSTILE, "kind": "service", "mode": "mutate", "required": true, "schema": HOSTILE, "tools": [HOSTILE]}],
        "effects": [{"name": HOSTILE, "kind": "resource", "target": HOSTILE, "idempotency": {"type": "keyed", "key_fields": [HOSTILE]},
            "rollback": HOSTILE, "tools": [HOSTILE],
            "evidence": {"type": "status", "metric": HOSTILE, "path": format!("/{HOSTILE}"), "success": HOSTILE, "failure": HOSTILE}}],
    });
    let session = sandbox.write("s.json", session(HOSTILE, &[(HOSTILE, HOSTILE), (HOSTILE, "other")]));
    let cores = sandbox.add([session, sandbox.write("c.json", contract.to_string())]);
    sandbox.run(["link", "add", &cores[1], "governs", &other]).expect(0);
    let serving = Serving::start(&sandbox);
    let prompt = runvault::digest::Digest::from_content(HOSTILE.as_bytes());
    let paths = [
        format!("/diff?run={one}&run={other}"),
        format!("/diff?run={other}&run={third}&all=true"),
        format!("/diff?run={third}&run={other}&run={one}"),
        format!("/prompt/{prompt}"),
        format!("/artifact/{}", cores[1]),
    ];
    for path in paths {
        let shown = page(&serving, &path);
        let body = main_of(shown.text());
        for part in
            ["<script", "<img", "<svg o", "onerror=alert(1)>", "\u{1b}", "\u{202e}", "\u{9b}", "\u{7f}"]
        {
            assert!(!body.contains(part), "{path} has {part:?}");
        }
        assert!(body.matches("&lt;script&gt;").count() > 1, "{path}: {body}");
    }
}

#[test]
fn prompts_and_comparisons_of_several_runs_are_files() {
    let sandbox = Sandbox::without_vault();
    let runs = [("same", "x"), ("same", "y"), ("other", "z")].map(|(first, last)| {
        record(&sandbox, &asked(&[("first?", first), ("last?", last), (last, "alone")]))
    });
    let files = export(&sandbox, &[&runs[0], &runs[1], &runs[2]]);
    assert_closed(&files);
    let text = |name: &str| std::str::from_utf8(&files[name]).unwrap_or_else(|_| panic!("{name}"));
    // All in one table, and the first with each of the others.
    assert!(text("index.html").contains("<a href=\"diff.html\">Differences</a>"), "{}", text("index.html"));
    assert!(text("diff.html").contains("<ins>other</ins>"), "{}", text("diff.html"));
    for name in ["diff-2.html", "diff-3.html"] {
        assert!(
            text("diff.html").contains(&format!("href=\"{name}\""))
                && text(name).contains("Where they diverge first")
        );
    }
    // A run is one answer, although a session and a run pack record it. Prompts with one answer only have no page.
    let heading = |page: &str| page.split("<h2>").nth(1).unwrap().split("</h2>").next().unwrap().to_owned();
    let prompts = pages(&files).filter(|(name, _)| name.starts_with("prompt-")).map(|(_, page)| page);
    let mut counts = Vec::new();
    for prompt in prompts {
        assert!(prompt.contains("href=\"run-pack-") && !prompt.contains("All artifacts"), "{prompt}");
        counts.push(heading(prompt));
    }
    counts.sort_unstable();
    // Texts, and requests as a whole: that of the second text is the same in two runs.
    let expected = [
        "2 answers, 2 different",
        "3 answers, 2 different",
        "3 answers, 2 different",
        "3 answers, 3 different",
    ];
    assert_eq!(counts, expected);
    let run = format!("run-pack-{}.html", &runs[0]["sha256:".len()..][..12]);
    assert!(text(&run).contains("href=\"prompt-"), "{}", text(&run));
    let serving = Serving::start(&sandbox);
    let shown = page(&serving, &format!("/artifact/{}", runs[0]));
    let address =
        values(shown.text(), "href").into_iter().find(|address| address.starts_with("/prompt/")).unwrap();
    assert!(page(&serving, address).text().contains("3 answers, 2 different"));
}

#[test]
fn answers_are_groups_of_which_the_most_frequent_is_first() {
    let sandbox = Sandbox::at("2026-11-21T12:00:00Z");
    let long = "long line\n".repeat(40);
    let answers = [("a-1", "rare"), ("a-2", long.as_str()), ("a-3", long.as_str())];
    let sessions = answers
        .map(|(name, answer)| sandbox.write(&format!("{name}.json"), session(name, &[("which?", answer)])));
    let cores = sandbox.add(sessions);
    let prompt = runvault::digest::Digest::from_content(b"which?");
    let serving = Serving::start(&sandbox);
    let page = page(&serving, &format!("/prompt/{prompt}"));
    let text = page.text();
    assert!(
        text.contains("3 answers, 2 different") && text.contains("The most frequent answer is first."),
        "{text}"
    );
    let groups: Vec<&str> = text.split("<article").skip(1).collect();
    assert_eq!(groups.len(), 2, "{text}");
    assert!(groups[0].contains("2 times</span>") && groups[0].contains("<details class=\"long\">"), "{text}");
    assert!(groups[1].contains("1 time</span>") && groups[1].contains("<pre>rare</pre>"), "{text}");
    assert!(groups[0].contains("<strong>m</strong> 2 times"), "{text}");
    // Each time is drawn, and leads to the answer.
    let drawing = text.split("<svg class=\"timeline\"").nth(1).unwrap().split("</svg>").next().unwrap();
    assert_eq!(drawing.matches("<rect").count(), 3, "{drawing}");
    for core in &cores {
        assert!(drawing.contains(&format!("href=\"/artifact/{core}#step-0\"")), "{drawing}");
    }
}

#[test]
fn a_contract_states_its_terms_before_the_audits_and_verdicts_lead_to_reasons() {
    let sandbox = Sandbox::at("2026-11-21T12:00:00Z");
    let effect = |evidence: Value| json!({"evidence": evidence});
    let contract = crate::audit::contract(
        &[
            effect(json!({"type": "status", "metric": "m", "success": ["set", 200]})),
            effect(json!({"type": "range", "path": "/n", "minimum": 1, "exclusiveMaximum": 5})),
            effect(json!({"type": "hash", "metric": "h"})),
        ],
        &[],
    );
    let contract = sandbox.add([sandbox.write("c.json", contract.to_string())]).remove(0);
    let mut run: Value = serde_json::from_str(&run_pack("run-1", &[])).unwrap();
    run["metadata"]["contract"] = contract.clone().into();
    let run = sandbox.add([sandbox.write("r.rpk", sealed(run))]).remove(0);
    let files = export(&sandbox, &[&contract]);
    assert_closed(&files);
    let serving = Serving::start(&sandbox);
    let governed = page(&serving, &format!("/artifact/{contract}"));
    let of_run = page(&serving, &format!("/artifact/{run}"));
    let text = governed.text();
    let places = ["id=\"terms\"", "id=\"audits\"", "id=\"content-of-artifact\"", "id=\"facts\""]
        .map(|place| text.find(place).unwrap_or_else(|| panic!("{place}: {text}")));
    assert!(places.is_sorted(), "{places:?}");
    for part in [
        "the status <code>m</code> is set or 200",
        "the range at <code>/n</code> is a number that is at least 1, below 5",
        "the hash <code>h</code> is the digest of known bytes",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    for page in [text, of_run.text()] {
        let ids = values(page, "id");
        let links: Vec<&str> =
            values(page, "href").into_iter().filter(|link| link.starts_with("#reason-")).collect();
        assert_eq!(links.len(), 3, "{page}");
        assert!(links.iter().all(|link| ids.contains(&&link[1..])), "{links:?} {ids:?}");
    }
}
