//! The bounded, ordered queue from the workers to the consumer.

use std::collections::{BTreeSet, VecDeque};
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

/// Maximum number of bytes in flight between input and consumer. With [`UNORDERED`], and the 16 MiB that a consumer collects
/// before it stores them, these are the 64 MiB of the documentation.
pub(super) const BUDGET: u64 = 44 << 20;

/// Inputs get room in their order, so that a large one is not let in on top of others that are consumed only after it.
/// Up to this number of bytes in flight, they do not wait for their turn: opening files takes different times.
pub(super) const UNORDERED: u64 = 4 << 20;

/// The number of results for which the consumer is woken.
const GROUP: usize = 32;

/// The number of results, available or being consumed, at which a worker is parked.
pub(super) const AHEAD: u64 = 512;

/// The time after which the consumer receives the available results, however few, or an idle event if there are none.
pub(super) const IDLE: Duration = Duration::from_millis(20);

/// A result with the weight of its input.
pub(super) struct WeightedResult<R> {
    pub(super) weight: u64,
    pub(super) result: R,
}

/// The results in flight from the workers to the consumer.
pub(super) struct ResultQueue<R> {
    state: Mutex<ResultQueueState<R>>,
    /// Signals that there are results for the consumer.
    arrived: Condvar,
    /// Signals that results were consumed.
    consumed: Condvar,
    /// Signals that the parked worker is needed.
    needed: Condvar,
}

struct ResultQueueState<R> {
    /// The results that have not been handed out, by number; the first has the number `handed_out`.
    results: VecDeque<Option<WeightedResult<R>>>,
    /// The number of available results among them.
    present: usize,
    handed_out: u64,
    consumed: u64,
    /// The total weight in flight.
    weight: u64,
    /// The first input without room, and later ones that got room before it.
    turn: u64,
    early: BTreeSet<u64>,
    /// The number of workers, and of those that wait for space.
    workers: usize,
    waiting: usize,
    /// Whether one of the workers is parked.
    has_parked: bool,
    /// Whether the consumer is waiting.
    asleep: bool,
    closed: bool,
}

impl<R> ResultQueueState<R> {
    fn has_next(&self) -> bool {
        self.results.front().is_some_and(Option::is_some)
    }

    /// Advances the turn to the first input without room.
    fn advance(&mut self) {
        while self.early.remove(&self.turn) {
            self.turn += 1;
        }
    }

    /// Returns whether `weight` fits, for an input whose turn it is or not.
    fn has_space(&self, weight: u64, is_in_turn: bool) -> bool {
        self.weight + weight <= if is_in_turn { BUDGET } else { UNORDERED }
    }

    /// Returns whether the consumer has enough to do for one worker to leave it a core.
    fn is_ahead(&self) -> bool {
        let unconsumed = self.present as u64 + self.handed_out - self.consumed;
        self.workers > 1 && !self.asleep && !self.closed && unconsumed >= AHEAD
    }

    /// Returns whether the consumer should be woken.
    fn is_due(&self) -> bool {
        let enough = self.present >= GROUP || self.waiting > 0;
        self.workers == 0 || enough && self.has_next()
    }
}

impl<R> Default for ResultQueue<R> {
    fn default() -> Self {
        let state = ResultQueueState {
            results: VecDeque::new(),
            present: 0,
            handed_out: 0,
            consumed: 0,
            weight: 0,
            turn: 0,
            early: BTreeSet::new(),
            workers: 0,
            waiting: 0,
            has_parked: false,
            asleep: false,
            closed: false,
        };
        Self {
            state: Mutex::new(state),
            arrived: Condvar::new(),
            consumed: Condvar::new(),
            needed: Condvar::new(),
        }
    }
}

