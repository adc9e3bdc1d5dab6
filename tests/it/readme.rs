//! The README, the tour and the cookbook: every command in them is run, and prints the documented output.

use crate::console;

#[test]
fn the_quickstart_is_real() {
    assert!(console::check("README.md", None) > 8, "the quickstart is missing");
}

#[test]
fn the_tour_is_real() {
    assert!(console::check("docs/tour.md", None) > 40, "the tour is missing");
}

#[test]
fn the_cookbook_is_real() {
    assert!(console::check("docs/cookbook.md", Some("## ")) > 30, "the cookbook is missing");
}
