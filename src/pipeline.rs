//! Work on many things at once whose results are wanted in order.
//!
//! Workers take inputs themselves, one at a time, so that a large one keeps nobody waiting. Results are collected, and the
//! consumer is woken for a group of them: waking a thread costs as much as examining a small document.

use std::collections::VecDeque;
use std::num::NonZero;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How many bytes may be on their way between input and consumer.
const BUDGET: u64 = 64 << 20;

/// What anything costs beside its bytes.
const OVERHEAD: u64 = 4 << 10;

/// So many results are worth waking the consumer for.
const GROUP: usize = 32;

/// So many bytes are worth telling the workers that there is room again.
const GROUP_BYTES: u64 = 1 << 20;

/// The consumer gets what there is, however little, after so long; when there is nothing, it is told so.
const IDLE: Duration = Duration::from_millis(20);

/// What the consumer gets.
pub(crate) enum Event<R> {
    /// The result of the next input.
    Result(R),
    /// Nothing came for a while: a good time to finish what is at hand.
    Idle,
}

/// Opens every input and runs `work` on it, on all cores, and hands the results to `consume` in the order of the inputs.
/// `open` tells how many bytes the work will take. At any time about 64 MiB and, if that is larger, one input beside them
/// are on their way.
///
/// # Errors
/// The first error of `consume`; what is on its way then is dropped.
pub(crate) fn in_order<T: Send, O, R: Send, E>(
    inputs: impl Iterator<Item = T> + Send,
    open: impl Fn(T) -> (O, u64) + Sync,
    work: impl Fn(O) -> R + Sync,
    mut consume: impl FnMut(Event<R>) -> Result<(), E>,
) -> Result<(), E> {
    let workers = thread::available_parallelism().map_or(2, NonZero::get);
    let inputs = Mutex::new((0..).zip(inputs).fuse());
    let flow = Flow::new(workers);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                let _leaving = Leaving(&flow);
                while let Some((number, input)) = next(&inputs) {
                    let (opened, size) = open(input);
                    let weight = size.saturating_add(OVERHEAD).min(BUDGET);
                    if !flow.take_room(number, weight) {
                        return;
                    }
                    flow.put(number, Weighed { weight, result: work(opened) });
                }
            });
        }
        let outcome = collect(&flow, &mut consume);
        // Whoever still works must not wait for a consumer that is gone.
        flow.close();
        outcome
    })
}

fn next<T>(inputs: &Mutex<impl Iterator<Item = T>>) -> Option<T> {
    inputs.lock().unwrap_or_else(PoisonError::into_inner).next()
}

fn collect<R, E>(flow: &Flow<R>, consume: &mut impl FnMut(Event<R>) -> Result<(), E>) -> Result<(), E> {
    loop {
        let group = match flow.next_group() {
            Some(group) if group.is_empty() => {
                consume(Event::Idle)?;
                continue;
            }
            Some(group) => group,
            None => return Ok(()),
        };
        let (mut count, mut weight) = (0, 0);
        for next in group {
            consume(Event::Result(next.result))?;
            count += 1;
            weight += next.weight;
            if weight >= GROUP_BYTES {
                flow.give_back(count, weight);
                (count, weight) = (0, 0);
            }
        }
        flow.give_back(count, weight);
    }
}

struct Weighed<R> {
    weight: u64,
    result: R,
}

/// What is on its way from the workers to the consumer.
struct Flow<R> {
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
    fn new(workers: usize) -> Self {
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
    fn take_room(&self, number: u64, weight: u64) -> bool {
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

    fn put(&self, number: u64, result: Weighed<R>) {
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
    fn next_group(&self) -> Option<Vec<Weighed<R>>> {
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

    fn give_back(&self, count: u64, weight: u64) {
        let mut state = self.lock();
        state.consumed += count;
        state.weight -= weight;
        if state.waiting > 0 {
            self.consumed.notify_all();
        }
    }

    fn close(&self) {
        self.lock().closed = true;
        self.consumed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Signs a worker off, also if it panics: nobody may wait for its result then.
struct Leaving<'f, R>(&'f Flow<R>);

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_whatever_they_cost() {
        let mut seen = Vec::new();
        let open = |number: u64| (number, if number.is_multiple_of(50) { u64::MAX } else { number << 16 });
        let work = |number: u64| {
            thread::sleep(Duration::from_micros(number * 7919 % 300));
            number
        };
        let done: Result<(), ()> = in_order(0..500, open, work, |event| {
            if let Event::Result(number) = event {
                seen.push(number);
            }
            Ok(())
        });
        assert_eq!(done, Ok(()));
        assert!(seen.into_iter().eq(0..500));
    }

    #[test]
    fn an_error_of_the_consumer_ends_it() {
        let outcome = in_order(
            0..,
            |number: u64| (number, BUDGET / 2),
            |number| number,
            |event| match event {
                Event::Result(20) => Err("enough"),
                _ => Ok(()),
            },
        );
        assert_eq!(outcome, Err("enough"));
    }

    #[test]
    fn the_consumer_is_told_when_nothing_comes() {
        let mut idle = 0;
        let slow = |_| thread::sleep(IDLE * 3);
        let done: Result<(), ()> = in_order(
            0..1,
            |number: u8| (number, 0),
            slow,
            |event| {
                idle += usize::from(matches!(event, Event::Idle));
                Ok(())
            },
        );
        assert_eq!(done, Ok(()));
        assert!(idle > 0);
    }

    #[test]
    fn what_is_there_is_handed_over_before_more_comes() {
        let (sender, inputs) = std::sync::mpsc::channel();
        sender.send(0).unwrap();
        let mut sender = Some(sender);
        let mut seen = 0;
        let done: Result<(), ()> = in_order(
            inputs.into_iter(),
            |number: u32| (number, 0),
            |number| number,
            |event| {
                if let Event::Result(number) = event {
                    seen += 1;
                    // The next input comes only when this result has arrived.
                    sender = sender.take().filter(|sender| number < 3 && sender.send(number + 1).is_ok());
                }
                Ok(())
            },
        );
        assert_eq!((done, seen), (Ok(()), 4));
    }

    #[test]
    fn the_bytes_on_their_way_are_bounded() {
        use std::sync::atomic::{AtomicU64, Ordering};
        let (on_their_way, most) = (AtomicU64::new(0), AtomicU64::new(0));
        let size = |number: u64| if number == 70 { BUDGET } else { BUDGET / 8 };
        let work = |number: u64| {
            most.fetch_max(
                on_their_way.fetch_add(size(number), Ordering::SeqCst) + size(number),
                Ordering::SeqCst,
            );
            number
        };
        let done: Result<(), ()> = in_order(
            0..100,
            |number| (number, size(number)),
            work,
            |event| {
                if let Event::Result(number) = event {
                    thread::sleep(Duration::from_micros(50));
                    on_their_way.fetch_sub(size(number), Ordering::SeqCst);
                }
                Ok(())
            },
        );
        assert_eq!(done, Ok(()));
        assert!(most.into_inner() <= BUDGET * 2);
    }

    #[test]
    #[should_panic(expected = "a scoped thread panicked")]
    fn a_panic_in_a_worker_reaches_the_caller() {
        let _: Result<(), ()> =
            in_order(0..100, |number: u32| (number, BUDGET), |number| assert_ne!(number, 3), |_| Ok(()));
    }
}
