//! Replay of recordings: a repeated request gets its recorded response.
//!
//! A [`Player`] replaces a model client, or a tool. It has the responses of one artifact and does not depend on the
//! artifact's format. A request is always compared with the recording: if there is nothing to compare it with, there is
//! no response.

mod lookup;
mod request;

use std::collections::HashMap;

use crate::artifact::{Arguments, Exchange, Kind, Member, Playback, Responder};
use crate::digest::Digest;
use crate::intake::{self, ExamineOptions};
use crate::json::reader::ReadError;
use crate::validation::Report;

pub use lookup::{
    RecordedResponse, ReplayAnswer, ReplayError, ReplayRequest, ResponsesAnswer, ResponsesRequest,
};
pub use request::{
    Occurrence, PlayedResponse, PlayerRequest, Repeat, ReplayMiss, ReplayMode, arguments_digest,
};

/// The reason that a document cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum PlayerError {
    /// It is not a valid document of a known kind.
    #[error("the document was rejected: {}", .0.first())]
    Rejected(Report),
    /// Its kind records no responses.
    #[error("artifacts of kind {0} record no responses")]
    RecordsNothing(&'static str),
    /// It is a recording that cannot be read.
    #[error(transparent)]
    Unreadable(#[from] ReadError),
}

/// A player of a recording, in place of the recorded model.
///
/// ```
/// use runvault::vault::replay::{Player, ReplayMiss};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut player = Player::new(std::fs::read("examples/session.json")?)?;
/// assert_eq!(player.respond("Which label fits ticket 4711: bug, question or billing?")?, "bug");
/// assert!(matches!(player.respond("What else?"), Err(ReplayMiss::NotRecorded { .. })));
/// assert_eq!(player.unused().count(), 2);
/// # Ok(())
/// # }
/// ```
///
/// [`Vault::player`](crate::Vault::player) creates one for an artifact in a vault.
#[derive(Debug)]
pub struct Player {
    recorded: Vec<RecordedExchange>,
    mode: ReplayMode,
    repeat: Repeat,
    unit: &'static str,
    playback: Playback,
    /// The index of the prompts and calls, for lookups.
    index: ReplayIndex,
    /// The next responses of a sequence.
    next: ReplayCursor,
    /// Number of responses played, including those skipped at the start of a sequence.
    calls: usize,
}

#[derive(Debug)]
struct RecordedExchange {
    exchange: Exchange,
    is_used: bool,
}

/// Lower bounds of the next unused response: of any, of a model's, of a tool's.
#[derive(Debug, Default)]
struct ReplayCursor {
    any: usize,
    model: usize,
    tool: usize,
}

impl Player {
    /// Verifies a document and creates a player of it for lookups.
    ///
    /// # Errors
    /// Returns [`PlayerError`], with the report if a rule is violated.
    pub fn new(document: Vec<u8>) -> Result<Self, PlayerError> {
        let admitted = intake::examine_document(document, "", &ExamineOptions::default())
            .map_err(|rejection| PlayerError::Rejected(rejection.report))?;
        let document = admitted.members().first().map(Member::bytes);
        Self::for_admitted(admitted.kind(), document.unwrap_or_default())
    }

    /// Creates a player of an admitted `document` of `kind` for lookups.
    pub(crate) fn for_admitted(kind: Kind, document: &[u8]) -> Result<Self, PlayerError> {
        let playback = kind.info().playback.ok_or(PlayerError::RecordsNothing(kind.name()))?;
        let unit = match playback {
            Playback::ByPrompt => "interaction",
            Playback::InOrder => "step",
        };
        let exchanges = kind.exchanges(document)?;
        let index = ReplayIndex::new(exchanges.iter());
        let recorded =
            exchanges.into_iter().map(|exchange| RecordedExchange { exchange, is_used: false }).collect();
        let (mode, repeat, next) = (ReplayMode::Lookup, Repeat::Never, ReplayCursor::default());
        Ok(Self { recorded, mode, repeat, unit, playback, index, next, calls: 0 })
    }

    /// Returns the player with this mode.
    #[must_use]
    pub fn in_mode(self, mode: ReplayMode) -> Self {
        Self { mode, ..self }
    }

    /// Returns the player with this policy for requests that are repeated more often than they were recorded.
    #[must_use]
    pub fn repeating(self, repeat: Repeat) -> Self {
        Self { repeat, ..self }
    }

    /// Starts a sequence at the response with this number, from 0.
    #[must_use]
    pub fn from_call(mut self, call: usize) -> Self {
        self.next = ReplayCursor { any: call, model: call, tool: call };
        self.calls = call;
        self
    }

    /// Returns the mode.
    #[must_use]
    pub fn mode(&self) -> ReplayMode {
        self.mode
    }

    /// Returns the unit of the recording: `interaction` or `step`.
    #[must_use]
    pub fn unit(&self) -> &'static str {
        self.unit
    }

    /// Returns all recorded exchanges, in order.
    #[must_use]
    pub fn exchanges(&self) -> impl ExactSizeIterator<Item = &Exchange> {
        self.recorded.iter().map(|recorded| &recorded.exchange)
    }

    /// Returns the exchanges that were not played yet, in order. Of a request that was recorded several times, each
    /// exchange counts separately.
    pub fn unused(&self) -> impl Iterator<Item = &Exchange> {
        self.recorded.iter().filter(|recorded| !recorded.is_used).map(|recorded| &recorded.exchange)
    }

    /// Returns the exchanges of a prompt in order, for lookups.
    pub fn recorded(&self, prompt: Digest) -> impl Iterator<Item = &Exchange> {
        let places = self.index.get(&ReplayLookupKey::Prompt(prompt));
        places.iter().filter_map(|at| self.recorded.get(*at)).map(|recorded| &recorded.exchange)
    }

    /// Returns the recorded response to `prompt`. The n-th request for a prompt gets the response of its n-th
    /// recording.
    ///
    /// # Errors
    /// Returns a [`ReplayMiss`] if there is none, or an error was recorded.
    pub fn respond(&mut self, prompt: &str) -> Result<&str, ReplayMiss> {
        let request = PlayerRequest::prompt(Digest::from_content(prompt.as_bytes()));
        self.play(&request).map(|played| played.exchange.response.as_str())
    }

    /// Returns the recorded response to a request.
    ///
    /// # Errors
    /// Returns a [`ReplayMiss`] if there is none; a sequence then does not advance. Returns
    /// [`ReplayMiss::RecordedError`] if an error was recorded: returning it counts as playing it.
    pub fn play(&mut self, request: &PlayerRequest) -> Result<PlayedResponse<'_>, ReplayMiss> {
        let (at, occurrence) = match self.mode {
            ReplayMode::Lookup => self.look_up(request)?,
            ReplayMode::Sequential => self.go_on(request)?,
        };
        let exhausted = ReplayMiss::Exhausted { call: self.calls, responder: request.responder };
        let RecordedExchange { exchange, is_used } = self.recorded.get_mut(at).ok_or(exhausted)?;
        *is_used = true;
        self.calls += 1;
        if exchange.is_error {
            return Err(ReplayMiss::RecordedError { unit: self.unit, exchange: Box::new(exchange.clone()) });
        }
        Ok(PlayedResponse { exchange, occurrence })
    }

    fn look_up(&mut self, request: &PlayerRequest) -> Result<(usize, Option<Occurrence>), ReplayMiss> {
        let Some(key) = requested_key(request)? else {
            return match self.playback {
                Playback::ByPrompt => Err(ReplayMiss::NoPrompt),
                Playback::InOrder => self.first_left(request.responder).map(|at| (at, None)),
            };
        };
        let Some(places) = self.index.get_mut(&key) else {
            return Err(not_recorded(key, &self.index));
        };
        let of = places.at.len();
        let is_used = |at: usize| self.recorded.get(at).is_some_and(|recorded| recorded.is_used);
        let number = match request.occurrence {
            Some(number) => number.get(),
            None => match (places.first_left(is_used), self.repeat) {
                (Some(first), _) => first + 1,
                (None, Repeat::Last) => of,
                (None, Repeat::Never) => of + 1,
            },
        };
        match places.at.get(number - 1) {
            Some(at) => Ok((*at, Some(Occurrence { number, of }))),
            None => Err(no_occurrence(key, number, of)),
        }
    }

    fn go_on(&mut self, request: &PlayerRequest) -> Result<(usize, Option<Occurrence>), ReplayMiss> {
        let key = requested_key(request)?;
        let implied = key.as_ref().map(|key| match key {
            ReplayLookupKey::Prompt(_) => Responder::Model,
            ReplayLookupKey::Call { .. } => Responder::Tool,
        });
        let at = self.first_left(request.responder.or(implied))?;
        if let (Some(key), Some(recorded)) = (key, self.recorded.get(at)) {
            self.compare(key, &recorded.exchange)?;
        }
        Ok((at, None))
    }

    /// Compares `requested` with the request of `exchange`.
    fn compare(&self, requested: ReplayLookupKey, exchange: &Exchange) -> Result<(), ReplayMiss> {
        let (call, unit, index) = (self.calls, self.unit, exchange.index);
        match requested {
            ReplayLookupKey::Prompt(requested) if exchange.prompts.contains(&requested) => Ok(()),
            ReplayLookupKey::Prompt(requested) => Err(ReplayMiss::OutOfOrder {
                call,
                unit,
                index,
                expected: exchange.prompts.clone(),
                requested,
            }),
            ReplayLookupKey::Call { tool: requested, .. } if requested != exchange.tool => {
                Err(ReplayMiss::OtherTool { call, unit, index, expected: exchange.tool.clone(), requested })
            }
            ReplayLookupKey::Call { arguments: requested, .. } => {
                let expected = exchange.arguments.as_ref().map(Arguments::digest);
                let is_same = expected == Some(requested);
                if is_same {
                    Ok(())
                } else {
                    Err(ReplayMiss::OtherArguments { call, unit, index, expected, requested })
                }
            }
        }
    }

    /// Returns the first unused exchange of `responder`, or of any responder.
    fn first_left(&mut self, responder: Option<Responder>) -> Result<usize, ReplayMiss> {
        let left = self.next.take(responder, &self.recorded);
        left.ok_or(ReplayMiss::Exhausted { call: self.calls, responder })
    }
}

