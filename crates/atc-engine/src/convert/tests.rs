use super::*;

const WANTED: &str = "x.dev/v2";

fn original(name: &str) -> Value {
    json!({
        "apiVersion": "x.dev/v1", "kind": "App",
        "metadata": {
            "name": name, "namespace": "n", "uid": "u", "resourceVersion": "7", "finalizers": ["f"],
            "labels": {"a": "1"}, "annotations": {"b": "2"},
        },
        "spec": {"note": "x"},
    })
}

fn printed(objects: &Value) -> String {
    json!({"kind": "ConversionReview", "response": {"convertedObjects": objects, "result": {"status": "Success"}}})
        .to_string()
}

#[test]
fn what_is_not_the_converters_is_put_back() {
    let theirs = json!([{
        "apiVersion": WANTED, "kind": "Other",
        "metadata": {
            "name": "else", "namespace": "kube-system", "uid": "other", "ownerReferences": [{}],
            "labels": {"a": "new"}, "annotations": {"c": "3"},
        },
        "spec": {"text": "x"}, "status": {"seen": true},
    }]);
    let converted = answer(printed(&theirs).as_bytes(), WANTED, &[original("a")]).expect("usable");
    let mut metadata = original("a")["metadata"].clone();
    metadata["labels"] = json!({"a": "new"});
    metadata["annotations"] = json!({"c": "3"});
    assert_eq!(
        converted,
        [json!({
            "apiVersion": WANTED, "kind": "App", "metadata": metadata,
            "spec": {"text": "x"}, "status": {"seen": true},
        })]
    );
}

#[test]
fn a_converter_may_drop_labels_and_metadata() {
    let bare = json!([{"apiVersion": WANTED, "spec": {}}]);
    let converted = answer(printed(&bare).as_bytes(), WANTED, &[original("a")]).expect("usable");
    let metadata = &converted[0]["metadata"];
    assert_eq!(metadata["uid"], "u");
    assert_eq!(
        (&metadata["labels"], &metadata["annotations"]),
        (&Value::Null, &Value::Null)
    );
}

#[test]
fn what_is_no_answer() {
    let check = |stdout: &str, words: &str| {
        let error = answer(stdout.as_bytes(), WANTED, &[original("a")]).expect_err(stdout);
        assert!(error.to_string().contains(words), "{stdout}: {error}");
    };
    let one = |object: Value| printed(&json!([object]));
    check("", "no JSON at line 1");
    check(r#"{"response": {"password"#, "no JSON at line 1 column");
    check("[]", "convertedObjects is no list");
    check("null", "convertedObjects is no list");
    check(
        r#"{"response": {"result": {"status": "Failure", "message": "too old"}}}"#,
        "refused: too old",
    );
    check(
        r#"{"response": {"result": {"status": "Failure"}}}"#,
        "gives no message",
    );
    check(&printed(&json!([])), "has 0 objects, asked for were 1");
    check(&one(json!(1)), "convertedObjects[0] is no object");
    check(&one(json!({})), "convertedObjects[0] has no apiVersion");
    check(
        &one(original("a")),
        "has apiVersion \"x.dev/v1\", not \"x.dev/v2\"",
    );
    check(
        &one(json!({"apiVersion": WANTED, "metadata": 1})),
        "a metadata that is no object",
    );
    check(
        &one(json!({"apiVersion": WANTED, "metadata": {"labels": []}})),
        "metadata.labels that is no object",
    );
}

#[test]
fn reviews_name_what_they_lack() {
    let review = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": {"uid": "1", "desiredAPIVersion": WANTED, "objects": [original("a")]},
    });
    let read = Conversion::read(&review).expect("a review");
    assert_eq!(
        (&*read.uid, &*read.desired, read.objects.len()),
        ("1", WANTED, 1)
    );
    assert_eq!(read.review(&read.objects), review);
    for (path, words) in [
        ("/apiVersion", "apiVersion is missing"),
        ("/request/uid", "request/uid is missing"),
        (
            "/request/desiredAPIVersion",
            "request/desiredAPIVersion is missing",
        ),
        ("/request/objects", "request/objects is missing"),
    ] {
        let mut broken = review.clone();
        *broken.pointer_mut(path).expect("there") = Value::Null;
        let error = Conversion::read(&broken).expect_err(path).to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn what_can_not_be_converted_is_marked_and_all_else_is_as_it_was() {
    let conversion = Conversion {
        api_version: "apiextensions.k8s.io/v1".into(),
        uid: "1".into(),
        desired: WANTED.into(),
        objects: Vec::new(),
    };
    let error = ConvertError::Refused("x".repeat(5_000));
    let mut object = conversion.marked(&original("a"), &error);
    let words = mark(&object).expect("marked").to_owned();
    assert!(words.starts_with("the converter refused: xxx"), "{words}");
    assert_eq!(words.len(), MARK_MAX);
    object["metadata"]["annotations"]
        .as_object_mut()
        .expect("a map")
        .shift_remove(names::ANNOTATION_UNCONVERTED);
    object["apiVersion"] = original("a")["apiVersion"].clone();
    assert_eq!(object, original("a"));
    assert_eq!(mark(&original("a")), None);
    let bare = conversion.marked(&json!({"metadata": {"annotations": null}}), &error);
    assert!(mark(&bare).is_some());
    assert_eq!(conversion.marked(&json!(1), &error), json!(1));
}
