//! Ends of objects that no watch has shown.

use super::*;

#[test]
fn the_end_of_what_was_never_shown_counts_once_w38() {
    // A run read it, and it went before the watch had shown it.
    let mut tracker = reader(present("db", "x", 60));
    assert_eq!(
        said(tracker.deleted(&kind(), &object("other", "o", 61))),
        nobody()
    );
    assert_eq!(tracker.latest(&reference("other")), Latest::Unknown);
    assert_eq!(
        said(tracker.deleted(&kind(), &object("db", "x", 62))),
        EVALUATE
    );
    assert_eq!(
        said(tracker.deleted(&kind(), &object("db", "x", 62))),
        nobody()
    );
    // Of another one that nobody has seen under that name, too.
    assert_eq!(
        said(tracker.deleted(&kind(), &object("db", "y", 64))),
        nobody()
    );
    assert_eq!(tracker.latest(&reference("db")), Latest::Absent { at: 64 });
}
