//! The three forms of an output.

use super::*;

fn text(output: &Output) -> String {
    let mut bytes = Vec::new();
    output.write(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn one_stage_is_a_list_and_several_are_lists() {
    let mut output = Output::new();
    assert_eq!(text(&output), "[]\n");
    output.stage().push(1).unwrap().push(2).unwrap();
    assert_eq!(text(&output), "[1,2]\n");
    output.stage().stage();
    assert_eq!(text(&output), "[1,2]\n", "an empty stage is none");
    output.push(3).unwrap();
    assert_eq!(text(&output), "[[1,2],[3]]\n");
    assert_eq!(output.stages().count(), 2);
}

#[test]
fn what_is_no_json_is_an_error() {
    let odd = std::collections::BTreeMap::from([(vec![1], 2)]);
    assert!(matches!(
        Output::new().push(odd),
        Err(OutputError::Serialize(_))
    ));
}

#[test]
fn a_full_stdout_is_an_error() {
    let mut room = [0; 4];
    let mut output = Output::new();
    output.push("a long word").unwrap();
    assert!(matches!(
        output.write(&mut &mut room[..]),
        Err(OutputError::Write(_))
    ));
}