/// Returns what a request asks for; `None` if it asks for the next response.
fn requested_key(request: &PlayerRequest) -> Result<Option<ReplayLookupKey>, ReplayMiss> {
    Ok(match (request.prompt, &request.tool, request.arguments) {
        (Some(prompt), ..) => Some(ReplayLookupKey::Prompt(prompt)),
        (None, tool, Some(arguments)) => Some(ReplayLookupKey::Call { tool: tool.clone(), arguments }),
        (None, Some(_), None) => return Err(ReplayMiss::NoArguments),
        (None, None, None) => None,
    })
}

fn not_recorded(key: ReplayLookupKey, index: &ReplayIndex) -> ReplayMiss {
    match key {
        ReplayLookupKey::Prompt(prompt) => ReplayMiss::NotRecorded { prompt },
        ReplayLookupKey::Call { tool, arguments } => {
            let calls = index.calls_of(tool.as_deref());
            ReplayMiss::CallNotRecorded { tool, arguments, calls }
        }
    }
}

fn no_occurrence(key: ReplayLookupKey, occurrence: usize, recorded: usize) -> ReplayMiss {
    match key {
        ReplayLookupKey::Prompt(prompt) => ReplayMiss::NoOccurrence { prompt, occurrence, recorded },
        ReplayLookupKey::Call { tool, arguments } => {
            ReplayMiss::NoCallOccurrence { tool, arguments, occurrence, recorded }
        }
    }
}

