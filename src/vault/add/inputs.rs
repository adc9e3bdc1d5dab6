//! Examination of inputs by several threads, in the order of the inputs.

use std::ffi::OsString;

use super::examination::{Examination, ExaminationResult, ExaminedItem};
use crate::artifact::Admitted;
use crate::intake::pipeline::{self, PipelineEvent};
use crate::intake::{self, ExamineOptions, SourceError};

/// An input to examine, or the error of reading it.
pub type InputResult = std::result::Result<intake::InputItem, SourceError>;

/// Inputs with a count of those consumed. The end of a directory is not counted.
pub(super) struct CountedInputs<I> {
    pub(super) inputs: I,
    pub(super) count: u64,
}

impl<I: Iterator<Item = InputResult>> Iterator for CountedInputs<I> {
    type Item = InputResult;

    fn next(&mut self) -> Option<InputResult> {
        let next = self.inputs.next();
        self.count += u64::from(next.as_ref().is_some_and(|next| !is_end(next)));
        next
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.inputs.size_hint()
    }
}

fn is_end(found: &InputResult) -> bool {
    matches!(found, Ok(intake::InputItem::End { .. }))
}

pub(super) fn ends_directory<A>(item: &ExaminedItem<A>) -> bool {
    matches!(item, Ok(Examination { is_end: true, .. }))
}

pub(super) fn is_bad<A>(item: &ExaminedItem<A>) -> bool {
    matches!(item, Err(_) | Ok(Examination { verdict: ExaminationResult::Rejected(_), .. }))
}

/// Examines `inputs`. If they are to be stored, the files beside them that they refer to are read too.
pub(super) fn each<A: Send, E>(
    inputs: impl Iterator<Item = InputResult> + Send,
    stores: bool,
    options: &ExamineOptions,
    make: impl Fn(Admitted) -> A + Sync,
    mut consume: impl FnMut(PipelineEvent<ExaminedItem<A>>) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let open = |item: InputResult| {
        let opened = item.map(|item| (item.name(), item.items(), item.open()));
        let size = opened.as_ref().map_or(0, |(.., opened)| opened.size());
        (opened, size)
    };
    let work = |opened: std::result::Result<(OsString, Option<u64>, intake::OpenedInput), SourceError>,
                room: &dyn Fn(u64)| {
        let (path, items, opened) = opened?;
        let (mut verdict, place) = opened.examine_in_place(options)?;
        if stores {
            intake::attach(&mut verdict, place.as_ref(), options, room);
        }
        Ok(Examination::new(path, items, (verdict, place), &make))
    };
    let mut passed_over = 0;
    pipeline::in_order(inputs, open, work, |event| match event {
        PipelineEvent::Idle => consume(PipelineEvent::Idle),
        PipelineEvent::Result(item) => match judge_end(item, &mut passed_over, options) {
            Some(item) => consume(PipelineEvent::Result(item)),
            None => Ok(()),
        },
    })
}

/// Counts in `passed_over` the consecutive items that are not artifacts, and converts the end of a directory with only
/// such items into a rejection. Returns `None` if the directory contained others.
fn judge_end<A>(
    item: ExaminedItem<A>,
    passed_over: &mut u64,
    options: &ExamineOptions,
) -> Option<ExaminedItem<A>> {
    match &item {
        Ok(Examination { verdict: ExaminationResult::NoArtifact, .. }) => *passed_over += 1,
        Ok(Examination { verdict: ExaminationResult::End(items), path, .. }) => {
            if std::mem::take(passed_over) < *items {
                return None;
            }
            let rejected = Examination::rejected(path.clone(), intake::nothing_recognized(options));
            return Some(Ok(Examination { is_end: true, ..rejected }));
        }
        _ => *passed_over = 0,
    }
    Some(item)
}
