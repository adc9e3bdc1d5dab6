//! Parallel processing of many inputs with ordered results.
//!
//! Workers take inputs one at a time, so that a large one does not block others. Results are collected, and the
//! consumer is woken for a group of them: waking a thread costs as much as examining a small document.

mod flow;

use std::cell::Cell;
use std::iter;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, Scope};

use flow::{BUDGET, ResultQueue, WeightedResult};
use parking_lot::Mutex;

/// The cost of an input in addition to its bytes.
const OVERHEAD: u64 = 4 << 10;

/// The number of bytes up to which the first input does not start a second worker.
const SMALL: u64 = 64 << 10;

/// The number of consumed bytes after which the workers are notified of free space.
const GROUP_BYTES: u64 = 1 << 20;

/// An event for the consumer.
pub(crate) enum PipelineEvent<R> {
    /// The result of the next input.
    Result(R),
    /// No result arrived for a while: a good time to flush pending work.
    Idle,
}

/// Opens every input and runs `work` on it, on all cores, and passes the results to `consume` in the order of the
/// inputs. `open` returns the number of bytes that the work will take; `work` can call its second argument before it takes
/// more, which waits until there is space. At most [`BUDGET`] bytes are in flight at any time, or one larger input and a
/// few small ones.
///
/// If `inputs` says after the first one that there are no more, everything is done by the calling thread: to start another
/// one takes longer than to examine a small document.
///
/// # Errors
/// Returns the first error of `consume`; inputs in flight are dropped.
pub(crate) fn in_order<T: Send, O, R: Send, E>(
    mut inputs: impl Iterator<Item = T> + Send,
    open: impl Fn(T) -> (O, u64) + Sync,
    work: impl Fn(O, &dyn Fn(u64)) -> R + Sync,
    mut consume: impl FnMut(PipelineEvent<R>) -> Result<(), E>,
) -> Result<(), E> {
    let Some(first) = inputs.next() else { return Ok(()) };
    if inputs.size_hint().1 == Some(0) {
        return consume(PipelineEvent::Result(work(open(first).0, &|_| ())));
    }
    let flow = ResultQueue::default();
    let pool = PipelineWorkers {
        most: thread::available_parallelism().map_or(2, NonZero::get),
        started: AtomicUsize::new(0),
        inputs: Mutex::new((0..).zip(iter::once(first).chain(inputs)).fuse()),
        open,
        work,
    };
    thread::scope(|scope| {
        // Threads still at work must not wait for a consumer that has stopped.
        let _closing = flow.close_at_end();
        pool.start_worker(scope, &flow);
        collect(&flow, &mut consume)
    })
}

/// The threads that examine inputs, and what they share.
struct PipelineWorkers<I, F, W> {
    /// Maximum number of threads.
    most: usize,
    started: AtomicUsize,
    inputs: Mutex<I>,
    open: F,
    work: W,
}

impl<T, O, I, F, W> PipelineWorkers<I, F, W>
where
    I: Iterator<Item = (u64, T)> + Send,
    F: Fn(T) -> (O, u64) + Sync,
{
    /// Starts another worker unless there are enough.
    fn start_worker<'scope, R>(&'scope self, scope: &'scope Scope<'scope, '_>, flow: &'scope ResultQueue<R>)
    where
        W: Fn(O, &dyn Fn(u64)) -> R + Sync,
        R: Send,
    {
        if self.started.fetch_add(1, Ordering::Relaxed) < self.most {
            let working = flow.enter();
            scope.spawn(move || {
                let _working = working;
                self.run(scope, flow);
            });
        }
    }

    fn run<'scope, R>(&'scope self, scope: &'scope Scope<'scope, '_>, flow: &'scope ResultQueue<R>)
    where
        W: Fn(O, &dyn Fn(u64)) -> R + Sync,
        R: Send,
    {
        while let Some((number, input)) = self.next(flow) {
            let (opened, size) = (self.open)(input);
            // A small document may be the only one.
            if number > 0 || size > SMALL {
                self.start_worker(scope, flow);
            }
            let weight = Cell::new(size.saturating_add(OVERHEAD).min(BUDGET));
            if !flow.take_room(number, weight.get()) {
                return;
            }
            let result = (self.work)(opened, &|more| {
                flow.take_more(number, more);
                weight.set(weight.get() + more);
            });
            flow.put(number, WeightedResult { weight: weight.get(), result });
        }
    }

    /// Returns the next input, once there is a core to examine it on.
    fn next<R>(&self, flow: &ResultQueue<R>) -> Option<(u64, T)> {
        flow.park_if_ahead();
        self.inputs.lock().next()
    }
}

