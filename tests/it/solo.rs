//! A control plane for tests whose atc is killed, cut off or started without rights: one for all of them, one test at
//! a time.

use std::sync::OnceLock;

use atc_tests::{AirwayBuilder, Atc, Cluster};
use controlplane::{Component, ControlPlane, Options};
use tokio::sync::{Mutex, MutexGuard};

use crate::world::{AIRWAYS, Kind, World, puppet};

/// The right to start an atc there. Given back at the end of the test.
pub(crate) struct Solo {
    pub(crate) world: World,
    _turn: MutexGuard<'static, ()>,
}

impl Solo {
    /// Waits for its turn.
    pub(crate) async fn begin() -> Self {
        static TURN: Mutex<()> = Mutex::const_new(());
        let turn = TURN.lock().await;
        let plane = tokio::task::spawn_blocking(plane).await.unwrap();
        let world = World::on(Cluster::on(plane).await).await;
        Self { world, _turn: turn }
    }

    /// Starts an atc.
    pub(crate) async fn atc(&self, environment: &[(&str, &str)]) -> Atc<'static> {
        let atc = Atc::start(plane(), &self.world.cluster.api, "solo", environment).await;
        atc.unwrap()
    }

    /// Starts one and waits for nothing.
    pub(crate) fn launch(&self, environment: &[(&str, &str)]) -> Atc<'static> {
        Atc::launch(plane(), &self.world.cluster.api, "solo", environment).unwrap()
    }

    /// A kind in dynamic mode that is not reviewed at admission: instances can be created while no atc runs.
    pub(crate) async fn kind(&self) -> Kind<'_> {
        let airway = AirwayBuilder::new("Solo", &puppet())
            .dynamic()
            .access(&["*"])
            .set("skipAdmissionWebhook", true);
        let path = format!("{AIRWAYS}/{}", airway.name());
        // Its webhook would ask an atc that is not there.
        if self.world.get(&path).await.unwrap().is_some() {
            return Kind::of(&self.world, airway);
        }
        self.world.kind(airway).await
    }
}

/// etcd, kube-apiserver and the garbage collector.
pub(crate) fn plane() -> &'static ControlPlane {
    static PLANE: OnceLock<ControlPlane> = OnceLock::new();
    PLANE.get_or_init(|| {
        let plane = ControlPlane::start(&Options::default()).unwrap();
        plane.start_component(Component::ControllerManager).unwrap();
        plane
    })
}
