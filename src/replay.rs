//! Playing recordings back: who asks what was asked then gets what was answered then.
//!
//! A [`Player`] stands where a model's client stood. It knows the responses of one artifact and nothing of its format.

mod miss;

use std::collections::HashMap;
use std::num::NonZeroUsize;

use crate::artifact::{Exchange, Kind, Member, Playback, Responder};
use crate::canonical::reader::{Limits, ReadError};
use crate::digest::Digest;
use crate::source::{self, ExamineOptions};
use crate::verify::Report;

pub use miss::Miss;

/// In which order a recording may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In any: a response is found by its prompt, as often as it is asked for.
    Lookup,
    /// In the order of the recording, each response once.
    Sequential,
}

/// What is asked of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The SHA-256 of the prompt. Lookups need it; in a sequence it is held against the recording.
    pub prompt: Option<Digest>,
    /// Which of the recordings of the prompt, from 1; of a lookup only. The first, if not given.
    pub occurrence: Option<NonZeroUsize>,
    /// Whose response is wanted; in a sequence, whoever is next if not given.
    pub responder: Option<Responder>,
    /// The name of the tool; in a sequence it is held against the recording.
    pub tool: Option<String>,
}

impl Request {
    /// The request for the response to a prompt with this digest.
    #[must_use]
    pub fn prompt(digest: Digest) -> Self {
        Self { prompt: Some(digest), ..Self::default() }
    }
}

/// A response that was played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Played<'p> {
    /// The response and its place.
    pub exchange: &'p Exchange,
    /// Which of the recordings of its prompt this is, from 1; 1 in a sequence.
    pub occurrence: usize,
    /// How many there are; 1 in a sequence.
    pub occurrences: usize,
}

fn first_of(report: &Report) -> String {
    let first = report.violations().first();
    first.map_or(String::new(), |first| format!("{}: {} (rule {})", first.path, first.message, first.rule_id))
}

