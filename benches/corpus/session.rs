//! Sessions: documents of the kind `model_io`.

use runvault::digest::Digest;
use serde::Serialize;

use super::clock::Clock;
use super::random::Random;
use super::text;

/// A session, as a recorder has it in memory.
#[derive(Clone, Serialize)]
pub struct Session {
    model_io_schema_version: &'static str,
    adapter_id: String,
    model_id: String,
    mode: &'static str,
    created_at_utc: String,
    interactions: Vec<Interaction>,
}

#[derive(Clone, Serialize)]
struct Interaction {
    i: usize,
    recorded_at_utc: String,
    prompt_hash: Digest,
    response_hash: Digest,
    response_content: String,
    latency_ms: usize,
}

impl Session {
    /// `interactions` of them, with responses of about `response_size` bytes.
    pub fn new(random: &mut Random, interactions: usize, response_size: usize) -> Self {
        let mut session = Self {
            model_io_schema_version: "1.0.0",
            adapter_id: format!("adapter-{}", random.below(7)),
            model_id: format!("model-{}", random.below(5)),
            mode: "record",
            created_at_utc: String::new(),
            interactions: (0..interactions).map(|i| Interaction::new(random, i, response_size)).collect(),
        };
        session.set_times(random);
        session
    }

    /// Records it again: a few responses, and sometimes what was asked, are others, and all times are.
    pub fn record_again(&mut self, random: &mut Random) {
        for _ in 0..random.between(1, 3) {
            let number = random.below(self.interactions.len());
            let interaction = &mut self.interactions[number];
            let mut other = Interaction::new(random, number, interaction.response_content.len());
            if random.below(3) > 0 {
                other.prompt_hash = interaction.prompt_hash;
            }
            *interaction = other;
        }
        self.set_times(random);
    }

    fn set_times(&mut self, random: &mut Random) {
        let mut clock = Clock::new(random);
        self.created_at_utc = clock.text();
        for interaction in &mut self.interactions {
            interaction.latency_ms = random.between(300, 9_000);
            clock.advance(interaction.latency_ms);
            interaction.recorded_at_utc = clock.text();
        }
    }

    /// The document.
    pub fn document(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a session is JSON")
    }
}

impl Interaction {
    fn new(random: &mut Random, i: usize, response_size: usize) -> Self {
        let size = random.between(response_size / 2, response_size * 3 / 2);
        let response_content = text::passage(random, size);
        Self {
            i,
            recorded_at_utc: String::new(),
            prompt_hash: Digest::from_content(text::prompt(random).as_bytes()),
            response_hash: Digest::from_content(response_content.as_bytes()),
            response_content,
            latency_ms: 0,
        }
    }
}
