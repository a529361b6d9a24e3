//! What nobody may take by printing it, and what a Flight without an account may not.

use serde_json::json;

use crate::accounts::{Accounts, acting, create, refused};
use crate::flights::{Flights, flight};
use crate::world::{CRDS, HOOKS, World, configmap};

/// By printing it: the API server asks about the atc, which may act as anybody.
#[tokio::test(flavor = "multi_thread")]
async fn a_flight_without_an_account_takes_no_flight_that_has_one() {
    let world = World::new().await;
    let (flights, accounts) = (Flights(&world), Accounts(&world));
    accounts.writer("app").await;
    let input =
        |name: &str, value: &str| json!({ "objects": [configmap(name, json!({ "k": value }))] });
    create(&flights, &flight("ops", &input("one", "v"), &acting("app"))).await;
    let before = flights.ready("ops").await;
    let printed = flight("ops", &input("two", "evil"), &json!({}));
    let taking = flight("evil", &json!({ "objects": [printed] }), &json!({}));
    let said = flights.create(&taking).await;
    refused(said, &["flight/ops", "owned by no release"]);
    // One that it makes itself is another matter.
    let prints =
        |value: &str| json!({ "objects": [flight("inner", &input("three", value), &json!({}))] });
    create(&flights, &flight("outer", &prints("1"), &json!({}))).await;
    flights.ready("outer").await;
    world.has("three", json!({ "k": "1" })).await;

    // Nor one that is its own, and that somebody gives an account.
    let given = json!({ "spec": { "serviceAccountName": "app" } });
    world.merge(&flights.path("inner"), &given).await;
    flights.ready("inner").await;
    let edit = json!({ "spec": { "inputObject": prints("2") } });
    world.merge(&flights.path("outer"), &edit).await;
    world.has("three", json!({ "k": "2" })).await;
    let inner = flights.ready("inner").await;
    assert_eq!(inner["spec"]["serviceAccountName"], "");
    let after = flights.ready("ops").await;
    assert_eq!(after["spec"], before["spec"]);
    assert!(world.configmap("two").await.is_none());
    for name in ["outer", "ops"] {
        flights.delete(name).await;
    }
}

/// The instances of the Airway would be gone with it, or be stored without their fields.
#[tokio::test(flavor = "multi_thread")]
async fn what_an_airway_made_is_taken_by_no_instance() {
    let world = World::new().await;
    let kind = world.basic().await;
    let name = kind.airway.name();
    for path in [CRDS, HOOKS] {
        let path = format!("{path}/{name}");
        let before = world.get(&path).await.unwrap().unwrap();
        let printed = json!({
            "apiVersion": before["apiVersion"], "kind": before["kind"], "metadata": { "name": name },
            "spec": before["spec"], "webhooks": before["webhooks"],
        });
        let spec = json!({ "objects": [configmap("beside", json!({})), printed] });
        let error = kind.create("taker", &spec).await.unwrap_err().to_string();
        let words = format!("was made by Airway \\\"{name}\\\"");
        let plain = words.replace('\\', "");
        assert!(error.contains(&words) || error.contains(&plain), "{error}");
        assert_eq!(world.get(&path).await.unwrap().unwrap(), before);
        assert!(world.configmap("beside").await.is_none());
    }
}