/// Why a document cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum NotPlayable {
    /// It is no document of a known kind, or breaks the rules of its kind.
    #[error("the document was rejected: {}", first_of(.0))]
    Rejected(Report),
    /// Its kind records no responses.
    #[error("a {0} records no responses")]
    RecordsNothing(&'static str),
    /// It is a kind of recording and yet cannot be read.
    #[error(transparent)]
    Unreadable(#[from] ReadError),
}

/// Plays a recording back, in place of the model that was recorded.
///
/// ```
/// use runvault::replay::{Miss, Player};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut player = Player::new(std::fs::read("examples/session.json")?)?;
/// assert_eq!(player.respond("Which label fits ticket 4711: bug, question or billing?")?, "bug");
/// assert!(matches!(player.respond("What else?"), Err(Miss::NotRecorded { .. })));
/// assert_eq!(player.unused().count(), 2);
/// # Ok(())
/// # }
/// ```
///
/// [`Vault::player`](crate::Vault::player) makes one of an artifact in a vault.
#[derive(Debug)]
pub struct Player {
    recorded: Vec<Recorded>,
    mode: Mode,
    unit: &'static str,
    /// Where each prompt was asked, for lookups.
    by_prompt: HashMap<Digest, Vec<usize>>,
    /// Where to go on in a sequence.
    next: Next,
    /// How many responses a sequence has given.
    calls: usize,
}

#[derive(Debug)]
struct Recorded {
    exchange: Exchange,
    is_used: bool,
}

/// No response before these is left for anybody, of a model, of a tool.
#[derive(Debug, Default)]
struct Next {
    any: usize,
    model: usize,
    tool: usize,
}

impl Player {
    /// Verifies a document and makes it ready: a session for lookups, a run for its sequence.
    ///
    /// # Errors
    /// [`NotPlayable`], with the report if a rule is broken.
    pub fn new(document: Vec<u8>) -> Result<Self, NotPlayable> {
        let admitted = source::examine_document(document, "", &ExamineOptions::default())
            .map_err(|rejection| NotPlayable::Rejected(rejection.report))?;
        let document = admitted.members().first().map(Member::bytes);
        Self::of(admitted.kind(), document.unwrap_or_default(), &Limits::most())
    }

    /// Makes an admitted `document` of `kind` ready.
    pub(crate) fn of(kind: Kind, document: &[u8], limits: &Limits) -> Result<Self, NotPlayable> {
        let (mode, unit) = match kind.playback() {
            Some(Playback::ByPrompt) => (Mode::Lookup, "interaction"),
            Some(Playback::InOrder) => (Mode::Sequential, "step"),
            None => return Err(NotPlayable::RecordsNothing(kind.name())),
        };
        let exchanges = kind.exchanges(document, limits)?.into_iter();
        let recorded = exchanges.map(|exchange| Recorded { exchange, is_used: false }).collect();
        let (by_prompt, next) = (HashMap::new(), Next::default());
        Ok(Self { recorded, mode, unit, by_prompt, next, calls: 0 }.in_mode(mode))
    }

    /// Plays in this mode from now on.
    #[must_use]
    pub fn in_mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        if mode == Mode::Lookup && self.by_prompt.is_empty() {
            for (at, Recorded { exchange, .. }) in self.recorded.iter().enumerate() {
                for prompt in &exchange.prompts {
                    self.by_prompt.entry(*prompt).or_default().push(at);
                }
            }
        }
        self
    }

    /// Lets a sequence begin with the response of this number, from 0.
    #[must_use]
    pub fn from_call(mut self, call: usize) -> Self {
        self.next = Next { any: call, model: call, tool: call };
        self.calls = call;
        self
    }

    /// The mode in which it plays.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// What the recording counts: `interaction` or `step`.
    #[must_use]
    pub fn unit(&self) -> &'static str {
        self.unit
    }

    /// Everything that was recorded, in order.
    #[must_use]
    pub fn exchanges(&self) -> impl ExactSizeIterator<Item = &Exchange> {
        self.recorded.iter().map(|recorded| &recorded.exchange)
    }

    /// What nobody has asked for yet, in order.
    pub fn unused(&self) -> impl Iterator<Item = &Exchange> {
        self.recorded.iter().filter(|recorded| !recorded.is_used).map(|recorded| &recorded.exchange)
    }

    /// Where a prompt was recorded, in order, for lookups.
    pub fn recorded(&self, prompt: Digest) -> impl Iterator<Item = &Exchange> {
        let places = self.by_prompt.get(&prompt).map(Vec::as_slice).unwrap_or_default();
        places.iter().filter_map(|at| self.recorded.get(*at)).map(|recorded| &recorded.exchange)
    }

    /// The recorded response to `prompt`.
    ///
    /// # Errors
    /// [`Miss`] if there is none.
    pub fn respond(&mut self, prompt: &str) -> Result<&str, Miss> {
        let request = Request::prompt(Digest::of(prompt.as_bytes()));
        self.play(&request).map(|played| played.exchange.response.as_str())
    }

    /// The recorded response to a request.
    ///
    /// # Errors
    /// [`Miss`] if there is none. A sequence then stays where it is.
    pub fn play(&mut self, request: &Request) -> Result<Played<'_>, Miss> {
        match self.mode {
            Mode::Lookup => self.look_up(request),
            Mode::Sequential => self.go_on(request),
        }
    }

    fn look_up(&mut self, request: &Request) -> Result<Played<'_>, Miss> {
        let prompt = request.prompt.ok_or(Miss::NoPrompt)?;
        let places = self.by_prompt.get(&prompt).map(Vec::as_slice).unwrap_or_default();
        let (occurrence, occurrences) = (request.occurrence.map_or(1, NonZeroUsize::get), places.len());
        let at = match places.get(occurrence - 1) {
            Some(at) => *at,
            None if places.is_empty() => return Err(Miss::NotRecorded { prompt }),
            None => return Err(Miss::NoOccurrence { prompt, wanted: occurrence, recorded: occurrences }),
        };
        // Who does not say which recording is meant asks for all of them, and gets the first.
        let asked = if request.occurrence.is_some() { std::slice::from_ref(&at) } else { places };
        for at in asked {
            if let Some(recorded) = self.recorded.get_mut(*at) {
                recorded.is_used = true;
            }
        }
        let exchange = &self.recorded.get(at).ok_or(Miss::NotRecorded { prompt })?.exchange;
        Ok(Played { exchange, occurrence, occurrences })
    }

    fn go_on(&mut self, request: &Request) -> Result<Played<'_>, Miss> {
        let implied = match (&request.prompt, &request.tool) {
            (Some(_), _) => Some(Responder::Model),
            (None, Some(_)) => Some(Responder::Tool),
            (None, None) => None,
        };
        let (call, unit) = (self.calls, self.unit);
        let responder = request.responder.or(implied);
        let recorded =
            self.next.of(responder, &mut self.recorded).ok_or(Miss::Exhausted { call, responder })?;
        let (exchange, index) = (&recorded.exchange, recorded.exchange.index);
        if let Some(asked) = request.prompt
            && !exchange.prompts.is_empty()
            && !exchange.prompts.contains(&asked)
        {
            return Err(Miss::OutOfOrder { call, unit, index, expected: exchange.prompts.clone(), asked });
        }
        if let (Some(asked), Some(expected)) = (&request.tool, &exchange.tool)
            && asked != expected
        {
            let (expected, asked) = (expected.clone(), asked.clone());
            return Err(Miss::OtherTool { call, unit, index, expected, asked });
        }
        recorded.is_used = true;
        self.calls += 1;
        Ok(Played { exchange: &recorded.exchange, occurrence: 1, occurrences: 1 })
    }
}

impl Next {
    /// The first response that is left of `responder`, or of anybody.
    fn of<'r>(
        &mut self,
        responder: Option<Responder>,
        recorded: &'r mut [Recorded],
    ) -> Option<&'r mut Recorded> {
        let next = match responder {
            None => &mut self.any,
            Some(Responder::Model) => &mut self.model,
            Some(Responder::Tool) => &mut self.tool,
        };
        let wanted = |exchange: &Exchange| responder.is_none_or(|responder| responder == exchange.responder);
        let left = recorded.get_mut(*next..)?;
        let (skipped, found) = left
            .iter_mut()
            .enumerate()
            .find(|(_, recorded)| !recorded.is_used && wanted(&recorded.exchange))?;
        *next += skipped;
        Some(found)
    }
}
