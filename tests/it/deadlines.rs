//! Reviews that can't be done in time: a denial has our words, not those of an API server that gave up on us.

use std::net::TcpListener;

use atc_tests::{AirwayBuilder, Fault, Proxy};
use serde_json::json;

use crate::{
    outage::behind,
    solo::{Solo, plane},
    world::{AIRWAYS, World, puppet},
};

#[tokio::test(flavor = "multi_thread")]
async fn an_airway_whose_flight_does_not_come_is_denied_in_our_words() {
    let world = World::new().await;
    // Connections are taken by the kernel, and nobody answers.
    let silent = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}/flight.wasm", silent.local_addr().unwrap());
    let airway = AirwayBuilder::new("Silent", &url).build();
    let refused = world.cluster.api.post(AIRWAYS, &airway).await;
    let said = refused.unwrap_err().to_string();
    assert!(said.starts_with("503 "), "{said}");
    assert!(
        said.contains("could not be had and compiled within 28.5 s"),
        "{said}"
    );
    assert!(!said.contains("failed calling webhook"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scaling_whose_instance_can_not_be_read_is_denied_in_our_words() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let proxy = Proxy::start(plane()).await.unwrap();
    let _atc = behind(&solo, &proxy).await;
    let kind = world
        .kind_with(AirwayBuilder::new("Slow", &puppet()), |airway| {
            let version = &mut airway["spec"]["template"]["versions"][0];
            version["subresources"] = json!({ "scale": {
                "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
            } });
        })
        .await;
    kind.make("s", json!({ "replicas": 1 })).await;
    proxy.fail(&format!("GET {}", kind.path("s")), Fault::Stall);
    let scale = json!({ "spec": { "replicas": 2 } });
    let path = format!("{}/scale", kind.path("s"));
    let refused = world.cluster.api.merge(&path, &scale).await;
    let said = refused.unwrap_err().to_string();
    assert!(said.contains("could not be checked within 8.5 s"), "{said}");
    assert!(!said.contains("failed calling webhook"), "{said}");
    proxy.heal();
    proxy.cut_all();
    kind.finish().await;
}
