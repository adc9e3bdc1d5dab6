//! Text as agents, models and tools leave it behind: prose, logs, code, JSON. ASCII only, so that every canonical form
//! writes it alike.

use std::fmt::Write;

use super::random::Random;
use super::words::{
    ADJECTIVES, ADVERBS, CODE_LINES, IDENTIFIERS, JSON_MEMBERS, LOG_LINES, MODULES, NOUNS, PEOPLE, SENTENCES,
    VERBS,
};

/// About `size` bytes of one sort of text; at least one sentence or line, and never much more.
pub fn passage(random: &mut Random, size: usize) -> String {
    let mut text = String::with_capacity(size + 128);
    match random.below(10) {
        0..=4 => prose(random, size, &mut text),
        5..=6 => lines(random, size, LOG_LINES, &mut text),
        7..=8 => {
            text.push_str("```\n");
            lines(random, size, CODE_LINES, &mut text);
            text.push_str("```");
        }
        _ => {
            text.push('{');
            lines(random, size, JSON_MEMBERS, &mut text);
            text.push_str("\"ok\": true}");
        }
    }
    text
}

/// What is asked of a model. Only its digest is recorded, so it is short.
pub fn prompt(random: &mut Random) -> String {
    let mut text = String::with_capacity(160);
    prose(random, 80, &mut text);
    let _ = write!(text, " ({:x})", random.next());
    text
}

fn prose(random: &mut Random, size: usize, text: &mut String) {
    loop {
        let template = random.usual(SENTENCES);
        fill(random, template, text);
        if text.len() >= size {
            return;
        }
        text.push_str(if random.below(6) == 0 { "\n\n" } else { " " });
    }
}

fn lines(random: &mut Random, size: usize, templates: &[&'static str], text: &mut String) {
    loop {
        let template = random.any(templates);
        fill(random, template, text);
        if text.len() >= size {
            return;
        }
    }
}

/// Writes `template` with a word in place of each letter in braces.
fn fill(random: &mut Random, template: &str, text: &mut String) {
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        if let [slot, b'}', ..] = after.as_bytes() {
            word(random, *slot, text);
            rest = &after[2..];
        } else {
            // A brace of the text itself.
            text.push('{');
            rest = after;
        }
    }
    text.push_str(rest);
}

fn word(random: &mut Random, slot: u8, text: &mut String) {
    let number = match slot {
        b'n' => return text.push_str(random.usual(NOUNS)),
        b'v' => return text.push_str(random.usual(VERBS)),
        b'a' => return text.push_str(random.usual(ADJECTIVES)),
        b'r' => return text.push_str(random.usual(ADVERBS)),
        b'p' => return text.push_str(random.usual(PEOPLE)),
        b'm' => return text.push_str(random.usual(MODULES)),
        b'i' => return text.push_str(random.usual(IDENTIFIERS)),
        // Small numbers are the usual ones.
        b'd' => random.below(4_096) >> random.below(11),
        b'c' => random.between(1, 9),
        b'e' => random.between(10, 59),
        _ => random.between(100_000, 999_999),
    };
    // Writing to a string cannot fail.
    let _ = write!(text, "{number}");
}