impl ReplayCursor {
    /// Returns the first unused exchange of `responder`, or of any responder.
    fn take(&mut self, responder: Option<Responder>, recorded: &[RecordedExchange]) -> Option<usize> {
        let next = match responder {
            None => &mut self.any,
            Some(Responder::Model) => &mut self.model,
            Some(Responder::Tool) => &mut self.tool,
        };
        let is_of_responder =
            |exchange: &Exchange| responder.is_none_or(|responder| responder == exchange.responder);
        let is_left = |recorded: &RecordedExchange| !recorded.is_used && is_of_responder(&recorded.exchange);
        *next += recorded.get(*next..)?.iter().position(is_left)?;
        Some(*next)
    }
}

/// The key of a lookup.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum ReplayLookupKey {
    Prompt(Digest),
    Call { tool: Option<String>, arguments: Digest },
}

/// The recorded exchanges of a request, in order.
#[derive(Debug, Default)]
struct RecordedOccurrences {
    at: Vec<usize>,
    /// All exchanges before this one are used.
    next: usize,
}

impl RecordedOccurrences {
    /// Returns the number of the first unused exchange, from 0.
    fn first_left(&mut self, is_used: impl Fn(usize) -> bool) -> Option<usize> {
        let used = self.at.get(self.next..)?.iter().take_while(|at| is_used(**at)).count();
        self.next += used;
        (self.next < self.at.len()).then_some(self.next)
    }
}

