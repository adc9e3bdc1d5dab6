//! From the workers to the consumer: results in order, and no more of them than there is room for.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How many bytes may be on their way between input and consumer.
pub(super) const BUDGET: u64 = 64 << 20;

/// So many results are worth waking the consumer for.
const GROUP: usize = 32;

/// The consumer gets what there is, however little, after so long; when there is nothing, it is told so.
pub(super) const IDLE: Duration = Duration::from_millis(20);

/// A result, and what its input weighs.
pub(super) struct Weighed<R> {
    pub(super) weight: u64,
    pub(super) result: R,
}

/// What is on its way from the workers to the consumer.
pub(super) struct Flow<R> {
    state: Mutex<State<R>>,
    /// Something was put that the consumer should look at.
    arrived: Condvar,
    /// Something was consumed.
    consumed: Condvar,
}

struct State<R> {
    /// The results that were not handed out yet, by their numbers; the first has the number `handed_out`.
    results: VecDeque<Option<Weighed<R>>>,
    /// How many results there are among them.
    present: usize,
    handed_out: u64,
    consumed: u64,
    /// The weight of all that is on its way.
    weight: u64,
    /// How many workers there are still, and how many of them wait for room.
    workers: usize,
    waiting: usize,
    /// Whether the consumer waits.
    asleep: bool,
    closed: bool,
}

impl<R> State<R> {
    fn has_next(&self) -> bool {
        self.results.front().is_some_and(Option::is_some)
    }

    /// Whether it is time for the consumer to act.
    fn is_due(&self) -> bool {
        let enough = self.present >= GROUP || self.waiting > 0;
        self.workers == 0 || enough && self.has_next()
    }
}

impl<R> Flow<R> {
    pub(super) fn new(workers: usize) -> Self {
        let state = State {
            results: VecDeque::new(),
            present: 0,
            handed_out: 0,
            consumed: 0,
            weight: 0,
            workers,
            waiting: 0,
            asleep: false,
            closed: false,
        };
        Self { state: Mutex::new(state), arrived: Condvar::new(), consumed: Condvar::new() }
    }

    /// Waits until there is room for `weight` more; false if nothing is wanted any more. There always is for the input
    /// that the consumer needs next: otherwise everybody could wait for each other.
    pub(super) fn take_room(&self, number: u64, weight: u64) -> bool {
        let mut state = self.lock();
        while !state.closed && state.consumed != number && state.weight + weight > BUDGET {
            state.waiting += 1;
            self.wake_consumer(&mut state);
            state = self.consumed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
        state.weight += weight;
        !state.closed
    }

    pub(super) fn put(&self, number: u64, result: Weighed<R>) {
        let mut state = self.lock();
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

    fn wake_consumer(&self, state: &mut State<R>) {
        if state.asleep && state.is_due() {
            state.asleep = false;
            self.arrived.notify_one();
        }
    }

    /// The next results: none of them if nothing came for a while, nothing if there will be no more.
    pub(super) fn next_group(&self) -> Option<Vec<Weighed<R>>> {
        let mut state = self.lock();
        if !state.is_due() {
            state.asleep = true;
            let woken = self.arrived.wait_timeout_while(state, IDLE, |state| !state.is_due());
            (state, _) = woken.unwrap_or_else(PoisonError::into_inner);
            state.asleep = false;
        }
        let ready = state.results.iter().take_while(|result| result.is_some()).count();
        let group: Vec<_> = state.results.drain(..ready).flatten().collect();
        state.present -= ready;
        state.handed_out += ready as u64;
        (ready > 0 || state.workers > 0).then_some(group)
    }

    pub(super) fn give_back(&self, count: u64, weight: u64) {
        let mut state = self.lock();
        state.consumed += count;
        state.weight -= weight;
        if state.waiting > 0 {
            self.consumed.notify_all();
        }
    }

    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.consumed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Signs a worker off, also if it panics: nobody may wait for its result then.
pub(super) struct Leaving<'f, R>(pub(super) &'f Flow<R>);

impl<R> Drop for Leaving<'_, R> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.close();
        }
        let mut state = self.0.lock();
        state.workers -= 1;
        self.0.wake_consumer(&mut state);
    }
}
