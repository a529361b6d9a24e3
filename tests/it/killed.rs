//! An atc that is killed again and again while its instances are created and edited.

use std::{
    collections::BTreeSet,
    time::{Duration, SystemTime},
};

use atc_tests::{eventually, is_ready};
use serde_json::{Value, json};

use crate::{
    solo::Solo,
    world::{Kind, LIMIT, World, configmap, text},
};

const INSTANCES: u64 = 30;
const KILLS: u64 = 10;

/// A small generator of numbers that nobody needs to be good (SplitMix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// Names of the ConfigMaps that an instance makes at its `round`: one that stays, and one of three that changes.
fn children(number: u64, round: u64) -> [String; 2] {
    [format!("c{number}"), format!("c{number}-{}", round % 3)]
}

fn spec(number: u64, round: u64) -> Value {
    let data = json!({ "round": round.to_string() });
    let objects = children(number, round).map(|name| configmap(&name, data.clone()));
    json!({ "objects": objects, "status": { "round": round } })
}

/// Creates or edits an instance as soon as somebody is there to ask.
async fn write(kind: &Kind<'_>, number: u64, round: u64) {
    let name = format!("i{number}");
    eventually(LIMIT, &format!("{name} is taken"), || async {
        match kind.world.get(&kind.path(&name)).await? {
            None => kind.create(&name, &spec(number, round)).await.map(Some),
            Some(_) => kind.try_edit(&name, spec(number, round)).await.map(Some),
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_at_random_moments_r147() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let seed = match std::env::var("ATC_TEST_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs(),
    };
    eprintln!("ATC_TEST_SEED={seed}");
    let mut atc = solo.atc(&[]).await;
    let kind = solo.kind().await;
    let mut rounds = vec![0; usize::try_from(INSTANCES).unwrap()];
    let writer = async {
        let mut random = Random(seed);
        for step in 0..4 * INSTANCES {
            // All are created on the way, and each is edited some three times.
            let number = if step < INSTANCES {
                step
            } else {
                random.below(INSTANCES)
            };
            let round = &mut rounds[usize::try_from(number).unwrap()];
            *round += 1;
            write(&kind, number, *round).await;
        }
    };
    let killer = async {
        let mut random = Random(seed ^ 1);
        for _ in 0..KILLS {
            tokio::time::sleep(Duration::from_millis(random.below(500))).await;
            atc.kill();
            atc.restart().await.unwrap();
        }
    };
    tokio::join!(writer, killer);

    for (number, round) in (0..).zip(&rounds) {
        let name = format!("i{number}");
        kind.until(&name, "is at its last round", |object| {
            is_ready(object) && object["status"]["round"] == *round
        })
        .await;
    }
    let mut wanted = BTreeSet::new();
    for (number, round) in (0..).zip(&rounds) {
        for name in children(number, *round) {
            world
                .has(&name, json!({ "round": round.to_string() }))
                .await;
            wanted.insert(name);
        }
    }
    no_others(world, &wanted).await;
    eventually(LIMIT, "at most two revisions each are left", || async {
        let there = world.revisions().await.len();
        Ok((there <= 2 * rounds.len()).then_some(()))
    })
    .await;
    for number in 0..INSTANCES {
        world.delete(&kind.path(&format!("i{number}"))).await;
    }
    for number in 0..INSTANCES {
        kind.gone(&format!("i{number}")).await;
    }
    no_others(world, &BTreeSet::new()).await;
    assert!(world.revisions().await.is_empty());
    assert!(atc.alive());
}

/// Waits until there are exactly these ConfigMaps with our marks.
async fn no_others(world: &World, wanted: &BTreeSet<String>) {
    let path = format!("/api/v1/namespaces/{}/configmaps", world.ns);
    eventually(LIMIT, "there is nothing that nobody wants", || async {
        let all = world.cluster.api.list(&path).await?;
        let found: BTreeSet<String> = all
            .iter()
            .filter(|one| one["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "atc.yoke")
            .map(|one| text(&one["metadata"]["name"]).to_owned())
            .collect();
        if found == *wanted {
            return Ok(Some(()));
        }
        let differ: Vec<_> = found.symmetric_difference(wanted).collect();
        Err(anyhow::anyhow!("{differ:?}"))
    })
    .await;
}
