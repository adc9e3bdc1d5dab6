//! Comparison of the index with its expected content.

use std::collections::{HashMap, HashSet};

use super::index::{self, VERSION};
use super::search::Vector;
use crate::digest::{CoreHash, Digest};
use crate::storage::Result;
use crate::storage::interface::{CapturePassages, IndexComparison, SearchDifferences};
use crate::storage::postgres::error::{PostgresError, PostgresResult};
use crate::storage::postgres::session::DatabaseTransaction;
use crate::storage::sql::SqlSession as _;

/// Number of rows between two reports of the progress.
const STEP: u64 = 1 << 12;

/// A comparison in progress.
pub(super) struct VectorComparison {
    /// The number of passages of captures that were not compared yet.
    listed: HashMap<i64, i64>,
    /// The digest of the indexed rows of each capture.
    actual: HashMap<i64, Digest>,
    differences: SearchDifferences,
}

/// The rows of a capture, in a form that can be hashed.
#[derive(Default)]
struct PassageRowBytes(Vec<u8>);

impl PassageRowBytes {
    fn add(&mut self, number: i64, field: &str, vector: &Vector) {
        let Vector { words, rest } = vector;
        let parts = [Some(field.as_bytes()), words.as_deref().map(str::as_bytes), rest.as_deref()];
        self.0.extend(number.to_be_bytes());
        for part in parts {
            // The length separates the parts; no part is that long.
            self.0.extend(part.map_or(u64::MAX, |part| part.len() as u64).to_be_bytes());
            self.0.extend(part.unwrap_or_default());
        }
    }

    fn digest(&self) -> Digest {
        Digest::from_content(&self.0)
    }

    fn of(capture: &CapturePassages) -> Self {
        let mut content = Self::default();
        for (number, passage) in (0..).zip(capture.passages()) {
            let Some((field, text)) = passage else { continue };
            if let Some(vector) = Vector::new(text) {
                content.add(number, field.name(), &vector);
            }
        }
        content
    }
}

/// Reads the index; `None` if there is none, or one of another version.
pub(super) fn begin(
    session: &DatabaseTransaction<'_>,
    watch: &mut dyn FnMut(u64, u64),
) -> PostgresResult<Option<VectorComparison>> {
    if index::state(session)?.is_none_or(|state| state.version != VERSION) {
        return Ok(None);
    }
    let listed = session.rows("SELECT capture, passages FROM search_capture", &[])?;
    let listed =
        listed.iter().map(|row| Ok((row.integer(0)?, row.integer(1)?))).collect::<PostgresResult<_>>()?;
    let total = session.row("SELECT count(*) FROM search_passage", &[])?;
    let total = total.ok_or_else(|| PostgresError::damaged("a count has no row"))?.count(0)?;
    let actual = read(session, &mut |done| watch(done, total))?;
    Ok(Some(VectorComparison { listed, actual, differences: SearchDifferences::default() }))
}

fn read(
    session: &DatabaseTransaction<'_>,
    watch: &mut dyn FnMut(u64),
) -> PostgresResult<HashMap<i64, Digest>> {
    let sql = "SELECT capture, number, field, words::text, rest FROM search_passage ORDER BY capture, number";
    let mut actual = HashMap::new();
    let mut current: Option<(i64, PassageRowBytes)> = None;
    let mut done = 0;
    session.each(sql, &[], &mut |row| {
        let (capture, number, field) = (row.integer(0)?, row.integer(1)?, row.text(2)?);
        let rest = row.optional_bytes(4)?.map(<[u8]>::to_vec);
        let vector = Vector::from_stored(row.optional_text(3)?.as_deref(), rest);
        match &mut current {
            Some((last, content)) if *last == capture => content.add(number, &field, &vector),
            _ => {
                let mut content = PassageRowBytes::default();
                content.add(number, &field, &vector);
                let finished = current.replace((capture, content));
                actual.extend(finished.map(|(capture, content)| (capture, content.digest())));
            }
        }
        done += 1;
        if done % STEP == 0 {
            watch(done);
        }
        Ok(())
    })?;
    actual.extend(current.map(|(capture, content)| (capture, content.digest())));
    Ok(actual)
}

impl IndexComparison for VectorComparison {
    fn captures(&self) -> u64 {
        self.listed.len() as u64
    }

    fn take(&mut self, core: CoreHash, capture: &CapturePassages) -> Result<()> {
        let passages = self.listed.remove(&capture.id).and_then(|passages| usize::try_from(passages).ok());
        let actual = self.actual.remove(&capture.id).unwrap_or_else(|| PassageRowBytes::default().digest());
        if passages != Some(capture.passages().len()) || actual != PassageRowBytes::of(capture).digest() {
            self.differences.artifacts.insert(core);
        }
        Ok(())
    }

    fn pass_over(&mut self, capture: &CapturePassages) {
        self.listed.remove(&capture.id);
        self.actual.remove(&capture.id);
    }

    fn finish(mut self: Box<Self>) -> Result<SearchDifferences> {
        let captures: HashSet<&i64> = self.listed.keys().chain(self.actual.keys()).collect();
        self.differences.strays = captures.len() as u64;
        Ok(self.differences)
    }
}
