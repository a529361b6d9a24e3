//! What flights print.

use atc_release::decorate::{Decoration, decorate};
use atc_release::desired::parse;
use atc_release::object::Stages;

/// Where a release lies that may make nothing elsewhere.
const NAMESPACE: &str = "home";

/// The output of a flight: what is read is whole, printed and read again it is the same, and a release that is confined
/// makes nothing outside its namespace and nothing that acts as an account.
pub fn output(data: &[u8]) {
    let stages = match parse(data) {
        Ok(stages) => stages,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    for object in stages.objects() {
        assert!(!object.api_version().is_empty() && !object.kind().is_empty());
        assert!(!object.name().is_empty() && object.metadata().is_object());
        assert_eq!(object.hash().len(), 64);
    }
    let printed = serde_json::to_vec(&stages).unwrap_or_default();
    let again = parse(&printed);
    assert!(
        again.as_ref().is_ok_and(|again| *again == stages),
        "{again:?}"
    );
    for namespaced in [true, false] {
        confined(stages.clone(), namespaced);
    }
}

fn confined(stages: Stages, namespaced: bool) {
    let decoration = Decoration {
        release: "r".to_owned(),
        namespace: NAMESPACE.to_owned(),
        managed_by: "atc.yoke".to_owned(),
        confined: true,
        ..Decoration::default()
    };
    let Ok(made) = decorate(stages, &decoration, &|_: &str, _: &str| Some(namespaced)) else {
        return;
    };
    for object in made.objects() {
        assert!(namespaced, "{}", object.canonical());
        assert_eq!(object.namespace(), Some(NAMESPACE));
        let account = object.value()["spec"]["serviceAccountName"].as_str();
        let acts = account.is_some_and(|name| !name.is_empty());
        assert!(!(object.is_flight() && acts), "{}", object.canonical());
        assert_eq!(
            object.label("app.kubernetes.io/managed-by"),
            Some("atc.yoke")
        );
    }
}
