//! Bad output of a flight, by table: what is refused, with which words; nothing is applied, nothing pruned.

use atc_tests::condition;
use serde_json::{Value, json};

use crate::world::{Kind, World, configmap, text};

const A: &str =
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"new"}}"#;
const Y: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: new\n";

/// What is printed and the words of the refusal, `&` between them.
fn table() -> Vec<(String, &'static str)> {
    let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x]\n");
    for level in 1..12 {
        let before = format!("*a{}", level - 1);
        let all = [before.as_str(); 9].join(",");
        let line = format!("a{level}: &a{level} [{all}]\n");
        bomb.push_str(&line);
    }
    let namespaced = |kind: &str, name: &str| {
        format!(r#"{{"apiVersion":"v1","kind":"{kind}","metadata":{{"name":"{name}"}}}}"#)
    };
    vec![
        // Nothing must be said, not left out.
        (String::new(), "can't read the flight's output & is empty"),
        (" \n\n".into(), "is blank"),
        ("# nothing\n---\n".into(), "only comments"),
        ("null".into(), "is null"),
        ("{}".into(), "is an empty object"),
        // No resources.
        ("hello".into(), "document 1 (line 1) is a text"),
        ("<html>".into(), "document 1"),
        ("42".into(), "is a number"),
        ("true".into(), "is a boolean"),
        ("[1]".into(), "element 1 & a number"),
        (format!("[[[{A}]]]"), "it is a list"),
        (format!("[{A},[{A}]]"), "it is a list"),
        // Incomplete resources; each document counts, also one behind a good one.
        (
            format!("{Y}---\napiVersion: v1\nmetadata:\n  name: b\n"),
            "document 2 (line 7) & no kind",
        ),
        (r#"{"kind":"ConfigMap","metadata":{"name":"x"}}"#.into(), "no apiVersion"),
        (r#"{"apiVersion":"v1","kind":"ConfigMap"}"#.into(), "no metadata.name"),
        (
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"x-"}}"#.into(),
            "generateName",
        ),
        (namespaced("ConfigMap", "../x"), "metadata.name & is not possible"),
        (format!("[{A},{}]", A.replace("new", "old")), "occurs twice"),
        (
            format!(r#"[{A},{{"apiVersion":"v1","kind":"List","items":[3]}}]"#),
            "item 1 & a number",
        ),
        // Text that is no JSON and no YAML, or not whole.
        (A[..A.len() - 1].into(), "document 1 can't be read & line 1"),
        (format!("{A}{A}"), "document 1 can't be read"),
        (format!("{A}\n{A}\n"), "document 1 can't be read & line 2"),
        (format!("{Y}---\nkind: a: b\n"), "document 2 can't be read & line 8"),
        (format!("{Y}  l: 1\n  l: 2\n"), "document 1 can't be read & l"),
        (format!("{Y}\tx: 1\n"), "document 1 can't be read"),
        (bomb, "document 1 can't be read"),
        ("[".repeat(20_000), "document 1 can't be read"),
        (format!("{Y}  n: 18446744073709551616\n"), "does not fit 64 bits & line 7"),
        (format!("{Y}  n: .inf\n"), "document 1"),
        ("a\u{0}b".into(), "NUL byte & line 1"),
        // Resources that may not be made.
        (
            r#"{"apiVersion":"nobody.dev/v1","kind":"Nobody","metadata":{"name":"n"}}"#.into(),
            "nobody.dev & Nobody",
        ),
        (
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"n","namespace":"kube-system"}}"#.into(),
            "kube-system",
        ),
        (namespaced("ConfigMap", "UPPER"), "dry run & UPPER"),
        (
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"l":"not valid!"}}}"#.into(),
            "not valid!",
        ),
        (
            r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"replicas":"many"}}"#.into(),
            "Deployment & replicas",
        ),
        (
            r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"s"},"spec":{"prots":[]}}"#.into(),
            "s",
        ),
    ]
}

/// The children and the record as they are: names with versions.
async fn state(world: &World) -> Vec<Value> {
    let mut state = Vec::new();
    for name in world.configmaps(&world.ns).await {
        state.push(world.configmap(&name).await.unwrap());
    }
    state.extend(world.revisions().await);
    state
}

/// Edits, and waits until that was evaluated; the condition.
async fn evaluated(kind: &Kind<'_>, name: &str, spec: Value) -> Value {
    let generation = kind.edit(name, spec).await["metadata"]["generation"].clone();
    let object = kind
        .until(name, "was evaluated", |object| {
            condition(object, "Ready").is_some_and(|c| c["observedGeneration"] == generation)
        })
        .await;
    condition(&object, "Ready").unwrap().clone()
}