/// The index of all recorded requests.
#[derive(Debug, Default)]
struct ReplayIndex {
    occurrences: HashMap<ReplayLookupKey, RecordedOccurrences>,
    /// Number of recorded calls by tool.
    calls: HashMap<Option<String>, usize>,
}

impl ReplayIndex {
    /// Builds the index. A request can contain several texts. It is indexed by the last one; other texts, such as
    /// instructions or earlier messages, are indexed only if no other request has them as its last.
    fn new<'e>(exchanges: impl Iterator<Item = &'e Exchange> + Clone) -> Self {
        let mut index = Self::default();
        for (at, exchange) in exchanges.clone().enumerate() {
            if let Some(last) = exchange.prompts.last() {
                index.add(ReplayLookupKey::Prompt(*last), at);
            }
            if exchange.responder == Responder::Tool {
                *index.calls.entry(exchange.tool.clone()).or_default() += 1;
            }
            if let Some(arguments) = &exchange.arguments {
                let (tool, arguments) = (exchange.tool.clone(), arguments.digest());
                index.add(ReplayLookupKey::Call { tool, arguments }, at);
            }
        }
        let mut carried: HashMap<ReplayLookupKey, RecordedOccurrences> = HashMap::new();
        for (at, exchange) in exchanges.enumerate() {
            let others = exchange.prompts.split_last().map_or(&[][..], |(_, others)| others);
            for prompt in others.iter().map(|prompt| ReplayLookupKey::Prompt(*prompt)) {
                if !index.occurrences.contains_key(&prompt) {
                    carried.entry(prompt).or_default().at.push(at);
                }
            }
        }
        index.occurrences.extend(carried);
        index
    }

    fn add(&mut self, key: ReplayLookupKey, at: usize) {
        self.occurrences.entry(key).or_default().at.push(at);
    }

    fn get(&self, key: &ReplayLookupKey) -> &[usize] {
        self.occurrences.get(key).map(|places| places.at.as_slice()).unwrap_or_default()
    }

    fn get_mut(&mut self, key: &ReplayLookupKey) -> Option<&mut RecordedOccurrences> {
        self.occurrences.get_mut(key)
    }

    /// Returns the number of recorded calls of a tool, with any arguments.
    fn calls_of(&self, tool: Option<&str>) -> usize {
        self.calls.get(&tool.map(str::to_owned)).copied().unwrap_or_default()
    }
}
