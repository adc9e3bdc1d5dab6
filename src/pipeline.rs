//! Work on many things at once whose results are wanted in order.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How many bytes may be on their way between input and consumer.
const BUDGET: u64 = 64 << 20;

/// What anything costs beside its bytes.
const OVERHEAD: u64 = 4 << 10;

/// When no result comes for so long, the consumer is told.
const IDLE: Duration = Duration::from_millis(20);

/// What the consumer gets.
pub(crate) enum Event<R> {
    /// The result of the next input.
    Result(R),
    /// Nothing came for a while: a good time to finish what is at hand.
    Idle,
}

/// Runs `work` on every input on all cores and hands the results to `consume` in the order of the inputs. At any time
/// about 64 MiB of inputs, as `weigh` tells their sizes, or a single larger one are on their way.
///
/// # Errors
/// The first error of `consume`; what is on its way then is dropped.
pub(crate) fn in_order<T: Send, R: Send, E>(
    inputs: impl Iterator<Item = T> + Send,
    weigh: impl Fn(&T) -> u64 + Send,
    work: impl Fn(T) -> R + Sync,
    mut consume: impl FnMut(Event<R>) -> Result<(), E>,
) -> Result<(), E> {
    let workers = thread::available_parallelism().map_or(2, NonZero::get);
    let budget = Budget::default();
    let (job_sender, jobs) = sync_channel(workers * 2);
    let (result_sender, results) = channel();
    let jobs = Mutex::new(jobs);
    thread::scope(|scope| {
        scope.spawn(|| {
            // Dropped at the end: workers go home when there are no more jobs.
            let job_sender = job_sender;
            feed(inputs, weigh, &budget, &job_sender);
        });
        for _ in 0..workers {
            let result_sender = result_sender.clone();
            scope.spawn(|| {
                let result_sender = result_sender;
                let mut wanted = true;
                // When nobody wants results any more, jobs are taken all the same: their feeder must not get stuck.
                while let Some((number, weight, input)) = next(&jobs) {
                    wanted = wanted && result_sender.send((number, weight, work(input))).is_ok();
                }
            });
        }
        drop(result_sender);
        let outcome = collect(&results, &budget, &mut consume);
        // Whoever still feeds or works must not wait for a consumer that is gone.
        budget.close();
        drop(results);
        outcome
    })
}

type Numbered<X> = (u64, u64, X);

fn feed<T>(
    inputs: impl Iterator<Item = T>,
    weigh: impl Fn(&T) -> u64,
    budget: &Budget,
    jobs: &SyncSender<Numbered<T>>,
) {
    for (number, input) in (0..).zip(inputs) {
        let weight = weigh(&input).saturating_add(OVERHEAD).min(BUDGET);
        if !budget.take(weight) || jobs.send((number, weight, input)).is_err() {
            return;
        }
    }
}

fn next<T>(jobs: &Mutex<Receiver<T>>) -> Option<T> {
    jobs.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

fn collect<R, E>(
    results: &Receiver<Numbered<R>>,
    budget: &Budget,
    consume: &mut impl FnMut(Event<R>) -> Result<(), E>,
) -> Result<(), E> {
    let mut early = BTreeMap::new();
    let mut wanted = 0;
    loop {
        match results.recv_timeout(IDLE) {
            Ok((number, weight, result)) => {
                early.insert(number, (weight, result));
            }
            Err(RecvTimeoutError::Timeout) => consume(Event::Idle)?,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        while let Some((weight, result)) = early.remove(&wanted) {
            wanted += 1;
            consume(Event::Result(result))?;
            budget.give_back(weight);
        }
    }
}

/// The bytes that may still be taken into memory.
struct Budget {
    left: Mutex<Option<u64>>,
    changed: Condvar,
}

impl Default for Budget {
    fn default() -> Self {
        Self { left: Mutex::new(Some(BUDGET)), changed: Condvar::new() }
    }
}

impl Budget {
    /// Waits until `weight` can be taken; false if the budget was closed.
    fn take(&self, weight: u64) -> bool {
        let waiting = |left: &mut Option<u64>| left.is_some_and(|left| left < weight);
        let mut left = self.changed.wait_while(self.lock(), waiting).unwrap_or_else(PoisonError::into_inner);
        if let Some(left) = left.as_mut() {
            *left -= weight;
        }
        left.is_some()
    }

    fn give_back(&self, weight: u64) {
        if let Some(left) = self.lock().as_mut() {
            *left += weight;
        }
        self.changed.notify_all();
    }

    fn close(&self) {
        *self.lock() = None;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Option<u64>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_whatever_they_cost() {
        let mut seen = Vec::new();
        let weigh = |number: &u64| if number.is_multiple_of(50) { u64::MAX } else { number << 16 };
        let work = |number: u64| {
            thread::sleep(Duration::from_micros(number * 7919 % 300));
            number
        };
        let done: Result<(), ()> = in_order(0..500, weigh, work, |event| {
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
            |_| BUDGET / 2,
            |number: u64| number,
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
            |_: &u8| 0,
            slow,
            |event| {
                idle += usize::from(matches!(event, Event::Idle));
                Ok(())
            },
        );
        assert_eq!(done, Ok(()));
        assert!(idle > 0);
    }
}