fn check(message: &str, words: &str, printed: &str) {
    let shown: String = printed.chars().take(200).collect();
    for words in words.split('&').map(str::trim) {
        assert!(
            message.contains(words),
            "{words:?} in {message:?} for {shown}"
        );
    }
    assert!(
        message.len() < 2_000 && !message.contains('\n'),
        "{message:?} for {shown}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_output_changes_nothing_r55_r81_r85_r87_r89_w17() {
    let world = World::new().await;
    let kind = world.loose().await;
    let objects = json!([
        configmap("a", json!({ "k": "old" })),
        configmap("b", json!({}))
    ]);
    kind.make("o", json!({ "objects": objects })).await;
    let before = state(&world).await;
    assert_eq!(before.len(), 3);
    for (printed, words) in table() {
        let ready = evaluated(&kind, "o", json!({ "raw": printed })).await;
        assert_eq!(ready["reason"], "Error", "{ready} for {printed:.200}");
        check(text(&ready["message"]), words, &printed);
        assert_eq!(state(&world).await, before, "{printed:.200}");
    }
    let bytes = json!({ "raw": "", "bytes": [0x61, 0x0a, 0xff, 0xfe] });
    let ready = evaluated(&kind, "o", bytes).await;
    check(text(&ready["message"]), "no UTF-8 & line 2", "bytes");
    // Half of an output and exit code 0, or a whole one and another: nothing of either.
    let half = json!({ "raw": &A[..40], "exit": "died halfway" });
    let ready = evaluated(&kind, "o", half).await;
    check(
        text(&ready["message"]),
        "exit_code(1) & died halfway",
        "half",
    );
    assert_eq!(state(&world).await, before);
    // And it goes on as if nothing had been.
    let ready = evaluated(&kind, "o", json!({ "raw": A })).await;
    assert_eq!(ready["reason"], "Ready", "{ready}");
    assert_eq!(world.data("a").await, json!({ "k": "new" }));
    world.gone(&world.core("configmaps", "b")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_output_is_refused_at_admission() {
    let world = World::new().await;
    let kind = world.basic().await;
    kind.make("o", json!({ "raw": A })).await;
    let before = state(&world).await;
    for (printed, words) in table() {
        for error in [
            kind.try_edit("o", json!({ "raw": printed })).await,
            kind.create("p", &json!({ "raw": printed })).await,
        ] {
            let error = error.err().map(|error| error.to_string());
            let error = error.unwrap_or_else(|| panic!("taken: {printed:.200}"));
            assert!(
                error.contains("admission webhook \"basics.tests.atc.dev\" denied"),
                "{error}"
            );
            check(&error, words, &printed);
        }
        assert_eq!(state(&world).await, before, "{printed:.200}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_and_texts_come_through_r79_r83() {
    let world = World::new().await;
    let kind = world.basic().await;
    let crd = crate::world::free_crd("Number");
    world.post(crate::world::CRDS, &crd).await;
    let path = format!("/apis/made.dev/v1/namespaces/{}/numbers", world.ns);
    atc_tests::eventually(crate::world::LIMIT, "numbers are served", || async {
        world.get(&path).await
    })
    .await;
    let text = "--- no document\nkey: |\n  ---\n  a: b\n---\n# end\n";
    let indented: Vec<String> = text.lines().map(|line| format!("    {line}\n")).collect();
    let printed = format!(
        "apiVersion: made.dev/v1\nkind: Number\nmetadata: {{name: num}}\nspec:\n  big: 9123456789012345678\n  \
         date: 20161216\n  tenth: 0.1\n  minus: -9223372036854775808\n---\n\
         apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: t}}\ndata:\n  text: |\n{}",
        indented.concat()
    );
    kind.make("n", json!({ "raw": printed })).await;
    let made = world.get(&format!("{path}/num")).await.unwrap().unwrap();
    assert_eq!(
        made["spec"],
        json!({
            "big": 9_123_456_789_012_345_678_u64, "date": 20_161_216, "tenth": 0.1, "minus": i64::MIN,
        })
    );
    assert_eq!(world.data("t").await["text"], text);
    // On the way in as well: what the flight got it prints again.
    let inner = json!({ "apiVersion": "made.dev/v1", "kind": "Number", "metadata": { "name": "num" },
        "spec": { "big": 9_123_456_789_012_345_678_u64, "minus": i64::MIN } });
    kind.edit("n", json!({ "objects": [inner] })).await;
    kind.ready("n").await;
    let made = world.get(&format!("{path}/num")).await.unwrap().unwrap();
    assert_eq!(made["spec"], inner["spec"]);
    kind.delete("n").await;
    world
        .delete(&format!("{}/numbers.made.dev", crate::world::CRDS))
        .await;
}

/// A trap alone says nothing: why a flight panicked stands in what it wrote to stderr.
#[tokio::test(flavor = "multi_thread")]
async fn a_panic_is_told_in_its_own_words() {
    let world = World::new().await;
    let spec = json!({ "panic": "no more fuel" });
    let denied = world.basic().await.create("p", &spec).await;
    let denied = denied.unwrap_err().to_string();
    for words in ["denied the request", "trapped", "no more fuel"] {
        assert!(denied.contains(words), "{denied}");
    }
    let kind = world.loose().await;
    kind.create("p", &spec).await.unwrap();
    kind.says("p", "Error", "no more fuel").await;
}
