//! The README's tour: every command in it is run, and prints what the README says.

use crate::console;

#[test]
fn the_tour_is_real() {
    assert!(console::check("README.md", None) > 30, "the tour is gone");
}
