//! The README's tour and the cookbook: every command in them is run, and prints what they say.

use crate::console;

#[test]
fn the_tour_is_real() {
    assert!(console::check("README.md", None) > 30, "the tour is gone");
}

#[test]
fn the_cookbook_is_real() {
    assert!(console::check("docs/cookbook.md", Some("## ")) > 30, "the cookbook is gone");
}
