//! The intent as a Secret and back, its inventory, and when a claim has run out.

use proptest::prelude::*;

use super::*;

fn object(namespace: &str, name: &str) -> Object {
    let value = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": name, "namespace": namespace, "labels": { "l": "v" } },
        "data": { "password": "aHVudGVyMg==" },
    });
    Object::try_from(value).expect("an object")
}

/// Stages of objects: `"a b, c"`.
fn stages(text: &str) -> Stages {
    let stage = |stage: &str| {
        let names = stage.split_whitespace();
        names.map(|name| object("n", name)).collect()
    };
    Stages::new(text.split(',').map(stage).collect())
}

fn names_of(stages: &Stages) -> String {
    let stage = |stage: &Vec<Object>| {
        let names: Vec<&str> = stage.iter().map(Object::name).collect();
        names.join(" ")
    };
    stages.iter().map(stage).collect::<Vec<_>>().join(", ")
}

fn intent(inventory: &Stages, claim: Option<Claim>) -> Intent {
    Intent {
        release: "my.rel".into(),
        namespace: "n".into(),
        claim,
        inventory: inventory_of(inventory),
    }
}

fn stored(intent: &Intent) -> Value {
    let mut secret = json!(intent.to_secret().expect("fits"));
    secret["metadata"]["uid"] = "u".into();
    secret["metadata"]["resourceVersion"] = "7".into();
    secret
}

#[test]
fn it_is_read_as_it_was_written() {
    let claim = claim("yoke takeoff", "boot/1/2", 7, Timestamp::UNIX_EPOCH);
    for (inventory, claim) in [
        ("", None),
        ("a b, c", None),
        ("a, b c", Some(claim.clone())),
        (
            "",
            Some(Claim {
                process: String::new(),
                ..claim
            }),
        ),
    ] {
        let intent = intent(&stages(inventory), claim);
        let read = StoredIntent::from_secret(&stored(&intent)).expect("reads");
        assert_eq!(read.intent, intent);
        assert_eq!(
            (read.uid.as_str(), read.resource_version.as_str()),
            ("u", "7")
        );
        let again = json!(read.to_secret().expect("fits"));
        assert_eq!(again["metadata"]["uid"], "u");
        assert_eq!(again["metadata"]["resourceVersion"], "7");
    }
}

#[test]
fn the_existing_tool_sees_nothing_of_it() {
    let held = intent(
        &stages("a"),
        Some(claim("w", "p", 1, Timestamp::UNIX_EPOCH)),
    );
    let secret = stored(&held);
    let metadata = secret["metadata"].to_string();
    assert!(!metadata.contains("internal.yoke"), "{metadata}");
    let name = secret["metadata"]["name"].as_str().expect("a name");
    assert!(!name.starts_with("yoke."), "{name}");
    assert!(name.ends_with(&release_label("my.rel")), "{name}");
}

#[test]
fn it_holds_names_and_never_content() {
    let inventory = inventory_of(&stages("a, b"));
    assert_eq!(names_of(&inventory), "a, b");
    let text = json!(inventory).to_string();
    assert!(
        !text.contains("password") && !text.contains("\"l\""),
        "{text}"
    );
    for (one, two) in inventory.objects().zip(stages("a, b").objects()) {
        assert_eq!(one.reference(), two.reference());
        assert_eq!(one.api_version(), two.api_version());
    }
}

#[test]
fn inventories_unite() {
    let check = |one: &str, two: &str, expect: &str| {
        let united = united(&stages(one), &stages(two));
        assert_eq!(names_of(&united), expect, "{one} + {two}");
    };
    check("", "", "");
    check("a b", "", "a b");
    check("", "a, b", "a, b");
    check("a, b", "c", "a c, b");
    check("a, b", "b, c", "a b, c");
    check("a, b, c", "a", "a, b, c");
}

#[test]
fn what_is_no_inventory_is_an_error_without_its_content() {
    let mut secret = stored(&intent(&stages("a"), None));
    secret["data"]["inventory"] = "c2VjcmV0IQ==".into();
    let error = StoredIntent::from_secret(&secret).expect_err("no JSON");
    let text = error.to_string();
    assert!(
        text.contains("yoke-intent.") && !text.contains("secret!"),
        "{text}"
    );
    secret["data"] = json!({ "inventory": 7 });
    assert!(StoredIntent::from_secret(&secret).is_err());
    secret["data"] = Value::Null;
    let read = StoredIntent::from_secret(&secret).expect("an empty one");
    assert!(read.intent.inventory.is_empty());
}

#[test]
fn a_claim_runs_out_when_it_is_seen_to_stand_still() {
    let (start, mut vigil) = (Instant::now(), Vigil::default());
    let first = claim("w", "p", 1, Timestamp::UNIX_EPOCH);
    let renewed = Claim {
        renewed_at: "later".into(),
        ..first.clone()
    };
    let other = claim("w", "p", 2, Timestamp::UNIX_EPOCH);
    for (claim, at, expect) in [
        (&first, 0, false),
        (&first, 14, false),
        (&renewed, 14, false),
        (&renewed, 28, false),
        (&renewed, 29, true),
        (&other, 30, false),
        (&other, 45, true),
        (&first, 45, false),
    ] {
        let now = start + Duration::from_secs(at);
        assert_eq!(vigil.has_run_out(claim, now, LEASE), expect, "at {at} s");
    }
}

proptest! {
    #[test]
    fn nothing_is_lost_when_inventories_unite(one in "[a-f ,]{0,20}", two in "[a-f ,]{0,20}") {
        let all = |stages: &Stages| stages.objects().map(Object::reference).collect::<BTreeSet<_>>();
        let (one, two) = (stages(&one), stages(&two));
        let united = united(&one, &two);
        prop_assert_eq!(all(&united), &all(&one) | &all(&two));
    }
}
