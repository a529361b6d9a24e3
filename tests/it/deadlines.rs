//! Reviews that can't be done in time: a denial has our words, not those of an API server that gave up on us.

use std::time::Duration;

use atc_tests::{AirwayBuilder, Fault, Proxy};
use serde_json::json;
use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream},
    time::sleep,
};

use crate::{
    outage::behind,
    solo::{Solo, plane},
    world::{AIRWAYS, World, puppet},
};

/// Sends a module at a byte a second, for as long as somebody takes it.
async fn trickle(mut to: TcpStream) {
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n";
    let mut sent = to.write_all(head).await;
    while sent.is_ok() {
        sleep(Duration::from_secs(1)).await;
        sent = to.write_all(b"x").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_airway_whose_flight_does_not_come_is_denied_in_our_words() {
    let world = World::new().await;
    let slow = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}/flight.wasm", slow.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((connection, _)) = slow.accept().await {
            tokio::spawn(trickle(connection));
        }
    });
    let airway = AirwayBuilder::new("Trickled", &url).build();
    let api = world.cluster.once().await.unwrap();
    let refused = api.post(AIRWAYS, &airway).await;
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
