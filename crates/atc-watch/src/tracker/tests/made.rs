//! Who made an object, whoever else looks at it.

use super::*;

#[test]
fn what_somebody_made_is_told_from_what_was_only_looked_up() {
    let mut tracker = Tracker::new();
    tracker.commit(&"a", vec![input("x", present("x", "u", 1))]);
    assert!(!tracker.is_made(&reference("x")) && !tracker.is_made(&reference("y")));
    let both = vec![
        child("x", present("x", "u", 1)),
        input("x", present("x", "u", 1)),
    ];
    tracker.commit(&"b", both);
    assert!(tracker.is_made(&reference("x")));
    // A run that fails takes nothing back, one that ends without it does.
    tracker.fail(&"b", vec![input("x", present("x", "u", 1))]);
    assert!(tracker.is_made(&reference("x")));
    tracker.commit(&"b", vec![]);
    assert!(!tracker.is_made(&reference("x")));
    tracker.commit(&"b", vec![child("x", present("x", "u", 1))]);
    tracker.forget(&"b");
    assert!(!tracker.is_made(&reference("x")));
}
