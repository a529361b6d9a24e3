//! The rules of the layout hold.

#[test]
fn the_layout_is_tidy() {
    let findings = xtask::tidy::check(&xtask::Workspace::find().unwrap()).unwrap();
    assert!(findings.is_empty(), "\n{}", findings.join("\n"));
}
