//! Reviews that can't be done in time: a denial has our words, not those of an API server that gave up on us.

use std::net::TcpListener;

use atc_tests::AirwayBuilder;

use crate::world::{AIRWAYS, World};

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
