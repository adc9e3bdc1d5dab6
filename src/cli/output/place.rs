//! Locations in artifacts, as text and as JSON.

use runvault::artifact::Place;
use serde::Serialize;

/// Formats a location, such as `step 3`, or a pointer; not yet escaped for terminals.
pub(crate) fn text(unit: &str, place: &Place) -> String {
    match place {
        Place::Index(index) => format!("{unit} {index}"),
        Place::Pointer(pointer) => pointer.clone(),
    }
}

/// The JSON members of a location.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum JsonPlace<'p> {
    Index { unit: &'p str, index: u32 },
    Pointer { pointer: &'p str },
}

impl<'p> JsonPlace<'p> {
    pub(crate) fn new(unit: &'p str, place: &'p Place) -> Self {
        match place {
            Place::Index(index) => Self::Index { unit, index: *index },
            Place::Pointer(pointer) => Self::Pointer { pointer },
        }
    }
}
