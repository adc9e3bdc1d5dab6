//! Locations in artifacts.

use runvault::artifact::Place;

/// Formats a location, such as `step 3`, or a pointer; not yet escaped for terminals.
pub(crate) fn text(unit: &str, place: &Place) -> String {
    match place {
        Place::Index(index) => format!("{unit} {index}"),
        Place::Pointer(pointer) => pointer.clone(),
    }
}