impl<R> ResultQueue<R> {
    /// Registers a worker, until the guard is dropped.
    pub(super) fn enter(&self) -> WorkerGuard<'_, R> {
        self.state.lock().workers += 1;
        WorkerGuard(self)
    }

    /// Parks a worker, one at a time, while the consumer has enough to do. There are as many workers as cores: if all of
    /// them ran, the consumer would get a part of a core, and finish long after them, with the other cores idle.
    pub(super) fn park_if_ahead(&self) {
        let mut state = self.state.lock();
        if state.has_parked {
            return;
        }
        while state.is_ahead() {
            state.has_parked = true;
            self.needed.wait(&mut state);
        }
        state.has_parked = false;
    }

    /// Returns whether a worker is parked.
    #[cfg(test)]
    pub(super) fn has_parked(&self) -> bool {
        self.state.lock().has_parked
    }

    /// Wakes the parked worker if it is needed.
    fn unpark_if_needed(&self, state: &ResultQueueState<R>) {
        if state.has_parked && !state.is_ahead() {
            self.needed.notify_one();
        }
    }

    /// Waits until there is space for the input with this number, and returns false if the queue was closed. All inputs
    /// before the first without room are consumed without waiting for it, which prevents a deadlock.
    pub(super) fn take_room(&self, number: u64, weight: u64) -> bool {
        let state =
            self.wait(|state| state.consumed == number || state.has_space(weight, number == state.turn));
        let Some(mut state) = state else { return false };
        state.weight += weight;
        state.early.insert(number);
        state.advance();
        if state.waiting > 0 {
            self.consumed.notify_all();
        }
        true
    }

    /// Waits until there is space for `weight` more of an input that has room. It gets it in any case when it is the one
    /// that the consumer needs next, which prevents a deadlock.
    pub(super) fn take_more(&self, number: u64, weight: u64) {
        let state =
            self.wait(|state| state.consumed == number || state.has_space(weight, number < state.turn));
        if let Some(mut state) = state {
            state.weight += weight;
        }
    }

    /// Waits until there is space, and returns `None` if the queue was closed.
    fn wait(
        &self,
        has_space: impl Fn(&ResultQueueState<R>) -> bool,
    ) -> Option<MutexGuard<'_, ResultQueueState<R>>> {
        let mut state = self.state.lock();
        while !state.closed && !has_space(&state) {
            state.waiting += 1;
            self.wake_consumer(&mut state);
            self.consumed.wait(&mut state);
            state.waiting -= 1;
        }
        (!state.closed).then_some(state)
    }

    pub(super) fn put(&self, number: u64, result: WeightedResult<R>) {
        let mut state = self.state.lock();
        let place = usize::try_from(number - state.handed_out).unwrap_or(usize::MAX);
        while state.results.len() <= place {
            state.results.push_back(None);
        }
        if let Some(free) = state.results.get_mut(place) {
            *free = Some(result);
        }
        state.present += 1;
        self.wake_consumer(&mut state);
    }

    fn wake_consumer(&self, state: &mut ResultQueueState<R>) {
        if state.asleep && state.is_due() {
            state.asleep = false;
            self.arrived.notify_one();
        }
    }

    /// Returns the next results: an empty group if none arrived for a while, `None` at the end.
    pub(super) fn next_group(&self) -> Option<Vec<WeightedResult<R>>> {
        let mut state = self.state.lock();
        if !state.is_due() {
            state.asleep = true;
            self.unpark_if_needed(&state);
            self.arrived.wait_while_for(&mut state, |state| !state.is_due(), IDLE);
            state.asleep = false;
        }
        let ready = state.results.iter().take_while(|result| result.is_some()).count();
        let group: Vec<_> = state.results.drain(..ready).flatten().collect();
        state.present -= ready;
        state.handed_out += ready as u64;
        (ready > 0 || state.workers > 0).then_some(group)
    }

    pub(super) fn give_back(&self, count: u64, weight: u64) {
        let mut state = self.state.lock();
        state.consumed += count;
        state.weight -= weight;
        self.unpark_if_needed(&state);
        if state.waiting > 0 {
            self.consumed.notify_all();
        }
    }

    /// Tells the workers, which may be waiting, that no more results are consumed.
    fn close(&self) {
        self.state.lock().closed = true;
        self.consumed.notify_all();
        self.needed.notify_one();
    }

    /// Closes the queue when the guard is dropped, even if the consumer panics.
    pub(super) fn close_at_end(&self) -> CloseGuard<'_, R> {
        CloseGuard(self)
    }
}

/// A guard that closes the queue.
pub(super) struct CloseGuard<'f, R>(&'f ResultQueue<R>);

impl<R> Drop for CloseGuard<'_, R> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// A guard that deregisters a worker, even if it panics, so that its result is not awaited.
pub(super) struct WorkerGuard<'f, R>(&'f ResultQueue<R>);

impl<R> Drop for WorkerGuard<'_, R> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.close();
        }
        let mut state = self.0.state.lock();
        state.workers -= 1;
        self.0.unpark_if_needed(&state);
        self.0.wake_consumer(&mut state);
    }
}