fn collect<R, E>(
    flow: &ResultQueue<R>,
    consume: &mut impl FnMut(PipelineEvent<R>) -> Result<(), E>,
) -> Result<(), E> {
    loop {
        let group = match flow.next_group() {
            Some(group) if group.is_empty() => {
                consume(PipelineEvent::Idle)?;
                continue;
            }
            Some(group) => group,
            None => return Ok(()),
        };
        let (mut count, mut weight) = (0, 0);
        for next in group {
            consume(PipelineEvent::Result(next.result))?;
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::flow::{AHEAD, IDLE, UNORDERED, WorkerGuard};
    use super::*;

    #[test]
    fn results_come_in_order_whatever_they_cost() {
        let mut seen = Vec::new();
        let open = |number: u64| (number, if number.is_multiple_of(50) { u64::MAX } else { number << 16 });
        let work = |number: u64, _: &dyn Fn(u64)| {
            thread::sleep(Duration::from_micros(number * 7919 % 300));
            number
        };
        let done: Result<(), ()> = in_order(0..500, open, work, |event| {
            if let PipelineEvent::Result(number) = event {
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
            |number, _| number,
            |event| match event {
                PipelineEvent::Result(20) => Err("enough"),
                _ => Ok(()),
            },
        );
        assert_eq!(outcome, Err("enough"));
    }

    #[test]
    fn the_only_input_is_examined_by_the_calling_thread() {
        let examined_by_caller = |count: usize| {
            let mut threads = Vec::new();
            let thread_of = |_: usize, _: &dyn Fn(u64)| thread::current().id();
            let done: Result<(), ()> = in_order(
                0..count,
                |number| (number, 0),
                thread_of,
                |event| {
                    if let PipelineEvent::Result(thread) = event {
                        threads.push(thread);
                    }
                    Ok(())
                },
            );
            assert_eq!((done, threads.len()), (Ok(()), count));
            threads.iter().filter(|other| **other == thread::current().id()).count()
        };
        assert_eq!([0, 1, 2].map(examined_by_caller), [0, 1, 0]);
    }

    #[test]
    fn the_consumer_is_told_when_nothing_comes() {
        let mut idle = 0;
        let slow = |_, _: &dyn Fn(u64)| thread::sleep(IDLE * 3);
        let done: Result<(), ()> = in_order(
            0..2,
            |number: u8| (number, 0),
            slow,
            |event| {
                idle += usize::from(matches!(event, PipelineEvent::Idle));
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
            |number, _| number,
            |event| {
                if let PipelineEvent::Result(number) = event {
                    seen += 1;
                    // The next input is sent only after this result has arrived.
                    sender = sender.take().filter(|sender| number < 3 && sender.send(number + 1).is_ok());
                }
                Ok(())
            },
        );
        assert_eq!((done, seen), (Ok(()), 4));
    }

    /// The most bytes that were in flight at once, of inputs of these sizes that take `more` bytes each while they work.
    fn most_in_flight(sizes: &[u64], more: u64) -> u64 {
        use std::sync::atomic::{AtomicU64, Ordering};
        let (in_flight, most) = (AtomicU64::new(0), AtomicU64::new(0));
        let take = |bytes| {
            let now = in_flight.fetch_add(bytes, Ordering::SeqCst) + bytes;
            most.fetch_max(now, Ordering::SeqCst);
        };
        let done: Result<(), ()> = in_order(
            sizes.iter().copied(),
            |size| (size, size),
            |size, room| {
                take(size);
                room(more);
                take(more);
                size
            },
            |event| {
                if let PipelineEvent::Result(size) = event {
                    thread::yield_now();
                    in_flight.fetch_sub(size + more, Ordering::SeqCst);
                }
                Ok(())
            },
        );
        assert_eq!((done, in_flight.into_inner()), (Ok(()), 0));
        most.into_inner()
    }

    #[test]
    fn the_bytes_in_flight_are_bounded() {
        let half = BUDGET / 2 - OVERHEAD;
        assert!(most_in_flight(&[half; 60], 0) <= BUDGET);
        assert!(most_in_flight(&[BUDGET / 3; 60], 0) <= BUDGET);
        // A larger input is let in with small ones only.
        let mixed: Vec<u64> = (0..60).map(|number| [BUDGET * 2, half, 1 << 10, half][number % 4]).collect();
        assert!(most_in_flight(&mixed, 0) <= BUDGET * 2 + UNORDERED);
    }

    #[test]
    fn bytes_that_are_taken_later_are_bounded() {
        // Those of the input that is needed next are not waited for.
        assert!(most_in_flight(&[1 << 10; 60], BUDGET / 2) <= BUDGET + BUDGET / 2);
        assert!(most_in_flight(&[BUDGET / 4; 60], BUDGET * 2) <= BUDGET * 3);
    }

    /// Parks a worker, while another one goes on, until `needs_it` has unparked it.
    fn is_parked_until(needs_it: impl FnOnce(&ResultQueue<()>, WorkerGuard<'_, ()>)) {
        let flow = ResultQueue::default();
        let (_parked, other) = (flow.enter(), flow.enter());
        (0..AHEAD).for_each(|number| flow.put(number, WeightedResult { weight: 0, result: () }));
        thread::scope(|scope| {
            scope.spawn(|| flow.park_if_ahead());
            while !flow.has_parked() {
                thread::yield_now();
            }
            flow.park_if_ahead();
            needs_it(&flow, other);
        });
    }

    #[test]
    fn one_worker_is_parked_while_the_consumer_has_enough_to_do() {
        is_parked_until(|flow, _other| flow.give_back(1, 0));
        is_parked_until(|_, other| drop(other));
        is_parked_until(|flow, _other| drop(flow.close_at_end()));
        is_parked_until(|flow, _other| {
            while flow.has_parked() {
                flow.next_group();
            }
        });
    }

    #[test]
    #[should_panic(expected = "consumer")]
    fn a_panic_in_the_consumer_reaches_the_caller() {
        let _: Result<(), ()> =
            in_order(0.., |number: u32| (number, BUDGET / 4), |number, _| number, |_| panic!("consumer"));
    }

    #[test]
    #[should_panic(expected = "a scoped thread panicked")]
    fn a_panic_in_a_worker_reaches_the_caller() {
        let _: Result<(), ()> =
            in_order(0..100, |number: u32| (number, BUDGET), |number, _| assert_ne!(number, 3), |_| Ok(()));
    }
}
